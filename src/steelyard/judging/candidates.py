"""Candidates: the first documents of several runs, query by query, and the orders that depend on ranks alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError
from steelyard.evaluation import evaluate
from steelyard.measures.grammar import parse
from steelyard.notes import shown_otherwise
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.safe_text import utf8

Pairs = list[tuple[str, str]]
"""(query id, document id), most useful first."""
Judged = Mapping[str, Mapping[str, float]]
"""Grade by query id and document id."""


@dataclass(frozen=True)
class Candidates:
    """The first `depth` documents of every run.

    names: of the runs.
    lists: for every query, in the order of the runs, one list per run; empty where the run lacks the query.
    """

    names: tuple[str, ...]
    lists: Mapping[str, Sequence[Sequence[str]]]

    def ranks(self, query: str) -> dict[str, dict[int, int]]:
        """For every document of the query: its rank, by the number of the run that returned it."""
        found: dict[str, dict[int, int]] = {}
        for run, listed in enumerate(self.lists[query]):
            for rank, doc in enumerate(listed, start=1):
                found.setdefault(doc, {}).setdefault(run, rank)
        return found

    def only_queries(self, queries: Sequence[str]) -> Candidates:
        """The same for some of the queries."""
        kept = set(queries)
        return Candidates(self.names, {query: lists for query, lists in self.lists.items() if query in kept})

    def only_runs(self, names: Sequence[str], depth: int) -> Candidates:
        """The same for some of the runs, cut at `depth`."""
        places = [self.names.index(name) for name in names]
        lists = {query: [lists[place][:depth] for place in places] for query, lists in self.lists.items()}
        return Candidates(tuple(names), lists)


def named_runs(runs: Any) -> dict[str, Run]:
    """The runs by name, from a mapping or a list; runs of a list that share a name are numbered.

    >>> list(named_runs([{"q1": ["a"]}, {"q1": ["b"]}]))
    ['run-1', 'run-2']
    """
    if isinstance(runs, Mapping):
        texts = {utf8(str(name)).decode(): run for name, run in runs.items()}
        return {name: Run.of(run, name=name) for name, run in texts.items()}
    if not isinstance(runs, Sequence) or isinstance(runs, (str, bytes)):
        raise InputError(
            f"Expected runs as a mapping of name to run or as a list, got {type(runs).__name__}. "
            'Write pool({"bm25": run}).'
        )
    read = [Run.of(run) for run in runs]
    names = [utf8(run.name).decode() for run in read]
    return {
        name if names.count(name) == 1 else f"{name}-{names[: i + 1].count(name)}": run
        for i, (name, run) in enumerate(zip(names, read, strict=True))
    }


def candidates_of(runs: Mapping[str, Run], depth: int) -> Candidates:
    """The first `depth` documents of every run and query."""
    lists: dict[str, list[Sequence[str]]] = {}
    for place, run in enumerate(runs.values()):
        frame = run.frame
        top = frame.filter(frame["rank"] <= depth).sort("query_id", "rank", maintain_order=True)
        for query in run.queries:
            lists.setdefault(query, [()] * len(runs))
        for (query,), rows in top.group_by(["query_id"], maintain_order=True):
            lists[str(query)][place] = rows["doc_id"].to_list()
    return Candidates(tuple(runs), lists)


def judged_grades(qrels: Any) -> dict[str, dict[str, float]]:
    """The grades of the qrels by query and document; a document with several targets has its highest grade."""
    grades: dict[str, dict[str, float]] = {}
    if qrels is None:
        return grades
    # A query without judgments is a row without a document.
    frame = Qrels.of(qrels).frame.drop_nulls("doc_id")
    for query, doc, grade in frame.select("query_id", "doc_id", "grade").iter_rows():
        of_query = grades.setdefault(query, {})
        of_query[doc] = max(grade, of_query.get(doc, grade))
    return grades


def lowest_relevant(qrels: Qrels | None, rel: float | None) -> float:
    """`rel` if it is given; otherwise the lowest relevant grade of the qrels' scale, or 1."""
    scale = None if qrels is None else qrels.relevant_from
    return next((level for level in (rel, scale) if level is not None), 1)


def depth_order(candidates: Candidates, judged: Judged) -> Pairs:
    """Unjudged documents by best rank; of equal ones, those of more runs and of smaller mean rank first.

    After any number of judgments the judged documents are a pool of some depth, and all runs are judged to
    that depth.
    """
    keyed = []
    for number, query in enumerate(candidates.lists):
        known = judged.get(query, {})
        for doc, ranks in candidates.ranks(query).items():
            if doc not in known:
                best, count = min(ranks.values()), len(ranks)
                keyed.append((best, -count, sum(ranks.values()) / count, number, doc, query))
    return [(query, doc) for *_, doc, query in sorted(keyed)]


def pair_order(candidates: Candidates, judged: Judged, weights: npt.NDArray[np.float64]) -> Pairs:
    """Unjudged documents of two runs, those first that can change the difference of the runs most.

    A document can change it by w = |weight of its rank in a - weight of its rank in b| times its gain.
    Judging the documents of one run only would favour that run, so the documents of a query are divided into
    those that favour a and those that favour b, each sorted by w. The first round takes the first document of both
    sides of every query, the next round the second, and so on. In a round the query comes first whose
    difference is least certain: the one with the largest sum of w over the documents that this round and the
    next ones judge. Documents with w = 0 come last: they count in the ideal list only.
    """
    keyed = []
    for number, query in enumerate(candidates.lists):
        known = judged.get(query, {})
        changes = {doc: _change(ranks, weights) for doc, ranks in candidates.ranks(query).items()}
        for side, place, doc, open_ in _rounds(changes, known):
            keyed.append((side == 0.0, place, -open_, number, -side, doc, query))
    return [(query, doc) for *_, doc, query in sorted(keyed)]


def _rounds(changes: Mapping[str, float], known: Mapping[str, float]) -> Iterator[tuple[float, int, str, float]]:
    """Every unjudged document: its side, its round, its id and how much is open from that round on."""
    sides = {side: [doc for doc in changes if np.sign(changes[doc]) == side] for side in (1.0, -1.0, 0.0)}
    ordered = {side: sorted(docs, key=lambda doc: (-abs(changes[doc]), doc)) for side, docs in sides.items()}
    open_ = [0.0] * (max(map(len, ordered.values())) + 1)
    for place in reversed(range(len(open_) - 1)):
        round_ = [docs[place] for docs in ordered.values() if place < len(docs)]
        open_[place] = open_[place + 1] + sum(abs(changes[doc]) for doc in round_ if doc not in known)
    for side, docs in ordered.items():
        for place, doc in enumerate(docs):
            if doc not in known:
                yield side, place, doc, round(open_[place], 9)


def _change(ranks: Mapping[int, int], weights: npt.NDArray[np.float64]) -> float:
    """Weight of the document's rank in the first run minus that in the second."""
    first, second = (weights[ranks[run] - 1] if run in ranks else 0.0 for run in (0, 1))
    return float(first - second)


def rank_weights(measure: str, depth: int | None) -> npt.NDArray[np.float64]:
    """What a relevant document adds to the measure at every rank, up to a factor that all ranks share.

    nDCG and DCG have their discount, RBP p**(rank - 1), measures of a set (P, R, F, Hit) 1; others, such as AP, RR and
    ERR, are taken as 1/rank. The last rank is the smaller of the cutoff and `depth`; 10 where there is neither.

    >>> rank_weights("nDCG@3", None).round(3).tolist(), rank_weights("P@5", 2).tolist()
    ([1.0, 0.631, 0.5], [1.0, 1.0])
    """
    parsed = parse(measure)
    cutoff = parsed.cutoff if isinstance(parsed.cutoff, int) else None
    last = min((limit for limit in (cutoff, depth) if limit is not None), default=10)
    rank = np.arange(1, last + 1, dtype=np.float64)
    if parsed.name in ("nDCG", "DCG") and parsed.parameters.get("discount") != "reciprocal":
        discounts: npt.NDArray[np.float64] = 1.0 / np.log2(rank + 1.0)
        return discounts
    if parsed.name == "RBP":
        persistence: npt.NDArray[np.float64] = float(parsed.parameters["p"]) ** (rank - 1.0)
        return persistence
    return np.ones(last) if parsed.name in ("P", "R", "F", "Hit") else 1.0 / rank


def chosen_pair(runs: Mapping[str, Run], qrels: Any, measure: str, pair: Sequence[str] | None) -> tuple[str, str]:
    """The two runs to compare: those named, the only two, or the best two by the qrels."""
    if pair is not None:
        if len(set(pair)) != 2 or not set(pair) <= set(runs):
            raise InputError(f"pair must name two of the runs {', '.join(runs)}; got {', '.join(pair)}.")
        return pair[0], pair[1]
    names = list(runs)
    if len(names) < 2:
        raise InputError("Strategy 'pair' compares two runs; got one. Add a run, or use strategy='depth'.")
    if len(names) == 2:
        return names[0], names[1]
    if qrels is None:
        raise InputError(
            f"Strategy 'pair' compares two runs; got {len(names)} and no qrels to find the best two. "
            f'Write pair=("{names[0]}", "{names[1]}").'
        )
    with shown_otherwise():
        means = {name: evaluate(qrels, run, [measure]).means[measure] for name, run in runs.items()}
    first, second = sorted(names, key=lambda name: -means[name])[:2]
    return first, second
