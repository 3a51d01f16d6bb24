"""docs/evidence.md: its files, command and table work from an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.cli import run

PAGE = Path(__file__).parents[2] / "docs" / "evidence.md"
FILE = re.compile(r"^`([\w./-]+)`[^\n]*(?:\n[^`\n][^\n]*)*\n\n```\w+\n(.*?)```", re.MULTILINE | re.DOTALL)


def test_every_step_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text("utf-8")
    steps = text[text.index("From an empty folder") : text.index("**The overlap rule.**")]
    files = dict(FILE.findall(steps))
    assert list(files) == ["my-data/corpus.jsonl", "my-data/queries.jsonl", "spans.csv", "bench.yaml"]
    (tmp_path / "my-data").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"```sh\nsteelyard (.*?)\n```", steps)
    assert run(command.split()) == 0
    printed = capsys.readouterr().out
    head, *rows = re.findall(r"^\| (.*) \|$", steps, re.MULTILINE)
    assert len(rows) == 3
    for row in (head, *rows):
        cells = map(re.escape, row.split(" | "))
        assert re.search(r"\s+".join(cells), printed), row
