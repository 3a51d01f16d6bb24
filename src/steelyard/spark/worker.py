"""The work of a Spark worker: it evaluates blocks of queries, counts what coverage and errors need, and adds values."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import partial, reduce
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from steelyard.alignment.alignment import Aligned, Alignment, align
from steelyard.alignment.hits import Floats, Ordering
from steelyard.coverage import Levels, coverage_of
from steelyard.errors import SHOWN_PROBLEMS, SteelyardError
from steelyard.evaluation import Lengths, deepest_cutoff, query_values
from steelyard.lazy import polars as pl
from steelyard.measures.compute import QrelsTraits, geometric, how_summarised, logarithms
from steelyard.measures.grammar import Measure
from steelyard.options import Options
from steelyard.qrels import Qrels, disagreement
from steelyard.run import Run
from steelyard.spark.frames import collect, map_in_arrow
from steelyard.spark.rows import Fault, Kind, fault_text

ROWS = 1 << 18  # Rows that a worker evaluates at a time: whole queries with about this many rows, or one longer query.


@dataclass(frozen=True)
class EvaluationTask:
    """The function that Spark calls on every worker, with the measures and the options.

    own_options: those of measures that order equal scores in another way. scored: whether the run has scores.
    highest: the highest grade of the qrels.
    """

    measures: dict[str, Measure]
    options: Options
    own_options: dict[str, Options]
    name: str
    scored: bool
    highest: float
    rows: int = ROWS

    @property
    def schema(self) -> str:
        """The columns of the result: a query, its position in the qrels and its values; or a tally."""
        values = "".join(f", m{number} double" for number in range(len(self.measures)))
        return f"query_id string, place long{values}, tally string"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The values of every query, and one tally per block of queries. The rows are sorted by query."""
        # Spark starts one worker per core, so a worker uses one thread. It is limited before polars is imported.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        for rows in query_blocks(batches, self.rows):
            yield from evaluate_rows(rows, self)


SHOWN_QUERIES = 3  # Queries of the run and of the qrels that are named if they share none.
SHOWN_DOCUMENTS = 100  # Documents of the run and of the qrels that are compared if no retrieved document is judged.


@dataclass(frozen=True)
class EvaluationTally:
    """Counts and examples of some queries. The tallies of two sets of queries add up to that of both.

    counts: the counts of Coverage. lengths: the lengths of the lists. traits: the properties of the qrels that
    measures need. missing: the first queries that are not in the run. judged: the first judged queries. run_only: the
    first queries that only the run has. retrieved, known: retrieved and judged documents of queries without a judged
    document in their list. repeated: the first query with a repeated document, and that document. error: the class and
    the message of an error that a measure raised. Examples of queries are (position in the qrels, query).
    """

    counts: dict[str, int] = field(default_factory=dict)
    lengths: Lengths = field(default_factory=Lengths)
    traits: QrelsTraits = field(default_factory=QrelsTraits)
    faults: dict[Kind, Fault] = field(default_factory=dict)
    missing: list[tuple[int, str]] = field(default_factory=list)
    judged: list[tuple[int, str]] = field(default_factory=list)
    run_only: list[str] = field(default_factory=list)
    retrieved: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    repeated: tuple[int, str, str] | None = None
    error: tuple[str, str] | None = None

    def __add__(self, other: EvaluationTally) -> EvaluationTally:
        faults = dict(self.faults)
        for kind, fault in other.faults.items():
            faults[kind] = faults[kind] + fault if kind in faults else fault
        return EvaluationTally(
            counts={name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in self.counts | other.counts},
            lengths=self.lengths + other.lengths,
            traits=self.traits + other.traits,
            faults=faults,
            missing=sorted([*self.missing, *other.missing])[:SHOWN_PROBLEMS],
            judged=sorted([*self.judged, *other.judged])[:SHOWN_QUERIES],
            run_only=sorted([*self.run_only, *other.run_only])[:SHOWN_QUERIES],
            retrieved=sorted([*self.retrieved, *other.retrieved])[:SHOWN_DOCUMENTS],
            known=sorted([*self.known, *other.known])[:SHOWN_DOCUMENTS],
            repeated=min((one.repeated for one in (self, other) if one.repeated), default=None),
            error=min((one.error for one in (self, other) if one.error), default=None),
        )

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> EvaluationTally:
        """The tally of a text that `to_text` wrote."""
        read = json.loads(text)
        read |= {"lengths": Lengths(**read["lengths"]), "traits": QrelsTraits(**read["traits"])}
        read["faults"] = {Kind(int(kind)): Fault(**fault) for kind, fault in read["faults"].items()}
        read |= {name: list(map(tuple, read[name])) for name in ("missing", "judged")}
        read |= {name: tuple(read[name]) for name in ("repeated", "error") if read[name]}
        return cls(**read)


def total(texts: list[str]) -> EvaluationTally:
    """The sum of all tallies."""
    return reduce(EvaluationTally.__add__, map(EvaluationTally.from_text, texts), EvaluationTally())


def query_blocks(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pl.DataFrame]:
    """Blocks of about `size` rows, each with whole queries. The rows are sorted by query."""
    parts: list[pl.DataFrame] = []
    count, enough = 0, size
    for batch in batches:
        if not batch.num_rows:
            continue
        parts.append(pl.DataFrame(pl.from_arrow(batch)))
        count += batch.num_rows
        if count < enough:
            continue
        parts = [pl.concat(parts, rechunk=True)]
        query = pl.col("query_id")
        last: int = parts[0].select(query.eq_missing(query.last()).arg_max()).item()
        if last:
            rest = parts[0][last:]
            yield parts.pop()[:last]
            parts = [rest]
        # A long query is not searched again with every batch.
        count, enough = count - last, max(size, 2 * (count - last))
    if parts:
        # Keep one reference only, so that a long list is not in memory twice.
        parts = [pl.concat(parts, rechunk=True)]
        yield parts.pop()


def evaluate_rows(rows: pl.DataFrame, task: EvaluationTask) -> Iterator[pa.RecordBatch]:
    """The values of a block of queries, then their tally."""
    judgments = rows.filter(pl.col("kind") == Kind.JUDGMENT).sort("row")
    faults = faults_of(rows.filter(pl.col("kind") > Kind.RETRIEVED), judgments)
    if faults:
        yield _tallied(EvaluationTally(faults=faults), task)
        return
    try:
        retrieved_rows = rows.filter(pl.col("kind") == Kind.RETRIEVED)
        aligned, repeated = _aligned(judgments, retrieved_rows, task)
        a = task.options.lists(aligned.alignment)
        own_lists = {
            key: options.lists(_aligned(judgments, retrieved_rows, replace(task, options=options))[0].alignment)
            for key, options in task.own_options.items()
        }
        queries, matrix = query_values(a, task.measures, task.options, own_lists)
        levels = Levels.of(task.measures, task.options.rel)
        coverage = coverage_of(aligned, a, task.options, levels, deepest_cutoff(task.measures))
    except SteelyardError as error:
        yield _tallied(EvaluationTally(error=(type(error).__name__, str(error))), task)
        return
    place = dict(judgments.unique("query_id", keep="first").select("query_id", "row").iter_rows())
    queries_at = [(place[query], query) for query in a.queries]
    retrieved, judged_docs = _unknown_documents(rows, aligned.alignment)
    yield _batch(list(queries), [place[query] for query in queries], list(matrix), [None] * len(queries))
    yield _tallied(
        EvaluationTally(
            counts=coverage.counts(),
            lengths=Lengths.of(a),
            traits=QrelsTraits.of(a, task.measures),
            missing=list(compress(queries_at, (~a.answered).tolist()))[:SHOWN_PROBLEMS],
            judged=queries_at[:SHOWN_QUERIES],
            run_only=sorted(a.run_only_examples),
            retrieved=retrieved,
            known=judged_docs,
            repeated=None if repeated is None else (place[repeated[0]], *repeated),
        ),
        task,
    )


def _unknown_documents(rows: pl.DataFrame, a: Alignment) -> tuple[list[str], list[str]]:
    """Retrieved and judged documents, if no retrieved document is judged."""
    if len(a.rank) or not a.retrieved.any():
        return [], []
    named = rows.filter(pl.col("doc_id").is_not_null() & pl.col("query_id").is_in(list(a.queries)))
    retrieved, judged = (
        named.filter(pl.col("kind") == kind)["doc_id"].unique().sort().head(SHOWN_DOCUMENTS).to_list()
        for kind in (Kind.RETRIEVED, Kind.JUDGMENT)
    )
    return retrieved, judged


def _aligned(
    judgments: pl.DataFrame, run: pl.DataFrame, task: EvaluationTask
) -> tuple[Aligned, tuple[str, str] | None]:
    """The alignment; and, if repeats are an error, the first query with one and the document."""
    qrels = Qrels(judgments.select("query_id", "doc_id", grade="value", target="label"))
    ranked = "rank" in run.columns
    if ranked or not task.scored or task.options.ties == "stable":
        run = run.sort("row")
    score = [pl.col("value").alias("score")] if task.scored else []
    others = [name for name in ("rank", "tokens") if name in run.columns]
    lists = Run(run.select("query_id", "doc_id", *score, *others), rank="rank" if ranked else None)
    aligned = align(qrels, lists, held(task.options.ordering), task.name)
    a, repeated = aligned.alignment, None
    if task.options.duplicates == "error" and len(a.repeats.query):
        query = a.queries[int(a.repeats.query[0])]
        docs = run.filter(pl.col("query_id") == query)["doc_id"]
        repeated = query, str(docs.filter(docs.is_duplicated()).min())
    return replace(aligned, alignment=replace(a, judged=replace(a.judged, highest=task.highest))), repeated


def held(ordering: Ordering) -> Ordering:
    """The ordering that workers use: repeats that are an error are counted first."""
    return replace(ordering, duplicates="hold") if ordering.duplicates == "error" else ordering


def faults_of(faulty: pl.DataFrame, judgments: pl.DataFrame | None = None) -> dict[Kind, Fault]:
    """The faults of the marked rows, and judgments that contradict each other."""
    faults: dict[Kind, Fault] = {}
    for number in faulty["kind"].unique().to_list():
        rows = faulty.filter(pl.col("kind") == number).sort("query_id", "doc_id")
        examples = rows.head(SHOWN_PROBLEMS).select("query_id", "doc_id", "value", "label").iter_rows()
        faults[Kind(number)] = Fault.of(rows.height, [fault_text(Kind(number), *row) for row in examples])
    if judgments is None:
        return faults
    pair = ["query_id", "doc_id", "label"]
    graded = judgments.drop_nulls("doc_id").with_columns(first=pl.col("value").first().over(pair))
    contradicting = graded.filter(pl.col("value") != pl.col("first"))
    if contradicting.height:
        examples = contradicting.sort(pair).head(SHOWN_PROBLEMS).select(*pair, "first", "value").iter_rows()
        faults[Kind.DISAGREES] = Fault.of(contradicting.height, [disagreement(*row) for row in examples])
    return faults


def _tallied(tally: EvaluationTally, task: EvaluationTask) -> pa.RecordBatch:
    return _batch([None], [None], [np.array([np.nan])] * len(task.measures), [tally.to_text()])


def _batch(queries: list[Any], places: list[Any], matrix: list[Floats], tallies: list[Any]) -> pa.RecordBatch:
    """One batch of the result; NaN becomes null."""
    columns = {"query_id": pa.array(queries, pa.string()), "place": pa.array(places, pa.int64())}
    columns |= {f"m{number}": pa.array(row, pa.float64(), mask=np.isnan(row)) for number, row in enumerate(matrix)}
    columns["tally"] = pa.array(tallies, pa.string())
    return pa.RecordBatch.from_pydict(columns)


# Means over all queries: sums are exact, so that they do not depend on the partitions

LOWEST = 1074  # Every finite float is a whole number of units of 2 ** -LOWEST.


def exact_sum(values: Floats) -> int:
    """The sum of finite floats in units of 2 ** -LOWEST, without rounding.

    >>> import numpy as np
    >>> exact_sum(np.array([1e300, 1.0, -1e300])) == 2**LOWEST
    True
    """
    left, total = values.tolist(), 0
    # fsum rounds once; what it loses is the sum of what is left.
    while part := math.fsum(left):
        left.append(-part)
        total += int(Fraction(part) * 2**LOWEST)
    return total


def partition_sums(batches: Iterator[pa.RecordBatch], in_logarithms: Sequence[bool]) -> Iterator[pa.RecordBatch]:
    """What a worker adds up of a partition, in one row: the count, the exact sum and the maximum of each column."""
    counts, sums = [0] * len(in_logarithms), [0] * len(in_logarithms)
    highest = [-math.inf] * len(in_logarithms)
    for batch in batches:
        for place, in_logarithm in enumerate(in_logarithms):
            values = batch.column(place).drop_null().to_numpy()
            counts[place] += len(values)
            highest[place] = max(highest[place], float(values.max(initial=-math.inf)))
            sums[place] += exact_sum(logarithms(values) if in_logarithm else values)
    text = json.dumps([counts, list(map(str, sums)), highest])
    yield pa.RecordBatch.from_pydict({"sums": pa.array([text], pa.string())})


def cluster_means(values: Any, measures: Mapping[str, Measure]) -> dict[str, float]:
    """Each measure over all queries, from a Spark frame with one column per measure."""
    add = partial(partition_sums, in_logarithms=[geometric(measure) for measure in measures.values()])
    parts = [json.loads(row["sums"]) for row in collect(map_in_arrow(values, add, "sums string"))]
    means = {}
    for place, (key, measure) in enumerate(measures.items()):
        count, units = sum(part[0][place] for part in parts), sum(int(part[1][place]) for part in parts)
        how = how_summarised(measure)
        if how == "sum":
            means[key] = float(Fraction(units, 1 << LOWEST))
        elif not count:
            means[key] = math.nan
        elif how == "max":
            means[key] = max(part[2][place] for part in parts)
        else:
            mean = float(Fraction(units, count << LOWEST))
            means[key] = math.exp(mean) if how == "geometric" else mean
    return means
