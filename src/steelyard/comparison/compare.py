"""compare(): judgments and several runs in, a Comparison out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.alignment.alignment import Alignment, align
from steelyard.comparison.result import Comparison, Source
from steelyard.comparison.scores import (
    COMPOSITE,
    DEFAULT_CUTOFF,
    Board,
    Column,
    TableOptions,
    board_of_table,
    column_of_table,
    label,
    weights_of,
)
from steelyard.comparison.slices import COMPLEXITY, column_values, complexity
from steelyard.comparison.tests import Plan
from steelyard.coverage import refuse_unmatched, with_unknown_documents
from steelyard.datasets.reading import queries_beside
from steelyard.dialects import Dialect, listed_measures
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError, MeasureError, PolicyError
from steelyard.evaluation import scores_of, with_rel
from steelyard.io.files import distinct_names, names_file
from steelyard.measures.grammar import Measure
from steelyard.notes import Note, note
from steelyard.options import OptionKeywords, resolve
from steelyard.qrels import Qrels
from steelyard.run import Run, readable_again
from steelyard.scores import Scores

if TYPE_CHECKING:
    from typing_extensions import Unpack

Weights = Mapping[str, float] | str | Path | None


def compare(
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    baseline: str | None = None,
    test: str = "t",
    correction: str = "holm",
    composite: Weights = None,
    at: Sequence[int] | None = None,
    by: str | None = None,
    queries: Any = None,
    dialect: str | Dialect = "steelyard",
    alpha: float = 0.05,
    permutations: int = 100_000,
    seed: int = 0,
    unmatched: Literal["error", "note"] = "error",
    **options: Unpack[OptionKeywords],
) -> Comparison:
    """Compare runs on the same qrels: which is best, by how much, and whether the difference is significant.

    runs: a mapping of name to run (anything `evaluate` takes), or a list of runs with names, or of files.
    measures: as in `evaluate`; the first one ranks the runs.
    baseline: the run that every other run is compared with, by name or file name; default: all pairs.
    test, correction: the paired test, and the correction of its p-values for the number of pairs.
    composite: weights of a composite score: a mapping, a file, or "default".
    at: cutoffs; one row per run and cutoff.
    by, queries: slice the queries by a column of `queries` (a mapping, frame or file; for qrels in a dataset's
    folder its queries.jsonl by default), or by "complexity".
    unmatched: what to do with a run that shares no query with the qrels, or whose document ids differ from
    those of the qrels: "error", or "note" to report it in its coverage.
    alpha, permutations, seed: the significance level, and the number and the seed of random draws.
    The other options (missing, no_relevant, ties, duplicates, unjudged, rel, depth) are those of `evaluate`.

    >>> result = compare({"q1": ["a"], "q2": ["b"]}, {"x": {"q1": ["a"], "q2": ["c"]}, "y": {"q1": ["a"], "q2": ["b"]}}, ["RR"])
    >>> [row.run for row in result.standings], result.pairs["difference"].to_list()
    (['y', 'x'], [0.5])
    """
    spoken = dialect_of(dialect)
    chosen = resolve(spoken.policies, options)
    plan = Plan(test, correction, alpha, permutations, seed).checked()
    if baseline is not None and isinstance(runs, Mapping):
        # A wrong name is reported before anything is read.
        plan.against(baseline, list(map(str, runs)))
    texts = _texts(measures, spoken)
    weights = None if composite is None else weights_of(composite)
    cutoffs: list[int | None] = [None] if at is None else [_cutoff(k) for k in at]
    truth = Qrels.of(qrels)
    wanted = {
        (k, text): with_rel(_measure_at(texts.get(text, text), k, spoken, text in texts), chosen.rel)
        for k in cutoffs
        for text in dict.fromkeys([*texts, *(weights or {})])
    }
    keys = {label(text, k): meant for (k, text), meant in wanted.items()}
    sources: list[Any] = []
    alignments: list[Alignment] = []
    scored: list[Scores] = []
    for name, run in _runs_given(runs):
        joined = with_unknown_documents(align(truth, run, chosen.ordering, name), truth, run)
        try:
            scored.append(scores_of(joined, keys, spoken, chosen))
        except MeasureError as error:
            raise MeasureError(f"run {joined.name!r}: {error}") from None
        sources.append(run)
        alignments.append(chosen.lists(joined.alignment))
    if not sources:
        raise InputError("no run to compare; give at least one.")
    names = distinct_names([scores.name for scores in scored], sources)
    if baseline is not None:
        files = [name for name, run in zip(names, sources, strict=True) if names_file(baseline, run)]
        plan = plan.against(files[0] if baseline not in names and len(files) == 1 else baseline, names)
    covered = {name: scores.coverage for name, scores in zip(names, scored, strict=True)}
    if unmatched == "error":
        refuse_unmatched(covered)
    kept = [scores.queries for scores in scored]
    asked, values, notes = _on_one_set(names, truth.queries, kept, [scores.matrix for scores in scored])
    notes += _same_at_every_cutoff(texts, cutoffs, wanted)
    boards, components = [], []
    width = len(wanted) // len(cutoffs)
    for block, k in enumerate(cutoffs):
        columns = tuple(
            Column(text, meant.definition.better, meant)
            for (at_k, text), meant in wanted.items()
            if at_k == k
        )
        whole = Board(tuple(names), columns, asked, values[:, block * width : (block + 1) * width, :], k)
        components.append(whole.only(list(weights)) if weights else None)
        shown = whole.only(list(texts))
        boards.append(whole.with_composite(weights).only([COMPOSITE, *texts]) if weights else shown)
    return Comparison.of(
        boards=boards,
        plan=plan,
        weights=weights,
        components=components,
        sliced=None if by is None else (by, _slice_values(_queries(queries, qrels), by, truth)),
        coverage=covered,
        notes=tuple(notes),
        dialect=spoken.name,
        source=Source(
            truth, dict(zip(names, sources, strict=True)), dict(zip(names, alignments, strict=True))
        ),
    )


def compare_scores(
    source: Any,
    measures: Sequence[str] | None = None,
    *,
    options: TableOptions | None = None,
    baseline: str | None = None,
    test: str = "t",
    correction: str = "holm",
    composite: Weights = None,
    by: str | None = None,
    queries: Any = None,
    missing: str = "zero",
    alpha: float = 0.05,
    permutations: int = 100_000,
    seed: int = 0,
) -> Comparison:
    """Compare runs from a table of values per query that another tool made (CSV, Parquet or a frame).

    `by` slices the queries by a column of `queries`, or, where none are given, of the table itself.
    """
    weights = None if composite is None else weights_of(composite)
    wanted = list(dict.fromkeys([*(measures or []), *(weights or {})])) or None
    where = options or TableOptions()
    board, notes = board_of_table(source, wanted, where, missing)
    shown = list(measures) if measures else [column.key for column in board.columns if column.key != by]
    components = board.only(list(weights)) if weights else None
    plan = Plan(test, correction, alpha, permutations, seed).checked().against(baseline, board.runs)
    whole = board.with_composite(weights).only([COMPOSITE, *shown]) if weights else board.only(shown)
    return Comparison.of(
        boards=[whole],
        plan=plan,
        weights=weights,
        components=[components],
        sliced=None if by is None else (by, _table_slices(source, where, queries, by)),
        coverage={},
        notes=tuple(notes),
        dialect="",
        source=None,
    )


def _slice_values(queries: Any, by: str, truth: Qrels) -> dict[str, object]:
    """The column that slices; complexity is made from the judgments where the queries do not say it."""
    derived: dict[str, object] | None = {**complexity(truth)} if by == COMPLEXITY else None
    if queries is None:
        if derived is not None:
            return derived
        raise InputError(
            f"slicing by {by!r} needs the queries' columns: queries=... (a mapping, frame or file; --queries FILE), "
            "or by='complexity'."
        )
    return column_values(queries, by, derived)


def _queries(queries: Any, qrels: Any) -> Any:
    """The queries given, or those of the dataset that the file of judgments belongs to."""
    return queries_beside(Path(qrels)) if queries is None and isinstance(qrels, (str, Path)) else queries


def _table_slices(source: Any, where: TableOptions, queries: Any, by: str) -> Mapping[str, object]:
    return column_of_table(source, by, where) if queries is None else column_values(queries, by)


def _runs_given(runs: Mapping[str, Any] | Iterable[Any]) -> Iterator[tuple[str | None, Any]]:
    """The runs, each with the name it was given, if it was given one."""
    if isinstance(runs, (Run, str, Path)):
        raise InputError("compare takes several runs: a list of runs, or a mapping of name to run.")
    if isinstance(runs, Mapping):
        return ((str(name), readable_again(run)) for name, run in runs.items())
    return ((None, readable_again(run)) for run in runs)


def _texts(
    measures: str | Measure | Sequence[str | Measure] | None, spoken: Dialect
) -> dict[str, str | Measure]:
    listed = [] if measures is None else listed_measures(measures)
    listed = listed or list(spoken.measures)
    if not listed:
        raise MeasureError("no measure given; name at least one, as in nDCG@10.")
    return {str(text): text for text in spoken.expand(listed)}


def _measure_at(text: str | Measure, k: int | None, spoken: Dialect, shown: bool) -> Measure:
    """A measure at a cutoff, where it takes one and has none."""
    if k is None and shown:
        return spoken.measure(text)
    cut = DEFAULT_CUTOFF if k is None else k
    if not isinstance(text, str):
        text = spoken.measure(text)
        return text @ cut if text.cutoff is None and text.definition.cutoff != "none" else text
    plain = spoken.measure(text)
    if k is None and plain.cutoff is not None:
        return plain
    try:
        return spoken.measure(f"{text}@{cut}")
    except MeasureError:
        return plain


def _same_at_every_cutoff(
    texts: Iterable[str], cutoffs: Sequence[int | None], wanted: Mapping[tuple[int | None, str], Measure]
) -> list[Note]:
    """The note on measures with a cutoff of their own where rows are made for others."""
    own = [
        text
        for text in texts
        if any(k is not None and wanted[k, text].cutoff not in (None, k) for k in cutoffs)
    ]
    if not own:
        return []
    return [note("measures-with-own-cutoff", measures=own)]


def _cutoff(k: int) -> int:
    if isinstance(k, bool) or int(k) != k or k < 1:
        raise PolicyError(f"the cutoff {k} of `at` is not a whole number, 1 or more.")
    return int(k)


def _on_one_set(
    names: list[str], judged: list[str], kept: list[Sequence[str]], matrices: list[Any]
) -> tuple[tuple[str, ...], Any, list[Note]]:
    """The runs' matrices on one set of queries, NaN where a run lacks one; and notes."""
    everyone = set(kept[0]).union(*kept)
    asked = tuple(query for query in judged if query in everyone)
    place = {query: number for number, query in enumerate(asked)}
    values = np.full((len(names), len(matrices[0]), len(asked)), np.nan)
    notes: list[Note] = []
    for number, (name, queries, matrix) in enumerate(zip(names, kept, matrices, strict=True)):
        values[number][:, [place[query] for query in queries]] = matrix
        there = set(queries)
        gone = [query for query in asked if query not in there]
        if gone:
            notes.append(
                note(
                    "run-lacks-queries",
                    run=name,
                    count=len(gone),
                    queries=len(asked),
                    examples=gone[:3],
                )
            )
    return asked, values, notes
