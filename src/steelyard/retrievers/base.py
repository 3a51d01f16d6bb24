"""What a retriever is, and the checks that every one of them makes of its corpus and its questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from steelyard.errors import InputError, SteelyardError
from steelyard.ids import kind_of, text_ids
from steelyard.whole_numbers import is_whole

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
