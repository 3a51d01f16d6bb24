"""Candidates: the first documents of several runs, query by query, and the orders in which they are judged.

`depth_order` and `pair_order` depend on ranks alone; `draw_documents` draws with known probabilities. Adjudication
decides which document to judge next, given the judgments so far: runs take turns to give the next document of a query,
and a run whose documents were found relevant gets more turns. Two rules decide whose turn it is:

- `mtf`, move-to-front (Cormack, Palmer and Clarke, Efficient construction of large test collections,
  SIGIR 1998): stay with a run until it gives a document that is not relevant, then lower its priority by one.
- `bandit`, Max-Mean (Losada, Parapar and Barreiro, Feeling lucky? Multi-armed bandits for ordering judgements
  in pooling-based evaluation, SAC 2016): the run with the highest posterior mean (r + 1) / (n + 2), where r of
  its n judged documents are relevant. A judgment counts for every run that returned the document.

Both papers leave open which of several equal runs comes first, and at the start all are equal. Here it is
the run whose next document is returned by the most runs at the best ranks (reciprocal rank fusion, k=60).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
SMALLEST_DRAW = 4  # Documents drawn from every stratum at least, so that the jackknife can estimate bias and variance.
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
        problem = f"Expected runs as a mapping of name to run or as a list, got {type(runs).__name__}."
        raise InputError(problem + ' Write pool({"bm25": run}).')
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

    A document can change it by w = |weight of its rank in a - weight of its rank in b| times its gain. Judging the
    documents of one run only would favour that run, so each round takes from every query the next document by w of
    those that favour a and of those that favour b. In a round the query comes first whose difference is least certain,
    with the largest sum of w over what is left. Documents with w = 0 come last: they count in the ideal list only.
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
    if parsed.name in ("nDCG", "DCG") and parsed.parameters.get("discount") != "reciprocal":
        return np.asarray(1.0 / np.log2(rank + 1.0))
    if parsed.name == "RBP":
        return np.asarray(float(parsed.parameters["p"]) ** (rank - 1.0))
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


RULES = ("mtf", "bandit")  # The strategies that are rules of adjudication.


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

    The rule is replayed from the start: a judged document is recorded when its turn comes, another one is given out and
    changes nothing. So a caller who judges one document at a time and asks again gets the order of the papers; one who
    judges in batches gets it for the judgments so far.

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


@dataclass(frozen=True)
class Design:
    """A stratified sample of the documents of every query.

    strata: for every query its strata, each a list of document ids; the first holds those judged already.
    drawn: for every query the number of documents drawn from each stratum.
    """

    strata: Mapping[str, Sequence[Sequence[str]]]
    drawn: Mapping[str, Sequence[int]]

    def of(self, query: str, doc: str) -> tuple[float, int]:
        """The probability that the document was drawn, and its stratum."""
        stratum = self._stratum[query][doc]
        return self.drawn[query][stratum] / len(self.strata[query][stratum]), stratum

    @cached_property
    def _stratum(self) -> dict[str, dict[str, int]]:
        return {
            query: {doc: number for number, docs in enumerate(strata) for doc in docs}
            for query, strata in self.strata.items()
        }


def draw_queries(queries: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """`count` of the queries, drawn at random without replacement, in the order given.

    The draw depends on the query ids and the seed, not on the order of the queries. A larger draw with the same seed
    contains the smaller one, so that a sample can be extended.
    """
    if count > len(queries):
        raise InputError(f"queries={count}, but the runs have {len(queries)} queries; give at most that.")
    ordered = sorted(queries)
    chosen = {ordered[place] for place in np.random.default_rng([seed, 1]).permutation(len(queries))[:count]}
    return tuple(query for query in queries if query in chosen)


def draw_documents(
    found: Candidates, judged: Judged, depth: int, budget: int | None, seed: int
) -> tuple[Design, Pairs]:
    """A stratified sample of `budget` unjudged documents (all by default), and its documents in random order.

    The documents of a query are in two strata by their best rank: the first quarter of the depth, and the rest, drawn
    at half the rate, since documents at good ranks matter most. With more strata the errors could not be estimated
    well. Documents that are judged already are a stratum of their own (number 0), drawn with probability 1.
    """
    bounds = sorted({math.ceil(depth / 4), depth})
    strata: dict[str, list[list[str]]] = {}
    for query in found.lists:
        # Documents judged already, then the others by best rank.
        strata[query] = [[] for _ in range(len(bounds) + 1)]
        for doc, ranks in sorted(found.ranks(query).items()):
            place = 0 if doc in judged.get(query, {}) else 1 + int(np.searchsorted(bounds, min(ranks.values())))
            strata[query][place].append(doc)
    sizes = np.array([[len(docs) for docs in of_query[1:]] for of_query in strata.values()], dtype=np.int64)
    counts = allocation(sizes.reshape(len(strata), len(bounds)), budget)
    rng = np.random.default_rng([seed, 2])
    order: Pairs = []
    drawn: dict[str, list[int]] = {}
    for (query, of_query), row in zip(strata.items(), counts.tolist(), strict=True):
        drawn[query] = [len(of_query[0]), *row]
        for docs, count in zip(of_query[1:], row, strict=True):
            order += [(query, docs[place]) for place in rng.choice(len(docs), count, replace=False)]
    return Design(strata, drawn), [order[place] for place in rng.permutation(len(order))]


def allocation(sizes: npt.NDArray[np.int64], budget: int | None) -> npt.NDArray[np.int64]:
    """How many documents to draw from each stratum (rows: queries) so that the sum is the budget.

    The rate halves from stratum to stratum, none is above 1, and at least `SMALLEST_DRAW` documents are from each.

    >>> allocation(np.array([[10, 20, 40]]), 30).tolist()
    [[10, 10, 10]]
    """
    if budget is None or budget >= sizes.sum():
        return sizes
    least = np.minimum(sizes, SMALLEST_DRAW)
    if budget < least.sum():
        raise InputError(
            f"A sample needs {SMALLEST_DRAW} documents of both strata of every query, {least.sum():,} in all; "
            f"budget={budget:,} is less. Raise the budget, or draw fewer queries with queries=N."
        )
    wanted = sizes * 0.5 ** np.arange(sizes.shape[1])
    low, high = 0.0, 2.0 ** sizes.shape[1]
    for _ in range(60):
        middle = (low + high) / 2.0
        over = np.clip(np.floor(middle * wanted), least, sizes).sum() > budget
        low, high = (low, middle) if over else (middle, high)
    counts = np.clip(np.floor(low * wanted), least, sizes).astype(np.int64)
    missing = np.where(counts < sizes, low * wanted - counts, -np.inf)
    largest = np.argsort(-missing, axis=None, kind="stable")[: budget - int(counts.sum())]
    counts.ravel()[largest] += 1
    return counts
