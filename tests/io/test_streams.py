"""A pipe can be read only once: every reader gives the same for it as for a file."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import steelyard as sy
from steelyard.comparison.compare import compare_scores
from steelyard.judgments import Judgments

QUERIES = range(1500)  # 400 KB: more than a pipe holds, and than is looked at to detect a format
RANKED = [(f"q{q}", f"d{q}-{d}", d, 9.5 - d) for q in QUERIES for d in range(9)]
JUDGED = [(f"q{q}", f"d{q}-{d}", d % 3) for q in QUERIES for d in range(3, 12)]


@contextmanager
def piped(path: Path) -> Iterator[Path]:
    """A named pipe that gives the content of a file once."""
    pipe = path.with_name(f"pipe-of-{path.name}")
    os.mkfifo(pipe)

    def feed() -> None:
        with open(pipe, "wb") as out:
            out.write(path.read_bytes())

    thread = Thread(target=feed, daemon=True)
    thread.start()
    yield pipe
    thread.join()
    pipe.unlink()


@pytest.fixture(params=["native", "portable"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "portable":
        monkeypatch.setenv("STEELYARD_NATIVE", "0")


RUNS: dict[str, Callable[[], str]] = {
    "trec": lambda: "".join(f"{q} Q0 {d} {rank} {score} bm25\n" for q, d, rank, score in RANKED),
    "csv": lambda: "query_id,doc_id,score\n" + "".join(f"{q},{d},{score}\n" for q, d, _, score in RANKED),
    "jsonl": lambda: "".join(
        json.dumps({"query_id": q, "doc_id": d, "score": score}) + "\n" for q, d, _, score in RANKED
    ),
    "msmarco": lambda: "".join(f"{q}\t{d}\t{rank + 1}\n" for q, d, rank, _ in RANKED),
}
QRELS: dict[str, Callable[[], str]] = {
    "trec": lambda: "".join(f"{q} 0 {d} {grade}\n" for q, d, grade in JUDGED),
    "trec, not regular": lambda: "".join(f"{q} {grade} {d} {grade}\n" for q, d, grade in JUDGED),
    "beir": lambda: "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{grade}\n" for q, d, grade in JUDGED),
    "judgments": lambda: "".join(
        json.dumps({"query_id": q, "doc_id": d, "grade": grade, "judge": "ann", "at": "2024"}) + "\n"
        for q, d, grade in JUDGED
    ),
}


def written(folder: Path, text: str, compressed: bool = False) -> Path:
    path = folder / "file"
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("format", RUNS)
def test_a_run_in_a_pipe_is_read_from_start_to_end(tmp_path: Path, format: str, compressed: bool) -> None:
    file = written(tmp_path, RUNS[format](), compressed)
    with piped(file) as pipe:
        run = sy.Run.read(pipe)
    assert len(run.queries) == len(QUERIES)
    assert run == sy.Run.read(file)


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("format", QRELS)
def test_qrels_in_a_pipe_are_read_from_start_to_end(tmp_path: Path, format: str, compressed: bool) -> None:
    file = written(tmp_path, QRELS[format](), compressed)
    with piped(file) as pipe:
        qrels = sy.Qrels.read(pipe)
    assert len(qrels) == len(JUDGED)
    assert qrels == sy.Qrels.read(file)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("compressed", [False, True])
def test_evaluate_and_compare_give_the_numbers_of_the_file(tmp_path: Path, compressed: bool) -> None:
    run = written(tmp_path, RUNS["trec"](), compressed)
    qrels = tmp_path / "qrels"
    qrels.write_text(QRELS["trec"]())
    expected = sy.evaluate(qrels, run, ["nDCG@10"])
    with piped(run) as pipe, piped(qrels) as other:
        scores = sy.evaluate(other, pipe, ["nDCG@10"])
    assert scores.means == expected.means
    assert scores.coverage.answered == len(QUERIES)
    with piped(run) as pipe:
        compared = sy.compare(qrels, {"file": run, "pipe": pipe}, ["nDCG@10"])
    assert compared.pairs["difference"].to_list() == [0.0]


def test_the_same_pipe_can_be_filled_again(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("q1 Q0 d1 1 2.0 bm25\n")
    second.write_text("q1 Q0 d2 1 2.0 bm25\n")
    with piped(first) as pipe:
        assert sy.Run.read(pipe).frame["doc_id"].to_list() == ["d1"]
    second.replace(first)
    with piped(first) as pipe:
        assert sy.Run.read(pipe).frame["doc_id"].to_list() == ["d2"]


def test_a_compressed_pipe_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
    file = written(tmp_path, RUNS["trec"](), compressed=True)
    file.write_bytes(file.read_bytes()[:-2000])
    with piped(file) as pipe, pytest.raises(sy.InputError, match="truncated"):
        sy.Run.read(pipe)


@pytest.mark.parametrize(
    "read",
    [
        lambda path: len(Judgments.of(path).lines),
        lambda path: len(sy.convert(path, path.with_name("out.tsv")).notes) + len(JUDGED),
        lambda path: len(sy.agreement({"a": path, "b": {"q0": {"d0-3": 0}}}).notes) + len(JUDGED),
    ],
)
def test_other_readers_of_qrels(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    file = written(tmp_path, QRELS["beir"]())
    expected = read(file)
    with piped(file) as pipe:
        assert read(pipe) == expected


def test_a_score_table_in_a_pipe(tmp_path: Path) -> None:
    rows = "".join(f"{run},{q},{len(run)}.5,{q % 2}\n" for run in ("a", "bb") for q in QUERIES)
    file = written(tmp_path, "run,query_id,MRR,half\n" + rows)
    with piped(file) as pipe:
        found = compare_scores(pipe, ["MRR"], by="half")
    assert found.pairs["difference"].to_list() == [1.0]
    assert len(found.score_tables[0].queries) == len(QUERIES)


@pytest.mark.slow
@pytest.mark.usefixtures("kernel")
def test_process_substitution_and_standard_input_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(QRELS["trec"]())
    packed = written(tmp_path, RUNS["trec"](), compressed=True)
    command = f"{sys.executable} -m steelyard evaluate qrels {{}} -m nDCG@10 --format csv"
    printed = [
        subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for text in (
            command.format(packed.name),
            command.format(f"<(gzip -dc < {packed.name})"),
            f"gzip -dc < {packed.name} | " + command.format("/dev/stdin"),
        )
    ]
    assert printed[0] == printed[1] == printed[2]
    assert printed[0].splitlines()[1].endswith(f",{len(QUERIES)}")
