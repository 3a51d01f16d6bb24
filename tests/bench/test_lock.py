"""One bench at a time runs in a result folder."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

import steelyard as sy
from needs import not_on_windows
from steelyard.benchmark.cache import locked
from steelyard.cli import run as command
from steelyard.errors import InputError
from steelyard.io.files import is_at

pytestmark = not_on_windows

DATA = sy.Dataset.of({"d1": "a fox", "d2": "a wolf"}, {"q1": "fox"}, {"q1": {"d1": 1}})
BENCH = {"dataset": DATA, "retrievers": ["bm25-okapi"], "measures": ["RR"]}

HOLD = """
import sys
from pathlib import Path
from steelyard.benchmark.cache import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_bench_in_a_folder_names_the_first(tmp_path, monkeypatch, capsys):
    asked = []

    class Asking:
        def retrieve(self, query, k):
            asked.append(query)
            return ["d1"]

    path = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    with other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match=f"another bench is running in this folder: process {other.pid} on "):
            sy.bench({**BENCH, "retrievers": [Asking()]}, tmp_path / "out")
        monkeypatch.chdir(tmp_path)
        assert command(["demo", "-o", "out"]) == 2
        assert f"process {other.pid}" in capsys.readouterr().err
        other.kill()
    assert asked == []
    assert not sy.bench(BENCH, tmp_path / "out").failed
    assert not sy.bench(BENCH, tmp_path / "out").failed


def test_two_benches_of_one_process_exclude_each_other(tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match=f"process {os.getpid()} "):
        sy.bench(BENCH, tmp_path)
    assert not (tmp_path / ".lock").exists()


def test_a_lock_that_was_removed_in_between_is_not_held(tmp_path):
    held = locked(tmp_path)
    with held:
        inner = (tmp_path / ".lock").open("a+")
    with inner:
        assert not is_at(inner, tmp_path / ".lock")
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text().startswith(f"process {os.getpid()} on ")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        sy.bench(BENCH, tmp_path / "file" / "out")


@pytest.mark.parametrize("name", ["documents.parquet", "report.html", "runs/bm25.parquet", "stages.parquet"])
def test_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"{name}: is not of a bench, and a bench would replace it"):
        sy.bench(BENCH, output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name.split("/")[0]]
    assert (tmp_path / name).read_text() == "mine"


def test_a_report_of_others_is_not_replaced_by_that_over_several_datasets(tmp_path):
    several = {"datasets": {"one": "demo", "two": "demo"}, "retrievers": ["bm25-okapi"], "measures": ["RR"]}
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(InputError, match=r"report\.html: is not of a bench"):
        sy.bench(several, output=tmp_path)
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").unlink()
    sy.bench(several, output=tmp_path)
    (tmp_path / "across.json").unlink()  # As after a kill before it was written.
    sy.bench(several, output=tmp_path)


def test_a_bench_that_was_stopped_goes_on_in_its_folder(tmp_path):
    sy.bench(BENCH, output=tmp_path)
    (tmp_path / "result.json").unlink()
    sy.bench(BENCH, output=tmp_path)
    assert (tmp_path / "result.json").is_file()


def test_a_bench_does_not_replace_or_remove_what_it_reads(tmp_path):
    output = tmp_path / "result"
    sy.bench({**BENCH, "retrievers": ["bm25-okapi", "bm25-plus"]}, output=output)
    documents = output / "documents.parquet"
    with pytest.raises(InputError, match=r"documents\.parquet: is read by this bench, and would be replaced"):
        sy.bench({"corpus": str(documents), "queries": ["fox"], "retrievers": ["bm25-okapi"]}, output=output)
    run = {"run": {"path": str(output / "runs" / "bm25-okapi.parquet"), "name": "before"}}
    for _ in range(2):
        sy.bench({**BENCH, "retrievers": [run, "bm25-plus"]}, output=output)


def test_vectors_of_others_stay_in_the_cache(tmp_path):
    (tmp_path / "cache" / "vectors").mkdir(parents=True)
    (tmp_path / "cache" / "vectors" / "mine.npz").write_text("mine")
    sy.bench({**BENCH, "retrievers": ["dense"]}, output=tmp_path, fresh=True)
    assert (tmp_path / "cache" / "vectors" / "mine.npz").read_text() == "mine"


def stopping(at):
    def watch(step, done, total):
        if step.startswith(at):
            raise KeyboardInterrupt

    return watch


def test_an_earlier_result_is_not_read_after_a_bench_that_was_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sy.bench(BENCH, "out")
    before = sy.load_result("out").record
    with pytest.raises(InputError, match="depth"):
        sy.bench({**BENCH, "depth": -1}, "out")
    assert sy.load_result("out").record == before, "a bench that did not begin changes nothing"
    with pytest.raises(KeyboardInterrupt):
        sy.bench({**BENCH, "retrievers": ["bm25-plus"]}, "out", watch=stopping("evaluating"))
    for verb, *options in (["gate", "--rule", "RR >= 0"], ["report"], ["judge"], ["check"], ["stages"]):
        assert command([verb, "out", *options]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert f"out has an earlier result: the last bench (process {os.getpid()} on " in told
        assert "was stopped before the end. Run the bench again" in told
    sy.bench(BENCH, "out")
    assert command(["gate", "out", "--rule", "RR >= 0"]) == 0


def test_no_result_is_read_as_new_after_a_bench_over_several_datasets_that_was_stopped(tmp_path):
    datasets = dict.fromkeys(("one", "two", "three"), "demo")
    several = {"datasets": datasets, "retrievers": ["bm25-okapi"], "measures": ["RR"]}
    sy.bench(several, tmp_path)
    with pytest.raises(InputError, match="none"):
        sy.bench({**several, "datasets": {**datasets, "one": str(tmp_path / "none")}}, tmp_path)
    assert len(sy.across(tmp_path).datasets) == 3, "a bench that did not begin changes nothing"
    for name in datasets:
        os.utime(tmp_path / name / "result.json", (0, 0))
    with pytest.raises(KeyboardInterrupt):
        sy.bench(several, tmp_path, watch=stopping("two (dataset 2 of 3): evaluating"))
    assert sy.load_result(tmp_path / "one").runs
    for read in (partial(sy.load_result, tmp_path / "two"), partial(sy.gate, tmp_path / "three", "RR >= 0")):
        with pytest.raises(InputError, match="has an earlier result"):
            read()
    with pytest.raises(InputError, match="has an earlier result"):
        sy.across(tmp_path)
    sy.bench(several, tmp_path)
    assert len(sy.across(tmp_path).datasets) == 3


def test_a_file_of_the_user_with_the_name_of_the_lock_stays(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / ".lock").write_text("mine", "utf-8")
    with pytest.raises(InputError, match="is not a lock of Steelyard; move it"):
        sy.bench(BENCH, folder)
    assert (folder / ".lock").read_text("utf-8") == "mine"
    assert sorted(path.name for path in folder.iterdir()) == [".lock"]
    (folder / ".lock").unlink()
    sy.bench(BENCH, folder)
    (folder / ".lock").write_text("mine", "utf-8")
    assert sy.load_result(folder).comparison.runs
