"""Coverage: what was missing, unjudged, tied or repeated. It goes with every result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from steelyard.alignment.align import Aligned
from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Bools
from steelyard.errors import InputError
from steelyard.policies import Policies
from steelyard.wording import counted, worded


@dataclass(frozen=True)
class Coverage:
    """Counts of every edge case met, and the notes that go with them.

    queries: in the judgments; answered and missing: whether the run has them; empty: answered with an
    empty list; without_judgments: queries only the run has; no_relevant: queries with no relevant
    document; documents: returned for judged queries; unjudged: of those, never judged; repeated: of
    those, a document again; tie_sensitive: queries where the order of tied documents can change a score.
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
            said.append(
                f"{self.unjudged:,} of {counted(self.documents, 'document')} "
                f"({self.unjudged / self.documents:.0%}) "
                f"{worded(self.unjudged, 'was', 'were')} never judged."
            )
        if self.repeated:
            held = self.policies.duplicates == "hold"
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
    aligned: Aligned, a: Alignment, policies: Policies, rel: float | None, deepest: float
) -> Coverage:
    """The coverage of an alignment, as far down as the deepest cutoff looks."""
    documents, judged, repeated = int(a.retrieved.sum()), len(a.rank), len(a.repeats.rank)
    held = repeated if policies.duplicates == "hold" else 0
    answered = int(a.answered.sum())
    notes = list(dict.fromkeys(aligned.notes))
    if a.size and not answered and aligned.run_only_queries:
        notes.insert(0, strangers_note(aligned.run_only_examples, a.queries[:3]))
    return Coverage(
        queries=a.size,
        answered=answered,
        missing=a.size - answered,
        empty=int(np.sum(a.answered & (a.retrieved == 0))),
        without_judgments=aligned.run_only_queries,
        no_relevant=int(np.sum(without_relevant(a, rel))),
        documents=documents,
        unjudged=documents - judged - held,
        repeated=repeated,
        tie_sensitive=_tie_sensitive(a, deepest),
        policies=policies,
        notes=tuple(notes),
    )


def strangers_note(run_queries: Iterable[str], judged_queries: Iterable[str]) -> str:
    """The note on a run and judgments that share no query, with a few queries of either."""
    return (
        f"no query of the run is in the judgments: the run has {', '.join(map(repr, run_queries))}, "
        f"the judgments {', '.join(map(repr, judged_queries))}; check that they belong together"
    )


def refuse_strangers(coverage: Mapping[str, Coverage]) -> None:
    """An error where a run and the judgments share no query: its zeros mean nothing."""
    for name, covered in coverage.items():
        if covered.queries and not covered.answered and covered.without_judgments:
            raise InputError(
                f"run {name!r}: {next(note for note in covered.notes if note.startswith('no query of the run'))}."
            )


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
