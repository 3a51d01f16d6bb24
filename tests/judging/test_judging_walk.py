"""docs/judging.md, followed step by step: every command is run, and what it prints is what the page shows."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
from playback import Playback
from scripts import console_blocks

import steelyard as sy
from steelyard.judging.model import Prompt
from steelyard.judging.pool import Pool

PAGE = Path(__file__).parents[2] / "docs" / "judging.md"
ENDPOINT = "http://127.0.0.1:8000/v1"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(page: str) -> list[tuple[str, str]]:
    """The commands of the page's console blocks, each with the output shown."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown))
    return found


def human_grade(demo: sy.Dataset, query: str, doc: str) -> int:
    """What a person says: the grade of the demo's qrels, 0 for other documents."""
    return max(0, int(GRADES.setdefault(id(demo), demo_grades(demo)).get((query, doc), 0)))


GRADES: dict[int, dict[tuple[str, str], float]] = {}


def demo_grades(demo: sy.Dataset) -> dict[tuple[str, str], float]:
    rows = demo.qrels.frame.select("query_id", "doc_id", "grade").drop_nulls().iter_rows()
    return {(query, doc): grade for query, doc, grade in rows}


def model_grade(demo: sy.Dataset, query: str, doc: str) -> int:
    """What the model says: mostly that, but it is often too generous and sometimes misses a document."""
    grade, noise = human_grade(demo, query, doc), sha256(f"{query} {doc}".encode()).digest()[0] / 256
    if grade == 0:
        return 2 if noise < 0.05 else 1 if noise < 0.2 else 0
    return grade - 1 if noise < 0.15 else min(3, grade + 1) if noise > 0.75 else grade


def run(command: str, folder: Path, endpoint: str) -> str:
    """What a command prints, stderr included."""
    arguments = shlex.split(command.replace(ENDPOINT, endpoint))
    assert arguments[0] == "steelyard"
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return console_blocks.without_progress(done.stdout)


def judged_by_hand(command: str, folder: Path, demo: sy.Dataset) -> str:
    """What the command prints while a person judges every document on the page and then presses Ctrl-C."""
    arguments = shlex.split(command)[1:]
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard", *arguments, "--set", "open=no"],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    printed = ""
    while "Ctrl-C" not in printed:
        line = process.stdout.readline()
        assert line, printed
        printed += line
    address = re.search(r"http://\S+", printed)
    assert address is not None
    for query, doc in Pool.read(folder / arguments[1]).frame.select("query_id", "doc_id").iter_rows():
        line = {"query_id": query, "doc_id": doc, "grade": human_grade(demo, query, doc), "seconds": 6.0}
        request = urllib.request.Request(
            f"{address[0]}judgment", json.dumps(line).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    return printed + rest


@pytest.mark.slow
def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    demo = sy.Dataset.read("demo")
    (tmp_path / "trains").mkdir()
    for name in ("corpus.jsonl", "queries.jsonl"):
        content = (files("steelyard.demo") / "data" / name).read_bytes()
        (tmp_path / "trains" / name).write_bytes(content)
    bench = re.search(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert bench is not None
    (tmp_path / "bench.yaml").write_text(bench[1], "utf-8")
    prompt = Prompt.of("graded")
    labels = {
        prompt.fill(text, demo.corpus[doc]): model_grade(demo, query, doc)
        for query, text in demo.queries.items()
        for doc in demo.corpus
    }
    checker = doctest.OutputChecker()
    with Playback(labels) as server:
        for command, shown in commands(page):
            by_hand = command.startswith("steelyard judge") and "--endpoint" not in command
            printed = judged_by_hand(command, tmp_path, demo) if by_hand else run(command, tmp_path, server.url)
            if os.environ.get("STEELYARD_SHOW"):
                print(f"$ {command}\n{printed}")
            elif shown.strip():
                assert checker.check_output(shown, printed, FLAGS), (
                    f"$ {command}\n{checker.output_difference(doctest.Example('', shown), printed, FLAGS)}"
                )
