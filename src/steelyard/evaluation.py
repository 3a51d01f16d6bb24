"""evaluate(): qrels and a run in, Scores out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from steelyard.alignment.alignment import Aligned, Alignment, align
from steelyard.alignment.hits import Floats
from steelyard.coverage import Coverage, Levels, coverage_of, level_of, with_doubts, without_relevant
from steelyard.dialects import Dialect, listed_measures
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError, MeasureError, PolicyError, problem_report
from steelyard.measures.compute import QrelsTraits, values
from steelyard.measures.grammar import Measure, build, with_rel
from steelyard.measures.registry import definitions
from steelyard.notes import Note, Texts, declare, note, warn_of
from steelyard.options import Options, Policies, check_names, resolve
from steelyard.qrels import Qrels
from steelyard.run import Run, readable_again
from steelyard.scores import Inputs, Scores
from steelyard.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Unpack

_K = TypeVar("_K")

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR@10", "R@100", "P@10")

WARNINGS: Texts = {
    "lists-shorter-than-cutoff": "no list has more than {longest:,} {longest:document|documents}, so {limits:listed}",
    "cutoff-deeper-than-lists": "the lists end at {depth:,} {depth:document|documents}, and {measures:listed} "
    "{measures:has a deeper cutoff|have deeper cutoffs}: relevant documents below count as not found",
}
SHORT: Texts = {
    "cutoff-deeper-than-lists": "the lists end at {depth:,} {depth:document|documents}, above the cutoff of "
    "{measures:listed 2}"
}
declare(warning=WARNINGS, short=SHORT)


def evaluate(
    qrels: Any,
    run: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    dialect: str | Dialect = "steelyard",
    name: str | None = None,
    roll_up: Any = None,
    predicted: Any = None,
    pool: Any = None,
    these_queries: bool = False,
    **options: Unpack[Policies],
) -> Scores:
    """Evaluate a run.

    qrels, run: Qrels and Run objects, paths, mappings, frames, records, named tuples, or ranx's own objects. A Dataset
    or its folder gives its qrels.
    measures: texts or measures, Steelyard's or those of ir_measures; default nDCG@10, AP, RR@10, R@100 and P@10.
    dialect: whose definitions to use; measures are then that tool's names.
    name: the name of the run.
    roll_up: evaluate a run of chunks at the level of their documents: a mapping of chunk to document, a function,
    the chunks, or a RollUp.
    predicted: judgments predicted by a model, for the queries of `qrels` and for others. The result is then a
    prediction-powered estimate, valid if the queries of `qrels` were drawn at random; `pool` is the Pool that
    records this. these_queries: its interval is of the mean over exactly these queries, not over all queries like them.

    What may make the numbers mislead, or meaningless (no shared query, document ids that differ), is in `notes` of the
    result and also shown as a SteelyardWarning.

    Options (None: the dialect's own value)
    missing: queries that are not in the run: "zero", "skip" or "error".
    no_relevant: queries without a relevant document: "zero" or "skip".
    ties: order of equal scores: "docid-desc", "docid-asc", "stable" or "expected".
    duplicates: a document that is repeated in a list: "hold", "collapse" or "error".
    unjudged: "keep", or "remove" to measure condensed lists.
    rel: lowest grade that counts as relevant, where a measure does not state it.
    depth: cut every list at this depth.

    >>> evaluate({"q1": ["a", "b"]}, {"q1": ["x", "a"]}, ["RR", "R@2"]).means
    {'RR': 0.5, 'R@2': 0.5}
    """
    check_names(options, evaluate.__kwdefaults__ or ())
    dialect, chosen, named = prepare(measures, dialect, options)
    if roll_up is not None:
        from steelyard.evidence.chunks import RollUp

        run = (roll_up if isinstance(roll_up, RollUp) else RollUp(roll_up))(Run.of(run, name))
    judged = judged_qrels(qrels)
    named = on_scale(named, judged, dialect)
    run = readable_again(run)
    aligned = with_doubts(align(judged, run, chosen.ordering, name), judged, run)
    scores = scores_of(aligned, named, dialect, chosen, Inputs.of(qrels, judged, run))
    if predicted is not None:
        from steelyard.predicted import judge_of, predicted_scores

        by_model = scores_of(align(Qrels.of(predicted), run, chosen.ordering, name), named, dialect, chosen)
        scores = predicted_scores(scores, judged, by_model, judge_of(predicted), pool, these_queries)
    warn_of({scores.name: scores.notes})
    return scores


def judged_qrels(source: Any) -> Qrels:
    """The qrels; an error if they have no query, so that nothing can be measured."""
    qrels = Qrels.of(source)
    if not len(qrels.judged.query_ids):
        raise no_grades_error(source if isinstance(source, (str, Path)) else None)
    return qrels


def no_grades_error(path: str | Path | None = None) -> InputError:
    """The error for qrels without a grade."""
    return InputError(
        "no document has a grade, so nothing can be measured: the qrels are empty, or every judgment is "
        "'cannot tell' (grade null). Judge documents first, as with `steelyard judge`.",
        path,
    )


def prepare(
    measures: str | Measure | Sequence[str | Measure] | None,
    dialect: str | Dialect,
    options: Mapping[str, Any] | Policies,
) -> tuple[Dialect, Options, dict[str, Measure]]:
    """The dialect, the options and the measures of an evaluation, checked before anything is read."""
    dialect = dialect_of(dialect)
    chosen = resolve(dialect.policies, options)
    default = dialect.measures or DEFAULT_MEASURES
    return dialect, chosen, named_measures(default if measures is None else measures, dialect, chosen.rel)


def named_measures(
    measures: str | Measure | Sequence[str | Measure], dialect: Dialect, rel: float | None = None
) -> dict[str, Measure]:
    """The measures keyed as they were written, each with its companion (RBP and its residual)."""
    listed = dialect.expand(listed_measures(measures))
    if not listed:
        raise MeasureError("no measure given; name at least one, as in nDCG@10.")
    named: dict[str, Measure] = {}
    for text in listed:
        measure = with_rel(dialect.measure(text), rel)
        named[str(text)] = measure
        # A dialect's own name is a column of its tool, which has no companion.
        if measure.definition.companion and (dialect.name == "steelyard" or str(text) == str(measure)):
            other = definitions()[measure.definition.companion]
            shared = {key: value for key, value in measure.given if other.parameter(key) is not None}
            named[f"{text} residual"] = build(other, shared, None if other.cutoff == "none" else measure.cutoff)
    return named


def on_scale(named: dict[_K, Measure], qrels: Qrels, dialect: Dialect) -> dict[_K, Measure]:
    """The measures with the lowest relevant grade of the qrels' scale, where neither they nor the call state one.

    A dialect has a level of its own: that of its tool.
    """
    if dialect.name != "steelyard":
        return named
    return {key: with_rel(measure, qrels.relevant_from) for key, measure in named.items()}


def scores_of(
    aligned: Aligned, measures: dict[str, Measure], dialect: Dialect, options: Options, inputs: Inputs | None = None
) -> Scores:
    """The scores of an alignment."""
    a = options.lists(aligned.alignment)
    levels = Levels.of(measures, options.rel)
    coverage = coverage_of(aligned, a, options, levels, deepest_cutoff(measures))
    coverage = noted(coverage, measures, QrelsTraits.of(a, measures), Lengths.of(a))
    if options.missing == "error" and coverage.missing:
        raise missing_error(list(compress(a.queries, (~a.answered).tolist())), coverage.missing, a.size, aligned.name)
    # The lists of measures for which the dialect orders equal scores in another way.
    own_options = dialect.own_options(measures, options)
    lists = {ordering: aligned.again(ordering) for ordering in {policies.ordering for policies in own_options.values()}}
    own_lists = {key: policies.lists(lists[policies.ordering]) for key, policies in own_options.items()}
    queries, matrix = query_values(a, measures, options, own_lists)
    return Scores(aligned.name, dialect.name, measures, queries, matrix, coverage, inputs, a)


def noted(coverage: Coverage, measures: Mapping[str, Measure], traits: QrelsTraits, lengths: Lengths) -> Coverage:
    """The coverage with notes on grades, lengths of lists and qrels that do not fit some of the measures."""
    on_grades = coverage.levels.notes(coverage, traits.lowest_positive)
    on_lists = lengths.notes(measures, coverage.policies.depth)
    return replace(coverage, notes=(*coverage.notes, *on_grades, *on_lists, *traits.notes(measures)))


def query_values(
    a: Alignment, measures: Mapping[str, Measure], options: Options, own: Mapping[str, Alignment] | None = None
) -> tuple[list[str], Floats]:
    """The queries that the options keep, and one row of values per measure; `own` are lists of single measures."""
    kept = a.answered if options.missing == "skip" else np.ones(a.size, dtype=bool)
    matrix = np.empty((len(measures), int(kept.sum())))
    for row, (key, measure) in enumerate(measures.items()):
        matrix[row] = measure_values(measure, (own or {}).get(key, a), options)[kept]
    return list(a.queries if kept.all() else compress(a.queries, kept.tolist())), matrix


def measure_values(measure: Measure, a: Alignment, options: Options) -> Floats:
    """A measure's value for every query of an alignment; NaN where the options leave a query out."""
    per_query: Floats = values(measure, a, expected=options.ties == "expected")
    for part, _ in measure.parts if options.no_relevant == "skip" else ():
        if part.definition.needs_relevant:
            per_query = np.where(without_relevant(a, level_of(part)), np.nan, per_query)
    return per_query


def deepest_cutoff(measures: Mapping[str, Measure]) -> float:
    """The deepest rank that any of the measures reads; infinite where one reads the whole list."""
    by_rank = [m.cutoff if m.definition.cutoff_kind == "rank" else None for m in measures.values()]
    return max((np.inf if cutoff is None else cutoff for cutoff in by_rank), default=np.inf)


_SHORTEST_CUT = 5  # Lists that are all shorter than this are an example rather than a run that was cut.


@dataclass(frozen=True)
class Lengths:
    """The lengths of the lists of some queries. Those of two sets of queries add up to those of both.

    longest: the longest length. full: the lists that have it. lists: all lists. unfound: relevant documents of answered
    queries that are in no list.
    """

    longest: int = 0
    full: int = 0
    lists: int = 0
    unfound: int = 0

    @classmethod
    def of(cls, a: Alignment) -> Lengths:
        """The lengths of an alignment."""
        lengths = a.retrieved[a.answered]
        longest = int(lengths.max(initial=0))
        unfound = int(a.above_zero[a.answered].sum()) - int(np.sum(a.grade > 0))
        return cls(longest, int(np.sum(lengths == longest)), len(lengths), unfound)

    def __add__(self, other: Lengths) -> Lengths:
        longest = max(self.longest, other.longest)
        full = sum(one.full for one in (self, other) if one.longest == longest)
        return Lengths(longest, full, self.lists + other.lists, self.unfound + other.unfound)

    def notes(self, measures: Mapping[str, Measure], depth: int | None) -> list[Note]:
        """A note on precision with a cutoff deeper than the longest list, and one on cutoffs below the cut."""
        limits: list[str] = []
        for key, m in measures.items():
            if m.name == "P" and m.parameters["denominator"] == "k" and (cutoff := m.cutoff or 0) > self.longest > 0:
                limits.append(f"{key} {'' if limits else 'cannot exceed '}{self.longest / cutoff:.2g}")
        shorter = [note("lists-shorter-than-cutoff", limits=limits, longest=self.longest)] if limits else []
        # The lists were cut at `depth`, or at the length of the longest list if at least half of them have it.
        seen = self.longest >= _SHORTEST_CUT and 2 * self.full >= self.lists
        cut = depth or (self.longest if seen else None)
        if cut is None or self.longest < cut or not self.unfound:
            return shorter
        deeper = [key for key, m in measures.items() if m.definition.cutoff_kind == "rank" and (m.cutoff or 0) > cut]
        return [*shorter, *([note("cutoff-deeper-than-lists", measures=deeper, depth=cut)] if deeper else [])]


def missing_error(absent: Sequence[str], missing: int, queries: int, name: str) -> PolicyError:
    """The error of `missing="error"`; `absent` are the first of the `missing` queries, or all of them."""
    judged = counted(queries, "judged query", "judged queries")
    headline = f"run {name!r} has no list for {missing:,} of {judged} (missing=error):"
    advice = "Run those queries, or choose missing=zero or missing=skip."
    return PolicyError(problem_report(headline, [f"query {query!r}" for query in absent], advice, missing))
