"""Latent semantic analysis: embeddings fitted on the corpus itself, with no weights to fetch.

Deerwester et al. (1990): the corpus as a matrix of documents by terms, and its leading singular vectors as the
dimensions in which texts are compared, so that words that keep the same company come close.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard.retrievers.sparse import postings

Floats = npt.NDArray[np.float64]

_SMALL = 2048
MOST_DIMENSIONS = 256


def dimensions_for(documents: int) -> int:
    """How many dimensions suit a corpus: two for every five documents, so that meanings are shared, and no more than 256.

    >>> dimensions_for(100), dimensions_for(10_000)
    (40, 256)
    """
    return max(1, min(MOST_DIMENSIONS, documents * 2 // 5))


@dataclass(frozen=True)
class LSA:
    """A fitted model: texts in, vectors out.

    A term's weight in a text is (1 + ln tf) x idf with idf = 1 + ln((N + 1) / (df + 1)), texts scaled to length
    1; `terms` has a row per term of the corpus, and a text's vector is the sum of its terms' rows, weighted.
    Words that the corpus has not are passed over; a text without known words is the zero vector.
    """

    vocabulary: dict[str, int]
    idf: Floats
    terms: Floats
    tokenize: Callable[[str], Sequence[str]]

    def __call__(self, texts: Sequence[str]) -> Floats:
        """A row per text."""
        vectors = np.zeros((len(texts), self.terms.shape[1]))
        for row, text in enumerate(texts):
            counts = Counter(
                term for token in self.tokenize(text) if (term := self.vocabulary.get(token)) is not None
            )
            if counts:
                places = np.fromiter(counts, np.intp, len(counts))
                weights = (1 + np.log(np.fromiter(counts.values(), np.float64, len(counts)))) * self.idf[
                    places
                ]
                vectors[row] = weights @ self.terms[places] / np.linalg.norm(weights)
        return vectors

    @property
    def nbytes(self) -> int:
        """The memory that the model's arrays take."""
        return self.idf.nbytes + self.terms.nbytes


def fit(
    texts: Sequence[str], tokenize: Callable[[str], Sequence[str]], dimensions: int
) -> tuple[LSA, Floats]:
    """The model of a corpus, and a row per text of it.

    There are as many dimensions as asked for, or as the corpus has; the same corpus gives the same model.
    """
    from scipy import sparse

    found = postings(map(tokenize, texts))
    frequencies = np.diff(found.starts)
    idf = 1 + np.log((len(texts) + 1) / (frequencies + 1))
    weights = (1 + np.log(found.counts)) * np.repeat(idf, frequencies)
    lengths = np.sqrt(np.bincount(found.docs, weights**2, minlength=len(texts)))
    matrix = sparse.csc_array(
        (weights / lengths[found.docs], found.docs, found.starts), shape=(len(texts), len(found.vocabulary))
    )
    terms = _right_vectors(matrix, dimensions)
    return LSA(found.vocabulary, idf, terms, tokenize), matrix @ terms


def _right_vectors(matrix: Any, dimensions: int) -> Floats:
    """The leading right singular vectors as columns, the strongest first, each with its largest entry positive."""
    rank = min(matrix.shape)
    if rank == 0:
        return np.zeros((matrix.shape[1], 1))
    if dimensions >= rank or rank <= _SMALL:
        right = _by_gram_matrix(matrix, dimensions)
    else:
        from scipy.sparse.linalg import svds

        start = np.random.default_rng(0).standard_normal(rank)
        right = svds(matrix.tocsr(), k=dimensions, v0=start, tol=1e-3, return_singular_vectors="vh")[2][
            ::-1
        ].T
    largest = right[np.abs(right).argmax(axis=0), np.arange(right.shape[1])]
    return np.ascontiguousarray(right * np.where(largest < 0, -1.0, 1.0))


def _by_gram_matrix(matrix: Any, dimensions: int) -> Floats:
    """The same by the eigenvectors of the smaller square of the matrix: quicker while that is small."""
    tall = matrix.shape[0] > matrix.shape[1]
    square = (matrix.T @ matrix if tall else matrix @ matrix.T).toarray()
    values, vectors = np.linalg.eigh(square)
    kept = np.flatnonzero(values > 1e-12 * values[-1])[::-1][:dimensions]
    leading = vectors[:, kept]
    return leading if tall else (matrix.T @ leading) / np.sqrt(values[kept])
