"""Adjudication: which document to judge next, given the judgments so far.

Runs take turns to give the next document of a query. A run whose documents were found relevant gets more
turns. Two rules decide whose turn it is:

- `mtf`, move-to-front (Cormack, Palmer and Clarke, Efficient construction of large test collections,
  SIGIR 1998): stay with a run until it gives a document that is not relevant, then lower its priority by one.
- `bandit`, Max-Mean (Losada, Parapar and Barreiro, Feeling lucky? Multi-armed bandits for ordering judgements
  in pooling-based evaluation, SAC 2016): the run with the highest posterior mean (r + 1) / (n + 2), where r of
  its n judged documents are relevant. A judgment counts for every run that returned the document.

Both papers leave open which of several equal runs comes first, and at the start all are equal. Here it is
the run whose next document is returned by the most runs at the best ranks (reciprocal rank fusion, k=60).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

FUSION_K = 60.0
"""Constant of the reciprocal rank fusion that decides between equal runs."""


class Adjudication(ABC):
    """The state of one query: what was judged, and how each run fared.

    >>> state = MoveToFront([["a", "b"], ["c", "b"]])
    >>> state.next()
    'a'
    >>> state.judge("a", relevant=False)
    >>> state.next()
    'c'
    """

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self._lists = [list(dict.fromkeys(listed)) for listed in lists]
        self._place = [0] * len(self._lists)
        self._taken: set[str] = set()
        self._by: dict[str, int] = {}
        self._returned: dict[str, list[int]] = {}
        self._fused: dict[str, float] = {}
        for run, listed in enumerate(self._lists):
            for rank, doc in enumerate(listed, start=1):
                self._returned.setdefault(doc, []).append(run)
                self._fused[doc] = self._fused.get(doc, 0.0) + 1.0 / (FUSION_K + rank)

    def next(self) -> str | None:
        """The next document, which is not offered again; None when every list is exhausted."""
        heads = {run: doc for run in range(len(self._lists)) if (doc := self._head(run)) is not None}
        if not heads:
            return None
        best = max(self.preference(run) for run in heads)
        equal = [run for run in heads if self.preference(run) == best]
        run = max(equal, key=lambda run: (self._fused[heads[run]], -run))
        self._taken.add(heads[run])
        self._by[heads[run]] = run
        return heads[run]

    def judge(self, doc: str, relevant: bool) -> None:
        """Record the judgment of a document that `next` gave."""
        self.record(self._by[doc], self._returned[doc], relevant)

    @abstractmethod
    def preference(self, run: int) -> tuple[float, ...]:
        """How soon it is the run's turn: the largest first."""

    @abstractmethod
    def record(self, giver: int, returned: Sequence[int], relevant: bool) -> None:
        """Take note of a judgment: which run gave the document, and which runs returned it."""

    def _head(self, run: int) -> str | None:
        """The run's first document that was not offered yet."""
        listed = self._lists[run]
        while self._place[run] < len(listed) and listed[self._place[run]] in self._taken:
            self._place[run] += 1
        return listed[self._place[run]] if self._place[run] < len(listed) else None


class MoveToFront(Adjudication):
    """The run with the highest priority; of equal ones, the run that gave the last relevant document."""

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        super().__init__(lists)
        self._priority = [0] * len(lists)
        self._current: int | None = None

    def preference(self, run: int) -> tuple[float, ...]:
        """Priority, then whether it is the current run."""
        return self._priority[run], float(run == self._current)

    def record(self, giver: int, returned: Sequence[int], relevant: bool) -> None:
        """Stay with the run, or lower its priority."""
        self._current = giver if relevant else None
        self._priority[giver] -= not relevant


class MaxMean(Adjudication):
    """The run with the highest posterior mean of relevance."""

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        super().__init__(lists)
        self._relevant = [0] * len(lists)
        self._judged = [0] * len(lists)

    def preference(self, run: int) -> tuple[float, ...]:
        """Mean of the Beta(1, 1) prior updated with the run's judged documents."""
        return ((self._relevant[run] + 1) / (self._judged[run] + 2),)

    def record(self, giver: int, returned: Sequence[int], relevant: bool) -> None:
        """Count the judgment for every run that returned the document."""
        for run in returned:
            self._judged[run] += 1
            self._relevant[run] += relevant


RULES: dict[str, type[Adjudication]] = {"mtf": MoveToFront, "bandit": MaxMean}
"""The rules by the name of their strategy."""


def unjudged_order(lists: Sequence[Sequence[str]], judged: Mapping[str, bool], rule: str) -> Iterator[str]:
    """One query's unjudged documents, most promising first.

    The rule is replayed from the start. A document that is judged is recorded when its turn comes; one that
    is not is given out and changes nothing. So a caller who judges one document at a time and asks again gets
    the order of the papers, and a caller who judges in batches gets it for the judgments so far.

    >>> list(unjudged_order([["a", "b"], ["c", "d"]], {"a": False}, "mtf"))
    ['c', 'd', 'b']
    """
    state = RULES[rule](lists)
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
