"""Dense: documents ranked by the cosine similarity of their embeddings and the query's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.ids import kind_of
from steelyard.retrievers.base import (
    Documents,
    Ranked,
    RetrieverError,
    best,
    checked_corpus,
    checked_index,
    checked_queries,
    whole,
)
from steelyard.retrievers.source_code import describe_callable
from steelyard.retrievers.tokenizers import Tokenizer, describe_tokenizer, tokenizer_of
from steelyard.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Self

Vectors: TypeAlias = npt.NDArray[np.float32]
Embedder: TypeAlias = Callable[[Sequence[str]], npt.ArrayLike]

_BLOCK_BYTES = 64_000_000
_BATCH_TEXTS = 16_384


class Dense:
    """Exact search by cosine similarity of embeddings.

    model: the embedding model. `lsa`, the default, is latent semantic analysis fitted on the corpus: it needs no
        weights and no network. `wordllama`, `minilm` and `sentence-transformers:FOLDER` need a package each. Or
        a callable from a list of texts to one vector each; or a mapping of text to vector.
    vectors: embeddings of the documents: a mapping of document id to vector, or a matrix with one row per document
        in the order of the corpus. The model then embeds only the queries.
    dimensions: maximum number of dimensions of lsa; None: 0.4 times the number of documents, at most 256.
    tokenizer: tokenizer of lsa, as for BM25.
    name: its label in tables.

    Cosines are rounded to six decimals, about the precision of 32-bit floats, so that equal texts tie; equal
    scores are in document order. The cosine with a zero vector (in lsa, a text of unknown words) is 0.

    >>> meanings = {"cat": [1, 0], "kitten": [0.8, 0.6], "train": [0, 1]}
    >>> dense = Dense(model=meanings).index({"d1": "train", "d2": "cat"})
    >>> dense.retrieve(["kitten"], k=2)
    [[('d2', 0.8), ('d1', 0.6)]]
    """

    def __init__(
        self,
        model: str | Embedder | Mapping[str, npt.ArrayLike] = "lsa",
        vectors: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None,
        dimensions: int | None = None,
        tokenizer: str | Tokenizer = "default",
        name: str | None = None,
    ) -> None:
        self.label = name or (f"dense-{model}" if isinstance(model, str) and model != "lsa" else "dense")
        if model == "lsa" and vectors is not None:
            raise RetrieverError(
                f"{self.label}: lsa is fitted on texts, so it cannot embed queries for vectors of another model; "
                "set model to the model of the vectors, or to a mapping of query to vector."
            )
        self.model = model
        self.dimensions = None if dimensions is None else whole(self.label, "dimensions", dimensions, 1)
        self._given_vectors = vectors
        self._tokenizer_given = tokenizer
        self._tokenize = tokenizer_of(tokenizer, self.label)
        self._embed = None if model == "lsa" else _embedder(model, self.label)
        self._documents: Documents | None = None
        self._vectors: Vectors | None = None
        self._model_bytes = 0

    @property
    def vectors(self) -> Vectors:
        """The embeddings of the documents: one row per document, of length 1 (or 0)."""
        checked_index(self._documents, self.label)
        assert self._vectors is not None
        return self._vectors

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus; a second call replaces the first index."""
        documents = checked_corpus(corpus, self.label)
        if self.model == "lsa":
            from steelyard.retrievers.embeddings import dimensions_for, fit

            model, fitted = fit(
                documents.texts, self._tokenize, self.dimensions or dimensions_for(len(documents))
            )
            self._embed, self._model_bytes = model, model.nbytes
            self._vectors = _unit(fitted)
        elif self._given_vectors is not None:
            given = _in_order(self._given_vectors, documents, self.label)
            self._vectors = _unit(_matrix(given, len(documents), self.label))
        else:
            self._vectors = self._embedded(documents.texts)
        self._documents = documents
        return self

    def _embedded(self, texts: list[str]) -> Vectors:
        """The embeddings of documents, a batch at a time: the matrix of the model is never held as a whole."""
        assert self._embed is not None
        vectors: Vectors | None = None
        for first in range(0, len(texts), _BATCH_TEXTS):
            batch = texts[first : first + _BATCH_TEXTS]
            found = _unit(_matrix(self._embed(batch), len(batch), self.label))
            if vectors is None:
                vectors = (
                    found if len(batch) == len(texts) else np.empty((len(texts), found.shape[1]), np.float32)
                )
            _check_width(found, vectors.shape[1], "some documents", "others", self.label)
            vectors[first : first + len(batch)] = found
        assert vectors is not None
        return vectors

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of texts, of length 1 (or 0)."""
        width = self.vectors.shape[1]
        if not texts:
            return np.zeros((0, width), np.float32)
        assert self._embed is not None
        found = _matrix(self._embed(texts), len(texts), self.label)
        _check_width(found, width, "queries", "documents", self.label)
        return _unit(found)

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the k most similar documents and their cosines."""
        documents = checked_index(self._documents, self.label)
        listed = checked_queries(queries, k, self.label)
        step = max(1, _BLOCK_BYTES // (4 * len(documents)))
        lists: list[Ranked] = []
        for first in range(0, len(listed), step):
            cosines = (self.embed(listed[first : first + step]) @ self.vectors.T).astype(np.float64)
            rounded = np.round(cosines, 6) + 0.0  # + 0.0 turns -0.0 into 0.0
            lists += [best(documents.ids, row, k) for row in rounded]
        return lists

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on."""
        chosen: dict[str, Any] = {"retriever": "dense", "model": _describe_model(self.model)}
        if self.model == "lsa":
            chosen["dimensions"] = self.dimensions
            chosen["tokenizer"] = describe_tokenizer(self._tokenizer_given)
        if self._given_vectors is not None:
            chosen["vectors"] = _digest(self._given_vectors)
        return chosen

    def size_in_bytes(self) -> int:
        """The vectors of the documents, and the model of lsa."""
        return 0 if self._vectors is None else self._vectors.nbytes + self._model_bytes


def _embedder(model: str | Embedder | Mapping[str, npt.ArrayLike], label: str) -> Embedder:
    if isinstance(model, str):
        from steelyard.retrievers.embeddings import embedding_model

        return embedding_model(model, label)
    if isinstance(model, Mapping):
        known = model

        def look_up(texts: Sequence[str]) -> npt.ArrayLike:
            for text in texts:
                if text not in known:
                    raise RetrieverError(f"{label}: the mapping in `model` has no vector for {text[:60]!r}.")
            return np.array([known[text] for text in texts])

        return look_up
    if callable(model):
        return model
    raise RetrieverError(
        f"{label}: the model is {kind_of(model)}; expected a name, a callable from texts to vectors, "
        "or a mapping of text to vector."
    )


def _in_order(given: Mapping[str, npt.ArrayLike] | npt.ArrayLike, documents: Documents, label: str) -> Any:
    if not isinstance(given, Mapping):
        return given
    missing = [doc for doc in documents.ids if doc not in given]
    if missing:
        raise RetrieverError(
            f"{label}: {counted(len(missing), 'document has', 'documents have')} no vector, the first "
            f"{missing[0]!r}; `vectors` needs one for every document of the corpus."
        )
    return [given[doc] for doc in documents.ids]


def _matrix(vectors: Any, rows: int, label: str) -> npt.NDArray[np.floating[Any]]:
    try:
        matrix = np.asarray(vectors)
        matrix = matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise RetrieverError(
            f"{label}: the vectors are not a matrix of numbers; expected one per text, all of one length."
        ) from None
    if matrix.ndim != 2 or len(matrix) != rows or matrix.shape[1] == 0:
        raise RetrieverError(
            f"{label}: {counted(rows, 'text')} resulted in an array of shape {matrix.shape}; expected one row per "
            f"text, ({rows}, n)."
        )
    for first, rows_of_block in _row_blocks(matrix):
        finite = np.isfinite(rows_of_block).all(axis=1)
        if not finite.all():
            bad = first + int(np.flatnonzero(~finite)[0])
            raise RetrieverError(f"{label}: the vector in row {bad} is not finite; expected finite numbers.")
    return matrix


def _check_width(found: npt.NDArray[Any], width: int, what: str, others: str, label: str) -> None:
    if found.shape[1] != width:
        raise RetrieverError(
            f"{label}: the vectors of {what} have {counted(found.shape[1], 'dimension')} and those of {others} have "
            f"{width}; both must come from the same model."
        )


def _row_blocks(matrix: npt.NDArray[Any]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The rows in blocks, each with the number of its first row: a large matrix is not copied as a whole."""
    step = max(1, _BLOCK_BYTES // (8 * matrix.shape[1]))
    for first in range(0, len(matrix), step):
        yield first, matrix[first : first + step]


def _unit(matrix: npt.NDArray[np.floating[Any]]) -> Vectors:
    unit: Vectors = np.empty(matrix.shape, np.float32)
    for first, rows in _row_blocks(matrix):
        wide = rows.astype(np.float64, copy=False)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        unit[first : first + len(rows)] = np.divide(
            wide, lengths, out=np.zeros_like(wide), where=lengths > 1e-12
        )
    return unit


def _describe_model(model: str | Embedder | Mapping[str, npt.ArrayLike]) -> str:
    if isinstance(model, str):
        return model
    return _digest(model) if isinstance(model, Mapping) else describe_callable(model)


def _digest(vectors: Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> str:
    digest = hashlib.sha256()
    if isinstance(vectors, Mapping):
        for key in sorted(vectors):
            digest.update(repr(key).encode("utf-8", "surrogatepass"))
            digest.update(np.asarray(vectors[key], np.float64).tobytes())
    else:
        for _, rows in _row_blocks(np.atleast_2d(np.asarray(vectors))):
            digest.update(rows.astype(np.float64).tobytes())
    return f"sha256:{digest.hexdigest()[:16]}"
