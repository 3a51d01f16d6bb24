"""BM25S: BM25 of the package bm25s, on the corpus."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.retrievers.adapters.targets import package
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
    """The package bm25s with its own tokenizer, in its default 32-bit floats.

    method: `lucene`, `robertson`, `atire`, `bm25l` or `bm25+`.
    k1, b, delta: the constants of the formula, with the defaults of bm25s.
    stopwords: the language whose stop words are removed, or None.
    stemmer: the language of PyStemmer's stemmer, such as `english`, or None.
    name: its label in tables.

    Documents with a score of 0 are left out, since bm25s does not order them.
    """

    extra = "bm25s"

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
        """Index a corpus; a second call replaces the first index."""
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
        positions, scores = self._model.retrieve(
            self._tokens(listed), k=min(int(k), len(documents)), show_progress=False
        )
        return [
            [(documents.ids[position], score) for position, score in zip(*row, strict=True) if score > 0]
            for row in zip(positions.tolist(), scores.tolist(), strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on."""
        return {
            "retriever": "bm25s",
            "package": self._package.__version__,
            **self._constants,
            "stopwords": self._stopwords,
            "stemmer": self._stemmer_name,
        }

    def size_in_bytes(self) -> int:
        """The scores with their positions, and the vocabulary."""
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
