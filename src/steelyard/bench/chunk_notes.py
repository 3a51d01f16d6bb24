"""What a reader should know of a bench of chunkers: the key on each chunking, and how much text a rank reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor, log10

from steelyard.bench.chunkings import Chunking
from steelyard.chunking.tokens import token_counts
from steelyard.comparison.board import COMPOSITE
from steelyard.comparison.result import Comparison
from steelyard.datasets import Dataset
from steelyard.measures.grammar import Measure, parse
from steelyard.runs import Run
from steelyard.wording import counted, listed, said_once, worded


def chunk_notes(
    dataset: Dataset,
    chunkings: Sequence[Chunking],
    comparison: Comparison,
    chunking_of: Mapping[str, str],
    runs: Mapping[str, Run],
) -> tuple[str, ...]:
    """The notes on the chunkings, each said once: the text read, queries without a key, and what borders did."""
    reading = _reading_note(chunkings, comparison, chunking_of, runs)
    return (*([reading] if reading else []), *_query_notes(dataset, chunkings[0]), *_border_notes(chunkings))


def with_notes(comparison: Comparison, notes: Sequence[str]) -> Comparison:
    """The comparison with more notes, before its own."""
    return replace(comparison, given=(*notes, *comparison.given), notes=(*notes, *comparison.notes))


def _query_notes(dataset: Dataset, chunking: Chunking) -> list[str]:
    """Queries that the dataset has and the key does not, and the other way round."""
    judged, asked = chunking.qrels.queries, dataset.queries
    known = set(judged)
    bare, strange = [q for q in asked if q not in known], [q for q in judged if q not in asked]
    notes = []
    if bare:
        notes.append(
            f"{len(bare):,} of {counted(len(asked), 'query', 'queries')} {worded(len(bare), 'has', 'have')} no "
            f"judgment and {worded(len(bare), 'was', 'were')} not asked ({_shown(bare)})."
        )
    if strange:
        notes.append(
            f"{counted(len(strange), 'judged query is', 'judged queries are')} not in the dataset "
            f"({_shown(strange)})."
        )
    return notes


def _shown(queries: Sequence[str]) -> str:
    return ", ".join(map(repr, queries[:3])) + (", ..." if len(queries) > 3 else "")


def _border_notes(chunkings: Sequence[Chunking]) -> list[str]:
    """What became of the key on each chunking: a line for all chunkings that the same is said of."""
    alike = said_once({str(c.label): [note.rstrip(".") for note in c.qrels.notes] for c in chunkings})
    return [
        f"{'Every chunking' if len(labels) == len(chunkings) > 1 else listed(labels)}: {'; '.join(notes)}."
        for labels, notes in alike.items()
    ]


def _reading_note(
    chunkings: Sequence[Chunking],
    comparison: Comparison,
    chunking_of: Mapping[str, str],
    runs: Mapping[str, Run],
) -> str | None:
    """How much text the best runs read, where they are ranked at a cutoff that does not count it."""
    ranking = _ranking_measures(comparison)
    cutoffs = [m.cutoff for m in ranking if m.cutoff is not None and m.definition.cutoff_kind == "rank"]
    if len(chunkings) < 2 or not cutoffs or any(m.parameters.get("budget") is not None for m in ranking):
        return None
    deepest = int(max(cutoffs))
    order = [row.run for row in comparison.standings if row.k == comparison.boards[0].k]
    others = [run for run in order if chunking_of[run] != chunking_of[order[0]]]
    placed = ((order[0], "first"), (order[1], "second"), (others[0], "the best on another chunking"))
    places = dict(reversed(placed))
    tokens = {str(chunking.label): token_counts(chunking.corpus) for chunking in chunkings}
    read = {run: _tokens_read(runs[run], tokens[chunking_of[run]], deepest) for run in places}
    key = comparison.keys[0]
    what = "the composite score" if key == COMPOSITE else key
    more = comparison.boards[0].columns[0].better == "more"
    told = "favours big chunks" if more else "does not count how much text is read"
    spent = listed(
        [
            f"{count:,.0f} with {run} ({places[run]})"
            for run, count in sorted(read.items(), key=lambda item: order.index(item[0]))
        ]
    )
    return (
        f"{what[0].upper()}{what[1:]} {told}: the first {deepest} hold, in tokens a query, {spent}. "
        f"{_advice(comparison, ranking, min(read.values()))}"
    )


def _ranking_measures(comparison: Comparison) -> list[Measure]:
    """The measure that ranks the runs, or those that the composite is made of."""
    first, parts = comparison.boards[0].columns[0], comparison.components[0]
    columns = parts.columns if first.key == COMPOSITE and parts is not None else (first,)
    return [column.measure for column in columns if column.measure is not None]


def _tokens_read(run: Run, tokens: Mapping[str, int], k: int) -> float:
    """Mean tokens of the first k documents, over the queries that the run answers."""
    import polars as pl

    near = run.frame.filter(pl.col("rank") <= k)
    return sum(tokens.get(doc, 0) for doc in near["doc_id"].to_list()) / max(1, len(run.queries))


def _advice(comparison: Comparison, ranking: Sequence[Measure], least: float) -> str:
    """Which measure with a token budget to rank by: one of the bench's own, or one to add."""
    for column in comparison.boards[0].columns:
        if column.measure is not None and column.measure.parameters.get("budget") is not None:
            return f"{column.key} gives all the same amount of text: name it first to rank by it."
    budget = _round(least)
    own = ranking[0] if len(ranking) == 1 and ranking[0].definition.parameter("budget") else None
    if own is None:
        meant = parse(f"R(per=target, budget={budget})")
    else:
        meant = parse(own.name)(**dict(own.given), budget=budget)
    return f"{meant} gives all the same amount of text: add it, first of the measures, to rank by it."


def _round(tokens: float) -> int:
    """A number of tokens in two digits, and 1 at least.

    >>> _round(483.2), _round(12_345), _round(0.2)
    (480, 12000, 1)
    """
    if tokens < 1:
        return 1
    digits = 10 ** max(0, floor(log10(tokens)) - 1)
    return int(round(tokens / digits) * digits)
