"""Inputs of the command line that are not what a command expects, or come in another way than as a named file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import steelyard as sy
from needs import not_on_windows
from steelyard.cli import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Qrels, two runs and a pool of them, in the current folder."""
    monkeypatch.chdir(tmp_path)
    sy.Qrels({"q1": {"a": 1}, "q2": {"c": 1}}).write("qrels.trec")
    runs = {"bm25-okapi": {"q1": ["a", "b"], "q2": ["c"]}, "dense": {"q1": ["b", "a"], "q2": ["d", "c"]}}
    for name, lists in runs.items():
        sy.Run(lists, name=name).write(f"{name}.run")
    sy.pool(runs).write("pool.jsonl")
    return tmp_path


def failed(arguments: list[str], capsys) -> str:
    """The message of a command that exits with 2."""
    assert run(arguments) == 2
    return capsys.readouterr().err


def test_judge_of_a_file_that_is_no_pool_is_an_error(folder, capsys):
    sy.Run({"q1": ["a"]}).write("dense.parquet")
    assert "not a pool" in failed(["judge", "dense.parquet", "--dataset", "demo"], capsys)


@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_judgments_without_a_grade_are_an_error(folder, capsys, verb):
    line = {"query_id": "q1", "doc_id": "a", "grade": None, "judge": "ann"}
    (folder / "none.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert "no document has a grade" in failed([verb, "none.jsonl", "bm25-okapi.run", "dense.run"], capsys)


@pytest.fixture(params=["whole", "without its first line"])
def pool_file(request, folder):
    """A pool, also without the line that records how it was made."""
    if request.param != "whole":
        lines = (folder / "pool.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / "pool.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    return "pool.jsonl"


def test_a_pool_is_neither_qrels_nor_a_run(pool_file, capsys):
    for arguments in (
        ["evaluate", pool_file, "dense.run"],
        ["evaluate", "qrels.trec", pool_file],
        ["evaluate", "qrels.trec", pool_file, "--set", "columns=doc_id=doc_id"],
        ["compare", pool_file, "bm25-okapi.run", "dense.run"],
        ["compare", "qrels.trec", pool_file, "dense.run"],
        ["convert", pool_file, "out.run"],
    ):
        message = failed(arguments, capsys)
        assert "pool.jsonl: this is a pool: documents to judge, without grades" in message
        assert "judge it first with `steelyard judge`" in message
    for read in (sy.Qrels.read, sy.Run.read):
        with pytest.raises(sy.InputError, match="this is a pool"):
            read(pool_file)


def test_validate_knows_a_pool(folder, capsys):
    assert run(["validate", "pool.jsonl"]) == 0
    assert capsys.readouterr().out.startswith("pool.jsonl: a pool, format jsonl\n  4 documents; this is a pool")
    assert run(["validate", "pool.jsonl", "--set", "kind=qrels"]) == 2


def test_validate_reports_that_the_first_line_of_a_pool_is_missing(folder, capsys):
    lines = (folder / "pool.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "pool.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    assert run(["validate", "pool.jsonl"]) == 2
    assert "a pool, format jsonl\n  4 documents" in capsys.readouterr().out


def test_a_query_called_pool_is_not_a_pool(tmp_path):
    (tmp_path / "run.json").write_text('{"pool": {"a": 0.7, "b": 0.2}}\n', encoding="utf-8")
    assert sy.Run.read(tmp_path / "run.json").queries == ["pool"]


def test_validate_of_a_dataset_without_qrels(tmp_path, capsys):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "A balance."}\n{"_id": "d2", "text": ""}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "weighing"}\n')
    assert run(["validate", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "2 documents, 1 query, 0 judgments" in shown
    assert "info: no qrels" in shown
    assert "bench" in shown
    assert "steelyard pool" in shown
    assert "1 document without text" in shown
    assert "never judged" not in shown
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": ""}\n')
    assert run(["validate", str(tmp_path)]) == 2


@contextmanager
def standard_input(path: Path) -> Iterator[None]:
    """Standard input is a file."""
    before = os.dup(0)
    with path.open("rb") as file:
        os.dup2(file.fileno(), 0)
    yield
    os.dup2(before, 0)
    os.close(before)


@not_on_windows
def test_a_dash_is_standard_input(folder, capsys):
    for source, arguments, expected in (
        ("qrels.trec", ["evaluate", "-", "dense.run", "-m", "RR"], "0.5"),
        ("dense.run", ["evaluate", "qrels.trec", "-", "-m", "RR"], "0.5"),
        ("qrels.trec", ["compare", "-", "bm25-okapi.run", "dense.run", "-m", "RR"], "bm25-okapi"),
        ("dense.run", ["compare", "qrels.trec", "bm25-okapi.run", "-", "-m", "RR"], "dense"),
        ("bm25-okapi.run", ["fuse", "-", "dense.run"], "q1 Q0 a "),
        ("dense.run", ["convert", "-", "out.json"], ""),
    ):
        with standard_input(folder / source):
            assert run(arguments) == 0
        assert expected in capsys.readouterr().out
    assert sy.Run.read("out.json") == sy.Run.read("dense.run")
    assert "standard input can be read only once" in failed(["evaluate", "-", "-", "-m", "RR"], capsys)


@not_on_windows
def test_a_dash_as_the_target_of_convert_is_standard_output(folder, tmp_path):
    command = [sys.executable, "-m", "steelyard", "convert", "-", "-"]
    with (folder / "dense.run").open("rb") as source:
        piped = subprocess.run([*command, "--to", "json"], stdin=source, capture_output=True, check=True)
    (tmp_path / "dense.json").write_bytes(piped.stdout)
    assert sy.Run.read(tmp_path / "dense.json") == sy.Run.read("dense.run")
    with (folder / "dense.run").open("rb") as source, (tmp_path / "out.run").open("wb") as target:
        target.write(b"q0 Q0 z 1 1 x\n")
        target.flush()
        subprocess.run(command, stdin=source, stdout=target, check=True)
    assert sy.Run.read(tmp_path / "out.run").queries[0] == "q0"
    assert not (folder / "-").exists()


def test_a_dash_is_no_name_of_an_output_file(folder, capsys):
    assert "-o - names no file" in failed(["evaluate", "qrels.trec", "dense.run", "-m", "RR", "-o", "-"], capsys)


def test_a_file_whose_name_starts_with_a_dash_is_written_with_its_folder(folder, capsys):
    (folder / "-dense.run").write_bytes((folder / "dense.run").read_bytes())
    assert "call the file ./-dense.run" in failed(["evaluate", "qrels.trec", "-dense.run", "-m", "RR"], capsys)
    for named in (["./-dense.run"], ["--", "-dense.run"]):
        assert run(["evaluate", "qrels.trec", "-m", "RR", *named]) == 0


@pytest.mark.parametrize(("file", "column"), [("run.csv", "score"), ("qrels.csv", "grade")])
def test_two_columns_of_one_name_are_an_error(folder, capsys, file, column):
    (folder / file).write_text(f"query_id,doc_id,{column},{column}\nq1,a,1,0\n")
    files = [file if file == "qrels.csv" else "qrels.trec", file if file == "run.csv" else "dense.run"]
    assert f"{file}: two columns are called {column!r}" in failed(["evaluate", *files, "-m", "RR"], capsys)


def test_two_columns_of_one_name_that_nothing_reads_are_no_error(folder):
    (folder / "run.csv").write_text("query_id,doc_id,score,note,note\nq1,a,1,x,y\n")
    assert run(["evaluate", "qrels.trec", "run.csv", "-m", "RR"]) == 0


@not_on_windows
@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_runs_without_a_name_from_a_pipe_are_numbered(folder, capsys, verb):
    paths = []
    for lists in ('{"q1": ["a"]}', '{"q1": ["b", "a"]}'):
        reading, writing = os.pipe()
        os.write(writing, lists.encode())
        os.close(writing)
        paths.append(f"/dev/fd/{reading}")
    assert run([verb, "qrels.trec", *paths, "-m", "RR", "--format", "json"]) == 0
    shown = capsys.readouterr().out
    assert '"run-1"' in shown
    assert '"run-2"' in shown
    for path in paths:
        os.close(int(Path(path).name))


def test_runs_are_named_on_the_command_line(folder, capsys):
    (folder / "x=b.run").write_text((folder / "dense.run").read_text(encoding="utf-8"), encoding="utf-8")
    for verb in (["evaluate", "qrels.trec"], ["compare", "qrels.trec"], ["compare", "--no-qrels"]):
        assert run([*verb, "new=dense.run", "old=dense.run", "x=b.run", "--format", "json"]) == 0
        shown = capsys.readouterr().out
        assert all(f'"{name}"' in shown for name in ("new", "old", "dense"))
        assert '"x"' not in shown
    assert run(["pool", "new=dense.run", "old=dense.run", "-o", "named.jsonl"]) == 0
    assert sy.Pool.read("named.jsonl").settings.runs == ("new", "old")
    assert run(["compare", "qrels.trec", "new=dense.run", "old=bm25-okapi.run", "--baseline", "old"]) == 0


@pytest.mark.parametrize("verb", [["evaluate", "qrels.trec"], ["compare", "qrels.trec"], ["pool", "-o", "p"]])
@pytest.mark.parametrize("runs", [["dense.run", "dense.run"], ["dense=bm25-okapi.run", "dense.run"]])
def test_two_runs_of_one_name_are_an_error_that_advises_names(folder, capsys, verb, runs):
    message = failed([*verb, *runs], capsys)
    assert "two runs are called 'dense'" in message
    assert "dense-1=FILE dense-2=FILE on the command line" in message


def test_a_measure_in_the_place_of_a_run_is_not_a_name(folder, capsys):
    assert "use -m 'P(rel=2)@5'" in failed(["evaluate", "qrels.trec", "P(rel=2)@5"], capsys)


@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_an_unknown_measure_with_a_number_is_one_with_a_cutoff(folder, capsys, verb):
    command = [verb, "qrels.trec", "bm25-okapi.run", "dense.run", "-m", "nDCG10"]
    assert "unknown measure 'nDCG10'. Did you mean nDCG@10?" in failed(command, capsys)


def test_the_start_of_a_run_name_suggests_the_run(folder, capsys):
    command = ["compare", "qrels.trec", "bm25-okapi.run", "dense.run", "--baseline", "bm25"]
    assert "Did you mean bm25-okapi?" in failed(command, capsys)


def test_wrong_lines_of_judgments_name_the_file_once(folder, capsys):
    line = {"query_id": "q1", "doc_id": "a", "grade": 1, "judge": "ann"}
    (folder / "bj.jsonl").write_text(f'{json.dumps(line)}\n{{"query_id": "q1"}}\n', encoding="utf-8")
    assert failed(["evaluate", "bj.jsonl", "dense.run"], capsys).count("bj.jsonl") == 1


def test_a_misspelt_keyword_suggests_the_keyword():
    for call, wrong, right in ((sy.compare, "basline", "baseline"), (sy.evaluate, "predictd", "predicted")):
        with pytest.raises(TypeError, match=f"'{wrong}'; expected one of: .*Did you mean {right}\\?"):
            call({"q1": ["a"]}, {"a": {"q1": ["a"]}}, **{wrong: "a"})


def test_convert_by_rank_writes_scores_that_follow_the_ranks(tmp_path, capsys):
    source, target = tmp_path / "own.parquet", tmp_path / "own.run"
    lists = {"q1": [("a", 0.1), ("b", 0.9), ("c", 0.9)], "q2": [("d", 1.0)]}
    sy.Run(lists, seconds={"q1": 0.5, "q2": 0.5}).write(source)
    assert "convert --set by_rank=yes" in failed(["convert", str(source), str(target)], capsys)
    assert run(["convert", str(source), str(target), "--set", "by_rank=yes"]) == 0
    assert "the scores were replaced" in capsys.readouterr().err
    written = sy.Run.read(target).frame.select("query_id", "doc_id", "score").rows()
    assert written == [("q1", "a", 3.0), ("q1", "b", 2.0), ("q1", "c", 1.0), ("q2", "d", 1.0)]
    sy.convert(source, tmp_path / "copy.parquet", by_rank=True)
    assert sy.Run.read(tmp_path / "copy.parquet").seconds == {"q1": 0.5, "q2": 0.5}


def test_convert_by_rank_is_for_runs(folder, capsys):
    assert "these are qrels" in failed(["convert", "qrels.trec", "out.json", "--set", "by_rank=yes"], capsys)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["check", "{queries: q.csv, qrels: qrels.csv}", "a.run", "-o"], "qrels.csv"),
        (["check", "{queries: q.csv, qrels: qrels.csv}", "a.run", "-o"], "q.csv"),
        (["pool", "a.run", "--dataset", "ds", "-o"], "ds/queries.jsonl"),
        (["judge", "pool.jsonl", "--dataset", "ds", "--html"], "pool.jsonl"),
        (["judge", "pool.jsonl", "--dataset", "ds", "--html"], "ds/corpus.jsonl"),
    ],
)
def test_an_output_that_is_read_as_a_part_of_a_dataset_is_not_replaced(
    tmp_path, monkeypatch, capsys, arguments, output
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds").mkdir()
    (tmp_path / "q.csv").write_text("id,question\nq1,red fox\n")
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,grade\nq1,d1,1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.0 a\n")
    (tmp_path / "ds" / "queries.jsonl").write_text('{"_id": "q1", "text": "red fox"}\n')
    (tmp_path / "ds" / "corpus.jsonl").write_text('{"_id": "d1", "text": "the red fox"}\n')
    (tmp_path / "ds" / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert run(["pool", "a.run", "--dataset", "ds", "-o", "pool.jsonl"]) == 0
    before = Path(output).read_bytes()
    assert run([*arguments, output]) == 2
    assert "is read by this command, and would be replaced" in capsys.readouterr().err
    assert Path(output).read_bytes() == before
