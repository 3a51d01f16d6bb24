"""Whether a run and the judgments call their documents alike: what is said where not one is known to both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from steelyard.alignment.alignment import Aligned, Alignment
from steelyard.alignment.hits import Bools
from steelyard.errors import InputError
from steelyard.measures.grammar import Measure, parse
from steelyard.options import Policies
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted, worded

UNKNOWN = "no document that came back is judged"
DIFFER = "the ids differ only in"
"""How the note begins, and how it goes on where it can be seen what makes the ids differ."""

_LOOKED_AT = 20
"""How many queries are looked at for ids that are nearly the same."""


def with_unknown_documents(aligned: Aligned, qrels: Qrels, run: Any) -> Aligned:
    """The same; where documents came back and none of them is judged, with a note that shows ids of both."""
    a = aligned.alignment
    if len(a.rank) or not len(qrels) or not a.retrieved.any():
        return aligned
    answered = [query for query, size in zip(a.queries, a.retrieved.tolist(), strict=True) if size]
    queries = answered[:_LOOKED_AT]
    note = unknown_documents_note(_returned(Run.of(run), queries), _judged(qrels, queries))
    return replace(aligned, notes=(note, *aligned.notes))


def unknown_documents_note(returned: Sequence[str], judged: Sequence[str]) -> str:
    """The note on lists without a judged document: two ids of either side, and how they differ, if that is seen.

    >>> print(unknown_documents_note(["D1", "D7"], ["d1", "d2"]))
    no document that came back is judged: the run has 'D1', 'D7', the judgments 'd1', 'd2'; the ids differ only in upper and lower case
    """
    shown = [", ".join(map(repr, dict.fromkeys(ids[:2]))) or "none" for ids in (returned, judged)]
    what = difference(returned, judged)
    advice = f"{DIFFER} {what}" if what else "check that they belong together"
    return f"{UNKNOWN}: the run has {shown[0]}, the judgments {shown[1]}; {advice}"


def difference(returned: Iterable[str], judged: Iterable[str]) -> str | None:
    """What makes ids differ that would else be the same: case, or what all of one side begin with or end in.

    >>> difference(["doc-12", "doc-7"], ["7", "8"]), difference(["a.txt"], ["a"]), difference(["x"], ["y"])
    ("'doc-', with which those of the run begin", "'.txt', in which those of the run end", None)
    """
    ours, theirs = set(returned), set(judged)
    if ours & theirs:
        return None
    if {one.strip().lower() for one in ours} & {one.strip().lower() for one in theirs}:
        spaced = {one.strip() for one in ours} & {one.strip() for one in theirs}
        return "white space around them" if spaced else "upper and lower case"
    for longer, shorter, whose in ((ours, theirs, "the run"), (theirs, ours, "the judgments")):
        for one in sorted(longer):
            for cut in filter(partial(_parts, one), range(1, len(one))):
                begin, end = one[:cut], one[cut:]
                if end in shorter and _all_and_none(longer, shorter, str.startswith, begin):
                    return f"{begin!r}, with which those of {whose} begin"
                if begin in shorter and _all_and_none(longer, shorter, str.endswith, end):
                    return f"{end!r}, in which those of {whose} end"
    return None


def _all_and_none(ids: set[str], others: set[str], holds: Callable[[str, str], bool], part: str) -> bool:
    """Whether all ids begin with (or end in) a part that none of the others does."""
    return all(holds(one, part) for one in ids) and not any(holds(one, part) for one in others)


def _parts(text: str, cut: int) -> bool:
    """Whether a text may be two parts there: not within a number or a word."""
    before, after = text[cut - 1], text[cut]
    return not (before.isdigit() and after.isdigit()) and not (before.isalpha() and after.isalpha())


def _returned(run: Run, queries: Sequence[str]) -> list[str]:
    """The documents that a run has for some queries, in its order."""
    if run.mapping is not None:
        lists = (run.mapping.get(query, ()) for query in queries)
        return [one if isinstance(one, str) else one[0] for listed in lists for one in listed]
    import polars as pl

    return run.table.filter(pl.col("query_id").is_in(list(queries)))["doc_id"].to_list()


def _judged(qrels: Qrels, queries: Sequence[str]) -> list[str]:
    """The documents judged for some queries; those of the first ones, where these have none."""
    judged, wanted = qrels.judged, set(queries)
    starts = judged.starts.tolist()
    places = [place for place, query in enumerate(judged.query_ids) if query in wanted]
    found = [doc for place in places for doc in judged.doc_ids[starts[place] : starts[place + 1]]]
    return found or list(islice(judged.doc_ids, 100))


STRANGERS = "no query of the run is in the judgments"
"""How the note on a run and judgments that share no query begins."""


@dataclass(frozen=True)
class Coverage:
    """Counts of every edge case met, and the notes that go with them.

    queries: in the judgments; answered and missing: whether the run has them; empty: answered with an
    empty list; without_judgments: queries only the run has; no_relevant: queries with no relevant
    document, by the lowest grade that counts as relevant; documents: places in the lists of judged
    queries; repeated: documents that came again in a list, which hold a place each unless they were taken
    out; unjudged: different documents that their query did not judge, so never a repeat; tie_sensitive:
    queries where the order of tied documents can change a score; below_rel: judgments graded above 0 that
    a measure does not count as relevant by its own default, nobody having said a level.
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
    policies: Policies
    below_rel: int = 0
    notes: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """The counts alone."""
        return {name: value for name, value in asdict(self).items() if isinstance(value, int)}

    def sentences(self) -> list[str]:
        """What a reader should know, one sentence each; nothing where all is plain."""
        said: list[str] = []
        if self.missing:
            fate = _fate(self.missing, self.policies.missing)
            said.append(
                f"{counted(self.missing, 'query is', 'queries are')} missing from the run and {fate}."
            )
        if self.empty:
            said.append(self._on_empty_lists())
        if self.without_judgments:
            fate = worded(self.without_judgments, "was", "were")
            said.append(
                f"{counted(self.without_judgments, 'query', 'queries')} only in the run {fate} ignored."
            )
        if self.no_relevant:
            fate = _fate(self.no_relevant, self.policies.no_relevant)
            said.append(
                f"{counted(self.no_relevant, 'query has', 'queries have')} no relevant document and {fate}."
            )
        if self.unjudged and self.documents:
            said.append(self._on_unjudged())
        if self.repeated:
            held = self.policies.duplicates == "hold" and self.policies.unjudged == "keep"
            what = (
                f"{worded(self.repeated, 'it', 'each')} holds its rank and gains nothing"
                if held
                else worded(self.repeated, "it was taken out", "they were taken out")
            )
            said.append(
                f"{counted(self.repeated, 'document repeats', 'documents repeat')} an earlier one of the "
                f"list: {what}."
            )
        if self.tie_sensitive:
            said.append(
                f"{counted(self.tie_sensitive, 'query has', 'queries have')} tied scores whose order can "
                "change a value "
                f"(ties={self.policies.ties})."
            )
        return said + [f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in self.notes]

    def _on_unjudged(self) -> str:
        """How much was never judged: of different documents, as a repeat is neither judged nor unjudged."""
        held = self.repeated if self.policies.duplicates == "hold" else 0
        of = self.documents - held
        told = (
            f"{self.unjudged:,} of {counted(of, 'different document' if held else 'document')} "
            f"({self.unjudged / of:.0%}) {worded(self.unjudged, 'was', 'were')} never judged"
        )
        if self.policies.unjudged == "remove":
            told += f" and {worded(self.unjudged, 'was', 'were')} taken out of the lists"
        return f"{told}."

    def _on_empty_lists(self) -> str:
        """An empty list is an answer, so it counts where missing queries do not: that is said."""
        fate = _fate(self.empty, "zero")
        told = f"{counted(self.empty, 'query is', 'queries are')} answered with an empty list and {fate}"
        if self.policies.missing == "skip":
            told += ", though missing queries are left out; a TREC file cannot hold an empty list, and leaves them out"
        return f"{told}."

    def __str__(self) -> str:
        head = (
            f"{self.answered:,} of {counted(self.queries, 'query', 'queries')} answered, "
            f"{counted(self.documents, 'document')}."
        )
        return " ".join([head, *self.sentences()])

    __repr__ = __str__


def coverage_of(
    aligned: Aligned, a: Alignment, policies: Policies, levels: Levels, deepest: float
) -> Coverage:
    """The coverage of an alignment, as far down as the deepest cutoff looks.

    `a` is what is measured; where unjudged documents were taken out of it, what came back is counted in
    the lists as they were.
    """
    lists = aligned.alignment if policies.unjudged == "remove" else a
    documents, judged, repeated = int(lists.retrieved.sum()), len(lists.rank), len(lists.repeats.rank)
    held = repeated if policies.duplicates == "hold" else 0
    answered = int(a.answered.sum())
    notes = list(dict.fromkeys(aligned.notes))
    if a.size and not answered and aligned.run_only_queries:
        notes.insert(0, strangers_note(aligned.run_only_examples, a.queries[:3]))
    return Coverage(
        queries=a.size,
        answered=answered,
        missing=a.size - answered,
        empty=int(np.sum(lists.answered & (lists.retrieved == 0))),
        without_judgments=aligned.run_only_queries,
        no_relevant=int(np.sum(without_relevant(a, levels.lowest))),
        documents=documents,
        unjudged=documents - judged - held,
        repeated=repeated,
        tie_sensitive=_tie_sensitive(a, deepest),
        below_rel=int(np.sum((a.judged.grade > 0) & (a.judged.grade < levels.highest_unsaid))),
        policies=policies,
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class Levels:
    """From which grade on a document is relevant, to the measures asked for.

    `lowest`: to some of them (None: any grade above 0). `unsaid` are the measures, and their levels, that
    have one by default alone: neither they nor the call say it.
    """

    lowest: float | None = None
    unsaid: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, wanted: Mapping[str, Measure], rel: float | None) -> Levels:
        """The levels of some measures, `rel` being that of the call."""
        own = {key: level_of(m, rel) for key, m in wanted.items() if m.definition.needs_relevant}
        unsaid = {
            key: level
            for key, m in wanted.items()
            if rel is None and (level := level_of(m)) is not None and "rel=" not in str(m)
        }
        known = [level for level in own.values() if level is not None]
        lowest = rel if rel is not None else min(known, default=None)
        return cls(lowest if rel is not None or len(known) == len(own) else None, unsaid)

    @property
    def highest_unsaid(self) -> float:
        """The highest level that nobody asked for; 0 where there is none."""
        return max(self.unsaid.values(), default=0.0)

    def note(self, below: int, faintest: float) -> str | None:
        """What to say of judgments above 0 that are not relevant to measures which do not say their level."""
        keys = [key for key, level in self.unsaid.items() if faintest < level]
        if not below or not keys:
            return None
        return (
            f"{counted(below, 'judgment has', 'judgments have')} a grade above 0 but below {self.highest_unsaid:g}, "
            f"from which on {', '.join(keys)} {worded(len(keys), 'counts', 'count')} a document as relevant: "
            f"rel={faintest:g} (--rel {faintest:g}) counts {worded(below, 'it', 'them')} too"
        )


def level_of(measure: Measure, rel: float | None = None) -> float | None:
    """The lowest grade that is relevant to a measure; `rel`, or any above 0, where it has no level of its own."""
    own = measure.parameters.get("rel")
    if "of" in measure.parameters:
        inner = parse(measure.parameters["of"])
        own = dict(inner.given).get("rel", own if inner.parameters.get("rel") is not None else None)
    return rel if own is None else float(own)


def faintest_grade(a: Alignment) -> float:
    """The lowest grade above 0; infinite where there is none."""
    above = a.judged.grade[a.judged.grade > 0]
    return float(above.min(initial=np.inf))


def strangers_note(run_queries: Iterable[str], judged_queries: Iterable[str]) -> str:
    """The note on a run and judgments that share no query, with a few queries of either."""
    return (
        f"{STRANGERS}: the run has {', '.join(map(repr, run_queries))}, "
        f"the judgments {', '.join(map(repr, judged_queries))}; check that they belong together"
    )


def refuse_strangers(coverage: Mapping[str, Coverage]) -> None:
    """An error where a run and the judgments share no query, or their documents are called otherwise.

    Zeros mean nothing there.
    """
    for name, covered in coverage.items():
        for note in covered.notes:
            if note.startswith(STRANGERS) or (note.startswith(UNKNOWN) and DIFFER in note):
                raise InputError(f"run {name!r}: {note}.")


def without_relevant(a: Alignment, rel: float | None) -> Bools:
    """The queries without a relevant document."""
    relevant = a.judged.grade > 0 if rel is None else a.judged.grade >= rel
    return np.equal(a.judged_per_query(relevant), 0)


def _tie_sensitive(a: Alignment, deepest: float) -> int:
    """Queries with a group of equal scores that mixes a relevant document or distractor with another grade.

    An unjudged document counts as grade 0; groups that begin below the deepest cutoff do not matter.
    """
    tied = np.flatnonzero((a.tie_size > 1) & (a.tie_first <= deepest))
    if not len(tied):
        return 0
    query, first = a.query[tied], a.tie_first[tied]
    order = np.lexsort((first, query))
    tied, query, first = tied[order], query[order], first[order]
    begins = np.flatnonzero(np.concatenate([[True], (query[1:] != query[:-1]) | (first[1:] != first[:-1])]))
    sizes = np.diff(np.append(begins, len(tied)))
    grade = a.grade[tied]
    highest, lowest = np.maximum.reduceat(grade, begins), np.minimum.reduceat(grade, begins)
    partly = sizes < a.tie_size[tied[begins]]
    highest, lowest = (
        np.where(partly, np.maximum(highest, 0), highest),
        np.where(partly, np.minimum(lowest, 0), lowest),
    )
    mixed = query[begins][highest != lowest]
    return len(mixed) and 1 + int(np.count_nonzero(np.diff(mixed)))


def _fate(number: int, policy: str) -> str:
    if policy == "skip":
        return worded(number, "is left out", "are left out")
    return worded(number, "counts as 0", "count as 0")
