"""What action.yml runs: bench, gate, one comment on the pull request that is kept up to date, and the job summary.

It reads its settings from the environment, as GitHub sets it, and needs only Python and an installed steelyard.
The exit code is that of the gate: 0 passed, 1 failed, 2 an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

MARKER = "<!-- steelyard -->"
LONGEST = 60_000
"""GitHub refuses comments of more than 65,536 characters."""


def main() -> int:
    """Run the bench and the gate and report them; the exit code."""
    output = Path(os.environ.get("STEELYARD_OUTPUT") or "bench-result")
    bench = os.environ.get("STEELYARD_BENCH") or "bench.yaml"
    code, text = _steelyard("bench", bench, "-o", str(output)), ""
    if code == 0:
        code, text = _gate(output)
    else:
        text = f"## The bench failed\n\n`steelyard bench {bench}` ended with exit code {code}; the log has its message.\n"
    _append("GITHUB_STEP_SUMMARY", text)
    _append("GITHUB_OUTPUT", f"passed={'true' if code == 0 else 'false'}\nreport={output / 'report.html'}\n")
    if os.environ.get("STEELYARD_COMMENT", "true").lower() == "true":
        _comment(text)
    return code


def _gate(output: Path) -> tuple[int, str]:
    """The exit code of the gate, and its verdict, table and movers as Markdown."""
    rules = [line.strip() for line in os.environ.get("STEELYARD_RULES", "").splitlines() if line.strip()]
    baseline = os.environ.get("STEELYARD_BASELINE", "").strip()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "gate.md"
        given = [
            *(["--baseline", baseline] if baseline else []),
            *(part for rule in rules for part in ("--rule", rule)),
        ]
        code = _steelyard("gate", str(output), *given, "--markdown", str(page))
        text = page.read_text("utf-8") if page.is_file() else "## The gate could not be checked\n"
    return code, text


def _steelyard(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "steelyard", *arguments], check=False).returncode


def _append(variable: str, text: str) -> None:
    """Add text to the file that GitHub names in a variable."""
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def _comment(text: str) -> None:
    """Create the comment of the pull request, or replace its text; say where the result is if that is not allowed."""
    number = _pull_request()
    token, repository = os.environ.get("GITHUB_TOKEN"), os.environ.get("GITHUB_REPOSITORY")
    if number is None or not token or not repository:
        return
    body = f"{MARKER}\n{text}"
    if len(body) > LONGEST:
        body = f"{body[:LONGEST]}\n\n... the job summary has the whole text."
    try:
        known = _known_comment(repository, number, token)
        if known is None:
            _call("POST", f"/repos/{repository}/issues/{number}/comments", token, {"body": body})
        else:
            _call("PATCH", f"/repos/{repository}/issues/comments/{known}", token, {"body": body})
    except (HTTPError, URLError, TimeoutError) as error:
        reason = f"HTTP {error.code}" if isinstance(error, HTTPError) else "the server did not answer"
        print(f"::notice::No comment was written ({reason}); the job summary has the result. "
              "A comment needs `permissions: {pull-requests: write}`.")  # fmt: skip


def _pull_request() -> int | None:
    """The number of the pull request of the event; None for other events."""
    path = os.environ.get("GITHUB_EVENT_PATH")
    event: Any = json.loads(Path(path).read_text("utf-8")) if path else {}
    number = (event.get("pull_request") or {}).get("number")
    return int(number) if number else None


def _known_comment(repository: str, number: int, token: str) -> int | None:
    """The id of an earlier comment of this action on the pull request."""
    page = 1
    while True:
        path = f"/repos/{repository}/issues/{number}/comments?per_page=100&page={page}"
        found = _call("GET", path, token)
        for comment in found:
            if str(comment.get("body", "")).startswith(MARKER):
                return int(comment["id"])
        if len(found) < 100:
            return None
        page += 1


def _call(method: str, path: str, token: str, data: dict[str, str] | None = None) -> Any:
    url = os.environ.get("GITHUB_API_URL", "https://api.github.com") + path
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    content = None if data is None else json.dumps(data).encode()
    with urlopen(Request(url, data=content, headers=headers, method=method), timeout=30) as response:
        return json.loads(response.read())


if __name__ == "__main__":
    sys.exit(main())
