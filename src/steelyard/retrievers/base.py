"""The retriever protocol, checks of the corpus, the queries and the settings, and the selection of the top k."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from steelyard.checks import unknown_name, whole_number
from steelyard.errors import InputError, SteelyardError
from steelyard.ids import kind_of, text_ids

if TYPE_CHECKING:
    from typing_extensions import Self as Self
else:
    Self = Any  # `typing` has it from Python 3.11 on


Ranked: TypeAlias = list[tuple[str, float]]
Index = TypeVar("Index")


def unused_name(name: str, used: Container[str], between: str = " ") -> str:
    """A name, with a number after it if it is used already.

    >>> unused_name("rerank", {"rerank"})
    'rerank 2'
    """
    number, candidate = 1, name
    while candidate in used:
        number += 1
        candidate = f"{name}{between}{number}"
    return candidate


class Staged(list[tuple[str, float]]):
    """A list that knows the lists of the stages before it; a retriever may return it in place of a plain list.

    stage: the name of this list's stage. inputs: what that stage read, with names; several are lists that were made in
    parallel. If one of them is staged itself, its stages come before it. `lists` has the ids of every earlier stage in
    the order of the pipeline, and `reads` what each stage read, this one last. `calls` has the ids of every call of a
    stage that was called several times.

    >>> found = Staged([("d2", 1.0)], "rerank", [("retrieve", [("d1", 3.0), ("d2", 2.0)])])
    >>> found, found.lists, found.reads
    ([('d2', 1.0)], {'retrieve': ['d1', 'd2']}, {'retrieve': [], 'rerank': ['retrieve']})
    """

    def __init__(self, found: Ranked, stage: str, inputs: Sequence[tuple[str, Ranked]]) -> None:
        super().__init__(found)
        self.lists: dict[str, list[str]] = {}
        self.reads: dict[str, list[str]] = {}
        self.calls: dict[str, list[list[str]]] = {}
        read = []
        for name, given in inputs:
            last, needs = name, list[str]()
            if isinstance(given, Staged):
                *before, last = given.reads
                last = last if len(inputs) == 1 else name
                names = {old: unused_name(old if len(inputs) == 1 else f"{name}/{old}", self.reads) for old in before}
                self.lists |= {names[old]: given.lists[old] for old in before}
                self.reads |= {names[old]: [names[other] for other in given.reads[old]] for old in before}
                needs = [names[other] for other in next(reversed(given.reads.values()))]
            read.append(unused_name(last, self.reads))
            self.lists[read[-1]] = [doc for doc, _ in given]
            self.reads[read[-1]] = needs
            if isinstance(given, Staged):
                self.calls |= {names.get(old, read[-1]): calls for old, calls in given.calls.items()}
        self.reads[unused_name(stage, self.reads)] = read

    @classmethod
    def of(
        cls,
        lists: Mapping[str, Ranked],
        reads: Mapping[str, Sequence[str]],
        calls: Mapping[str, Sequence[Ranked]] | None = None,
    ) -> Staged:
        """The last of the lists of all stages; `reads` has what each of them read, `calls` the lists of its calls."""
        *before, last = lists
        staged = cls(lists[last], last, [])
        staged.lists = {name: [doc for doc, _ in lists[name]] for name in before}
        staged.reads = {name: list(reads[name]) for name in lists}
        staged.calls = {name: [[doc for doc, _ in pairs] for pairs in given] for name, given in (calls or {}).items()}
        return staged

    def ending_in(self, found: Ranked) -> Staged:
        """Other pairs with the same stages before them."""
        other = copy(self)
        other[:] = found
        return other


class RetrieverError(SteelyardError):
    """An unknown retriever, a wrong setting, a missing index, or a missing package."""


@runtime_checkable
class Retriever(Protocol):
    """The interface of a retriever. A class needs these names and no base class.

    A corpus is a mapping of document id to text. It may also have `links`, a mapping of document id to the ids
    that it links to, and `titles`.
    """

    @property
    def label(self) -> str:
        """Its name in tables, such as `bm25-okapi`."""

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus and return the retriever. A second call replaces the first index."""

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, at most k (document id, score) pairs, best first."""

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on, in JSON types: equal settings give equal results."""

    def size_in_bytes(self) -> int:
        """The memory used by its index."""


def needs_corpus(retriever: Retriever) -> bool:
    """Whether a retriever indexes a corpus; one that searches an index of its own has `needs_corpus` False."""
    return bool(getattr(retriever, "needs_corpus", True))


@dataclass(frozen=True)
class CheckedCorpus:
    """A checked corpus: distinct ids, and one text per id."""

    ids: list[str]
    texts: list[str]

    def __len__(self) -> int:
        return len(self.ids)


def checked_corpus(corpus: Mapping[str, str], label: str) -> CheckedCorpus:
    """The corpus as ids and texts. Empty texts are allowed; an empty corpus is an error.

    >>> checked_corpus({"d1": "one text", 2: "another"}, "bm25-okapi")
    CheckedCorpus(ids=['d1', '2'], texts=['one text', 'another'])
    """
    if not isinstance(corpus, Mapping):
        raise InputError(f"{label}: the corpus is {kind_of(corpus)}; expected a mapping of document id to text.")
    if not corpus:
        raise InputError(f"{label}: the corpus is empty; give index() at least one document.")
    ids = text_ids(corpus.keys(), "document id", f"{label}: the corpus", unique=True)
    texts = list(corpus.values())
    if not set(map(type, texts)) <= {str}:
        for doc, text in zip(ids, texts, strict=True):
            if not isinstance(text, str):
                raise InputError(
                    f"{label}: the text of document {doc!r} is {kind_of(text)}; expected text "
                    '(an empty document is the empty text "").'
                )
    return CheckedCorpus(ids, texts)


def checked_queries(queries: Sequence[str], k: int, label: str) -> list[str]:
    """The queries as a list, after a check of each and of k."""
    if isinstance(queries, str):
        raise InputError(f"{label}: retrieve() takes a list of queries; write retrieve([{queries[:40]!r}], k={k}).")
    whole_number(f"{label}: k", k, 1, unit="documents")
    listed = list(queries)
    for position, query in enumerate(listed, 1):
        if not isinstance(query, str):
            raise InputError(f"{label}: query {position} is {kind_of(query)}; expected text.")
    return listed


def checked_index(index: Index | None, label: str) -> Index:
    """The index of a retriever; an error if nothing was indexed."""
    if index is None:
        raise RetrieverError(f"{label}: nothing is indexed; call index(corpus) before retrieve().")
    return index


def unknown(label: str, what: str, value: Any, known: Iterable[str]) -> RetrieverError:
    """The error for a name that is not one of the known ones.

    >>> print(unknown("graph-flow", "graph", "link", ["auto", "links"]))
    graph-flow: unknown graph 'link'; expected one of auto, links. Did you mean links?
    """
    return RetrieverError(f"{label}: {unknown_name(what, value, known)}")


Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Integers: TypeAlias = npt.NDArray[np.signedinteger[Any]]

_BLOCK = 64


def top_k(scores: Floats, k: int) -> Integers:
    """The positions of the k highest scores, best first, equal scores in order; all if there are fewer than k.

    >>> top_k(np.array([1.0, 3.0, 2.0, 3.0]), 3).tolist()
    [1, 3, 2]
    """
    if k >= len(scores):
        return np.argsort(-scores, kind="stable")
    # A lower bound on the k-th best score: the k-th best of the maxima of blocks, which is faster to find.
    blocks = len(scores) - len(scores) % _BLOCK
    highest = scores if 4 * k * _BLOCK >= blocks else scores[:blocks].reshape(-1, _BLOCK).max(axis=1)
    bound = float(np.partition(highest, len(highest) - k)[len(highest) - k])
    positions = np.flatnonzero(scores > bound)
    if len(positions) < k:
        positions = np.concatenate([positions, np.flatnonzero(scores == bound)[: k - len(positions)]])
    return positions[np.argsort(-scores[positions], kind="stable")[:k]]


def ranked(ids: Sequence[str], positions: Integers, scores: Floats) -> Ranked:
    """Positions and their scores as (document id, score) pairs."""
    return [(ids[position], score) for position, score in zip(positions.tolist(), scores.tolist(), strict=True)]


def best(ids: list[str], scores: Floats, k: int) -> Ranked:
    """The k documents with the highest scores, best first.

    >>> best(["d1", "d2", "d3"], np.array([0.5, 2.0, 1.0]), 2)
    [('d2', 2.0), ('d3', 1.0)]
    """
    positions = top_k(scores, k)
    return ranked(ids, positions, scores[positions])
