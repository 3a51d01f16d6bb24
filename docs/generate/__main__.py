"""Write the generated parts into the pages of the repository: `python -m docs.generate`."""

from __future__ import annotations

from docs.generate.hooks import PAGES, stored

for page in sorted(PAGES.rglob("*.md")):
    text = page.read_text("utf-8")
    page.write_text(stored(text), "utf-8")
