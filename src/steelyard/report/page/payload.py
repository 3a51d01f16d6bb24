"""What a page's scripts read: the numbers of every query, packed, and what they need to weigh them anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.comparison.board import Board
from steelyard.report.charts.rows import Shown, shown_measures, slice_columns
from steelyard.report.page.embedding import packed
from steelyard.report.page.failures import Look, low_cutoff
from steelyard.report.page.subject import Subject
from steelyard.report.page.view import is_time
from steelyard.statistics.quantiles import student_quantile

QUERY_TEXT_LIMIT = 400
"""Characters of a query that the table shows."""


@dataclass(frozen=True)
class Kept:
    """The queries a page has room for, as places in the comparison's first board, in its order."""

    places: tuple[int, ...]
    everything: bool


def summary_of(subject: Subject, looks: Sequence[Look], kept: Kept) -> dict[str, Any]:
    """The numbers of the kept queries: values, failures, slices; and what the sliders weigh."""
    comparison = subject.comparison
    board = comparison.boards[0]
    places = np.array(kept.places, dtype=np.int64)
    names = [board.queries[place] for place in kept.places]
    measures = shown_measures(comparison)
    return {
        "title": subject.title,
        "runs": list(comparison.runs),
        "baseline": -1
        if comparison.plan.baseline is None
        else comparison.runs.index(comparison.plan.baseline),
        "leader": comparison.runs.index(comparison.standings[0].run),
        "second": comparison.runs.index(comparison.standings[1].run) if len(comparison.runs) > 1 else -1,
        "measures": [
            {"label": each.label, "better": each.column.better, "unit": "s" if is_time(each.column) else ""}
            for each in measures
        ],
        "values": packed(_values(measures, places), "f4"),
        "queries": names,
        "texts": [_cut(subject.queries.get(name, ""), kept.everything) for name in names],
        "cutoff": low_cutoff(comparison),
        **_failures(looks, names),
        "slices": _slices(subject, names),
        "boards": [
            _weighable(components, board.k, comparison.weights or {})
            for components, board in zip(comparison.components, comparison.boards, strict=True)
            if components is not None
        ],
    }


def _values(measures: Sequence[Shown], places: Ints) -> Floats:
    """Measures x runs x queries."""
    found = [each.values[:, places] for each in measures]
    return np.stack(found) if found else np.zeros((0, 0, 0))


def _failures(looks: Sequence[Look], names: Sequence[str]) -> dict[str, Any]:
    """Each run's failures and first relevant rank by query; nothing where only scores are known."""
    if not looks:
        return {"failures": None, "first": None}
    place = {query: number for number, query in enumerate(looks[0].alignment.queries)}
    chosen = np.array([place[name] for name in names], dtype=np.int64)
    return {
        "failures": packed(np.stack([each.failures[chosen] for each in looks]), "u1"),
        "first": packed(np.stack([each.first[chosen] for each in looks]), "u2"),
    }


def _slices(subject: Subject, names: Sequence[str]) -> list[dict[str, Any]]:
    """The columns that queries can be filtered by: values, and which of them each query has."""
    made = []
    for column, values in slice_columns(subject).items():
        texts = [str(values[name]) if values.get(name) is not None else "not given" for name in names]
        known = sorted(set(texts))
        place = {text: number for number, text in enumerate(known)}
        made.append(
            {"column": column, "values": known, "codes": packed([place[text] for text in texts], "u1")}
        )
    return made


def _weighable(board: Board, k: int | None, weights: Mapping[str, float]) -> dict[str, Any]:
    """What is needed to weigh the components anew: their means, and how they vary together over queries.

    Only queries with a value of every component count, as in the composite itself. Where less is
    better the values are turned round.
    """
    turned = np.stack(
        [
            1 - values if column.better == "less" else values
            for column, values in zip(board.columns, _by_column(board), strict=True)
        ],
        axis=1,
    )
    whole: Bools = np.asarray(~np.isnan(turned).any(axis=1))
    means = [
        (parts[:, there].mean(axis=1) if there.any() else np.zeros(len(parts))).tolist()
        for parts, there in zip(turned, whole, strict=True)
    ]
    everywhere = whole.all(axis=0)
    size = int(everywhere.sum())
    flat = turned[:, :, everywhere].reshape(-1, size)
    spread = np.cov(flat).reshape(len(flat), len(flat)) if size > 1 else np.zeros((len(flat), len(flat)))
    return {
        "k": k,
        "keys": [column.key for column in board.columns],
        "less": [column.better == "less" for column in board.columns],
        "weights": [weights[column.key] for column in board.columns],
        "means": means,
        "covariance": packed(spread, "f8"),
        "queries": size,
        "reach": student_quantile(0.975, size - 1) if size > 1 else 0.0,
    }


def _by_column(board: Board) -> list[Floats]:
    return [board.of(column.key) for column in board.columns]


def _cut(text: str, whole: bool) -> str:
    return text if whole or len(text) <= QUERY_TEXT_LIMIT else f"{text[:QUERY_TEXT_LIMIT]}…"
