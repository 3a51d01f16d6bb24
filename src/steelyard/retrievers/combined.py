"""Retrievers made of others: Hybrid fuses the lists of several, Rerank reorders the first documents of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from steelyard.checks import whole_number
from steelyard.fusion.fuse import recipe
from steelyard.ids import kind_of
from steelyard.retrievers import base
from steelyard.retrievers.base import Ranked, Retriever, RetrieverError, Self, Staged
from steelyard.retrievers.bm25 import BM25
from steelyard.retrievers.registry import Spec, class_of, from_spec
from steelyard.retrievers.settings import Declared, setting
from steelyard.retrievers.targets import describe_callable, load_target
from steelyard.wording import counted


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
            raise self._error(f"`of` is {self.of!r}; expected a list of two or more retrievers.")
        self.parts = [_part(spec) for spec in self.of]
        self._recipe = recipe(len(self.parts), self.fuse, self.norm, self.weights, **(self.parameters or {}))
        self._indexed: bool | None = None

    @property
    def needs_corpus(self) -> bool:
        """Whether one of the retrievers indexes a corpus."""
        return any(map(base.needs_corpus, self.parts))

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus with each retriever."""
        if corpus or self.needs_corpus:
            base.checked_corpus(corpus, self.label)
        for part in self.parts:
            part.index(corpus)
        self._indexed = True
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, fused score) pairs."""
        base.checked_index(self._indexed, self.label)
        listed = base.checked_queries(queries, k, self.label)
        answers = [part.retrieve(listed, max(k, self.depth)) for part in self.parts]
        names = [part.label for part in self.parts]
        return [
            Staged(self._recipe.fused(lists)[:k], "fuse", list(zip(names, lists, strict=True)))
            for lists in zip(*answers, strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        of = [part.settings() for part in self.parts]
        return {"retriever": self.retriever, "of": of, "fusion": self._recipe.settings(), "depth": self.depth}

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


Scorer: TypeAlias = Callable[[str, list[str]], Sequence[float]]


class Rerank:
    """The first `candidates` documents of a retriever, reordered by another score.

    first: the first-stage retriever, its name, or {name: settings}.
    score: a callable (query, texts) -> one number per text, higher is better; a cross-encoder (any object with
        `predict` on pairs of query and text, as in sentence-transformers); `package.module:function`; or
        `cross-encoder:FOLDER` for a local model of sentence-transformers.
    candidates: the number of documents that are scored. If k is larger, the other documents follow in their
        order, each with a score of 1 less than the one before.
    name: its label in tables.

    Equal scores keep the order of the first stage.

    >>> def shortest(query, texts):
    ...     return [-len(text) for text in texts]
    >>> rerank = Rerank(first="bm25-lucene", score=shortest, candidates=2)
    >>> rerank.index({"d1": "a fox, a fox", "d2": "a fox", "d3": "it"}).retrieve(["fox"], k=3)
    [[('d2', -5.0), ('d1', -12.0), ('d3', -13.0)]]
    """

    def __init__(self, first: Spec, score: str | Scorer | Any, candidates: int = 50, name: str | None = None) -> None:
        self.label = name or "rerank"
        self.candidates = whole_number(f"{self.label}: candidates", candidates, 1, error=RetrieverError)
        self.first = from_spec(first)
        self._given = score
        self._score = _scorer(score, self.label)
        self._texts: dict[str, str] | None = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus with the first-stage retriever, and keep the texts."""
        documents = base.checked_corpus(corpus, self.label)
        self.first.index(corpus)
        self._texts = dict(zip(documents.ids, documents.texts, strict=True))
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs."""
        texts = base.checked_index(self._texts, self.label)
        listed = base.checked_queries(queries, k, self.label)
        return [
            Staged(self._reranked(query, candidates, texts)[:k], "rerank", [("retrieve", candidates)])
            for query, candidates in zip(listed, self.first.retrieve(listed, max(k, self.candidates)), strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on."""
        score = self._given if isinstance(self._given, str) else describe_callable(self._given)
        return {"retriever": "rerank", "first": self.first.settings(), "score": score, "candidates": self.candidates}

    def size_in_bytes(self) -> int:
        """The memory used by the first-stage retriever; the texts are those of the corpus."""
        return self.first.size_in_bytes()

    def _reranked(self, query: str, first: Ranked, texts: Mapping[str, str]) -> Ranked:
        ids = [doc for doc, _ in first[: self.candidates]]
        if not ids:
            return []
        unknown = next((doc for doc in ids if doc not in texts), None)
        if unknown is not None:
            raise RetrieverError(
                f"{self.label}: {self.first.label} returned document {unknown!r}, which is not in the corpus."
            )
        scores = self._checked(self._score(query, [texts[doc] for doc in ids]), len(ids), query)
        best = sorted(zip(ids, scores, strict=True), key=lambda pair: -pair[1])
        return best + [(doc, best[-1][1] - position) for position, (doc, _) in enumerate(first[self.candidates :], 1)]

    def _checked(self, scores: Any, expected: int, query: str) -> list[float]:
        try:
            numbers = [float(score) for score in scores]
        except (TypeError, ValueError):
            raise RetrieverError(
                f"{self.label}: the scorer returned {kind_of(scores)} for {query[:60]!r}; expected one number per text."
            ) from None
        if len(numbers) != expected:
            problem = f"{self.label}: the scorer returned {counted(len(numbers), 'score')} for"
            raise RetrieverError(f"{problem} {counted(expected, 'text')}, for {query[:60]!r}.")
        if not all(map(math.isfinite, numbers)):
            raise RetrieverError(
                f"{self.label}: the scorer returned a score that is not a finite number for {query[:60]!r}."
            )
        return numbers


def _scorer(score: Any, label: str) -> Scorer:
    if isinstance(score, str) and score.startswith("cross-encoder:"):
        from steelyard.retrievers.embeddings import local_model

        score = local_model("CrossEncoder", score.partition(":")[2], label)
    elif isinstance(score, str):
        score = load_target(score, label)
    if hasattr(score, "predict"):
        return lambda query, texts: score.predict([(query, text) for text in texts])
    if callable(score):
        return cast("Scorer", score)
    problem = f"{label}: the scorer is {kind_of(score)}; expected a callable (query, texts) ->"
    raise RetrieverError(f"{problem} scores, a cross-encoder, or `package.module:function`.")
