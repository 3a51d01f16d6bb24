"""docs/evidence.md: the example of chunkers, from a copy of its folder, gives the table of the page."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from steelyard.cli import run

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence.md"
EXAMPLE = ROOT / "examples" / "chunkers"


def test_every_step_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text("utf-8")
    steps = text[text.index("examples/chunkers") : text.index("**The overlap rule.**")]
    (shown,) = re.findall(r"^`bench.yaml`\n\n```yaml\n(.*?)```", steps, re.MULTILINE | re.DOTALL)
    assert shown == (EXAMPLE / "bench.yaml").read_text("utf-8")
    (spans,) = re.findall(r"```text\n(.*?)```", steps, re.DOTALL)
    assert set(spans.splitlines()) <= set((EXAMPLE / "spans.csv").read_text("utf-8").splitlines())
    shutil.copytree(EXAMPLE, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    (command,) = re.findall(r"```sh\nsteelyard (.*?)\n```", steps)
    assert run(command.split()) == 0
    printed = capsys.readouterr().out
    head, *rows = re.findall(r"^\| (.*) \|$", steps, re.MULTILINE)
    assert len(rows) == 3
    for row in (head, *rows):
        cells = map(re.escape, row.split(" | "))
        assert re.search(r"\s+".join(cells), printed), row
