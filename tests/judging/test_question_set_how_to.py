"""The how-to 'From a folder of documents to a question set': its commands as written, with a model played back."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from author import Author, corpus
from test_judging_server import Client

from needs import not_on_windows

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "question-set.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@not_on_windows
@pytest.mark.slow
def test_the_commands_of_the_page_lead_from_documents_to_a_leaderboard(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in corpus().items():
        (tmp_path / "docs" / f"{name}.txt").write_text(text)
    plan, draft, judge, measure = (shlex.split(line)[1:] for line in blocks("")[0].splitlines())
    with Author(faults=0.2) as server:
        where = [server.url if part.startswith("http://") else part for part in draft]
        settings = ["--set", "seed=1"]
        planned = steelyard([server.url if part.startswith("http://") else part for part in plan], tmp_path)
        assert "28 questions: 28 requests" in planned.stderr
        assert server.requests == 0
        drafted = steelyard([*where, *settings], tmp_path)
        assert "drafts accepted; rejected:" in drafted.stderr
        assert "span missing" in drafted.stdout
        (bench,) = blocks("yaml")
        written = tmp_path / "questions" / "bench.yaml"
        assert written.read_text() == bench
        written.write_text(f"{bench}# mine\n")
        asked = server.requests
        steelyard([*where, *settings], tmp_path)
        assert server.requests == asked, "nothing is asked twice"
        assert written.read_text() == f"{bench}# mine\n", "a bench.yaml that is there stays"
    texts = corpus()
    for line in (tmp_path / "questions" / "drafts.jsonl").read_text().splitlines():
        found = json.loads(line)
        if found["status"] == "accepted":
            text = texts[found["doc_id"].removesuffix(".txt")]
            assert text[found["start"] : found["end"]] == found["quote"]
    before = len((tmp_path / "questions" / "queries.jsonl").read_text().splitlines())
    said = approve(judge, tmp_path)
    assert "Next: steelyard bench questions/bench.yaml" in said
    assert re.search(r"1 of 3 questions rejected: 33% \[1%, 91%\]", said)
    assert len((tmp_path / "questions" / "queries.jsonl").read_text().splitlines()) == before - 1
    measured = steelyard(measure, tmp_path)
    assert "bm25-okapi on sentence-60" in measured.stdout


def steelyard(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "steelyard", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def approve(arguments: list[str], folder: Path) -> str:
    """Judge three drafts on the page, reject one of them, and stop with Ctrl-C; what was printed."""
    command = [sys.executable, "-u", "-m", "steelyard", *arguments, "--set", "open=no"]
    environment = {**os.environ, "COLUMNS": "400"}
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            return decided(process)
        finally:
            process.kill()


def decided(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    lines: list[str] = []
    while not any("Ctrl-C stops" in line for line in lines):
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    address = re.search(r"http://127\S+", "".join(lines))
    assert address is not None
    client = Client(address[0])
    for number, pair in enumerate(client.page_data()["pairs"][:3]):
        client.judge(pair, 0 if number == 0 else 1)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait() == 0, rest
    return rest
