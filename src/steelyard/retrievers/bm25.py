"""BM25: documents ranked by the words that they share with the query."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from steelyard.retrievers.base import (
    Documents,
    Ranked,
    RetrieverError,
    checked_corpus,
    checked_index,
    checked_queries,
)
from steelyard.retrievers.checks import number, unknown
from steelyard.retrievers.sparse import SparseIndex, postings, search
from steelyard.retrievers.tokenizers import describe_tokenizer, tokenizer_of
from steelyard.retrievers.topk import ranked
from steelyard.retrievers.variants import VARIANTS, Constants, idfs

if TYPE_CHECKING:
    from typing_extensions import Self

VariantName: TypeAlias = Literal["okapi", "plus", "l", "lucene", "robertson", "atire"]


class BM25:
    """BM25: the words that a document shares with the query, weighted by how rare they are.

    The sum, over the query's terms, of IDF(term) x how much of the term the document has.

    variant: `okapi`, `plus` and `l` give the scores of rank_bm25 0.2.2; `lucene`, `robertson` and `atire`
        those of bm25s.
    k1: how slowly repeats of a term saturate; 0 counts presence only.
    b: how much long documents are held back, from 0 to 1.
    delta: what plus and l add to a term's share (1 and 0.5 by default); the others have none.
    epsilon: okapi's floor: a term in more than half of the documents has epsilon x the mean IDF.
    tokenizer: `default`, `words`, `whitespace`, `ngrams`, `ngrams:3`, or a callable str -> list of tokens.
    fill: where fewer than k documents share a term with the query, the list goes on with documents that share
        none, in document order, as sorting all scores would have it; False stops the list there.
    name: the label of its row in a table.

    Equal scores rank in document order. An empty query, or one of unknown words, finds every document alike.

    >>> bm25 = BM25(variant="okapi", k1=1.5, b=0.75, tokenizer="whitespace")
    >>> corpus = {"d1": "a red fox", "d2": "a grey wolf", "d3": "a red deer", "d4": "an owl"}
    >>> [(doc, round(score, 4)) for doc, score in bm25.index(corpus).retrieve(["grey fox"], k=3)[0]]
    [('d1', 0.814), ('d2', 0.814), ('d3', 0.0)]
    """

    def __init__(
        self,
        variant: VariantName = "okapi",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float | None = None,
        epsilon: float = 0.25,
        tokenizer: str | Callable[[str], Sequence[str]] = "default",
        fill: bool = True,
        name: str | None = None,
    ) -> None:
        if variant not in VARIANTS:
            raise unknown("bm25", "variant", variant, get_args(VariantName))
        self.variant = variant
        self.label = name or f"bm25-{variant}"
        self._formula = VARIANTS[variant]
        if delta is not None and not self._formula.delta:
            raise RetrieverError(f"{self.label}: delta belongs to the variants plus and l; leave it out.")
        self._constants = Constants(
            number(self.label, "k1", k1),
            number(self.label, "b", b, 0.0, 1.0),
            number(self.label, "delta", self._formula.delta if delta is None else delta),
            number(self.label, "epsilon", epsilon, -math.inf),
        )
        self.fill = fill
        self._tokenizer_given = tokenizer
        self._tokenize = tokenizer_of(tokenizer, self.label)
        self._documents: Documents | None = None
        self._index: SparseIndex | None = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Takes a corpus in; a second call forgets the first."""
        documents = checked_corpus(corpus, self.label)
        found = self._tokens_checked(lambda: postings(map(self._tokenize, documents.texts)))
        constants = self._constants
        frequencies = np.diff(found.starts)
        idf = idfs(self._formula, frequencies, len(documents), constants.epsilon)
        mean_length = found.lengths.sum() / len(documents) or 1.0
        length = constants.b * found.lengths / mean_length
        weights = self._formula.weight(
            found.counts, length[found.docs], np.repeat(idf, frequencies), constants
        )
        bases = idf * constants.delta if self._formula.everywhere else np.zeros(len(idf))
        self._index = SparseIndex(found.vocabulary, found.starts, found.docs, weights, bases, len(documents))
        self._documents = documents
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs."""
        documents = checked_index(self._documents, self.label)
        assert self._index is not None
        listed = checked_queries(queries, k, self.label)
        index = self._index
        answers = self._tokens_checked(
            lambda: search(index, [self._tokenize(query) for query in listed], k, not self.fill)
        )
        return [ranked(documents.ids, places, scores) for places, scores in answers]

    def settings(self) -> dict[str, Any]:
        """Everything that decides its answers."""
        return {
            "retriever": "bm25",
            "variant": self.variant,
            "k1": self._constants.k1,
            "b": self._constants.b,
            "delta": self._constants.delta,
            "epsilon": self._constants.epsilon,
            "tokenizer": describe_tokenizer(self._tokenizer_given),
            "fill": self.fill,
        }

    def size_in_bytes(self) -> int:
        """Postings and weights, and the vocabulary with its words."""
        if self._index is None:
            return 0
        arrays = (self._index.starts, self._index.docs, self._index.weights, self._index.bases)
        words = sum(map(sys.getsizeof, self._index.vocabulary))
        return sum(array.nbytes for array in arrays) + sys.getsizeof(self._index.vocabulary) + words

    def _tokens_checked(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except TypeError as error:
            if not callable(self._tokenizer_given):
                raise
            raise RetrieverError(
                f"{self.label}: the tokenizer {describe_tokenizer(self._tokenizer_given)} failed or did not "
                f"give a list of tokens ({error}); expected a callable from a text to a list of texts."
            ) from error
