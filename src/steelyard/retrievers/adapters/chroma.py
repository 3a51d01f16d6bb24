"""Chroma: nearest neighbours of the vectors of a corpus in memory, or an existing collection."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from steelyard.retrievers.adapters.engines import (
    PASSES,
    Engine,
    Kept,
    chosen_kind,
    opened,
    required,
    vector_source,
)
from steelyard.retrievers.adapters.targets import identity_of, instantiated, load_target, package
from steelyard.retrievers.base import Documents, RetrieverError
from steelyard.retrievers.filters import Filter
from steelyard.retrievers.shared_vectors import Vectors

_KINDS = {"hnsw": {"m": 16, "ef_construction": 100, "ef_search": 100}}


class Chroma(Engine):
    """Approximate nearest neighbours (hnsw) in Chroma.

    m, ef_construction, ef_search: links per document, candidates while the index is built and while it is searched.
    of: the dense retriever whose vectors are used, such as `dense`.
    model, vectors: instead of `of`, the model and the vectors as for `dense`.
    filter: as for `dense`.
    target: a client, the URL of a server, the folder of an existing database, or `package.module:attribute`, with
        `collection`; nothing is written to it.
    collection: the name of the collection, for a target.
    where: filter of Chroma for a target, as in {year: 2020}.
    id: path to the id, for a target: `id` is Chroma's; `metadata.KEY` a key of its metadata; or `hash`.
    api_key: for a URL; ${VARIABLE} is read from the environment.
    folder, version, name: as for `python`.

    Scores are cosines for the corpus, and minus the distance for a target.
    """

    extra = "chroma"

    def __init__(
        self,
        target: Any = None,
        m: int | None = None,
        ef_construction: int | None = None,
        ef_search: int | None = None,
        of: Any = None,
        model: Any = None,
        vectors: Any = None,
        filter: Filter | None = None,
        collection: str | None = None,
        where: Mapping[str, Any] | None = None,
        id: str = "id",
        api_key: str | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or collection or "chroma"
        self._package = package("chromadb", self.extra, "chroma")
        given = {"m": m, "ef_construction": ef_construction, "ef_search": ef_search}
        known: dict[str, Any] = {"retriever": "chroma", "package": self._package.__version__}
        if target is None:
            self._parameters = chosen_kind("hnsw", _KINDS, given, label)
            known |= self._parameters
        else:
            required(collection, "collection", "the name of the collection", label)
            identity = (
                {"target": target, "version": version}
                if isinstance(target, str)
                else identity_of(target, version)
            )
            known |= {**identity, "collection": collection, "where": where}
        source = vector_source(of, model, vectors, folder, label)
        super().__init__(label, target is not None, known, source, filter, id)
        self._collection: Any = None
        self._where = {PASSES: True} if filter is not None else dict(where) if where else None
        self._bytes = 0
        if target is not None:
            key = opened({"api_key": api_key}, label)["api_key"]
            address = opened(target, label) if isinstance(target, str) else target
            self._open = lambda: self._client(address, key, folder).get_collection(
                collection, embedding_function=None
            )

    def size_in_bytes(self) -> int:
        """The vectors of the corpus; the memory of the graph is not known."""
        return self._bytes + super().size_in_bytes()

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        assert vectors is not None
        client = self._package.EphemeralClient(self._settings_of_client())
        chosen = self._parameters
        name = f"steelyard-{uuid4().hex}"
        collection = client.create_collection(
            name,
            embedding_function=None,
            configuration={
                "hnsw": {
                    "space": "cosine",
                    "max_neighbors": chosen["m"],
                    "ef_construction": chosen["ef_construction"],
                    "ef_search": chosen["ef_search"],
                }
            },
        )
        weakref.finalize(self, client.delete_collection, name)
        step = client.get_max_batch_size()
        for first in range(0, len(documents), step):
            rows = range(first, min(first + step, len(documents)))
            passes = None if kept is None else [{PASSES: bool(kept[row])} for row in rows]
            collection.add(
                ids=list(map(str, rows)), embeddings=vectors[rows.start : rows.stop], metadatas=passes
            )
        self._collection, self._bytes = collection, vectors.nbytes

    def _search(self, query: str, vector: Vectors | None, k: int) -> Any:
        assert vector is not None
        if self._collection is None:
            self._collection = self._open()
        wanted = ["distances", "metadatas", "documents"] if self._existing else ["distances"]
        found = self._collection.query(
            query_embeddings=vector[None, :], n_results=k, where=self._where, include=wanted
        )
        if not self._existing:
            return [
                (int(position), 1 - distance)
                for position, distance in zip(found["ids"][0], found["distances"][0], strict=True)
            ]
        return found

    def _client(self, target: Any, key: str | None, folder: str | Path | None) -> Any:
        """The client of a target."""
        if not isinstance(target, str):
            return target
        if "://" in target:
            address = urlsplit(target)
            return self._package.HttpClient(
                host=address.hostname,
                port=address.port or (443 if address.scheme == "https" else 8000),
                ssl=address.scheme == "https",
                headers={"Authorization": f"Bearer {key}"} if key else {},
                settings=self._settings_of_client(),
            )
        path = Path(folder or ".") / target
        if path.is_dir():
            return self._package.PersistentClient(str(path), self._settings_of_client())
        if ":" in target:
            return instantiated(load_target(target, self.label, folder), self.label)
        raise RetrieverError(f"{self.label}: there is no database in {path}.")

    def _settings_of_client(self) -> Any:
        return self._package.config.Settings(anonymized_telemetry=False)
