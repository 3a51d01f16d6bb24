"""explain(): the exact definition of a measure in a dialect."""

from __future__ import annotations

import re
from typing import Any

from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.measures.grammar import Measure, as_text
from steelyard.measures.registry import SHARED_CLAUSES, TARGET_CLAUSES, Definition

_CLAUSE = re.compile(r"(\w+)(?:=(\{.*?\}|[^:]+))?: (.*)", re.DOTALL)
_SUMMED = {
    "mean": "averaged over queries",
    "sum": "summed over queries",
    "geometric": "geometric mean over queries (values below 0.00001 count as 0.00001)",
}


class Explanation(str):
    """An explanation as text; `parts` has its parts by name."""

    parts: dict[str, Any]

    def __new__(cls, parts: dict[str, Any]) -> Explanation:
        explanation = super().__new__(cls, _text(parts))
        explanation.parts = parts
        return explanation

    def __repr__(self) -> str:
        return str(self)


def explain(measure: str | Measure, dialect: str | Dialect = "steelyard") -> Explanation:
    """The definition of a measure in a dialect: formula, parameters, edge cases, policies.

    >>> print(explain("P@5", dialect="autorag").splitlines()[0])
    P@5 in autorag is P(rel=1, denominator=retrieved)@5
    """
    chosen = dialect_of(dialect)
    parsed = chosen.measure(measure)
    definition = parsed.definition
    formula, clauses, edges = sections(definition)
    of = {}
    if "of" in parsed.parameters:
        inner = parsed.inner
        inner_formula, inner_clauses, _ = sections(inner.definition)
        of = {"of": [f"{inner.name}: {inner.definition.headline}", *inner_formula, *_in_force(inner, inner_clauses)]}
    policies = chosen.options_of(parsed).meanings().items()
    better = {"more": "Higher is better.", "less": "Lower is better.", "neither": "A count, neither good nor bad."}
    low, high = map(as_text, parsed.range)
    how = _SUMMED.get(definition.summary, f"aggregated over queries according to `{definition.summary}`")
    return Explanation(
        {
            "measure": str(measure),
            "dialect": chosen.name,
            "means": parsed.spelled,
            "what": definition.headline,
            "formula": formula,
            "clauses": _in_force(parsed, clauses),
            **of,
            "edge_cases": edges,
            "policies": [f"{name}={value}: {text}" for name, (value, text) in policies],
            "range": f"Range {low} to {high}; {how}. {better[definition.better]}",
            "aliases": list(definition.aliases),
            "source": definition.cites,
            "dialect_source": chosen.source,
        }
    )


def _text(parts: dict[str, Any]) -> str:
    lines = [f"{parts['measure']} in {parts['dialect']} is {parts['means']}", "", parts["what"], ""]
    lines += [f"  {line}" for line in parts["formula"]]
    for part, heading in (("clauses", "Parameters:"), ("edge_cases", "Edge cases:"), ("policies", "Policies:")):
        if parts[part]:
            lines += ["", heading, *(f"  {line}" for line in parts[part])]
        if part == "clauses" and "of" in parts:
            lines += ["", parts["of"][0], *(f"  {line}" for line in parts["of"][1:])]
    lines += ["", parts["range"]]
    last = {"Also called": ", ".join(parts["aliases"]), "Source:": parts["source"]}
    last["Source of the dialect:"] = parts["dialect_source"]
    lines += [f"{start} {text}." for start, text in last.items() if text]
    return "\n".join(line.rstrip() for line in lines)


def sections(definition: Definition) -> tuple[list[str], list[tuple[str, str | None, str]], list[str]]:
    """The parts of the docstring of a definition: formula, clauses as (parameter, value, text), and edge cases.

    The formula is the paragraph after the headline. Parameters without a clause of their own have the shared one.
    """
    parameters = {p.name for p in definition.parameters}
    formula: list[str] = []
    clauses: list[tuple[str, str | None, str]] = []
    edges: list[str] = []
    for number, paragraph in enumerate(definition.doc.split("\n\n")[1:]):
        for line in _joined(paragraph.splitlines()):
            clause = _CLAUSE.fullmatch(line)
            if clause and clause[1] in parameters:
                clauses.append((clause[1], clause[2], clause[3]))
            else:
                (edges if clauses or number else formula).append(line)
    for shared in (TARGET_CLAUSES if definition.over_targets else "", SHARED_CLAUSES):
        described = {name for name, _, _ in clauses}
        lines = map(_CLAUSE.fullmatch, _joined(shared.splitlines()))
        clauses += [(line[1], line[2], line[3]) for line in lines if line and line[1] in parameters - described]
    return formula, clauses, edges


def _joined(lines: list[str]) -> list[str]:
    """Lines joined with their indented continuations, without blank lines."""
    joined: list[str] = []
    for line in lines:
        if line.startswith(" ") and joined:
            joined[-1] += " " + line.strip()
        elif line.strip():
            joined.append(line.strip())
    return joined


def _in_force(measure: Measure, clauses: list[tuple[str, str | None, str]]) -> list[str]:
    """The clauses that apply to a measure with its parameters."""
    lines = []
    if measure.cutoff is not None:
        what = {"rank": "only the first {} documents count", "recall": "at recall {}", "multiple": "at {} times R"}
        cutoff = as_text(measure.cutoff)
        lines.append(f"cutoff {cutoff}: {what[measure.definition.cutoff_kind].format(cutoff)}.")
    elif measure.definition.cutoff == "optional":
        lines.append("no cutoff: the whole retrieved list counts.")
    for name, value in measure.parameters.items():
        for parameter, choice, text in clauses:
            table = isinstance(value, tuple) and choice is not None and choice.startswith("{")
            if parameter == name and (choice is None or choice == as_text(value) or table):
                lines.append(f"{name}={as_text(value)}: {text}")
    return lines
