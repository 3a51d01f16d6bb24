"""Files read by the kernel and by the portable readers give the hits of the reference."""

from __future__ import annotations

import gc
import gzip
import math
import threading
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from readers import AVAILABLE, DUPLICATES, READERS, TIES, reader_named, scan_path, scan_text, table_hits
from reference import judged_docs, reference_hits

from needs import import_peer, needs_kernel
from same_hits import same_hits
from steelyard import Qrels
from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Ordering
from steelyard.alignment.scans import scan_file
from steelyard.errors import InputError, PolicyError
from steelyard.notes import note

JUDGED = judged_docs({"q1": ["a", "d1", "d10", "é"], "q2": ["x", "d2"], "q3": [], "q4": ["d1"]})
SCORES = ["1", "1.0", "0.5", ".5", "5.", "-0.0", "0.0", "+3", "1e-5", "1E+10", "12.250000", "-1.5", "-1.50"]
SCORES += ["3.4028236e38", "4.9e-324", "2.2250738585072014e-308", "12345678901234567890", "0.1", "0.10000000149"]
SCORES += ["0.1000000000000000055511151231257827", "29.942024183273315", "29.942024183273314", "9007199254740993"]
SCORES += ["179.76931348623157", "0.30000000000000004", "0.3", "00012.5", "1" * 25 + ".5", "0.000000000000000000001"]
DOCS = ["a", "d1", "d10", "d2", "é", "x", "D1", "d1é", "𝄞", "dddddddd", "ddddddddd", "d" * 16, "d" * 17, "d" * 90]
DOCS += ["12345678", "123456789", "1234567890123456"]


def rows_of(text: bytes) -> list[tuple[str, str, float]]:
    words = [line.split() for line in text.decode().split("\n") if line]
    return [(line[0], line[2], float(line[4])) for line in words]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("duplicates", DUPLICATES)
@pytest.mark.parametrize("ties", TIES)
def test_every_policy_on_a_file_with_ties_and_repeats(reader: str, ties: str, duplicates: str) -> None:
    lines = [
        "q2 Q0 x 1 0.25 tag", "q2 Q0 d9 2 0.25 tag", "q2 Q0 zz 3 0.25 tag", "q2 Q0 b 4 7 tag",
        "q1 Q0 d1 1 3.5 tag", "q1 Q0 d10 2 3.5 tag", "q1 Q0 a 3 3.5 tag", "q1 Q0 d3 4 3.0 tag", "q9 Q0 d 1 1 tag",
    ]  # fmt: skip
    if duplicates != "error":
        lines[5:5] = ["q1 Q0 d1 9 3.5 tag", "q1 Q0 d3 9 9.5 tag", "q1 Q0 d3 9 1 tag", "q1 Q0 a 9 100 tag"]
    text = "".join(line + "\n" for line in lines).encode()
    for single in (False, True):
        ordering = Ordering(ties, duplicates, single)
        found = scan_text(reader, text, JUDGED, ordering)
        assert found is not None
        assert same_hits(found, reference_hits(rows_of(text), JUDGED, ordering, "tag"))


run_lines = st.lists(
    st.tuples(st.sampled_from(["q1", "q2", "q4", "q9"]), st.sampled_from(DOCS), st.sampled_from(SCORES)),
    min_size=1,
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    rows=run_lines,
    shape=st.sampled_from([" ", "\t", "  ", " \t"]),
    end=st.sampled_from(["\n", "\r\n", " \n"]),
    tail=st.sampled_from(["", " t", " t u v"]),
    grouped=st.booleans(),
    falling=st.booleans(),
    last_break=st.booleans(),
    ties=st.sampled_from(TIES),
    duplicates=st.sampled_from(["hold", "collapse"]),
    single=st.booleans(),
    piece=st.sampled_from([1, 7, 64, 1 << 20]),
    threads=st.sampled_from([1, 3]),
)
def test_generated_files(
    rows, shape, end, tail, grouped, falling, last_break, ties, duplicates, single, piece, threads
):
    if falling:
        rows.sort(key=lambda row: -float(row[2]))
    if grouped or falling:
        rows.sort(key=lambda row: row[0])
    ordering = Ordering(ties, duplicates, single)
    lines = [shape.join([query, "Q0", doc, str(i), score]) + tail for i, (query, doc, score) in enumerate(rows)]
    text = (end.join(lines) + (end if last_break else "")).encode()
    expected = reference_hits([(q, d, float(s)) for q, d, s in rows], JUDGED, ordering, *(["t"] if tail else []))
    for reader in AVAILABLE:
        found = scan_text(reader, text, JUDGED, ordering, piece=piece, threads=threads)
        if found is None:
            queries = [query for query, _, _ in rows]
            assert reader == "native"
            assert len(list(groupby(queries))) > len(set(queries)), "left to the table"
        else:
            assert same_hits(found, expected)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    lists=st.lists(st.tuples(st.integers(1, 300), st.integers(0, 10**6)), min_size=1, max_size=12),
    places=st.sampled_from([2, 6, 12, 15]),
    levels=st.sampled_from([5, 1000, 10**6]),
    shuffled=st.booleans(),
    repeats=st.booleans(),
    piece=st.sampled_from([100, 5000, 1 << 20]),
    width=st.sampled_from([4, 7, 12, 30]),
)
def test_long_regular_files(lists, places, levels, shuffled, repeats, piece, width):
    rng = np.random.default_rng([seed for _, seed in lists])
    judged: dict[str, list[str]] = {}
    lines: list[str] = []
    for number, (length, _) in enumerate(lists):
        query = str(1000 + number)
        docs = rng.choice(9999, length, replace=repeats)
        scores = rng.integers(0, levels, length) / levels * 30
        if not shuffled:
            scores = np.sort(scores)[::-1]
        ids = [str(doc).rjust(width, "D") for doc in docs]
        lines += [
            f"{query} Q0 {doc} {i + 1} {s:.{places}f} bm25" for i, (doc, s) in enumerate(zip(ids, scores, strict=True))
        ]
        judged[query] = list(dict.fromkeys([*ids[:: max(1, length // 3)], "none"]))
    text = ("\n".join(lines) + "\n").encode()
    docs = judged_docs(judged)
    expected = reference_hits(rows_of(text), docs, Ordering(), "bm25")
    for reader in AVAILABLE:
        found = scan_text(reader, text, docs, Ordering(), piece=piece, threads=2)
        assert found is not None
        assert same_hits(found, expected)


UNUSUAL = {
    "empty": b"",
    "one byte": b"q",
    "one break": b"\n",
    "blank line": b"q1 Q0 a 1 1 t\n\nq1 Q0 b 2 1 t\n",
    "blank line at the end": b"q1 Q0 a 1 1 t\n\n",
    "byte order mark": b"\xef\xbb\xbfq1 Q0 a 1 1 t\n",
    "utf-16": "q1 Q0 a 1 1 t\n".encode("utf-16"),
    "comment": b"# a b c 5 d\nq1 Q0 a 1 1 t\n",
    "comment inside": b"q1 Q0 a 1 1 t\n#q1 Q0 b 2 1 t\n",
    "three columns": b"q1\ta\t1\nq1\tb\t2\n",
    "four columns": b"q1 0 a 1\n",
    "four columns late": b"q1 Q0 a 1 1 t\n" * 3 + b"q1 Q0 b 1\n",
    "header": b"qid Q0 docid rank score tag\nq1 Q0 a 1 1 t\n",
    "nan": b"q1 Q0 a 1 nan t\n",
    "nan in a query without judgments": b"q1 Q0 a 1 1 t\nq9 Q0 a 1 nan t\n",
    "infinite": b"q1 Q0 a 1 inf t\n",
    "minus infinity": b"q1 Q0 a 1 -Infinity t\n",
    "too large": b"q1 Q0 a 1 1e999 t\n",
    "hexadecimal": b"q1 Q0 a 1 0x1p3 t\n",
    "underscore": b"q1 Q0 a 1 1_000 t\n",
    "comma": b"q1 Q0 a 1 1,5 t\n",
    "only a sign": b"q1 Q0 a 1 - t\n",
    "only a point": b"q1 Q0 a 1 . t\n",
    "two points": b"q1 Q0 a 1 1.2.3 t\n",
    "no digits after e": b"q1 Q0 a 1 1e t\n",
    "a word after digits": b"q1 Q0 a 1 12abc t\n",
    "nul": b"q1 Q0 a\x00 1 1 t\n",
    "nul in the tag": b"q1 Q0 a 1 1 t\x00\n",
    "vertical tab": b"q1 Q0 a\x0bb 1 1 t\n",
    "form feed": b"q1 Q0 a 1 1 t\x0c\n",
    "lone return": b"q1 Q0 a 1 1 t\rq1 Q0 b 2 1 t\n",
    "return at the very end": b"q1 Q0 a 1 1 t\r",
    "escape": b"q1 Q0 a 1 1 \x1b[0m\n",
    "latin-1 id": b"q1 Q0 \xe9 1 1 t\n",
    "latin-1 tag": b"q1 Q0 a 1 1 \xe9\n",
    "overlong": b"q1 Q0 \xc0\x80 1 1 t\n",
    "surrogate": b"q1 Q0 \xed\xa0\x80 1 1 t\n",
    "beyond unicode": b"q1 Q0 \xf4\x90\x80\x80 1 1 t\n",
    "cut character": b"q1 Q0 a 1 1 \xc3",
    "shifted": b"q1 x Q0 a 1 1 t\n",
    "rank is a word": b"q1 Q0 my doc 3.5 t\n",
    "binary": bytes(range(256)),
    "gzip magic only": b"\x1f\x8c" * 10,
}


@needs_kernel
@pytest.mark.parametrize("name", UNUSUAL)
def test_kernel_leaves_unusual_files_to_the_other_readers(name: str) -> None:
    clean = b"".join(b"q2 Q0 doc%07d %d %.6f tag\n" % (i, i + 1, 500 - i) for i in range(400))
    assert scan_text("native", UNUSUAL[name], JUDGED, Ordering()) is None
    if UNUSUAL[name] and name not in ("byte order mark", "utf-16"):
        for piece in (1, 1000, 1 << 20):
            assert scan_text("native", clean + UNUSUAL[name], JUDGED, Ordering(), piece=piece) is None


@needs_kernel
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_files_give_the_same_result_or_error_without_the_kernel(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(UNUSUAL[name])
    qrels = Qrels({"q1": {"a": 1, "b": 0}, "q2": {"x": 1}})
    results = []
    for reader in AVAILABLE:
        with reader_named(reader):
            try:
                aligned = align(qrels, path, Ordering())
            except InputError as error:
                results.append(str(error))
            else:
                a = aligned.alignment
                results.append(f"{aligned.name} {aligned.notes} {a.retrieved} {a.query} {a.rank} {a.tie_size}")
    assert results[0] == results[1]


@needs_kernel
def test_unusual_bytes_anywhere_in_a_long_file() -> None:
    reader = "native"
    lines = [b"q2 Q0 doc%07d %d %.6f tag\n" % (i, i + 1, 500 - i) for i in range(300)]
    text = b"".join(lines)
    start = len(b"".join(lines[:150]))
    assert scan_text(reader, text, JUDGED, Ordering()) is not None
    for at in range(start, start + len(lines[150])):
        for byte in (b"\x00", b"\xff", b"\x0b", b"\r"):
            if byte + text[at + 1 : at + 2] == b"\r\n":
                continue
            assert scan_text(reader, text[:at] + byte + text[at + 1 :], JUDGED, Ordering()) is None
    # A letter for a digit: fine in an id or a tag, not in a rank or a score; another query divides the first's lines.
    word_at = [len(text[start:at].split(b" ")) for at in range(start, start + len(lines[150]) - 1)]
    for at, word in enumerate(word_at):
        if lines[150][at : at + 1] in b" \n":
            continue
        changed = text[: start + at] + b"x" + text[start + at + 1 :]
        found = scan_text(reader, changed, JUDGED, Ordering())
        if word in (1, 4, 5):
            assert found is None
        else:
            assert found is not None
            assert same_hits(found, reference_hits(rows_of(changed), JUDGED, Ordering(), *tags_of(changed)))


def tags_of(text: bytes) -> list[str]:
    words = [line.split() for line in text.decode().split("\n")]
    return list(dict.fromkeys(line[5] for line in words if len(line) > 5))


@needs_kernel
@settings(max_examples=200, deadline=None)
@given(junk=st.binary(max_size=60), at=st.integers(0, 400), piece=st.sampled_from([1, 50, 1 << 20]))
def test_a_damaged_file_gives_the_reference_or_is_refused(junk, at, piece):
    clean = b"".join(b"q1 Q0 d%d %d %.3f tag\n" % (i, i, 50 - i / 2) for i in range(20))
    text = clean[:at] + junk + clean[at:]
    assume(not text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")))
    found = scan_text("native", text, JUDGED, Ordering(), piece=piece)
    if found is not None:
        expected = reference_hits(rows_of(text.replace(b"\r\n", b"\n")), JUDGED, Ordering(), *tags_of(text))
        assert same_hits(found, expected)
        portable = scan_text("portable", text, JUDGED, Ordering())
        assert portable is not None
        assert same_hits(replace(portable, tags=found.tags), expected)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=300, deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False), places=st.integers(0, 20), form=st.sampled_from("rfe"))
def test_scores_are_read_to_the_last_bit(reader, value, places, form):
    text = repr(value) if form == "r" else f"{value:.{places}{form}}"
    # The same score on every line, so that whichever way a line is read shows.
    lines = "".join(f"q1 Q0 doc{i} {i} {text} t\n" for i in range(30))
    if math.isinf(float(text)) and reader == "portable":
        with pytest.raises(InputError, match="not a finite number"):
            scan_text(reader, lines.encode(), JUDGED, Ordering())
        return
    found = scan_text(reader, lines.encode(), JUDGED, Ordering())
    if math.isinf(float(text)):
        assert found is None
    else:
        assert found is not None
        assert found.top_score[0] == float(text)


@pytest.mark.parametrize("reader", READERS)
def test_decimals_near_a_tie_of_doubles(reader: str) -> None:
    # Decimals around the midpoint of two doubles: a reader that rounds twice gets one of them wrong.
    texts = []
    for exponent in range(0, 50, 7):
        low = math.ldexp(1 + 3 * 2.0**-52, exponent)
        middle = (int(low * 2**60) + int(math.nextafter(low, math.inf) * 2**60)) // 2
        digits = str(middle * 10**16 // 2**60).rjust(17, "0")
        texts += [f"{str(int(digits) + step)[:-16] or '0'}.{str(int(digits) + step)[-16:]}" for step in range(-3, 4)]
    for text in texts:
        lines = "".join(f"q1 Q0 doc{i} {i} {text} t\n" for i in range(30))
        found = scan_text(reader, lines.encode(), JUDGED, Ordering())
        assert found is not None
        assert found.top_score[0] == float(text)


@pytest.mark.parametrize("reader", READERS)
def test_repeat_error_names_the_first_repeat(reader: str) -> None:
    text = b"q2 Q0 u 1 3 t\nq2 Q0 v 2 2 t\nq2 Q0 v 3 2 t\nq1 Q0 w 1 5 t\nq1 Q0 k 1 4 t\nq1 Q0 k 1 3 t\nq1 Q0 w 1 2 t\n"
    with pytest.raises(PolicyError, match=r"(?s)3 documents are repeated .*:\n  query 'q1': document 'k'\n"):
        scan_text(reader, text, JUDGED, Ordering(duplicates="error"))
    assert scan_text(reader, text, judged_docs({"other": ["a"]}), Ordering(duplicates="error")) is not None


@pytest.mark.parametrize("reader", READERS)
def test_queries_without_judgments_are_counted(reader: str) -> None:
    text = b"".join(b"n%d Q0 a 1 1 t\n" % (i % 5) for i in range(20)) + b"q1 Q0 a 1 1 t\nn0 Q0 b 2 0 t\n"
    for piece in (1, 1000):
        found = scan_text(reader, text, JUDGED, Ordering(), piece=piece, threads=2)
        assert found is not None
        assert (found.run_only_queries, found.run_only_examples) == (5, ("n0", "n1", "n2"))


@pytest.mark.parametrize("reader", READERS)
def test_judged_ids_without_a_utf8_form(reader: str) -> None:
    judged = judged_docs({"\ud800": ["a"], "q1": ["\udcff", "a", ""]})
    found = scan_text(reader, b"q1 Q0 a 1 1 t\n", judged, Ordering())
    assert found is not None
    assert found.doc.tolist() == [2]
    assert found.answered.tolist() == [False, True]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["gz", "zst", "lz4"])
def test_compressed_files(reader: str, kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    grouped = [(f"q{q}", f"d{d}", float(d % 7)) for q in range(1, 5) for d in rng.permutation(200)]
    mixed = [grouped[i] for i in rng.permutation(len(grouped))]
    for rows in (grouped, mixed):
        text = "".join(f"{q} Q0 {d} 1 {s} tag\n" for q, d, s in rows).encode()
        path = tmp_path / "run"
        path.write_bytes(packed(text, kind))
        left_to_the_table = reader == "native" and rows is mixed
        for piece in (None, 100, 5000):
            found = scan_path(reader, path, JUDGED, Ordering(), piece=piece)
            if left_to_the_table:
                assert found is None
                found = table_hits(path, JUDGED, Ordering())
            assert found is not None
            assert same_hits(found, reference_hits(rows, JUDGED, Ordering(), "tag"))
        path.write_bytes(packed(text, kind)[:-20])
        with pytest.raises(InputError, match="truncated"):
            scan_path("portable" if left_to_the_table else reader, path, JUDGED, Ordering())


def packed(text: bytes, kind: str) -> bytes:
    if kind == "gz":
        return gzip.compress(text)
    library = import_peer("zstandard" if kind == "zst" else "lz4.frame")
    data: bytes = library.ZstdCompressor().compress(text) if kind == "zst" else library.compress(text)
    return data


@needs_kernel
@pytest.mark.parametrize("name", UNUSUAL)
def test_kernel_leaves_unusual_compressed_files_to_the_other_readers(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_bytes(gzip.compress(UNUSUAL[name]))
    assert scan_path("native", path, JUDGED, Ordering(), piece=64) is None


@needs_kernel
def test_the_decompressing_thread_ends_with_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "unusual.run.gz"
    path.write_bytes(gzip.compress(30 * UNUSUAL["nan in a query without judgments"]))
    before = set(threading.enumerate())
    gc.disable()
    try:
        assert scan_path("native", path, JUDGED, Ordering(), piece=64) is None
        assert set(threading.enumerate()) == before
    finally:
        gc.enable()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("order", ["by rank", "shuffled", "two halves"])
@pytest.mark.parametrize("long_ids", [False, True])
def test_interleaved_files(reader: str, order: str, long_ids: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    name = "a-query-with-a-long-name-{}" if long_ids else "q{}"
    rows = [(name.format(q), f"doc{d}", round(float(s), 3)) for q in range(9) for d, s in enumerate(rng.random(70) * 9)]
    if order == "by rank":
        rows.sort(key=lambda row: row[1])
    elif order == "shuffled":
        rows = [rows[i] for i in rng.permutation(len(rows))]
    else:
        rows = rows[::2] + rows[1::2]
    docs = judged_docs({name.format(q): ["doc3", "doc44", "none"] for q in (4, 2, 8, 77)})
    text = "".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in rows).encode()
    expected = reference_hits(rows, docs, Ordering(), "t")
    path = tmp_path / "file.run"
    for given_text in (text, text[:-1], text.replace(b" ", b"\t")):
        path.write_bytes(given_text)
        with reader_named(reader):
            for piece in (50, 3000, 1 << 20):
                assert scan_file(path, docs, Ordering(), piece=piece, threads=2) is None, "left to the table"
            assert same_hits(table_hits(path, docs, Ordering()), expected)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("score", ["{:.6f}", "{:.0f}", "{:.3e}", "{!r}", "-{:.4f}", "{:.7f}", "1234{:.2f}", "{:.1f}"])
@pytest.mark.parametrize("judged_every", [1, 50])
def test_scores_of_every_form_in_long_lists(reader: str, score: str, judged_every: int) -> None:
    rng = np.random.default_rng(4)
    lines: list[str] = []
    judged: dict[str, list[str]] = {}
    for query in ("7", "30", "501", "60000"):
        values = np.sort(rng.random(1200) * 120)[::-1]
        docs = [f"D{i}" for i in rng.choice(10**6, 1200, replace=False)]
        texts = [score.format(value) for value in values.tolist()]
        lines += [
            f"{query} Q0 {doc} {rank} {text} tag" for rank, (doc, text) in enumerate(zip(docs, texts, strict=True))
        ]
        judged[query] = docs[::judged_every]
    text = ("\n".join(lines) + "\n").encode()
    docs_judged = judged_docs(judged)
    for ties in ("docid-desc", "stable"):
        expected = quick_reference(rows_of(text), docs_judged, Ordering(ties))
        found = scan_text(reader, text, docs_judged, Ordering(ties))
        assert found is not None
        assert np.array_equal(np.column_stack([found.query, found.doc, found.rank]), expected)


def quick_reference(rows, judged, ordering) -> np.ndarray:
    """Query, document and rank of hits, for lists that are too long for the reference."""
    expected = []
    for number, query in enumerate(judged.query_ids):
        docs = [(doc, score) for other, doc, score in rows if other == query]
        if ordering.ties != "stable":
            docs.sort(key=lambda row: row[0], reverse=True)
        docs.sort(key=lambda row: row[1], reverse=True)
        ranks = {doc: rank for rank, (doc, _) in enumerate(docs, start=1)}
        places = range(*judged.starts[number : number + 2])
        expected += sorted((number, place, ranks[judged.doc_ids[place]]) for place in places)
    return np.array(sorted(expected, key=lambda hit: (hit[0], hit[2])))


TWO_TAGS = {
    "grouped": b"q2 Q0 x 1 3 t\nq2 Q0 y 2 2 t\nq1 Q0 a 1 5 u v\nq1 Q0 b 2 4 t\nq1 Q0 c 2 3\n",
    "interleaved": b"q2 Q0 x 1 3 t\nq1 Q0 a 1 5 u\nq2 Q0 y 2 2 t\nq1 Q0 b 2 4 t\n",
    "first line without a tag": b"q1 Q0 a 1 5\nq2 Q0 x 1 3 t\nq2 Q0 y 2 2 u\n",
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", TWO_TAGS)
@pytest.mark.parametrize("compressed", [False, True])
def test_several_tags_are_reported(reader: str, name: str, compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / "file.run"
    path.write_bytes(gzip.compress(TWO_TAGS[name]) if compressed else TWO_TAGS[name])
    with reader_named(reader):
        aligned = align(Qrels({"q1": {"a": 1}, "q2": {"x": 1}}), path, Ordering())
    assert aligned.name == "t"
    assert aligned.notes == (note("several-tags", count=2, tags=["t", "u"]),)
