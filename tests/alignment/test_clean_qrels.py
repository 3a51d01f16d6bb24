"""Judgments read at once are those that the careful reader gives, or are left to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import AVAILABLE, READERS, reader_named

from steelyard import Qrels
from steelyard.errors import InputError
from steelyard.io.clean_qrels import read_clean_qrels

FIELDS = {
    "query": st.sampled_from(["q1", "q2", "é", "#q", "7"]),
    "middle": st.sampled_from(["0"] * 20 + ["Q0", "1"]),
    "doc": st.sampled_from(["a", "b", "d" * 20, "𝄞", "1", "2"]),
    "grade": st.sampled_from(
        ["0", "1", "2", "-1", "+3", "007", "1.5", "nan", "1e3", "9" * 15, "9" * 16, "x"]
    ),
    "gap": st.sampled_from([" "] * 10 + ["\t", "  ", "\x0b", "\u00a0"]),
    "end": st.sampled_from(["\n"] * 20 + ["\r\n", " \n", "\n\n", "\r", "", " extra\n"]),
}


@st.composite
def files(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.fixed_dictionaries(FIELDS), max_size=8))
    text = "".join("{query}{gap}{middle}{gap}{doc}{gap}{grade}{end}".format(**line) for line in lines)
    data = text.encode()
    return draw(st.sampled_from([data] * 10 + [b"\xef\xbb\xbf" + data, data + b"\xff", data + b"\x00\n"]))


@settings(max_examples=400, deadline=None)
@given(data=files())
def test_both_readers_give_what_the_careful_one_gives(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("q") / "x.qrels"
    path.write_bytes(data)
    answers = []
    for reader in AVAILABLE:
        with reader_named(reader):
            answers.append(read_clean_qrels(path))
    assert len({answer is None for answer in answers}) == 1
    for answer in answers:
        if answer is None:
            continue
        judged, grades = answer
        careful = Qrels.read(path, format="trec-qrels")
        assert list(judged.query_ids) == list(careful.judged.query_ids)
        assert list(judged.doc_ids) == list(careful.judged.doc_ids)
        assert np.array_equal(judged.starts, careful.judged.starts)
        assert np.array_equal(grades, careful.grades)
        assert judged.starts.dtype == np.int64
        assert grades.dtype == np.float64
        assert careful.notes == ()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "data", [b"q1 0 a 1\nq1 0 b 0\nq2 0 a -2\n", b"q1\tQ0\ta\t1\r\nq2\tQ0\t\xc3\xa9\t+3"]
)
def test_a_clean_file_is_read_at_once(reader: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    path.write_bytes(data)
    with reader_named(reader):
        assert read_clean_qrels(path) is not None


@pytest.mark.parametrize("reader", READERS)
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
def test_any_other_file_is_left_to_the_careful_reader(reader: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    path.write_bytes(data)
    with reader_named(reader):
        assert read_clean_qrels(path) is None


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_not_there_is_an_error_as_ever(reader: str, tmp_path: Path) -> None:
    with reader_named(reader), pytest.raises((InputError, OSError)):
        Qrels.read(tmp_path / "none.qrels")
