"""Exit codes: what the system refuses and what is wrong in a file is 2 with one line; only a bug of ours is 3."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

import steelyard as sy
from needs import NOT_ON_WINDOWS, not_on_windows
from steelyard.benchmark.cache import AnswerStore
from steelyard.cli import listings
from steelyard.cli import run as command
from steelyard.errors import InputError
from steelyard.io.files import write_file

pytestmark = not_on_windows

QRELS = "q1 0 d1 1\n"
RUN = "q1 Q0 d1 1 2.0 r\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "a.qrels").write_text(QRELS)
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "é.run").write_text(RUN.replace(" r", " é"), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(folder, text, **environment):
    """Run a command in a shell, with `steelyard` as the first word."""
    path = str(Path(sy.__file__).parent.parent)
    text = text.replace("steelyard", f"{sys.executable} -m steelyard", 1)
    return subprocess.run(
        ["sh", "-c", text], cwd=folder, capture_output=True, env={**os.environ, "PYTHONPATH": path, **environment}
    )


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
@pytest.mark.slow
def test_closed_streams(folder, closed):
    done = shell(folder, f"steelyard compare a.qrels a.run b=a.run -m AP {closed}")
    assert (done.returncode, b"rror" in done.stderr) == (0, False)


def test_an_interrupted_command_ends_while_a_thread_still_runs(folder):
    """The thread of a request that has no answer yet; what is to be removed at the end of the process is removed."""
    code = """
import atexit, threading
from concurrent.futures import ThreadPoolExecutor
from steelyard import cli
def interrupted(arguments):
    raise KeyboardInterrupt
ThreadPoolExecutor(1).submit(threading.Event().wait)
atexit.register(print, "removed")
cli._run = interrupted
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "removed\n", "interrupted\n")


def test_output_that_cannot_hold_a_character(folder):
    done = shell(folder, "steelyard evaluate a.qrels é.run -m AP", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert rb"\xe9" in done.stdout
    done = shell(folder, "steelyard evaluate a.qrels é.run -m AP --format json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["runs"][0]["name"] == "é"


@pytest.mark.skipif(sys.platform != "linux", reason=NOT_ON_WINDOWS)
def test_output_to_a_full_disk(folder):
    done = shell(folder, "steelyard evaluate a.qrels a.run -m AP > /dev/full")
    assert done.returncode == 2
    assert done.stderr == b"error: No space left on device.\n"


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_file_on_a_full_disk_is_unchanged(folder, monkeypatch, capsys):
    (folder / "out.json").write_text("before")
    monkeypatch.setattr(os, "fsync", no_space)
    assert command(["evaluate", "a.qrels", "a.run", "-m", "AP", "-o", "out.json"]) == 2
    assert capsys.readouterr().err.startswith("error: out.json: cannot be written (No space left on device)")
    assert (folder / "out.json").read_text() == "before"
    assert len(list(folder.iterdir())) == 4


@pytest.mark.skipif(sys.platform != "linux", reason=NOT_ON_WINDOWS)
def test_cache_on_a_full_disk(folder):
    store = AnswerStore(folder, "0" * 20)
    store.path.symlink_to("/dev/full")
    with pytest.raises(InputError, match="cannot be written"):
        store.add({"query": "q1", "list": []})
    with pytest.raises(InputError, match="cannot be written"):
        store.close()


def test_a_pipe_is_written_to_and_not_replaced(folder):
    os.mkfifo("pipe.json")
    read = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe.json").read_bytes()))
    reader.start()
    write_file(Path("pipe.json"), b"text")
    reader.join()
    assert read == [b"text"]
    assert Path("pipe.json").is_fifo()


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "out/runs"), 2, "error: out/runs: Permission denied."),
        (OSError(errno.EROFS, "Read-only file system", "out"), 2, "error: out: Read-only file system."),
        (MemoryError(), 2, "error: there is not enough memory."),
        (ImportError("x.so: failed to map segment from shared object"), 2, "error: there is not enough memory."),
        (ImportError("No module named 'x'"), 3, "error: internal error (ImportError: No module named 'x')"),
        (RuntimeError("can't start new thread"), 2, "error: the system refused to start a thread"),
        (pl.exceptions.PanicException("could not spawn threads"), 2, "error: the system refused to start a thread"),
        (pl.exceptions.PanicException("index out of bounds"), 3, "internal error (PanicException: index out of"),
        (SystemExit(1), 3, "internal error (SystemExit: 1)"),
        (ValueError("\x1b[31mred"), 3, r"internal error (ValueError: \x1b[31mred)"),
    ],
)
def test_whatever_is_raised_has_an_exit_code(monkeypatch, capsys, tmp_path, error, code, text):
    def fail():
        raise error

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setitem(listings._LISTS, "measures", fail)
    assert command(["list", "measures"]) == code
    shown = capsys.readouterr().err
    assert text in shown
    assert "Traceback" not in shown


def test_a_log_that_cannot_be_written(monkeypatch, capsys):
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    def fail():
        raise MuteError

    monkeypatch.setitem(listings._LISTS, "measures", fail)
    monkeypatch.setattr("tempfile.NamedTemporaryFile", no_space)
    assert command(["list", "measures"]) == 3
    shown = capsys.readouterr().err
    assert "internal error (MuteError: (its message cannot be shown: RuntimeError))" in shown
    assert "The traceback:\nTraceback" in shown


def test_a_file_that_makes_polars_panic_is_wrong_input(folder, monkeypatch, capsys):
    def panic(*_, **__):
        raise pl.exceptions.PanicException("called unwrap on None")

    sy.Run.read("a.run").write("a.parquet")
    monkeypatch.setattr(pl, "read_parquet", panic)
    assert command(["evaluate", "a.qrels", "a.parquet", "-m", "AP"]) == 2
    assert "a.parquet: starts as a Parquet file but cannot be read as one" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--dialect=--", "--to=--"])
def test_two_dashes_are_no_value_of_an_option(option, capsys):
    assert command(["convert", "a.run", "b.run", option]) == 2
    assert "has no value" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "q.trec", "a.run", "-m", "AP", "--format", "csv", "-o", "q.trec"],
        ["compare", "q.trec", "a.run", "b=b.run", "-m", "AP", "--format", "csv", "-o", "b.run"],
        ["fuse", "a.run", "b.run", "-o", "./a.run"],
        ["pool", "a.run", "b.run", "--qrels", "q.trec", "-o", "q.trec"],
        ["stages", "q.trec", "x=a.run", "y=b.run", "--format", "csv", "-o", "b.run"],
        ["convert", "a.run", "a.run"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_output_that_the_command_reads_is_not_replaced(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    contents = {"q.trec": "q 0 d1 1\n", "a.run": "q Q0 d1 1 2 a\n", "b.run": "q Q0 d2 1 2 b\n"}
    for name, content in contents.items():
        Path(name).write_text(content)
    assert command(arguments) == 2
    assert "is read by this command, and would be replaced" in capsys.readouterr().err
    assert {name: Path(name).read_text() for name in contents} == contents
