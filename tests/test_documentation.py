"""Pages that are made from the code say what the code says."""

from __future__ import annotations

from pathlib import Path

from steelyard.dialects import listing as dialect_listing
from steelyard.measures import listing as measure_listing
from steelyard.report.tables import Table, markdown

DOCS = Path(__file__).parent.parent / "docs"


def test_the_table_of_measures_is_the_registrys():
    found = measure_listing()
    assert markdown(Table(found.columns, found.rows)) in (DOCS / "measures.md").read_text("utf-8"), (
        "docs/measures.md is out of date: put `steelyard measures --format markdown` into it"
    )


def test_every_dialect_is_on_its_page():
    page = (DOCS / "dialects" / "README.md").read_text("utf-8")
    missing = [name for name in dialect_listing() if f"`{name}`" not in page]
    assert missing == []
