"""Slices: the comparison within each group of queries, and slices whose ranking differs from the overall one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.comparison.leaderboard import order_of
from steelyard.comparison.scores import ScoreTable, read_frame
from steelyard.errors import InputError, did_you_mean
from steelyard.frames import as_polars
from steelyard.io.columns import find_name
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.report.documents import plain_values
from steelyard.statistics import tally

COMPLEXITY = "complexity"  # The derived slice: simple up to 3 relevant documents, medium 4 to 6, complex above.
FEW = 30  # A slice with fewer queries than this is small: a different ranking there may be noise.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Reversal:
    """Two runs whose order in a slice differs from the overall order: `above` is better here, `below` overall.

    `pairs` is the number of pairs of runs that are reversed here; this is the highest one overall.
    """

    above: str
    below: str
    difference: float
    wins: int
    losses: int
    pairs: int


@dataclass(frozen=True)
class Slice:
    """The queries with one value of a column: every run's means on them, and the runs best first."""

    column: str
    value: str
    queries: int
    means: dict[str, dict[str, float]]
    order: tuple[str, ...]
    reverses: Reversal | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        return dict(plain_values(asdict(self)))


def complexity(qrels: Qrels, rel: float | None = None) -> dict[str, str]:
    """Each query's complexity, from its number of relevant documents: by `rel`, the scale of the qrels, or above 0.

    >>> complexity(Qrels({"q1": ["a"], "q2": list("abcd"), "q3": list("abcdefg")}))
    {'q1': 'simple', 'q2': 'medium', 'q3': 'complex'}
    """
    level = qrels.relevant_from if rel is None else rel
    relevant = qrels.grades > 0 if level is None else qrels.grades >= level
    counts = np.bincount(qrels.doc_query[relevant], minlength=len(qrels.judged.query_ids))
    names = np.where(counts <= 3, "simple", np.where(counts <= 6, "medium", "complex"))
    return dict(zip(qrels.judged.query_ids, names.tolist(), strict=True))


def slices_of(table: ScoreTable, column: str, values: Mapping[str, object]) -> list[Slice]:
    """One slice per value of a column; queries without a value are in the slice 'not given'."""
    labels = slice_labels(table.queries, values)
    if set(labels) == {"not given"}:
        raise InputError(f"no query has a value in column {column!r}; check that the query ids are those of the qrels.")
    overall = order_of(table)
    slices, keys = [], [measure.key for measure in table.columns]
    for value in in_order(labels):
        part = table.where(np.array([label == value for label in labels]))
        rows = (dict(zip(keys, row, strict=True)) for row in part.means().tolist())
        means = dict(zip(table.runs, rows, strict=True))
        order = tuple(table.runs[run] for run in order_of(part))
        slices.append(Slice(column, value, len(part.queries), means, order, _reversal(part, overall)))
    return slices


def slice_labels(queries: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """The value of every query as text; 'not given' where it has none."""
    return [str(values[query]) if values.get(query) is not None else "not given" for query in queries]


def in_order(labels: Sequence[str]) -> list[str]:
    """The different labels: complexity from simple to complex, anything else by name, 'not given' last."""
    rank = {size: number for number, size in enumerate(("simple", "medium", "complex"))}
    return sorted(set(labels), key=lambda label: (label == "not given", rank.get(label, 0), label))


def _reversal(part: ScoreTable, overall: Sequence[int]) -> Reversal | None:
    """The highest pair of runs whose order in the slice differs from the overall order by more than rounding."""
    first = part.columns[0]
    values = part.compared(first.key)
    means = [first.mean(row) for row in values]
    worth = first.worth(np.array(means))
    pairs = [(worse, better) for better, worse in combinations(overall, 2) if worth[worse] - worth[better] > _ROUNDING]
    if not pairs:
        return None
    above, below = pairs[0]
    counts = tally(first.worth(values[above] - values[below]))
    difference = means[above] - means[below]
    return Reversal(part.runs[above], part.runs[below], difference, counts.wins, counts.losses, len(pairs))


def reversal_notes(slices: Sequence[Slice], measure: str, runs: int) -> list[Note]:
    """A note on the slices where the ranking differs from the overall one, with counts."""
    reversed_in = [(cut, cut.reverses) for cut in slices if cut.reverses is not None]
    if not reversed_in:
        return []
    rows = [
        (cut.value, r.above, r.below, r.difference, cut.queries, r.wins, r.losses, r.pairs) for cut, r in reversed_in
    ]
    values = {"measure": measure, "column": slices[0].column, "slices": rows, "pairs": runs * (runs - 1) // 2}
    return [note("ranking-differs-in-slices", **values, few=any(cut.queries < FEW for cut, _ in reversed_in))]


def column_values(source: object, column: str, otherwise: Mapping[str, object] | None = None) -> dict[str, object]:
    """A column of the queries by name: from a mapping of query id to value or row, or a frame, or a file.

    Where there is no such column: `otherwise`, or an error where that is None.
    """
    if isinstance(source, Mapping):
        if column in source and isinstance(source[column], Mapping):
            return dict(source[column])
        rows = [row for row in source.values() if isinstance(row, Mapping)]
        if not rows:
            return dict(source)
        names = list(dict.fromkeys(key for row in rows for key in row))
        if column in names:
            return {query: row.get(column) for query, row in source.items()}
    else:
        frame = read_frame(Path(source), "the queries") if isinstance(source, (str, Path)) else as_polars(source)
        names = frame.columns
        ids = next((name for name in ("_id", "id") if name in names), None) or find_name(names, "query_id")
        assert ids is not None
        if column in names:
            return dict(zip(frame[ids].cast(pl.String).to_list(), frame[column].to_list(), strict=True))
    if otherwise is not None:
        return dict(otherwise)
    raise InputError(
        f"the queries have no column {column!r}; expected one of {', '.join(names)}.{did_you_mean(column, names)}"
    )
