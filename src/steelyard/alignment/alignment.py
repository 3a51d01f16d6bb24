"""The Alignment: a run joined with its qrels. Every measure is a function of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.alignment.hits import Bools, Floats, Hits, Ints, JudgedDocs, Ordering, Remembers, Repeats
from steelyard.alignment.ranges import Ranges
from steelyard.alignment.ranking import first_of_group
from steelyard.alignment.scans import ScannedRun, scan_file, scan_frame, scan_mapping
from steelyard.errors import InputError
from steelyard.io.files import is_stream, read_head, run_name
from steelyard.io.trec import trec_scores
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.qrels import Targets as Targets
from steelyard.run import Run, ids_and_scores

FIRST_SCORES = 1000  # How many scores of a run are kept to see whether they look plausible.
_HEAD = 1 << 16
_MOST_WHOLE_GAIN = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Judged(Remembers):
    """The judgments of an alignment: one entry per judged document, query by query.

    `highest` is the highest grade of the whole qrels if these are a part of them; NaN if it is not known. The runs of
    one Qrels share this object.
    """

    query: Ints
    grade: Floats
    highest: float | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Alignment(Hits, Remembers):
    """The hits of a run, with the grade of each, and per query the judged grades.

    A hit is a judged document that was retrieved; no document is a hit twice. Only hits have ranks, so an alignment is
    small whatever the size of the run. `judged_only`: unjudged documents were removed from the lists.
    """

    queries: Sequence[str]
    grade: Floats
    judged: Judged
    targets: Targets
    doc_ids: Sequence[str] = ()
    judged_only: bool = False

    @property
    def size(self) -> int:
        """The number of queries."""
        return len(self.retrieved)

    def per_query(self, values: Any) -> Floats:
        """Sum a number (or a condition) over the hits of each query."""
        return sums(self.query, values, self.size)

    def judged_per_query(self, values: Any) -> Floats:
        """Sum a number (or a condition) over the judged documents of each query."""
        return sums(self.judged.query, values, self.size)

    def relevant(self, rel: float = 1) -> Floats:
        """R: the number of relevant documents of each query."""
        return self.judged.once(("relevant", rel, self.size), lambda: self.judged_per_query(self.judged.grade >= rel))

    @property
    def above_zero(self) -> Floats:
        """The number of documents graded above 0 of each query."""
        return self.judged.once(("above 0", self.size), lambda: self.judged_per_query(self.judged.grade > 0))

    def returned(self, k: int | None = None) -> Floats:
        """The number of retrieved documents of each query, at most k."""
        return (self.retrieved if k is None else np.minimum(self.retrieved, k)).astype(np.float64)

    def different(self, k: int | None = None) -> Floats:
        """The number of distinct documents in the first k: those retrieved, without repeats."""
        if not self.repeats.held or not len(self.repeats.rank):
            return self.returned(k)
        inside = self.repeats.query if k is None else self.repeats.query[self.repeats.rank <= k]
        return self.returned(k) - np.bincount(inside, minlength=self.size)

    def within(self, k: int | None = None, budget: int | None = None) -> Bools:
        """The hits in the first k, and within a budget of tokens."""
        inside: Bools = np.ones(len(self.rank), dtype=bool) if k is None else self.rank <= k
        if budget is not None:
            if self.tokens_through is None:
                raise MissingDataError("tokens kept" if self.judged_only else "tokens")
            inside = inside & (self.tokens_through <= budget)
        return inside

    def running(self, values: Any) -> Floats:
        """The running sum of a number (or a condition) over the hits of each query, down to and with each hit."""
        total: Floats = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
        above: Floats = total[1:] - total[self.hit_starts[self.query]]
        return above

    def first(self, chosen: Bools) -> Floats:
        """The rank of the first chosen hit of each query; infinite if there is none."""
        ranks = np.full(self.size, np.inf)
        hits = np.flatnonzero(chosen)[::-1]
        ranks[self.query[hits]] = self.rank[hits]  # of hits of one query the first is written last
        return ranks

    @cached_property
    def hit_starts(self) -> Ints:
        """The first hit of each query, and the number of hits at the end."""
        return starts_of(self.query, self.size)

    def best_first(self, gains: Floats, times: Ints | None = None) -> tuple[Ints, Ints, Floats]:
        """The ideal list of each query: judged documents, each `times` (or once), as `ranked_by` gives them."""
        query = self.judged.query
        if times is not None:
            query, gains = np.repeat(query, times), np.repeat(gains, times)
        return ranked_by(query, gains, self.size)

    def target_counts(self, rel: float = 1) -> Floats:
        """|T|: the number of targets of each query that some document satisfies."""
        counted = np.unique(self.targets.target[self.targets.grade >= rel])
        return np.bincount(self.targets.query[counted], minlength=self.size).astype(np.float64)

    @cached_property
    def hit_targets(self) -> tuple[Ints, Ints, Floats]:
        """Which hit satisfies which target, as (hit, target, grade), sorted by hit."""
        place = np.full(len(self.judged.query), -1, dtype=np.int64)
        place[self.doc] = np.arange(len(self.doc))
        hit = place[self.targets.doc]
        kept = np.flatnonzero(hit >= 0)
        kept = kept[np.argsort(hit[kept], kind="stable")]
        return hit[kept], self.targets.target[kept], self.targets.grade[kept]

    def by_target(self, rel: float = 1) -> tuple[Alignment, Ints]:
        """Each target as a query of its own, and the query it belongs to.

        The relevant documents of a target are those that satisfy it; its list is that of the query. A measure per
        target is the measure of this alignment, averaged over the targets of each query.
        """
        return self.once(("by target", rel), lambda: self._split_by_target(rel))

    def _split_by_target(self, rel: float) -> tuple[Alignment, Ints]:
        pairs = np.flatnonzero(self.targets.grade >= rel)
        kept = np.unique(self.targets.target[pairs])
        code = np.full(len(self.targets.query), -1, dtype=np.int64)
        code[kept] = np.arange(len(kept))
        owner = self.targets.query[kept]
        pair_order = pairs[np.argsort(code[self.targets.target[pairs]], kind="stable")]
        hit, target, grade = self.hit_targets
        chosen = np.flatnonzero(grade >= rel)
        chosen = chosen[np.lexsort((self.rank[hit[chosen]], code[target[chosen]]))]
        hits = hit[chosen]
        empty = np.zeros(0, dtype=np.int64)
        alone = replace(
            self,
            queries=[self.targets.name[t] for t in kept.tolist()],
            retrieved=self.retrieved[owner],
            answered=self.answered[owner],
            top_score=self.top_score[owner],
            query=code[target[chosen]],
            rank=self.rank[hits],
            grade=np.full(len(hits), float(rel)),
            doc=empty,
            tie_first=self.tie_first[hits],
            tie_size=self.tie_size[hits],
            judged=Judged(code[self.targets.target[pair_order]], np.full(len(pair_order), float(rel))),
            targets=Targets(empty, empty, np.zeros(0), empty, []),
            repeats=Repeats(empty, empty),
            doc_ids=(),
            near_repeats=None,
            tokens_through=None if self.tokens_through is None else self.tokens_through[hits],
            seconds=None,
            ranges=None,
        )
        return alone, owner

    def mean_over_targets(self, rel: float, value: Callable[[Alignment], Floats]) -> Floats:
        """The mean of a value over the targets of each query (see `by_target`); 0 for a query without targets."""
        alone, owner = self.by_target(rel)
        total = np.bincount(owner, weights=value(alone), minlength=self.size)
        return total / np.maximum(1, np.bincount(owner, minlength=self.size))

    @cached_property
    def judged_where_returned(self) -> Alignment:
        """The alignment with the judgments of retrieved documents only."""
        place = np.full(len(self.judged.query), -1, dtype=np.int64)
        place[self.doc] = np.arange(len(self.doc))
        targets = _moved(self.targets, np.flatnonzero(place[self.targets.doc] >= 0), place)
        ids = [self.doc_ids[doc] for doc in self.doc.tolist()]
        judged = Judged(self.query, self.grade, None if self.judged.highest is None else np.nan)
        return replace(self, doc=np.arange(len(self.doc)), judged=judged, targets=targets, doc_ids=ids)

    def without_zeros(self) -> Alignment:
        """The same with documents of grade 0 as if nobody had judged them, which most measures do not distinguish."""
        kept = self.judged.grade != 0
        kept[self.targets.doc[self.targets.grade != 0]] = True
        place, hits, pairs = np.cumsum(kept) - 1, kept[self.doc], kept[self.targets.doc]
        return replace(
            self._with_hits(hits),
            doc=place[self.doc[hits]],
            judged=replace(self.judged, query=self.judged.query[kept], grade=self.judged.grade[kept]),
            targets=_moved(self.targets, np.flatnonzero(pairs), place),
            doc_ids=list(compress(self.doc_ids, kept.tolist())),
        )

    def _with_hits(self, kept: Bools) -> Alignment:
        """The alignment with some of its hits; the ranks stay as they are."""
        names = ["query", "rank", "grade", "doc", "tie_first", "tie_size"]
        names += [] if self.tokens_through is None else ["tokens_through"]
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    def without_unjudged(self, negative: bool = False) -> Alignment:
        """Condensed lists: unjudged documents and repeats are removed, and the ranks below them move up.

        `negative`: documents with a grade below 0 are removed too. What is only known of whole lists (tokens,
        near-repeats, the best score) is not known of condensed ones; the measures that need it report that.
        """
        if negative:
            return self._with_hits(self.grade >= 0).without_unjudged()
        rank = np.arange(len(self.query)) - self.hit_starts[self.query] + 1
        first = first_of_group(self.query, self.tie_first)
        empty = np.zeros(0, dtype=np.int64)
        return replace(
            self,
            retrieved=np.diff(self.hit_starts),
            rank=rank,
            tie_first=rank[first],
            tie_size=np.bincount(first)[first],
            repeats=Repeats(empty, empty),
            tokens_through=None,
            ranges=None,
            judged_only=True,
        )

    def cut(self, depth: int | None) -> Alignment:
        """The alignment with every list cut at a depth."""
        if depth is None:
            return self
        near = self.near_repeats
        return replace(
            self._with_hits(self.rank <= depth),
            retrieved=np.minimum(self.retrieved, depth),
            repeats=_cut_repeats(self.repeats, depth),
            near_repeats=None if near is None else _cut_repeats(near, depth),
            ranges=None if self.ranges is None else self.ranges.cut(depth),
        )


class MissingDataError(Exception):
    """A measure needs data that the run does not have (tokens, seconds, texts) or that was not kept."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def join(qrels: Qrels, hits: Hits) -> Alignment:
    """The alignment of qrels with the ranks of their documents."""
    return Alignment(
        **vars(hits),
        queries=qrels.judged.query_ids,
        grade=qrels.grades[hits.doc],
        judged=qrels.once("judged", lambda: Judged(qrels.doc_query, qrels.grades)),
        targets=qrels.targets,
        doc_ids=qrels.judged.doc_ids,
    )


def sums(query: Ints, values: Any, size: int) -> Floats:
    """The sum of a number (or a condition) over the entries of each of `size` queries."""
    if isinstance(values, np.ndarray) and values.dtype == np.bool_:
        return np.bincount(query[values], minlength=size).astype(np.float64)
    return np.bincount(query, weights=values, minlength=size).astype(np.float64, copy=False)


def starts_of(query: Ints, size: int) -> Ints:
    """The first of the sorted entries of each of `size` queries, and the number of entries at the end."""
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(query, minlength=size), out=starts[1:])
    return starts


def ranked_by(query: Ints, gains: Floats, size: int) -> tuple[Ints, Ints, Floats]:
    """The entries of each of `size` queries by gain, best first, as (query, rank, gain)."""
    if not np.all((query[1:] > query[:-1]) | ((query[1:] == query[:-1]) & (gains[1:] <= gains[:-1]))):
        top = gains.max()
        if gains.min() >= 0 and top < _MOST_WHOLE_GAIN and np.all(gains == np.floor(gains)):
            # Numbers are sorted faster than an order is found, and counted faster if they are few.
            bits = int(top).bit_length()
            keys = (query << bits) + (top - gains).astype(np.int64)
            kinds = size << bits
            many = kinds > len(keys)
            keys = np.sort(keys) if many else np.repeat(np.arange(kinds), np.bincount(keys, minlength=kinds))
            query, gains = keys >> bits, top - (keys & ((1 << bits) - 1))
        else:
            order = np.lexsort((-gains, query))
            query, gains = query[order], gains[order]
    return query, np.arange(len(query)) - starts_of(query, size)[query] + 1, gains


def _moved(targets: Targets, pairs: Ints, place: Ints) -> Targets:
    """Some of the pairs of documents and targets, the documents at other places."""
    return replace(targets, doc=place[targets.doc[pairs]], target=targets.target[pairs], grade=targets.grade[pairs])


def _cut_repeats(repeats: Repeats, depth: int) -> Repeats:
    kept = repeats.rank <= depth
    return replace(repeats, query=repeats.query[kept], rank=repeats.rank[kept])


@dataclass(frozen=True, eq=False, repr=False)
class Aligned:
    """An alignment, and what else is known of the run.

    `first_scores`: the scores of its first documents, one list per query, in the order of the input. `ordered`: the
    run has an order of its own, whatever its scores. `again` joins the run with the qrels under another ordering.
    """

    alignment: Alignment
    name: str
    notes: tuple[Note, ...]
    again: Callable[[Ordering], Alignment]
    first_scores: tuple[tuple[float, ...], ...] = ()
    ordered: bool = False


def align(qrels: Qrels, run: Any, ordering: Ordering, name: str | None = None) -> Aligned:
    """Join a run (a Run, a mapping, a frame, a path, a ScannedRun) with qrels.

    Mappings, and clean TREC files if the kernel is available, are read in one pass without a copy. Everything else is
    read into a Run, which reports what is wrong with an input.
    """
    hits: Hits | None = None
    label, notes = name, qrels.notes
    first: tuple[tuple[float, ...], ...] = ()
    ordered = False
    if qrels.ranges is not None:
        pass  # Every retrieved chunk counts, judged or not: the run is read as a table.
    elif isinstance(run, (str, Path)):
        path = Path(run)
        hits = scan_file(path, qrels.judged, ordering) if path.is_file() and not is_stream(path) else None
        if hits is not None:
            first = _lists_of(trec_scores(read_head(path, _HEAD)))
            label = label or next(iter(hits.tags), run_name(path))
            if len(hits.tags) > 1:
                notes += (note("several-tags", count=len(hits.tags), tags=hits.tags[:3]),)
    elif isinstance(run, Mapping):
        hits = scan_mapping(run, qrels.judged, ordering)
        if hits is not None:
            first, ordered = _mapping_scores(run), not isinstance(next(iter(run.values()), None), Mapping)
    elif isinstance(run, ScannedRun):
        hits, ordered = run.hits(ordering), run.ordered
        label, notes = label or run.name, notes + run.notes
    if hits is None:
        table = Run.of(run, name=name)
        label, notes = table.name, notes + table.notes
        hits = _scan_run(table, qrels.judged, ordering, qrels.ranges)
        if hits.ranges is not None and hits.ranges.unknown:
            notes += (note("retrieved-chunks-unknown", count=hits.ranges.unknown),)
        ordered = table.ordered
        if table.mapping is not None:
            first = _mapping_scores(table.mapping)
        else:
            first = _lists_of(table.table.head(FIRST_SCORES).select("query_id", "score").iter_rows())

    def again(other: Ordering) -> Alignment:
        return align(qrels, run, other, name).alignment

    return Aligned(join(qrels, hits), label or "run", notes, again, first, ordered)


def _lists_of(rows: Iterable[tuple[str, float | None]]) -> tuple[tuple[float, ...], ...]:
    """The first scores by query, from rows of query and score."""
    lists: dict[str, list[float]] = {}
    for query, score in islice(rows, FIRST_SCORES):
        if score is not None:
            lists.setdefault(query, []).append(float(score))
    return tuple(map(tuple, lists.values()))


def _mapping_scores(run: Mapping[str, Any]) -> tuple[tuple[float, ...], ...]:
    """The first scores of a run in memory, by query, up to the first list without scores."""
    lists: list[tuple[float, ...]] = []
    left = FIRST_SCORES
    for listed in run.values():
        scores = listed.values() if isinstance(listed, dict) else ids_and_scores(listed)[1]
        if left <= 0 or next(iter(scores), 0.0) is None:
            break
        lists.append(tuple(map(float, islice(scores, left))))
        left -= len(lists[-1])
    return tuple(filter(None, lists))


def _scan_run(run: Run, judged: JudgedDocs, ordering: Ordering, ranges: Ranges | None) -> Hits:
    hits = None
    if run.mapping is not None and run.tokens is None and run.texts is None and ranges is None:
        hits = scan_mapping(run.mapping, judged, ordering)
    if hits is None:
        hits = scan_frame(run, judged, ordering, ranges)
    if run.seconds is None:
        return hits
    seconds = np.array([run.seconds.get(query, np.nan) for query in judged.query_ids], dtype=np.float64)
    if np.any(seconds < 0):
        raise InputError(f"run {run.name!r}: a query has negative seconds; check `seconds`.")
    return replace(hits, seconds=seconds)
