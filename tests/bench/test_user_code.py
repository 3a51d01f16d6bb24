"""A retriever that exits, prints, moves, or returns or raises broken text fails alone, and nothing else changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard as sy
from needs import not_on_windows
from steelyard.benchmark.folder import load_result
from steelyard.benchmark.specs import specs_of
from steelyard.chunking import Whole
from steelyard.errors import InputError, SteelyardError
from steelyard.run import Run
from steelyard.safe_text import error_text
from steelyard.user_code import UserCodeError, run_user_code

MODULE = '''
import asyncio, os, signal, sys

def right(query, k):
    return [f"d{query.split()[1]}"]

def exits(query, k):
    sys.exit(0)

async def exits_async(query, k):
    sys.exit(0)

def cancels(query, k):
    raise asyncio.CancelledError

def closes(query, k):
    raise GeneratorExit

class Stop(BaseException):
    pass

def stops(query, k):
    raise Stop("now")

def prints(query, k):
    print("printed")
    sys.stdout.flush()
    os.write(1, b"written\\n")
    if query.endswith("0"):
        os.system("echo started")
    return right(query, k)

def moves(query, k):
    os.chdir("/")
    return right(query, k)

def half_a_character(query, k):
    return ["d\\udc80"]

def half_a_character_raised(query, k):
    raise ValueError("no \\udc80")

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")

def mute(query, k):
    raise Mute

class MuteType(TypeError):
    __str__ = Mute.__str__

def mute_type(query, k):
    raise MuteType

class Engine:
    """A whole retriever, whose results nothing else checks."""
    label = "engine"
    def __init__(self, answer):
        self.answer = answer
    def index(self, corpus):
        return self
    def retrieve(self, queries, k=10):
        return self.answer
    def settings(self):
        return {"answer": repr(self.answer)}
    def size_in_bytes(self):
        return 0

class ExitsIndexing(Engine):
    def index(self, corpus):
        sys.exit(0)

class NoSize(Engine):
    def size_in_bytes(self):
        return None

class ExitsMade:
    def __init__(self):
        sys.exit(0)

def killed(query, k):
    if query.endswith("3"):
        os.kill(os.getpid(), signal.SIGKILL)
    return right(query, k)
'''

EXIT_MODULE = "import sys; sys.exit(0)"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "odd_engine.py").write_text(MODULE)
    (tmp_path / "exit_engine.py").write_text(EXIT_MODULE)
    (tmp_path / "data").mkdir()
    for name, key in (("corpus", "text number"), ("queries", "question")):
        rows = [json.dumps({"_id": f"{name[0].replace('c', 'd')}{n}", "text": f"{key} {n}"}) for n in range(4)]
        (tmp_path / "data" / f"{name}.jsonl").write_text("\n".join(rows))
    (tmp_path / "data" / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "\n".join(f"q{n}\td{n}\t1" for n in range(4))
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for module in ("odd_engine", "exit_engine"):
        sys.modules.pop(module, None)


def bench_of(*names):
    entries = [
        {"python": {"target": f"odd_engine:{name}", "name": name}} if isinstance(name, str) else name for name in names
    ]
    return {"dataset": "data", "retrievers": entries, "measures": ["RR"], "depth": 4, "warmup": 0}


def steelyard(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(sy.__file__).parent.parent)},
    )


RAISED = {
    "exits": "SystemExit: 0",
    "exits_async": "SystemExit: 0",
    "cancels": "CancelledError",
    "closes": "GeneratorExit",
    "stops": "Stop: now",
    "half_a_character": "half of a character",
    "half_a_character_raised": r"ValueError: no \udc80",
    "mute": "Mute: (its message cannot be shown: RuntimeError)",
    "mute_type": "MuteType: (its message cannot be shown: RuntimeError)",
}


def test_whatever_a_retriever_raises_is_the_error_of_its_query(folder):
    for _ in range(2):
        result = sy.bench(bench_of("right", *RAISED), folder / "out")
        assert result.failed == dict.fromkeys(RAISED, 4)
        for row in result.rows[1:]:
            assert all(RAISED[row.run] in text for text in row.errors.values())
        assert result.comparison.leaderboard_rows[0].run == "right"
    rows = load_result(folder / "out").record["runs"]
    assert [row["errors"] for row in rows] == [row.errors for row in result.rows]


def test_concurrent_calls_and_calls_with_a_timeout_fail_alike(folder):
    entries = [
        {"python": {"target": "odd_engine:exits", "name": "threads", "concurrency": 2}},
        {"python": {"target": "odd_engine:exits", "name": "timeout", "timeout": 5}},
    ]
    result = sy.bench(bench_of("right", *entries), folder / "out")
    assert result.failed == {"threads": 4, "timeout": 4}


def test_keyboard_interrupt_is_not_an_error_of_the_retriever():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_user_code(interrupted)


WRONG = [
    (None, "nothing (None) for one query"),
    ([], "0 lists for one query"),
    ("d1", "a str for one query"),
    ([[("d1", float("nan"))]], "expected a finite number"),
    ([[("d1", "2")]], "expected a number"),
    ([[(None, 1.0)]], "has no 'id'"),
    ([[("d1", 1.0, 2.0)]], "expected (id, score)"),
    ([3], "is a int; expected a list"),
    ([[("d\udc80", 1.0)]], "half of a character"),
]


def test_a_retriever_object_that_returns_something_else_fails_alone(folder):
    import odd_engine

    engines = [odd_engine.Engine(answer) for answer, _ in WRONG]
    for number, engine in enumerate(engines):
        engine.label = f"engine {number}"
    result = sy.bench(bench_of("right", *engines), folder / "out")
    assert list(result.failed.values()) == [4] * len(WRONG)
    for row, (_, message) in zip(result.rows[1:], WRONG, strict=True):
        assert all(message in text for text in row.errors.values())


def test_a_retriever_object_may_return_ids_or_more_than_asked(folder):
    import odd_engine

    result = sy.bench(bench_of(odd_engine.Engine([["d1", "d2", "d3", "d0", "d1"]])), folder / "out")
    assert result.runs["engine"].table["doc_id"].to_list()[:4] == ["d1", "d2", "d3", "d0"]


@pytest.mark.parametrize("name", ["ExitsIndexing", "NoSize"])
def test_a_retriever_that_fails_in_indexing_fails_alone(folder, name):
    import odd_engine

    result = sy.bench(bench_of("right", getattr(odd_engine, name)([["d1"]])), folder / "out")
    assert result.failed == {"engine": 4}
    assert "indexing failed" in result.rows[1].errors["q0"]


@pytest.mark.parametrize("target", ["exit_engine:search", "odd_engine:ExitsMade"])
def test_a_module_or_a_class_that_exits_is_a_problem_of_the_bench(folder, target):
    specs, problems = specs_of([{"python": target}, "bm25-okapi"], folder)
    assert [spec.label for spec in specs] == ["bm25-okapi"]
    assert "SystemExit: 0" in problems[0][1]


def test_a_chunker_that_exits_is_an_error(folder):
    class Exits(Whole):
        def spans(self, text):
            sys.exit(0)

    bench = {**bench_of("bm25-okapi"), "retrievers": ["bm25-okapi"], "chunkers": [Exits()]}
    with pytest.raises(SteelyardError, match="chunker whole: SystemExit: 0"):
        sy.bench(bench, folder / "out")


@pytest.mark.slow
def test_what_a_retriever_prints_is_not_in_our_output(folder, capsys):
    sy.bench(bench_of("prints"), folder / "out")
    assert "printed" not in capsys.readouterr().out
    (folder / "bench.yaml").write_text(json.dumps(bench_of("prints")))
    done = steelyard(folder, "bench", "bench.yaml", "-o", "cli", "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["leaderboard"]
    assert all(word in done.stderr for word in ("printed", "written", "started"))


def test_a_retriever_that_changes_the_working_directory_does_not_move_the_result(folder):
    result = sy.bench(bench_of("moves"), "out")
    assert not result.failed
    assert os.getcwd() == str(folder)
    assert (folder / "out" / "result.json").is_file()


@not_on_windows
@pytest.mark.slow
def test_answers_survive_a_crash_of_the_process(folder):
    (folder / "bench.yaml").write_text(json.dumps(bench_of("right", "killed")))
    done = steelyard(folder, "bench", "bench.yaml", "-o", "out")
    assert done.returncode == -signal.SIGKILL
    lines = [line for path in (folder / "out" / "cache").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert sum("list" in json.loads(line) for line in lines) >= 2 * 3
    again = steelyard(folder, "bench", "bench.yaml", "-o", "out")
    assert "stopped while killed ran query 'q3', which is run again" in again.stderr


def test_a_bench_that_was_stopped_before_the_throughput_was_measured_measures_it(folder):
    sy.bench(bench_of("right"), folder / "out")
    (cache,) = (folder / "out" / "cache").glob("*.jsonl")
    lines = cache.read_text().splitlines()
    assert "queries_per_second" in lines[-1]
    cache.write_text("\n".join(lines[:-1]) + "\n")
    for cached in (False, True):
        result = sy.bench(bench_of("right"), folder / "out")
        assert result.rows[0].queries_per_second is not None
        assert result.rows[0].cached is cached


@pytest.mark.slow
def test_a_bench_that_is_killed_at_its_end_leaves_no_run_of_the_earlier_result(folder, monkeypatch):
    from steelyard.benchmark import result as module

    sy.bench(bench_of("right", "moves"), folder / "out")
    write_file, removed = module.write_file, []

    def killed_at_the_record(path, data):
        if path.name == "result.json":
            removed.append(sorted(each.name for each in (folder / "out" / "runs").iterdir()))
            raise KeyboardInterrupt
        write_file(path, data)

    monkeypatch.setattr(module, "write_file", killed_at_the_record)
    with pytest.raises(KeyboardInterrupt):
        sy.bench(bench_of("right"), folder / "out")
    assert removed == [["right.parquet"]]
    monkeypatch.undo()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(folder)
    sy.bench(bench_of("right"), folder / "out")
    assert [each.name for each in (folder / "out" / "runs").iterdir()] == ["right.parquet"]


def test_a_retriever_that_cannot_take_all_queries_at_once_is_cached_all_the_same(folder):
    class OneByOne:
        label = "one by one"

        def index(self, corpus):
            return self

        def retrieve(self, queries, k=10):
            (_,) = queries
            return [["d1"]]

        def settings(self):
            return {}

        def size_in_bytes(self):
            return 0

    for cached in (False, True):
        result = sy.bench(bench_of(OneByOne()), folder / "out")
        assert result.rows[0].queries_per_second is None
        assert result.rows[0].cached is cached


def test_a_broken_answer_in_the_cache_is_asked_again(folder):
    sy.bench(bench_of("right"), folder / "out")
    (cache,) = (folder / "out" / "cache").glob("*.jsonl")
    entries = list(map(json.loads, cache.read_text().splitlines()))
    for entry, broken in zip(
        [entry for entry in entries if "list" in entry], [[["d\udc80", 1.0]], [[1.5, 1.0]], 3, [["d1"]]], strict=True
    ):
        entry["list"] = broken
    cache.write_text("".join(json.dumps(entry) + "\n" for entry in [*entries, 7, [], "x"]))
    result = sy.bench(bench_of("right"), folder / "out")
    assert not result.failed
    assert result.comparison.leaderboard_rows[0].means["RR"] == 1.0


def test_ids_with_half_of_a_character_are_refused():
    with pytest.raises(InputError, match="lone surrogate"):
        Run({"q": {"d\udc80": 1.0}})
    with pytest.raises(InputError, match="lone surrogate"):
        Run({"q\ud800": ["d1", 7]})


def test_error_text_of_our_own_errors_has_no_type():
    assert error_text(InputError("line 3", "a.run")) == "a.run: line 3"
    with pytest.raises(UserCodeError, match=r"^mine: KeyError: 'x'$"):
        run_user_code(lambda: {}["x"], "mine")
