"""Odd commands: every verb with odd values for its arguments and options, and with damaged files of every format.

The arguments come from the parser of each verb, and the files from corpus/readers. A command must end with exit code 0,
1 or 2: exit code 3, a traceback, or a hang (counted in seconds of the processor) is a finding. Commands run in this
process, in a folder of their own, without a network and without a browser.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shlex
import shutil
import socket
import socketserver
import sys
import traceback
import warnings
import webbrowser
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from fuzz.limits import Hang, long_calls_end, time_limit
from fuzz.readers import CORPUS, make_result, mutated_bytes
from steelyard import cli
from steelyard.cli.arguments import _choices, _unwrapped, verb_parser
from steelyard.judging import client as chat

NUMBERS = [
    "0",
    "1",
    "2",
    "-1",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "1e300",
    "-1e300",
    "1" + "0" * 30,
    "1" + "0" * 400,
    "1e-320",
    "1_0",
]
TEXTS = [
    "",
    " ",
    "-",
    "--",
    "=",
    "a=b",
    ",",
    "\n",
    "\0",
    "\u2028",
    "\udc80",
    "\udcffx",
    "x" * 300,
    "../x",
    "nDCG@10",
    "AP >= 0.1",
]
TEXTS += [
    "nDCG@" + "9" * 40,
    "P(rel=nan)@5",
    "folder",
    "nothing",
    "nothing/below",
    "100%",
    "1e999%",
    "a,b",
    "http://127.0.0.1:99999/v1",
]
TEXTS += [
    "http://[::1/v1",
    "http://127.0.0.1:9/v1",
    "2026-99-99",
    "demo",
    "[" * 5000,
    "a:b:c",
    "%s{query}{document}{0}",
]
SMALL = [
    "qrels/trec",
    "qrels/table.csv",
    "run/trec",
    "run/table.csv",
    "run/rows.jsonl",
    "result",
    "data",
    "bench.yaml",
    "pool.jsonl",
]
"""Files that a command can use: an odd value is reached only if the others are right."""

SELDOM = {"demo": 0.02, "list": 0.5}
"""Verbs that take long, or have few arguments."""


def make_files(folder: Path) -> list[str]:
    """Whole, empty, cut and mutated files of every format, and folders; their names."""
    draw = random.Random(0)
    shutil.copytree(CORPUS, folder, dirs_exist_ok=True)
    for path in [path for path in sorted(folder.rglob("*")) if path.is_file()]:
        content = path.read_bytes()
        path.with_name(f"cut-{path.name}").write_bytes(content[: len(content) // 2])
        path.with_name(f"odd-{path.name}").write_bytes(mutated_bytes(content, [content], draw))
    (folder / "empty").write_bytes(b"")
    (folder / "deep.json").write_bytes(b"[" * 100_000)
    (folder / "folder").mkdir()
    make_result(folder / "result")
    data = folder / "data"
    data.mkdir()
    (data / "corpus.jsonl").write_text('{"_id": "d1", "text": "a fox"}\n{"_id": "d2", "text": "a wolf"}\n')
    (data / "queries.jsonl").write_text('{"_id": "q1", "text": "fox"}\n{"_id": "q2", "text": "wolf"}\n')
    (data / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    (folder / "bench.yaml").write_text("dataset: data\nretrievers: [bm25-okapi, random]\nmeasures: [RR]\n")
    (folder / "pool.jsonl").write_bytes((CORPUS / "judgments" / "pool.jsonl").read_bytes())
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))]


def odd_value(action: argparse.Action, files: list[str], draw: random.Random) -> str:
    """A value of an argument: one that fits its type, more often than not."""
    if action.choices and draw.random() < 0.8:
        choice = draw.choice(list(action.choices))
        return str(getattr(choice, "value", choice))
    if action.type in (int, float):
        return draw.choice(NUMBERS if draw.random() < 0.9 else TEXTS)
    where = draw.random()
    return draw.choice(SMALL if where < 0.5 else files if where < 0.7 else TEXTS if where < 0.95 else NUMBERS)


def odd_command(verb: str, files: list[str], draw: random.Random) -> list[str]:
    """A verb with values for its arguments, for what it requires, and for some of its other options."""
    function = getattr(import_module(f"steelyard.cli.{cli._MODULES.get(verb, verb)}"), verb)
    parser = verb_parser(verb, function, 80)
    command: list[str] = [verb]
    for action in parser._actions:
        if not action.option_strings:
            count = draw.choice([1, 2, 2, 3]) if action.nargs in ("+", "*") else draw.random() < 0.95
            command += [odd_value(action, files, draw) for _ in range(int(count))]
        elif not {"--help", "--help-all"} & set(action.option_strings) and (action.required or draw.random() < 0.12):
            name = draw.choice(action.option_strings)
            if action.nargs == 0:
                command.append(name)
            elif name.startswith("--"):
                command.append(f"{name}={odd_value(action, files, draw)}")
            else:
                command += [name, odd_value(action, files, draw)]
    for name, each in parser.settings.items():
        if draw.random() < 0.12:
            _, kind = _unwrapped(each.kind)
            setting = argparse.Action([], name, type=kind, choices=_choices(kind))
            command += ["--set", f"{name}={odd_value(setting, files, draw)}"]
    return command


def _below(folder: str) -> Iterator[str]:
    """The folder and everything in it."""
    yield folder
    for where, folders, files in os.walk(folder):
        yield from (os.path.join(where, name) for name in folders + files)


class Sandbox:
    """A folder with the files, made again after a command that changed it; what a command prints is beside it."""

    def __init__(self, folder: Path) -> None:
        self._first, self._now, self._printed = folder / "first", folder / "beside" / "now", folder / "printed"
        self._first.mkdir()
        self._now.parent.mkdir()
        self.files = make_files(self._first)
        self._made: list[tuple[str, int, int, int]] = []
        self._errors: list[BaseException] = []

    def run(self, command: list[str]) -> str:
        """Run a command; what is wrong with how it ended, or an empty text."""
        if self._state() != self._made:
            os.chdir(self._first)
            shutil.rmtree(self._now.parent)
            shutil.copytree(self._first, self._now)
            self._made = self._state()
        os.chdir(self._now)
        self._errors.clear()
        with self._output(), time_limit():
            try:
                code = cli.run(command)
            except (Exception, Hang) as error:
                code = 3
                self._errors.append(error)
        for error in self._errors:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {error!r:.150}"
        served = code == 130 and command[0] == "judge"  # The page was served, and `stopped` above is its Ctrl-C.
        if code not in (0, 1, 2) and not served:
            return f"exit code {code}"
        return "a traceback" if b"Traceback (most recent call last)" in self._printed.read_bytes() else ""

    def _state(self) -> list[tuple[str, int, int, int]]:
        """Every file and folder, with its inode, size and time of change."""
        found = [(path, os.stat(path, follow_symlinks=False)) for path in _below(str(self._now.parent))]
        return [(path, state.st_ino, state.st_size, state.st_mtime_ns) for path, state in found]

    @contextlib.contextmanager
    def _output(self) -> Iterator[None]:
        kept = os.dup(1), os.dup(2)
        with self._printed.open("wb") as printed:
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            try:
                yield
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                for number, descriptor in enumerate(kept, 1):
                    os.dup2(descriptor, number)
                    os.close(descriptor)

    def isolate(self) -> None:
        """No connection, no browser, no server that waits for Ctrl-C, no pause; internal errors are kept."""

        def refused(*_: Any, **__: Any) -> Any:
            raise ConnectionRefusedError("there is no network")

        def stopped(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        def kept(error: BaseException) -> int:
            self._errors.append(error)
            return cli.INTERNAL_ERROR

        socket.socket.connect = refused  # type: ignore[method-assign]
        socket.getaddrinfo = refused
        socketserver.BaseServer.serve_forever = stopped  # type: ignore[method-assign]
        webbrowser.open = lambda *_, **__: False
        chat._pause = lambda *_: 0.0
        cli._log_internal_error = kept


def fuzz_commands(commands: int, seed: int, folder: Path) -> bool:
    """Run so many odd commands and print the figures. True if nothing was found."""
    import resource

    warnings.simplefilter("ignore")
    # Not RLIMIT_AS: vl-convert reserves 32 GB of addresses, of which it uses little.
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    messages = os.fdopen(os.dup(2), "w")
    sandbox, draw = Sandbox(folder), random.Random(seed)
    sandbox.isolate()
    cli.open_streams()
    verbs = list(cli.VERBS)
    weights = [SELDOM.get(verb, 1.0) for verb in verbs]
    tried: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    for _ in range(commands):
        long_calls_end(messages)
        (verb,) = draw.choices(verbs, weights)
        command = odd_command(verb, sandbox.files, draw)
        (folder / "last").write_text(ascii(command))
        tried[verb] += 1
        if problem := sandbox.run(command):
            kind = f"{verb}: {problem.rpartition(': ')[0] or problem}"
            if kind not in findings:
                print(f"{verb}: {problem}\n  {shlex.join(command)!a:.600}", flush=True)
            findings[kind] += 1
    print(f"  {', '.join(f'{verb} {count}' for verb, count in sorted(tried.items()))}")
    hangs = sum(": Hang at" in kind for kind in findings)
    print(f"commands: {commands} odd commands of {len(tried)} verbs, {len(findings) - hangs} crashes, {hangs} hangs")
    return not findings


if __name__ == "__main__":
    commands, seed, folder = sys.argv[1:]
    sys.exit(not fuzz_commands(int(commands), int(seed), Path(folder)))
