"""Candidates: the first documents of several runs, query by query, and the orders in which they are judged.

`depth_order` and `pair_order` depend on ranks alone. Adjudication decides which document to judge next, given the
judgments so far: runs take turns to give the next document of a query, and a run whose documents were found relevant
gets more turns. Two rules decide whose turn it is:

- `mtf`, move-to-front (Cormack, Palmer and Clarke, Efficient construction of large test collections,
  SIGIR 1998): stay with a run until it gives a document that is not relevant, then lower its priority by one.
- `bandit`, Max-Mean (Losada, Parapar and Barreiro, Feeling lucky? Multi-armed bandits for ordering judgements
  in pooling-based evaluation, SAC 2016): the run with the highest posterior mean (r + 1) / (n + 2), where r of
  its n judged documents are relevant. A judgment counts for every run that returned the document.

Both papers leave open which of several equal runs comes first, and at the start all are equal. Here it is
the run whose next document is returned by the most runs at the best ranks (reciprocal rank fusion, k=60).
"""

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

Pairs = list[tuple[str, str]]  # (query id, document id), most useful first.
Judged = Mapping[str, Mapping[str, float]]  # Grade by query id and document id.
FUSION_K = 60.0  # Constant of the reciprocal rank fusion that decides between equal runs.


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
        doc_ranks: dict[str, dict[int, int]] = {}
        for run, listed in enumerate(self.lists[query]):
            for rank, doc in enumerate(listed, start=1):
                doc_ranks.setdefault(doc, {}).setdefault(run, rank)
        return doc_ranks


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
        for query in run.queries:
            lists.setdefault(query, [()] * len(runs))
        top = run.frame.filter(run.frame["rank"] <= depth).sort("rank", maintain_order=True)
        for query, docs in top.group_by("query_id").agg("doc_id").iter_rows():
            lists[query][place] = docs
    return Candidates(tuple(runs), lists)


def judged_grades(qrels: Any) -> dict[str, dict[str, float]]:
    """The grades of the qrels by query and document; a document with several targets has its highest grade."""
    grades: dict[str, dict[str, float]] = {}
    # A query without judgments is a row without a document.
    rows = () if qrels is None else Qrels.of(qrels).frame.drop_nulls("doc_id").iter_rows()
    for query, doc, grade, _ in rows:
        of_query = grades.setdefault(query, {})
        of_query[doc] = max(grade, of_query.get(doc, grade))
    return grades


def lowest_relevant(qrels: Qrels | None, rel: float | None) -> float:
    """`rel` if it is given; otherwise the lowest relevant grade of the qrels' scale, or 1."""
    scale = None if qrels is None else qrels.relevant_from
    return next((level for level in (rel, scale) if level is not None), 1)


def depth_order(candidates: Candidates, judged: Judged) -> Pairs:
    """Unjudged documents by best rank; of equal ones, those of more runs and of smaller mean rank first.

    After any number of judgments the judged documents are a pool of some depth, and all runs are judged to that depth.
    """
    keyed = []
    for number, query in enumerate(candidates.lists):
        grades = judged.get(query, {})
        for doc, ranks in candidates.ranks(query).items():
            if doc not in grades:
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
        grades = judged.get(query, {})
        changes = {}
        for doc, ranks in candidates.ranks(query).items():
            first, second = (weights[ranks[run] - 1] if run in ranks else 0.0 for run in (0, 1))
            changes[doc] = float(first - second)
        placed = []  # The side, the round and the id of every unjudged document.
        for side in (1.0, -1.0, 0.0):
            docs = [doc for doc in changes if np.sign(changes[doc]) == side]
            ordered = sorted(docs, key=lambda doc: (-abs(changes[doc]), doc))
            placed += [(side, place, doc) for place, doc in enumerate(ordered) if doc not in grades]
        open_ = np.zeros(len(changes))  # How much is open from each round on.
        for _, place, doc in placed:
            open_[: place + 1] += abs(changes[doc])
        keyed += [(side == 0.0, at, -round(open_[at], 9), number, -side, doc, query) for side, at, doc in placed]
    return [(query, doc) for *_, doc, query in sorted(keyed)]


def rank_weights(measure: str, depth: int | None) -> npt.NDArray[np.float64]:
    """What a relevant document adds to the measure at every rank, up to a factor that all ranks share.

    nDCG and DCG have their discount, RBP p**(rank - 1), measures of a set (P, R, F, Hit) 1; others, such as AP, RR and
    ERR, are taken as 1/rank. The last rank is the smaller of the cutoff and `depth`; 10 where there is neither.

    >>> rank_weights("nDCG@3", None).round(3).tolist(), rank_weights("P@5", 2).tolist()
    ([1.0, 0.631, 0.5], [1.0, 1.0])
    """
    parsed = parse(measure)
    last = min((limit for limit in (parsed.cutoff, depth) if isinstance(limit, int)), default=10)
    rank = np.arange(1, last + 1, dtype=np.float64)
    weights: npt.NDArray[np.float64] = np.ones(last) if parsed.name in ("P", "R", "F", "Hit") else 1.0 / rank
    if parsed.name in ("nDCG", "DCG") and parsed.parameters.get("discount") != "reciprocal":
        weights = 1.0 / np.log2(rank + 1.0)
    elif parsed.name == "RBP":
        weights = float(parsed.parameters["p"]) ** (rank - 1.0)
    return weights


def chosen_pair(runs: Mapping[str, Run], qrels: Any, measure: str, pair: Sequence[str] | None) -> tuple[str, str]:
    """The two runs to compare: those named, the only two, or the best two by the qrels."""
    if pair is not None:
        if len(set(pair)) != 2 or not set(pair) <= set(runs):
            raise InputError(f"pair must name two of the runs {', '.join(runs)}; got {', '.join(pair)}.")
        return pair[0], pair[1]
    names = list(runs)
    if len(names) < 2:
        raise InputError("Strategy 'pair' compares two runs; got one. Add a run, or use strategy='depth'.")
    if len(names) > 2:
        if qrels is None:
            raise InputError(
                f"Strategy 'pair' compares two runs; got {len(names)} and no qrels to find the best two. "
                f'Write pair=("{names[0]}", "{names[1]}").'
            )
        with shown_otherwise():
            means = {name: evaluate(qrels, run, [measure]).means[measure] for name, run in runs.items()}
        names.sort(key=lambda name: -means[name])
    return names[0], names[1]


RULES = ("mtf", "bandit")
"""The strategies that are rules of adjudication."""


class Adjudication:
    """The state of one query under a rule: what was judged, and how each run fared.

    >>> state = Adjudication([["a", "b"], ["c", "b"]], "mtf")
    >>> state.next()
    'a'
    >>> state.judge("a", relevant=False)
    >>> state.next()
    'c'
    """

    def __init__(self, lists: Sequence[Sequence[str]], rule: str) -> None:
        self._rule = rule
        self._left: list[list[str]] = []  # Of each run, the documents that are left, last first.
        self._by: dict[str, int] = {}  # The run that gave a document.
        self._returned: dict[str, list[int]] = {}
        self._fused: dict[str, float] = {}
        for run, listed in enumerate(map(dict.fromkeys, lists)):
            self._left.append([*reversed(listed)])
            for rank, doc in enumerate(listed, start=1):
                self._returned.setdefault(doc, []).append(run)
                self._fused[doc] = self._fused.get(doc, 0.0) + 1.0 / (FUSION_K + rank)
        self._current: int | None = None
        self._priority, self._relevant, self._judged = ([0] * len(lists) for _ in range(3))

    def next(self) -> str | None:
        """The next document, which is not offered again; None when every list is exhausted."""
        heads: dict[int, str] = {}
        for run, left in enumerate(self._left):
            while left and left[-1] in self._by:
                left.pop()
            if left:
                heads[run] = left[-1]
        if not heads:
            return None
        run = max(heads, key=lambda run: (self._preference(run), self._fused[heads[run]], -run))
        self._by[heads[run]] = run
        return heads[run]

    def _preference(self, run: int) -> tuple[float, ...]:
        """How soon it is the run's turn, the largest first: its priority, and whether it gave the last relevant
        document; or the mean of the Beta(1, 1) prior updated with its judged documents."""
        if self._rule == "mtf":
            return self._priority[run], float(run == self._current)
        return ((self._relevant[run] + 1) / (self._judged[run] + 2),)

    def judge(self, doc: str, relevant: bool) -> None:
        """Record the judgment of a document that `next` gave, for the run that gave it and all that returned it."""
        self._current = self._by[doc] if relevant else None
        self._priority[self._by[doc]] -= not relevant
        for run in self._returned[doc]:
            self._judged[run] += 1
            self._relevant[run] += relevant


def unjudged_order(lists: Sequence[Sequence[str]], judged: Mapping[str, bool], rule: str) -> Iterator[str]:
    """One query's unjudged documents, most promising first.

    The rule is replayed from the start. A document that is judged is recorded when its turn comes; one that
    is not is given out and changes nothing. So a caller who judges one document at a time and asks again gets
    the order of the papers, and a caller who judges in batches gets it for the judgments so far.

    >>> list(unjudged_order([["a", "b"], ["c", "d"]], {"a": False}, "mtf"))
    ['c', 'd', 'b']
    """
    state = Adjudication(lists, rule)
    while (doc := state.next()) is not None:
        if doc in judged:
            state.judge(doc, judged[doc])
        else:
            yield doc


def round_robin(orders: Mapping[str, Iterator[str]]) -> Iterator[tuple[str, str]]:
    """(query, document): one document of every query in turn until all are exhausted.

    >>> list(round_robin({"q1": iter("ab"), "q2": iter("c")}))
    [('q1', 'a'), ('q2', 'c'), ('q1', 'b')]
    """
    left = dict(orders)
    while left:
        for query in list(left):
            if (doc := next(left[query], None)) is None:
                del left[query]
            else:
                yield query, doc
