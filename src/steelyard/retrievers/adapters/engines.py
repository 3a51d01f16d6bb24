"""The common parts of search engines: the corpus is indexed in them, or an existing collection is searched."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from steelyard.errors import SteelyardError
from steelyard.masking import from_environment, masked, remember_settings
from steelyard.retrievers.adapters.base import Wrapped
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.base import (
    Documents,
    Ranked,
    RetrieverError,
    checked_corpus,
    checked_index,
    unknown,
    whole,
)
from steelyard.retrievers.dense import Dense
from steelyard.retrievers.filters import Filter, describe_filter, passing
from steelyard.retrievers.registry import from_spec
from steelyard.retrievers.shared_vectors import Vectors
from steelyard.safe_text import error_text

if TYPE_CHECKING:
    from typing_extensions import Self

PASSES = "passes"
"""The field of an index that holds whether a document passes the filter."""

Kept = npt.NDArray[np.bool_]


class Engine(Wrapped):
    """A search engine. A subclass has `_build`, which indexes the corpus, and `_search`, which answers one query.

    Own documents are known to the engine by their positions. If `existing`, a collection is searched and nothing is
    written to it.
    """

    def __init__(
        self,
        label: str,
        existing: bool,
        settings: Mapping[str, Any],
        source: Dense | None = None,
        filter: Filter | None = None,
        id: str = "id",
        score: str = "score",
    ) -> None:
        self._existing = existing
        self._source = source
        self._filter = filter
        self._row_ids: list[str] | None = None
        self._open: Callable[[], Any]
        known = dict(settings)
        if source is not None:
            known["of"] = {key: value for key, value in source.settings().items() if key != "filter"}
        if existing and filter is not None:
            raise RetrieverError(
                f"{label}: `filter` selects documents of the corpus; use `where` for an existing collection."
            )
        super().__init__(label, DocIds(id, label), known | describe_filter(filter, label), score)

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index the corpus; an existing collection is left as it is."""
        if self._existing:
            if self._source is not None and self._source.model == "lsa":
                self._source.index(corpus)
            return super().index(corpus)
        documents = checked_corpus(corpus, self.label)
        vectors = None if self._source is None else self._source.index(corpus).vectors
        self._build(documents, vectors, passing(corpus, documents.ids, self._filter, self.label))
        self._row_ids = documents.ids
        return self

    def read(self, queries: Sequence[str], answers: Sequence[Any], k: int) -> list[Ranked]:
        """The results of `ask`; of own documents, pairs of a position and a score."""
        ids = self._row_ids
        if ids is None:
            return super().read(queries, answers, k)
        return [[(ids[position], float(score)) for position, score in answer] for answer in answers]

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on, as far as it is known."""
        return super().settings() if self._existing else dict(self._settings)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        if not self._existing:
            checked_index(self._row_ids, self.label)
        if self._source is None:
            return [self._answer(query, None, k) for query in queries]
        vectors = self._source.model_vectors(queries) if self._existing else self._source.embed(queries)
        return [self._answer(query, vector, k) for query, vector in zip(queries, vectors, strict=True)]

    def _answer(self, query: str, vector: Vectors | None, k: int) -> Any:
        """The answer of `_search`; the error of an existing collection has its target."""
        try:
            return self._search(query, vector, k)
        except SteelyardError:
            raise
        except Exception as error:
            if not self._existing:
                raise
            raise RetrieverError(
                masked(f"{self.label}: {self._settings.get('target')}: {error_text(error)}")
            ) from error

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        """Index the documents by their positions; `kept` tells which of them the filter keeps."""
        raise NotImplementedError

    def _search(self, query: str, vector: Vectors | None, k: int) -> Any:
        """The best k (position, score) pairs of own documents, or the answer of an existing collection."""
        raise NotImplementedError


def vector_source(of: Any, model: Any, vectors: Any, folder: str | Path | None, label: str) -> Dense:
    """The embeddings of an engine: those of another dense retriever (`of`), of a model, or of a file.

    >>> vector_source(None, None, None, None, "faiss").settings()["model"]
    'lsa'
    """
    if of is None:
        return Dense(model="lsa" if model is None else model, vectors=vectors, folder=folder, name=label)
    if model is not None or vectors is not None:
        raise RetrieverError(f"{label}: it has `of` and also `model` or `vectors`; expected one of them.")
    found = from_spec(of)
    if not isinstance(found, Dense):
        raise RetrieverError(
            f"{label}: `of` is {found.label}, which has no vectors; expected a dense retriever."
        )
    return found


def chosen_kind(
    kind: str, known: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any], label: str
) -> dict[str, int]:
    """The parameters of a kind of index, as whole numbers: those that are given, and the defaults of the others.

    known: the parameters of every kind with their defaults. A parameter of another kind is an error.

    >>> chosen_kind("ivf", {"flat": {}, "ivf": {"lists": 10, "probes": 4}}, {"lists": None, "probes": 8}, "faiss")
    {'lists': 10, 'probes': 8}
    """
    if kind not in known:
        raise unknown(label, "kind", kind, known)
    for name, value in given.items():
        if value is not None and name not in known[kind]:
            kinds = [each for each in known if name in known[each]]
            raise RetrieverError(
                f"{label}: an index of kind {kind} has no `{name}`; that is a parameter of {' and '.join(kinds)}."
            )
    return {
        name: whole(label, name, default if given.get(name) is None else given[name], 1)
        for name, default in known[kind].items()
    }


def required(value: str | None, setting: str, what: str, label: str) -> str:
    """A setting that a target needs; an error that says what it names if it is missing."""
    if value is None:
        raise RetrieverError(f"{label}: a target needs `{setting}`, {what} to search.")
    return value


def opened(value: Any, label: str) -> Any:
    """A setting with a URL or a key, after ${VARIABLE} is read from the environment; secrets are kept out of messages."""
    remember_settings(value)
    return from_environment(value, label, RetrieverError)


def temporary_folder(owner: object, name: str) -> Path:
    """A new folder that is removed with its owner."""
    folder = Path(tempfile.mkdtemp(prefix=f"steelyard-{name}-"))
    weakref.finalize(owner, shutil.rmtree, folder, True)
    return folder


def folder_bytes(folder: Path | None) -> int:
    """The size of the files of a folder; 0 without one."""
    return 0 if folder is None else sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
