"""What a worker counts beside the values: coverage, faults, and examples for the messages. Tallies add up."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from itertools import compress
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from steelyard.alignment.alignment import Aligned, Alignment, align
from steelyard.alignment.hits import Floats
from steelyard.coverage import Levels, coverage_of, lowest_positive_grade
from steelyard.errors import SHOWN_PROBLEMS, SteelyardError
from steelyard.evaluation import deepest_cutoff, query_values
from steelyard.measures.compute import QrelsTraits
from steelyard.qrels import Qrels, disagreement
from steelyard.run import Run
from steelyard.spark.plan import Task
from steelyard.spark.rows import Fault, Kind, in_words

SHOWN_QUERIES = 3
"""How many queries of the run and of the judgments are named where they share none."""
SHOWN_DOCUMENTS = 100
"""How many documents of either are looked at where none that came back is judged."""


@dataclass(frozen=True)
class Tally:
    """Counts over some queries. A query in an example goes with its place among the judgments.

    `counts` are Coverage's; `longest` the longest list; `held` what the judgments hold;
    `lowest_grade` the lowest grade above 0; `absent` the first queries that the run
    lacks, `judged` the first judged ones, `run_only` the first that only the run has; `returned` and `known` documents
    that came back, and judged ones, of queries without a judged document that came back; `repeated`
    the first query with a repeated document, and that document; `error` the class and the words of
    an error that a measure raised.
    """

    counts: dict[str, int] = field(default_factory=dict)
    longest: int = 0
    held: QrelsTraits = field(default_factory=QrelsTraits)
    lowest_grade: float = math.inf
    faults: dict[Kind, Fault] = field(default_factory=dict)
    absent: list[tuple[int, str]] = field(default_factory=list)
    judged: list[tuple[int, str]] = field(default_factory=list)
    run_only: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    repeated: tuple[int, str, str] | None = None
    error: tuple[str, str] | None = None

    def __add__(self, other: Tally) -> Tally:
        counts, faults = dict(self.counts), dict(self.faults)
        for name, count in other.counts.items():
            counts[name] = counts.get(name, 0) + count
        for kind, fault in other.faults.items():
            faults[kind] = faults[kind] + fault if kind in faults else fault
        return Tally(
            counts=counts,
            longest=max(self.longest, other.longest),
            held=self.held + other.held,
            lowest_grade=min(self.lowest_grade, other.lowest_grade),
            faults=faults,
            absent=sorted([*self.absent, *other.absent])[:SHOWN_PROBLEMS],
            judged=sorted([*self.judged, *other.judged])[:SHOWN_QUERIES],
            run_only=sorted([*self.run_only, *other.run_only])[:SHOWN_QUERIES],
            returned=sorted([*self.returned, *other.returned])[:SHOWN_DOCUMENTS],
            known=sorted([*self.known, *other.known])[:SHOWN_DOCUMENTS],
            repeated=min((one.repeated for one in (self, other) if one.repeated), default=None),
            error=min((one.error for one in (self, other) if one.error), default=None),
        )

    def to_text(self) -> str:
        """As it travels: JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Tally:
        """What `to_text` gave."""
        read = json.loads(text)
        return cls(
            counts=read["counts"],
            longest=read["longest"],
            held=QrelsTraits(**read["held"]),
            lowest_grade=read["lowest_grade"],
            faults={Kind(int(kind)): Fault(**fault) for kind, fault in read["faults"].items()},
            absent=[(place, query) for place, query in read["absent"]],
            judged=[(place, query) for place, query in read["judged"]],
            run_only=read["run_only"],
            returned=read["returned"],
            known=read["known"],
            repeated=tuple(read["repeated"]) if read["repeated"] else None,
            error=tuple(read["error"]) if read["error"] else None,
        )


def total(texts: list[str]) -> Tally:
    """All tallies in one."""
    return reduce(Tally.__add__, map(Tally.from_text, texts), Tally())


def whole_queries(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pl.DataFrame]:
    """Rows that are sorted by query, put together into lots of about `size`, cut where a query ends."""
    held: list[pl.DataFrame] = []
    count, enough = 0, size
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(pl.DataFrame(pl.from_arrow(batch)))
        count += batch.num_rows
        if count < enough:
            continue
        held = [pl.concat(held, rechunk=True)]
        query = pl.col("query_id")
        last: int = held[0].select(query.eq_missing(query.last()).arg_max()).item()
        if last:
            rest = held[0][last:]
            yield held.pop()[:last]
            held = [rest]
        # A query that does not end is not looked through again with every batch that comes.
        count, enough = count - last, max(size, 2 * (count - last))
    if held:
        # Only what is given is kept: a long list is not held twice.
        held = [pl.concat(held, rechunk=True)]
        yield held.pop()


def measured(rows: pl.DataFrame, task: Task) -> Iterator[pa.RecordBatch]:
    """The values of some whole queries, then their tally."""
    judgments = rows.filter(pl.col("kind") == Kind.JUDGMENT).sort("row")
    faults = _faults(rows.filter(pl.col("kind") > Kind.LISTED), judgments)
    if faults:
        yield _tallied(Tally(faults=faults), task)
        return
    try:
        aligned, repeated = _aligned(judgments, rows.filter(pl.col("kind") == Kind.LISTED), task)
        a = task.options.lists(aligned.alignment)
        queries, matrix = query_values(a, task.wanted, task.options)
        levels = Levels.of(task.wanted, task.options.rel)
        coverage = coverage_of(aligned, a, task.options, levels, deepest_cutoff(task.wanted))
    except SteelyardError as error:
        yield _tallied(Tally(error=(type(error).__name__, str(error))), task)
        return
    place = dict(judgments.unique("query_id", keep="first").select("query_id", "row").iter_rows())
    asked = [(place[query], query) for query in a.queries]
    returned, known = _unknown_documents(rows, aligned.alignment)
    yield _values([place[query] for query in queries], queries, matrix)
    yield _tallied(
        Tally(
            counts=coverage.counts(),
            longest=int(a.retrieved.max(initial=0)),
            held=QrelsTraits.of(a, task.wanted),
            lowest_grade=lowest_positive_grade(a),
            absent=list(compress(asked, (~a.answered).tolist()))[:SHOWN_PROBLEMS],
            judged=asked[:SHOWN_QUERIES],
            run_only=sorted(aligned.run_only_examples),
            returned=returned,
            known=known,
            repeated=None if repeated is None else (place[repeated[0]], *repeated),
        ),
        task,
    )


def _unknown_documents(rows: pl.DataFrame, a: Alignment) -> tuple[list[str], list[str]]:
    """Documents that came back, and judged ones, where none that came back is judged."""
    if len(a.rank) or not a.retrieved.any():
        return [], []
    named = rows.filter(pl.col("doc_id").is_not_null() & pl.col("query_id").is_in(list(a.queries)))
    returned, known = (
        named.filter(pl.col("kind") == kind)["doc_id"].unique().sort().head(SHOWN_DOCUMENTS).to_list()
        for kind in (Kind.LISTED, Kind.JUDGMENT)
    )
    return returned, known


def _aligned(
    judgments: pl.DataFrame, listed: pl.DataFrame, task: Task
) -> tuple[Aligned, tuple[str, str] | None]:
    """The alignment, and where repeats are an error, the first query that has one, and the document."""
    qrels = Qrels(judgments.select("query_id", "doc_id", grade="value", target="label"))
    ranked = "rank" in listed.columns
    if ranked or not task.scored or task.options.ties == "stable":
        listed = listed.sort("row")
    columns = [pl.col("query_id"), pl.col("doc_id")]
    if task.scored:
        columns.append(pl.col("value").alias("score"))
    columns += [pl.col(name) for name in ("rank", "tokens") if name in listed.columns]
    ordering = task.options.ordering
    if ordering.duplicates == "error":
        ordering = replace(ordering, duplicates="hold")
    aligned = align(qrels, Run(listed.select(columns), rank="rank" if ranked else None), ordering, task.name)
    a = aligned.alignment
    whole = replace(a, judged=replace(a.judged, highest=task.highest))
    repeated = None
    if task.options.duplicates == "error" and len(a.repeats.query):
        query = a.queries[int(a.repeats.query[0])]
        docs = listed.filter(pl.col("query_id") == query)["doc_id"]
        repeated = query, str(docs.filter(docs.is_duplicated()).min())
    return replace(aligned, alignment=whole), repeated


def _faults(faulty: pl.DataFrame, judgments: pl.DataFrame) -> dict[Kind, Fault]:
    """What is wrong with the rows that were marked, and judgments that disagree."""
    faults: dict[Kind, Fault] = {}
    for number in faulty["kind"].unique().to_list():
        rows = faulty.filter(pl.col("kind") == number).sort("query_id", "doc_id").head(SHOWN_PROBLEMS)
        told = rows.select("query_id", "doc_id", "value", "label").iter_rows()
        count = faulty["kind"].eq(number).sum()
        faults[Kind(number)] = Fault.of(count, [in_words(Kind(number), *row) for row in told])
    pair = ["query_id", "doc_id", "label"]
    odd = (
        judgments.drop_nulls("doc_id")
        .with_columns(first=pl.col("value").first().over(pair))
        .filter(pl.col("value") != pl.col("first"))
    )
    if odd.height:
        told = odd.sort(pair).head(SHOWN_PROBLEMS).select(*pair, "first", "value").iter_rows()
        faults[Kind.DISAGREES] = Fault.of(odd.height, [disagreement(*row) for row in told])
    return faults


def _values(places: list[int], queries: Any, matrix: Floats) -> pa.RecordBatch:
    return _batch(list(queries), places, list(matrix), [None] * len(places))


def _tallied(tally: Tally, task: Task) -> pa.RecordBatch:
    return _batch([None], [None], [np.array([np.nan])] * len(task.wanted), [tally.to_text()])


def _batch(queries: list[Any], places: list[Any], matrix: list[Floats], tallies: list[Any]) -> pa.RecordBatch:
    """A value that is not there (NaN) is null."""
    columns = {"query_id": pa.array(queries, pa.string()), "place": pa.array(places, pa.int64())}
    for number, row in enumerate(matrix):
        columns[f"m{number}"] = pa.array(row, pa.float64(), mask=np.isnan(row))
    columns["tally"] = pa.array(tallies, pa.string())
    return pa.RecordBatch.from_pydict(columns)
