"""The dialect atlas: one run, and its value under every tool's metric of the same name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from docs.generate.reference import code, table

import steelyard as sy
from steelyard.dialects.dialect import Dialect, dialects, filled, placeholders
from steelyard.dialects.reconcile import SAME, Reading, _RunValues, one_clause_changed
from steelyard.measures.grammar import Measure, as_text
from steelyard.retrievers import BM25

QRELS: dict[str, Any] = {
    "graded": {"a": 1, "b": 3},
    "short list": ["a", "b", "c", "d", "e"],
    "late": ["a", "b"],
    "no answer": {"a": 0},
    "missing": ["a"],
    "tied": ["a"],
}
RUN: dict[str, dict[str, float]] = {
    "graded": {"a": 3.0, "x": 2.0, "b": 1.0},
    "short list": {"a": 2.0, "x": 1.0},
    "late": {"x": 5.0, "y": 4.0, "a": 3.0, "z": 2.0, "w": 1.0},
    "no answer": {"x": 2.0, "y": 1.0},
    "tied": {"a": 1.0, "b": 1.0},
}
"""Six queries, each with one thing that tools treat differently."""

FAMILIES: dict[str, tuple[str, str]] = {
    "Precision": ("P@10", r"(average |retrieval_|context_|id_based_context_)?(p|precision)([@_. ]|$)"),
    "Recall": ("R@10", r"(average |retrieval_|id_based_context_)?(r|recall)([@_. ]|$)(?!cap)"),
    "Hit rate": ("Hit@10", r"(average )?(hit|hits|hit[_ ]rate|success|accuracy)([@_. ]|$)"),
    "MRR": ("RR@10", r"(average |retrieval_)?(mrr|rr|recip_rank)([@_. ]|$)"),
    "MAP": ("AP@10", r"(retrieval_|script_)?(map|ap|context_precision|average_precision)([@_. ]|$)(?!ia)"),
    "nDCG": ("nDCG@10", r"(average |retrieval_)?ndcg([@_. ]|$)(?!rel)"),
}
"""What people call a metric: the measure of Steelyard, and how the names of tools start."""


def atlas_example() -> str:
    """The tables of the small example."""
    return "\n\n".join(_tables(sy.Qrels(QRELS), sy.Run(RUN, name="example")))


def atlas_demo() -> str:
    """The tables of the demo data, with the first ten documents of BM25."""
    return "\n\n".join(_tables(*_demo()))


@cache
def _demo() -> tuple[sy.Qrels, sy.Run]:
    demo = sy.Dataset.read("demo")
    answers = BM25().index(demo.corpus).retrieve(list(demo.queries.values()), k=10)
    return demo.qrels, sy.Run(dict(zip(demo.queries, answers, strict=True)), name="bm25")


def _tables(qrels: sy.Qrels, run: sy.Run) -> Iterator[str]:
    values = _RunValues(qrels, run)
    for family, (ours, names) in FAMILIES.items():
        standard = Reading.of(dialects()["steelyard"], sy.parse(ours))
        grouped: dict[tuple[str, str], list[str]] = {}
        for dialect, name, measure in _names(ours, names):
            reading = Reading.of(dialect, measure)
            key = (f"{values.mean(reading):.4f}", _clauses(values, standard, reading))
            grouped.setdefault(key, []).append(f"{dialect.name} {code(name)}")
        rows = sorted(grouped.items(), key=lambda item: item[0][0], reverse=True)
        yield f"### {family}"
        yield table(
            ("value", "tools and names", "because of"), ((value, ", ".join(tools), why) for (value, why), tools in rows)
        )


def _names(ours: str, pattern: str) -> Iterator[tuple[Dialect, str, Measure]]:
    """A metric in every tool that has it, with the cutoff 10 where it takes one; names that mean the same once."""
    yield dialects()["steelyard"], ours, sy.parse(ours)
    yield dialects()["ir_measures"], ours, dialects()["ir_measures"].measure(ours)
    expression = re.compile(pattern, re.IGNORECASE)
    for dialect in dialects().values():
        names = [
            name
            for name in dialect.names
            if expression.match(name) and set(placeholders(name)) <= {"k"} and dialect.name != "ir_measures"
        ]
        with_cutoff = [name for name in names if "{k}" in name]
        seen: set[Measure] = set()
        for text in (filled(name, {"k": "10"}) for name in with_cutoff or names):
            measure = dialect.measure(text)
            if measure not in seen and measure.definition.family != "spans":  # The example has no spans.
                seen.add(measure)
                yield dialect, text, measure


def _clauses(values: _RunValues, ours: Reading, theirs: Reading) -> str:
    """The clauses of a definition that, alone, change the value; or all, if only several together do."""
    changed = {
        (name, other): values.mean(reading)
        for name, (_, other), reading in one_clause_changed(ours, theirs)
        if name != "cutoff" or other != "None"
    }
    value = values.mean(ours)
    alone = [clause for clause, mean in changed.items() if abs(mean - value) > SAME]
    if not alone and abs(values.mean(theirs) - value) > SAME:
        alone = list(changed)
    return ", ".join(
        part
        for name, other in alone
        for part in (_parameters(theirs.measure) if name == "measure" else [code(f"{name}={other}")])
    )


def _parameters(measure: Measure) -> list[str]:
    """Another measure by its name; a part of the judgments, lists or queries by the parameters that select it."""
    if measure.name != "Counted":
        return [code(str(measure))]
    given = dict(measure.given)
    inner = sy.parse(given.pop("of", "R"))
    return [code(f"{name}={as_text(value)}") for name, value in {**dict(inner.given), **given}.items()]
