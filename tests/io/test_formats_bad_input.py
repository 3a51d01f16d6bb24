"""Files that are not what they should be: a clear error, and nothing read from them."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from pathlib import Path

import polars as pl
import pytest

from needs import import_peer, needs_kernel
from steelyard.errors import InputError
from steelyard.io import files, list_formats, read_qrels, read_run, sniff
from steelyard.io.files import open_chunks, read_bytes
from steelyard.qrels import Qrels
from steelyard.run import Run

RUN = "".join(f"q{query} Q0 d{doc} {doc} {10 - doc / 7} bm25\n" for query in range(300) for doc in range(1, 9))


def refused(path: Path) -> str:
    """The error of both readers for a file that neither can read."""
    message = []
    for read in (read_run, read_qrels):
        with pytest.raises(InputError) as caught:
            read(path, None, {})
        message.append(str(caught.value))
        assert str(path) in message[-1]
    return message[0]


class TestCompression:
    @pytest.fixture(params=["isal", "standard library"])
    def reader(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        if request.param == "isal":
            import_peer("isal")
        else:
            import sys

            for package in ("isal", "zlib_ng"):
                monkeypatch.setitem(sys.modules, package, None)
        return str(request.param)

    def test_gzip_by_content(self, file: Path, reader: str) -> None:
        file.write_bytes(gzip.compress(RUN.encode()))
        assert len(Run.read(file)) == 2400

    def test_several_members(self, file: Path, reader: str) -> None:
        half = RUN.index("q150")
        file.write_bytes(gzip.compress(RUN[:half].encode()) + gzip.compress(RUN[half:].encode()))
        assert read_bytes(file) == RUN.encode()

    @pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
    def test_truncated_gzip(self, file: Path, reader: str, kept: float) -> None:
        whole = gzip.compress(RUN.encode())
        file.write_bytes(whole[: int(len(whole) * kept)])
        assert "truncated" in refused(file)

    def test_damaged_gzip(self, file: Path, reader: str) -> None:
        whole = bytearray(gzip.compress(RUN.encode()))
        whole[len(whole) // 2 : len(whole) // 2 + 40] = bytes(40)
        file.write_bytes(whole)
        assert "damaged" in refused(file) or "truncated" in refused(file)

    def test_wrong_checksum(self, file: Path, reader: str) -> None:
        whole = bytearray(gzip.compress(RUN.encode()))
        whole[-8:-4] = (zlib.crc32(RUN.encode()) ^ 1).to_bytes(4, "little")
        file.write_bytes(whole)
        assert "damaged" in refused(file)

    @pytest.mark.parametrize("kind", ["zstd", "lz4"])
    def test_frames(self, file: Path, kind: str) -> None:
        packed = files.compress(RUN.encode(), kind)
        file.write_bytes(packed + packed)
        assert read_bytes(file) == (RUN * 2).encode()
        assert b"".join(open_chunks(file, 100)) == (RUN * 2).encode()
        for cut in (packed[: len(packed) // 2], packed[:-1], packed + packed[:-9]):
            file.write_bytes(cut)
            with pytest.raises(InputError, match="truncated"):
                read_bytes(file)
        file.write_bytes(packed[:40] + b"junk" * 20 + packed[120:])
        with pytest.raises(InputError, match=r"damaged|truncated"):
            read_bytes(file)

    def test_zstandard_without_the_package(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        file.write_bytes(files.compress(RUN.encode(), "zstd"))
        monkeypatch.setitem(sys.modules, "compression", None)
        monkeypatch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(InputError, match=r"pip install 'steelyard\[zstd\]'"):
            Run.read(file)

    def test_chunks_are_bounded(self, file: Path) -> None:
        file.write_bytes(RUN.encode())
        chunks = list(open_chunks(file, 1000))
        assert max(map(len, chunks)) == 1000
        assert b"".join(chunks) == RUN.encode()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "bm25.run").write_text(RUN)
    with pytest.raises(InputError, match=r"there is no such file. Did you mean bm25.run\?"):
        Run.read(tmp_path / "bm52.run")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is a folder; expected a file"):
        Qrels.read(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n \n\t\n", b"\xef\xbb\xbf"])
def test_empty(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert "is empty" in refused(file)


def test_only_comments(file: Path) -> None:
    file.write_text("# nothing\n# here\n")
    assert "only comments" in refused(file)


@pytest.mark.parametrize("seed", range(5))
def test_binary_junk(file: Path, seed: int) -> None:
    file.write_bytes(random.Random(seed).randbytes(5000))
    refused(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not text: line 3 has a zero byte"),
        (b"PK\x03\x04rest", ": a zip archive; unpack it first"),
        (b"BZh91AY&SY", ": bzip2 data"),
        ("q1 0 d1 1\n".encode("utf-16"), "UTF-16"),
        (
            b"Question No.,Passage,How good\n1,a,1\n",
            "separated by commas, and none of its columns (Question No., Passage, How good) is known",
        ),
        (b"query_id;doc_id;grade\n1;a;1\n", "separated by semicolons; expected commas or tabs"),
        (b"just some words in a file\n", "unknown format; the file starts with 'just some words in a file'"),
        (b"q1 Q0 d1 1 2.0 t\rq2 Q0 d1 1 2.0 t\r", "carriage return that does not end a line"),
        (b"q1 d1 1 12.5\nq1 d2 2 11.5\n", "query document rank score"),
    ],
)
def test_not_a_format(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    assert message in refused(file)


@pytest.mark.parametrize("codec", ["shift_jis", "gbk", "latin-1", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("form", ["trec", "csv", "json"])
def test_another_encoding_is_refused_with_the_command_that_converts_it(file: Path, codec: str, form: str) -> None:
    doc = "naïve" if codec == "latin-1" else "検索" if codec == "shift_jis" else "检索"
    content = {
        "trec": f"q1 0 d1 1\nq1 0 {doc} 1\n",
        "csv": f"query_id,doc_id,grade\nq1,{doc},1\n",
        "json": json.dumps({"q1": {"d1": 1, doc: 1}}, ensure_ascii=False),
    }[form]
    file.write_bytes(content.encode(codec))
    with pytest.raises(InputError) as error:
        Qrels.read(file)
    encoding = "UTF-16" if codec.startswith("utf-16") else "ENCODING"
    assert f"convert the file first: iconv -f {encoding} -t UTF-8 file" in str(error.value)


def test_mixed_encodings_name_line_and_byte(file: Path) -> None:
    lines = ["q1 Q0 café 1 2.0 t\n".encode(), "q1 Q0 naïve 2 1.0 t\n".encode("latin-1"), b"q1 Q0 d 3 0.5 t\n"] * 12
    file.write_bytes(b"".join(lines))
    message = refused(file)
    assert "12 lines are not as expected" in message
    assert "line 2: byte 9 (0xef) is not UTF-8" in message
    assert "... and 2 more" in message
    assert "iconv -f ENCODING -t UTF-8 file" in message


def test_invalid_bytes_far_down(file: Path) -> None:
    file.write_bytes(RUN.encode() * 20 + b"q1 Q0 d\xff 1 2.0 t\n")
    with pytest.raises(InputError, match=r"line 48,001: byte 8 \(0xff\) is not UTF-8"):
        Run.read(file)


class TestSwapped:
    def test_a_run_given_as_qrels(self, file: Path) -> None:
        file.write_text(RUN)
        with pytest.raises(InputError, match=r"this file holds a run \(format trec-run\); expected qrels"):
            Qrels.read(file)

    def test_qrels_given_as_a_run(self, file: Path) -> None:
        file.write_text("q1 0 d1 1\n")
        with pytest.raises(InputError, match=r"this file holds qrels \(format trec-qrels\); expected a run"):
            Run.read(file)

    def test_tables(self, file: Path) -> None:
        file.write_text("qid,docid,relevance\nq1,d1,1\n")
        with pytest.raises(InputError, match="Are the two files swapped"):
            Run.read(file)
        file.write_text("qid,docid,rank\nq1,d1,1\n")
        with pytest.raises(InputError, match="Are the two files swapped"):
            Qrels.read(file)

    def test_insisting_on_the_wrong_one(self, file: Path) -> None:
        file.write_text(RUN)
        with pytest.raises(InputError, match="format 'trec-run' cannot read qrels"):
            Qrels.read(file, format="trec-run")
        with pytest.raises(InputError, match="line 1: 6 columns, as in a line of a run"):
            Qrels.read(file, format="trec-qrels")


def test_an_unknown_format(file: Path) -> None:
    file.write_text(RUN)
    with pytest.raises(InputError, match="unknown format 'trecrun'.*Did you mean trec-run"):
        Run.read(file, format="trecrun")


def test_columns_for_a_format_without_any(file: Path) -> None:
    file.write_text('{"q1": {"d1": 1.5}}')
    with pytest.raises(InputError, match="has no role 'score' to name a column for"):
        Run.read(file, score="points")
    file.write_text(RUN)
    with pytest.raises(InputError, match="a TREC run has no role 'doc_id' to name a column for; its columns are fixed"):
        Run.read(file, doc_id="d")


@pytest.mark.parametrize("format", [entry.name for entry in list_formats().values() if "run" in entry.writes])
@pytest.mark.parametrize("insist", [True, False])
def test_unknown_role_for_a_run(file: Path, format: str, insist: bool) -> None:
    Run({"q1": {"a": 2.5, "b": 1.5}, "q2": {"c": 0.5}}).write(file, format)
    with pytest.raises(InputError, match="has no role 'nonsense' to name a column for"):
        Run.read(file, format=format if insist else None, nonsense=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("format", [entry.name for entry in list_formats().values() if "qrels" in entry.writes])
@pytest.mark.parametrize("insist", [True, False])
def test_unknown_role_for_qrels(file: Path, format: str, insist: bool) -> None:
    judged = {"q1": {"a": 1, "b": 0}, "q2": {"c": 2}}
    Qrels.from_rows(
        [(query, doc, grade, str(n)) for query, docs in judged.items() for n, (doc, grade) in enumerate(docs.items())]
        if format == "trec-diversity"
        else [(query, doc, grade, None) for query, docs in judged.items() for doc, grade in docs.items()]
    ).write(file, format)
    with pytest.raises(InputError, match="has no role 'nonsense' to name a column for"):
        Qrels.read(file, format=format if insist else None, nonsense=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"score": "scors"}, r"no column 'scors' for score; .*Did you mean scores\?"),
        ({"query_id": "qd"}, r"no column 'qd' for query_id; .*Did you mean qid\?"),
        ({"rank": "scores"}, "a run of lists has no role 'rank' to name a column for"),
    ],
)
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_wrong_names_for_the_columns_of_lists(
    tmp_path: Path, suffix: str, columns: dict[str, str], message: str
) -> None:
    rows = [{"qid": "q1", "hits": ["a", "b"], "scores": [2.0, 1.0]}, {"qid": "q2", "hits": [], "scores": []}]
    path = tmp_path / f"file.{suffix}"
    frame = pl.DataFrame(rows)
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ndjson(path)
    with pytest.raises(InputError, match=message):
        Run.read(path, **columns)


@pytest.mark.parametrize(
    ("content", "kind", "format"),
    [
        (RUN, "run", "trec-run"),
        ("q1 0 d1 1\n", "qrels", "trec-qrels"),
        ("7\t3\t1\n7\t4\t2\n", "run", "msmarco"),
        ("query-id\tcorpus-id\tscore\nq\td\t1\n", "qrels", "beir"),
        ("qid,docid,score\nq,d,1\n", "either", "csv"),
        ("qid\tdocid\trank\tscore\nq\td\t1\t2\n", "run", "tsv"),
        ('{"q": {"d": 1}}', "either", "json"),
        ('{"query_id": "q", "judgments": {"d": 1}}\n', "qrels", "jsonl"),
        ('[{"query_id": "q", "doc_id": "d", "grade": 1}]', "qrels", "json"),
    ],
)
def test_detected_format(file: Path, content: str, kind: str, format: str) -> None:
    misleading = file.with_suffix(".parquet")
    misleading.write_text(content)
    found = sniff(misleading)
    assert (found.kind, found.format) == (kind, format)


@needs_kernel
def test_reading_qrels_does_not_import_polars(file: Path) -> None:
    """The common TREC file is read with the standard library and numpy."""
    import subprocess
    import sys

    file.write_text("q1 0 d1 1\nq1 0 d2 0\n")
    code = (
        "import sys; from steelyard.qrels import Qrels; Qrels.read(sys.argv[1]); "
        "print(sorted({'polars', 'scipy', 'csv', 'gzip'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
