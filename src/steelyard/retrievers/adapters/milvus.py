"""Milvus: nearest neighbours of the vectors of a corpus in Milvus Lite, or an existing collection."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from steelyard.retrievers.adapters.engines import (
    PASSES,
    Engine,
    Kept,
    chosen_kind,
    folder_bytes,
    opened,
    required,
    temporary_folder,
    vector_source,
)
from steelyard.retrievers.adapters.targets import package
from steelyard.retrievers.base import Documents, RetrieverError
from steelyard.retrievers.filters import Filter
from steelyard.retrievers.shared_vectors import Vectors

_KINDS: dict[str, dict[str, int]] = {
    "flat": {},
    "ivf": {"probes": 8},
    "hnsw": {"m": 16, "ef_construction": 100, "ef_search": 100},
}
_BATCH = 2048


class Milvus(Engine):
    """Nearest neighbours in Milvus: exact (flat) or approximate (hnsw, ivf). The corpus is indexed in Milvus Lite.

    kind: `flat`, `hnsw` or `ivf`.
    m, ef_construction, ef_search: of hnsw; links per document, candidates while it is built and while it is searched.
    probes: of ivf; the number of lists that are searched, of the 128 that Milvus Lite makes.
    of: the dense retriever whose vectors are used, such as `dense`.
    model, vectors: instead of `of`, the model and the vectors as for `dense`.
    filter: as for `dense`.
    target: the URI of a server, or the file of Milvus Lite, with `collection`; nothing is written to it.
    collection: the name of the collection, for a target.
    column: its field of vectors, if it has several.
    where: filter of Milvus for a target, as in 'year == 2020'.
    id: path to the id, for a target: `id` is the primary key; `entity.KEY` another field.
    api_key: for a server: the token, or user:password; ${VARIABLE} is read from the environment.
    timeout: seconds per request to a target.
    folder, version, name: as for `python`.

    Scores are cosines for the corpus, and what Milvus returns for a target; its distances L2 and Hamming are made
    negative.
    """

    extra = "milvus"

    def __init__(
        self,
        target: str | Path | None = None,
        kind: str = "flat",
        m: int | None = None,
        ef_construction: int | None = None,
        ef_search: int | None = None,
        probes: int | None = None,
        of: Any = None,
        model: Any = None,
        vectors: Any = None,
        filter: Filter | None = None,
        collection: str | None = None,
        column: str | None = None,
        where: str | None = None,
        id: str = "id",
        api_key: str | None = None,
        timeout: float = 30.0,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or collection or "milvus"
        # Its errors are raised; it would also print each of them, with a traceback.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        self._package = package("pymilvus", self.extra, "milvus")
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        given = {
            "m": m,
            "ef_construction": ef_construction,
            "ef_search": ef_search,
            "probes": probes,
        }
        self._kind = kind
        self._parameters = chosen_kind(kind, _KINDS, given, label)
        known: dict[str, Any] = {
            "retriever": "milvus",
            "package": self._package.__version__,
            "kind": kind,
            **self._parameters,
        }
        if target is None:
            package("milvus_lite", self.extra, "milvus")
        else:
            required(collection, "collection", "the name of the collection", label)
            known |= {
                "target": str(target),
                "collection": collection,
                "column": column,
                "where": where,
                "version": version,
            }
        source = vector_source(of, model, vectors, folder, label)
        super().__init__(
            label,
            target is not None,
            known,
            source,
            filter,
            id,
            "distance" if target is not None else "score",
        )
        self._where = f"{PASSES} == true" if filter is not None else where or ""
        self._column = column
        self._collection = collection or "documents"
        self._timeout = timeout
        self._folder: Path | None = None
        self._client: Any = None
        if target is not None:
            key, address = opened([{"api_key": api_key}, str(target)], label)
            address = address if "://" in address else str(Path(folder or ".") / address)
            if "://" not in address and not Path(address).exists():
                raise RetrieverError(f"{label}: there is no database {address}.")
            token = key["api_key"] or ""
            self._open = lambda: self._package.MilvusClient(address, token=token, timeout=timeout)

    def size_in_bytes(self) -> int:
        """The files of Milvus Lite."""
        return folder_bytes(self._folder)

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        assert vectors is not None
        self._folder = temporary_folder(self, "milvus")
        client = self._package.MilvusClient(str(self._folder / "corpus.db"))
        types = self._package.DataType
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("position", types.INT64, is_primary=True)
        schema.add_field(PASSES, types.BOOL)
        schema.add_field("vector", types.FLOAT_VECTOR, dim=vectors.shape[1])
        names = {"m": "M", "ef_construction": "efConstruction"}
        index = client.prepare_index_params()
        index.add_index(
            "vector",
            index_type={"flat": "FLAT", "ivf": "IVF_FLAT", "hnsw": "HNSW"}[self._kind],
            metric_type="COSINE",
            params={names[key]: value for key, value in self._parameters.items() if key in names},
        )
        client.create_collection(self._collection, schema=schema, index_params=index)
        for first in range(0, len(documents), _BATCH):
            rows = range(first, min(first + _BATCH, len(documents)))
            client.insert(
                self._collection,
                [
                    {"position": row, PASSES: kept is None or bool(kept[row]), "vector": vectors[row]}
                    for row in rows
                ],
            )
        client.flush(self._collection)
        client.load_collection(self._collection)
        self._client = client

    def _search(self, query: str, vector: Vectors | None, k: int) -> Any:
        assert vector is not None
        if self._client is None:
            self._client = self._open()
        more: dict[str, Any] = {"output_fields": ["*"], "timeout": self._timeout} if self._existing else {}
        if self._column is not None:
            more["anns_field"] = self._column
        found = self._client.search(
            self._collection,
            data=[vector],
            limit=k,
            filter=self._where,
            search_params={"params": self._search_parameters()},
            **more,
        )[0]
        return found if self._existing else [(hit["position"], hit["distance"]) for hit in found]

    def _search_parameters(self) -> dict[str, int]:
        names = {"ef_search": "ef", "probes": "nprobe"}
        return {names[key]: value for key, value in self._parameters.items() if key in names}
