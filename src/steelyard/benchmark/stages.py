"""Stages in a bench: written from the cache to stages.parquet, and split by what each of them loses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from steelyard.benchmark.chunkings import chunking_qrels
from steelyard.benchmark.retrieval import Job
from steelyard.comparison.stages import Stages, check_splits, stages
from steelyard.dialects import dialect
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.lazy import polars as pl
from steelyard.qrels import Qrels
from steelyard.run import Run

if TYPE_CHECKING:
    from pathlib import Path

STAGES_FILE = "stages.parquet"
"""What the stages before the last one returned: run, stage, query_id, call, and doc_ids, best first.

The calls of a stage are numbered from 1; in the row of what it returned, the call is null.
"""

StageRow: TypeAlias = tuple[str, str, str, int | None, list[str]]
DEFAULT_MEASURE = "nDCG@10"
_POLICIES = ("no_relevant", "ties", "duplicates", "unjudged", "rel")


def stages_schema() -> dict[str, Any]:
    """The columns of stages.parquet."""
    names = dict.fromkeys(("run", "stage", "query_id"), pl.String)
    return {**names, "call": pl.Int64, "doc_ids": pl.List(pl.String)}


def stage_rows(jobs: Iterable[Job]) -> Iterator[StageRow]:
    """The rows of stages.parquet, read from the cache one answer at a time.

    A stage that a query skipped returned what it would have read. The list of the last stage is the run itself.
    """
    for job in jobs:
        seen = set()
        for entry in job.store.entries() if job.answers.reads else ():
            query = entry.get("query") if isinstance(entry, dict) and "list" in entry else None
            if query not in job.answers.lists or query in seen:
                continue
            seen.add(query)
            found = dict(entry.get("stages") or {})
            found[next(reversed(entry.get("reads") or {"": None}))] = [doc for doc, _ in entry["list"]]
            for stage, read in list(job.answers.reads.items())[:-1]:
                if stage not in found:
                    found[stage] = found[read[0]] if read else []
                yield job.spec.label, stage, query, None, list(map(job.doc_id, found[stage]))
            for stage, calls in (entry.get("calls") or {}).items():
                for number, docs in enumerate(calls if stage in job.answers.reads else (), start=1):
                    yield job.spec.label, stage, query, number, list(map(job.doc_id, docs))


def staged_runs(record: Mapping[str, Any]) -> list[str]:
    """The runs of a result that have stages, best first."""
    staged = {row["run"]: None for row in record["runs"] if row.get("stages")}
    order = [row["run"] for row in (record["comparison"] or {}).get("leaderboard", ())]
    return list(dict.fromkeys(run for run in [*order, *staged] if run in staged))


def split_run(
    folder: Path,
    record: Mapping[str, Any],
    frame: pl.DataFrame | None,
    qrels: Qrels,
    name: str | None = None,
    measure: Any = None,
    texts: Callable[[], Mapping[str, str]] = dict,
    **options: Any,
) -> Stages:
    """The loss of one run by stage, the best of those with stages by default; by default in the bench's first measure.

    frame: the content of stages.parquet. texts: reads the documents, for a budget of tokens. options: as in `stages`.
    """
    known = staged_runs(record)
    if not known:
        raise InputError(
            f"{folder}: no run has stages. `hybrid`, `rerank`, `swarm-rerank` and `graph-flow` keep them, and "
            'functions and services may return {"stages": {"retrieve": [...], "rerank": [...]}}.'
        )
    if name is not None and name not in known:
        expected = f"expected one of {', '.join(known)}.{did_you_mean(name, known)}"
        raise InputError(f"{folder}: {name!r} is not a run with stages; {expected}")
    chosen = known[0] if name is None else name
    row = next(row for row in record["runs"] if row["run"] == chosen)
    reads: Mapping[str, Sequence[str]] = row["stages"]
    if frame is None or frame.schema != stages_schema():
        raise InputError(f"{folder / STAGES_FILE} cannot be read; run the bench again.")
    own = frame.filter(pl.col("run") == chosen)
    *before, last = reads
    returned = {stage: _run(own, stage, None) for stage in before}
    lists: dict[str, Any] = dict(returned)
    answer = Run.read(folder / "runs" / row["file"], format="parquet", name=chosen)
    settings = record["settings"]
    measure = first_measure(settings) if measure is None else measure
    if dialect(settings.get("dialect") or "steelyard").reads_texts([measure]):
        answer = Run(answer, texts=texts())
    lists[last] = answer
    for stage in reads:
        numbers = own.filter(pl.col("stage") == stage)["call"].drop_nulls().unique().sort().to_list()
        if numbers:
            lists[stage] = {"calls": [_run(own, stage, number) for number in numbers], "list": lists[stage]}
    policies = {key: settings[key] for key in _POLICIES if settings.get(key) is not None}
    judged = chunking_qrels(qrels, row["chunker"]) if row.get("chunker") else qrels
    split = stages(
        judged,
        lists,
        measure,
        inputs=reads,
        dialect=settings.get("dialect") or "steelyard",
        **{**policies, **{key: value for key, value in options.items() if value is not None}},
    )
    others = tuple(run for run in known if run != chosen)
    if split.lists:
        returned |= {last: answer, **split.lists}
    return replace(split, run=chosen, others=others, lists=returned)


def _run(frame: pl.DataFrame, stage: str, call: int | None) -> Run:
    """The lists of a stage, or of one of its calls."""
    rows = frame.filter((pl.col("stage") == stage) & pl.col("call").eq_missing(call))
    table = rows.select("query_id", pl.col("doc_ids").alias("doc_id"), score=pl.lit(None, pl.Float64))
    empty = rows.filter(pl.col("doc_ids").list.len() == 0)["query_id"].to_list()
    listed = table.explode("doc_id").drop_nulls("doc_id")
    return Run.from_table(listed, ordered=True, name=stage, empty=tuple(empty))


def first_measure(settings: Mapping[str, Any]) -> str:
    """The first measure of a bench that can be split over stages."""
    cutoff = f"@{settings['at'][0]}" if settings.get("at") else ""
    for text in settings["measures"]:
        with suppress(MeasureError):
            check_splits(text + cutoff, dialect(settings.get("dialect") or "steelyard").measure(text + cutoff))
            return str(text + cutoff)
    return DEFAULT_MEASURE
