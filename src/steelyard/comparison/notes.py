"""The notes of a comparison: of pairs and slices, of unjudged documents, of several datasets, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.notes import Texts, declare, examples
from steelyard.wording import SHOWN_NAMES, counted, in_words, listed

SHOWN_PAIRS = 10  # Pairs that a note names; it counts the others.


def _compared_on_shared_queries(
    measures: tuple[str, ...], shared: int, queries: int, runs: tuple[tuple[str, int, tuple[str, ...]], ...]
) -> str:
    where = f" by {listed(measures, SHOWN_NAMES)}" if measures else ""
    lacks = [f"{run} has none for {count:,} ({examples(count, missing)})" for run, count, missing in runs]
    return (
        f"the runs are compared{where} on the {shared:,} of {counted(queries, 'query', 'queries')} that every run has "
        f"a value for: {listed(lacks, SHOWN_NAMES)}"
    )


def _interval_and_p_disagree(
    pairs: tuple[tuple[str, str, str, str, bool], ...],
    test: str,
    correction: str,
    alpha: float,
    intervals: str,
    alike: bool = False,
) -> str:
    grouped: dict[tuple[bool, str, str], list[tuple[str, str]]] = {}
    for run, baseline, measure, p, significant in pairs[:SHOWN_PAIRS]:
        grouped.setdefault((significant, measure, baseline), []).append((run, p))
    parts = [
        f"{listed([run for run, _ in runs])} vs {baseline} on {measure} (the interval "
        f"{'contains' if significant else 'excludes'} 0, p is {', '.join(p for _, p in runs)})"
        for (significant, measure, baseline), runs in grouped.items()
    ]
    more = f"; and {len(pairs) - SHOWN_PAIRS:,} more" if len(pairs) > SHOWN_PAIRS else ""
    how = f"the paired {test} test"
    if correction == test:
        how += ", which corrects for all pairs of a measure"
    elif correction != "none":
        how += f", corrected ({correction}) for the pairs of a measure"
    level = "" if alpha == 0.05 else f", at alpha {alpha:g}"
    return (
        f"interval and p-value disagree for {counted(len(pairs), 'pair')}: {'; '.join(parts)}{more}. Intervals "
        f"are {intervals}; p is from {how}{level}. Verdicts follow p{': treat these as uncertain' if alike else ''}"
    )


def _ranking_differs_in_slices(
    measure: str,
    column: str,
    slices: tuple[tuple[str, str, str, float, int, int, int, int], ...],
    pairs: int,
    few: bool,
) -> str:
    parts = []
    for value, above, below, difference, queries, wins, losses, reversed_pairs in slices:
        of = "" if pairs < 2 else f"; {reversed_pairs:,} of {pairs:,} pairs reversed"
        parts.append(
            f"{value} ({above} above {below} by {abs(difference):.4f} on {counted(queries, 'query', 'queries')}, "
            f"{wins:,} won and {losses:,} lost{of})"
        )
    caution = "few queries, not tested: this may be noise" if few else "not tested"
    return f"the ranking by {measure} differs in these slices of {column}: {'; '.join(parts)} ({caution})"


# Several datasets


def _across_missing(runs: tuple[tuple[str, tuple[str, ...]], ...], skipped: bool) -> str:
    which = "; ".join(f"{run} on {listed(names, SHOWN_NAMES)}" for run, names in runs[:SHOWN_NAMES])
    more = f" and {len(runs) - SHOWN_NAMES:,} other runs" if len(runs) > SHOWN_NAMES else ""
    means = (
        "Their means are over the datasets that they have, so they are not comparable with the others"
        if skipped
        else "Their means are not given; missing=skip (--set missing=skip) averages over the datasets that they have"
    )
    return f"not measured: {which}{more}. {means}"


def _across_few_datasets(datasets: int, alpha: float) -> str:
    smallest = 2.0 ** (1 - datasets)
    needed = next(count for count in range(2, 1000) if 2.0 ** (1 - count) < alpha)
    shown = f"with {counted(datasets, 'dataset')}, the smallest p-value on datasets like these is {smallest:.2g}"
    if smallest < alpha:
        return f"{shown}: only a difference with the same sign on every dataset can be significant"
    return f"{shown}, so no difference can be significant at {alpha:g}; at least {needed} datasets are needed"


def _across_leader_depends(leader: str, without: tuple[tuple[str, str], ...]) -> str:
    others = listed([f"without {name}, {run} leads" for name, run in without], SHOWN_NAMES)
    return f"one dataset decides that {leader} leads: {others}"


def _across_one_dataset_decides(pairs: tuple[tuple[str, str, str, str], ...]) -> str:
    datasets: dict[tuple[str, str, str], list[str]] = {}
    for run, baseline, name, outcome in pairs:
        datasets.setdefault((run, baseline, outcome), []).append(name)
    shown = [
        f"{run} vs {baseline} ({outcome} without {' or without '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
        for (run, baseline, outcome), names in datasets.items()
    ]
    return f"one dataset decides that these differences are significant on these datasets: {listed(shown, 4)}"


def _across_every_dataset_needed(pairs: tuple[tuple[str, str], ...]) -> str:
    shown = [f"{run} vs {baseline}" for run, baseline in pairs]
    return f"these differences are not significant if any one of the datasets is left out: {listed(shown, 4)}"


def _across_opposite(pairs: tuple[tuple[str, str, str, str], ...]) -> str:
    shown = [
        f"{run} vs {baseline} ({verdict} over all, {'worse' if verdict == 'better' else 'better'} on {name})"
        for run, baseline, verdict, name in pairs
    ]
    return f"differences with the opposite sign on a single dataset, both significant: {listed(shown, 4)}"


# What to do next


def _directions_by_name(more: Sequence[str], less: Sequence[str]) -> str:
    taken = [f"{side} values of {listed(keys)}" for side, keys in (("higher", more), ("lower", less)) if keys]
    how = in_words("TableOptions(lower=['NAME'])", "--set lower=NAME")
    return f"{' and '.join(taken)} are taken to be better; {how} names others whose lower values are better"


def _step_faster(run: str, leader: str, ratio: float, seconds: tuple[float, float], measure: str, how: str = "") -> str:
    times = f"{how}{seconds[0] * 1e3:.3g} vs {seconds[1] * 1e3:.3g} ms per query"
    return f"consider {run}: it is tied with {leader} on {measure} and {ratio:.2g} times faster ({times})"


def _step_judge(run: str, other: str, count: int, most: int, depth: int, undecided: bool, command: str = "") -> str:
    which = (
        f"the {counted(count, 'unjudged document')}" if count <= most else f"{most} of the {count:,} unjudged documents"
    )
    why = "the outcome depends on them" if undecided else "they can change which of the two is better"
    how = f" ({command})" if command else ""
    return f"judge {which} that only one of {run} and {other} has in its first {depth}: {why}{how}"


def _step_judge_short(run: str, other: str, count: int, most: int, command: str = "", **_: Any) -> str:
    documents = f"{counted(min(count, most), 'unjudged document')} of {run} and {other}"
    return f"{command} ({documents})" if command else f"judge {documents} (steelyard pool)"


ERRORS: Texts = {
    "run-not-measured": "run {run!r} was not measured and is not ranked or tested: {reason}",
    "baseline-not-measured": "the baseline {run!r} was not measured, so every two runs are compared instead",
}
WARNINGS: Texts = {
    "compared-on-shared-queries": _compared_on_shared_queries,
    "not-tested": "no test of {pairs:?{pairs:listed}|the pairs of runs}{measures:? on {measures:listed}|}: {reason}",
    "missing-values": "{count:,} {count:value is|values are} missing from the score table and "
    "{policy:zero?{count:scores|score} 0|{count:is|are} left out} (the first: {first})",
    "qrels-made-from-run": "the qrels look as if they were made from the first {depth} of {run}: all or nearly "
    "all judged documents are there. Differences in favour of {run} that depend on other documents are undecided",
    "undecided": "{pairs:,} {pairs:difference is|differences are} undecided: the outcome depends on unjudged "
    "documents{documents:?. {run} vs {baseline} on {measure} depends on {documents:,} "
    "{documents:document|documents}: `steelyard pool RUN RUN --qrels QRELS --strategy pair -o pool.jsonl` lists "
    "them, the most useful first|}",
    "depends-on-overlap": "{pairs:,} {pairs:difference is|differences are} undecided: the outcome depends on how much "
    "of a passage a chunk must contain to be relevant. {run} vs {baseline} on {measure} {reason}. SpanR needs no such "
    "rule: it counts the text itself",
    "judged-unevenly-unchecked": "{shares[0]:.0%} of the documents that {run} has above the cutoff of {measure} are "
    "judged, and {shares[1]:.0%} of those of {baseline}. Grades of the others cannot be estimated, so that the "
    "significant difference is not checked for them: judge them too",
    "relevance-level-decides": "the grades go up to {highest:g} and the qrels state no scale, so {measure} counts from "
    "grade 1; TREC's Deep Learning tracks count from 2. With rel=2 (--set rel=2), {run} vs {baseline} would be {then} "
    "({difference:+.4f}) instead of {now}{pairs:|, and {pairs:,} verdicts would change in all}",
    "uncertain-difference": _interval_and_p_disagree,
    "unequal-spread": "the tukey test assumes that the differences of all pairs vary alike. On {measure} those of "
    "{wide[0]} vs {wide[1]} have {ratio:.1f} times the standard deviation of those of {narrow[0]} vs {narrow[1]}: more "
    "than {alpha:.0%} of equal runs may be called different. test='max-t' (--test max-t) does not assume this",
    "datasets-merged": "the score table has the queries of {datasets:,} {datasets:dataset|datasets} (column "
    "{column!r}), and the mean is over all queries: the dataset with the most queries counts most. sy.across and "
    "`steelyard across` weigh every dataset the same",
    "across-missing": _across_missing,
    "across-shared-datasets": "{shared:?differences are of the {shared:count} {shared:dataset|datasets} of "
    "{datasets:,} that every run was measured on|no dataset has a value of every run, so no difference was tested}",
    "across-leader-depends": _across_leader_depends,
    "across-one-dataset-decides": _across_one_dataset_decides,
    "across-every-dataset-needed": _across_every_dataset_needed,
    "across-opposite": _across_opposite,
}
INFO: Texts = {
    "measures-with-own-cutoff": "{measures:all} {measures:has its own cutoff and is|have their own cutoffs and are} "
    "the same in every row of a run",
    "geometric-means-tested": "{measures:listed} {measures:is a geometric mean|are geometric means}: the logarithms "
    "are tested, so p, d and the interval are of the ratio of the means, and the interval is shown as a difference "
    "from the value of the other run",
    "mostly-tied": "most queries are tied in {pairs:,} {pairs:difference|differences}, the most in {run} vs {baseline} "
    "on {measure} ({ties:,} of {queries:,}): so few queries decide that a 95% interval may hold the true difference in "
    "75 to 94% of cases only, a bootstrap interval even less often than Student's",
    "interval-and-p-disagree": _interval_and_p_disagree,
    "ranking-differs-in-slices": _ranking_differs_in_slices,
    "directions-by-name": _directions_by_name,
    "repetitions": "{count:,} {count:repetition|repetitions} of each query (column {column!r}): "
    "{averaged:?averaged|paired by repetition and averaged} before testing",
    "estimated-together": "the predictions have one weight for all runs of the comparison, so that every difference is "
    "that of the two means; the mean of a run alone (evaluate) has a weight of its own, and may differ",
    "relevant-documents-only": "the qrels list relevant documents only; every other document counts as not relevant",
    "documents-chosen": "the judged documents look chosen rather than pooled from the first ranks of runs, so "
    "differences are not checked for unjudged documents: every other document counts as not relevant",
    "differences-without-bounds": "the lists are long: {count:,} {count:difference has|differences have} no bounds",
    "judged-unevenly": "{shares[0]:.0%} of the documents that {run} has above the cutoff of {measure} are judged, "
    "and {shares[1]:.0%} of those of {baseline}; the verdict is the same with estimated grades",
    "across-few-datasets": _across_few_datasets,
    "step-faster": _step_faster,
    "step-use": "use {run}: it is significantly better than every other run on {measure}",
    "step-slice": "look at the {queries:,} {queries:query|queries} with {column} {value}, where {run} loses most to "
    "{other} ({difference:.4f} on {measure})",
    "step-judge": _step_judge,
    "step-more-queries": "add queries to decide {run} vs {other}: about {about:,.0f} are needed for a true difference "
    "of {difference:.4f}, and there are {queries:,}",
    "step-all-miss": "look at {count:the query|the {count:,} queries} on which every run scores 0 on {measure}",
}
SHORT: Texts = {
    "run-not-measured": "{run} was not measured: {reason}",
    "compared-on-shared-queries": "compared on the {shared:,} of {queries:,} {queries:query|queries} that every run "
    "has a value for",
    "qrels-made-from-run": "the qrels look made from the first {depth} of {run}: its leads are undecided",
    "judged-unevenly-unchecked": "{shares[0]:.0%} of {run} and {shares[1]:.0%} of {baseline} are judged: judge more",
    "uncertain-difference": "{pairs:{pairs[0][0]} vs {pairs[0][1]} on {pairs[0][2]} is|{pairs:count} differences are} "
    "uncertain: the {test} test and the interval disagree about 0",
    "relevance-level-decides": "with rel=2, as in TREC's Deep Learning tracks, {run} vs {baseline} would be {then}",
    "depends-on-overlap": "{pairs:,} {pairs:difference|differences} on {measures:joined} {pairs:depends|depend} on how "
    "much of a passage a chunk must contain",
    "undecided": "{pairs:,} {pairs:difference is|differences are} undecided{documents:?: judge {documents:,} "
    "{documents:document|documents} (--all)| (unjudged documents)}",
    "step-faster": "consider {run}: tied with {leader} and {ratio:.2g} times faster",
    "step-use": "use {run}: significantly better than every other run on {measure}",
    "step-slice": "look at the {queries:,} {queries:query|queries} with {column} {value}, where {run} loses most",
    "step-judge": _step_judge_short,
    "step-more-queries": "add queries: about {about:,.0f} are needed to decide {run} vs {other}",
}
declare(error=ERRORS, warning=WARNINGS, info=INFO, short=SHORT)
