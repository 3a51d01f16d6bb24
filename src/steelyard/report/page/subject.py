"""What a page is about: a comparison, and what is known of its queries, documents and making."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.comparison.result import Comparison
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets import Dataset


@dataclass(frozen=True)
class Subject:
    """A comparison with the texts to show, the costs, and how it was made.

    `queries` are texts by id and `columns` what else is known of them; `documents` are title and
    text by id; `costs` one mapping a run; `made` each run's settings and fingerprint; `facts` pairs of
    what and which (dataset, machine); `errors` a run's failures by query; `command` makes the page again; `absent`
    says what is not there and why.
    """

    comparison: Comparison
    title: str = "Comparison"
    queries: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    documents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    costs: Sequence[Mapping[str, Any]] = ()
    errors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    made: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    command: str = ""
    absent: tuple[str, ...] = ()

    @property
    def seconds(self) -> dict[str, float]:
        """The mean seconds a query of each run that was timed."""
        return {str(row["run"]): float(row["mean_seconds"]) for row in self.costs if row.get("mean_seconds")}


def comparison_subject(comparison: Comparison, dataset: Dataset | None = None) -> Subject:
    """What the page of a comparison alone is about; the texts are the dataset's, or those the runs carry."""
    source = comparison.source
    queries: Mapping[str, str] = {}
    columns: Mapping[str, Mapping[str, Any]] = {}
    documents: Mapping[str, tuple[str, str]] = {}
    facts: list[tuple[str, str]] = []
    absent: list[str] = []
    if dataset is not None:
        queries, columns = dataset.queries, dataset.queries.columns
        documents = Documents(dataset)
        facts.append(("Dataset", f"{dataset.name}, {counted(len(dataset.corpus), 'document')}"))
        facts.append(("Fingerprint of the dataset", dataset.fingerprint))
    elif source is None:
        absent.append("This page was made from scores alone: there are no lists, texts or judgments to show.")
    else:
        absent.append(
            "This page was made without a dataset: queries and documents are shown by their ids. "
            "`comparison.to_html(path, dataset)` shows their texts."
        )
    costs = []
    made: dict[str, tuple[str, str]] = {}
    if source is not None:
        held = {name: source.run(name) for name in comparison.runs}
        facts.append(("Fingerprint of the judgments", source.qrels.fingerprint))
        made = {name: ("", run.fingerprint) for name, run in held.items()}
        for name, run in held.items():
            taken = list((run.seconds or {}).values())
            costs.append({"run": name, "mean_seconds": sum(taken) / len(taken) if taken else None})
    plan = comparison.plan
    facts.append(("Test", f"{plan.test}, correction {plan.correction}, seed {plan.seed}"))
    return Subject(
        comparison=comparison,
        title=dataset.name if dataset is not None else "Comparison",
        queries=queries,
        columns=columns,
        documents=documents,
        costs=costs,
        made=made,
        facts=facts,
        command='comparison.to_html("report.html")',
        absent=tuple(absent),
    )


class Documents(Mapping[str, tuple[str, str]]):
    """Title and text by id, of a dataset's documents, read only when asked for."""

    def __init__(self, dataset: Dataset) -> None:
        self._corpus = dataset.corpus

    def __getitem__(self, doc_id: str) -> tuple[str, str]:
        return self._corpus.titles[doc_id], self._corpus.texts[doc_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._corpus)

    def __len__(self) -> int:
        return len(self._corpus)


SCRIPTS = (
    "dom.js",
    "text.js",
    "state.js",
    "data.js",
    "weights.js",
    "selection.js",
    "theme.js",
    "leaderboard.js",
    "lists.js",
    "moves.js",
    "query.js",
    "queries.js",
    "charts.js",
    "main.js",
)
"""The page's modules, each after those it imports."""

_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z-]+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |const |class )", re.MULTILINE)
_UNSAFE = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
    "\x7f": "\\u007f",
}
_ESCAPED = re.compile("[<>&\u2028\u2029\x7f\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def embedded_json(data: Any) -> str:
    """JSON that can stand in a script element: no character of it can close the element.

    >>> embedded_json({"text": "</script><b>&"})
    '{"text":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e\\\\u0026"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _ESCAPED.sub(lambda found: _UNSAFE.get(found[0]) or f"\\u{ord(found[0]):04x}", text)


def packed(values: Any, kind: str) -> str:
    """Numbers as base64 of little-endian bytes, which a page reads far faster than JSON.

    >>> packed([1, 2], "u1")
    'AQI='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode()


def visible(text: str) -> str:
    """Text with control characters as pictures of themselves, so that a page can hold them.

    >>> visible("a\\x00b")
    'a␀b'
    """
    return _CONTROLS.sub(lambda found: "\u2421" if found[0] == "\x7f" else chr(0x2400 + ord(found[0])), text)


def page_script() -> str:
    """The page's modules as one: they import nothing from elsewhere, so their imports can go."""
    folder = files("steelyard.report.page") / "scripts"
    parts = [(folder / name).read_text("utf-8") for name in SCRIPTS]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts)


def page_style() -> str:
    """The page's style sheet."""
    return (files("steelyard.report.page") / "page.css").read_text("utf-8")


def script_hash(script: str) -> str:
    """The hash by which a page's own policy knows a script it may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
