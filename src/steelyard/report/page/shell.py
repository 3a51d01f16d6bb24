"""The shell of the pages of tables and drawings: head, header, style, and the verdict above its sections."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from urllib.parse import quote

from steelyard.report.documents import Document
from steelyard.report.page.embed import SHELL_SCRIPTS, page_script, page_style, script_hash, visible
from steelyard.report.tables import Table, table_html
from steelyard.version import __version__


def shell(title: str, verdict: str, sections: Iterable[str], style: str = "") -> str:
    """A whole page. `verdict` and `sections` are HTML; `style` is added to the style sheet of the report.

    Its one script adds the theme, links to the sections, the order of tables and shades; without it, all is there.
    """
    script = page_script(SHELL_SCRIPTS)
    page = Template((files("steelyard.report.page") / "shell.html").read_text("utf-8"))
    parts = {"title": escape(title), "verdict": verdict, "sections": "".join(sections), "version": __version__}
    parts |= {"script": script, "allowed": script_hash(script), "style": page_style() + style}
    return visible(page.substitute(parts))


def section(name: str, heading: str, content: str) -> str:
    """A section of a page with its heading; nothing if it has no content."""
    return f'<section id="{name}"><h2 tabindex="-1">{heading}</h2>{content}</section>\n' if content else ""


def scrolled(label: str, content: str, kind: str = "scroll", name: str = "") -> str:
    """Content that may be wider than the screen, scrolled by mouse and by keys. kind: its class. name: its id."""
    named = f' id="{name}"' if name else ""
    return f'<div class="{kind}"{named} tabindex="0" role="region" aria-label="{escape(label)}">{content}</div>'


def page_link(page: Path | None, folder: Path | None) -> str:
    """The address of a page from a folder; empty if there is none."""
    if page is None or folder is None or not page.is_file():
        return ""
    return quote(Path(os.path.relpath(page, folder)).as_posix())


def table_part(table: Table, label: str = "") -> str:
    """A table with its title as a heading, or only a label for screen readers, and its note below."""
    title = f"<h3>{escape(table.title)}</h3>" if table.title and not label else ""
    note = f'<p class="hint">{escape(table.note)}</p>' if table.note else ""
    return f"{title}{scrolled(label or table.title or 'Table', table_html(replace(table, title='')))}{note}"


def document_page(document: Document) -> str:
    """The page of a document that has no page of its own."""
    title = document.title or "Result"
    verdict = f'<p class="kicker">{escape(title)}</p>' if document.verdict else ""
    verdict += f"<h1>{escape(document.verdict or title)}</h1>"
    charts = "".join(document.drawings)
    notes = "".join(f"<li>{escape(line)}</li>" for line in document.notes)
    sections = [
        section("charts", "Charts", f'<div class="drawings">{charts}</div>' if charts else ""),
        section("tables", "Tables", "".join(map(table_part, document.tables))),
        section("notes", "Notes", f'<ul class="note">{notes}</ul>' if notes else ""),
    ]
    return shell(title, verdict, sections)
