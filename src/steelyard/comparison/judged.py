"""What is known of the documents of a comparison: judged shares, bounds, verdicts that depend on unjudged ones.

For a significant difference each convention for unjudged documents is computed: they are not relevant (the plain
test), they are removed (condensed lists), they get estimated grades (`unjudged`), or any grades (bounds). Whether the
qrels look as if they were made from the run that the difference favours is found by `provenance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Bools, Floats, Remembers
from steelyard.comparison import unjudged as imputation
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.pairs import Pair, PairTest
from steelyard.comparison.provenance import Edge, find_edge
from steelyard.comparison.rules import within_margin
from steelyard.comparison.scores import COMPOSITE, Column, ScoreTable
from steelyard.comparison.testing import ComparisonPlan
from steelyard.comparison.unjudged import MOST_RANKS, JoinedLists, RunLists, count_unjudged, join_lists, pair_bounds
from steelyard.errors import MeasureError
from steelyard.lazy import polars as pl
from steelyard.measures.bounds import bounds, judged_share, rank_cutoff
from steelyard.measures.compute import values
from steelyard.measures.gradings import ABSENT, Unjudged, graded_draws, is_fixed, reads_zeros
from steelyard.measures.grammar import Measure
from steelyard.measures.registry import definitions
from steelyard.notes import Note, note
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.statistics import t_test

Result = TypeVar("Result")

FIRST, POOL_DEPTH, NEARLY_ALL = 3, 10, 0.9
"""Documents were judged by rank if the first 3 of a run, or 10 per query, are judged, in nearly all cases (90%)."""

ALL_JUDGED = 0.995  # A judged share that is shown as 100%: judged shares and bounds are not shown from here on.
MOST_DOCUMENTS = 5_000_000  # Of two runs' lists, up to which bounds of the difference and estimates are computed.
MOST_BOUNDED = 5_000_000  # Over all pairs and measures, up to which bounds of differences are computed: some seconds.


class Part(NamedTuple):
    """A measure of a column: the column's own, or one of a composite with its weight (inverted: 1 - value)."""

    measure: Measure
    weight: float = 1.0
    inverted: bool = False


PartsOf = Mapping[tuple[str, int | None], Sequence[Part]]
"""The measures of every column, by its key and the cutoff of its table."""


@dataclass(frozen=True)
class Conventions:
    """The difference of two runs by each convention for unjudged documents; None where it was not computed.

    `judged_*`: the share of judged documents above the measure's cutoff. `bound_low`, `bound_high`: the lowest and
    highest difference that any grading gives; `bound_p`: a p-value that none exceeds (`largest_p`). `condensed*`,
    `imputed*`: the mean difference and its p-value with condensed lists and with estimated grades (and 95% interval).
    `unjudged`: the number of unjudged documents that either run has above the cutoff. `drawn`: the lowest and highest
    mean difference of all drawn grades. `checked`: False if the lists are too long to estimate grades.
    """

    judged_run: float | None = None
    judged_baseline: float | None = None
    bound_low: float | None = None
    bound_high: float | None = None
    bound_p: float | None = None
    condensed: float | None = None
    condensed_p: float | None = None
    imputed: float | None = None
    imputed_p: float | None = None
    imputed_low: float | None = None
    imputed_high: float | None = None
    unjudged: int = 0
    drawn: tuple[float, float] | None = None
    checked: bool = True

    @property
    def all_judged(self) -> bool:
        """Whether every document that the measure reads in the two lists is judged."""
        return min(self.judged_run or 0, self.judged_baseline or 0) >= 1

    def negated(self) -> Conventions:
        """The conventions of the pair with the runs in the other order."""
        swapped = {"bound_low": self.bound_high, "bound_high": self.bound_low}
        swapped |= {"imputed_low": self.imputed_high, "imputed_high": self.imputed_low}
        swapped |= {"imputed": self.imputed, "condensed": self.condensed}
        minus: dict[str, Any] = {name: None if value is None else -value for name, value in swapped.items()}
        drawn = None if self.drawn is None else (-self.drawn[1], -self.drawn[0])
        return replace(self, judged_run=self.judged_baseline, judged_baseline=self.judged_run, drawn=drawn, **minus)


class GradedLists:
    """The lists of two runs with drawn grades, for all measures; each draw is a query of a larger alignment."""

    def __init__(self, lists: JoinedLists, noise: imputation.Noise) -> None:
        self.lists = lists
        self._draws = cache(partial(imputation.GradeDraws, lists.pair, noise))
        self._alignments: dict[tuple[int, bool], Sequence[Alignment]] = {}
        self.pooled = cache(partial(imputation.pooled, lists.pair))

    def values(self, part: Part, sides: tuple[Alignment, Alignment], depth: int) -> tuple[Floats, Floats]:
        """A measure of both runs, draws x queries; drawn grades down to a depth."""
        if is_fixed(part.measure):
            first, second = (np.tile(values(part.measure, a), (imputation.DRAWS, 1)) for a in sides)
            return first, second
        # Documents graded 0 only where a measure reads them, as most grades are 0.
        zeros = reads_zeros(part.measure)
        if (depth, zeros) not in self._alignments:
            pair = self.lists.pair
            wanted = pair.unjudged & pair.within(depth)
            ranks = [np.where(np.isfinite(r[wanted]), r[wanted], ABSENT).astype(np.int64) for r in pair.ranks]
            docs = Unjudged(pair.query[wanted], (ranks[0], ranks[1]), sides[0].size)
            drawn = graded_draws(sides, docs, self._draws().numbers(wanted), self._draws().levels, zeros)
            self._alignments[depth, zeros] = drawn
        first, second = (values(part.measure, a).reshape(imputation.DRAWS, -1) for a in self._alignments[depth, zeros])
        return first, second


@dataclass(eq=False)
class JudgedDocuments(Remembers):
    """The alignments and lists of the runs of a comparison, and what follows from their unjudged documents.

    `bounded` counts the documents that bounds of differences were computed over, `without_bounds` the differences that
    have none because the lists are too long.
    """

    qrels: Qrels
    source: Callable[[str], Run]
    alignments: dict[str, Alignment]
    options: Options
    seed: int = 0
    test: str = "t"
    bounded: int = 0
    without_bounds: int = 0
    _pairs: dict[tuple[str, str], GradedLists] = field(default_factory=dict, repr=False)

    @property
    def level(self) -> float:
        """The lowest relevant grade, by the options or by the scale of the qrels."""
        return next((rel for rel in (self.options.rel, self.qrels.relevant_from) if rel is not None), 1.0)

    @cached_property
    def edges(self) -> dict[str, Edge]:
        """The runs whose first documents were probably the ones that were judged, with the depth.

        Where every other run is judged to that depth too, the qrels favour none of them. Of several depths the smallest
        explains the qrels: a similar run has the same documents further down.
        """
        edges = {}
        level = self.options.rel if self.options.rel is not None else 1.0
        for name, a in self.alignments.items():
            kept = a.grade >= 0
            judged, positives = int(np.sum(a.judged.grade >= 0)), int(np.sum(a.judged.grade >= level))
            edge = find_edge(a.query[kept], a.rank[kept].astype(np.float64), a.grade[kept] >= level, judged, positives)
            if edge is None:
                continue
            others = [other for run, other in self.alignments.items() if run != name]
            first = [(np.sum(b.rank <= edge.depth), np.minimum(b.retrieved, edge.depth).sum()) for b in others]
            # Lists of the same candidates end where these end, which says nothing; or most of them are judged.
            same = all(len(b.query) == len(a.query) and np.array_equal(b.retrieved, a.retrieved) for b in others)
            if same and others and np.mean(a.retrieved[a.retrieved > 0] < 2 * edge.depth) > 0.5:
                continue
            if not others or any(judged_there != returned for judged_there, returned in first):
                edges[name] = edge
        smallest = min((edge.depth for edge in edges.values()), default=0)
        return {name: edge for name, edge in edges.items() if edge.depth == smallest}

    @cached_property
    def relevant_only(self) -> bool:
        """Whether no document is judged not relevant: nothing is known of unjudged documents then."""
        grades = self.qrels.grades
        return bool(len(grades)) and not bool(np.any((grades >= 0) & (grades < self.level)))

    @cached_property
    def judged_by_rank(self) -> bool:
        """Whether documents were judged because runs returned them; otherwise they were chosen, and say nothing.

        This is so if they are from a judgments file, if the first documents of one of the runs are judged, or if nearly
        every query has as many judged documents as a pool of other runs would have.
        """
        if self.qrels.from_judgments:
            return True
        first = Measure(definitions()["Judged"], cutoff=FIRST)
        for a in self.alignments.values():
            shares = values(first, a)[a.answered & (a.retrieved > 0)]
            if len(shares) and shares.mean() >= NEARLY_ALL:
                return True
        counts = np.bincount(self.qrels.doc_query[self.qrels.grades >= 0], minlength=len(self.qrels.judged.query_ids))
        return len(counts) > 0 and bool(np.mean(counts >= POOL_DEPTH) >= NEARLY_ALL)

    @property
    def informative(self) -> bool:
        """Whether the judgments say something about unjudged documents."""
        return not self.relevant_only and self.judged_by_rank

    def share(self, parts: Sequence[Part], run: str, kept: Bools | None = None) -> float | None:
        """The mean share of judged documents above the cutoff (`kept`: its queries); None if grades do not matter."""
        graded_parts = [part for part in parts if not is_fixed(part.measure)]
        if not graded_parts:
            return None
        a, deepest = self.alignments[run], max(graded_parts, key=lambda part: rank_cutoff(part.measure) or ABSENT)
        shares = self.once(("share", run, deepest.measure), lambda: judged_share(deepest.measure, a))
        answered = a.answered & (a.retrieved > 0)
        answered = answered if kept is None else answered & kept
        return float(shares[answered].mean()) if answered.any() else None

    def value_bounds(self, parts: Sequence[Part], run: str, kept: Bools) -> tuple[float, float] | None:
        """The lowest and highest value of a run that any grading gives. None without unjudged documents in the lists,
        or if a measure needs more of the documents than their grades."""
        if self.options.unjudged == "remove" or int(self.alignments[run].retrieved.sum()) > MOST_DOCUMENTS:
            return None
        total = sum(part.weight for part in parts)
        low = high = 0.0
        for part in parts:
            part_bounds = _if_computable(partial(bounds, part.measure, self.alignments[run]))
            if part_bounds is None:
                return None
            ends = part_bounds.where(kept).summary(part.measure)
            least, most = (1 - ends[1], 1 - ends[0]) if part.inverted else ends
            low, high = low + part.weight / total * least, high + part.weight / total * most
        return low, high

    def conventions(
        self,
        parts: Sequence[Part],
        run: str,
        baseline: str,
        kept: Bools,
        whole: bool,
        decisive: Callable[[Conventions], bool] = lambda conventions: False,
    ) -> Conventions:
        """The conventions of a pair; the costly ones only where `whole`. `kept`: the queries that count.

        decisive: whether bounds would decide the verdict: then they are computed however many there are, since a
        verdict must not depend on what else is compared.
        """
        share_run, share_base = self.share(parts, run), self.share(parts, baseline)
        conventions = Conventions(share_run, share_base)
        if share_run is None or share_base is None or conventions.all_judged or not whole:
            return conventions
        a, b = self.alignments[run], self.alignments[baseline]
        # In one order of the two runs, whatever they are called: the same pair has the same estimates.
        if (a.query.tobytes(), a.rank.tobytes()) > (b.query.tobytes(), b.rank.tobytes()):
            reverse = self.conventions(parts, baseline, run, kept, whole, lambda swapped: decisive(swapped.negated()))
            return reverse.negated()
        condensed = _if_computable(lambda: self._condensed(parts, run, baseline, kept))
        if condensed is not None:
            conventions = replace(conventions, condensed=condensed.difference, condensed_p=condensed.p)
        if self.options.unjudged == "remove":
            return conventions
        if int(a.retrieved.sum() + b.retrieved.sum()) > MOST_DOCUMENTS:
            return replace(conventions, checked=not self.informative)
        cutoffs = [rank_cutoff(part.measure) or MOST_RANKS for part in parts if not is_fixed(part.measure)]
        depth = min(max(cutoffs), MOST_RANKS)
        conventions = replace(conventions, unjudged=count_unjudged(self._top(run), self._top(baseline), depth))
        imputed = None
        if conventions.unjudged and self.judged_by_rank:
            imputed = _if_computable(lambda: self._imputed(parts, a, b, self._lists_of(run, baseline), depth, kept))
        if imputed is not None:
            conventions = replace(conventions, imputed=imputed.difference, imputed_p=imputed.p)
            conventions = replace(conventions, imputed_low=imputed.low, imputed_high=imputed.high, drawn=imputed.drawn)
        work = len(parts) * int(a.retrieved.sum() + b.retrieved.sum())
        if self.bounded + work <= MOST_BOUNDED:
            self.bounded += work
        elif not decisive(conventions):
            self.without_bounds += 1
            return conventions
        ends = _if_computable(lambda: self._bounds(parts, a, b, self._lists_of(run, baseline).lists, kept))
        if ends is None:
            return conventions
        low, high = (float(np.nanmean(end)) for end in ends)
        least, most = (end[~np.isnan(end)] for end in (ends if low > 0 else (-ends[1], -ends[0])))
        p = imputation.largest_p(least, most, self.test) if low * high > 0 else None
        return replace(conventions, bound_low=low, bound_high=high, bound_p=p)

    def _condensed(self, parts: Sequence[Part], run: str, baseline: str, kept: Bools) -> imputation.DifferenceTest:
        """The difference with condensed lists."""

        def measured(measure: Measure, run: str) -> Floats:
            a = self.alignments[run]
            lists = self.once(("condensed", run), lambda: a if a.judged_only else a.without_unjudged())
            return self.once(("condensed", run, measure), lambda: values(measure, lists))

        sides = (_combined(parts, [measured(part.measure, name) for part in parts]) for name in (run, baseline))
        return _tested(parts, [side[None, kept] for side in sides], self.test)

    def _imputed(
        self, parts: Sequence[Part], a: Alignment, b: Alignment, drawn: GradedLists, depth: int, kept: Bools
    ) -> imputation.DifferenceTest | None:
        """The difference with estimated grades; None where the qrels were not pooled."""
        if not drawn.pooled(depth, self.level):
            return None
        sides = zip(*(drawn.values(part, (a, b), depth) for part in parts), strict=True)
        return _tested(parts, [_combined(parts, side)[:, kept] for side in sides], self.test)

    def _bounds(
        self, parts: Sequence[Part], a: Alignment, b: Alignment, lists: JoinedLists, kept: Bools
    ) -> tuple[Floats, Floats] | None:
        """The lowest and highest difference of every query; for a composite the sum of its parts' bounds."""
        if _column(parts).geometric:
            return None  # Its bounds do not follow from those of the differences.
        total = sum(part.weight for part in parts)
        low = high = np.zeros(int(kept.sum()))
        for part in parts:
            ends = pair_bounds(part.measure, a, b, lists.shared)
            least, most = (-ends.high, -ends.low) if part.inverted else (ends.low, ends.high)
            low, high = low + part.weight / total * least[kept], high + part.weight / total * most[kept]
        return low, high

    def _top(self, run: str) -> RunLists:
        """The lists of a run, down to the depth that is measured."""

        def read() -> RunLists:
            rows = ranked_rows(self.source(run), self.options.ordering)
            depth = self.options.depth
            return RunLists.of(rows if depth is None else rows.filter(pl.col("rank") <= depth), self.qrels)

        return self.once(("lists", run), read)

    def _lists_of(self, run: str, baseline: str) -> GradedLists:
        if (run, baseline) not in self._pairs:
            # One pair at a time: the lists of all pairs would not fit.
            self._pairs.clear()
            size = len(self.qrels.judged.query_ids)
            joined = join_lists(self._top(run), self._top(baseline), size)
            noise = self.once("noise", lambda: imputation.Noise(imputation.DRAWS, size, self.seed))
            self._pairs[run, baseline] = GradedLists(joined, noise)
        return self._pairs[run, baseline]


def _if_computable(compute: Callable[[], Result | None]) -> Result | None:
    """The result; None where a measure needs more of the documents than their grades (a budget)."""
    try:
        return compute()
    except MeasureError:
        return None


def _column(parts: Sequence[Part]) -> Column:
    """The column of a measure of its own; a composite is a mean."""
    return Column("", measure=parts[0].measure if len(parts) == 1 else None)


def _tested(parts: Sequence[Part], sides: Sequence[Floats], chosen: str) -> imputation.DifferenceTest:
    """The difference of two runs, from their values, draws x queries; p of the chosen test if it is one of ranks."""
    column, (run, baseline) = _column(parts), sides
    gaps = column.tested(run) - column.tested(baseline)
    test = imputation.combined_test(gaps)
    means = np.nanmean(gaps, axis=1) if gaps.size else np.zeros(1)
    test = replace(test, drawn=(float(means.min()), float(means.max())))
    if chosen in imputation.RANK_TESTS:
        test = replace(test, p=imputation.combined_rank_test(gaps, chosen))
    if not column.geometric:
        return test
    reference = float(np.mean([column.mean(row) for row in baseline]))
    difference, low, high = (column.change(end, reference) for end in (test.difference, test.low, test.high))
    return replace(test, difference=difference, low=low, high=high)


def _combined(parts: Sequence[Part], part_values: Sequence[Floats]) -> Floats:
    """The value of a column: the measure's own, or the weighted mean of a composite's parts."""
    if len(parts) == 1 and not parts[0].inverted:
        return part_values[0]
    total = sum(part.weight for part in parts)
    values = [1 - value if part.inverted else value for part, value in zip(parts, part_values, strict=True)]
    return np.asarray(sum(part.weight / total * value for part, value in zip(parts, values, strict=True)))


UNDECIDED = "Undecided: significant only if unjudged documents are not relevant."
UNCHECKED = "Undecided: the lists are too long to check whether the difference depends on unjudged documents."


def parts_of(column: Column, components: ScoreTable | None, weights: Mapping[str, float] | None) -> list[Part]:
    """The measures of a column; none for a table of values of another tool."""
    if column.key == COMPOSITE and components is not None and weights:
        return [
            Part(component.measure, weights[component.key], component.better == "less")
            for component in components.columns
            if component.measure is not None
        ]
    return [] if column.measure is None else [Part(column.measure)]


def with_conventions(
    pairs: Sequence[Pair], tests: Sequence[PairTest], parts: PartsOf, plan: ComparisonPlan, judged: JudgedDocuments
) -> list[Pair]:
    """The pairs of some tests with their judged shares and conventions, `undecided` where that applies."""
    place = {query: number for number, query in enumerate(judged.qrels.judged.query_ids)}
    updated_pairs = []
    for pair, test in zip(pairs, tests, strict=True):
        measure_parts = parts.get((pair.measure, pair.k))
        if not measure_parts:
            updated_pairs.append(pair)
            continue
        gap = test.gap
        kept = np.zeros(len(place), dtype=bool)
        kept[[place[query] for query in compress(test.table.queries, (~np.isnan(gap)).tolist())]] = True
        claimed = pair.verdict in ("better", "worse", "equal") or pair.equivalent is not None

        def decisive(others: Conventions, pair: Pair = pair, gap: Floats = gap) -> bool:
            """Whether the pair is undecided without bounds, and no drawn grades have shown that bounds contain 0."""
            if others.drawn is not None and others.drawn[0] <= 0 <= others.drawn[1]:
                return False
            return _verdict(pair, by_test(plan.test, pair.p, pair.difference, others, gap), plan, judged) == "undecided"

        conventions = judged.conventions(measure_parts, pair.run, pair.baseline, kept, claimed, decisive)
        conventions = by_test(plan.test, pair.p, pair.difference, conventions, gap)
        verdict = _verdict(pair, conventions, plan, judged)
        low, high, equivalent = conventions.imputed_low, conventions.imputed_high, pair.equivalent
        if verdict == "undecided" or (pair.names & set(judged.edges) and not conventions.all_judged):
            equivalent = None  # It depends on unjudged documents.
        elif equivalent is not None and low is not None and high is not None:
            equivalent = equivalent if within_margin(low, high, equivalent) else None
        if verdict == "undecided":
            pair = replace(pair, stars="", sentence=UNDECIDED if conventions.checked else UNCHECKED)
        shown = {key: value for key, value in vars(conventions).items() if key not in ("bound_p", "drawn", "checked")}
        ends = {"imputed_low": low, "imputed_high": high}
        shown |= {key: test.column.within_range(end) for key, end in ends.items() if end is not None}
        updated_pairs.append(replace(pair, verdict=verdict, equivalent=equivalent, **shown))
    return updated_pairs


def by_test(test: str, p: float, difference: float, conventions: Conventions, gap: Floats) -> Conventions:
    """The conventions with the p-values of a test of the mean that draws at random, instead of those of the t test.

    The two-sided p-value is moved by as much as the estimate moves that of the t test. `gap`: differences per query.
    """
    if test in ("t", *imputation.RANK_TESTS) or conventions.imputed is None or conventions.imputed_p is None:
        return conventions
    plain = t_test(gap).p
    sign = 1.0 if (conventions.imputed > 0) == (difference > 0) else -1.0
    imputed, ends = imputation.moved_p(p, plain, sign * conventions.imputed_p), conventions.bound_p
    return replace(conventions, imputed_p=imputed, bound_p=None if ends is None else imputation.moved_p(p, plain, ends))


def _verdict(pair: Pair, conventions: Conventions, plan: ComparisonPlan, judged: JudgedDocuments) -> str:
    """The verdict of a pair, `undecided` where a significant difference depends on unjudged documents."""
    if pair.verdict == "equal" and conventions.unjudged and (conventions.bound_low, conventions.bound_high) != (0, 0):
        return "not significant"  # Equal with these judgments only.
    if pair.verdict not in ("better", "worse"):
        return pair.verdict
    # The p-values are corrected by the same factor as that of the plain test.
    factor = pair.p_adjusted / pair.p if pair.p > 0 else 1.0

    def confirmed(difference: float | None, p: float | None) -> bool:
        """Whether a difference has the sign of the pair and is significant."""
        if difference is None or p is None:
            return False
        return p * factor < plan.alpha and (difference > 0) == (pair.difference > 0)

    if conventions.all_judged or confirmed(conventions.bound_low, conventions.bound_p):
        return pair.verdict  # Whatever the unjudged documents are.
    if not conventions.checked or (pair.run if pair.verdict == "better" else pair.baseline) in judged.edges:
        return "undecided"
    if conventions.imputed is None or conventions.imputed_p is None:
        return pair.verdict
    return pair.verdict if confirmed(conventions.imputed, conventions.imputed_p) else "undecided"


def judged_notes(pairs: Sequence[Pair], judged: JudgedDocuments) -> list[Note]:
    """Notes on qrels made from a run, on undecided pairs and on qrels that say nothing about unjudged documents."""
    every = [(pair, pair.judged_run, pair.judged_baseline) for pair in pairs]
    shares = [(pair, one, other) for pair, one, other in every if one is not None and other is not None]
    some_unjudged = any(min(one, other) < 1 for _, one, other in shares)
    edges = judged.edges if some_unjudged else {}
    notes = [note("qrels-made-from-run", run=run, depth=edge.depth) for run, edge in edges.items()]
    if undecided := [pair for pair in pairs if pair.verdict == "undecided"]:
        first = undecided[0]
        notes.append(note("undecided", pairs=len(undecided), **first.named, documents=first.unjudged))
    if judged.without_bounds:
        notes.append(note("differences-without-bounds", count=judged.without_bounds))
    if edges:
        return notes
    uneven = sorted(shares, key=lambda row: -abs(row[1] - row[2]))
    uneven = [row for row in uneven if abs(row[1] - row[2]) > 0.1 and row[0].unjudged]
    unchecked = [row for row in uneven if row[0].imputed is None and row[0].verdict in ("better", "worse")]
    if judged.judged_by_rank and unchecked:
        pair, *both = unchecked[0]
        notes.append(note("judged-unevenly-unchecked", **pair.named, shares=both))
    if judged.relevant_only and some_unjudged:
        notes.append(note("relevant-documents-only"))
    elif some_unjudged and not judged.judged_by_rank:
        notes.append(note("documents-chosen"))
    elif uneven and not unchecked and not undecided:
        pair, *both = uneven[0]
        notes.append(note("judged-unevenly", **pair.named, shares=both))
    return notes


@dataclass(frozen=True)
class RowJudged:
    """A row of the leaderboard: the judged share of each measure that reads grades, and the bounds of the first one."""

    shares: Mapping[str, float] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None


def judged_rows(
    tables: Sequence[ScoreTable], parts: PartsOf, judged: JudgedDocuments
) -> dict[tuple[str, int | None], RowJudged]:
    """The judged shares and bounds of every run and cutoff; empty where they say nothing."""
    if not judged.informative:
        return {}
    rows = {}
    for table in tables:
        first = table.columns[0].key
        for run, row in zip(table.runs, table.compared(first), strict=True):
            queries = set(compress(table.queries, (~np.isnan(row)).tolist()))
            kept = np.array([query in queries for query in judged.qrels.judged.query_ids], dtype=bool)
            shares = {column.key: judged.share(parts[column.key, table.k], run, kept) for column in table.columns}
            defined = {key: share for key, share in shares.items() if share is not None}
            bounds = judged.value_bounds(parts[first, table.k], run, kept) if first in defined else None
            rows[run, table.k] = RowJudged(defined, bounds)
    complete = all(share >= 1 for row_judged in rows.values() for share in row_judged.shares.values())
    return {} if complete else rows
