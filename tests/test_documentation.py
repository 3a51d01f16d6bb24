"""Pages that are made from the code say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.measures import listing
from steelyard.report.tables import Table, markdown

DOCS = Path(__file__).parent.parent / "docs"


def test_the_table_of_measures_is_the_registrys():
    found = listing()
    assert markdown(Table(found.columns, found.rows)) in (DOCS / "measures.md").read_text("utf-8"), (
        "docs/measures.md is out of date: put `steelyard measures --format markdown` into it"
    )


def test_no_link_leads_nowhere():
    root = DOCS.parent
    pages = [*root.glob("*.md"), root / "benchmarks" / "README.md", *DOCS.rglob("*.md")]
    dead = [
        f"{page.relative_to(root)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []
