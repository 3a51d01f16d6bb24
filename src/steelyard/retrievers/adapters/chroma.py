"""Chroma: approximate nearest neighbours, with the vectors of the corpus or an existing collection."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from steelyard.retrievers.adapters.base import PASSES, DatabaseEngine, Kept, private_copy
from steelyard.retrievers.base import CheckedCorpus
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import instantiated, load_target


class Chroma(DatabaseEngine):
    """Approximate nearest neighbours (hnsw) in Chroma.

    Scores are cosines for the corpus, and minus the distance for a target. Without `model`, a target is searched by the
    embedding function of its collection.
    """

    retriever = extra = "chroma"
    module = "chromadb"
    labelled_by = ("name", "collection")
    embeds_queries = True

    target: Any = setting(
        "a client, the URL of a server, the folder of an existing database, or `package.module:attribute`, with "
        "`collection`; nothing is written to it",
        default=None,
        kw_only=False,
    )
    m: int = setting(default=16, low=1, only="corpus")
    ef_construction: int = setting(default=100, low=1, only="corpus")
    ef_search: int = setting(default=100, low=1, only="corpus")
    collection: str | None = setting(default=None, only="target", needed=True)
    where: Mapping[str, Any] | None = setting("filter of Chroma, as in {year: 2020}", default=None, only="target")
    id: str = setting(
        "path to the id: `id` is Chroma's; `metadata.KEY` a key of its metadata; or `hash`", default="id", only="target"
    )

    def _set_up(self) -> None:
        super()._set_up()
        self._filter = {PASSES: True} if self.filter is not None else dict(self.where) if self.where else None

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        client = self._package.EphemeralClient(self._new_settings())
        name = f"steelyard-{uuid4().hex}"
        graph = {"max_neighbors": self.m, "ef_construction": self.ef_construction, "ef_search": self.ef_search}
        shape = {"hnsw": {"space": "cosine", **graph}}
        collection = client.create_collection(name, embedding_function=None, configuration=shape)
        weakref.finalize(self, client.delete_collection, name)
        step = client.get_max_batch_size()
        for first in range(0, len(documents), step):
            rows = range(first, min(first + step, len(documents)))
            passes = None if kept is None else [{PASSES: bool(kept[row])} for row in rows]
            collection.add(ids=list(map(str, rows)), embeddings=vectors[rows.start : rows.stop], metadatas=passes)
        self._client, self._bytes = collection, vectors.nbytes

    def _search(self, query: str, vector: Vectors, k: int) -> Any:
        wanted = ["distances", "metadatas", "documents"] if self._existing else ["distances"]
        asked = {"query_texts": [query]} if self._source is None else {"query_embeddings": vector[None, :]}
        answer = self._client.query(**asked, n_results=k, where=self._filter, include=wanted)
        if self._existing:
            return answer
        pairs = zip(answer["ids"][0], answer["distances"][0], strict=True)
        return [(int(position), 1 - distance) for position, distance in pairs]

    def _open(self) -> Any:
        client = self._target_client()
        if self._source is not None:
            return client.get_collection(self.collection, embedding_function=None)
        collection = client.get_collection(self.collection)
        if collection.configuration.get("embedding_function") is None:
            problem = "the collection has no embedding function of its own;"
            raise self._error(f"{problem} set `model`, the model that made its vectors.")
        return collection

    def _target_client(self) -> Any:
        target = self._address
        if not isinstance(target, str):
            return target
        if self._is_url():
            address = urlsplit(target)
            return self._package.HttpClient(
                host=address.hostname,
                port=address.port or (443 if address.scheme == "https" else 8000),
                ssl=address.scheme == "https",
                headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
                settings=self._new_settings(),
            )
        if ":" in target and not (Path(self.folder or ".") / target).is_dir():
            return instantiated(load_target(target, self.label, self.folder), self.label)
        # Chroma writes to its files whenever a collection is opened and searched, and has no way to only read them.
        copy = private_copy(self._path("database in", target), self)
        return self._package.PersistentClient(str(copy), self._new_settings())

    def _new_settings(self) -> Any:
        """Settings for one client: each client writes its address, or its folder, into those that it is given."""
        return self._package.config.Settings(anonymized_telemetry=False)
