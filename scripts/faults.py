"""make faults: kills, full disks, read-only folders, two processes at once, retrievers that break, killed engines.

Every command of COMMANDS is started from the files of an earlier result and killed (SIGKILL), half of the times at a
random moment, half of the times at a random operation on its files. Then every file must be the old or the new one,
and running the command again must give the files of a run that was not killed.

`python -m scripts.faults` does all of it; `--kills N` and `--only kills,disk,...` do less. Times are fixed (see
`_child`), so that files can be compared byte for byte.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUERIES, DOCUMENTS = 40, 200
CHANGES = {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.truncate"}
Files = dict[str, bytes]


@dataclass(frozen=True)
class Command:
    """A command that writes into `out`: the arguments that made the old files there, and those that are killed.

    `growing` are files that are appended to: they are not compared, only read.
    """

    old: str
    new: str
    growing: tuple[str, ...] = ()


COMMANDS = {
    "bench": Command(
        "bench old.yaml -o out/result", "bench new.yaml -o out/result", growing=("result/cache/",)
    ),
    "report": Command("report old-result -o out/a.html", "report new-result -o out/a.html"),
    "convert": Command("convert old.run out/a.parquet", "convert new.run out/a.parquet"),
    "gate": Command(
        "gate old-result --rule AP>=0 --save-baseline out/base.json --junit out/a.xml --markdown out/a.md",
        "gate new-result --rule AP>=0 --save-baseline out/base.json --junit out/a.xml --markdown out/a.md",
    ),
    "judge": Command(
        "judge pool.jsonl --dataset data --endpoint {endpoint} --model m -o out/a.jsonl --set cache=out/c.sqlite "
        "--max-requests 5",
        "judge pool.jsonl --dataset data --endpoint {endpoint} --model m -o out/a.jsonl --set cache=out/c.sqlite",
        growing=("a.jsonl", "c.sqlite"),
    ),
    "history": Command("history old.jsonl -o out/a.html", "history new.jsonl -o out/a.html"),
    "bench with history": Command(
        "bench history.yaml -o out/result", "bench history.yaml -o out/result", growing=("result/cache/", "h.jsonl")
    ),
}  # fmt: skip

RETRIEVERS = """
import ctypes, os, sys, time

def right(query, k):
    return [f"d{n}" for n in range(int(query.split()[1]), int(query.split()[1]) + 5)]

def at(number):
    def broken(act):
        def search(query, k):
            return act() if query.endswith(f" {number}") else right(query, k)
        return search
    return broken

hangs = at(7)(lambda: time.sleep(3600))
exits = at(7)(lambda: sys.exit(0))
raises = at(7)(lambda: 1 / 0)
garbage = at(7)(lambda: {"\\udc80": [float("nan"), object()]})
crashes = at(7)(lambda: ctypes.string_at(0))
ends = at(7)(lambda: os._exit(0))
kept = []

def prints(query, k):
    print("\\x1b[31mprinted", flush=True)
    os.write(1, b"written\\n")
    return right(query, k)

def leaks(query, k):
    kept.append(b"x" * 200_000_000)
    return right(query, k)
"""


def main() -> int:
    """Run all parts, print the figures; 1 if something did not survive."""
    if sys.argv[1:2] == ["--child"]:
        return _child(int(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(PARTS), help=", ".join(PARTS))
    given = parser.parse_args()
    failures = 0
    with laboratory() as here:
        for part in given.only.split(","):
            tried, problems = PARTS[part](here, given.kills, random.Random(given.seed))
            print(figures(part, tried, problems), flush=True)
            for problem in problems:
                print(f"  FAILED {problem}", flush=True)
            failures += len(problems)
    return 1 if failures else 0


def figures(part: str, tried: Counter[str], problems: list[str]) -> str:
    """One line: how many faults, how many survived, by command."""
    failed = len({problem.partition(":")[0] for problem in problems})
    total = sum(tried.values())
    by = ", ".join(f"{name} {count}" for name, count in tried.items())
    return f"{part}: {total}, survived {total - failed} ({by})"


# The inputs


@contextmanager
def laboratory() -> Iterator[Laboratory]:
    """A temporary folder with the inputs of all commands, and a model that judges."""
    server = ModelServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            yield Laboratory(Path(folder), f"http://127.0.0.1:{server.server_port}/v1")
    finally:
        server.shutdown()
        server.server_close()


class ModelServer(ThreadingHTTPServer):
    """A server whose clients may be killed."""

    def handle_error(self, *_: object) -> None:
        """Print nothing."""


class Model(BaseHTTPRequestHandler):
    """A chat-completions endpoint whose grades depend on the text of the question alone."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        grade = sum(asked) % 4
        reply = json.dumps({"choices": [{"message": {"content": f'{{"grade": {grade}}}'}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Laboratory:
    """The folders of the trials; what each command writes is found out once."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder, self.endpoint = folder, endpoint
        self.inputs = folder / "inputs"
        self.inputs.mkdir()
        self._numbers = count()
        self._known: dict[str, Reference] = {}
        write_inputs(self.inputs)
        for name in ("old", "new"):
            done = self.run(self.inputs, f"bench {name}.yaml -o {name}-result")
            assert done.returncode == 0, done.stderr
        done = self.run(self.inputs, "pool new.run --depth 2 -o pool.jsonl")
        assert done.returncode == 0, done.stderr
        for name in ("old.jsonl", "new.jsonl"):
            done = self.run(self.inputs, "bench history.yaml -o history-result")
            assert done.returncode == 0, done.stderr
            shutil.copy(self.inputs / "out" / "h.jsonl", self.inputs / name)
        shutil.rmtree(self.inputs / "out")

    def trial(self, old: Path | None = None) -> Path:
        """A new folder with the inputs, and the old files in `out`."""
        folder = self.folder / f"trial-{next(self._numbers)}"
        folder.mkdir()
        for path in self.inputs.iterdir():
            (folder / path.name).symlink_to(path)
        if old is not None:
            shutil.copytree(old, folder / "out")
        return folder

    def command(self, text: str, kill_at: int = 0) -> list[str]:
        """The command line of a child that is killed at an operation on files; 0: at none, -1: they are counted."""
        words = text.replace("{endpoint}", self.endpoint).split()
        return [sys.executable, __file__, "--child", str(kill_at), *words]

    def start(self, folder: Path, text: str, kill_at: int = 0, limit: int | None = None) -> subprocess.Popen[str]:
        """Start a command; `limit` is the largest size of a file."""

        def limited() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.Popen(
            self.command(text, kill_at),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limited,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "src"),
                "OPENBLAS_NUM_THREADS": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )

    def run(self, folder: Path, text: str, kill_at: int = 0, limit: int | None = None, seconds: float = 120) -> Done:
        """Run a command to its end, or kill it after some seconds."""
        process = self.start(folder, text, kill_at, limit)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
        return Done(process.returncode, output, errors)

    def reference(self, name: str) -> Reference:
        """The files of a command that is not disturbed."""
        if name not in self._known:
            command = COMMANDS[name]
            folder = self.trial()
            (folder / "out").mkdir()
            states, seconds = [], 0.0
            for text in (command.old, command.new, command.new):
                start = time.monotonic()
                done = self.run(folder, text, kill_at=-1)
                assert done.returncode == 0, f"{text}: {done.stderr}"
                seconds = max(seconds, time.monotonic() - start)
                states.append(files_of(folder / "out"))
                if len(states) == 1:
                    shutil.copytree(folder / "out", folder / "kept")
                if len(states) == 2:
                    operations = int((folder / "operations").read_text())
            self._known[name] = Reference(command, folder / "kept", *states, seconds, operations)
        return self._known[name]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Reference:
    """The old files, the new ones, those after a second run, and the time and operations that they take."""

    command: Command
    folder: Path
    old: Files
    new: Files
    again: Files
    seconds: float
    operations: int

    def is_growing(self, name: str) -> bool:
        return name.startswith(self.command.growing) if self.command.growing else False

    def problems(self, out: Path) -> list[str]:
        """Files that are neither old nor new; temporary files are named, and no reader takes them for a result."""
        found = []
        for name, content in files_of(out).items():
            if self.is_growing(name):
                found += unreadable(out / name)
                if name.endswith(".jsonl") and not content.startswith(self.old.get(name, b"")):
                    found.append(f"{name} has lost lines")
            elif not is_temporary(name) and content not in (self.old.get(name), self.new.get(name)):
                found.append(f"{name} ({len(content):,} bytes) is neither the old nor the new file")
        lost = [name for name in self.old.keys() & self.new.keys() if not (out / name).exists()]
        return found + [f"{name} is lost" for name in lost if not self.is_growing(name)]

    def differences(self, out: Path) -> list[str]:
        """How the files differ from those of a command that was not disturbed."""
        state = files_of(out)
        left = [f"{name} is left over" for name in state if is_temporary(name)]
        kept = {name for name in state if not is_temporary(name) and not self.is_growing(name)}
        expected = {name for name in self.new if not self.is_growing(name)}
        wrong = [f"{name} is there and should not be, or is missing" for name in kept ^ expected]
        wrong += [
            f"{name} differs" for name in kept & expected if state[name] not in (self.new[name], self.again[name])
        ]
        if "a.jsonl" in self.new and judged(state["a.jsonl"]) != judged(self.new["a.jsonl"]):
            wrong.append("a.jsonl has other judgments")
        return left + wrong


def write_inputs(folder: Path) -> None:
    """A dataset, two runs, a bench of two versions, and the retrievers that break."""
    draw = random.Random(1)
    words = [f"w{n}" for n in range(60)]
    (folder / "data").mkdir()
    with (folder / "data" / "corpus.jsonl").open("w") as file:
        for n in range(DOCUMENTS):
            file.write(json.dumps({"_id": f"d{n}", "text": " ".join(draw.choices(words, k=30))}) + "\n")
    with (folder / "data" / "queries.jsonl").open("w") as file:
        for n in range(QUERIES):
            file.write(json.dumps({"_id": f"q{n}", "text": f"{' '.join(draw.choices(words, k=3))} {n}"}) + "\n")
    with (folder / "data" / "qrels.tsv").open("w") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for n in range(QUERIES):
            file.writelines(f"q{n}\td{doc}\t{draw.randint(0, 2)}\n" for doc in draw.sample(range(DOCUMENTS), 8))
    for name, depth in (("old", 20), ("new", 150)):
        with (folder / f"{name}.run").open("w") as file:
            for n in range(QUERIES):
                docs = draw.sample(range(DOCUMENTS), depth)
                file.writelines(f"q{n} Q0 d{doc} {r} {depth - r}.5 {name}\n" for r, doc in enumerate(docs))
    (folder / "odd.py").write_text(RETRIEVERS)
    common = "dataset: data\ndepth: 10\nmeasures: [AP, nDCG@10]\nretrievers:\n  - bm25-okapi\n  - random: {seed: 4}\n"
    (folder / "old.yaml").write_text(f"{common}  - bm25-l\n")
    (folder / "new.yaml").write_text(f"{common}  - bm25-plus\n  - run: new.run\n")
    (folder / "history.yaml").write_text(
        "dataset: data\ndepth: 10\nmeasures: [AP]\nretrievers: [bm25-okapi]\nhistory: out/h.jsonl\n"
    )
    (folder / "broken").mkdir()
    for n in ("corpus", "queries"):
        rows = [{"_id": f"{n[0].replace('c', 'd')}{i}", "text": f"number {i}"} for i in range(20)]
        (folder / "broken" / f"{n}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "broken" / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(16))
    )


def files_of(folder: Path) -> Files:
    """The content of all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def is_temporary(name: str) -> bool:
    """Whether a file is one of those that a killed process may leave: hidden, named .part, or the lock."""
    last = Path(name).name
    return last.endswith((".lock", "-wal", "-shm")) or (last.startswith(".") and last.endswith(".part"))


def unreadable(path: Path) -> list[str]:
    """Lines of a growing file, except a last one without an end, that cannot be read; a damaged database."""
    if path.name.endswith(("-wal", "-shm")):
        return []
    if path.suffix == ".sqlite":
        with sqlite3.connect(path) as database:
            state = database.execute("PRAGMA integrity_check").fetchone()[0]
        database.close()
        return [] if state == "ok" else [f"{path.name}: {state}"]
    lines = path.read_bytes().split(b"\n")[:-1]
    problems = []
    for number, line in enumerate(lines, start=1):
        try:
            json.loads(line)
        except ValueError:
            problems.append(f"line {number} of {path.name} cannot be read")
    return problems


def judged(content: bytes) -> list[tuple[str, str, int]]:
    """The judgments of a file, without their times."""
    lines = [json.loads(line) for line in content.splitlines() if line.endswith(b"}")]
    return sorted({(line["query_id"], line["doc_id"], line["grade"]) for line in lines})


# The faults


def kills(here: Laboratory, number: int, draw: random.Random) -> tuple[Counter[str], list[str]]:
    """Kill every command in turn, at a random moment or at a random operation on its files, and run it again.

    As many kills run at the same time as there are cores.
    """
    tried: Counter[str] = Counter()
    trials: list[tuple[str, Reference, float | None, int]] = []
    for place in range(number):
        name = list(COMMANDS)[place % len(COMMANDS)]
        tried[name] += 1
        reference = here.reference(name)
        moment = draw.uniform(0.1, 1.05) * reference.seconds
        operation = draw.randint(1, reference.operations)
        if (place // len(COMMANDS) + place) % 2 == 0:
            trials.append((f"{name} {place}, after {moment:.2f} s", reference, moment, 0))
        else:
            trials.append((f"{name} {place}, at operation {operation}", reference, None, operation))
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        done = list(workers.map(lambda trial: killed(here, *trial), trials))
    leftovers = sum(left for left, _ in done)
    print(f"kills that left a temporary file, which the next run removed: {leftovers}")
    return tried, [problem for _, problems in done for problem in problems]


def killed(
    here: Laboratory, what: str, reference: Reference, moment: float | None, operation: int
) -> tuple[bool, list[str]]:
    """Kill a command after some seconds, or at an operation: whether temporary files were left, and what is wrong."""
    folder = here.trial(reference.folder)
    process = here.start(folder, reference.command.new, operation)
    if moment is not None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        process.kill()
    process.communicate()
    wrong = reference.problems(folder / "out")
    left = any(is_temporary(file) for file in files_of(folder / "out"))
    wrong += continued(here, folder, reference)
    print(f"{what}: {'FAILED' if wrong else 'survived'}", file=sys.stderr, flush=True)
    if not wrong:
        shutil.rmtree(folder)
    return left, [f"{what}: {each}" for each in wrong]


def continued(here: Laboratory, folder: Path, reference: Reference) -> list[str]:
    """Run a command again; how its files differ from those of a command that was not disturbed.

    A bench reports which answers it had already, so that its texts may need a third run to be equal.
    """
    time.sleep(1.1 if any(name.endswith(".part") for name in files_of(folder / "out")) else 0)
    wrong: list[str] = []
    for _ in range(2):
        done = here.run(folder, reference.command.new)
        if done.returncode != 0:
            return [f"the next run ended with {done.returncode}: {done.stderr.strip()[-300:]}"]
        wrong = reference.differences(folder / "out")
        if not all(text.endswith(("result.json differs", ".html differs", ".md differs")) for text in wrong):
            return wrong
    return wrong


def disk(here: Laboratory, _: int, draw: random.Random) -> tuple[Counter[str], list[str]]:
    """A full disk, a largest file size and a read-only folder: exit code 2, one message, and nothing is lost."""
    tried: Counter[str] = Counter()
    problems: list[str] = []
    for name in COMMANDS:
        reference = here.reference(name)
        largest = max(map(len, reference.new.values()))
        for share in (0.0, 0.5):
            folder = here.trial(reference.folder)
            done = here.run(folder, reference.command.new, limit=int(share * largest))
            tried["largest file"] += 1
            fault = f"{name} with files of {share:.0%}"
            problems += refused(here, fault, folder, reference, done, certain=not share)
        for share in (0.0, 0.5, None):
            folder = here.trial()
            (folder / "out").mkdir()
            total = sum(len(content) + 8192 for content in {**reference.old, **reference.new}.values())
            if not mounted(folder / "out", 4_000_000 + 4 * total):
                tried["full disk (skipped: no tmpfs can be mounted here)"] += 0
                break
            try:
                shutil.copytree(reference.folder, folder / "out", dirs_exist_ok=True)
                fault = f"{name} on a full disk, {share:.0%} free" if share is not None else f"{name}, read-only"
                tried["read-only" if share is None else "full disk"] += 1
                if share is None:
                    subprocess.run(["mount", "-o", "remount,ro", str(folder / "out")], check=True)
                else:
                    space = os.statvfs(folder / "out")
                    free = space.f_bavail * space.f_frsize
                    grown = sum(len(c) + 4096 for c in reference.new.values())
                    filler = max(0, free - int(share * grown) // 4096 * 4096)
                    (folder / "out" / ".filler").write_bytes(bytes(filler))
                done = here.run(folder, reference.command.new)
                if share is None:
                    subprocess.run(["mount", "-o", "remount,rw", str(folder / "out")], check=True)
                (folder / "out" / ".filler").unlink(missing_ok=True)
                problems += refused(here, fault, folder, reference, done, certain=not share)
            finally:
                subprocess.run(["umount", str(folder / "out")], check=False)
    return tried, problems


def mounted(folder: Path, size: int) -> bool:
    """Whether a tmpfs was mounted on a folder."""
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def refused(here: Laboratory, what: str, folder: Path, reference: Reference, done: Done, certain: bool) -> list[str]:
    """What is wrong with a command that could not write: its exit code, its message, its files, the next run.

    If it is not `certain` that there is too little space, it may also succeed.
    """
    wrong = reference.problems(folder / "out")
    if done.returncode == 0 and not certain:
        return [f"{what}: {each}" for each in wrong]
    if done.returncode != 2 or "Traceback" in done.stderr or "error:" not in done.stderr:
        wrong.append(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    wrong += [f"{name} is left" for name in files_of(folder / "out") if name.endswith(".part")]
    wrong += continued(here, folder, reference)
    return [f"{what}: {each}" for each in wrong]


def together(here: Laboratory, _: int, draw: random.Random) -> tuple[Counter[str], list[str]]:
    """Two processes at once: both succeed, or one is told who holds the folder; the files are right."""
    tried: Counter[str] = Counter()
    problems: list[str] = []
    for name in COMMANDS:
        reference = here.reference(name)
        for _round in range(2):
            folder = here.trial(reference.folder)
            pair = [here.start(folder, reference.command.new) for _ in range(2)]
            done = [(process, process.communicate()[1]) for process in pair]
            tried[name] += 1
            wrong = reference.problems(folder / "out")
            for process, errors in done:
                if process.returncode == 2 and name.startswith("bench") and "another bench is running" in errors:
                    continue
                if process.returncode != 0:
                    wrong.append(f"exit code {process.returncode}: {errors.strip()[-300:]}")
            if all(process.returncode for process, _ in done):
                wrong.append("neither succeeded")
            problems += [f"{name} twice, {_round}: {each}" for each in wrong + continued(here, folder, reference)]
    return tried, problems


def retrievers(here: Laboratory, _: int, draw: random.Random) -> tuple[Counter[str], list[str]]:
    """Retrievers that hang, leak, crash, exit, print and return garbage for one of 16 queries."""
    tried: Counter[str] = Counter()
    problems: list[str] = []
    expected: dict[str, Callable[[Path, Done], list[str]]] = {
        "hangs": lambda folder, done: _query_failed(folder, done, "no result within"),
        "exits": lambda folder, done: _query_failed(folder, done, "SystemExit"),
        "raises": lambda folder, done: _query_failed(folder, done, "ZeroDivisionError"),
        "garbage": lambda folder, done: _query_failed(folder, done, ""),
        "prints": _silent,
        "leaks": _out_of_memory,
        "crashes": lambda folder, done: _crashed(here, folder, done, -signal.SIGSEGV),
        "ends": lambda folder, done: _crashed(here, folder, done, 0),
    }
    for name, check in expected.items():
        folder = here.trial()
        options = {"target": f"odd:{name}", "name": name, **({"timeout": 0.5} if name == "hangs" else {})}
        bench = {
            "dataset": "broken",
            "depth": 5,
            "warmup": 0,
            "measures": ["AP"],
            "retrievers": [{"python": {"target": "odd:right", "name": "right"}}, {"python": options}],
        }
        (folder / "bench.yaml").write_text(json.dumps(bench))
        start = time.monotonic()
        memory = f"--memory {3_000_000_000} " if name == "leaks" else ""
        done = here.run(folder, f"{memory}bench bench.yaml -o out --format json")
        wrong = check(folder, done)
        if time.monotonic() - start > 30:
            wrong.append("it took more than 30 s")
        tried[name] += 1
        problems += [f"{name}: {each}" for each in wrong]
    return tried, problems


def _query_failed(folder: Path, done: Done, text: str) -> list[str]:
    """The query has an error, the others have answers, and the bench is complete."""
    if done.returncode != 0:
        return [f"exit code {done.returncode}: {done.stderr[-300:]}"]
    rows = json.loads((folder / "out" / "result.json").read_text())["runs"]
    errors = rows[1]["errors"]
    return [] if list(errors) == ["q7"] and text in errors["q7"] and rows[1]["queries"] == 15 else [f"{errors}"]


def _silent(folder: Path, done: Done) -> list[str]:
    """What was printed is not among the data."""
    try:
        return [] if json.loads(done.stdout)["leaderboard"] else ["no leaderboard"]
    except ValueError:
        return [f"the output is not JSON: {done.stdout[:200]!r}"]


def _out_of_memory(folder: Path, done: Done) -> list[str]:
    """The answers so far are on disk. A library may end the process itself when there is no memory."""
    return [] if answered(folder) > 10 else [f"{answered(folder)} answers are on disk: {done.stderr[-300:]}"]


def _crashed(here: Laboratory, folder: Path, done: Done, code: int) -> list[str]:
    """The answers so far are on disk, and the next bench names the retriever and the query."""
    wrong = [] if done.returncode == code else [f"exit code {done.returncode}: {done.stderr[-300:]}"]
    if answered(folder) < 14:
        wrong.append(f"{answered(folder)} answers are on disk")
    again = here.run(folder, "bench bench.yaml -o out")
    if "'q7'" not in again.stderr or not any(name in again.stderr for name in ("crashes", "ends")):
        wrong.append(f"the next bench does not name the query: {again.stderr[-300:]}")
    return wrong


def answered(folder: Path) -> int:
    """The answers in the cache."""
    paths = (folder / "out" / "cache").glob("*.jsonl")
    return sum('"list"' in line for path in paths for line in path.read_text().splitlines())


def engines(_: Laboratory, number: int, draw: random.Random) -> tuple[Counter[str], list[str]]:
    """Kill benches with search engines: a tenth of the kills with each signal and engine."""
    from scripts.engines import rounds  # The child, which is this file run as a script, does not find the package.

    return rounds(max(1, number // 10), draw)


PARTS = {"kills": kills, "disk": disk, "together": together, "retrievers": retrievers, "engines": engines}


# The process that is killed


def _child(kill_at: int, arguments: list[str]) -> int:
    """Run a command with fixed times; kill the process at the operation on files below `out` of that number."""
    import uuid

    if arguments[0] == "--memory":
        resource.setrlimit(resource.RLIMIT_AS, (int(arguments[1]), int(arguments[1])))
        del arguments[:2]
    time.perf_counter = lambda: 0.0
    uuid.uuid4 = lambda: uuid.UUID(int=0)
    sys.path.insert(0, os.getcwd())
    from steelyard.cli import run

    if arguments[0] == "bench":
        from steelyard.benchmark import retrieval

        retrieval._STATM = Path("no memory is measured")
    out = str(Path("out").absolute())
    operations = 0

    def count_operation(event: str, values: tuple[object, ...]) -> None:
        nonlocal operations
        if event not in CHANGES or not isinstance(values[0], (str, bytes, os.PathLike)):
            return
        if event == "open" and not (isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if not os.path.abspath(os.fsdecode(values[0])).startswith(out):
            return
        operations += 1
        if operations == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_operation)
    code = run(arguments)
    if kill_at < 0:
        Path("operations").write_text(str(operations))
    return code


if __name__ == "__main__":
    sys.exit(main())
