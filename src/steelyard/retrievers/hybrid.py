"""Hybrid: the lists of several retrievers, fused into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.fusion.methods import fuse_lists, recipe
from steelyard.ids import kind_of
from steelyard.retrievers.base import (
    Documents,
    Ranked,
    Retriever,
    RetrieverError,
    checked_corpus,
    checked_index,
    checked_queries,
    needs_corpus,
    whole,
)
from steelyard.retrievers.bm25 import BM25
from steelyard.retrievers.registry import Spec, class_of, from_spec

if TYPE_CHECKING:
    from typing_extensions import Self


class Hybrid:
    """The first `depth` documents of several retrievers, fused into one list.

    of: two or more retrievers, names, or {name: settings}. A BM25 given by name returns only documents that share a
        word with the query (fill: false), so that the order of the corpus has no influence.
    fuse: the fusion method, as for `steelyard.fuse`: rrf, wsum, combmnz, borda, ...
    depth: documents retrieved by each retriever, or k if that is larger.
    norm, weights, parameters: of the method; one weight per retriever, parameters such as {"k": 60}.
    name: its label in tables.

    Equal fused scores are in descending order of document id.

    >>> hybrid = Hybrid(of=["bm25-okapi", "random"], fuse="wsum", weights=[0.9, 0.1])
    >>> hybrid.index({"d1": "red fox", "d2": "grey wolf", "d3": "brown bear"}).retrieve(["wolf"], k=1)[0][0][0]
    'd2'
    """

    def __init__(
        self,
        of: Sequence[Spec] = ("bm25-okapi", "dense"),
        fuse: str = "rrf",
        depth: int = 100,
        norm: str | None = None,
        weights: Sequence[float] | None = None,
        parameters: Mapping[str, float] | None = None,
        name: str | None = None,
    ) -> None:
        self.label = name or "hybrid"
        if isinstance(of, (str, Mapping)) or not isinstance(of, Sequence) or len(of) < 2:
            raise RetrieverError(f"{self.label}: `of` is {of!r}; expected a list of two or more retrievers.")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise RetrieverError(
                f"{self.label}: `parameters` is {kind_of(parameters)}; expected a mapping such as {{k: 60}}."
            )
        self.parts = [_part(spec) for spec in of]
        self.depth = whole(self.label, "depth", depth, 1)
        self._recipe = recipe(len(self.parts), fuse, norm, weights, **(parameters or {}))
        self._documents: Documents | None = None

    @property
    def needs_corpus(self) -> bool:
        """Whether one of the retrievers indexes a corpus."""
        return any(map(needs_corpus, self.parts))

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus with each retriever."""
        documents = checked_corpus(corpus, self.label) if corpus or self.needs_corpus else Documents([], [])
        for part in self.parts:
            part.index(corpus)
        self._documents = documents
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, fused score) pairs."""
        checked_index(self._documents, self.label)
        listed = checked_queries(queries, k, self.label)
        answers = [part.retrieve(listed, max(k, self.depth)) for part in self.parts]
        settings = self._recipe.settings()
        return [fuse_lists(lists, **settings)[:k] for lists in zip(*answers, strict=True)]

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on."""
        return {
            "retriever": "hybrid",
            "of": [part.settings() for part in self.parts],
            "fusion": self._recipe.settings(),
            "depth": self.depth,
        }

    def size_in_bytes(self) -> int:
        """The memory used by its retrievers."""
        return sum(part.size_in_bytes() for part in self.parts)


def _part(spec: Spec) -> Retriever:
    """A retriever of the hybrid; a BM25 given by name has fill=False unless its settings have fill."""
    if isinstance(spec, str):
        spec = {spec: None}
    if isinstance(spec, Mapping) and len(spec) == 1:
        name, settings = next(iter(spec.items()))
        if class_of(name)[0] is BM25 and isinstance(settings, Mapping | None):
            spec = {name: {"fill": False, **(settings or {})}}
    return from_spec(spec)
