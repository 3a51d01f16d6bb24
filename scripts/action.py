"""What action.yml runs, in two steps: `run` is the bench and the gate, `comment` keeps one comment up to date.

Both read their settings from the environment, as GitHub sets it, and need only Python; `run` also needs an installed
steelyard. The exit code of `run` is that of the gate: 0 passed, 1 failed, 2 an error. Reporting never changes it, and
`comment` always ends with 0.

The bench runs the code of the pull request. It gets no token, and nothing that it prints is taken as a command of the
workflow. The token is in the environment of `comment` only, which runs no code but this file.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

MARKER = "<!-- steelyard -->"
LONGEST = 60_000
"""GitHub refuses comments of more than 65,536 characters."""
LARGEST_ANSWER = 20_000_000
MOST_PAGES = 100
BOT = "github-actions[bot]"
"""The author of comments that are written with the token of a workflow."""

NOT_FOR_THE_BENCH = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Files through which a step sets variables of later ones."""


def run() -> int:
    """Run the bench and the gate and report them; the exit code."""
    bench = os.environ.get("STEELYARD_BENCH") or "bench.yaml"
    output = os.environ.get("STEELYARD_OUTPUT") or "bench-result"
    baseline = os.environ.get("STEELYARD_BASELINE", "").strip()
    paths = {"bench": bench, "output": output, "baseline": baseline}
    wrong = [name for name, path in paths.items() if path.startswith("-") or (path and not path.isprintable())]
    if wrong:
        code, text = 2, f"## The inputs are wrong\n\nExpected a path: {', '.join(wrong)}.\n"
        print(f"::error::Expected a path: {', '.join(wrong)}.")
    elif code := _steelyard("bench", bench, "-o", output):
        text = f"## The bench failed\n\n`steelyard bench` ended with exit code {code}; the log has its message.\n"
    else:
        code, text = _gate(output, baseline)
    with _reporting("The result was not reported"):
        _append("GITHUB_STEP_SUMMARY", text)
        page = Path(tempfile.mkdtemp(dir=os.environ.get("RUNNER_TEMP"))) / "comment.md"
        page.write_text(text, "utf-8")
        report = "" if wrong else Path(output) / "report.html"
        passed = "true" if code == 0 else "false"
        _append("GITHUB_OUTPUT", f"passed={passed}\nreport={report}\ntext={page}\n")
    return code


def _gate(output: str, baseline: str) -> tuple[int, str]:
    """The exit code of the gate, and its verdict, table and movers as Markdown."""
    rules = [line.strip() for line in os.environ.get("STEELYARD_RULES", "").split("\n") if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "gate.md"
        given = [*([f"--baseline={baseline}"] if baseline else []), *(f"--rule={rule}" for rule in rules)]
        code = _steelyard("gate", output, *given, "--markdown", str(page))
        text = page.read_text("utf-8") if page.is_file() else "## The gate could not be checked\n"
    return code, text


def _steelyard(*arguments: str) -> int:
    """Run steelyard without tokens. Until it ends, the log takes nothing for a command of the workflow."""
    hidden = {name for name in os.environ if name.endswith("_TOKEN") or name in NOT_FOR_THE_BENCH}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-m", "steelyard", *arguments]
    pause = secrets.token_hex(16)
    print(f"::stop-commands::{pause}", flush=True)
    try:
        return subprocess.run(command, check=False, env=environment).returncode
    finally:
        print(f"\n::{pause}::", flush=True)


@contextmanager
def _reporting(what: str) -> Iterator[None]:
    """Whatever goes wrong in reporting is a notice: the verdict is that of the gate."""
    try:
        yield
    except Exception as error:
        reason = f"HTTP {error.code}" if isinstance(error, HTTPError) else type(error).__name__
        print(
            f"::notice::{what} ({reason}); the job summary has the result. "
            "A comment needs `permissions: {pull-requests: write}`."
        )


def _append(variable: str, text: str) -> None:
    """Add text to the file that GitHub names in a variable."""
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def comment() -> int:
    """Create the comment of the pull request, or replace its text; a notice if that is not possible."""
    with _reporting("No comment was written"):
        number = _pull_request()
        token, repository = os.environ.get("GITHUB_TOKEN"), os.environ.get("GITHUB_REPOSITORY")
        page = os.environ.get("STEELYARD_TEXT")
        if number is None or not token or not repository or not page:
            return 0
        body = f"{MARKER}\n{Path(page).read_text('utf-8')}"
        if len(body) > LONGEST:
            body = f"{body[:LONGEST]}\n\n... the job summary has the whole text."
        earlier = _earlier_comment(repository, number, token)
        if earlier is None:
            _call("POST", f"/repos/{repository}/issues/{number}/comments", token, {"body": body})
        else:
            _call("PATCH", f"/repos/{repository}/issues/comments/{earlier}", token, {"body": body})
    return 0


def _pull_request() -> int | None:
    """The number of the pull request of the event; None for other events."""
    path = os.environ.get("GITHUB_EVENT_PATH")
    event: Any = json.loads(Path(path).read_text("utf-8")) if path else {}
    number = (event.get("pull_request") or {}).get("number")
    return int(number) if number else None


def _earlier_comment(repository: str, number: int, token: str) -> int | None:
    """The id of an earlier comment of this action: it starts with the marker, and the token's owner wrote it."""
    author = _author(token)
    for page in range(1, MOST_PAGES + 1):
        comments = _call("GET", f"/repos/{repository}/issues/{number}/comments?per_page=100&page={page}", token)
        for known in comments:
            if str(known.get("body") or "").startswith(MARKER) and (known.get("user") or {}).get("login") == author:
                return int(known["id"])
        if len(comments) < 100:
            break
    return None


def _author(token: str) -> str:
    """The login of the token's owner. Anyone can write the marker, and nobody else's comment is replaced."""
    try:
        return str(_call("POST", "/graphql", token, {"query": "query { viewer { login } }"})["data"]["viewer"]["login"])
    except (OSError, ValueError, LookupError, TypeError):
        return BOT


def _call(method: str, path: str, token: str, data: dict[str, str] | None = None) -> Any:
    """The answer of GitHub's API. An opener without HTTPRedirectHandler follows no redirect."""
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    url = (os.environ.get("GITHUB_GRAPHQL_URL") or f"{api}/graphql") if path == "/graphql" else f"{api}{path}"
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    content = None if data is None else json.dumps(data).encode()
    opener = OpenerDirector()
    for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler()):
        opener.add_handler(handler)
    with opener.open(Request(url, data=content, headers=headers, method=method), timeout=30) as response:
        if not 200 <= response.status < 300:
            raise HTTPError(url, response.status, "refused", response.headers, None)
        return json.loads(response.read(LARGEST_ANSWER))


if __name__ == "__main__":
    sys.exit({"run": run, "comment": comment}[sys.argv[1]]())
