"""Run files and JSON that the kernel reads and writes are those of the portable readers and writers."""

from __future__ import annotations

import gc
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from needs import needs_kernel
from steelyard import Run
from steelyard.errors import InputError
from steelyard.io import trec
from steelyard.io.text import Source, parse_json, quick_json, quick_json_lines

pytestmark = needs_kernel

FIELDS = {
    "query": st.sampled_from(["q1", "q1", "q2", "é", "#q", "a-query-of-more-than-twelve-bytes"]),
    "zero": st.sampled_from(["Q0"] * 20 + ["0", "q0"]),
    "doc": st.sampled_from(["a", "doc-12345678", "doc-123456789", "é" * 20, "Q0", "1", "d1"]),
    "rank": st.sampled_from(["1", "2", "10"] * 5 + ["1.5", "x", ""]),
    "score": st.sampled_from(["1.5", "2", "-0.25", "29.942024183273315"] * 4 + ["1e-5", ".5", "nan", "x"]),
    "tag": st.sampled_from([" bm25"] * 10 + ["", " other", " two words"]),
    "gap": st.sampled_from([" "] * 20 + ["\t", "  ", "\x0b"]),
    "end": st.sampled_from(["\n"] * 20 + ["\r\n", " \n", "\n\n", ""]),
}


@st.composite
def run_files(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.fixed_dictionaries(FIELDS), max_size=12))
    pattern = "{query}{gap}{zero}{gap}{doc}{gap}{rank}{gap}{score}{tag}{end}"
    data = "".join(pattern.format(**line) for line in lines).encode()
    return draw(st.sampled_from([data] * 10 + [b"\xef\xbb\xbf" + data, data + b"\xff", data + b"\x00\n"]))


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(data=run_files(), piece=st.sampled_from([1, 20, 1 << 20]))
def test_the_columns_of_a_run_are_those_of_the_portable_reader(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, piece: int
) -> None:
    path = tmp_path_factory.mktemp("r") / "x.run"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "PIECE", piece)
        found = trec._read_native(path)
    if found is None:
        return
    table, tags, comments = trec._read_any(path)
    assert found[0].equals(table)
    assert found[0].schema == table.schema
    assert (found[1], found[2]) == (tags, comments)


def test_a_clean_run_is_read_by_the_kernel_and_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 2.5 a\nq2 Q0 d1 1 2 b\nq1 Q0 a-document-with-a-long-id 2 1 a\n")
    found = trec._read_native(path)
    assert found is not None
    assert found[0].rows() == [("q1", "d1", 2.5), ("q2", "d1", 2.0), ("q1", "a-document-with-a-long-id", 1.0)]
    assert found[1] == ["a", "b"]
    path.write_text("# a comment\nq1 Q0 d1 1 2.5 a\n")
    assert trec._read_native(path) is None
    assert len(Run.read(path)) == 1


def test_columns_outlive_the_run_they_were_read_with(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    ids = [f"a-document-with-a-long-id-{number}" for number in range(2000)]
    path.write_text("".join(f"q{n % 7} Q0 {doc} 1 {n}.5 t\n" for n, doc in enumerate(ids)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "PIECE", 500)
        found = trec._read_native(path)
    assert found is not None
    docs, some = found[0]["doc_id"], found[0].select("score")[::3]
    del found
    gc.collect()
    noise = [bytes(range(256)) * 100 for _ in range(50)]
    assert docs.to_list() == ids
    assert some["score"].to_list() == [n + 0.5 for n in range(0, 2000, 3)]
    assert len(noise) == 50


def doubles() -> st.SearchStrategy[float]:
    bits = st.integers(0, 2**64 - 1).map(lambda n: struct.unpack("<d", struct.pack("<Q", n))[0])
    return st.one_of(bits.filter(math.isfinite), st.floats(1e-5, 2), st.integers(-5, 10**17).map(float), st.just(-0.0))


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["q1", "q2", "é", "#q", "\ufeffq", "", "a-query-of-more-than-twelve-bytes"]),
            st.sampled_from(["d", "a document", "d\x0b", "é" * 9, "a-document-with-a-long-id", "", "\0"]),
            doubles(),
        ),
        max_size=6,
    )
)
@example([("q", "d", 1e-4), ("q", "e", 9.9999e-5)])
@example([("q", "d", 1e15)])
@example([("q", "d", 999999999999999.9), ("q", "e", 0.1 + 0.2)])
def test_the_lines_of_a_run_are_those_of_polars(rows: list[tuple[str, str, float]]) -> None:
    frame = pl.DataFrame(
        {
            "query_id": [row[0] for row in rows],
            "doc_id": [row[1] for row in rows],
            "rank": list(range(1, len(rows) + 1)),
            "score": [row[2] for row in rows],
        },
        schema={"query_id": pl.String, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64},
    )
    lines = trec._lines_native(frame, "a-tag")
    try:
        expected = trec._lines(frame, "a-tag")
    except InputError:
        assert lines is None
        return
    assert lines is None or lines == expected
    plain = all(score == 0 or 1e-4 <= abs(score) < 1e15 for *_, score in rows)
    assert (lines is not None) == (plain and bool(rows))


def test_the_lines_of_many_scores_are_those_of_polars() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([1 / (60 + np.arange(1, 3000)), rng.random(3000) * 30, 10 ** rng.uniform(-4, 14.9, 20_000)])
    frame = pl.DataFrame({"query_id": "q", "doc_id": "d", "rank": np.arange(len(scores)), "score": scores})
    assert trec._lines_native(frame, "t") == trec._lines(frame, "t")


@pytest.mark.parametrize("native", ["0", "1"])
def test_a_name_that_is_not_text_is_escaped_in_the_tag(native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_NATIVE", native)
    assert trec.run_bytes(Run({"q1": {"d1": 1.5}}, name="caf\udce9 2")) == b"q1 Q0 d1 1 1.5 caf\\udce9_2\n"


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(value=VALUES, plain=st.booleans(), indent=st.sampled_from([None, 1]))
def test_json_of_orjson_is_that_of_python(value: Any, plain: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=plain, indent=indent)
    found = quick_json(text.encode("utf-8", "surrogatepass"))
    if found is not None:
        assert same(found, json.loads(text))


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(
            [*'{}[]:,"\\ \n', '"a"', '"b"', '"a":', "1", "-0", "01", "1.5", "-1e5", ".5", "1.", "1e999"]
            + ["123456789012345678", "1234567890123456789", "null", "true", "fals", "NaN", '"\\u00e9"']
            + ['"\\ud83d\\ude00"', '"\\ud83d"', '"\t"', '"é"', '{"a": {"d": 0.5}}', "\ufeff", "\0"]
        ),
        max_size=9,
    )
)
@example(["[1"])
@example(['{"a": 1, "a": 2}'])
@example(['{"a": 1} x'])
@example(["[" * 200 + "]" * 200])
def test_what_is_no_json_is_left_to_python(parts: list[str]) -> None:
    text = "".join(parts)
    found = quick_json(text.encode())
    if found is not None:
        assert same(found, parse_json(text))


def test_usual_json_is_read_by_orjson() -> None:
    text = '{"q1": {"d1": 1.5, "é": 2}, "q2": [["d1", 0.25], []], "q3": [{"doc_id": "a\\n", "x": null}]}'
    assert quick_json(text.encode()) == json.loads(text)
    records = [{"doc_id": f"d{n}", "score": n / 3, "a-name-of-more-than-32-characters-in-all": n} for n in range(50)]
    assert quick_json(json.dumps(records).encode()) == records
    # Colons and quotes within texts are not names.
    for text in ('{"https://a:1": {"b:c": 1}}', '{"a" : "x:y", "b" :[]}', '["1:2"]', str(2**64 - 1)):
        assert quick_json(text.encode()) == json.loads(text)
    for unusual in ('{"a": 1, "a": 2}', '{"a": NaN}', "1" * 21, f"-{2**63 + 1}", "null", "[1,]", '"\\ud83d"', "{}x"):
        assert quick_json(unusual.encode()) is None


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(
    lines=st.lists(
        st.lists(
            st.sampled_from([*'{}[],"', "[[", "]]", "],[", "1", '"a":', '{"a": 1}', '"x', 'y"', " "]), max_size=5
        ).map("".join),
        min_size=1,
        max_size=4,
    )
)
@example(["[1", "2]"])
@example(["{},{}", "{"])
@example(['{"a": "x', 'y"}', "{}],[{}"])
def test_lines_of_json_that_are_read_at_once_are_those_that_are_read_alone(lines: list[str]) -> None:
    together = quick_json_lines([line.encode() for line in lines])
    if together is not None:
        assert together == [json.loads(line) for line in lines]


def test_a_name_that_occurs_twice_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"q1": {"d1": 1.0, "d1": 2.0}}')
    with pytest.raises(InputError, match="'d1' occurs twice"):
        _ = Source(path).json


def same(found: Any, expected: Any) -> bool:
    """Equal values of equal types, in the same order."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, dict):
        return list(found) == list(expected) and all(same(found[name], expected[name]) for name in found)
    if isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, float):
        return struct.pack("<d", found) == struct.pack("<d", expected)
    return bool(found == expected)
