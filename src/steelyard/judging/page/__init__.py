"""The judging page: one document at a time, graded by keys.

The page is the same with a server behind it (`server`) and as one self-contained file (`html`): a queue, a log of
judgments and a progress line, all kept by its script. What differs is where texts come from and where a judgment is
kept: on the server, in the judgments file; in a file of its own, in the browser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from steelyard.checks import text_value
from steelyard.datasets import Dataset
from steelyard.errors import InputError
from steelyard.io.files import write_file
from steelyard.judging.guidelines import Guidelines
from steelyard.judging.pool import DEFAULT_OVERLAP, Pair, Pool, assigned, check_texts
from steelyard.judgments import text_hash
from steelyard.report.page.embed import embedded_json, joined_modules, script_hash, theme_style
from steelyard.version import __version__

SHARED_SCRIPTS = ("dom.js", "text.js", "theme.js")  # Scripts of the report that the page also uses.
SCRIPTS = ("log.js", "spans.js", "store.js", "page.js")  # The page's own scripts, each after those it imports.

_PLACE = re.compile(r"\{\{ (\w+) \}\}")

ANYONE = ""  # The name of a judge whom the page asks for a name.


def html(
    pool: Pool,
    dataset: Dataset,
    path: str | Path,
    judge: str | None = None,
    *,
    judges: Sequence[str] | None = None,
    overlap: float = DEFAULT_OVERLAP,
    guidelines: Any = None,
    seed: int = 0,
) -> None:
    """Write the judging page as one self-contained file, for a colleague without Python.

    Judgments are kept in the browser and exported as a judgments file. Parameters are those of `serve`; without
    `judge`, the page asks for a name.
    """
    if judge is None and judges is not None:
        raise InputError("With judges, every page is for one of them; name the judge.")
    if judge is not None:
        text_value("judge", judge)
    pairs = assigned(pool, judge or ANYONE, judges, overlap, seed)
    check_texts(pairs, dataset)
    documents = {doc: {"title": dataset.corpus.titles[doc], "text": dataset.corpus.texts[doc]} for _, doc in pairs}
    queries = {query: dataset.queries[query] for query, _ in pairs}
    content = embedded_json([pairs, documents, queries])
    data = {
        **page_data(pairs, dataset, judge, Guidelines.of(guidelines)),
        "documents": {doc: {**shown, "text_hash": text_hash(shown["text"])} for doc, shown in documents.items()},
        "queries": queries,
        "storage": f"steelyard-judging-{sha256(content.encode()).hexdigest()[:16]}",
    }
    write_file(Path(path), page_text(data, "file").encode())


def page_data(pairs: Sequence[Pair], dataset: Dataset, judge: str | None, guidelines: Guidelines) -> dict[str, Any]:
    """What the page's script reads in both forms. Nothing in it tells of runs, ranks or other judges."""
    shown = asdict(guidelines)
    return {"judge": judge, "dataset": dataset.name, "guidelines": shown, "pairs": [list(pair) for pair in pairs]}


def page_text(data: Mapping[str, Any], form: Literal["server", "file"]) -> str:
    """The page with its data, as HTML."""
    values = {
        "policy": escape(policy(form), quote=True),
        "version": escape(__version__),
        "title": escape(f"Judging {data['dataset']}"),
        "style": _style(),
        "data": embedded_json({**data, "form": form}),
        "script": _script(),
    }
    return _PLACE.sub(lambda match: values[match[1]], _source("template.html"))


def policy(form: Literal["server", "file"]) -> str:
    """The Content-Security-Policy: the page's own script and style, and on a server requests to it; nothing else."""
    connect = "connect-src 'self'; " if form == "server" else ""
    return (
        f"default-src 'none'; script-src {script_hash(_script())}; style-src {script_hash(_style())}; "
        f"img-src data:; {connect}base-uri 'none'; form-action 'none'"
    )


@cache
def _script() -> str:
    """The page's scripts as one: they import nothing from elsewhere, so their imports can be removed."""
    folders = [("steelyard.report.page", SHARED_SCRIPTS), ("steelyard.judging.page", SCRIPTS)]
    parts = [(files(package) / "scripts" / name).read_text("utf-8") for package, names in folders for name in names]
    return joined_modules(parts)


@cache
def _style() -> str:
    return theme_style() + _source("page.css")


@cache
def _source(name: str) -> str:
    return (files("steelyard.judging.page") / name).read_text("utf-8")
