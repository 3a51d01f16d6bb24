"""explain(): what a measure is, exactly, under a dialect."""

from __future__ import annotations

import re
from typing import Any

from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.measures.grammar import Measure, as_text, parse
from steelyard.measures.registry import Definition
from steelyard.options import resolve

_CLAUSE = re.compile(r"(\w+)(?:=([^:]+|\{.*?\}))?: (.*)", re.DOTALL)


class Explanation(str):
    """Text that shows itself as it is; `parts` holds what it says, piece by piece."""

    parts: dict[str, Any]

    def __new__(cls, parts: dict[str, Any]) -> Explanation:
        made = super().__new__(cls, _text(parts))
        made.parts = parts
        return made

    def __repr__(self) -> str:
        return str(self)


def explain(measure: str | Measure, dialect: str | Dialect = "steelyard") -> Explanation:
    """The definition of a measure as a dialect uses it: formula, clauses in force, edge cases, policies.

    >>> print(explain("P@5", dialect="autorag").splitlines()[0])
    P@5 in autorag is P(rel=1, denominator=retrieved)@5
    """
    spoken = dialect_of(dialect)
    meant = spoken.measure(measure)
    definition = meant.definition
    formula, clauses, edges = sections(definition)
    parts: dict[str, Any] = {
        "measure": str(measure),
        "dialect": spoken.name,
        "means": meant.spelled,
        "what": definition.headline,
        "formula": formula,
        "clauses": _in_force(meant, clauses),
    }
    if "of" in meant.parameters:
        inner = parse(meant.parameters["of"])
        told, about, _ = sections(inner.definition)
        parts["of"] = [f"{inner.name}: {inner.definition.headline}", *told, *_in_force(inner, about)]
    return Explanation(
        {
            **parts,
            "edge_cases": edges,
            "policies": [
                f"{name}={value}: {text}"
                for name, (value, text) in resolve(spoken.policies, {}).meanings().items()
            ],
            "range": _laws(definition),
            "aliases": list(definition.aliases),
            "source": definition.cites,
            "dialect_source": spoken.source,
        }
    )


def _text(parts: dict[str, Any]) -> str:
    lines = [f"{parts['measure']} in {parts['dialect']} is {parts['means']}", "", parts["what"], ""]
    lines += [f"  {line}" for line in parts["formula"]]
    for part, heading in (
        ("clauses", "Clauses in force:"),
        ("edge_cases", "Edge cases:"),
        ("policies", "Policies:"),
    ):
        if parts[part]:
            lines += ["", heading, *(f"  {line}" for line in parts[part])]
        if part == "clauses" and "of" in parts:
            lines += ["", parts["of"][0], *(f"  {line}" for line in parts["of"][1:])]
    lines += ["", parts["range"]]
    if parts["aliases"]:
        lines.append(f"Also called {', '.join(parts['aliases'])}.")
    if parts["source"]:
        lines.append(f"Source: {parts['source']}.")
    if parts["dialect_source"]:
        lines.append(f"Dialect read off: {parts['dialect_source']}.")
    return "\n".join(line.rstrip() for line in lines)


def sections(definition: Definition) -> tuple[list[str], list[tuple[str, str | None, str]], list[str]]:
    """A definition's docstring in parts: formula, clauses as (parameter, value, text), and edge cases."""
    known = {p.name for p in definition.parameters}
    formula: list[str] = []
    clauses: list[tuple[str, str | None, str]] = []
    edges: list[str] = []
    for line in _joined(definition.doc.splitlines()[1:]):
        found = _CLAUSE.fullmatch(line)
        if found and found.group(1) in known:
            clauses.append((found.group(1), found.group(2), found.group(3)))
        else:
            (edges if clauses else formula).append(line)
    return formula, clauses, edges


def _joined(lines: list[str]) -> list[str]:
    """Lines with their indented continuations joined on, blank ones left out."""
    joined: list[str] = []
    for line in lines:
        if line.startswith(" ") and joined:
            joined[-1] += " " + line.strip()
        elif line.strip():
            joined.append(line.strip())
    return joined


def _in_force(meant: Measure, clauses: list[tuple[str, str | None, str]]) -> list[str]:
    said = []
    if meant.cutoff is not None:
        what = {
            "rank": "only the first {} documents count",
            "recall": "at recall {}",
            "multiple": "at {} times R",
        }
        said.append(
            f"cutoff {as_text(meant.cutoff)}: {what[meant.definition.cutoff_kind].format(as_text(meant.cutoff))}."
        )
    elif meant.definition.cutoff == "optional":
        said.append("no cutoff: the whole list that came back counts.")
    for name, value in meant.parameters.items():
        for parameter, choice, text in clauses:
            table = isinstance(value, tuple) and choice is not None and choice.startswith("{")
            if parameter == name and (choice is None or choice == as_text(value) or table):
                said.append(f"{name}={as_text(value)}: {text}")
    return said


def _laws(definition: Definition) -> str:
    better = {
        "more": "More is better.",
        "less": "Less is better.",
        "neither": "A count, neither good nor bad.",
    }
    summed = {
        "mean": "averaged over queries",
        "sum": "summed over queries",
        "geometric": "geometric mean over queries (values under 0.00001 count as 0.00001)",
    }
    how = summed.get(definition.summary, f"summed up over queries as `{definition.summary}` says")
    return (
        f"Range {as_text(definition.low)} to {as_text(definition.high)}; {how}. {better[definition.better]}"
    )
