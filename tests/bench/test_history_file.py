"""The history of a bench: what a line has, and that no writer and no crash loses or tears one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import steelyard as sy
from clocks import Clock
from needs import not_on_windows
from steelyard.benchmark.history import append_history, git_state, read_history
from steelyard.cli import run as steelyard
from steelyard.errors import InputError

BENCH = {"dataset": "demo", "retrievers": ["bm25-okapi"], "measures": ["nDCG@10", "RR@10"]}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return sy.bench(BENCH, tmp_path_factory.mktemp("history") / "out")


@pytest.mark.slow
def test_every_run_of_a_bench_adds_one_line(tmp_path, capsys):
    (tmp_path / "bench.yaml").write_text(json.dumps({**BENCH, "history": "history.jsonl"}))
    sy.bench(tmp_path / "bench.yaml", tmp_path / "out")
    assert steelyard(["bench", str(tmp_path / "bench.yaml"), "-o", str(tmp_path / "out")]) == 0
    lines = read_history(tmp_path / "history.jsonl")
    assert len(lines) == 2
    for line in lines:
        assert line["dataset"] == "demo"
        assert set(line["fingerprints"]) == {"dataset", "corpus", "queries", "qrels", "settings"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.yaml", "history.jsonl", "out"]


def test_the_keyword_names_another_file(tmp_path):
    sy.bench(BENCH, tmp_path / "out", history=tmp_path / "new" / "h.jsonl")
    assert len(read_history(tmp_path / "new" / "h.jsonl")) == 1


def test_a_line_has_the_values_of_every_query(tmp_path, result):
    append_history(tmp_path / "h.jsonl", result, tmp_path)
    (line,) = read_history(tmp_path / "h.jsonl")
    table = result.comparison.score_tables[0]
    assert line["queries"] == list(table.queries)
    assert line["runs"]["bm25-okapi"]["values"]["nDCG@10"] == table.of("nDCG@10")[0].tolist()
    mean = result.comparison.leaderboard_rows[0].means["nDCG@10"]
    assert line["runs"]["bm25-okapi"]["means"]["nDCG@10"] == mean


@pytest.mark.slow
def test_several_datasets_have_a_line_each(tmp_path):
    bench = {**BENCH, "datasets": {"one": "demo", "two": "demo"}, "history": str(tmp_path / "h.jsonl")}
    del bench["dataset"]
    sy.bench(bench, tmp_path / "out")
    assert [line["dataset"] for line in read_history(tmp_path / "h.jsonl")] == ["one", "two"]
    folders = [tmp_path / "out" / name for name in ("one", "two")]
    assert [json.loads((folder / "result.json").read_text())["dataset"]["name"] for folder in folders] == ["one", "two"]
    assert sy.across(folders).names == ("one", "two")


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=folder, check=True, capture_output=True
    )


def test_commit_branch_and_changed_files_are_recorded(tmp_path):
    assert git_state(tmp_path) == {"commit": None, "branch": None, "dirty": None}
    git(tmp_path, "init", "-b", "trunk")
    for name in ("code.py", "h.jsonl"):
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "first")
    state = git_state(tmp_path, tmp_path / "h.jsonl")
    assert (len(state["commit"]), state["branch"], state["dirty"]) == (40, "trunk", False)
    (tmp_path / "h.jsonl").write_text("2\n")
    assert git_state(tmp_path, tmp_path / "h.jsonl")["dirty"] is False
    (tmp_path / "code.py").write_text("2\n")
    assert git_state(tmp_path, tmp_path / "h.jsonl")["dirty"] is True


def test_lines_are_in_the_order_of_time_whatever_a_merge_made_of_them(tmp_path, result):
    append_history(tmp_path / "h.jsonl", result, tmp_path)
    line = json.loads((tmp_path / "h.jsonl").read_text())
    later, earlier = ({**line, "time": "2030-01-01T00:00:00+00:00"}, {**line, "time": "2020-01-01T00:00:00+00:00"})
    (tmp_path / "h.jsonl").write_text("\n".join(map(json.dumps, (later, earlier))))
    append_history(tmp_path / "h.jsonl", result, tmp_path)
    times = [each["time"][:4] for each in read_history(tmp_path / "h.jsonl")]
    assert times == sorted(times)
    assert len(times) == 3


def test_git_merges_two_branches_with_the_lines_of_both(tmp_path, result):
    """As docs/how-to/history.md says: with `merge=union` there is no conflict, and without it there is one."""
    history = tmp_path / "history.jsonl"
    git(tmp_path, "init", "-b", "trunk")
    (tmp_path / ".gitattributes").write_text("history.jsonl merge=union\n")
    append_history(history, result, tmp_path)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "first")
    git(tmp_path, "checkout", "-b", "feature")
    for branch in ("feature", "trunk"):
        git(tmp_path, "checkout", branch)
        append_history(history, result, tmp_path)
        git(tmp_path, "commit", "-am", branch)
    git(tmp_path, "merge", "feature")
    assert {line["branch"] for line in read_history(history)} == {None, "trunk", "feature"}
    assert len(read_history(history)) == 3

    git(tmp_path, "reset", "--hard", "HEAD~1")
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "attributes").write_text("history.jsonl !merge\n")
    with pytest.raises(subprocess.CalledProcessError):
        git(tmp_path, "merge", "feature")
    with pytest.raises(InputError, match="is not a line of a history"):
        read_history(history)


@pytest.mark.parametrize("text", ["<<<<<<< HEAD\n", "{}\n", '{"time": 1}\n', "[1]\n"])
def test_a_line_of_something_else_is_an_error_with_its_number(tmp_path, text):
    (tmp_path / "h.jsonl").write_text(text)
    with pytest.raises(InputError, match="line 1 is not a line of a history"):
        read_history(tmp_path / "h.jsonl")


def test_a_file_without_lines_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_history(tmp_path / "h.jsonl")
    (tmp_path / "h.jsonl").write_text("\n")
    with pytest.raises(InputError, match="no line yet"):
        read_history(tmp_path / "h.jsonl")


def test_writers_at_once_lose_no_line(tmp_path, result, monkeypatch):
    monkeypatch.setattr("steelyard.benchmark.cache.monotonic", Clock())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: append_history(tmp_path / "h.jsonl", result, tmp_path), range(40)))
    assert len(read_history(tmp_path / "h.jsonl")) == 40
    assert [path.name for path in tmp_path.iterdir()] == ["h.jsonl"]


KILLS = """
import json, os, signal, sys
from pathlib import Path
from steelyard.benchmark import history

file, record = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
history.history_record = lambda *given: record
whole = 1
for number in range(25):
    writers = []
    for _ in range(2):
        writer = os.fork()
        while not writer:
            history.append_history(file, None, Path())
        writers.append(writer)
    # Killed at some moment after a few more lines; their number is counted, not the time.
    while len(file.read_bytes().splitlines()) < whole + number % 7 + 1:
        os.sched_yield()
    for writer in writers:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    now = len(history.read_history(file))
    assert now >= whole, (now, whole)
    whole = now
print(whole)
"""


@not_on_windows
@pytest.mark.slow
def test_fifty_kills_leave_no_torn_line_and_two_processes_lose_none(tmp_path, result):
    file, one = tmp_path / "h.jsonl", tmp_path / "record.json"
    append_history(file, result, tmp_path)
    one.write_text(file.read_text())
    (tmp_path / "kills.py").write_text(KILLS)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "kills.py"), str(file), str(one)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    whole = int(done.stdout)
    assert whole > 25
    append_history(file, result, tmp_path)
    assert len(read_history(file)) == whole + 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h.jsonl", "kills.py", "record.json"]


@pytest.mark.parametrize(
    "runs",
    ['{"x": {"means": {"RR": "a"}}}', '{"x": {"values": {"RR": 0.5}}}', '{"x": {"values": {"RR": [{}]}}}']
    + ['{"x": {"means": {"RR": 1' + "0" * 400 + "}}}", '{"\\ud800": {}}', '{"x": ' + "[" * 100_000],
    ids=["text", "number", "mapping", "huge", "surrogate", "nested"],
)
def test_a_line_with_other_values_is_refused(tmp_path, runs):
    line = '{"time": "2026-01-01", "dataset": "d", "measures": {}, "fingerprints": {}, "queries": [], "runs": '
    (tmp_path / "h.jsonl").write_text(line + runs + "}\n")
    with pytest.raises(InputError, match="line 1 is not a line of a history"):
        read_history(tmp_path / "h.jsonl")


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_other_line_ends_in_a_name_are_no_line_ends(tmp_path, result, end):
    append_history(tmp_path / "h.jsonl", result, tmp_path)
    line = json.loads((tmp_path / "h.jsonl").read_text())
    line["dataset"] = f"a{end}b"
    (tmp_path / "h.jsonl").write_text(json.dumps(line, ensure_ascii=False) + "\n", "utf-8")
    append_history(tmp_path / "h.jsonl", result, tmp_path)
    assert {record["dataset"] for record in read_history(tmp_path / "h.jsonl")} == {f"a{end}b", "demo"}
    assert steelyard(["history", str(tmp_path / "h.jsonl")]) == 0


@pytest.mark.parametrize("text", ["<<<<<<< HEAD\n{}\n=======\n", "{}\n", "torn {", '{"time": "2026'])
def test_a_bench_that_appends_to_a_damaged_history_says_so(tmp_path, capsys, result, text):
    append_history(tmp_path / "h.jsonl", result, tmp_path)
    before = (tmp_path / "h.jsonl").read_text() + text
    (tmp_path / "bench.yaml").write_text(json.dumps({**BENCH, "history": "h.jsonl"}))
    (tmp_path / "h.jsonl").write_text(before)
    assert steelyard(["bench", str(tmp_path / "bench.yaml"), "-o", str(tmp_path / "out")]) == 0
    assert "line 2 is not a line of a history" in capsys.readouterr().err
    assert (tmp_path / "h.jsonl").read_text().startswith(before)


@pytest.mark.parametrize("text", ["id,question\nq1,Why?\n", '{"query_id": "q1"}\n', "notes\n", "# app\nprint(1)"])
def test_a_file_of_the_user_that_is_no_history_is_refused_before_anything_runs(tmp_path, capsys, text):
    (tmp_path / "bench.yaml").write_text(json.dumps({**BENCH, "history": "mine"}))
    (tmp_path / "mine").write_text(text)
    assert steelyard(["bench", str(tmp_path / "bench.yaml"), "-o", str(tmp_path / "out")]) == 2
    assert "mine: is not a history" in capsys.readouterr().err
    assert (tmp_path / "mine").read_text() == text
    assert not (tmp_path / "out").exists()


def test_equal_parts_of_lines_are_kept_once(tmp_path, result):
    """Most of the memory of a history: the ids of its queries."""
    for _ in range(3):
        append_history(tmp_path / "h.jsonl", result, tmp_path)
    one, *others = read_history(tmp_path / "h.jsonl")
    assert all(record["queries"] is one["queries"] for record in others)
