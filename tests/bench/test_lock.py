"""One bench at a time runs in a result folder."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import steelyard as sy
from needs import not_on_windows
from steelyard.benchmark.cache import _is_at, locked
from steelyard.cli import run as command
from steelyard.errors import InputError

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
        assert not _is_at(inner, tmp_path / ".lock")
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text().startswith(f"process {os.getpid()} on ")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        sy.bench(BENCH, tmp_path / "file" / "out")
