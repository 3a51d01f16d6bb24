"""A bench that is ended by a signal leaves no process and no folder, at the latest after the next start."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.engines import CASES, KILLED, SIGNALS, home, rounds

from steelyard.retrievers.adapters.postgres import server_package
from steelyard.temporary import _described, _machine, remove_left_over, temporary_folder

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def here(monkeypatch):
    """The home of a user, whose temporary folder has look-alikes of our folders; it is the one of this process."""
    with home() as folders:
        monkeypatch.setattr("tempfile.tempdir", str(folders.temporary))
        yield folders


def ready(process):
    """The process, after it printed that it is ready."""
    line = process.stdout.readline()
    assert line == "ready\n", line + process.communicate()[1]
    return process


def run_code(here, code, **options):
    environment = {**os.environ, "TMPDIR": str(here.temporary)}
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], env=environment, text=True, **options)


@pytest.mark.parametrize("engine", ["postgres-fts", "tantivy"])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_bench_that_is_ended_leaves_nothing(library, here, engine, number):
    library(CASES[engine].package)
    before = here.state()
    process = ready(here.start(engine, [{}], "out", wait=True))
    assert here.state() != before
    process.send_signal(number)
    process.communicate()
    assert process.returncode == -number
    if number == signal.SIGKILL:
        assert here.state() != before
        here.next_start()
    assert here.state() == before
    assert here.processes() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_benches_with_all_engines_that_are_ended_at_random_moments_leave_nothing(library, number):
    """`python -m scripts.faults --only engines` ends 20 with each signal and engine; STEELYARD_KILLS=20 does here."""
    for engine in KILLED:
        library(CASES[engine].package)
    kills = int(os.environ.get("STEELYARD_KILLS", "1"))
    tried, problems = rounds(kills, random.Random(number), [number])
    assert problems == []
    assert all(tried[f"{engine} {signal.Signals(number).name}"] == kills for engine in KILLED)


def test_a_private_server_changes_no_mode_of_a_folder(library, here):
    """The server of root runs as another user, for whom pgserver would open every folder above its data."""
    library(server_package())
    here.temporary = here.folder / "my" / "tmp"
    here.temporary.mkdir(parents=True)
    folders = [here.temporary, *here.temporary.parents]
    for folder in folders[:2]:
        folder.chmod(0o700)
    modes = [folder.stat().st_mode for folder in folders]
    others = set(Path("/tmp").iterdir())
    process = here.start("postgres-fts", [{}], "out")
    errors = process.communicate()[1]
    assert process.returncode == 0, errors
    assert [folder.stat().st_mode for folder in folders] == modes
    assert not [path for path in set(Path("/tmp").iterdir()) - others if f"-{process.pid}-" in path.name]


def test_a_finished_bench_leaves_nothing(library, here):
    library("tantivy")
    before = here.state()
    process = ready(here.start("tantivy", [{}], "out", wait=True))
    # The folder of a process that lives is not removed by another one.
    during = here.state()
    remove_left_over()
    assert here.state() == during != before
    process.communicate("")
    assert process.returncode == 0
    assert here.state() == before


def test_what_a_process_left_is_removed_only_if_it_is_ours_and_ended_here(here):
    ended = f"999999999-1-{_machine()}"
    owners = {"ended": ended, "elsewhere": "999999999-1-00000000", "alive": _described(os.getpid()), "odd": "99-x"}
    for name, owner in owners.items():
        (here.temporary / f"steelyard-{name}-{owner}-abcdefgh" / "data").mkdir(parents=True)
    (here.temporary / f"steelyard-empty-{ended}-abcdefgh").mkdir()
    (here.temporary / f"steelyard-more-{ended}-abcdefgh" / "data").mkdir(parents=True)
    (here.temporary / f"steelyard-more-{ended}-abcdefgh" / "notes.txt").write_text("precious")
    (here.temporary / f"steelyard-link-{ended}-abcdefgh").symlink_to(here.work)
    (here.temporary / f"steelyard-file-{ended}-abcdefgh").write_text("precious")
    before = set(here.temporary.iterdir())
    remove_left_over()
    removed = {path.name.split("-")[1] for path in before - set(here.temporary.iterdir())}
    assert removed == {"ended", "empty"}


def test_a_handler_of_the_user_stays(here):
    code = """
import signal, sys
from steelyard.temporary import temporary_folder
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
folder = temporary_folder("mine")
print("ready", flush=True)
signal.pause()
"""
    before = here.state()
    process = ready(run_code(here, code, stdout=subprocess.PIPE))
    process.terminate()
    process.communicate()
    assert process.returncode == 7
    assert here.state() == before


def test_a_forked_child_removes_nothing_of_its_parent(here):
    folder = temporary_folder("mine")
    code = """
import os, sys
from steelyard.temporary import temporary_folder
folder = temporary_folder("mine")
child = os.fork()
if not child:
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
assert folder.is_dir()
"""
    assert run_code(here, code).wait() == 0
    assert folder.is_dir()


def test_a_forked_child_of_a_retriever_does_not_go_on_as_a_bench(tmp_path):
    code = """
import os, sys
import steelyard as sy

def forks(query):
    child = os.fork()
    if not child:
        if query == "leaves":
            sys.exit(3)
        if query == "fails":
            raise ValueError("in the child")
        return ["d2"]
    return [f"d{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"]

queries = {"q1": "leaves", "q2": "fails", "q3": "returns"}
corpus = {f"d{n}": "text" for n in range(4)}
dataset = sy.Dataset.of(corpus=corpus, queries=queries, qrels={"q1": ["d3"], "q2": ["d1"], "q3": ["d0"]})
settings = {"target": forks, "name": "forks"} | ({"timeout": 60} if sys.argv[2] == "limited" else {})
result = sy.bench({"dataset": dataset, "retrievers": [{"python": settings}], "measures": ["RR"]}, output=sys.argv[1])
print("finished", result.comparison.leaderboard["RR"].to_list())
"""
    for limit in ("limited", "free"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / limit), limit], capture_output=True, text=True
        )
        assert done.stdout == "finished [1.0]\n", done.stdout + done.stderr
