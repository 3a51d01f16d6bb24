"""The comparison of a bench: its runs on one chunking or several, with notes on the chunkings; and their stages.

Stages are written from the cache to stages.parquet, and split by what each of them loses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from steelyard.benchmark.chunkings import Chunking, chunking_qrels, merged_qrels
from steelyard.benchmark.retrieval import Job, failed_share
from steelyard.chunking import token_counts
from steelyard.comparison.compare import compare_evaluated, evaluate_runs, slice_values
from steelyard.comparison.data import ComparedRuns, EvaluatedRuns
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import COMPOSITE, ScoreTable
from steelyard.comparison.stages import Stages, check_splits, stages
from steelyard.comparison.testing import ComparisonPlan
from steelyard.datasets import Dataset
from steelyard.dialects import dialect
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure, parse
from steelyard.notes import Note, note
from steelyard.options import POLICIES
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import notes_by_names

EXAMPLES = 4  # Example queries that a note keeps; it shows three, and "..." if there are more.

_TEST_SETTINGS = ("test", "correction", "seed")
_MEASURE_SETTINGS = ("at", "dialect", *POLICIES)


def compare_runs(
    settings: Mapping[str, Any],
    composite: Any,
    qrels: Qrels | Mapping[str, Qrels],
    runs: Mapping[str, Run],
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Mapping[str, Any]],
    rules: Mapping[str, Mapping[str, Qrels]] | None = None,
) -> Comparison:
    """Compare the runs of a bench by its settings, which have their names in bench.yaml.

    qrels: with chunkers, those of every chunking by its label; each run is evaluated with those of its own chunking.
    rows: those of the runs in result.json. columns: of the queries. A run with document ids that differ from those of
    the qrels is no error: the other runs still have their result. rules: as `qrels` with chunkers, by each overlap
    rule: a verdict on which these do not agree is undecided.
    """
    chunking_of = {row["run"]: str(row.get("chunker")) for row in rows}
    sessions = {row["run"]: row["session"] for row in rows if row.get("session")}
    unknown = {row["run"]: row["unknown_documents"] for row in rows if row.get("unknown_documents")}
    not_found = [run for run, count in unknown.items() if count == len(runs[run])]
    unmeasured = dict.fromkeys(not_found, "none of its documents is in the corpus")
    chosen = {name: value for name, value in settings.items() if value is not None}
    tested = {name: chosen[name] for name in _TEST_SETTINGS if name in chosen}
    options = {name: chosen[name] for name in _MEASURE_SETTINGS if name in chosen}
    options |= {"composite": composite, "unmatched": "note", "unmeasured": unmeasured, "sessions": sessions}
    measures = chosen.get("measures") or None
    notes: tuple[Note, ...] = ()
    if isinstance(qrels, Mapping):
        evaluated = _on_chunkings(qrels, runs, chunking_of, measures, options)
        by_rule = {
            rule: evaluated if rule_qrels == qrels else _on_chunkings(rule_qrels, runs, chunking_of, measures, options)
            for rule, rule_qrels in (rules or {}).items()
        }
        if len({evaluation.tables[0].runs for evaluation in by_rule.values()}) == 1:
            evaluated = replace(evaluated, rules={rule: evaluation.tables for rule, evaluation in by_rule.items()})
        notes = (note("chunkings-have-own-qrels"),)
    else:
        evaluated = evaluate_runs(qrels, runs, measures, **options)
    by, judged, rel = chosen.get("by"), evaluated.source.qrels, chosen.get("rel")
    sliced = None if by is None else (by, slice_values(columns if by in columns else None, None, by, judged, rel))
    plan = ComparisonPlan(**tested).checked()
    comparison = compare_evaluated(evaluated, plan, chosen.get("baseline"), sliced, notes)
    failed = {row["run"]: failed_share(len(row["errors"]), row["queries"]) for row in rows if row.get("errors")}
    return replace(comparison, failed=failed, cached=tuple(row["run"] for row in rows if row.get("cached")))


def _on_chunkings(
    qrels: Mapping[str, Qrels],
    runs: Mapping[str, Run],
    chunking_of: Mapping[str, str],
    measures: Sequence[str] | None,
    options: Mapping[str, Any],
) -> EvaluatedRuns:
    """Every run evaluated with the qrels of its own chunking; the queries are those of all chunkings."""
    parts: list[EvaluatedRuns] = []
    for label, part_qrels in qrels.items():
        bare = Qrels(part_qrels)
        bare.notes = ()  # The bench reports them once, and not with every run.
        mine = {name: run for name, run in runs.items() if chunking_of[name] == label}
        parts.append(evaluate_runs(bare, mine, measures, **options))
    queries = tuple(dict.fromkeys(query for part in parts for query in part.tables[0].queries))
    cutoffs = range(len(parts[0].tables))
    alignments = {name: alignment for part in parts for name, alignment in part.source.alignments.items()}
    return EvaluatedRuns(
        tables=tuple(_stacked([part.tables[at] for part in parts], queries) for at in cutoffs),
        components=tuple(
            None if parts[0].components[at] is None else _stacked([part.components[at] for part in parts], queries)
            for at in cutoffs
        ),
        weights=parts[0].weights,
        unmeasured={run: reason for part in parts for run, reason in part.unmeasured.items()},
        coverage={name: covered for part in parts for name, covered in part.coverage.items()},
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        dialect=parts[0].dialect,
        source=ComparedRuns(merged_qrels(list(qrels.values())), runs, alignments, chunked=True),
    )


def measure_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a bench that say how runs are measured and tested, except cutoffs, as options of `compare`."""
    names = [name for name in (*_TEST_SETTINGS, *_MEASURE_SETTINGS) if name != "at"]
    return {name: settings[name] for name in names if settings.get(name) is not None}


def _stacked(tables: Sequence[ScoreTable | None], queries: tuple[str, ...]) -> ScoreTable:
    """The score tables of several chunkings as one, over all queries; NaN where a table has no value."""
    score_tables = [table for table in tables if table is not None]
    place = {query: at for at, query in enumerate(queries)}
    parts = []
    for table in score_tables:
        parts.append(np.full((len(table.runs), len(table.columns), len(queries)), np.nan))
        parts[-1][:, :, [place[query] for query in table.queries]] = table.values
    runs = tuple(run for table in score_tables for run in table.runs)
    return replace(score_tables[0], runs=runs, queries=queries, values=np.concatenate(parts))


def with_notes(comparison: Comparison, notes: Sequence[Note]) -> Comparison:
    """The comparison with more notes, before its own."""
    return replace(comparison, input_notes=(*notes, *comparison.input_notes), notes=(*notes, *comparison.notes))


def chunking_notes(
    dataset: Dataset,
    chunkings: Sequence[Chunking],
    comparison: Comparison,
    chunking_of: Mapping[str, str],
    runs: Mapping[str, Run],
) -> tuple[Note, ...]:
    """The notes on the chunkings: how much text the runs read, queries without judgments, evidence that was cut."""
    text_read = _text_read_note(chunkings, comparison, chunking_of, runs)
    notes = [] if text_read is None else [text_read]
    measured = [(column.key, column.measure) for column in comparison.score_tables[0].columns if column.measure]
    for chunking in chunkings:
        tokens = chunking.mean_tokens or 0.0
        if over := [key for key, measure in measured if (measure.parameters.get("budget") or inf) < tokens]:
            notes.append(note("chunks-over-budget", chunking=chunking.label, tokens=tokens, measures=over))
    judged, queries = dict.fromkeys(chunkings[0].qrels.queries), dataset.queries
    without = [query for query in queries if query not in judged]
    unknown = [query for query in judged if query not in queries]
    if without:
        notes.append(note("queries-not-run", count=len(without), queries=len(queries), examples=without[:EXAMPLES]))
    if unknown:
        notes.append(note("judged-queries-not-in-dataset", count=len(unknown), examples=unknown[:EXAMPLES]))
    texts = {str(c.label): [str(qrels_note).rstrip(".") for qrels_note in c.qrels.notes] for c in chunkings}
    for labels, shared_texts in notes_by_names(texts).items():
        every = len(labels) == len(chunkings) > 1
        notes.append(note("chunkings-evidence", chunkings=labels, every=every, texts=shared_texts))
    return tuple(notes)


def _text_read_note(
    chunkings: Sequence[Chunking], comparison: Comparison, chunking_of: Mapping[str, str], runs: Mapping[str, Run]
) -> Note | None:
    """How many tokens per query the best runs read, if they are ranked at a cutoff that does not count them."""
    column, parts = comparison.score_tables[0].columns[0], comparison.components[0]
    columns = parts.columns if column.key == COMPOSITE and parts is not None else (column,)
    ranking = [component.measure for component in columns if component.measure is not None]
    cutoffs = [m.cutoff for m in ranking if m.cutoff is not None and m.definition.cutoff_kind == "rank"]
    if len(chunkings) < 2 or not cutoffs or any(m.parameters.get("budget") is not None for m in ranking):
        return None
    deepest, first = int(max(cutoffs)), comparison.score_tables[0]
    order = comparison.run_order
    others = [run for run in order if chunking_of[run] != chunking_of[order[0]]]
    if not others:
        return None
    places = {others[0]: "the best on another chunking", order[1]: "second", order[0]: "first"}
    tokens = {str(chunking.label): token_counts(chunking.corpus) for chunking in chunkings}
    read = {}
    for name in places:
        near, counts = runs[name].frame.filter(pl.col("rank") <= deepest), tokens[chunking_of[name]]
        read[name] = sum(counts.get(doc, 0) for doc in near["doc_id"].to_list()) / max(1, len(runs[name].queries))
    advised, measured = _budget_measure(comparison, ranking, min(read.values()))
    return note(
        "chunkings-text-read",
        measure="the composite score" if comparison.keys[0] == COMPOSITE else comparison.keys[0],
        favours=first.columns[0].better == "more",
        depth=deepest,
        runs=tuple((run, places[run], read[run]) for run in sorted(read, key=order.index)),
        budget=advised,
        measured=measured,
    )


def _budget_measure(comparison: Comparison, ranking: Sequence[Measure], least: float) -> tuple[str, bool]:
    """A measure with a token budget to rank by, and whether the bench has it already."""
    for column in comparison.score_tables[0].columns:
        if column.measure is not None and column.measure.parameters.get("budget") is not None:
            return column.key, True
    budget, measure = max(1, round(float(f"{least:.2g}"))), ranking[0]  # A number with two digits can be remembered.
    if len(ranking) > 1 or not measure.definition.parameter("budget"):
        return str(parse(f"R(per=target, budget={budget})")), False
    return str(parse(measure.name)(**dict(measure.given), budget=budget)), False


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
    """The rows of stages.parquet, read from the cache one answer at a time; the list of the last stage is the run."""
    for job in jobs:
        seen = set()
        for entry in job.store.entries() if job.answers.reads else ():
            query = entry.get("query") if isinstance(entry, dict) and "list" in entry else None
            if query not in job.answers.lists or query in seen:
                continue
            seen.add(query)
            lists = dict(entry.get("stages") or {})
            lists[next(reversed(entry.get("reads") or {"": None}))] = [doc for doc, _ in entry["list"]]
            for stage, read in list(job.answers.reads.items())[:-1]:
                if stage not in lists:  # A stage that the query skipped returned what it would have read.
                    lists[stage] = lists[read[0]] if read else []
                yield job.spec.label, stage, query, None, list(map(job.doc_id, lists[stage]))
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
    """The loss of one run by stage: by default of the best one with stages, in the first measure of the bench.

    frame: the content of stages.parquet. texts: reads the documents, for a budget of tokens. options: as in `stages`.
    """
    staged = staged_runs(record)
    if not staged:
        raise InputError(
            f"{folder}: no run has stages. `hybrid`, `rerank`, `swarm-rerank` and `graph-flow` keep them, and "
            'functions and services may return {"stages": {"retrieve": [...], "rerank": [...]}}.'
        )
    if name is not None and name not in staged:
        expected = f"expected one of {', '.join(staged)}.{did_you_mean(name, staged)}"
        raise InputError(f"{folder}: {name!r} is not a run with stages; {expected}")
    chosen = name or staged[0]
    row = next(row for row in record["runs"] if row["run"] == chosen)
    reads: Mapping[str, Sequence[str]] = row["stages"]
    if frame is None or frame.schema != stages_schema():
        raise InputError(f"{folder / STAGES_FILE} cannot be read; run the bench again.")
    run_frame = frame.filter(pl.col("run") == chosen)
    *before, last = reads
    returned = {stage: _run(run_frame, stage, None) for stage in before}
    answer = Run.read(folder / "runs" / row["file"], format="parquet", name=chosen)
    settings = record["settings"]
    measure = first_measure(settings) if measure is None else measure
    definitions = settings.get("dialect") or "steelyard"
    if dialect(definitions).reads_texts([measure]):
        answer = Run(answer, texts=texts())
    lists: dict[str, Any] = {**returned, last: answer}
    for stage in reads:
        numbers = run_frame.filter(pl.col("stage") == stage)["call"].drop_nulls().unique().sort().to_list()
        if numbers:
            lists[stage] = {"calls": [_run(run_frame, stage, number) for number in numbers], "list": lists[stage]}
    policies = {key: settings[key] for key in _POLICIES if settings.get(key) is not None}
    policies |= {key: value for key, value in options.items() if value is not None}
    judged = chunking_qrels(qrels, row["chunker"]) if row.get("chunker") else qrels
    split = stages(judged, lists, measure, inputs=reads, dialect=definitions, **policies)
    if split.lists:
        returned |= {last: answer, **split.lists}
    return replace(split, run=chosen, others=tuple(run for run in staged if run != chosen), lists=returned)


def _run(frame: pl.DataFrame, stage: str, call: int | None) -> Run:
    """The lists of a stage, or of one of its calls."""
    rows = frame.filter((pl.col("stage") == stage) & pl.col("call").eq_missing(call))
    table = rows.select("query_id", doc_id="doc_ids", score=pl.lit(None, pl.Float64))
    empty = tuple(rows.filter(pl.col("doc_ids").list.len() == 0)["query_id"])
    return Run.from_table(table.explode("doc_id").drop_nulls("doc_id"), ordered=True, name=stage, empty=empty)


def first_measure(settings: Mapping[str, Any]) -> str:
    """The first measure of a bench that can be split over stages."""
    cutoff = f"@{settings['at'][0]}" if settings.get("at") else ""
    for text in settings["measures"]:
        with suppress(MeasureError):
            check_splits(text + cutoff, dialect(settings.get("dialect") or "steelyard").measure(text + cutoff))
            return str(text + cutoff)
    return DEFAULT_MEASURE
