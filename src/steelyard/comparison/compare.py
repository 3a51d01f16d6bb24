"""compare(): qrels and several runs in, a Comparison out; compare_scores() does the same for a table of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from steelyard.alignment.alignment import Alignment, align
from steelyard.checks import whole_number
from steelyard.comparison.data import ComparedRuns, EvaluatedRuns
from steelyard.comparison.lists import ListComparison, compare_lists
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import (
    DEFAULT_CUTOFF,
    Column,
    ScoreTable,
    TableOptions,
    directed,
    label,
    query_column,
    read_score_table,
    read_weights,
)
from steelyard.comparison.slices import COMPLEXITY, column_values, complexity
from steelyard.comparison.testing import STATISTICS, CompareOptions, ComparisonPlan, Statistics
from steelyard.coverage import not_measured, refuse_unmatched, with_doubts
from steelyard.datasets import Dataset
from steelyard.dialects import Dialect, listed_measures
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError, MeasureError, PolicyError, problem_report
from steelyard.evaluation import judged_qrels, on_scale, scores_of
from steelyard.frames import is_frame
from steelyard.io.datasets import queries_beside
from steelyard.io.files import distinct_names, names_file, streams_read_once
from steelyard.io.frames import runs_of_frame
from steelyard.measures.grammar import Measure, with_rel
from steelyard.notes import Note, note, warn_of
from steelyard.options import Options, check_names, resolve
from steelyard.qrels import Qrels
from steelyard.run import Run, readable_again
from steelyard.scores import Scores
from steelyard.wording import in_words, listed, worded

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from steelyard.comparison.predicted import Predictions

Weights = Mapping[str, float] | str | Path | None


@overload
def compare(
    qrels: None,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    at: int | Sequence[int] | None = None,
    **options: Any,
) -> ListComparison: ...


@overload
def compare(
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    baseline: str | None = None,
    composite: Weights = None,
    at: int | Sequence[int] | None = None,
    by: str | None = None,
    queries: Any = None,
    dialect: str | Dialect = "steelyard",
    equivalence: float | None = None,
    unmatched: Literal["error", "note"] = "error",
    predicted: Any = None,
    pool: Any = None,
    these_queries: bool = False,
    **options: Unpack[CompareOptions],
) -> Comparison: ...


def compare(
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    baseline: str | None = None,
    composite: Weights = None,
    at: int | Sequence[int] | None = None,
    by: str | None = None,
    queries: Any = None,
    dialect: str | Dialect = "steelyard",
    equivalence: float | None = None,
    unmatched: Literal["error", "note"] = "error",
    predicted: Any = None,
    pool: Any = None,
    these_queries: bool = False,
    **options: Any,
) -> Comparison | ListComparison:
    """Compare runs on the same qrels: which is best, by how much, and whether the difference is significant.

    qrels: as in `evaluate`. None compares the lists of the runs without qrels (overlap, RBO, rank correlation), at
    the depth `at` (one cutoff, default 10); measures and the other parameters do not apply.
    runs: a mapping of name to run (anything `evaluate` takes), a list of runs or files, or one long frame with a
    column that names the run of each row (run, system, retriever, ...).
    measures: as in `evaluate`; the first one ranks the runs.
    baseline: the run that every other run is compared with, by name or file name; default: all pairs.
    composite: weights of a composite score: a mapping, a file, or "default".
    at: a cutoff or several; one row per run and cutoff.
    by, queries: slice the queries by a column of `queries` (a mapping, frame or file; for qrels in a dataset's
    folder its queries.jsonl by default), or by "complexity".
    unmatched: what to do with a run that shares no query with the qrels, or whose document ids differ from
    those of the qrels: "error", or "note" to report it in its coverage.
    predicted, pool, these_queries: judgments predicted by a model, as in `evaluate`: means, differences and tests are
    then prediction-powered estimates.
    equivalence: a margin, as 0.01; runs are equivalent within it if the interval of their difference is.

    Statistics, as in `gate`
    test, correction: the paired test ("t"), and the correction of its p-values for the number of pairs ("holm").
    alpha, permutations, seed: the significance level (0.05), and the number and the seed (0) of random draws; by
    default 100,000 permutations, and 10,000 draws of the tests bootstrap, tukey and max-t.

    Policies: missing, no_relevant, ties, duplicates, unjudged, rel and depth, as in `evaluate`.

    >>> runs = {"x": {"q1": ["a"], "q2": ["c"]}, "y": {"q1": ["a"], "q2": ["b"]}}
    >>> result = compare({"q1": ["a"], "q2": ["b"]}, runs, ["RR"])
    >>> [row.run for row in result.leaderboard_rows], result.pairs["difference"].to_list()
    (['y', 'x'], [0.5])
    """
    statistics = {name: options.pop(name) for name in STATISTICS if name in options}
    check_names(options, (*(compare.__kwdefaults__ or ()), *STATISTICS))
    runs = runs_of_frame(runs) if is_frame(runs) else runs
    at = at if at is None or isinstance(at, Iterable) else [at]
    if qrels is None:
        needing = {"measures": measures, "baseline": baseline, "composite": composite, "by": by, "queries": queries}
        needing |= {"predicted": predicted, "equivalence": equivalence, **options}
        if given := [name for name, value in needing.items() if value is not None]:
            raise InputError(
                f"without qrels the lists of the runs are compared, and {listed(given)} cannot be used; leave "
                f"{worded(len(given), 'it', 'them')} out, or give qrels. `steelyard pool RUN RUN -o pool.jsonl` "
                "selects documents to judge."
            )
        if at is not None and len(at) != 1:
            raise InputError(f"without qrels runs are compared at one depth; got {listed(list(map(str, at)))}.")
        return compare_lists(runs) if at is None else compare_lists(runs, at[0])
    plan = ComparisonPlan(**statistics, equivalence=equivalence).checked()
    if baseline is not None and isinstance(runs, Mapping):
        # A wrong name is reported before anything is read.
        plan.with_baseline(baseline, list(map(str, runs)))
    runs = runs if isinstance(runs, Mapping) or predicted is None else list(runs)
    shared: dict[str, Any] = {"composite": composite, "at": at, "dialect": dialect, **options}
    evaluated = evaluate_runs(qrels, runs, measures, unmatched=unmatched, **shared)
    judged, tables = evaluated.source.qrels, evaluated.tables
    sliced = None if by is None else (by, slice_values(queries, qrels, by, judged, options.get("rel")))
    predictions = None
    if predicted is not None:
        from steelyard.comparison.predicted import Predictions
        from steelyard.predicted import judge_of

        other = evaluate_runs(predicted, runs, measures, unmatched="note", scale=judged, **shared)
        judge = judge_of(predicted)
        predictions = Predictions.of(judged, tables, other.tables, judge, pool, plan, these_queries)
        evaluated = replace(
            evaluated,
            tables=predictions.human,
            components=tuple(map(predictions.kept, evaluated.components)),
            coverage=predictions.coverage(evaluated.coverage, other.coverage, evaluated.source.alignments),
        )
    result = compare_evaluated(evaluated, plan, baseline, sliced, predictions=predictions)
    warn_of({"": result.notes, **{name: covered.all_notes() for name, covered in result.coverage.items()}})
    return result


def compare_evaluated(
    runs: EvaluatedRuns,
    plan: ComparisonPlan,
    baseline: str | None,
    sliced: tuple[str, Mapping[str, object]] | None,
    notes: Sequence[Note] = (),
    predictions: Predictions | None = None,
) -> Comparison:
    """The comparison of the runs that were measured, each with the baseline (its name or file name), if any."""
    names, sources = list(runs.source.runs), list(runs.source.runs.values())
    measured = runs.tables[0].runs
    if not measured:
        reasons = [f"{run}: {reason}" for run, reason in runs.unmeasured.items()]
        raise InputError(problem_report("no run was measured, so there is nothing to compare:", reasons))
    if baseline is not None:
        files = [name for name, run in zip(names, sources, strict=True) if names_file(baseline, run)]
        baseline = files[0] if baseline not in names and len(files) == 1 else baseline
        plan = plan.with_baseline(baseline, names)
        plan = plan if baseline in measured else replace(plan, baseline=None)
    unmeasured = [note("run-not-measured", run=run, reason=why) for run, why in runs.unmeasured.items()]
    unmeasured += [note("baseline-not-measured", run=baseline)] if baseline in runs.unmeasured else []
    return Comparison.of(runs, plan, sliced, (*unmeasured, *notes), predictions)


def evaluate_runs(
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: str | Measure | Sequence[str | Measure] | None,
    *,
    composite: Weights = None,
    at: Sequence[int] | None = None,
    dialect: str | Dialect = "steelyard",
    unmatched: Literal["error", "note"] = "error",
    unmeasured: Mapping[str, str] | None = None,
    sessions: Mapping[str, str] | None = None,
    scale: Qrels | None = None,
    **options: Any,
) -> EvaluatedRuns:
    """Evaluate runs that are to be compared; the other parameters are those of `compare`.

    unmeasured: runs known not to be measured, with the reason. sessions: as in ScoreTable. scale: qrels with the scale.
    """
    dialect = dialect_of(dialect)
    chosen = resolve(dialect.policies, options)
    named = ([] if measures is None else listed_measures(measures)) or list(dialect.measures)
    if not named:
        raise MeasureError("no measure given; name at least one, as in nDCG@10.")
    shown = {str(text): text for text in dialect.expand(named)}
    weights = None if composite is None else read_weights(composite)
    numbers = (whole_number("a cutoff of `at`", k, 1, error=PolicyError) for k in at or ())
    cutoffs: list[int | None] = [*dict.fromkeys(numbers)] or [None]
    parsed = {
        (k, key): with_rel(measure_at(shown.get(key, key), k, dialect, key in shown), chosen.rel)
        for k in cutoffs
        for key in dict.fromkeys([*shown, *(weights or {})])
    }
    judged = judged_qrels(qrels)
    parsed = on_scale(parsed, judged if scale is None else scale, dialect)
    evaluated = list(_evaluated(judged, runs, parsed, dialect, chosen))
    if not evaluated:
        raise InputError("no run to compare; expected at least one.")
    sources, lists, scores = zip(*evaluated, strict=True)
    names = distinct_names([run_scores.name for run_scores in scores], sources)
    coverage = {name: run_scores.coverage for name, run_scores in zip(names, scores, strict=True)}
    if unmatched == "error":
        refuse_unmatched(coverage)
    reasons = {name: (unmeasured or {}).get(name) or not_measured(coverage[name]) for name in names}
    measured = [name for name in names if reasons[name] is None]
    kept = [run_scores for name, run_scores in zip(names, scores, strict=True) if reasons[name] is None]
    # The values of all runs on the queries that any of them has, NaN where a run lacks one.
    present = {query for run_scores in kept for query in run_scores.queries}
    query_ids = tuple(query for query in judged.queries if query in present)
    place = {query: number for number, query in enumerate(query_ids)}
    values = np.full((len(kept), len(parsed), len(query_ids)), np.nan)
    for number, run_scores in enumerate(kept):
        values[number][:, [place[query] for query in run_scores.queries]] = run_scores.matrix
    table_pairs = []
    for block, values_at_k in zip(cutoffs, np.split(values, len(cutoffs), axis=1), strict=True):
        columns = tuple(Column(key, m.definition.better, m) for (k, key), m in parsed.items() if k == block)
        whole = ScoreTable(tuple(measured), columns, query_ids, values_at_k, block, sessions or {})
        table_pairs.append(whole.with_composite(list(shown), weights))
    tables, components = zip(*table_pairs, strict=True)
    # Measures with their own cutoff are the same in the rows of every `at`.
    own_cutoff = [key for key in shown if any(k and parsed[k, key].cutoff not in (None, k) for k in cutoffs)]
    return EvaluatedRuns(
        tables=tables,
        components=components,
        weights=weights,
        unmeasured={name: reason for name, reason in reasons.items() if reason is not None},
        coverage=coverage,
        notes=(note("measures-with-own-cutoff", measures=own_cutoff),) if own_cutoff else (),
        dialect=dialect.name,
        source=ComparedRuns(judged, dict(zip(names, sources, strict=True)), dict(zip(names, lists, strict=True))),
    )


@streams_read_once()
def compare_scores(
    source: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    options: TableOptions | None = None,
    baseline: str | None = None,
    composite: Weights = None,
    by: str | None = None,
    queries: Any = None,
    missing: str = "zero",
    equivalence: float | None = None,
    **statistics: Unpack[Statistics],
) -> Comparison:
    """Compare runs by a table of values per query that another tool computed (CSV, Parquet or a frame).

    `by` slices the queries by a column of `queries`, or of the table itself if None. statistics: as in `compare`.
    """
    check_names(statistics, compare_scores.__kwdefaults__ or (), STATISTICS)
    named = list(map(str, listed_measures(measures or ())))
    weights = None if composite is None else read_weights(composite)
    keys = list(dict.fromkeys([*named, *(weights or {})])) or None
    options = options or TableOptions()
    whole, notes = read_score_table(source, keys, options, missing)
    whole = directed(whole, options.lower, notes)
    shown = named or [column.key for column in whole.columns if column.key != by]
    plan = ComparisonPlan(**statistics, equivalence=equivalence).checked().with_baseline(baseline, whole.runs)
    table, components = whole.with_composite(shown, weights)
    sliced = None
    if by is not None:
        sliced = by, query_column(source, by, options) if queries is None else column_values(queries, by)
    nothing = ComparedRuns(Qrels({}), {}, {})
    return Comparison.of(EvaluatedRuns((table,), (components,), weights, nothing, notes=tuple(notes)), plan, sliced)


def _evaluated(
    qrels: Qrels,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: Mapping[tuple[int | None, str], Measure],
    dialect: Dialect,
    options: Options,
) -> Iterator[tuple[Any, Alignment, Scores]]:
    """Every run as it was passed, its lists joined with the qrels, and its scores of the measures at every cutoff."""
    if isinstance(runs, (Run, str, Path)):
        raise InputError("compare takes several runs: a list of runs, or a mapping of name to run.")
    labelled = {label(key, k): measure for (k, key), measure in measures.items()}
    named: Iterable[tuple[str | None, Any]] = ((None, run) for run in runs)
    if isinstance(runs, Mapping):
        named = ((str(name), run) for name, run in runs.items())
    for name, given in named:
        run = readable_again(given)
        aligned = with_doubts(align(qrels, run, options.ordering, name), qrels, run)
        try:
            scores = scores_of(aligned, labelled, dialect, options)
        except MeasureError as error:
            raise MeasureError(f"run {aligned.name!r}: {error}") from None
        yield run, options.lists(aligned.alignment), scores


def measure_at(text: str | Measure, k: int | None, dialect: Dialect, shown: bool) -> Measure:
    """A measure at a cutoff, where it takes one and has none."""
    if k is None and shown:
        return dialect.measure(text)
    cutoff, measure = DEFAULT_CUTOFF if k is None else k, dialect.measure(text)
    if not isinstance(text, str):
        return measure @ cutoff if measure.cutoff is None and measure.definition.cutoff != "none" else measure
    if k is not None or measure.cutoff is None:
        with suppress(MeasureError):
            return dialect.measure(f"{text}@{cutoff}")
    return measure


def slice_values(queries: Any, qrels: Any, by: str, judged: Qrels, rel: float | None = None) -> dict[str, object]:
    """The column to slice by; complexity is derived from the qrels where the queries do not have it."""
    if queries is None and isinstance(qrels, (str, Path)):
        queries = queries_beside(Path(qrels))
    elif queries is None and isinstance(qrels, Dataset):
        columns = qrels.queries.columns
        queries = {query: {name: values.get(query) for name, values in columns.items()} for query in qrels.queries}
    derived: dict[str, object] | None = {**complexity(judged, rel)} if by == COMPLEXITY else None
    if queries is not None:
        return column_values(queries, by, derived)
    if derived is None:
        in_python = "queries=... (a mapping, frame or file; --set queries=FILE), or by='complexity'."
        how = in_words(in_python, "--set queries=FILE, or --by complexity.")
        raise InputError(f"slicing by {by!r} needs the queries' columns: {how}")
    return derived
