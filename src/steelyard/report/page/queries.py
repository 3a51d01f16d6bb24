"""How each run fails on each query: named, so that queries can be filtered by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats, Ints, Ordering
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.result import Comparison
from steelyard.report.page.subject import Subject, embedded_json
from steelyard.run import Run

UNANSWERED, MISSED, LOW, DISTRACTED, REPEATED, UNJUDGED, NOTHING, PARTLY = (1 << bit for bit in range(8))
"""Bits of a failure: the scripts of the page read the same ones."""

DEFAULT_CUTOFF = 10


@dataclass(frozen=True)
class Look:
    """A run joined with its judgments: its failures by query, and the rank of its first relevant document."""

    alignment: Alignment
    failures: Ints
    first: Ints


def looks_of(comparison: Comparison) -> list[Look]:
    """A look at every run of a comparison, in its order; none where it was made from scores alone."""
    source = comparison.source
    if source is None:
        return []
    cutoff = low_cutoff(comparison)
    return [look(source.alignments[name], cutoff) for name in comparison.runs]


def low_cutoff(comparison: Comparison) -> int:
    """Below which rank a relevant document is ranked low: the cutoff of the first measure that has one."""
    board = comparison.boards[0]
    if board.k is not None:
        return board.k
    cutoffs = [c.measure.cutoff for c in board.columns if c.measure is not None and c.measure.cutoff]
    whole = [int(cutoff) for cutoff in cutoffs if cutoff >= 1]
    return whole[0] if whole else DEFAULT_CUTOFF


def look(a: Alignment, cutoff: int) -> Look:
    """Name the failures of one run.

    Missed: no relevant document in the whole list. Low: the first one stands below the cutoff.
    Partly: some of the relevant ones are not within the cutoff. Distracted: a distractor stands
    above the first relevant one. Repeated: a document comes again within the cutoff. Unjudged:
    the first document was never judged.
    """
    relevant, distractor = a.grade > 0, a.grade < 0
    wanted = a.judged_per_query(a.judged.grade > 0)
    first = a.first(relevant)
    found = a.per_query(relevant & (a.rank <= cutoff))
    judged_top = np.zeros(a.size, dtype=bool)
    judged_top[a.query[a.rank == 1]] = True
    again = np.zeros(a.size, dtype=bool)
    again[a.repeats.query[a.repeats.rank <= cutoff]] = True
    silent, barren = a.retrieved == 0, wanted == 0
    missed = np.isinf(first) & ~silent & ~barren
    failures = (
        UNANSWERED * silent
        | MISSED * missed
        | LOW * (np.isfinite(first) & (first > cutoff))
        | DISTRACTED * (a.first(distractor) < np.minimum(first, cutoff + 1))
        | REPEATED * again
        | UNJUDGED * (~judged_top & ~silent)
        | NOTHING * barren
        | PARTLY * ((found > 0) & (found < wanted))
    )
    rank = np.where(np.isfinite(first), first, 0)
    return Look(a, failures.astype(np.int64), np.minimum(rank, 65535).astype(np.int64))


DEPTH = 20
"""Documents shown of every list."""

TEXT_LIMIT = 1_500
"""Characters shown of a document's text; the page says how many more there are."""

LABEL_LIMIT = 300
"""Characters shown of an id or a title."""

FIRST_READ = 200
"""Queries whose lists are read at first; then four times as many each time."""

Top: TypeAlias = list[tuple[str, float | None]]
"""Documents and scores, best first."""

MISSING_SHOWN = 40
"""Relevant documents listed that no list shows."""


def interesting_order(values: Floats, looks: Sequence[Look]) -> list[int]:
    """The queries in the order they should be kept: misses, the biggest differences and a sample, in turn.

    `values` is the first measure, runs x queries.
    """
    size = values.shape[1]
    known = np.nan_to_num(values, nan=0.0)
    spread = known.max(axis=0) - known.min(axis=0) if len(known) else np.zeros(size)
    movers = np.argsort(-spread, kind="stable").tolist()
    missed = np.ones(size, dtype=bool) if looks else known.max(axis=0, initial=0.0) <= 0
    for each in looks:
        missed &= (each.failures & (MISSED | UNANSWERED)) > 0
    sample = np.random.default_rng(0).permutation(size).tolist()
    turns = zip(_padded(movers, size), _padded(np.flatnonzero(missed).tolist(), size), sample, strict=True)
    return list(dict.fromkeys(query for turn in turns for query in turn if query >= 0))


def _padded(queries: list[int], size: int) -> list[int]:
    return queries + [-1] * (size - len(queries))


@dataclass
class Shelf:
    """The documents of the lists, each once, with what of it is shown."""

    documents: Any
    whole: bool
    rows: list[list[Any]] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def place(self, doc_id: str) -> int:
        """The document's place among the rows."""
        known = self.places.get(doc_id)
        if known is None:
            known = self.places[doc_id] = len(self.rows)
            self.rows.append(self._row(doc_id))
        return known

    def _row(self, doc_id: str) -> list[Any]:
        """Id, title, text and the number of characters left out; id alone where there is no text."""
        found = self.documents.get(doc_id)
        if found is None:
            return [self._label(doc_id)]
        title, text = found
        if self.whole or len(text) <= TEXT_LIMIT:
            return [self._label(doc_id), self._label(title), text]
        return [self._label(doc_id), self._label(title), text[:TEXT_LIMIT], len(text) - TEXT_LIMIT]

    def _label(self, text: str) -> str:
        return text if self.whole or len(text) <= LABEL_LIMIT else f"{text[:LABEL_LIMIT]}…"


@dataclass(frozen=True)
class Lists:
    """The lists of some queries, as the page reads them, and which queries those are."""

    queries: tuple[int, ...]
    json: str
    cut_texts: int


def lists_of(
    subject: Subject,
    looks: Sequence[Look],
    order: Sequence[int],
    numbers: Mapping[int, int],
    room: int | None,
) -> Lists:
    """The lists of the queries in `order`, until the room (in bytes) is used up; all where there is no end to it.

    `order` counts in the comparison's first board; `numbers` gives each query's number in the page.
    """
    comparison = subject.comparison
    source = comparison.source
    if source is None:
        return Lists((), "{}", 0)
    shelf = Shelf(subject.documents, whole=room is None)
    judgments = _Judgments.of(source.qrels, looks)
    made: dict[str, Any] = {}
    used = shown = 0
    for query, name, listed in _listed(comparison, order):
        entry = {
            "lists": [None if rows is None else [_placed(shelf, row) for row in rows] for rows in listed],
            **judgments.entry(name, shelf, [rows or [] for rows in listed]),
            **_failed(subject, name),
        }
        if room is not None:
            used += len(embedded_json([entry, shelf.rows[shown:]]).encode()) + 12
            if used > room and made:
                shelf.rows = shelf.rows[:shown]
                break
            shown = len(shelf.rows)
        made[str(numbers[query])] = entry
    kept = embedded_json({"documents": shelf.rows, "queries": made})
    return Lists(tuple(map(int, made)), kept, sum(len(row) > 3 for row in shelf.rows))


def _listed(comparison: Comparison, order: Sequence[int]) -> Iterator[tuple[int, str, list[Top | None]]]:
    """The queries with the top of every run's list, read some at a time: few of many may be wanted."""
    assert comparison.source is not None
    rules = next(iter(comparison.coverage.values())).policies
    start, size = 0, FIRST_READ
    while start < len(order):
        some = order[start : start + size]
        names = [comparison.boards[0].queries[query] for query in some]
        tops = [_tops(comparison.source.run(run), rules.ordering, names) for run in comparison.runs]
        for query, name in zip(some, names, strict=True):
            yield query, name, [top.get(name) for top in tops]
        start, size = start + size, size * 4


def _failed(subject: Subject, query: str) -> dict[str, dict[str, str]]:
    """The errors of the runs that failed on a query."""
    runs = subject.comparison.runs
    found = {
        str(runs.index(run)): errors[query]
        for run, errors in subject.errors.items()
        if query in errors and run in runs
    }
    return {"errors": found} if found else {}


def _placed(shelf: Shelf, row: tuple[str, float | None]) -> list[Any]:
    doc, score = row
    return [shelf.place(doc)] if score is None else [shelf.place(doc), float(f"{score:.5g}")]


def _tops(run: Run, ordering: Ordering, queries: Sequence[str]) -> dict[str, Top]:
    """The first documents of some queries, best first."""
    import polars as pl

    rows = ranked_rows(run, ordering).filter(
        (pl.col("rank") <= DEPTH) & pl.col("query_id").is_in(list(queries))
    )
    found: dict[str, Top] = {}
    for query, doc, score in rows.select("query_id", "doc_id", "score").iter_rows():
        found.setdefault(query, []).append((doc, score))
    return found


@dataclass(frozen=True)
class _Judgments:
    """The judgments of a query with the ranks of each judged document in every run.

    A rank is 0 where the document did not come back, and None where the run could not have returned it:
    it is a chunk of another chunking.
    """

    place: dict[str, int]
    starts: list[int]
    doc_ids: Sequence[str]
    grades: list[float]
    targets: dict[int, list[str]]
    ranks: list[list[int | None]]

    @classmethod
    def of(cls, qrels: Any, looks: Sequence[Look]) -> _Judgments:
        judged = qrels.judged
        named: dict[int, list[str]] = {}
        if qrels.has_targets:
            pairs = zip(qrels.targets.doc.tolist(), qrels.targets.target.tolist(), strict=True)
            for doc, target in pairs:
                named.setdefault(doc, []).append(qrels.targets.name[target])
        ranks = [_ranks(qrels, each.alignment) for each in looks]
        return cls(
            place={query: number for number, query in enumerate(judged.query_ids)},
            starts=judged.starts.tolist(),
            doc_ids=judged.doc_ids,
            grades=qrels.grades.tolist(),
            targets=named,
            ranks=ranks,
        )

    def entry(self, query: str, shelf: Shelf, listed: Iterable[Iterable[tuple[str, Any]]]) -> dict[str, Any]:
        """What is judged: documents that a list shows, and the relevant ones that none shows."""
        shown = {doc for rows in listed for doc, _ in rows}
        rows: list[list[Any]] = []
        hidden = relevant = absent = 0
        for number in self._numbers(query):
            doc, grade = self.doc_ids[number], self.grades[number]
            relevant += grade > 0
            if doc not in shown and grade <= 0:
                continue
            if doc not in shown:
                absent += 1
                if absent > MISSING_SHOWN:
                    hidden += 1
                    continue
            rows.append(
                [
                    shelf.place(doc),
                    int(grade) if grade == int(grade) else grade,
                    self.targets.get(number, []),
                    [rank[number] for rank in self.ranks],
                ]
            )
        return {"judged": rows, "relevant": int(relevant), "hidden": hidden}

    def _numbers(self, query: str) -> Iterator[int]:
        number = self.place[query]
        yield from range(self.starts[number], self.starts[number + 1])


def _ranks(qrels: Any, a: Alignment) -> list[int | None]:
    """The rank of every judged document in a run; the run may be joined with a part of the judgments."""
    own = np.zeros(len(a.judged.query), dtype=np.int64)
    own[a.doc] = a.rank
    if len(own) == len(qrels.judged.doc_ids):
        return list(own.tolist())
    names = [a.queries[query] for query in a.judged.query.tolist()]
    known = dict(zip(zip(names, a.doc_ids, strict=True), own.tolist(), strict=True))
    asked = [qrels.judged.query_ids[query] for query in qrels.doc_query.tolist()]
    return [known.get(pair) for pair in zip(asked, qrels.judged.doc_ids, strict=True)]
