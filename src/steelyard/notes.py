"""Notes: what a result reports beside its numbers. A note is data until it is printed.

A note has a code, which names what was noticed, and values. Its severity and its text follow from the code:
this module is the only place that words them. Code that has to decide something looks at the code and the
values of a note, never at its text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from steelyard.errors import SteelyardWarning
from steelyard.wording import SHOWN_NAMES, counted, listed, worded

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the most to the least serious. `error`: the numbers mean nothing. `warning`: they may mislead."""


_RUNS = ("run", "other", "leader", "baseline")
"""Values of notes that are names of runs."""


@dataclass(frozen=True, repr=False)
class Note:
    """A code, and the values that its text needs, as (name, value) pairs.

    >>> merged = note("judgments-merged", count=2)
    >>> merged.severity, str(merged)
    ('info', '2 judgments given twice with the same grade were merged')
    """

    code: str
    values: tuple[tuple[str, Any], ...] = ()

    @property
    def severity(self) -> Severity:
        """How serious it is."""
        return _WORDINGS[self.code][0]

    def __getitem__(self, name: str) -> Any:
        return dict(self.values)[name]

    def __str__(self) -> str:
        return _WORDINGS[self.code][1](**dict(self.values))

    def __repr__(self) -> str:
        return f"Note({self.code!r}: {self})"

    def renamed(self, names: Mapping[str, str]) -> Note:
        """The note with other names for runs."""
        return Note(
            self.code,
            tuple((k, names.get(v, v) if k in _RUNS and isinstance(v, str) else v) for k, v in self.values),
        )

    def to_dict(self) -> dict[str, Any]:
        """As in JSON: the code, the severity, the text and the values."""
        return {
            "code": self.code,
            "severity": self.severity,
            "text": str(self),
            "values": {name: _as_list(value) for name, value in self.values},
        }


def note(code: str, **values: Any) -> Note:
    """A note. Lists are kept as tuples, so that equal notes are equal keys."""
    if code not in _WORDINGS:
        raise KeyError(f"no wording for the note {code!r}; add one to steelyard/notes.py")
    return Note(code, tuple((name, _as_tuple(value)) for name, value in values.items()))


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, (list, tuple)) else value


def _as_list(value: Any) -> Any:
    return list(map(_as_list, value)) if isinstance(value, tuple) else value


def note_from_dict(made: Mapping[str, Any] | str) -> Note:
    """The note that `to_dict` wrote. A text, or a code that this version does not know, becomes a note with that text.

    >>> str(note_from_dict("written by an old version"))
    'written by an old version'
    """
    if isinstance(made, str):
        return note("text", text=made)
    if made.get("code") in _WORDINGS:
        return note(str(made["code"]), **made.get("values", {}))
    return note("text", text=str(made.get("text", "")))


def sentence(said: Note) -> str:
    """A note as a sentence: a capital letter first, unless it starts with a name, and a full stop last.

    >>> sentence(note("text", text="nDCG@10 is 0")), sentence(note("text", text="no value"))
    ('nDCG@10 is 0.', 'No value.')
    """
    text = str(said)
    first = text.split(maxsplit=1)[0] if text else ""
    if first.isalpha() and first.islower():
        text = f"{text[:1].upper()}{text[1:]}"
    return f"{text.rstrip('.')}."


def in_short(said: Note) -> str:
    """A note for one line of a screen: a shorter text where its text is long and it has one."""
    short = _SHORT.get(said.code)
    return str(said) if short is None else short(**dict(said.values))


def by_severity(notes: Iterable[Note]) -> list[Note]:
    """The notes, the most serious first; those of equal severity in the order given."""
    return sorted(notes, key=lambda each: SEVERITIES.index(each.severity))


# Python warnings

_silent: ContextVar[bool] = ContextVar("_silent", default=False)


@contextmanager
def shown_otherwise() -> Iterator[None]:
    """In this context no note becomes a Python warning: the caller shows the notes, or does not need them."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def warn_of(notes: Mapping[str, Iterable[Note]]) -> None:
    """One Python warning with the notes of every run that are not mere information, for the caller's caller."""
    if _silent.get():
        return
    about = {
        name: [each for each in by_severity(own) if each.severity != "info"] for name, own in notes.items()
    }
    lines = [
        f"{name}: {' '.join(map(sentence, own))}" if name else " ".join(map(sentence, own))
        for name, own in about.items()
        if own
    ]
    if lines:
        warnings.warn("\n".join(lines), SteelyardWarning, stacklevel=3)


_WORDINGS: dict[str, tuple[Severity, Callable[..., str]]] = {}
_SHORT: dict[str, Callable[..., str]] = {}


def _wording(code: str, severity: Severity) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register the text of a note."""

    def register(text: Callable[..., str]) -> Callable[..., str]:
        if code in _WORDINGS:
            raise AssertionError(f"two wordings for the note {code!r}")
        _WORDINGS[code] = severity, text
        return text

    return register


def _short(code: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register a shorter text of a note; it takes the same values."""

    def register(text: Callable[..., str]) -> Callable[..., str]:
        _SHORT[code] = text
        return text

    return register


@_wording("text", "info")
def _text(text: str) -> str:
    return text


# Qrels and runs


@_wording("judgments-merged", "info")
def _judgments_merged(count: int) -> str:
    given = worded(
        count,
        "judgment given twice with the same grade was",
        "judgments given twice with the same grade were",
    )
    return f"{count:,} {given} merged"


@_wording("rows-shuffled", "info")
def _rows_shuffled(most: int) -> str:
    return f"the qrels have more than {most:,} judgments, so Spark shuffled all rows of the run, which takes longer"


# Measures


@_wording("no-distractors", "warning")
def _no_distractors(measures: tuple[str, ...]) -> str:
    return f"no document is judged a distractor (a grade below 0), so {listed(measures, SHOWN_NAMES)} can only be 0"


@_wording("no-grade-zero", "warning")
def _no_grade_zero(measures: tuple[str, ...]) -> str:
    return (
        f"no document is judged not relevant (grade 0), so {listed(measures, SHOWN_NAMES)} "
        f"{worded(len(measures), 'is', 'are')} the share of the relevant documents that are retrieved"
    )


@_wording("no-unanswerable-query", "warning")
def _no_unanswerable_query(measures: tuple[str, ...]) -> str:
    return (
        f"every query has a relevant document, so {listed(measures, SHOWN_NAMES)} "
        f"{worded(len(measures), 'has', 'have')} no query to count"
    )


@_wording("no-targets", "info")
def _no_targets(measures: tuple[str, ...]) -> str:
    return f"the qrels name no targets, so in {listed(measures, SHOWN_NAMES)} each relevant document is its own target"


@_wording("no-such-grade", "warning")
def _no_such_grade(level: float, measures: tuple[str, ...]) -> str:
    return f"no document has grade {level:g} or above, so {listed(measures, SHOWN_NAMES)} can only be 0"


# Alignment


# Coverage of an evaluation


@_wording("no-shared-query", "error")
def _no_shared_query(run: tuple[str, ...], qrels: tuple[str, ...]) -> str:
    return (
        f"no query of the run is in the qrels: the run has {', '.join(map(repr, run))}, "
        f"the qrels {', '.join(map(repr, qrels))}; check that the two files belong together"
    )


@_short("no-shared-query")
def _no_shared_query_short(run: tuple[str, ...], qrels: tuple[str, ...]) -> str:
    return f"no query of the run is in the qrels (run {run[0]!r}, qrels {qrels[0]!r})"


@_wording("document-ids-differ", "error")
def _document_ids_differ(run: tuple[str, ...], qrels: tuple[str, ...], difference: str) -> str:
    return f"{_no_judged(run, qrels)}; the ids differ only in {difference}"


@_wording("no-judged-document", "warning")
def _no_judged_document(run: tuple[str, ...], qrels: tuple[str, ...]) -> str:
    return f"{_no_judged(run, qrels)}; check that the two files belong together"


def _no_judged(run: tuple[str, ...], qrels: tuple[str, ...]) -> str:
    shown = [", ".join(map(repr, dict.fromkeys(ids[:2]))) or "none" for ids in (run, qrels)]
    return f"no retrieved document is judged: the run has {shown[0]}, the qrels {shown[1]}"


@_wording("scores-like-distances", "warning")
def _scores_like_distances(ordered: bool) -> str:
    text = "scores increase from the first document of a list to the last, as distances do"
    if ordered:
        return f"{text}; the order of the lists is used"
    return f"{text}, and the highest score is ranked first; negate distances, or pass ranked ids"


@_short("scores-like-distances")
def _scores_like_distances_short(ordered: bool) -> str:
    return f"scores increase down the lists, as distances do{'; the order is used' if ordered else ''}"


@_wording("qrels-and-run-swapped", "warning")
def _qrels_and_run_swapped() -> str:
    return (
        "the grades of the qrels are not whole numbers and the scores of the run are, as if the two were swapped; "
        "the qrels come first"
    )


@_wording("missing-queries", "warning")
def _missing_queries(count: int, policy: str) -> str:
    return f"{counted(count, 'query is', 'queries are')} missing from the run and {_scored(count, policy)}"


@_wording("empty-lists", "warning")
def _empty_lists(count: int, missing: str) -> str:
    text = f"{counted(count, 'query has', 'queries have')} an empty list and {_scored(count, 'zero')}"
    if missing == "skip":
        text += " (missing queries are skipped, but an empty list is an answer; a TREC file cannot store one)"
    return text


@_wording("queries-without-judgments", "info")
def _queries_without_judgments(count: int) -> str:
    return f"{counted(count, 'query of the run has', 'queries of the run have')} no judgments and {worded(count, 'was', 'were')} ignored"


@_wording("no-relevant-document", "warning")
def _no_relevant_document(count: int, policy: str) -> str:
    return f"{counted(count, 'query has', 'queries have')} no relevant document and {_scored(count, policy)}"


@_wording("unjudged-documents", "info")
def _unjudged_documents(count: int, documents: int, repeats: bool, removed: bool) -> str:
    noun = "distinct document" if repeats else "document"
    text = f"{count:,} of {counted(documents, noun)} ({count / documents:.0%}) {worded(count, 'is', 'are')} unjudged"
    return f"{text} and {worded(count, 'was', 'were')} removed from the lists" if removed else text


@_wording("repeated-documents", "warning")
def _repeated_documents(count: int, held: bool) -> str:
    what = (
        f"{worded(count, 'it keeps its rank and gains', 'they keep their ranks and gain')} nothing"
        if held
        else worded(count, "it was removed", "they were removed")
    )
    return f"{counted(count, 'document repeats', 'documents repeat')} an earlier one in the same list; {what}"


@_wording("tied-scores", "info")
def _tied_scores(count: int, ties: str) -> str:
    return f"{counted(count, 'query has', 'queries have')} tied scores whose order can change a value (ties={ties})"


@_wording("grades-below-rel", "warning")
def _grades_below_rel(count: int, measures: tuple[str, ...], level: float, lowest: float) -> str:
    return (
        f"{counted(count, 'judgment has', 'judgments have')} a grade above 0 but below {level:g}, the lowest grade that "
        f"{', '.join(measures)} {worded(len(measures), 'counts', 'count')} as relevant; rel={lowest:g} (--rel {lowest:g}) "
        f"includes {worded(count, 'it', 'them')}"
    )


@_short("grades-below-rel")
def _grades_below_rel_short(count: int, measures: tuple[str, ...], level: float, lowest: float) -> str:
    return f"{counted(count, 'grade is', 'grades are')} above 0 but below {level:g}: not relevant (--rel {lowest:g})"


@_wording("lists-shorter-than-cutoff", "warning")
def _lists_shorter_than_cutoff(measure: str, longest: int, highest: float) -> str:
    return f"no list has more than {counted(longest, 'document')}, so {measure} cannot exceed {highest:.2g}"


@_wording("cutoff-deeper-than-lists", "warning")
def _cutoff_deeper_than_lists(measures: tuple[str, ...], depth: int) -> str:
    return (
        f"the lists end at {counted(depth, 'document')}, and {listed(measures, SHOWN_NAMES)} "
        f"{worded(len(measures), 'has a deeper cutoff', 'have deeper cutoffs')}: relevant documents below count as not found"
    )


@_short("cutoff-deeper-than-lists")
def _cutoff_deeper_than_lists_short(measures: tuple[str, ...], depth: int) -> str:
    return f"the lists end at {counted(depth, 'document')}, above the cutoff of {listed(measures, 2)}"


def _scored(count: int, policy: str) -> str:
    if policy == "skip":
        return worded(count, "is left out", "are left out")
    return worded(count, "scores 0", "score 0")


# Judgments files


@_wording("graded-by", "info")
def _graded_by(judge: str, judges: int) -> str:
    return f"grades by {judge}" + (f", one of {judges} judges" if judges > 1 else "")


@_wording("judges-resolved", "info")
def _judges_resolved(judges: tuple[str, ...], rule: str, documents: int) -> str:
    several = counted(documents, "document has", "documents have")
    return f"{len(judges)} judges ({listed(judges, SHOWN_NAMES)}) resolved by {rule}: {several} more than one grade"


@_wording("torn-lines", "warning")
def _torn_lines(file: str, lines: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:6])) + (", ..." if len(lines) > 6 else "")
    return f"{file}: {worded(len(lines), 'line', 'lines')} {shown} ignored, not written to the end"


@_wording("spans-left-out", "info")
def _spans_left_out(count: int) -> str:
    return f"{counted(count, 'marked span')} of documents without a grade above 0 {worded(count, 'was', 'were')} left out"


@_wording("judging-stopped", "warning")
def _judging_stopped(reason: str) -> str:
    return f"stopped: {reason}"


# Predicted judgments


@_wording("predicted-judgments", "info")
def _predicted_judgments(judge: str) -> str:
    return f"estimated from human judgments and from judgments predicted by {judge}"


@_wording("predictions-worth", "info")
def _predictions_worth(n: int, others: int, effective: float) -> str:
    if effective <= n * 1.005:
        return f"the predictions do not help: the estimate is that of the {counted(n, 'human-judged query', 'human-judged queries')}"
    return (
        f"with predictions for {counted(others, 'other query', 'other queries')}, the "
        f"{counted(n, 'human-judged query counts', 'human-judged queries count')} like {effective:.0f}"
    )


@_wording("not-a-random-sample", "warning")
def _not_a_random_sample(count: int, pool: str) -> str:
    reasons = {
        "none": "no pool records that",
        "all": "the queries of this pool were not drawn at random",
        "others": "not all of them are among the queries that this pool drew at random",
    }
    return (
        f"the interval is valid only if the {counted(count, 'human-judged query was', 'human-judged queries were')} drawn at "
        f"random; {reasons[pool]} (steelyard pool --queries N draws queries)"
    )


@_short("not-a-random-sample")
def _not_a_random_sample_short(count: int, pool: str) -> str:
    return f"the {counted(count, 'human-judged query', 'human-judged queries')} may not be a random sample"


@_wording("no-predictions", "warning")
def _no_predictions(count: int, examples: tuple[str, ...]) -> str:
    return f"{counted(count, 'human-judged query has', 'human-judged queries have')} no predicted judgments and {worded(count, 'is', 'are')} left out ({', '.join(examples)})"


@_wording("estimated-separately", "info")
def _estimated_separately() -> str:
    return "each difference is estimated directly, so it may not equal the difference of the two means"


# Unjudged documents


@_wording("qrels-made-from-run", "warning")
def _qrels_made_from_run(run: str, depth: int) -> str:
    return (
        f"the qrels look as if they were made from the first {depth} of {run}: all judged documents are there. "
        f"Differences in favour of {run} are undecided"
    )


@_short("qrels-made-from-run")
def _qrels_made_from_run_short(run: str, depth: int) -> str:
    return f"the qrels look made from the first {depth} of {run}: its leads are undecided"


@_wording("undecided", "warning")
def _undecided(pairs: int, run: str, baseline: str, measure: str, documents: int) -> str:
    text = f"{counted(pairs, 'difference is', 'differences are')} undecided: the outcome depends on unjudged documents"
    if documents:
        text += (
            f". {run} vs {baseline} on {measure} depends on {counted(documents, 'document')}: `steelyard pool RUN RUN "
            "--qrels QRELS --strategy pair -o pool.jsonl` lists them, the most useful first"
        )
    return text


@_short("undecided")
def _undecided_short(pairs: int, run: str, baseline: str, measure: str, documents: int) -> str:
    text = f"{counted(pairs, 'difference is', 'differences are')} undecided"
    return (
        f"{text}: judge {counted(documents, 'document')} (--notes)"
        if documents
        else f"{text} (unjudged documents)"
    )


@_wording("relevant-documents-only", "info")
def _relevant_documents_only() -> str:
    return "the qrels list relevant documents only; every other document counts as not relevant"


@_wording("documents-chosen", "info")
def _documents_chosen() -> str:
    return (
        "the judged documents look chosen rather than pooled from the first ranks of runs, so differences are not checked "
        "for unjudged documents: every other document counts as not relevant"
    )


@_wording("differences-without-bounds", "info")
def _differences_without_bounds(count: int) -> str:
    return f"the lists are long: {counted(count, 'difference has', 'differences have')} no bounds"


@_wording("judged-unevenly", "info")
def _judged_unevenly(run: str, baseline: str, measure: str, shares: tuple[float, float]) -> str:
    return (
        f"{shares[0]:.0%} of the documents that {run} has above the cutoff of {measure} are judged, and {shares[1]:.0%} of "
        f"those of {baseline}; the verdict is the same with estimated grades"
    )


# What to do next


@_wording("step-faster", "info")
def _step_faster(run: str, leader: str, ratio: float, seconds: tuple[float, float], measure: str) -> str:
    times = f"{seconds[0] * 1e3:.3g} vs {seconds[1] * 1e3:.3g} ms per query"
    return f"consider {run}: it is tied with {leader} on {measure} and {ratio:.2g} times faster ({times})"


@_short("step-faster")
def _step_faster_short(run: str, leader: str, ratio: float, **_: Any) -> str:
    return f"consider {run}: tied with {leader} and {ratio:.2g} times faster"


@_wording("step-use", "info")
def _step_use(run: str, measure: str) -> str:
    return f"use {run}: it is significantly better than every other run on {measure}"


@_short("step-use")
def _step_use_short(run: str, measure: str) -> str:
    return f"use {run}: significantly better than every other run on {measure}"


@_wording("step-slice", "info")
def _step_slice(
    run: str, other: str, column: str, value: str, queries: int, difference: float, measure: str
) -> str:
    return (
        f"look at the {counted(queries, 'query', 'queries')} with {column} {value}, where {run} loses most to {other} "
        f"({difference:.4f} on {measure})"
    )


@_short("step-slice")
def _step_slice_short(run: str, column: str, value: str, queries: int, **_: Any) -> str:
    return f"look at the {counted(queries, 'query', 'queries')} with {column} {value}, where {run} loses most"


@_wording("step-judge", "info")
def _step_judge(run: str, other: str, count: int, most: int, depth: int, undecided: bool) -> str:
    which = (
        f"the {counted(count, 'unjudged document')}"
        if count <= most
        else f"{most} of the {count:,} unjudged documents"
    )
    why = "the outcome depends on them" if undecided else "they can change which of the two is better"
    return f"judge {which} that only one of {run} and {other} has in its first {depth}: {why}"


@_short("step-judge")
def _step_judge_short(run: str, other: str, count: int, most: int, **_: Any) -> str:
    return f"judge {min(count, most):,} unjudged documents of {run} and {other} (steelyard pool)"


@_wording("step-more-queries", "info")
def _step_more_queries(run: str, other: str, queries: int, needed: int, difference: float) -> str:
    about = float(f"{needed:.2g}")
    about = about if about > queries else needed
    return (
        f"add queries to decide {run} vs {other}: about {about:,.0f} are needed for a true difference of "
        f"{difference:.4f}, and there are {queries:,}"
    )


@_short("step-more-queries")
def _step_more_queries_short(run: str, other: str, needed: int, **_: Any) -> str:
    return f"add queries: about {float(f'{needed:.2g}'):,.0f} are needed to decide {run} vs {other}"


@_wording("step-all-miss", "info")
def _step_all_miss(count: int, measure: str) -> str:
    which = "the query" if count == 1 else f"the {count:,} queries"
    return f"look at {which} on which every run scores 0 on {measure}"


# Comparison

SHOWN_PAIRS = 10
"""Pairs that a note names; it counts the others."""


@_wording("compared-on-shared-queries", "warning")
def _compared_on_shared_queries(
    measures: tuple[str, ...], shared: int, queries: int, runs: tuple[tuple[str, int, tuple[str, ...]], ...]
) -> str:
    where = f" by {listed(measures, SHOWN_NAMES)}" if measures else ""
    lacks = [f"{run} has none for {count:,} ({_examples(count, examples)})" for run, count, examples in runs]
    return (
        f"the runs are compared{where} on the {shared:,} of {counted(queries, 'query', 'queries')} that every run has a "
        f"value for: {listed(lacks, SHOWN_NAMES)}"
    )


@_short("compared-on-shared-queries")
def _compared_on_shared_queries_short(shared: int, queries: int, **_: Any) -> str:
    return (
        f"compared on the {shared:,} of {counted(queries, 'query', 'queries')} that every run has a value for"
    )


@_wording("run-not-measured", "error")
def _run_not_measured(run: str, reason: str) -> str:
    return f"run {run!r} was not measured and is not ranked or tested: {reason}"


@_short("run-not-measured")
def _run_not_measured_short(run: str, reason: str) -> str:
    return f"{run} was not measured: {reason}"


@_wording("baseline-not-measured", "error")
def _baseline_not_measured(run: str) -> str:
    return f"the baseline {run!r} was not measured, so every two runs are compared instead"


@_wording("measures-with-own-cutoff", "info")
def _measures_with_own_cutoff(measures: tuple[str, ...]) -> str:
    has = worded(len(measures), "has its own cutoff and is", "have their own cutoffs and are")
    return f"{listed(measures)} {has} the same in every row of a run"


@_wording("geometric-means-tested", "info")
def _geometric_means_tested(measures: tuple[str, ...]) -> str:
    is_a = worded(len(measures), "is a geometric mean", "are geometric means")
    return (
        f"{listed(measures, SHOWN_NAMES)} {is_a}: the logarithms are tested, so p, d and the interval are of the ratio "
        "of the means, and the interval is shown as a difference from the value of the other run"
    )


@_wording("not-tested", "warning")
def _not_tested(pairs: tuple[str, ...], measures: tuple[str, ...], reason: str) -> str:
    which = listed(pairs, SHOWN_NAMES) if pairs else "the pairs of runs"
    where = f" on {listed(measures, SHOWN_NAMES)}" if measures else ""
    return f"no test of {which}{where}: {reason}"


@_wording("interval-and-p-disagree", "info")
def _interval_and_p_disagree(
    pairs: tuple[tuple[str, str, str, str, bool], ...], test: str, correction: str, alpha: float
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
        f"interval and p-value disagree for {counted(len(pairs), 'pair')}: {'; '.join(parts)}{more}. The 95% interval is "
        f"a bootstrap interval of each pair alone; p is from {how}{level}. Verdicts follow p"
    )


@_wording("ranking-differs-in-slices", "info")
def _ranking_differs_in_slices(
    measure: str,
    column: str,
    slices: tuple[tuple[str, str, str, float, int, int, int, int], ...],
    pairs: int,
    few: bool,
) -> str:
    parts = []
    for value, above, below, difference, queries, wins, losses, reversed_pairs in slices:
        of = "" if pairs < 2 else f"; {counted(reversed_pairs, 'pair is', 'pairs are')} reversed of {pairs:,}"
        parts.append(
            f"{value} ({above} above {below} by {abs(difference):.4f} on {counted(queries, 'query', 'queries')}, "
            f"{wins:,} won and {losses:,} lost{of})"
        )
    caution = "few queries, not tested: this may be noise" if few else "not tested"
    return f"the ranking by {measure} differs in these slices of {column}: {'; '.join(parts)} ({caution})"


@_wording("missing-values", "warning")
def _missing_values(count: int, policy: str, first: str) -> str:
    effect = (
        worded(count, "scores 0", "score 0")
        if policy == "zero"
        else worded(count, "is left out", "are left out")
    )
    return f"{counted(count, 'value is', 'values are')} missing from the score table and {effect} (the first: {first})"


@_wording("repetitions", "info")
def _repetitions(count: int, column: str, averaged: bool) -> str:
    what = f"{counted(count, 'repetition')} of each query (column {column!r})"
    how = "averaged" if averaged else "paired by repetition and averaged"
    return f"{what}: {how} before testing"


# io: files and frames of runs and qrels


@_wording("ids-are-numbers", "info")
def _ids_are_numbers(role: str) -> str:
    return f"{role} holds numbers, which were read as text"


@_wording("ranks-ignored", "warning")
def _ranks_ignored(column: str, queries: int) -> str:
    return (
        f"the column {column!r} gives another order than the scores in {counted(queries, 'query', 'queries')}: "
        f"the scores were used (rank={column} uses the ranks)"
    )


@_wording("no-grades", "info")
def _no_grades() -> str:
    return "no column holds grades: every document listed was read as relevant, grade 1"


@_wording("queries-numbered", "info")
def _queries_numbered() -> str:
    return (
        "no column holds a query id: queries were numbered from 0, in the order of the file "
        "(query_id=... names a column)"
    )


@_wording("comments-skipped", "info")
def _comments_skipped(count: int) -> str:
    return f"{counted(count, 'comment line')} (#) skipped"


@_wording("several-tags", "info")
def _several_tags(count: int, tags: Sequence[str]) -> str:
    return f"{count:,} tags in one file ({', '.join(tags)}, ...): the run is named after the first"


@_wording("iterations-ignored", "info")
def _iterations_ignored(count: int, values: Sequence[str]) -> str:
    return (
        f"column 2 has {count:,} values ({', '.join(values)}, ...) and was not used; "
        "format='trec-diversity' (--qrels-format trec-diversity) reads it as subtopics; of a frame, target='iteration'"
    )


@_wording("read-as-subtopics", "info")
def _read_as_subtopics() -> str:
    return "column 2 was read as subtopics: some documents are judged under several"


@_wording("three-columns", "info")
def _three_columns() -> str:
    return "three columns without a header: these may be ranks or grades"


@_wording("three-columns-are-qrels", "info")
def _three_columns_are_qrels() -> str:
    return "three columns without a header were read as query, document, grade"


@_wording("beir-header-with-fractions", "warning")
def _beir_header_with_fractions() -> str:
    return "the header is that of BEIR qrels, but the scores are not whole numbers"


@_wording("lists-of-ids", "info")
def _lists_of_ids() -> str:
    return "lists of ids may be ranked lists or relevant documents"


@_wording("fractions-as-in-a-run", "info")
def _fractions_as_in_a_run() -> str:
    return "the numbers are not whole, as in a run"


@_wording("holds-run-and-qrels", "info")
def _holds_run_and_qrels() -> str:
    return "the file holds a run and qrels"


@_wording("read-as", "info")
def _read_as(kind: str, other: str) -> str:
    names = {"run": "a run", "qrels": "qrels"}
    return f"read as {names[kind]}, as requested; the file could also be {names[other]}"


@_wording("list-is-one-target", "info")
def _list_is_one_target() -> str:
    return "a retrieval_gt that is one list, or one id, was read as one target, as in AutoRAG"


@_wording("relevant-not-in-corpus", "warning")
def _relevant_not_in_corpus(count: int, document: str) -> str:
    are = counted(count, "relevant document is", "relevant documents are")
    return f"{are} not in the file's corpus (as {document!r})"


@_wording("judged-queries-without-text", "info")
def _judged_queries_without_text(count: int) -> str:
    return f"{counted(count, 'judged query has', 'judged queries have')} no text in the file"


@_wording("mteb-selected", "info")
def _mteb_selected(**levels: str) -> str:
    return "read " + ", ".join(f"{level} {name!r}" for level, name in levels.items())


@_wording("empty-queries-dropped", "info")
def _empty_queries_dropped(count: int, queries: Sequence[str]) -> str:
    were = counted(count, "query without documents was", "queries without documents were")
    return f"{were} dropped ({', '.join(map(repr, queries))}{', ...' if count > len(queries) else ''})"


@_wording("scores-dropped", "warning")
def _scores_dropped(format: str) -> str:
    return f"{format} has no column for scores: the order is kept, the scores are not"


@_wording("scores-made-from-ranks", "info")
def _scores_made_from_ranks() -> str:
    return "the run has no scores: each list was given the scores n, n - 1, ... 1, which keep its order"


@_wording("scores-replaced-by-ranks", "info")
def _scores_replaced_by_ranks() -> str:
    return "the scores were replaced: each list has the scores n, n - 1, ... 1, which keep its order"


@_wording("seconds-dropped", "warning")
def _seconds_dropped(format: str) -> str:
    return f"{format} cannot hold the seconds of each query"


# datasets


@_wording("split-chosen", "info")
def _split_chosen(split: str, others: Sequence[str]) -> str:
    return f"the qrels of split {split!r} were read; there are also {', '.join(others)} (split=...)"


@_wording("unjudged-queries-dropped", "info")
def _unjudged_queries_dropped(count: int) -> str:
    return f"{counted(count, 'query', 'queries')} without judgments dropped (unjudged='keep' keeps them)"


@_wording("unanswerable-queries", "info")
def _unanswerable_queries(count: int) -> str:
    return f"{counted(count, 'query', 'queries')} read as having no relevant document"


@_wording("questions-numbered", "info")
def _questions_numbered() -> str:
    return "queries were numbered from 0, in the order of the file"


@_wording("facts-are-corpus", "info")
def _facts_are_corpus() -> str:
    return "no articles beside the questions: the evidence facts are the corpus"


@_wording("articles-missing", "warning")
def _articles_missing(count: int) -> str:
    names = counted(count, "piece of evidence names", "pieces of evidence name")
    return f"{names} an article that is not in the corpus"


@_wording("documents-numbered", "info")
def _documents_numbered() -> str:
    return "no column holds ids: documents have the numbers of their rows, from 0"


@_wording("rows-merged", "info")
def _rows_merged(count: int) -> str:
    repeat = counted(count, "row repeats", "rows repeat")
    return f"{repeat} the text of an earlier one and {worded(count, 'is', 'are')} the same document"


# evidence


@_wording("grade-0-dropped", "info")
def _grade_0_dropped(count: int) -> str:
    return (
        f"{counted(count, 'judgment')} of grade 0 (judged, not relevant) {worded(count, 'is', 'are')} not evidence "
        f"and {worded(count, 'was', 'were')} dropped"
    )


@_wording("spans-split", "info")
def _spans_split(count: int, overlap: str) -> str:
    are = counted(
        count,
        "span is split by chunk boundaries and counts",
        "spans are split by chunk boundaries and count",
    )
    return f"{are} by overlap={overlap}"


@_wording("facts-not-found", "warning")
def _facts_not_found(count: int, where: str, facts: Sequence[str]) -> str:
    what = "this fact" if count == 1 else f"these {count:,} facts"
    more = f", and {count - len(facts):,} more" if count > len(facts) else ""
    return f"{what} cannot be found by any retriever, being in no {where}: {', '.join(facts)}{more}"


@_wording("facts-split", "warning")
def _facts_split(count: int) -> str:
    return (
        f"{counted(count, 'fact is', 'facts are')} in a document but in no chunk: a chunk boundary "
        f"splits {worded(count, 'it', 'them')}"
    )


@_wording("targets-not-found", "warning")
def _targets_not_found(count: int) -> str:
    are = counted(
        count,
        "target is satisfied by no chunk; it stays",
        "targets are satisfied by no chunk; they stay",
    )
    return f"{are} in the qrels, under a placeholder, and {worded(count, 'counts', 'count')} as not found"


@_wording("chunks-overlap", "info")
def _chunks_overlap(count: int, chunks: int) -> str:
    return (
        f"{count:,} of {counted(chunks, 'chunk')} {worded(count, 'overlaps', 'overlap')} an earlier one; "
        "a target found twice counts once"
    )


@_wording("distractors-not-found", "info")
def _distractors_not_found(count: int, distractors: int) -> str:
    return (
        f"{count:,} of {counted(distractors, 'distractor')} {worded(count, 'is', 'are')} in no chunk "
        "and cannot mislead"
    )


@_wording("relevant-with-distractor", "info")
def _relevant_with_distractor(count: int) -> str:
    return (
        f"{counted(count, 'chunk holds', 'chunks hold')} a distractor and a target of the same query; "
        f"{worded(count, 'it counts', 'they count')} as relevant"
    )


@_wording("queries-without-span", "info")
def _queries_without_span(count: int, queries: int) -> str:
    have = worded(count, "has no span and is", "have no span and are")
    return f"{count:,} of {counted(queries, 'query', 'queries')} {have} left out"


@_wording("queries-not-in-run", "warning")
def _queries_not_in_run(count: int) -> str:
    return f"{counted(count, 'query is not in the run and counts', 'queries are not in the run and count')} 0"


@_wording("retrieved-chunks-unknown", "warning")
def _retrieved_chunks_unknown(count: int) -> str:
    are = counted(
        count,
        "retrieved chunk is not among the chunks and counts",
        "retrieved chunks are not among the chunks and count",
    )
    return f"{are} as no text"


# Fusion


@_wording("fused-missing-queries", "warning")
def _fused_missing_queries(run: str, count: int, queries: int) -> str:
    missing = f"{count:,} of {counted(queries, 'query', 'queries')}"
    return f"{run} is missing {missing}, which {worded(count, 'is', 'are')} fused from the other runs"


@_wording("fused-repeats", "warning")
def _fused_repeats(run: str, count: int) -> str:
    return f"{run} repeats {counted(count, 'document')} in a list; the best rank of each counts"


@_wording("fused-increasing-scores", "warning")
def _fused_increasing_scores(run: str) -> str:
    return f"{run} has scores that increase with the rank, as distances do; the order of its lists is used"


@_wording("fused-weight-0", "info")
def _fused_weight_0(run: str) -> str:
    return f"{run} has weight 0 and is not used"


@_wording("fusion-norm-not-tried", "info")
def _fusion_norm_not_tried(norm: str, reason: str) -> str:
    return f"norm={norm} was not tried: {reason.rstrip('.')}"


# Bench


@_wording("no-qrels", "warning")
def _no_qrels(command: str) -> str:
    return (
        "the dataset has no qrels, so the retrievers were run and not evaluated; their lists, times and agreement are "
        f"reported. `{command}` selects documents to judge"
    )


@_wording("dataset-error", "error")
def _dataset_error(kind: str, text: str) -> str:
    return text


@_wording("answers-cached", "info")
def _answers_cached(runs: tuple[str, ...]) -> str:
    return f"answers and times from the cache: {', '.join(runs)}"


@_wording("retriever-failed", "warning")
def _retriever_failed(run: str, failed: int, queries: int, query: str, error: str) -> str:
    return f"retriever {run} failed on {failed:,} of {queries:,} queries (the first, {query}: {error})"


@_wording("unknown-documents", "warning")
def _unknown_documents(
    run: str, count: int, examples: tuple[str, ...], corpus: tuple[str, ...], id_hint: str | None
) -> str:
    text = (
        f"retriever {run} returned {counted(count, 'document that is', 'documents that are')} not in the corpus: "
        f"it has {', '.join(map(repr, examples))}, the corpus {', '.join(map(repr, corpus))}"
    )
    if id_hint is None:
        return text
    if id_hint == "hash":
        return f"{text}. The texts are in the corpus: set `id: hash`"
    return f"{text}. The ids of the corpus are in {id_hint}: set `id: {id_hint}`"


@_wording("short-lists", "warning")
def _short_lists(run: str, longest: int, asked: int) -> str:
    return (
        f"retriever {run} returned at most {longest:,} of the {counted(asked, 'document')} asked for; check its own limit "
        "on results"
    )


@_wording("filtered-runs", "info")
def _filtered_runs(runs: tuple[str, ...]) -> str:
    return (
        f"{listed(list(runs))} {'searches' if len(runs) == 1 else 'search'} only the documents that pass a filter, and "
        "can find only the relevant documents among them: their means are comparable only with each other"
    )


@_wording("no-exact-search", "info")
def _no_exact_search(runs: tuple[str, ...]) -> str:
    return (
        f"what approximate search costs is not known for {listed(list(runs))}: the bench has no dense retriever with the "
        "same vectors and the same filter"
    )


@_wording("bench-stopped", "warning")
def _bench_stopped(run: str, query: str) -> str:
    return (
        f"the last bench in this folder stopped while {run} ran query {query!r}, which is run again; if it stops "
        f"there again, the code of {run} does not return, or ends the process, on this query"
    )


@_wording("files-removed", "info")
def _files_removed(folder: str, runs: tuple[str, ...], answers: int) -> str:
    files = ", ".join([*runs, *([f"{counted(answers, 'file')} of old answers"] if answers else [])])
    return f"removed from {folder}, because this bench does not have them: {files}"


@_wording("chunkings-have-own-qrels", "info")
def _chunkings_have_own_qrels() -> str:
    return "every run is evaluated with the qrels of its own chunking"


@_wording("queries-not-run", "warning")
def _queries_not_run(count: int, queries: int, examples: tuple[str, ...]) -> str:
    return (
        f"{count:,} of {counted(queries, 'query', 'queries')} {worded(count, 'has', 'have')} no judgment and "
        f"{worded(count, 'was', 'were')} not run ({_examples(count, tuple(map(repr, examples)))})"
    )


@_wording("judged-queries-not-in-dataset", "warning")
def _judged_queries_not_in_dataset(count: int, examples: tuple[str, ...]) -> str:
    shown = _examples(count, tuple(map(repr, examples)))
    return f"{counted(count, 'judged query is', 'judged queries are')} not in the dataset ({shown})"


@_wording("chunkings-evidence", "info")
def _chunkings_evidence(chunkings: tuple[str, ...], every: bool, texts: tuple[str, ...]) -> str:
    return f"on {'every chunking' if every else listed(chunkings)}: {'; '.join(texts)}"


@_wording("chunkings-text-read", "warning")
def _chunkings_text_read(
    measure: str,
    favours: bool,
    depth: int,
    runs: tuple[tuple[str, str, float], ...],
    budget: str,
    measured: bool,
) -> str:
    what = "favours large chunks" if favours else "does not count how much text is read"
    read = listed([f"{tokens:,.0f} with {run} ({place})" for run, place, tokens in runs])
    advice = "put it first to rank by it" if measured else "put it first among the measures to rank by it"
    return (
        f"ranking by {measure} {what}: the first {depth} documents have, in tokens per query, {read}. {budget} gives every run "
        f"the same amount of text: {advice}"
    )


@_wording("result-file-missing", "warning")
def _result_file_missing(file: str, what: str) -> str:
    return f"the folder has no readable {file}: {what} are shown by their ids"


@_wording("result-slices-missing", "warning")
def _result_slices_missing(column: str) -> str:
    return f"the column {column!r} of the queries is not in the folder: there are no slices by it"


@_wording("result-means-differ", "warning")
def _result_means_differ(count: int, version: str, examples: tuple[str, ...]) -> str:
    return (
        f"{counted(count, 'mean differs', 'means differ')} from those that Steelyard {version} recorded "
        f"({_examples(count, examples)}): the folder was changed, or this version measures differently"
    )


# Gate


@_wording("gate-bench-rules", "info")
def _gate_bench_rules(rules: tuple[str, ...]) -> str:
    return f"from `gate:` in bench.yaml: {'; '.join(rules)}"


@_wording("gate-one-run-checked", "info")
def _gate_one_run_checked(run: str) -> str:
    return f"only {run!r} was checked, the only run of the baseline; run='NAME' (--run NAME) checks another"


@_wording("gate-other-run", "info")
def _gate_other_run(run: str, baseline: str) -> str:
    return f"run {run!r} is compared with {baseline!r}, the only run of the baseline"


@_wording("gate-measure-not-checked", "info")
def _gate_measure_not_checked(measure: str, reason: Literal["machine", "no values", "no direction"]) -> str:
    if reason == "machine":
        return f"the measure {measure} depends on the machine and is not checked; write a rule to check it"
    if reason == "no values":
        return f"the measure {measure} has no value for any query, in the result and in the baseline, and is not checked"
    return f"the measure {measure} is not checked: neither a higher nor a lower value is better"


@_wording("gate-dialects-differ", "info")
def _gate_dialects_differ(result: str, dialect: str, baseline: str, baseline_dialect: str) -> str:
    return (
        f"the dialect is {dialect} in {result} and {baseline_dialect} in {baseline}; "
        "the measures that are compared have the same definition"
    )


@_wording("gate-versions-differ", "warning")
def _gate_versions_differ(result: str, version: str, baseline: str, baseline_version: str) -> str:
    return (
        f"{result} was evaluated by Steelyard {version}, {baseline} by {baseline_version}; "
        "write the baseline again if values changed that should not"
    )


@_wording("gate-datasets-differ", "warning")
def _gate_datasets_differ(name: str, fingerprint: str, baseline_name: str, baseline_fingerprint: str) -> str:
    return (
        f"the dataset differs from that of the baseline ({name} {fingerprint}, {baseline_name} "
        f"{baseline_fingerprint}): documents, queries or qrels changed"
    )


@_wording("gate-qrels-unknown", "warning")
def _gate_qrels_unknown(source: str) -> str:
    return f"{source} does not record its qrels; they are assumed to be the same"


@_wording("gate-queries-missing", "warning")
def _gate_queries_missing(run: str, count: int, queries: int, examples: tuple[str, ...]) -> str:
    return f"{gate_queries_missing(run, count, queries, examples)} and {worded(count, 'is', 'are')} left out"


def gate_queries_missing(run: str, count: int, queries: int, examples: tuple[str, ...]) -> str:
    """The queries of the baseline that a run has no value for: a note if that is allowed, otherwise an error."""
    return (
        f"{count:,} of the {counted(queries, 'query', 'queries')} of the baseline {worded(count, 'has', 'have')} "
        f"no value in run {run!r} ({_examples(count, examples)})"
    )


@_wording("gate-queries-new", "info")
def _gate_queries_new(run: str, count: int, queries: int, shared: int, examples: tuple[str, ...]) -> str:
    return (
        f"{count:,} of the {counted(queries, 'query', 'queries')} of run {run!r} {worded(count, 'is', 'are')} not in "
        f"the baseline ({_examples(count, examples)}); it is compared on the {shared:,} that both have"
    )


@_wording("gate-judgments-changed", "warning")
def _gate_judgments_changed(count: int, queries: int, examples: tuple[str, ...]) -> str:
    return f"{gate_judgments_changed(count, queries, examples)}: part of the change may come from the qrels"


def gate_judgments_changed(count: int, queries: int, examples: tuple[str, ...]) -> str:
    """The queries with other judgments than in the baseline: a note if that is allowed, otherwise an error."""
    return (
        f"{count:,} of {counted(queries, 'query', 'queries')} {worded(count, 'has', 'have')} other judgments than in "
        f"the baseline ({_examples(count, examples)})"
    )


@_wording("gate-unknown-documents", "warning")
def _gate_unknown_documents(run: str, count: int) -> str:
    return f"run {run!r}: it returned {counted(count, 'document that is', 'documents that are')} not in the corpus"


@_wording("gate-baseline-run-failed", "warning")
def _gate_baseline_run_failed(run: str, failures: str) -> str:
    return f"run {run!r} of the baseline: {failures}"


@_wording("gate-values-unchanged", "warning")
def _gate_values_unchanged(runs: tuple[str, ...]) -> str:
    return f"every value checked equals that of the baseline: {listed(runs, SHOWN_NAMES)}; the bench may not have been run again"


@_wording("gate-values-missing", "warning")
def _gate_values_missing(run: str, measure: str, count: int) -> str:
    return (
        f"run {run!r} has no value of {measure} for {counted(count, 'query that has', 'queries that have')} one in the "
        f"baseline; {worded(count, 'it is', 'they are')} left out"
    )


@_wording("gate-too-few-queries", "warning")
def _gate_too_few_queries(rule: str, run: str, queries: int, kind: str, value: float) -> str:
    return (
        f"the rule `{rule}`: {queries:,} queries of run {run!r} are too few: they would probably miss even a {kind} of {value:.4f}, "
        "the whole value of the baseline"
    )


@_wording("gate-rule-direction", "warning")
def _gate_rule_direction(rule: str, measure: str, better: Literal["more", "less"]) -> str:
    direction = "higher" if better == "more" else "lower"
    return f"the rule `{rule}`: a {direction} value of {measure} is better; check the operator"


@_wording("gate-undecided", "warning")
def _gate_undecided(rules: tuple[tuple[str, str], ...], documents: int, strict: bool) -> str:
    which = listed([f"`{rule}` for {run}" for rule, run in rules], SHOWN_NAMES)
    judge = f"judge {counted(documents, 'document')}" if documents else "judge documents of both runs"
    strictly = "" if strict else ". With strict_judged=True (--strict-judged) the gate fails"
    return (
        f"the outcome of {which} depends on documents that nobody judged. To decide it, {judge}; "
        f"`steelyard pool` selects them{strictly}"
    )


@_wording("gate-lists-unknown", "warning")
def _gate_lists_unknown(sources: tuple[str, ...], chunked: bool) -> str:
    advice = gate_lists_advice(chunked)
    return (
        f"{gate_lists_unknown(sources, chunked)}, so unjudged documents were not checked. An outcome may depend on them. "
        f"{advice}"
    )


def gate_lists_unknown(sources: tuple[str, ...], chunked: bool) -> str:
    """Why unjudged documents cannot be checked: a note, or an error if they must be."""
    if chunked:
        return f"each chunker of {' and '.join(sources)} has its own judgments"
    return f"the lists of documents are not in {' and '.join(sources)}"


def gate_lists_advice(chunked: bool) -> str:
    """How unjudged documents can be checked."""
    if chunked:
        return "Check a bench without `chunkers`"
    return (
        "Use the result folder of a bench as the result, and as the baseline a result folder, or a file that "
        "`steelyard gate FOLDER --save-baseline baseline.json` wrote"
    )


# Several datasets


@_wording("across-missing", "warning")
def _across_missing(runs: tuple[tuple[str, tuple[str, ...]], ...], skipped: bool) -> str:
    which = "; ".join(f"{run} on {listed(names, SHOWN_NAMES)}" for run, names in runs[:SHOWN_NAMES])
    more = f" and {len(runs) - SHOWN_NAMES:,} other runs" if len(runs) > SHOWN_NAMES else ""
    means = (
        "Their means are over the datasets that they have, so they are not comparable with the others"
        if skipped
        else "Their means are not given; missing=skip (--missing skip) averages over the datasets that they have"
    )
    return f"not measured: {which}{more}. {means}"


@_wording("across-shared-datasets", "warning")
def _across_shared_datasets(shared: tuple[str, ...], datasets: int) -> str:
    if not shared:
        return "no dataset has a value of every run, so no difference was tested"
    return f"differences are of the {counted(len(shared), 'dataset')} of {datasets:,} that every run was measured on"


@_wording("across-few-datasets", "info")
def _across_few_datasets(datasets: int, alpha: float) -> str:
    smallest = 2.0 ** (1 - datasets)
    needed = next(count for count in range(2, 1000) if 2.0 ** (1 - count) < alpha)
    shown = (
        f"with {counted(datasets, 'dataset')}, the smallest p-value on datasets like these is {smallest:.2g}"
    )
    if smallest < alpha:
        return f"{shown}: only a difference with the same sign on every dataset can be significant"
    return f"{shown}, so no difference can be significant at {alpha:g}; at least {needed} datasets are needed"


@_wording("across-leader-depends", "warning")
def _across_leader_depends(leader: str, without: tuple[tuple[str, str], ...]) -> str:
    others = listed([f"without {name}, {run} leads" for name, run in without], SHOWN_NAMES)
    return f"one dataset decides that {leader} leads: {others}"


@_wording("across-one-dataset-decides", "warning")
def _across_one_dataset_decides(pairs: tuple[tuple[str, str, str, str], ...]) -> str:
    names: dict[tuple[str, str, str], list[str]] = {}
    for run, baseline, name, outcome in pairs:
        names.setdefault((run, baseline, outcome), []).append(name)
    shown = [
        f"{run} vs {baseline} ({outcome} without {' or without '.join(found[:3])}{', ...' if len(found) > 3 else ''})"
        for (run, baseline, outcome), found in names.items()
    ]
    return f"one dataset decides that these differences are significant on these datasets: {listed(shown, 4)}"


@_wording("across-opposite", "warning")
def _across_opposite(pairs: tuple[tuple[str, str, str, str], ...]) -> str:
    shown = listed(
        [
            f"{run} vs {base} ({verdict} over all, {'worse' if verdict == 'better' else 'better'} on {name})"
            for run, base, verdict, name in pairs
        ],
        4,
    )
    return f"differences with the opposite sign on a single dataset, both significant: {shown}"


@_wording("across-published", "info")
def _across_published(runs: tuple[str, ...]) -> str:
    return (
        f"{listed(runs, SHOWN_NAMES)} {worded(len(runs), 'has', 'have')} published means only: differences are tested "
        "on datasets like these, not on these datasets, which needs values per query"
    )


@_wording("across-percent", "info")
def _across_percent(source: str) -> str:
    return f"the values of {source} are in percent; they were divided by 100"


@_wording("across-left-out", "info")
def _across_left_out(source: str, names: tuple[str, ...]) -> str:
    return f"{source}: {listed(names, SHOWN_NAMES)} {worded(len(names), 'is', 'are')} an average and was left out"


@_wording("across-unused-datasets", "info")
def _across_unused_datasets(names: tuple[str, ...]) -> str:
    which = listed(names, SHOWN_NAMES)
    return f"published values on {which} were left out, since none of the results is on {worded(len(names), 'it', 'them')}"


@_wording("across-splits", "info")
def _across_splits(tasks: tuple[str, ...]) -> str:
    return f"the values of {listed(tasks, SHOWN_NAMES)} are means over several splits or subsets, as in MTEB"


@_wording("datasets-merged", "warning")
def _datasets_merged(column: str, datasets: int) -> str:
    return (
        f"the score table has the queries of {counted(datasets, 'dataset')} (column {column!r}), and the mean is over all "
        "queries: the dataset with the most queries counts most. sy.across and `steelyard across` weigh every dataset the same"
    )


def _examples(count: int, examples: tuple[str, ...]) -> str:
    """The first three examples of a count."""
    return ", ".join(examples[:3]) + (", ..." if count > 3 else "")
