"""A baseline from the history of a bench: the best, the last, or a commit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.benchmark.history import read_history
from steelyard.comparison.history import Point
from steelyard.errors import InputError, did_you_mean
from steelyard.gating.inputs import GateInput, gate_input

PREFIX = "history:"


def names_history(baseline: Any) -> bool:
    """Whether a baseline is one of a history: `history:best`, `history:last` or `history:COMMIT`."""
    return isinstance(baseline, (str, Path)) and str(baseline).startswith(PREFIX)


def history_baseline(baseline: str, result: GateInput) -> GateInput:
    """The values of a point of the history, or for `best` of the best point of every run by the first measure.

    Only points with the same dataset and the same definitions as the result count. The line on the result itself,
    which its bench has just added, does not.
    """
    name = baseline.removeprefix(PREFIX)
    if result.history is None:
        raise InputError(
            f"{result.name} has no history, so there is no {baseline}; `history: FILE` in bench.yaml keeps one."
        )
    points = _comparable([Point(record) for record in read_history(result.history)], result)
    if name == "best":
        runs = {run: _best(points, run, result) for run in result.scores.runs}
    else:
        point = points[-1] if name == "last" else _at(points, name)
        runs = dict.fromkeys(result.scores.runs, point)
    made = [
        {"name": run, "per_query": _per_query(point, run, result)}
        for run, point in runs.items()
        if point is not None and point.record["runs"].get(run)
    ]
    shown = ", ".join(dict.fromkeys(point.label for point in runs.values() if point is not None))
    content = {
        "steelyard": max(str(point.record.get("steelyard", "")) for point in points),
        "dialect": result.dialect,
        "policies": result.policies,
        "judgments": result.judgments,
        "dataset": result.dataset,
        "at": list(result.cutoffs) or None,
        "measures": dict(result.definitions),
        "runs": made,
    }
    found = gate_input(content, f"{baseline} ({shown})")
    if name != "best":
        return found
    candidates = {
        run: [{key: point.values(run, key) for key in result.keys} for point in points if point.record["runs"].get(run)]
        for run in runs
    }
    return replace(found, chosen_from=candidates)


def _comparable(points: Sequence[Point], result: GateInput) -> list[Point]:
    """The points of the same dataset, with the same definitions, without that of the result itself."""
    fingerprint = (result.dataset or {}).get("fingerprint")
    found = [
        point
        for point in points
        if point.record["fingerprints"].get("dataset") == fingerprint
        and set(result.keys) <= set(map(str, point.record["measures"]))
        and all(
            point.record["measures"][key] == result.definitions[key]
            for key in result.keys
            if result.column(key).measure is not None
        )
    ]
    if found and _is_result(found[-1], result):
        found = found[:-1]
    if not found:
        raise InputError(
            f"no earlier line of {result.history} has the dataset and the definitions of {result.name}, so there is "
            "nothing to compare with. A change of the corpus, the queries, the qrels or a measure starts a new line."
        )
    return found


def _is_result(point: Point, result: GateInput) -> bool:
    """Whether a point has the values of the result."""
    queries = result.scores.queries
    return all(
        {query: value for query, value in zip(queries, row.tolist(), strict=True) if not math.isnan(value)}
        == point.values(run, key)
        for run in result.scores.runs
        for key, row in zip(result.keys, result.scores.values[result.run(run)], strict=True)
    )


def _best(points: Sequence[Point], run: str, result: GateInput) -> Point | None:
    key = result.keys[0]
    sign = -1.0 if result.column(key).better == "less" else 1.0
    measured = [point for point in points if not math.isnan(point.mean(run, key))]
    return max(measured, key=lambda point: sign * point.mean(run, key), default=None)


def _at(points: Sequence[Point], commit: str) -> Point:
    found = [point for point in points if commit and str(point.record.get("commit") or "").startswith(commit)]
    if not found:
        known = [*dict.fromkeys(point.label for point in points)][-6:]
        raise InputError(
            f"the history has no comparable line of the commit {commit!r}; expected best, last or one of "
            f"{', '.join(known)}.{did_you_mean(commit, ['best', 'last'])}"
        )
    return found[-1]


def _per_query(point: Point, run: str, result: GateInput) -> Mapping[str, dict[str, float]]:
    """The values of a run by query and measure."""
    rows: dict[str, dict[str, float]] = {}
    for key in result.keys:
        for query, value in point.values(run, key).items():
            rows.setdefault(query, {})[key] = value
    return rows
