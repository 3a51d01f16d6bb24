"""Regular TREC qrels are read by the native kernel as the portable reader reads them; other files are left to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needs import needs_kernel
from steelyard import Qrels
from steelyard.errors import InputError
from steelyard.io.trec import read_regular_qrels

FIELDS = {
    "query": st.sampled_from(["q1", "q2", "é", "#q", "7", "topic"]),
    "middle": st.sampled_from(["0"] * 20 + ["Q0", "1"]),
    "doc": st.sampled_from(["a", "b", "d" * 20, "𝄞", "1", "2", "doc"]),
    "grade": st.sampled_from(["0", "1", "2", "-1", "+3", "007", "1.5", "nan", "1e3", "9" * 15, "9" * 16, "x"]),
    "gap": st.sampled_from([" "] * 10 + ["\t", "  ", "\x0b", "\u00a0"]),
    "end": st.sampled_from(["\n"] * 20 + ["\r\n", " \n", "\n\n", "\r", "", " extra\n"]),
}


@st.composite
def files(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.fixed_dictionaries(FIELDS), max_size=8))
    text = "".join("{query}{gap}{middle}{gap}{doc}{gap}{grade}{end}".format(**line) for line in lines)
    data = text.encode()
    return draw(st.sampled_from([data] * 10 + [b"\xef\xbb\xbf" + data, data + b"\xff", data + b"\x00\n"]))


@pytest.mark.slow
@needs_kernel
@settings(max_examples=400, deadline=None)
@given(data=files())
def test_the_kernel_reads_what_the_portable_reader_reads(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("q") / "x.qrels"
    path.write_bytes(data)
    found = read_regular_qrels(path)
    if found is None:
        return
    judged, grades = found
    for portable in (Qrels.read(path, format="trec-qrels"), without_kernel(path)):
        assert list(judged.query_ids) == list(portable.judged.query_ids)
        assert list(judged.doc_ids) == list(portable.judged.doc_ids)
        assert np.array_equal(judged.starts, portable.judged.starts)
        assert np.array_equal(grades, portable.grades)
        assert judged.starts.dtype == np.int64
        assert grades.dtype == np.float64
        assert portable.notes == ()


def without_kernel(path: Path) -> Qrels:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_NATIVE", "0")
        assert read_regular_qrels(path) is None
        return Qrels.read(path)


@needs_kernel
@pytest.mark.parametrize("data", [b"q1 0 a 1\nq1 0 b 0\nq2 0 a -2\n", b"q1\tQ0\ta\t1\r\nq2\tQ0\t\xc3\xa9\t+3"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_regular_file_is_read_by_the_kernel(data: bytes, compressed: bool, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "x.qrels"
    path.write_bytes(gzip.compress(data) if compressed else data)
    assert read_regular_qrels(path) is not None
    assert Qrels.read(path) == without_kernel(path)


@needs_kernel
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"q1 0 a 1\n\n",
        b"q1 0 a 1\nq2 0 a 1\nq1 0 b 1\n",
        b"q1 0 a 1\nq1 0 a 1\n",
        b"q1 1 a 1\nq1 2 a 1\n",
        b"q1 1 a 1\n",
        b"q1 0 a 0.5\n",
        b"q1 Q0 a 1 2.5 bm25\n",
        b"# topics\nq1 0 a 1\n",
        b"\xef\xbb\xbfq1 0 a 1\n",
        b"q1 0 a 1\rq1 0 b 1\n",
    ],
)
def test_any_other_file_is_left_to_the_portable_reader(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    path.write_bytes(data)
    assert read_regular_qrels(path) is None


@pytest.mark.parametrize("native", ["0", "1"])
def test_a_missing_file_is_an_error(native: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_NATIVE", native)
    with pytest.raises(InputError, match="there is no such file"):
        Qrels.read(tmp_path / "none.qrels")
