"""The steps of action.yml, run on an event file with a local server in place of GitHub."""

from __future__ import annotations

import ast
import json
import os
import re
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


BOT = "github-actions[bot]"


class GitHub(ThreadingHTTPServer):
    """The comments of one pull request. `answer`: what every request gets instead, as (status, headers, content)."""

    def __init__(self) -> None:
        self.comments = [{"id": n, "body": "looks good", "user": {"login": "ann"}} for n in range(1, 101)]
        self.answer: tuple[int, dict[str, str], bytes] | None = None
        self.login: str | None = BOT
        self.tokens: set[str | None] = set()
        super().__init__(("127.0.0.1", 0), Requests)


class Requests(BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self) -> None:
        page = int(self.path.rpartition("page=")[2])
        self._answer(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        if self.path == "/graphql":
            login = self.server.login
            return self._answer({"data": {"viewer": {"login": login}}} if login else {"message": "no"})
        assert self.path == "/repos/me/search/issues/7/comments"
        if self.server.answer is None:
            self.server.comments.append({"id": 1000, "user": {"login": BOT}, **self._sent()})
        return self._answer({})

    def do_PATCH(self) -> None:
        number = int(self.path.removeprefix("/repos/me/search/issues/comments/"))
        next(comment for comment in self.server.comments if comment["id"] == number).update(self._sent())
        self._answer({})

    def _sent(self) -> dict[str, str]:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, value: object) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        status, headers, data = self.server.answer or (200, {}, json.dumps(value).encode())
        self.send_response(status)
        for name, text in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


REFUSED = (403, {}, b'{"message": "Resource not accessible"}')


@pytest.fixture
def github():
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Done:
    """What the steps did: the exit code of the bench's step, which is the job's, and their output."""

    def __init__(self, steps: list[subprocess.CompletedProcess[str]]) -> None:
        self.returncode = steps[0].returncode
        self.reporting = [step.returncode for step in steps[1:]]
        self.stdout = "".join(step.stdout for step in steps)
        self.stderr = "".join(step.stderr for step in steps)


@pytest.fixture
def run(tmp_path, github):
    """Run the steps of action.yml after the installation, with these inputs, as a runner does."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    outputs = tmp_path / "output.txt"

    def runs(path: Path | None = None, variables: dict[str, str] | None = None, **given: str) -> Done:
        inputs = {name: str(setting["default"]) for name, setting in action["inputs"].items()}
        inputs |= {"token": "secret-token", **given}
        job = {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
            "GITHUB_REPOSITORY": "me/search",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_ENV": str(tmp_path / "env.txt"),
            "RUNNER_TEMP": str(tmp_path),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **({} if path is None else {"PYTHONPATH": str(path)}),
            **(variables or {}),
        }
        outputs.unlink(missing_ok=True)
        done = []
        for step in action["runs"]["steps"][1:]:
            if "inputs.comment" in step.get("if", "") and inputs["comment"] != "true":
                continue

            def value(match: re.Match[str]) -> str:
                return inputs.get(match[1]) if match[1] in inputs else outputs_of(outputs).get(match[2], "")

            own = {
                name: re.sub(r"\$\{\{ (?:inputs\.(\w+)|steps\.run\.outputs\.(\w+)) \}\}", value, text)
                for name, text in step["env"].items()
            }
            done.append(
                subprocess.run(
                    ["bash", "-e", "-c", step["run"]],
                    env={**os.environ, **job, **own},
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                )
            )
        return Done(done)

    return runs


def outputs_of(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().split("\n") if "=" in line) if file.exists() else {}


STUB = """
import os, pathlib, sys
folder = pathlib.Path(__file__).parent
with open(folder / "calls.txt", "a") as file:
    file.write(repr(sys.argv[1:]) + "\\n")
(folder / "environment.txt").write_text("\\n".join(f"{k}={v}" for k, v in os.environ.items()))
if "--markdown" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--markdown") + 1]).write_text("## The gate passed\\n")
print("::error::a run has this name")
sys.exit(int(os.environ.get("STUB_EXIT", 0)))
"""


@pytest.fixture
def stub(tmp_path) -> Path:
    """A package steelyard that notes its arguments and its environment."""
    folder = tmp_path / "stub" / "steelyard"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text(STUB)
    # An editable installation has a finder of its own, which comes before PYTHONPATH.
    (folder.parent / "sitecustomize.py").write_text(
        "import sys\nsys.meta_path[:] = [each for each in sys.meta_path if 'editable' not in type(each).__module__]\n"
    )
    return folder


def calls_of(stub: Path) -> list[list[str]]:
    file = stub / "calls.txt"
    return [ast.literal_eval(line) for line in file.read_text().split("\n") if line] if file.exists() else []


def write_bench(folder: Path, k1: float = 1.2, b: float = 0.75) -> None:
    (folder / "bench.yaml").write_text(BENCH.format(corpus="demo", k1=k1, b=b))


@pytest.mark.slow
def test_one_comment_is_kept_up_to_date(run, github, tmp_path):
    write_bench(tmp_path)
    first = run(rules="nDCG@10 >= 0.5\n\nnDCG@10 <= 1\n")
    assert first.returncode == 0, first.stderr
    assert len(github.comments) == 101
    body = github.comments[-1]["body"]
    assert body.startswith("<!-- steelyard -->\n## ")
    assert "passed" in body.splitlines()[1]
    assert "`nDCG@10 >= 0.5`" in body
    assert "passed=true\nreport=bench-result" in (tmp_path / "output.txt").read_text()
    second = run(rules="nDCG@10 >= 0.99")
    assert second.returncode == 1, second.stderr
    assert len(github.comments) == 101
    assert "FAILED" in github.comments[-1]["body"]
    assert "FAILED" in (tmp_path / "summary.md").read_text()
    assert github.tokens == {"Bearer secret-token"}
    assert "secret-token" not in first.stdout + first.stderr + second.stdout + second.stderr


@pytest.mark.slow
def test_movers_against_a_baseline_and_the_summary_where_comments_are_not_allowed(run, github, tmp_path):
    write_bench(tmp_path)
    assert run(rules="nDCG@10 >= 0.1", comment="false").returncode == 0
    assert len(github.comments) == 100
    command = ["gate", "bench-result", "--save-baseline", "baseline.json"]
    subprocess.run([sys.executable, "-m", "steelyard", *command], cwd=tmp_path, check=True, capture_output=True)
    write_bench(tmp_path, k1=8.0, b=1.0)
    github.answer = REFUSED
    found = run(baseline="baseline.json")
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
    assert run(rules="nDCG@10 >= 0.1").returncode == 0
    assert len(github.comments) == 100
    assert "passed" in (tmp_path / "summary.md").read_text()


def test_every_input_is_used_by_a_step():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    script = (ROOT / "scripts" / "action.py").read_text()
    for step in action["runs"]["steps"][1:]:
        for name in step["env"]:
            assert f'"{name}"' in script
    used = json.dumps(action["runs"])
    assert all(f"inputs.{name} " in used for name in action["inputs"])


def test_the_token_is_in_the_step_that_comments_only(run, stub, github):
    """Also a token that the job has in its environment, and the files that set variables of later steps."""
    variables = {"GH_TOKEN": "other-token", "ACTIONS_RUNTIME_TOKEN": "runtime-token"}
    done = run(path=stub.parent, variables=variables)
    assert done.returncode == 0, done.stderr
    environment = (stub / "environment.txt").read_text()
    assert "STEELYARD_BENCH=bench.yaml" in environment
    for hidden in ("-token", "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        assert hidden not in environment
    assert github.tokens == {"Bearer secret-token"}


@pytest.mark.slow
def test_a_retriever_finds_no_token(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import json, os\n"
        "def search(query, k):\n"
        "    open('environment.json', 'w').write(json.dumps(dict(os.environ)))\n"
        "    return []\n"
    )
    bench = "dataset: demo\nretrievers: [{python: 'mine:search'}]\nmeasures: [nDCG@10]\n"
    (tmp_path / "bench.yaml").write_text(bench)
    run(comment="false", variables={"GITHUB_TOKEN": "job-token"})
    assert "-token" not in (tmp_path / "environment.json").read_text()


def test_a_comment_of_somebody_else_is_not_replaced(run, stub, github):
    github.comments[3]["body"] = "<!-- steelyard -->\nplease approve"
    assert run(path=stub.parent).returncode == 0
    assert github.comments[3]["body"].endswith("please approve")
    assert len(github.comments) == 101
    assert run(path=stub.parent).returncode == 0
    assert len(github.comments) == 101


@pytest.mark.parametrize("login", ["ann", None])
def test_the_author_is_the_owner_of_the_token_or_the_bot(run, stub, github, login):
    github.login = login
    github.comments[3] |= {"body": "<!-- steelyard -->\nold", "user": {"login": login or BOT}}
    run(path=stub.parent)
    assert "The gate passed" in github.comments[3]["body"]
    assert len(github.comments) == 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        REFUSED,
        (200, {}, b"<html>maintenance</html>"),
        (200, {}, b'{"message": "an object"}'),
        (200, {}, b"[1, 2]"),
        (200, {}, b"\xff"),
        (500, {}, b""),
        (302, {"Location": "http://127.0.0.1:9/elsewhere"}, b""),
    ],
    ids=["refused", "html", "object", "numbers", "binary", "error", "redirect"],
)
@pytest.mark.parametrize("code", [0, 1])
def test_reporting_never_changes_the_exit_code(run, stub, github, answer, code):
    github.answer = answer
    done = run(path=stub.parent, variables={"STUB_EXIT": str(code)})
    assert (done.returncode, done.reporting) == (code, [0])
    assert "::notice::No comment was written" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("event", ["", "[]", '{"pull_request": 3}', '{"pull_request": {"number": "x"}}', "{"])
def test_an_odd_event_is_no_error(run, stub, github, tmp_path, event):
    (tmp_path / "event.json").write_text(event)
    done = run(path=stub.parent)
    assert (done.returncode, done.reporting) == (0, [0])
    assert len(github.comments) == 100


def test_files_that_cannot_be_written_are_no_error(run, stub, tmp_path):
    done = run(path=stub.parent, variables={"GITHUB_STEP_SUMMARY": str(tmp_path / "no" / "folder")})
    assert (done.returncode, done.reporting) == (0, [0])


def test_a_redirect_does_not_get_the_token(run, stub, github):
    other = GitHub()
    thread = threading.Thread(target=other.serve_forever)
    thread.start()
    github.answer = (307, {"Location": f"http://127.0.0.1:{other.server_port}/graphql"}, b"")
    assert run(path=stub.parent).returncode == 0
    other.shutdown()
    thread.join()
    other.server_close()
    assert other.tokens == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"output": "out\npassed=true\nx=1"},
        {"output": "out\rpassed=true"},
        {"bench": "--help"},
        {"bench": "-h"},
        {"bench": "a\n::error::b"},
        {"baseline": "--help"},
        {"output": "--help"},
    ],
)
def test_inputs_that_are_no_paths_run_nothing(run, stub, tmp_path, given):
    done = run(path=stub.parent, **given)
    assert done.returncode == 2
    assert calls_of(stub) == []
    assert outputs_of(tmp_path / "output.txt")["passed"] == "false"
    assert "x" not in outputs_of(tmp_path / "output.txt")
    assert "::error::b" not in done.stdout


def test_rules_and_the_baseline_are_values_not_options(run, stub):
    run(path=stub.parent, baseline="history:best", rules="--help\n\n nDCG@10 >= 0.4 ")
    (_, gate) = calls_of(stub)
    assert gate[2:5] == ["--baseline=history:best", "--rule=--help", "--rule=nDCG@10 >= 0.4"]


def test_what_the_bench_prints_is_no_command_of_the_workflow(run, stub):
    lines = run(path=stub.parent).stdout.split("\n")
    places = [place for place, line in enumerate(lines) if line.startswith("::error::")]
    assert len(places) == 2
    for place in places:
        before = next(line for line in reversed(lines[:place]) if line.startswith("::"))
        assert before.startswith("::stop-commands::")
        token = before.removeprefix("::stop-commands::")
        assert len(token) >= 32
        assert f"::{token}::" in lines[place:]
    assert len({line for line in lines if line.startswith("::stop-commands::")}) == 2
