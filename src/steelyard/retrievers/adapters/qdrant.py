"""Qdrant: nearest neighbours of the vectors of a corpus in memory, or an existing collection."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.retrievers.adapters.engines import PASSES, Engine, Kept, opened, required, vector_source
from steelyard.retrievers.adapters.targets import identity_of, instantiated, load_target, package
from steelyard.retrievers.base import Documents, RetrieverError, number, whole
from steelyard.retrievers.filters import Filter
from steelyard.retrievers.shared_vectors import Vectors

_OWN = "documents"
_BATCH = 512


class Qdrant(Engine):
    """Nearest neighbours in Qdrant. The corpus is indexed in memory, where the search is exact.

    of: the dense retriever whose vectors are used, such as `dense`.
    model, vectors: instead of `of`, the model and the vectors as for `dense`; `embed` is another name of `model`.
    filter: as for `dense`.
    target: a client, its URL, or `package.module:attribute`, with `collection`; nothing is written to it.
    collection: the name of the collection, for a target.
    using: the name of the vector, if a collection has several.
    ef_search: candidates of the search (hnsw_ef), for a target.
    exact: true for an exact search, for a target.
    where: filter of Qdrant for a target, as in {must: [{key: year, match: {value: 2020}}]}.
    id: path to the id, for a target: `id` is the point's; `metadata.KEY` a key of its payload; or `hash`.
    api_key: for a URL; ${VARIABLE} is read from the environment.
    timeout: seconds per request to a URL.
    folder, version, name: as for `python`.
    """

    extra = "qdrant"

    def __init__(
        self,
        target: Any = None,
        embed: Any = None,
        collection: str | None = None,
        of: Any = None,
        model: Any = None,
        vectors: Any = None,
        filter: Filter | None = None,
        using: str | None = None,
        ef_search: int | None = None,
        exact: bool | None = None,
        where: Mapping[str, Any] | None = None,
        id: str = "id",
        api_key: str | None = None,
        timeout: float = 30.0,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or collection or "qdrant"
        self._package = package("qdrant_client", self.extra, "qdrant")
        if embed is not None and model is not None:
            raise RetrieverError(f"{label}: it has `model` and `embed`, which mean the same; expected one.")
        known: dict[str, Any] = {"retriever": "qdrant"}
        if target is not None:
            required(collection, "collection", "the name of the collection", label)
            url = isinstance(target, str) and "://" in target
            known |= {"target": target, "version": version} if url else identity_of(target, version)
            known |= {"collection": collection, "using": using, "where": where}
            known |= {"ef_search": ef_search, "exact": exact}
        source = vector_source(of, model if embed is None else embed, vectors, folder, label)
        super().__init__(label, target is not None, known, source, filter, id)
        self._collection = collection or _OWN
        self._using = using
        self._bytes = 0
        self._client: Any = None
        models = self._package.models
        if ef_search is not None:
            whole(label, "ef_search", ef_search, 1)
        chosen = {"hnsw_ef": ef_search, "exact": exact}
        chosen = {key: value for key, value in chosen.items() if value is not None}
        self._parameters = models.SearchParams(**chosen) if chosen else None
        self._where: Any = None
        if filter is not None:
            passes = models.FieldCondition(key=PASSES, match=models.MatchValue(value=True))
            self._where = models.Filter(must=[passes])
        elif where is not None:
            self._where = _filter(models, where, label)
        if isinstance(target, str) and "://" in target:
            key, address = opened([{"api_key": api_key}, target], label)
            seconds = max(1, round(number(label, "timeout", timeout, 0.001)))
            settings = {"url": address, "api_key": key["api_key"], "timeout": seconds}
            self._open = lambda: self._connected(settings)
        elif target is not None:
            self._client = instantiated(load_target(target, label, folder), label)

    def _connected(self, settings: Mapping[str, Any]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # It warns of a key without TLS, also for a server on this machine.
            return self._package.QdrantClient(**settings, check_compatibility=False)

    def size_in_bytes(self) -> int:
        """The vectors of the collection in memory."""
        return self._bytes + super().size_in_bytes()

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        assert vectors is not None
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

    def _search(self, query: str, vector: Vectors | None, k: int) -> Any:
        assert vector is not None
        if self._client is None:
            self._client = self._open()
        found = self._client.query_points(
            self._collection,
            query=vector.tolist(),
            using=self._using,
            query_filter=self._where,
            search_params=self._parameters,
            limit=k,
            with_payload=self._existing,
        ).points
        return found if self._existing else [(point.id, point.score) for point in found]


def _filter(models: Any, where: Mapping[str, Any], label: str) -> Any:
    try:
        return models.Filter.model_validate(dict(where))
    except ValueError as error:
        raise RetrieverError(f"{label}: `where` is not a filter of Qdrant: {error}") from None
