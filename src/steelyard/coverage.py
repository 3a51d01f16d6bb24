"""Coverage: what was missing, unjudged, tied or repeated in an evaluation, and ids that do not match."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from steelyard.alignment.alignment import Aligned, Alignment
from steelyard.alignment.hits import Bools
from steelyard.alignment.ranking import group_starts
from steelyard.alignment.scans import ScannedRun
from steelyard.errors import InputError
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure
from steelyard.notes import Note, Texts, declare, note, sentence
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import SHOWN_NAMES, counted, listed, notes_by_names, worded

COMPARED_QUERIES = 20  # Queries whose document ids are compared where no retrieved document is judged.
_MOST_GRADES = 10  # Qrels rarely have more grades than this.
_CHANCE = 1 / 6  # Scores look like distances if lists in random order would increase with at most this probability.

_NO_JUDGED = "no retrieved document is judged: the run has {run!r:two}, the qrels {qrels!r:two}"
_SCORED = "{policy:skip?{count:is|are} left out|{count:scores|score} 0}"
_ON = "{measures:? on {measures:listed}|}"


def _unjudged_documents(count: int, documents: int, repeats: bool, removed: bool) -> str:
    noun = "distinct document" if repeats else "document"
    text = f"{count:,} of {counted(documents, noun)} ({count / documents:.0%}) {worded(count, 'is', 'are')} unjudged"
    return f"{text} and {worded(count, 'was', 'were')} removed from the lists" if removed else text


ERRORS: Texts = {
    "no-shared-query": "no query of the run is in the qrels: the run has {run!r:joined}, the qrels "
    "{qrels!r:joined}; check that the two files belong together",
    "document-ids-differ": _NO_JUDGED + "; the ids differ only in {difference}",
}
WARNINGS: Texts = {
    "no-judged-document": _NO_JUDGED + "; check that the two files belong together",
    "scores-like-distances": "scores increase from the first document of a list to the last, as distances do"
    "{ordered:?; the order of the lists is used|, and the highest score is ranked first; negate distances, or pass "
    "ranked ids}",
    "qrels-and-run-swapped": "the grades of the qrels are not whole numbers and the scores of the run are, as if "
    "the two were swapped; the qrels come first",
    "missing-queries": "{count:,} {count:query is|queries are} missing from the run and " + _SCORED,
    "empty-lists": "{count:,} {count:query has|queries have} an empty list and {count:scores|score} 0"
    + _ON
    + "{missing:skip? (missing queries are skipped, but an empty list is an answer; a TREC file cannot store one)|}",
    "no-relevant-document": "{count:,} {count:query has|queries have} no relevant document and "
    "{policy:skip?{count:is|are} left out{measures:? of {measures:listed}|}|{count:scores|score} 0" + _ON + "}",
    "no-relevant-for-measure": "{count:,} {count:query has|queries have} no document with grade {level:g} or above and "
    "{policy:skip?{count:is|are} left out of|{count:scores|score} 0 on} {measures:listed}",
    "repeated-documents": "{count:,} {count:document repeats|documents repeat} an earlier one in the same list; "
    "{held:?{count:it keeps its rank and gains|they keep their ranks and gain} nothing|{count:it was|they were} "
    "removed}",
    "grades-below-rel": "{count:,} {count:judgment has|judgments have} a grade above 0 but below {level:g}, the "
    "lowest grade that {measures:joined} {measures:counts|count} as relevant; rel={lowest:g} (--set rel={lowest:g}) "
    "includes {count:it|them}",
}
INFO: Texts = {
    "queries-without-judgments": "{count:,} {count:query of the run has|queries of the run have} no judgments and "
    "{count:was|were} ignored",
    "unjudged-documents": _unjudged_documents,
    "tied-scores": "{count:,} {count:query has|queries have} tied scores whose order can change a value (ties={ties})",
    # Raised by spark/, which cannot be imported without pyspark: a stored note is read without it too.
    "rows-shuffled": "the qrels have more than {most:,} judgments, so Spark shuffled all rows of the run, which "
    "takes longer",
}
SHORT: Texts = {
    "no-shared-query": "no query of the run is in the qrels (run {run[0]!r}, qrels {qrels[0]!r})",
    "scores-like-distances": "scores increase down the lists, as distances do{ordered:?; the order is used|}",
    "grades-below-rel": "{count:,} {count:grade is|grades are} above 0 but below {level:g}: not relevant "
    "(--set rel={lowest:g})",
}
declare(error=ERRORS, warning=WARNINGS, info=INFO, short=SHORT)


def with_doubts(aligned: Aligned, qrels: Qrels, run: Any) -> Aligned:
    """The alignment; with notes on inputs that look wrong: ids that do not match, distances, qrels and run swapped."""
    doubts, lists = list(_unknown_documents(aligned.alignment, qrels, run)), aligned.first_scores
    fractions = qrels.once("fractions", lambda: bool(np.any(qrels.grades != np.round(qrels.grades))))
    scores = {score for listed in lists for score in listed} if fractions else set()
    if scores and len(scores) <= _MOST_GRADES and all(score == int(score) for score in scores):
        doubts.append(note("qrels-and-run-swapped"))
    elif like_distances(lists):
        doubts.append(note("scores-like-distances", ordered=aligned.ordered))
    return replace(aligned, notes=(*doubts, *aligned.notes)) if doubts else aligned


def like_distances(lists: Iterable[Sequence[float]]) -> bool:
    """Whether scores never fall from one document to the next, in lists long enough for this not to be chance."""
    chance = 1.0
    for scores in lists:
        if any(after < before for before, after in pairwise(scores)):
            return False
        if scores and scores[-1] > scores[0]:
            chance /= math.factorial(min(len(scores), 20))
    return chance <= _CHANCE


def _unknown_documents(a: Alignment, qrels: Qrels, run: Any) -> Iterator[Note]:
    """The note that shows ids of both sides where documents were retrieved and none is judged."""
    if len(a.rank) or not len(qrels) or not a.retrieved.any():
        return
    queries = [query for query, size in zip(a.queries, a.retrieved.tolist(), strict=True) if size][:COMPARED_QUERIES]
    retrieved = run.documents(queries) if isinstance(run, ScannedRun) else _retrieved(Run.of(run), queries)
    # The documents judged for these queries; the first documents of the qrels where there are none.
    judged, starts, chosen = qrels.judged, qrels.judged.starts.tolist(), set(queries)
    places = [place for place, query in enumerate(judged.query_ids) if query in chosen]
    documents = [doc for place in places for doc in judged.doc_ids[starts[place] : starts[place + 1]]]
    yield unknown_documents_note(retrieved, documents or list(islice(judged.doc_ids, 100)))


def unknown_documents_note(retrieved: Sequence[str], judged: Sequence[str]) -> Note:
    """The note on lists without a judged document: ids of both sides, and how they differ if that is known."""
    what = id_difference(retrieved, judged)
    if what is None:
        return note("no-judged-document", run=retrieved[:2], qrels=judged[:2])
    return note("document-ids-differ", run=retrieved[:2], qrels=judged[:2], difference=what)


def id_difference(retrieved: Iterable[str], judged: Iterable[str]) -> str | None:
    """The difference between ids that are otherwise the same: case, white space, or a prefix or suffix of one side."""
    in_run, in_qrels = set(retrieved), set(judged)
    if in_run & in_qrels:
        return None
    if {one.strip().lower() for one in in_run} & {one.strip().lower() for one in in_qrels}:
        spaced = {one.strip() for one in in_run} & {one.strip() for one in in_qrels}
        return "white space around them" if spaced else "upper and lower case"
    for longer, shorter, whose in ((in_run, in_qrels, "the run's"), (in_qrels, in_run, "the qrels'")):
        for one in sorted(longer):
            for cut in filter(partial(separable, one), range(1, len(one))):
                start, end = one[:cut], one[cut:]
                if end in shorter and _all_and_none(longer, shorter, str.startswith, start):
                    return f"the prefix {start!r} of {whose} ids"
                if start in shorter and _all_and_none(longer, shorter, str.endswith, end):
                    return f"the suffix {end!r} of {whose} ids"
    return None


def _all_and_none(ids: set[str], others: set[str], has: Callable[[str, str], bool], part: str) -> bool:
    """Whether all ids start with (or end in) a part and none of the others does."""
    return all(has(one, part) for one in ids) and not any(has(one, part) for one in others)


def separable(text: str, cut: int) -> bool:
    """Whether a text can be cut there: not within a number or a word."""
    before, after = text[cut - 1], text[cut]
    return not (before.isdigit() and after.isdigit()) and not (before.isalpha() and after.isalpha())


def _retrieved(run: Run, queries: Sequence[str]) -> list[str]:
    """The documents of a run for some queries, in its order."""
    if run.mapping is not None:
        lists = (run.mapping.get(query, ()) for query in queries)
        return [one if isinstance(one, str) else one[0] for listed in lists for one in listed]
    return run.table.filter(pl.col("query_id").is_in(list(queries)))["doc_id"].to_list()


@dataclass(frozen=True)
class Levels:
    """The lowest grade that counts as relevant, for the measures of an evaluation.

    `lowest`, `highest`: the lowest and the highest over the measures (None: any grade above 0). `strictest`: the
    measures with the highest. `by_default`: the measures whose level is their own default, since neither the measure
    nor the call states one. `on_empty`, `on_irrelevant`, `skipping`: the measures that give 0 for an empty list, that
    give 0 for a query without a relevant document, and that can leave out such a query; None: all of which more is
    better, apart from counts.
    """

    lowest: float | None = None
    highest: float | None = None
    strictest: Sequence[str] = ()
    by_default: Mapping[str, float] = field(default_factory=dict)
    on_empty: Sequence[str] | None = None
    on_irrelevant: Sequence[str] | None = None
    skipping: Sequence[str] | None = None

    @classmethod
    def of(cls, measures: Mapping[str, Measure], rel: float | None) -> Levels:
        """The levels of some measures; `rel` is the level that the call states."""
        needing = {key: m for key, m in measures.items() if m.definition.needs_relevant}
        levels = {key: level_of(m) for key, m in needing.items()}
        unstated = {key: level_of(m) for key, m in measures.items() if rel is None and "rel=" not in str(m)}
        by_default = {key: level for key, level in unstated.items() if level is not None}
        defined = [level for level in levels.values() if level is not None]
        lowest = min(defined) if defined and len(defined) == len(levels) else None
        highest = max(defined, default=None)
        strictest = [key for key, level in levels.items() if level == highest]
        kinds = {key: m.definition for key, m in measures.items()}
        rated = [key for key, kind in kinds.items() if kind.better == "more" and kind.summary != "sum"]
        skipping = [key for key in rated if key in needing]
        groups = [[key for key in keys if kinds[key].empty == 0] for keys in (rated, skipping)] + [skipping]
        return cls(lowest, highest, strictest, by_default, *(None if rated == keys != [] else keys for keys in groups))

    def notes(self, coverage: Coverage, lowest: float) -> Iterator[Note]:
        """The notes on grades above 0 that are not relevant to some measures. lowest: the lowest grade above 0."""
        keys, below = [key for key, level in self.by_default.items() if lowest < level], coverage.below_rel
        if keys and below:
            level = max(self.by_default.values())
            yield note("grades-below-rel", count=below, measures=keys, level=level, lowest=lowest)
        if coverage.no_relevant < coverage.no_relevant_strictest < coverage.queries:
            values = {"level": self.highest, "measures": self.strictest, "policy": coverage.policies.no_relevant}
            yield note("no-relevant-for-measure", count=coverage.no_relevant_strictest, **values)


@dataclass(frozen=True)
class Coverage:
    """Counts of every edge case, and the notes that go with them.

    queries: queries in the qrels. answered, missing: whether the run has them. empty: queries with an empty list.
    without_judgments: queries of the run that are not in the qrels. no_relevant, no_relevant_strictest: queries without
    a relevant document, by the lowest and by the highest level of the measures (the lowest grade that is relevant to
    one). documents: ranks in the lists of judged queries.
    repeated: documents that occur again in a list; each keeps a rank unless it was removed. unjudged: distinct
    documents without a judgment, so never a repeat. tie_sensitive: queries where the order of tied documents can
    change a score. below_rel: judgments above 0 that a measure does not count as relevant by its own default.
    """

    queries: int
    answered: int
    missing: int
    empty: int
    without_judgments: int
    no_relevant: int
    documents: int
    unjudged: int
    repeated: int
    tie_sensitive: int
    policies: Options
    below_rel: int = 0
    no_relevant_strictest: int = 0
    notes: tuple[Note, ...] = ()
    levels: Levels = field(default=Levels(), compare=False)

    def counts(self) -> dict[str, int]:
        """The counts alone."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int)}

    def all_notes(self) -> list[Note]:
        """A note for every count that a reader should know, then the other notes."""
        policies = self.policies
        repeats = self.repeated if policies.duplicates == "hold" else 0
        removed = policies.unjudged == "remove"
        unjudged = {"documents": self.documents - repeats, "repeats": bool(repeats), "removed": removed}
        held = policies.duplicates == "hold" and policies.unjudged == "keep"
        empty, levels = self.levels.on_empty, self.levels
        irrelevant = levels.skipping if policies.no_relevant == "skip" else levels.on_irrelevant
        barren = {"measures": irrelevant, "policy": policies.no_relevant}
        counts: list[tuple[int, str, dict[str, Any]]] = [
            (self.missing, "missing-queries", {"policy": policies.missing}),
            (empty != [] and self.empty, "empty-lists", {"measures": empty, "missing": policies.missing}),
            (self.without_judgments, "queries-without-judgments", {}),
            (irrelevant != [] and self.no_relevant, "no-relevant-document", barren),
            (self.documents and self.unjudged, "unjudged-documents", unjudged),
            (self.repeated, "repeated-documents", {"held": held}),
            (self.tie_sensitive, "tied-scores", {"ties": policies.ties}),
        ]
        return [*(note(code, count=count, **values) for count, code, values in counts if count), *self.notes]

    @property
    def head(self) -> str:
        """How many queries are answered, with how many documents."""
        queries = counted(self.queries, "query", "queries")
        return f"{self.answered:,} of {queries} answered, {counted(self.documents, 'document')}."

    def __str__(self) -> str:
        return " ".join([self.head, *map(sentence, self.all_notes())])

    __repr__ = __str__


def coverage_of(aligned: Aligned, a: Alignment, policies: Options, levels: Levels, deepest: float) -> Coverage:
    """The coverage of an alignment down to the deepest cutoff.

    `a` is the alignment that is measured. Where unjudged documents were removed from it, documents are counted
    in the lists as they were retrieved.
    """
    lists = aligned.alignment if policies.unjudged == "remove" else a
    documents, judged, repeated = int(lists.retrieved.sum()), len(lists.rank), len(lists.repeats.rank)
    held = repeated if policies.duplicates == "hold" else 0
    answered, measured = int(a.answered.sum()), a.answered | (policies.missing != "skip")
    notes = list(dict.fromkeys(aligned.notes))
    if a.size and not answered and a.run_only_queries:
        notes.insert(0, note("no-shared-query", run=a.run_only_examples, qrels=tuple(a.queries[:3])))
    # Ties that `depth` cuts through decide which of their documents are left: they are counted in the whole lists.
    whole = a if policies.depth is None else replace(policies, depth=None).lists(aligned.alignment)
    level, grade = max(levels.by_default.values(), default=0.0), a.judged.grade
    below = a.judged.once(("below", level), lambda: int(np.sum((grade > 0) & (grade < level))))
    return Coverage(
        queries=a.size,
        answered=answered,
        missing=a.size - answered,
        empty=int(np.sum(lists.answered & (lists.retrieved == 0))),
        without_judgments=a.run_only_queries,
        no_relevant=int(np.sum(without_relevant(a, levels.lowest) & measured)),
        no_relevant_strictest=int(np.sum(without_relevant(a, levels.highest) & measured)),
        documents=documents,
        unjudged=documents - judged - held,
        repeated=repeated,
        tie_sensitive=tie_sensitive(whole, min(deepest, policies.depth or np.inf)),
        below_rel=below,
        policies=policies,
        notes=tuple(notes),
        levels=levels,
    )


def level_of(measure: Measure, graded: float | None = None) -> float | None:
    """The lowest grade that is relevant to a measure; `graded`, or any above 0 (None), to one that has no level."""
    if "weights" in measure.parameters:
        levels = [level_of(part) for part, _ in measure.parts if part.definition.needs_relevant]
        return max((level for level in levels if level is not None), default=graded)
    level = measure.parameters.get("rel")
    if "of" in measure.parameters:
        inner = measure.inner
        level = dict(inner.given).get("rel", level if inner.parameters.get("rel") is not None else None)
    return graded if level is None else float(level)


def coverage_lines(coverage: Mapping[str, Coverage], heads: bool = True) -> list[str]:
    """The coverage of several runs: what they have in common once, without the unjudged documents."""
    texts = {
        name: [*([covered.head] if heads else []), *map(sentence, replace(covered, unjudged=0).all_notes())]
        for name, covered in coverage.items()
    }
    shared, everyone = notes_by_names(texts), tuple(coverage)
    return [
        f"{'All runs' if names == everyone else listed(names, SHOWN_NAMES)}: {' '.join(shared[names])}"
        for names in sorted(shared, key=lambda names: names != everyone)
    ]


def unjudged_line(shares: Mapping[str, float], where: str, names: Mapping[str, str] | None = None) -> str:
    """The lowest and the highest share of unjudged documents, with the runs, by their `names` if given."""
    least, most = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
    low, high = f"{shares[least]:.0%}", f"{shares[most]:.0%}"
    least, most = (least, most) if names is None else (names[least], names[most])
    span = low if low == high else f"{low} ({least}) to {high} ({most})"
    return f"Unjudged: {span} of the {where}."


def refuse_unmatched(coverage: Mapping[str, Coverage]) -> None:
    """Raise where a run and the qrels share no query, or name their documents differently: the scores mean nothing."""
    for name, covered in coverage.items():
        for problem in covered.notes:
            if problem.severity == "error":
                raise InputError(f"run {name!r}: {problem}.")


def none_judged(returned: str, judged: str) -> str:
    """Why a run of which no document is judged has no values; from an id of the run and one of the qrels."""
    return f"none of its documents is judged: its ids ({returned}) may differ from those of the qrels ({judged})"


def not_measured(covered: Coverage) -> str | None:
    """Why the values of a run mean nothing; None if they mean something."""
    codes = {remark.code: remark for remark in covered.notes}
    if "no-shared-query" in codes:
        return "none of its queries is in the qrels"
    if "document-ids-differ" in codes:
        return "its document ids differ from those of the qrels"
    return "it answered no query" if covered.queries and not covered.answered else None


def without_relevant(a: Alignment, rel: float | None) -> Bools:
    """The queries without a relevant document."""
    return np.equal(a.above_zero if rel is None else a.relevant(rel), 0)


def tie_sensitive(a: Alignment, deepest: float) -> int:
    """Queries with a group of equal scores that mixes a relevant document or distractor with another grade.

    An unjudged document counts as grade 0; groups that start below the deepest cutoff do not matter.
    """
    tied = np.flatnonzero((a.tie_size > 1) & (a.tie_first <= deepest))
    if not len(tied):
        return 0
    query, first = a.query[tied], a.tie_first[tied]
    order = np.lexsort((first, query))
    tied, query, first = tied[order], query[order], first[order]
    starts = group_starts(query, first)
    grade = a.grade[tied]
    highest, lowest = np.maximum.reduceat(grade, starts), np.minimum.reduceat(grade, starts)
    partly = np.diff(np.append(starts, len(tied))) < a.tie_size[tied[starts]]
    highest = np.where(partly, np.maximum(highest, 0), highest)
    lowest = np.where(partly, np.minimum(lowest, 0), lowest)
    mixed = query[starts][highest != lowest]
    return len(mixed) and 1 + int(np.count_nonzero(np.diff(mixed)))
