"""What a retriever is, and the checks that every one of them makes of its corpus and its questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from steelyard.checks import is_whole
from steelyard.errors import InputError, SteelyardError, did_you_mean
from steelyard.ids import kind_of, text_ids

if TYPE_CHECKING:
    from typing_extensions import Self


Ranked: TypeAlias = list[tuple[str, float]]
Index = TypeVar("Index")


class RetrieverError(SteelyardError):
    """A retriever that does not exist, was set wrongly, was not indexed, or lacks a package it needs."""


@runtime_checkable
class Retriever(Protocol):
    """Anything that answers questions from a corpus. A class needs these names and no base class.

    A corpus is a mapping of document id to text. It may also carry `links`, a mapping of document id
    to the ids it points to, and `titles`; a retriever that wants them looks for them.
    """

    @property
    def label(self) -> str:
        """The name its row has in a table, such as `bm25-okapi`."""

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Takes the corpus in, and gives the retriever back. A second call forgets the first."""

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, at most k (document id, score) pairs, best first."""

    def settings(self) -> dict[str, Any]:
        """Everything that decides its answers, in types that JSON has: equal settings, equal answers."""

    def size_in_bytes(self) -> int:
        """The memory that its index takes."""


@dataclass(frozen=True)
class Documents:
    """A corpus that was checked: ids that differ from each other, and as many texts."""

    ids: list[str]
    texts: list[str]

    def __len__(self) -> int:
        return len(self.ids)


def checked_corpus(corpus: Mapping[str, str], who: str) -> Documents:
    """The corpus as ids and texts. Empty texts are allowed; an empty corpus is not.

    >>> checked_corpus({"d1": "one text", 2: "another"}, "bm25-okapi")
    Documents(ids=['d1', '2'], texts=['one text', 'another'])
    """
    if not isinstance(corpus, Mapping):
        raise InputError(
            f"{who}: the corpus is {kind_of(corpus)}; expected a mapping of document id to text."
        )
    if not corpus:
        raise InputError(f"{who}: the corpus is empty; give index() at least one document.")
    ids = text_ids(corpus.keys(), "document id", f"{who}: the corpus", unique=True)
    texts = list(corpus.values())
    if not set(map(type, texts)) <= {str}:
        for doc, text in zip(ids, texts, strict=True):
            if not isinstance(text, str):
                raise InputError(
                    f"{who}: the text of document {doc!r} is {kind_of(text)}; expected text "
                    '(an empty document is the empty text "").'
                )
    return Documents(ids, texts)


def checked_queries(queries: Sequence[str], k: int, who: str) -> list[str]:
    """The queries as a list, after a look at each and at k."""
    if isinstance(queries, str):
        raise InputError(
            f"{who}: retrieve() takes a list of queries; write retrieve([{queries[:40]!r}], k={k})."
        )
    if not is_whole(k, 1):
        raise InputError(f"{who}: k is {k!r}; expected a whole number of documents, 1 or more.")
    listed = list(queries)
    for place, query in enumerate(listed, 1):
        if not isinstance(query, str):
            raise InputError(f"{who}: query {place} is {kind_of(query)}; expected text.")
    return listed


def checked_index(index: Index | None, who: str) -> Index:
    """What a retriever holds once it was indexed; an error where it was not."""
    if index is None:
        raise RetrieverError(f"{who}: nothing is indexed; call index(corpus) before retrieve().")
    return index


def whole(who: str, what: str, value: Any, low: int = 0) -> int:
    """A whole number, not below `low`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise RetrieverError(f"{who}: {what} is {value!r}; expected a whole number, {low} or more.")
    return value


def number(who: str, what: str, value: Any, low: float = 0.0, high: float = math.inf) -> float:
    """A finite number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise RetrieverError(f"{who}: {what} is {value!r}; expected a number.")
    if not low <= value <= high:
        span = f"from {low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
        raise RetrieverError(f"{who}: {what} is {value!r}; expected a number {span}.")
    return float(value)


def unknown(who: str, what: str, value: Any, known: Iterable[str]) -> RetrieverError:
    """The error for a name that is none of those known.

    >>> print(unknown("graph-flow", "graph", "link", ["auto", "links"]))
    graph-flow: no graph 'link'. Did you mean links? Known: auto, links.
    """
    names = list(known)
    hint = did_you_mean(str(value), names)
    return RetrieverError(f"{who}: no {what} {value!r}.{hint} Known: {', '.join(names)}.")


Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Integers: TypeAlias = npt.NDArray[np.signedinteger[Any]]

_BLOCK = 64


def top_k(scores: Floats, k: int) -> Integers:
    """The places of the k highest scores, best first; fewer where there are not as many.

    >>> top_k(np.array([1.0, 3.0, 2.0, 3.0]), 3).tolist()
    [1, 3, 2]
    """
    if k >= len(scores):
        return np.argsort(-scores, kind="stable")
    bound = _bound(scores, k)
    places = np.flatnonzero(scores > bound)
    if len(places) < k:
        places = np.concatenate([places, np.flatnonzero(scores == bound)[: k - len(places)]])
    order = np.argsort(-scores[places], kind="stable")[:k]
    return places[order]


def _bound(scores: Floats, k: int) -> float:
    """A score that at least k reach, and few more: the k-th best of the blocks' best, cheaper than the k-th best."""
    whole = len(scores) - len(scores) % _BLOCK
    if 4 * k * _BLOCK >= whole:
        return float(np.partition(scores, len(scores) - k)[len(scores) - k])
    best = scores[:whole].reshape(-1, _BLOCK).max(axis=1)
    return float(np.partition(best, len(best) - k)[len(best) - k])


def ranked(ids: list[str], places: Integers, scores: Floats) -> Ranked:
    """Places and their scores as (document id, score) pairs."""
    return [(ids[place], score) for place, score in zip(places.tolist(), scores.tolist(), strict=True)]


def best(ids: list[str], scores: Floats, k: int) -> Ranked:
    """The k documents with the highest scores, best first.

    >>> best(["d1", "d2", "d3"], np.array([0.5, 2.0, 1.0]), 2)
    [('d2', 2.0), ('d3', 1.0)]
    """
    places = top_k(scores, k)
    return ranked(ids, places, scores[places])
