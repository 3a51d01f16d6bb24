"""Comparison of runs without qrels: how far their lists agree, not which run is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from steelyard.checks import whole_number
from steelyard.errors import InputError, PolicyError
from steelyard.io.files import distinct_names
from steelyard.lazy import polars as pl
from steelyard.report.documents import Document, Documented, plain_values
from steelyard.report.tables import Cell, Table
from steelyard.run import Run
from steelyard.version import __version__

RBO_P = 0.9  # The persistence of rank-biased overlap: the first ten ranks have 86% of its weight.
NO_QRELS = "No qrels: the runs cannot be ranked. The tables show how far their lists agree."
POOL_ADVICE = " `steelyard pool RUN RUN -o pool.jsonl` selects documents to judge."


@dataclass(frozen=True)
class RunListing:
    """The lists of one run: queries with a list, the mean number of documents, the median latency if known."""

    run: str
    queries: int
    documents: float
    latency: float | None


@dataclass(frozen=True)
class ListPair:
    """How far the lists of two runs agree, each value a mean over the queries that both have.

    overlap: share of the first `depth` documents that both return. rbo: rank-biased overlap (p = 0.9). tau:
    Kendall's tau of the documents that both return in the first `depth` (NaN where they share fewer than two).
    same_first: share of queries with the same first document.
    """

    run: str
    other: str
    queries: int
    overlap: float
    rbo: float
    tau: float
    same_first: float


@dataclass(frozen=True, eq=False, repr=False)
class ListComparison(Documented):
    """The result of `compare` without qrels."""

    runs: tuple[RunListing, ...]
    tested: tuple[ListPair, ...]
    depth: int
    advice: str = POOL_ADVICE

    @property
    def verdict(self) -> str:
        """What is known without qrels."""
        compared = [pair for pair in self.tested if pair.queries]
        if not compared:
            return (NO_QRELS if len(self.runs) > 1 else "No qrels: the run cannot be evaluated.") + self.advice
        least = min(compared, key=lambda pair: pair.overlap)
        most = ", the least of all pairs" if len(compared) > 1 else ""
        shared = f"{least.overlap:.0%} of their first {self.depth} documents"
        return f"{least.run} and {least.other} share {shared}{most}. {NO_QRELS}{self.advice}"

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """A polars frame, one row per pair of runs."""
        return pl.DataFrame([asdict(pair) for pair in self.tested])

    def tables(self) -> list[Table]:
        """The runs, and the pairs."""
        timed = any(row.latency is not None for row in self.runs)
        columns = ["run", "queries", "documents per query", "median latency ms"][: 4 if timed else 3]
        rows: list[list[Cell]] = []
        for row in self.runs:
            latency = None if row.latency is None else row.latency * 1e3
            rows.append([row.run, row.queries, row.documents, *([latency] if timed else [])])
        heads = ["run", "other run", "queries", f"overlap@{self.depth}", "RBO", "tau", "same first"]
        pairs: list[list[Cell]] = [list(vars(pair).values()) for pair in self.tested]
        return [Table(columns, rows), *([Table(heads, pairs, keys=2)] if pairs else [])]

    def document(self) -> Document:
        """The verdict and the tables."""
        return Document("Lists of runs", self.verdict, self.tables())

    def data_table(self) -> Table:
        """The pairs, or the only run."""
        return self.tables()[-1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        return {
            "steelyard": __version__,
            "qrels": None,
            "depth": self.depth,
            "rbo_p": RBO_P,
            "runs": plain_values([asdict(row) for row in self.runs]),
            "pairs": plain_values([asdict(pair) for pair in self.tested]),
        }


def compare_lists(
    runs: Mapping[str, Any] | Iterable[Any], depth: int = 10, *, require_shared: bool = True
) -> ListComparison:
    """Compare the lists of runs without qrels.

    Two runs without a common query are an error, unless `require_shared` is False; then their values are NaN.

    >>> result = compare_lists({"a": {"q": ["x", "y"]}, "b": {"q": ["x", "z"]}}, depth=2)
    >>> result.tested[0].overlap, result.tested[0].same_first
    (0.5, 1.0)
    """
    depth = whole_number("depth", depth, 1, error=PolicyError)
    given = runs.items() if isinstance(runs, Mapping) else ((None, run) for run in runs)
    named = [Run.of(run, name=name) for name, run in given]
    if not named:
        raise InputError("no run to compare; expected at least one.")
    names = distinct_names([run.name for run in named], [None] * len(named))
    lists = dict(zip(names, map(_lists, named), strict=True))
    rows = []
    for (name, answers), run in zip(lists.items(), named, strict=True):
        documents = float(np.mean([len(docs) for docs in answers.values()])) if answers else 0.0
        latency = float(np.median(list(run.seconds.values()))) if run.seconds else None
        rows.append(RunListing(name, len(answers), documents, latency))
    pairs = []
    for one, two in combinations(names, 2):
        shared = [query for query in lists[one] if query in lists[two]]
        if require_shared and not shared:
            advice = "check that they answer the same queries"
            raise InputError(f"runs {one!r} and {two!r} have no query in common; {advice}.")
        both = [(lists[one][query], lists[two][query]) for query in shared]
        pairs.append(ListPair(one, two, len(shared), *_agreement(both, depth)))
    return ListComparison(tuple(rows), tuple(pairs), depth)


def _lists(run: Run) -> dict[str, list[str]]:
    """The documents of each query in rank order, each once."""
    frame = run.frame.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    grouped = frame.group_by("query_id", maintain_order=True).agg("doc_id")
    answers = {query: [doc for doc in docs if doc is not None] for query, docs in grouped.iter_rows()}
    return {query: answers.get(query, []) for query in run.queries}


def _agreement(lists: Sequence[tuple[Sequence[str], Sequence[str]]], depth: int) -> list[float]:
    """The mean overlap, RBO, tau, and share of equal first documents of pairs of lists; NaN without any."""
    from steelyard.statistics.agreement import kendall_tau, rbo_lists

    if not lists:
        return [float("nan")] * 4
    values = []
    for one, two in lists:
        a, b = one[:depth], two[:depth]
        longest = max(len(a), len(b))
        overlap = len(set(a) & set(b)) / longest if longest else 1.0
        first = float(a[:1] == b[:1])
        place = {doc: rank for rank, doc in enumerate(b)}
        ranks = [place[doc] for doc in a if doc in place]
        tau = float(kendall_tau([range(len(ranks))], [ranks])[0]) if len(ranks) > 1 else float("nan")
        values.append((overlap, rbo_lists(one, two, RBO_P), tau, first))
    table = np.array(values)
    means = table.mean(axis=0) if np.isnan(table[:, 2]).all() else np.nanmean(table, axis=0)
    return [float(mean) for mean in means]
