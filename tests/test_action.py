"""action.yml and its script, run on an event file with a local server in place of GitHub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
BENCH = """
dataset: {corpus}
retrievers: [{{bm25-okapi: {{name: search, k1: {k1}, b: {b}}}}}]
measures: [nDCG@10]
"""


class GitHub(ThreadingHTTPServer):
    """The comments of one pull request; `refused` answers every request with 403."""

    def __init__(self) -> None:
        self.comments = [{"id": n, "body": "looks good"} for n in range(1, 101)]
        self.refused = False
        self.tokens: set[str | None] = set()
        super().__init__(("127.0.0.1", 0), Requests)


class Requests(BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self) -> None:
        page = int(self.path.rpartition("page=")[2])
        self._answer(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        assert self.path == "/repos/me/search/issues/7/comments"
        if not self.server.refused:
            self.server.comments.append({"id": 1000, **self._sent()})
        self._answer({})

    def do_PATCH(self) -> None:
        number = int(self.path.removeprefix("/repos/me/search/issues/comments/"))
        next(each for each in self.server.comments if each["id"] == number).update(self._sent())
        self._answer({})

    def _sent(self) -> dict[str, str]:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, value: object) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        data = json.dumps(value).encode()
        self.send_response(403 if self.server.refused else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def github():
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(tmp_path, github):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))

    def runs(**settings: str) -> subprocess.CompletedProcess[str]:
        known = {
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
            "GITHUB_REPOSITORY": "me/search",
            "GITHUB_TOKEN": "secret-token",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_OUTPUT": str(tmp_path / "output.txt"),
        }
        return subprocess.run(
            [sys.executable, ROOT / "scripts" / "action.py"],
            env={**os.environ, **known, **settings},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    return runs


def write_bench(folder: Path, k1: float = 1.2, b: float = 0.75) -> None:
    (folder / "bench.yaml").write_text(BENCH.format(corpus="demo", k1=k1, b=b))


@pytest.mark.slow
def test_one_comment_is_kept_up_to_date(run, github, tmp_path):
    write_bench(tmp_path)
    first = run(STEELYARD_RULES="nDCG@10 >= 0.5\n\nnDCG@10 <= 1\n")
    assert first.returncode == 0, first.stderr
    assert len(github.comments) == 101
    body = github.comments[-1]["body"]
    assert body.startswith("<!-- steelyard -->\n## ")
    assert "passed" in body.splitlines()[1]
    assert "`nDCG@10 >= 0.5`" in body
    assert "passed=true\nreport=bench-result" in (tmp_path / "output.txt").read_text()
    second = run(STEELYARD_RULES="nDCG@10 >= 0.99")
    assert second.returncode == 1, second.stderr
    assert len(github.comments) == 101
    assert "FAILED" in github.comments[-1]["body"]
    assert "FAILED" in (tmp_path / "summary.md").read_text()
    assert github.tokens == {"Bearer secret-token"}
    assert "secret-token" not in first.stdout + first.stderr + second.stdout + second.stderr


@pytest.mark.slow
def test_movers_against_a_baseline_and_the_summary_where_comments_are_not_allowed(run, github, tmp_path):
    write_bench(tmp_path)
    assert run(STEELYARD_RULES="nDCG@10 >= 0.1", STEELYARD_COMMENT="false").returncode == 0
    assert len(github.comments) == 100
    command = ["gate", "bench-result", "--save-baseline", "baseline.json"]
    subprocess.run(
        [sys.executable, "-m", "steelyard", *command], cwd=tmp_path, check=True, capture_output=True
    )
    write_bench(tmp_path, k1=8.0, b=1.0)
    github.refused = True
    found = run(STEELYARD_BASELINE="baseline.json")
    assert found.returncode == 1, found.stderr
    assert "::notice::No comment was written (HTTP 403)" in found.stdout
    summary = (tmp_path / "summary.md").read_text()
    assert "no significant drop in nDCG@10" in summary
    assert "`fact-10`" in summary
    assert len(github.comments) == 100


@pytest.mark.slow
def test_a_bench_that_fails_is_reported(run, github, tmp_path):
    (tmp_path / "bench.yaml").write_text("dataset: nowhere\n")
    found = run()
    assert found.returncode == 2
    assert "The bench failed" in github.comments[-1]["body"]


@pytest.mark.slow
def test_other_events_have_no_comment(run, github, tmp_path):
    write_bench(tmp_path)
    (tmp_path / "event.json").write_text(json.dumps({"ref": "refs/heads/main"}))
    assert run(STEELYARD_RULES="nDCG@10 >= 0.1").returncode == 0
    assert len(github.comments) == 100
    assert "passed" in (tmp_path / "summary.md").read_text()


def test_the_action_passes_every_input_to_its_script():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    script = (ROOT / "scripts" / "action.py").read_text()
    assert step["run"].endswith('scripts/action.py"')
    for name in step["env"]:
        assert f'"{name}"' in script
    used = json.dumps(action["runs"])
    assert all(f"inputs.{name} " in used for name in action["inputs"])
