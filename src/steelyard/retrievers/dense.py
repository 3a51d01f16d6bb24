"""Dense: documents ranked by the cosine similarity of their embeddings and the query's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from steelyard.checks import number_between
from steelyard.errors import did_you_mean
from steelyard.ids import kind_of
from steelyard.lazy import polars as pl
from steelyard.retrievers import base
from steelyard.retrievers.base import CheckedCorpus, Ranked, RetrieverError, Staged, best, ranked, top_k
from steelyard.retrievers.embeddings import LSA, Embedded, Embedder, Vectors, embedding_model, fit, shared_vectors
from steelyard.retrievers.settings import Indexed, setting
from steelyard.retrievers.targets import describe_callable, identity_of, instantiated, load_target
from steelyard.retrievers.tokenizers import Tokenizer, describe_tokenizer, tokenizer_of
from steelyard.wording import counted

Filter: TypeAlias = float | Mapping[str, Any]


def describe_filter(given: Filter | None, label: str) -> dict[str, Any]:
    """A filter as a setting, after a check; no setting without a filter."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        if not given:
            raise RetrieverError(f"{label}: `filter` is empty; expected {{field: value}}.")
        return {"filter": dict(given)}
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise RetrieverError(
            f"{label}: `filter` is {kind_of(given)}; expected {{field: value}}, or a share such as 0.1."
        )
    return {"filter": number_between(f"{label}: filter", given, 0.0, 1.0, error=RetrieverError)}


def passing(
    corpus: Mapping[str, str], ids: Sequence[str], given: Filter | None, label: str
) -> npt.NDArray[np.bool_] | None:
    """Per document, whether it passes the filter; None without a filter. An error if no document does.

    A document passes a share by a hash of its id, so that the same documents pass in every engine.

    >>> int(passing({}, [f"d{n}" for n in range(1000)], 0.1, "dense").sum())
    83
    """
    if given is None:
        return None
    metadata = getattr(corpus, "metadata", None)
    if not isinstance(given, Mapping):
        raw = [doc.encode("utf-8", "surrogatepass") for doc in ids]
        kept = np.array([int.from_bytes(sha256(doc).digest()[:8], "big") / 2**64 for doc in raw]) < given
    elif isinstance(metadata, Mapping):
        wanted = {field: value if isinstance(value, list) else [value] for field, value in given.items()}
        kept = np.array([all(metadata[doc].get(field) in allowed for field, allowed in wanted.items()) for doc in ids])
    else:
        problem = f"{label}: the corpus has no metadata to filter by; expected a dataset whose"
        raise RetrieverError(f"{problem} documents have the fields {', '.join(map(str, given))}.")
    if not kept.any():
        hint = _fields(metadata, given) if isinstance(given, Mapping) and isinstance(metadata, Mapping) else ""
        raise RetrieverError(f"{label}: no document passes the filter {given!r}.{hint}")
    return kept


def _fields(metadata: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> str:
    """What the documents could be filtered by, for a message."""
    names = sorted({str(field) for _, fields in zip(range(1000), metadata.values(), strict=False) for field in fields})
    missing = [str(field) for field in given if str(field) not in names]
    if not missing:
        return ""
    has = f"The fields of their metadata are {', '.join(names)}." if names else "The documents have no metadata."
    return f" No document has the field {missing[0]!r}.{did_you_mean(missing[0], names)} {has}"


_BLOCK_BYTES = 64_000_000
_BATCH_TEXTS = 16_384


class Dense(Indexed):
    """Exact search by cosine similarity of embeddings.

    Cosines are rounded to six decimals, about the precision of 32-bit floats, so that equal texts tie; equal
    scores are in document order. The cosine with a zero vector (in lsa, a text of unknown words) is 0.

    The embeddings of a corpus are computed once per model: all retrievers of a process that use the same model and
    texts share them, and a bench stores them in its cache.

    >>> meanings = {"cat": [1, 0], "kitten": [0.8, 0.6], "train": [0, 1]}
    >>> dense = Dense(model=meanings).index({"d1": "train", "d2": "cat"})
    >>> dense.retrieve(["kitten"], k=2)
    [[('d2', 0.8), ('d1', 0.6)]]
    """

    retriever = "dense"

    model: str | Embedder | Mapping[str, npt.ArrayLike] = setting(
        "the embedding model. `lsa`, the default, is latent semantic analysis fitted on the corpus: it needs no "
        "weights and no network. `wordllama`, `minilm` and `sentence-transformers:FOLDER` need a package each. Or "
        "`package.module:attribute`, a callable from a list of texts to one vector each; a mapping of text to vector; "
        "or a Parquet or JSONL file with the columns text and vector",
        default="lsa",
        kw_only=False,
    )
    given_vectors: Mapping[str, npt.ArrayLike] | npt.ArrayLike | str | Path | None = setting(
        "embeddings of the documents: a matrix with one row per document in the order of the corpus, or its .npy file; "
        "a mapping of document id to vector, or a Parquet or JSONL file with the columns id and vector. The model then "
        "embeds only the queries",
        default=None,
        alias="vectors",
    )
    dimensions: int | None = setting(
        "maximum number of dimensions of lsa; None: 0.4 times the number of documents, at most 256", default=None, low=1
    )
    tokenizer: str | Tokenizer = setting("tokenizer of lsa, as for BM25", default="default")
    filter: Filter | None = setting(
        "search only among the documents whose metadata have these values, {year: 2020}; a number such as 0.1 selects "
        "that share of the documents, always the same ones, to measure what a filter costs",
        default=None,
    )
    folder: str | Path | None = setting(
        "the folder of relative file names and of modules; the working directory by default", default=None
    )

    def _label(self) -> str:
        named = isinstance(self.model, str) and self.model != "lsa"
        return self.name or (f"dense-{self.model}" if named else self.retriever)

    def _set_up(self) -> None:
        lsa = isinstance(self.model, str) and self.model == "lsa"
        if lsa and self.given_vectors is not None:
            raise self._error(
                "lsa is fitted on texts, so it cannot embed queries for vectors of another model; "
                "set model to the model of the vectors, or to a mapping of query to vector."
            )
        folder = Path(self.folder or ".")
        self._given_vectors: Any = self.given_vectors
        if isinstance(self.given_vectors, (str, Path)):
            self._given_vectors = read_vectors(folder / self.given_vectors, "id", self.label)
        if isinstance(self.model, str) and self.model.endswith((".parquet", ".jsonl")):
            self.model = read_vectors(folder / self.model, "text", self.label)
        self._tokenize = tokenizer_of(self.tokenizer, self.label)
        self._model = None if lsa else _embedder(self.model, self.label, self.folder)
        self._embedded: Embedded | None = None
        self._kept: npt.NDArray[np.bool_] | None = None
        describe_filter(self.filter, self.label)

    @property
    def vectors(self) -> Vectors:
        """The embeddings of the documents: one row per document, of length 1 (or 0)."""
        return base.checked_index(self._embedded, self.label).vectors

    def _build(self, documents: CheckedCorpus, corpus: Mapping[str, str]) -> None:
        self._kept = passing(corpus, documents.ids, self.filter, self.label)
        given = self._given_vectors
        if isinstance(given, Mapping):
            missing = [doc for doc in documents.ids if doc not in given]
            if missing:
                raise self._error(
                    f"{counted(len(missing), 'document has', 'documents have')} no vector, the first "
                    f"{missing[0]!r}; `vectors` needs one for every document of the corpus."
                )
            given = [given[doc] for doc in documents.ids]
        if given is not None:
            given = _matrix(given, len(documents), self.label, "document")
        # What identifies the vectors in this process, besides the texts; the state of a callable cannot be seen.
        setting = self.tokenizer if self._model is None else self.model
        seen = isinstance(setting, (str, Mapping))
        key = {**self._model_settings, "object": None if seen else id(setting)}
        if isinstance(self._given_vectors, Mapping):
            key["ids"] = documents.ids
        restore = self._restored if seen and given is None else None
        self._embedded = shared_vectors(key, documents.texts, lambda: self._computed(documents.texts, given), restore)

    def _restored(self, vectors: Vectors, arrays: dict[str, Any]) -> Embedded:
        if self._model is not None:
            return Embedded(vectors, self._model, arrays)
        vocabulary = {term: number for number, term in enumerate(json.loads(arrays["vocabulary"].tobytes()))}
        return Embedded(vectors, LSA(vocabulary, arrays["idf"], arrays["terms"], self._tokenize), arrays)

    def _computed(self, texts: list[str], given: npt.NDArray[Any] | None) -> Embedded:
        if self._model is None:
            model, fitted = fit(texts, self._tokenize, self.dimensions)
            terms = np.frombuffer(json.dumps(list(model.vocabulary)).encode(), np.uint8)
            return Embedded(_unit(fitted), model, {"idf": model.idf, "terms": model.terms, "vocabulary": terms})
        if given is not None:
            return Embedded(_unit(given), self._model, {})
        # A batch at a time: the matrix of the model is never held as a whole.
        vectors = np.empty((0, 0), np.float32)
        for first in range(0, len(texts), _BATCH_TEXTS):
            batch = texts[first : first + _BATCH_TEXTS]
            rows = _unit(_matrix(self._model(batch), len(batch), self.label))
            if first == 0:
                vectors = rows if len(batch) == len(texts) else np.empty((len(texts), rows.shape[1]), np.float32)
            _check_width(rows, vectors.shape[1], "some documents", "others", self.label)
            vectors[first : first + len(batch)] = rows
        return Embedded(vectors, self._model, {})

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of texts, of length 1 (or 0)."""
        embedded = base.checked_index(self._embedded, self.label)
        width = embedded.vectors.shape[1]
        if not texts:
            return np.zeros((0, width), np.float32)
        vectors = _matrix(embedded.embed(texts), len(texts), self.label)
        _check_width(vectors, width, "queries", "documents", self.label)
        return _unit(vectors)

    def model_vectors(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts as the model returns them, for documents indexed elsewhere; lsa needs an index."""
        model = self._model or base.checked_index(self._embedded, self.label).embed
        return _matrix(model(texts), len(texts), self.label).astype(np.float32)

    def _lists(self, documents: CheckedCorpus, queries: list[str], k: int) -> list[Ranked]:
        step = max(1, _BLOCK_BYTES // (4 * len(documents)))
        lists: list[Ranked] = []
        for first in range(0, len(queries), step):
            cosines = (self.embed(queries[first : first + step]) @ self.vectors.T).astype(np.float64)
            rounded = np.round(cosines, 6) + 0.0  # + 0.0 turns -0.0 into 0.0
            for row in rounded:
                unfiltered = best(documents.ids, row, k)
                if self._kept is None:
                    lists.append(unfiltered)
                    continue
                positions = np.flatnonzero(self._kept)
                chosen = positions[top_k(row[positions], k)]
                lists.append(Staged(ranked(documents.ids, chosen, row[chosen]), "filter", [("retrieve", unfiltered)]))
        return lists

    def settings(self) -> dict[str, Any]:
        return self._model_settings | describe_filter(self.filter, self.label)

    @cached_property
    def _model_settings(self) -> dict[str, Any]:
        model: Any = self.model
        if not isinstance(model, str):
            model = _digest(model) if isinstance(model, Mapping) else describe_callable(model)
        elif _is_target(model):
            model = identity_of(model, None)
        chosen: dict[str, Any] = {"retriever": "dense", "model": model}
        if self._model is None:
            chosen |= {"dimensions": self.dimensions, "tokenizer": describe_tokenizer(self.tokenizer)}
        if self._given_vectors is not None:
            chosen["vectors"] = _digest(self._given_vectors)
        return chosen

    def size_in_bytes(self) -> int:
        """The vectors of the documents, and the model of lsa."""
        embedded = self._embedded
        return 0 if embedded is None else sum(array.nbytes for array in (embedded.vectors, *embedded.arrays.values()))


def read_vectors(path: Path, key: str, label: str) -> Any:
    """Vectors of a file: the matrix of a .npy file, or a mapping of the columns `key` and vector of any other."""
    if not path.is_file():
        raise RetrieverError(f"{label}: there is no file {path.absolute()} of vectors.")
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_ndjson(path)
    except Exception as error:
        raise RetrieverError(f"{label}: {path} cannot be read: {error}") from None
    missing = [column for column in (key, "vector") if column not in frame.columns]
    if missing:
        problem = f"{label}: {path} has no column {missing[0]!r}; it has {', '.join(frame.columns)}."
        raise RetrieverError(f"{problem} Expected the columns {key} and vector.")
    return dict(zip(map(str, frame[key].to_list()), frame["vector"].to_list(), strict=True))


def _embedder(model: str | Embedder | Mapping[str, npt.ArrayLike], label: str, folder: str | Path | None) -> Embedder:
    if isinstance(model, str):
        if not _is_target(model):
            return embedding_model(model, label)
        return cast("Embedder", instantiated(load_target(model, label, folder), label))
    if isinstance(model, Mapping):

        def look_up(texts: Sequence[str]) -> npt.ArrayLike:
            for text in texts:
                if text not in model:
                    raise RetrieverError(f"{label}: the mapping in `model` has no vector for {text[:60]!r}.")
            return np.array([model[text] for text in texts])

        return look_up
    if callable(model):
        return model
    problem = f"{label}: the model is {kind_of(model)}; expected a name, a callable from"
    raise RetrieverError(f"{problem} texts to vectors, or a mapping of text to vector.")


def _matrix(vectors: Any, rows: int, label: str, what: str = "text") -> npt.NDArray[np.floating[Any]]:
    try:
        matrix = np.asarray(vectors)
        matrix = matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise RetrieverError(
            f"{label}: the vectors are not a matrix of numbers; expected one per {what}, all of one length."
        ) from None
    if matrix.ndim != 2 or len(matrix) != rows or matrix.shape[1] == 0:
        got = f"{counted(rows, 'text')} resulted in an array of shape {matrix.shape}"
        if what == "document":
            what += " in the order of the corpus"
            got = f"`vectors` has the shape {matrix.shape}, and the corpus {counted(rows, 'document')}"
        raise RetrieverError(f"{label}: {got}; expected one row per {what}, ({rows}, n).")
    for first, rows_of_block in _row_blocks(matrix):
        finite = np.isfinite(rows_of_block).all(axis=1)
        if not finite.all():
            bad = first + int(np.flatnonzero(~finite)[0])
            raise RetrieverError(f"{label}: the vector in row {bad} is not finite; expected finite numbers.")
    return matrix


def _check_width(vectors: npt.NDArray[Any], width: int, what: str, others: str, label: str) -> None:
    if vectors.shape[1] != width:
        problem = f"{label}: the vectors of {what} have {counted(vectors.shape[1], 'dimension')} and those"
        raise RetrieverError(f"{problem} of {others} have {width}; both must come from the same model.")


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
        unit[first : first + len(rows)] = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 1e-12)
    return unit


def _is_target(model: str) -> bool:
    """Whether the name of a model is `package.module:attribute`."""
    return ":" in model and not model.startswith("sentence-transformers:")


def _digest(vectors: Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> str:
    digest = sha256()
    if isinstance(vectors, Mapping):
        for key in sorted(vectors):
            digest.update(repr(key).encode("utf-8", "surrogatepass"))
            digest.update(np.asarray(vectors[key], np.float64).tobytes())
    else:
        for _, rows in _row_blocks(np.atleast_2d(np.asarray(vectors))):
            digest.update(rows.astype(np.float64).tobytes())
    return f"sha256:{digest.hexdigest()[:16]}"
