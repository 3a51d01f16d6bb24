"""BM25S: BM25 of the package bm25s, on the corpus."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from steelyard.retrievers.adapters.targets import package
from steelyard.retrievers.base import (
    CheckedCorpus,
    Ranked,
    Self,
    checked_corpus,
    checked_index,
    checked_queries,
    unknown,
)
from steelyard.retrievers.settings import Declared, setting


class BM25S(Declared):
    """The package bm25s with its own tokenizer, in its default 32-bit floats.

    Documents with a score of 0 are left out, since bm25s does not order them.
    """

    retriever = extra = "bm25s"

    method: Literal["lucene", "robertson", "atire", "bm25l", "bm25+"] = setting("the formula", default="lucene")
    k1: float = setting("saturation of term counts", default=1.5)
    b: float = setting("influence of a document's length", default=0.75)
    delta: float = setting("lower bound of a term's weight, of bm25l and bm25+", default=0.5)
    stopwords: str | None = setting("the language whose stop words are removed, or None", default="english")
    stemmer: str | None = setting("the language of PyStemmer's stemmer, such as `english`, or None", default=None)

    def _set_up(self) -> None:
        self._package = package("bm25s", self.extra, self.retriever)
        self._stemmer = None if self.stemmer is None else self._stemmer_of(self.stemmer)
        self._documents: CheckedCorpus | None = None
        self._model: Any = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus; a second call replaces the first index."""
        documents = checked_corpus(corpus, self.label)
        model = self._package.BM25(method=self.method, k1=self.k1, b=self.b, delta=self.delta)
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
        return {"retriever": self.retriever, "package": self._package.__version__, **self._declared_values()}

    def size_in_bytes(self) -> int:
        """The scores with their positions, and the vocabulary."""
        if self._model is None:
            return 0
        arrays = sum(getattr(array, "nbytes", 0) for array in self._model.scores.values())
        vocabulary = self._model.vocab_dict
        return int(arrays + sys.getsizeof(vocabulary) + sum(map(sys.getsizeof, vocabulary)))

    def _tokens(self, texts: list[str]) -> Any:
        return self._package.tokenize(texts, stopwords=self.stopwords or [], stemmer=self._stemmer, show_progress=False)

    def _stemmer_of(self, language: str) -> Any:
        stemmer = package("Stemmer", self.extra, f"{self.label} with a stemmer")
        try:
            return stemmer.Stemmer(language)
        except KeyError:
            raise unknown(self.label, "stemmer", language, stemmer.algorithms()) from None
