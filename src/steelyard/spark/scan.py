"""RunScan: where the judged documents are in one or several runs, found on the cluster, gathered on the driver."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from pyspark.sql import functions as sf

from steelyard import errors
from steelyard.alignment.alignment import align
from steelyard.alignment.hits import SHOWN_RUN_ONLY, Hits, Ints, Ordering
from steelyard.alignment.ranking import repeat_error
from steelyard.alignment.scans import ScannedRun
from steelyard.coverage import with_doubts
from steelyard.dialects import Dialect
from steelyard.evaluation import scores_of
from steelyard.io.frames import empty_ids_error
from steelyard.measures.grammar import Measure
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.scores import Scores
from steelyard.spark import blocks
from steelyard.spark.blocks import Arrays, again, unpack_arrays
from steelyard.spark.frames import collect, collect_columns, map_in_arrow, send_columns
from steelyard.spark.rows import Fault, Kind, SparkTable, check_faults, fault_text, run_rows
from steelyard.spark.tasks import COUNTED, Task, count_ids
from steelyard.spark.worker import held

BUCKETS = 8  # Buckets of queries per partition of a shuffle: enough for partitions of about the same size.
MOST_BUCKETS = 1 << 12
HEAD = 1 << 14  # The first rows of a run, which show whether the rows of a query are adjacent.
SPLIT = 8
"""Lists are ranked in place if at most one in this many stretches of adjacent rows is of a query that has another."""
Found: TypeAlias = list[tuple[str, Arrays]]  # Arrays with the name of their run.


@dataclass(frozen=True, eq=False)
class RunScan:
    """The ranks of the judged documents in the runs of one frame. The cluster works when they are first needed.

    A table with a column `run` has several runs; their lists are found in the same passes.
    """

    spark: Any
    qrels: Qrels
    table: SparkTable
    name: str
    _known: dict[Ordering, dict[str, Hits]] = field(default_factory=dict)

    def runs(self, *orderings: Ordering) -> dict[str, ScannedRun]:
        """The runs by name, their hits under these orderings found together; a row without a run's name is an error."""
        self._scan(orderings)
        by_run = self._known[held(orderings[0])]
        if None in by_run:
            empty = self.table.frame.filter(self.table.column("run").isNull()).count()
            raise empty_ids_error(self.table.names["run"], "run", empty, [])
        return {
            run or self.name: ScannedRun(
                name=run or self.name,
                ordered=self.table.ordered,
                notes=self.table.notes,
                hits=partial(self._hits, run),
                documents=partial(self._documents, run),
                lists=partial(self._lists, run),
            )
            for run in by_run
        }

    def scores(self, measures: dict[str, Measure], dialect: Dialect, options: Options) -> dict[str, Scores]:
        """The scores of each run, by its name."""
        own_options = dialect.own_options(measures, options).values()
        by_run = {}
        for name, run in self.runs(options.ordering, *(policies.ordering for policies in own_options)).items():
            aligned = with_doubts(align(self.qrels, run, options.ordering, name), self.qrels, run)
            by_run[name] = scores_of(aligned, measures, dialect, options)
        return by_run

    def _hits(self, run: str, ordering: Ordering) -> Hits:
        self._scan([ordering])
        hits = self._known[held(ordering)][run]
        if ordering.duplicates == "error" and len(hits.repeats.query):
            query = self.qrels.judged.query_ids[int(hits.repeats.query[0])]
            again = next(one for one, other in pairwise(sorted(self._documents(run, [query]))) if one == other)
            raise repeat_error(len(hits.repeats.query), query, again)
        return hits

    def _documents(self, run: str, queries: Sequence[str]) -> list[str]:
        frame = self._of_run(run).filter(self.table.column("query_id").cast("string").isin(list(queries)))
        doc = self.table.column("doc_id").cast("string").alias("doc_id")
        return [row["doc_id"] for row in frame.select(doc).filter(sf.col("doc_id").isNotNull()).collect()]

    def _lists(self, run: str) -> Run:
        """The lists of the judged queries, read to the driver; in the order of the frame where that is their order."""
        rows = run_rows(self.table, self.table.ordered)
        if "run" in self.table.names:
            rows = rows.filter(sf.col("run") == run)
        rows = rows.filter(sf.col("doc_id").isNotNull()).join(self._judged_queries(), "query_id", "left_semi")
        order = [name for name in ("rank", "row") if name in rows.columns] if self.table.ordered else []
        score = sf.col("value").cast("double").alias("score")
        frame = collect_columns(rows.select("query_id", "doc_id", score, *order))
        if not order:
            return Run(frame, run or self.name)
        lists = frame.sort("query_id", *order, maintain_order=True).group_by("query_id", maintain_order=True)
        return Run(dict(lists.agg("doc_id").iter_rows()), run or self.name)

    def _scan(self, orderings: Sequence[Ordering]) -> None:
        """Find the hits under the orderings that are not known yet."""
        wanted = [ordering for ordering in dict.fromkeys(map(held, orderings)) if ordering not in self._known]
        if not wanted:
            return
        in_order = self.table.ordered or any(ordering.ties == "stable" for ordering in wanted)
        rows = run_rows(self.table, in_order)
        columns = ["row"] if in_order else []
        columns += [name for name in ("rank", "tokens") if name in self.table.ranked.names]
        judged, several = blocks.pack_judged(self.qrels.judged), "run" in self.table.names
        task = Task(judged, ("score", *columns), several, tuple(wanted), self.table.ordered)
        # Workers find the faulty rows of a run with scores themselves, unless numbers are text: Spark takes longer.
        marked = not self.table.scored or any(map(self.table.ranked.is_text, ("score", "rank")))
        faulty = [(sf.col("kind") != int(Kind.RETRIEVED)).alias("faulty")] if marked else []
        run = ["run"] if task.runs else []
        frame = rows.select(*run, "query_id", "doc_id", sf.col("value").alias("score"), *columns, *faulty)
        parts, seen = self._found_in_place(frame, task) or self._read(collect(self._exchanged(frame, task)), task)
        if any("faulty" in arrays and arrays["faulty"] for _, arrays in seen):
            self._check(rows)
        for kind, text in sorted(tuple(arrays["error"].tolist()) for _, arrays in seen if "error" in arrays):
            raise getattr(errors, kind, errors.SteelyardError)(text)
        for number, ordering in enumerate(wanted):
            self._known[ordering] = {
                run: self._joined(run, [p for r, p in parts if r == run], [s for r, s in seen if r == run], number)
                for run in dict.fromkeys([*([] if task.runs else [""]), *(r for r, _ in [*parts, *seen])])
            }

    def _joined(self, run: str, parts: list[Arrays], seen: list[Arrays], number: int) -> Hits:
        empty = np.concatenate([np.zeros(0, np.int64), *(arrays["empty"] for arrays in seen)]).astype(np.int64)
        hits = blocks.hits_of_arrays(parts, empty, len(self.qrels.judged.query_ids), number)
        if "tokens" in self.table.names and hits.tokens_through is None:
            hits = replace(hits, tokens_through=np.zeros(0, np.int64))
        others = sorted({query for arrays in seen for query in json.loads(arrays["others"].tobytes())})
        count, examples = len(others), tuple(others[:SHOWN_RUN_ONLY])
        if any(arrays["many"] for arrays in seen):
            count, examples = self._others(run)
        return replace(hits, run_only_queries=count, run_only_examples=examples) if count else hits

    def _others(self, run: str) -> tuple[int, tuple[str, ...]]:
        """The number of queries that only the run has, and the first of them."""
        query = self.table.column("query_id").cast("string").alias("query_id")
        others = self._of_run(run).select(query).distinct().join(self._judged_queries(), "query_id", "left_anti")
        counted = collect(map_in_arrow(others, count_ids, COUNTED))
        first = sorted(query_id for row in counted for query_id in row["first"])[:SHOWN_RUN_ONLY]
        return sum(row["count"] for row in counted), tuple(first)

    def _judged_queries(self) -> Any:
        ids = pl.DataFrame({"query_id": pl.Series(self.qrels.judged.query_ids, dtype=pl.String)})
        return sf.broadcast(send_columns(self.spark, ids, "query_id string"))

    def _of_run(self, run: str) -> Any:
        table = self.table
        return table.frame.filter(table.column("run").cast("string") == run) if "run" in table.names else table.frame

    def _found_in_place(self, frame: Any, task: Task) -> tuple[Found, Found] | None:
        """The hits of lists whose rows are adjacent; None if many lists are in several places.

        The first query ids of every partition show whether this is likely. Whether it is so is checked afterwards: no
        query may have been ranked twice.
        """
        # Where the first rows of all show that queries are mixed, no worker has to look.
        head = [tuple(row) for row in collect(frame.select(*task.keys).limit(HEAD))]
        lists = [key for key, _ in groupby(head)]
        if SPLIT * (len(lists) - len(set(lists))) > len(lists):
            return None
        # Only the first rows of a partition go to a worker: one that stops early is started again by Spark.
        first = sf.monotonically_increasing_id().bitwiseAND(sf.lit((1 << 33) - 1)) < task.rows
        near = frame.select(*task.keys, first.alias("first")).filter("first").select(*task.keys)
        rows = collect(map_in_arrow(near, task.find_stretches, task.schema))
        stretches = _by_run([(row["run"], unpack_arrays(row["seen"])) for row in rows], "query")
        if any(SPLIT * again(numbers) > len(numbers) for numbers in stretches.values()):
            return None
        rows = collect(map_in_arrow(frame, task.rank_in_place, task.schema))
        if any("mixed" in unpack_arrays(row["seen"]) for row in rows if row["seen"] is not None):
            return None
        parts, seen = self._read(rows, task)
        return None if any(map(again, _by_run(parts, "queries").values())) else (parts, seen)

    def _exchanged(self, frame: Any, task: Task) -> Any:
        """The hits of lists whose rows are in several partitions: rows are packed, and sent by buckets of queries."""
        # The number of partitions of a shuffle; some clusters choose it themselves.
        number = str(self.spark.conf.get("spark.sql.shuffle.partitions", "200"))
        partitions = int(number) if number.isdigit() else 200
        buckets = max(1, min(len(self.qrels.judged.query_ids), MOST_BUCKETS, BUCKETS * partitions))
        packed = map_in_arrow(frame, replace(task, buckets=buckets).pack, task.schema)
        return map_in_arrow(packed.repartition("bucket"), task.rank_packed, task.schema)

    def _read(self, rows: Any, task: Task) -> tuple[Found, Found]:
        """What the workers found; packed rows are those of lists at the edges of partitions, and are ranked here."""
        parts = [(row["run"], unpack_arrays(row["hits"])) for row in rows if row["hits"] is not None]
        seen = [(row["run"], unpack_arrays(row["seen"])) for row in rows if row["seen"] is not None]
        packed = [row for row in rows if row["hits"] is None and row["seen"] is None]
        for run in {row["run"] for row in packed}:
            columns = {name: [row[name] for row in packed if row["run"] == run] for name in task.kinds}
            block, query = blocks.unpack_rows(columns, task.kinds)
            judged = blocks.unpack_judged(task.judged)
            parts.append((run, blocks.hits_of_rows(block, query, judged, task.orderings, task.ordered)))
        return parts, seen

    def _check(self, rows: Any) -> None:
        faulty = rows.filter(sf.col("kind") != int(Kind.RETRIEVED))
        counts = {Kind(row["kind"]): row["count"] for row in faulty.groupBy("kind").count().collect()}
        kind = min(counts)
        first = faulty.filter(sf.col("kind") == int(kind)).orderBy("query_id", "doc_id")
        examples = first.select("query_id", "doc_id", "value", "label").limit(errors.SHOWN_PROBLEMS).collect()
        fault = Fault.of(counts[kind], [fault_text(kind, *row) for row in examples])
        check_faults({kind: fault}, {}, self.table.names)


def _by_run(named_arrays: Found, name: str) -> dict[str, Ints]:
    """One of the arrays, joined for each run."""
    parts: dict[str, list[Ints]] = {}
    for run, arrays in named_arrays:
        parts.setdefault(run, []).append(arrays[name])
    return {run: np.concatenate(pieces) for run, pieces in parts.items()}
