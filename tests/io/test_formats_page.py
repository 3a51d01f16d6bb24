"""The page of formats says what the registry says."""

from __future__ import annotations

from pathlib import Path

from steelyard.io import formats

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


def test_the_table_is_the_registrys() -> None:
    rows = [
        f"| `{entry.name}` | {', '.join(entry.reads)} | {', '.join(entry.writes)} | {entry.description} |"
        for entry in formats()
    ]
    assert "\n".join(rows) in PAGE.read_text("utf-8")


def test_every_format_has_what_it_says_it_has() -> None:
    for entry in formats():
        module = entry.load()
        assert {kind for kind in ("run", "qrels") if hasattr(module, f"read_{kind}")} == set(entry.reads), (
            entry.name
        )
        assert {kind for kind in ("run", "qrels") if hasattr(module, f"{kind}_bytes")} == set(entry.writes), (
            entry.name
        )
