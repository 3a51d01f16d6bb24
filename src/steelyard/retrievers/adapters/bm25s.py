"""bm25s: BM25 by the package bm25s, over the corpus."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from steelyard.retrievers.adapters.base import package
from steelyard.retrievers.base import (
    Documents,
    Ranked,
    checked_corpus,
    checked_index,
    checked_queries,
    unknown,
)

if TYPE_CHECKING:
    from typing_extensions import Self


class BM25S:
    """The package bm25s with its own tokenizer, in 32-bit floats as it comes.

    method: `lucene`, `robertson`, `atire`, `bm25l` or `bm25+`.
    k1, b, delta: the formula's constants, by bm25s's defaults.
    stopwords: the language whose stop words are left out, or None for none.
    stemmer: the language of PyStemmer's stemmer, as `english`; None for none.
    name: the label of its row in a table.

    Documents that score 0 are not in the list: bm25s orders them by nothing.
    """

    extra: ClassVar[str] = "bm25s"
    """The extra that brings its package."""

    def __init__(
        self,
        method: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 0.5,
        stopwords: str | None = "english",
        stemmer: str | None = None,
        name: str | None = None,
    ) -> None:
        self.label = name or "bm25s"
        self._package = package("bm25s", self.extra, "bm25s")
        known = ("lucene", "robertson", "atire", "bm25l", "bm25+")
        if method not in known:
            raise unknown(self.label, "method", method, known)
        self._constants: dict[str, Any] = {"method": method, "k1": k1, "b": b, "delta": delta}
        self._stopwords = stopwords
        self._stemmer_name = stemmer
        self._stemmer = None if stemmer is None else self._stemmer_of(stemmer)
        self._documents: Documents | None = None
        self._model: Any = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Tokenizes and indexes the corpus; a second call forgets the first."""
        documents = checked_corpus(corpus, self.label)
        model = self._package.BM25(**self._constants)
        model.index(self._tokens(documents.texts), show_progress=False)
        self._documents, self._model = documents, model
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs that score above 0."""
        documents = checked_index(self._documents, self.label)
        listed = checked_queries(queries, k, self.label)
        if not listed:
            return []
        places, scores = self._model.retrieve(
            self._tokens(listed), k=min(k, len(documents)), show_progress=False
        )
        return [
            [(documents.ids[place], float(score)) for place, score in zip(*row, strict=True) if score > 0]
            for row in zip(places.tolist(), scores.tolist(), strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        """Everything that decides its answers."""
        return {
            "retriever": "bm25s",
            "package": self._package.__version__,
            **self._constants,
            "stopwords": self._stopwords,
            "stemmer": self._stemmer_name,
        }

    def size_in_bytes(self) -> int:
        """Scores, their places, and the vocabulary with its words."""
        if self._model is None:
            return 0
        arrays = sum(getattr(array, "nbytes", 0) for array in self._model.scores.values())
        vocabulary = self._model.vocab_dict
        return int(arrays + sys.getsizeof(vocabulary) + sum(map(sys.getsizeof, vocabulary)))

    def _tokens(self, texts: list[str]) -> Any:
        return self._package.tokenize(
            texts, stopwords=self._stopwords or [], stemmer=self._stemmer, show_progress=False
        )

    def _stemmer_of(self, language: str) -> Any:
        stemmer = package("Stemmer", self.extra, f"{self.label} with a stemmer")
        try:
            return stemmer.Stemmer(language)
        except KeyError:
            raise unknown(self.label, "stemmer", language, stemmer.algorithms()) from None
