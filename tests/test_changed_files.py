"""A file that is changed while it is read is an InputError; it never ends the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import steelyard as sy
from needs import needs_kernel
from steelyard.errors import InputError
from steelyard.io import files
from steelyard.native import kernel

LINE = "q{} Q0 d{} {} {}.5 tag\n"

# The run becomes shorter when it is open and its size is known; then, by a thread, at some moment of its reading, again
# and again. The moments are counted in steps of the thread, which runs beside the reading.
TRUNCATING = """
import collections, os, sys, threading
import steelyard as sy
path, lines, seen = sys.argv[1], open(sys.argv[1], "rb").read(), collections.Counter()
qrels = sy.Qrels({f"q{q}": {"d7": 1} for q in range(40)})

def shorten(steps):
    for _ in range(steps):
        pass
    os.truncate(path, [0, 1, 100, len(lines) // 2, 4096][number % 5])

def evaluated():
    try:
        sy.evaluate(qrels, path, ["AP"])
        return "read"
    except sy.errors.InputError as error:
        return "changed" if "changed while it was read" in str(error) else "shorter"

fstat = os.fstat
def shorter_after_this(descriptor):
    state = fstat(descriptor)
    if state.st_size == len(lines):
        os.truncate(path, 4096)
    return state
os.fstat = shorter_after_this
print(evaluated())
os.fstat = fstat
for number in range(int(sys.argv[2])):
    with open(path, "wb") as file:
        file.write(lines)
    thread = threading.Thread(target=shorten, args=(number % 11 * 50_000,))
    thread.start()
    seen[evaluated()] += 1
    thread.join()
print(dict(seen))
"""


def run_file(path, queries=40, depth=2500):
    path.write_text("".join(LINE.format(q, d, d, depth - d) for q in range(queries) for d in range(depth)))
    return path


@pytest.mark.parametrize("native", [pytest.param("1", marks=needs_kernel), "0"])
@pytest.mark.slow
def test_a_run_truncated_while_it_is_read_does_not_end_the_process(tmp_path, native):
    path = run_file(tmp_path / "a.run")
    tries = 60 if native == "1" else 12
    done = subprocess.run(
        [sys.executable, "-c", TRUNCATING, str(path), str(tries)],
        env={**os.environ, "STEELYARD_NATIVE": native},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "changed"


@needs_kernel
@pytest.mark.parametrize("piece", [1, 1 << 16, 1 << 23])
@pytest.mark.parametrize("rest", [0, 2, 10_000])
def test_the_kernel_reports_a_file_that_has_become_shorter(tmp_path, piece, rest):
    path = run_file(tmp_path / "a.run", depth=100)
    size = path.stat().st_size
    native = kernel()
    judged = native.Judged(["q1"], sy.Qrels({"q1": ["d7"]}).judged.starts, ["d7"])
    with path.open("rb") as file:
        os.truncate(path, rest)
        assert native.scan(file.fileno(), size, judged, 0, False, False, 2, piece) == 3


@pytest.mark.parametrize("read", [files.read_bytes, lambda path: list(files.open_chunks(path, 100))])
def test_bytes_of_two_versions_are_not_mixed(tmp_path, read, monkeypatch):
    path = run_file(tmp_path / "a.run", depth=10)
    recognise = files._compression

    def appended(file):
        with path.open("a") as other:
            other.write("q1 Q0 late 1 1 tag\n")
        return recognise(file)

    monkeypatch.setattr(files, "_compression", appended)
    with pytest.raises(InputError, match="the file changed while it was read"):
        read(path)
