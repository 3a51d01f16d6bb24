"""Hybrid: the lists of several retrievers, fused into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.fusion.methods import fuse_lists, recipe
from steelyard.retrievers.base import (
    CheckedCorpus,
    Ranked,
    Retriever,
    RetrieverError,
    Staged,
    checked_corpus,
    checked_index,
    checked_queries,
    needs_corpus,
)
from steelyard.retrievers.bm25 import BM25
from steelyard.retrievers.registry import Spec, class_of, from_spec
from steelyard.retrievers.settings import Declared, setting

if TYPE_CHECKING:
    from typing_extensions import Self


class Hybrid(Declared):
    """The first `depth` documents of several retrievers, fused into one list.

    Equal fused scores are in descending order of document id.

    >>> hybrid = Hybrid(of=["bm25-okapi", "random"], fuse="wsum", weights=[0.9, 0.1])
    >>> hybrid.index({"d1": "red fox", "d2": "grey wolf", "d3": "brown bear"}).retrieve(["wolf"], k=1)[0][0][0]
    'd2'
    """

    retriever = "hybrid"

    of: Sequence[Spec] = setting(
        "two or more retrievers, names, or {name: settings}. A BM25 given by name returns only documents that share a "
        "word with the query (fill: false), so that the order of the corpus has no influence",
        default=("bm25-okapi", "dense"),
        kw_only=False,
    )
    fuse: str = setting("the fusion method, as for `steelyard.fuse`: rrf, wsum, combmnz, borda, ...", default="rrf")
    depth: int = setting("documents retrieved by each retriever, or k if that is larger", default=100, low=1)
    norm: str | None = setting("the normalisation of scores, of a method on scores", default=None)
    weights: Sequence[float] | None = setting("one weight per retriever", default=None)
    parameters: Mapping[str, float] | None = setting('parameters of the method, such as {"k": 60}', default=None)

    def _set_up(self) -> None:
        if isinstance(self.of, (str, Mapping)) or not isinstance(self.of, Sequence) or len(self.of) < 2:
            raise RetrieverError(f"{self.label}: `of` is {self.of!r}; expected a list of two or more retrievers.")
        self.parts = [_part(spec) for spec in self.of]
        self._recipe = recipe(len(self.parts), self.fuse, self.norm, self.weights, **(self.parameters or {}))
        self._documents: CheckedCorpus | None = None

    @property
    def needs_corpus(self) -> bool:
        """Whether one of the retrievers indexes a corpus."""
        return any(map(needs_corpus, self.parts))

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus with each retriever."""
        documents = checked_corpus(corpus, self.label) if corpus or self.needs_corpus else CheckedCorpus([], [])
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
        names = [part.label for part in self.parts]
        return [
            Staged(fuse_lists(lists, **settings)[:k], "fuse", list(zip(names, lists, strict=True)))
            for lists in zip(*answers, strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on."""
        return {
            "retriever": self.retriever,
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
