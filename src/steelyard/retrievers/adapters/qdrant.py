"""Qdrant: nearest neighbours, with the vectors of the corpus in memory or an existing collection."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from steelyard.retrievers.adapters.base import PASSES, DatabaseEngine, Kept
from steelyard.retrievers.base import CheckedCorpus
from steelyard.retrievers.dense import Dense
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import identity_of, instantiated, load_target, package

_OWN = "documents"  # The name of the collection of the corpus.
_BATCH = 512


class Qdrant(DatabaseEngine):
    """Nearest neighbours in Qdrant. The corpus is indexed in memory, where the search is exact."""

    retriever = extra = "qdrant"
    labelled_by = ("name", "collection")

    target: Any = setting(
        "a client, its URL, or `package.module:attribute`, with `collection`; nothing is written to it",
        default=None,
        kw_only=False,
    )
    embed: Any = setting("another name of `model`", default=None, key=None)
    collection: str | None = setting(default=None, only="target", needed=True)
    using: str | None = setting("the name of the vector, if a collection has several", default=None, only="target")
    ef_search: int | None = setting("candidates while it is searched (hnsw_ef)", default=None, low=1, only="target")
    exact: bool | None = setting("true for an exact search", default=None, only="target")
    where: Mapping[str, Any] | None = setting(
        "filter of Qdrant, as in {must: [{key: year, match: {value: 2020}}]}", default=None, only="target"
    )
    id: str = setting(
        "path to the id: `id` is the point's; `metadata.KEY` a key of its payload; or `hash`",
        default="id",
        only="target",
    )
    timeout: float = setting("seconds per request to a URL", default=30.0, low=1e-3, only="target")

    def _set_up(self) -> None:
        self._package = package("qdrant_client", self.extra, self.retriever)
        super()._set_up()
        models = self._package.models
        chosen = {"hnsw_ef": self.ef_search, "exact": self.exact}
        chosen = {key: value for key, value in chosen.items() if value is not None}
        self._search_parameters = models.SearchParams(**chosen) if chosen else None
        self._filter: Any = None
        if self.filter is not None:
            self._filter = models.Filter(must=[models.FieldCondition(key=PASSES, match=models.MatchValue(value=True))])
        elif self.where is not None:
            try:
                self._filter = models.Filter.model_validate(dict(self.where))
            except ValueError as error:
                raise self._error(f"`where` is not a filter of Qdrant: {error}") from None
        if self._existing and not self._is_url():
            self._client = instantiated(load_target(self.target, self.label, self.folder), self.label)

    def _target_identity(self) -> dict[str, Any]:
        return super()._target_identity() if self._is_url() else identity_of(self.target, self.version)

    def _vector_source(self) -> Dense | None:
        if self.embed is not None:
            if self.model is not None:
                raise self._error("it has `model` and `embed`, which mean the same; expected one.")
            self.model = self.embed
        return super()._vector_source()

    def _open(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It warns of a key without TLS, also for a server on this machine.
            return self._package.QdrantClient(
                url=self._address, api_key=self._key, timeout=max(1, round(self.timeout)), check_compatibility=False
            )

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        models = self._package.models
        client = self._package.QdrantClient(":memory:")
        shape = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
        client.create_collection(_OWN, vectors_config=shape)
        for first in range(0, len(documents), _BATCH):
            rows = range(first, min(first + _BATCH, len(documents)))
            passes = None if kept is None else [{PASSES: bool(kept[row])} for row in rows]
            batch = vectors[rows.start : rows.stop].tolist()
            client.upsert(_OWN, models.Batch(ids=list(rows), vectors=batch, payloads=passes))
        self._client, self._bytes = client, vectors.nbytes

    def _search(self, query: str, vector: Vectors, k: int) -> Any:
        points = self._client.query_points(
            self.collection or _OWN,
            query=vector.tolist(),
            using=self.using,
            query_filter=self._filter,
            search_params=self._search_parameters,
            limit=k,
            with_payload=self._existing,
        ).points
        return points if self._existing else [(point.id, point.score) for point in points]
