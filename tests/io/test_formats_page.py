"""The page of formats lists what the registry has."""

from __future__ import annotations

from pathlib import Path

from steelyard.io import formats

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


def test_the_table_matches_the_registry() -> None:
    rows = [
        f"| `{entry.name}` | {', '.join(entry.reads)} | {', '.join(entry.writes)} | {entry.description} |"
        for entry in formats()
    ]
    assert "\n".join(rows) in PAGE.read_text("utf-8")


def test_every_format_has_the_functions_it_names() -> None:
    for entry in formats():
        assert entry.reads.keys() <= {"run", "qrels"}
        assert entry.writes.keys() <= entry.reads.keys(), entry.name
        for kind in entry.reads:
            assert callable(entry.reader(kind))
        for kind in entry.writes:
            assert callable(entry.writer(kind))
