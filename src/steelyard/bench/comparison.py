"""The comparison of a bench: its runs compared by its settings, on one chunking or several, with notes on the chunkings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor, log10
from typing import Any

import numpy as np

from steelyard.bench.chunkings import Chunking, merged_qrels
from steelyard.chunking import token_counts
from steelyard.comparison.compare import compare
from steelyard.comparison.result import Comparison, Source
from steelyard.comparison.scores import COMPOSITE, ScoreTable
from steelyard.comparison.slices import column_values
from steelyard.comparison.testing import ComparisonPlan
from steelyard.datasets import Dataset
from steelyard.measures.grammar import Measure, parse
from steelyard.notes import Note, note
from steelyard.options import POLICIES
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import notes_by_names

EXAMPLES = 4
"""Example queries that a note keeps; it shows three, and "..." if there are more."""

_TEST_SETTINGS = ("baseline", "test", "correction", "seed")
_MEASURE_SETTINGS = ("at", "dialect", *POLICIES)


def compare_runs(
    settings: Mapping[str, Any],
    composite: Any,
    qrels: Qrels | Mapping[str, Qrels],
    runs: Mapping[str, Run],
    chunking_of: Mapping[str, str],
    columns: Mapping[str, Mapping[str, Any]],
) -> Comparison:
    """Compare the runs of a bench by its settings, which have their names in bench.yaml.

    qrels: with chunkers, those of every chunking by its label. chunking_of: the chunking of each run. columns: of the
    queries. A run with document ids that differ from those of the qrels is noted and is no error: the other runs
    still have their result.
    """
    chosen = {name: value for name, value in settings.items() if value is not None}
    tested = {name: chosen[name] for name in _TEST_SETTINGS if name in chosen}
    by = chosen.get("by")
    options: dict[str, Any] = {
        "composite": composite,
        "by": by,
        "queries": columns if by in columns else None,
        "unmatched": "note",
        **{name: chosen[name] for name in _MEASURE_SETTINGS if name in chosen},
    }
    measures = chosen.get("measures") or None
    if isinstance(qrels, Mapping):
        return compare_chunkings(qrels, runs, chunking_of, measures, ComparisonPlan(**tested), **options)
    return compare(qrels, runs, measures, **tested, **options)


def compare_chunkings(
    qrels: Mapping[str, Qrels],
    runs: Mapping[str, Run],
    chunking_of: Mapping[str, str],
    measures: Sequence[str] | None,
    plan: ComparisonPlan,
    *,
    by: str | None = None,
    queries: Any = None,
    **options: Any,
) -> Comparison:
    """Compare runs on several chunkings, each evaluated with the qrels of its own chunking.

    `options` are the options of `compare` for the evaluation.
    """
    parts = [
        compare(
            _without_notes(own),
            {name: run for name, run in runs.items() if chunking_of[name] == label},
            measures,
            **options,
        )
        for label, own in qrels.items()
    ]
    all_queries = tuple(dict.fromkeys(query for part in parts for query in part.score_tables[0].queries))
    cutoffs = range(len(parts[0].score_tables))
    tables = [_stacked([part.score_tables[at] for part in parts], all_queries) for at in cutoffs]
    components = [
        None
        if parts[0].components[at] is None
        else _stacked([part.components[at] for part in parts], all_queries)
        for at in cutoffs
    ]
    return Comparison.of(
        score_tables=tables,
        plan=plan.checked().with_baseline(plan.baseline, tables[0].runs),
        weights=parts[0].weights,
        components=components,
        sliced=None if by is None else (by, column_values(queries, by)),
        coverage={name: covered for part in parts for name, covered in part.coverage.items()},
        notes=(
            note("chunkings-have-own-qrels"),
            *dict.fromkeys(found for part in parts for found in part.input_notes),
        ),
        dialect=parts[0].dialect,
        source=Source(
            merged_qrels(list(qrels.values())),
            runs,
            {name: a for part in parts if part.source for name, a in part.source.alignments.items()},
            chunked=True,
        ),
    )


def _without_notes(qrels: Qrels) -> Qrels:
    """The qrels without their notes, which the bench reports once and not with every run."""
    bare = Qrels(qrels)
    bare.notes = ()
    return bare


def _stacked(tables: Sequence[ScoreTable | None], queries: tuple[str, ...]) -> ScoreTable:
    """The score tables of several chunkings as one, over all queries; NaN where a table has no value."""
    known = [table for table in tables if table is not None]
    parts = []
    for table in known:
        place = {query: at for at, query in enumerate(table.queries)}
        values = np.full((len(table.runs), len(table.columns), len(queries)), np.nan)
        for at, query in enumerate(queries):
            if query in place:
                values[:, :, at] = table.values[:, :, place[query]]
        parts.append(values)
    runs = tuple(run for table in known for run in table.runs)
    return replace(known[0], runs=runs, queries=queries, values=np.concatenate(parts))


def with_notes(comparison: Comparison, notes: Sequence[Note]) -> Comparison:
    """The comparison with more notes, before its own."""
    return replace(
        comparison, input_notes=(*notes, *comparison.input_notes), notes=(*notes, *comparison.notes)
    )


def chunking_notes(
    dataset: Dataset,
    chunkings: Sequence[Chunking],
    comparison: Comparison,
    chunking_of: Mapping[str, str],
    runs: Mapping[str, Run],
) -> tuple[Note, ...]:
    """The notes on the chunkings: how much text the runs read, queries without judgments, evidence that was cut."""
    text_read = _text_read_note(chunkings, comparison, chunking_of, runs)
    return (
        *([text_read] if text_read else []),
        *_query_notes(dataset, chunkings[0]),
        *_evidence_notes(chunkings),
    )


def _query_notes(dataset: Dataset, chunking: Chunking) -> list[Note]:
    """Queries of the dataset without judgments, and judged queries that are not in the dataset."""
    judged, queries = chunking.qrels.queries, dataset.queries
    known = set(judged)
    without = [query for query in queries if query not in known]
    unknown = [query for query in judged if query not in queries]
    notes = []
    if without:
        notes.append(
            note("queries-not-run", count=len(without), queries=len(queries), examples=without[:EXAMPLES])
        )
    if unknown:
        notes.append(note("judged-queries-not-in-dataset", count=len(unknown), examples=unknown[:EXAMPLES]))
    return notes


def _evidence_notes(chunkings: Sequence[Chunking]) -> list[Note]:
    """The notes on the qrels of the chunkings, one for all chunkings that have the same ones."""
    texts = {str(c.label): [str(each).rstrip(".") for each in c.qrels.notes] for c in chunkings}
    return [
        note("chunkings-evidence", chunkings=labels, every=len(labels) == len(chunkings) > 1, texts=found)
        for labels, found in notes_by_names(texts).items()
    ]


def _text_read_note(
    chunkings: Sequence[Chunking],
    comparison: Comparison,
    chunking_of: Mapping[str, str],
    runs: Mapping[str, Run],
) -> Note | None:
    """How much text the best runs read, if they are ranked at a cutoff that does not count it."""
    ranking = _ranking_measures(comparison)
    cutoffs = [m.cutoff for m in ranking if m.cutoff is not None and m.definition.cutoff_kind == "rank"]
    if len(chunkings) < 2 or not cutoffs or any(m.parameters.get("budget") is not None for m in ranking):
        return None
    deepest = int(max(cutoffs))
    first = comparison.score_tables[0]
    order = [row.run for row in comparison.leaderboard_rows if row.k == first.k]
    others = [run for run in order if chunking_of[run] != chunking_of[order[0]]]
    places = {others[0]: "the best on another chunking", order[1]: "second", order[0]: "first"}
    tokens = {str(chunking.label): token_counts(chunking.corpus) for chunking in chunkings}
    read = {run: _tokens_read(runs[run], tokens[chunking_of[run]], deepest) for run in places}
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


def _ranking_measures(comparison: Comparison) -> list[Measure]:
    """The measure that ranks the runs, or those of the composite."""
    first, parts = comparison.score_tables[0].columns[0], comparison.components[0]
    columns = parts.columns if first.key == COMPOSITE and parts is not None else (first,)
    return [column.measure for column in columns if column.measure is not None]


def _tokens_read(run: Run, tokens: Mapping[str, int], k: int) -> float:
    """Mean number of tokens of the first k documents, over the queries of the run."""
    import polars as pl

    near = run.frame.filter(pl.col("rank") <= k)
    return sum(tokens.get(doc, 0) for doc in near["doc_id"].to_list()) / max(1, len(run.queries))


def _budget_measure(comparison: Comparison, ranking: Sequence[Measure], least: float) -> tuple[str, bool]:
    """A measure with a token budget to rank by, and whether the bench has it already."""
    for column in comparison.score_tables[0].columns:
        if column.measure is not None and column.measure.parameters.get("budget") is not None:
            return column.key, True
    budget = _rounded(least)
    own = ranking[0] if len(ranking) == 1 and ranking[0].definition.parameter("budget") else None
    if own is None:
        return str(parse(f"R(per=target, budget={budget})")), False
    return str(parse(own.name)(**dict(own.given), budget=budget)), False


def _rounded(tokens: float) -> int:
    """A number of tokens rounded to two digits, at least 1.

    >>> _rounded(483.2), _rounded(12_345), _rounded(0.2)
    (480, 12000, 1)
    """
    if tokens < 1:
        return 1
    digits = 10 ** max(0, floor(log10(tokens)) - 1)
    return int(round(tokens / digits) * digits)
