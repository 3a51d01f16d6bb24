"""The shell of a page without scripts: head, style, and the verdict above its sections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from html import escape

from steelyard.report.documents import Document, document_html
from steelyard.report.page.embed import page_style, visible
from steelyard.version import __version__

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def shell(title: str, verdict: str, sections: Iterable[str], style: str = "") -> str:
    """A whole page. `verdict` and `sections` are HTML; `style` is added to the style sheet of the report."""
    return visible(
        '<!doctype html>\n<html lang="en" data-ready="yes">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="Steelyard {__version__}">\n<title>{escape(title)} · Steelyard</title>\n'
        f"<style>{page_style()}{style}</style>\n</head>\n<body>\n<main>\n"
        f'<section id="verdict">{verdict}</section>\n{"".join(sections)}'
        f"</main>\n<footer>Steelyard {__version__}</footer>\n</body>\n</html>\n"
    )


def section(name: str, heading: str, content: str) -> str:
    """A section of a page with its heading; nothing if it has no content."""
    return f'<section id="{name}"><h2>{heading}</h2>{content}</section>\n' if content else ""


def document_page(document: Document) -> str:
    """The page of a document that has no page of its own."""
    title = document.title or "Result"
    verdict = f'<p class="kicker">{escape(title)}</p>' if document.verdict else ""
    verdict += f"<h1>{escape(document.verdict or title)}</h1>"
    return shell(title, verdict, [document_html(replace(document, verdict=""))])
