"""Milvus: nearest neighbours, with the vectors of the corpus in Milvus Lite or an existing collection."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Literal

from steelyard.retrievers.adapters.base import PASSES, DatabaseEngine, Kept, private_copy
from steelyard.retrievers.base import CheckedCorpus
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import package
from steelyard.temporary import temporary_folder

_OWN = "documents"  # The name of the collection of the corpus.
_BATCH = 2048


class Milvus(DatabaseEngine):
    """Nearest neighbours in Milvus: exact (flat) or approximate (hnsw, ivf). The corpus is indexed in Milvus Lite.

    Scores are cosines for the corpus, and what Milvus returns for a target; its distances (L2, Hamming) are negated.
    """

    retriever = extra = "milvus"
    module = "pymilvus"
    labelled_by = ("name", "collection")

    target: str | Path | None = setting(
        "the URI of a server, or the file of Milvus Lite, with `collection`; nothing is written to it",
        default=None,
        kw_only=False,
    )
    kind: Literal["flat", "ivf", "hnsw"] = setting("the index of the vectors, flat is exact", default="flat")
    m: int = setting(default=16, low=1, kinds=("hnsw",))
    ef_construction: int = setting(default=100, low=1, kinds=("hnsw",))
    ef_search: int = setting(default=100, low=1, kinds=("hnsw",))
    probes: int = setting(
        "the number of lists that are searched, of the 128 that Milvus Lite makes", default=8, low=1, kinds=("ivf",)
    )
    collection: str | None = setting(default=None, only="target", needed=True)
    column: str | None = setting("the field of vectors, if it has several", default=None, only="target")
    where: str | None = setting("filter of Milvus, as in 'year == 2020'", default=None, only="target")
    id: str = setting(
        "path to the id: `id` is the primary key; `entity.KEY` another field", default="id", only="target"
    )
    api_key: str | None = setting(
        "the key of a server, a token or user:password; ${VARIABLE} is read from the environment",
        default=None,
        only="target",
    )
    timeout: float = setting("seconds per request", default=30.0, low=1e-3, only="target")

    def _set_up(self) -> None:
        # Its errors are raised; it would also print each of them, with a traceback.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        # Its handlers of forks can crash the process that PostgreSQL is started from while Milvus is at work.
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
        super()._set_up()
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        self._filter = f"{PASSES} == true" if self.filter is not None else self.where or ""
        if not self._existing:
            package("milvus_lite", self.extra, self.retriever)
            return
        self.score_path = "distance"
        if not self._is_url():
            self._path("database", self._address)

    def _open(self) -> Any:
        if self._is_url():
            return self._package.MilvusClient(self._address, token=self._key or "", timeout=self.timeout)
        # Milvus Lite writes to its files and locks them, and a collection has to be loaded before it is searched.
        client = self._package.MilvusClient(str(private_copy(self._path("database", self._address), self)))
        client.load_collection(self.collection)
        return client

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        self._folder = temporary_folder("milvus", self)
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
            index_type={"flat": "FLAT", "ivf": "IVF_FLAT", "hnsw": "HNSW"}[self.kind],
            metric_type="COSINE",
            params={names[key]: value for key, value in self._parameters.items() if key in names},
        )
        client.create_collection(_OWN, schema=schema, index_params=index)
        for first in range(0, len(documents), _BATCH):
            rows = range(first, min(first + _BATCH, len(documents)))
            client.insert(
                _OWN,
                [{"position": row, PASSES: kept is None or bool(kept[row]), "vector": vectors[row]} for row in rows],
            )
        client.flush(_OWN)
        client.load_collection(_OWN)
        self._client = client

    def _search(self, query: str, vector: Vectors, k: int) -> Any:
        names = {"ef_search": "ef", "probes": "nprobe"}
        more: dict[str, Any] = {"output_fields": ["*"], "timeout": self.timeout} if self._existing else {}
        if self.column is not None:
            more["anns_field"] = self.column
        hits = self._client.search(
            self.collection or _OWN,
            data=[vector],
            limit=k,
            filter=self._filter,
            search_params={"params": {names[key]: value for key, value in self._parameters.items() if key in names}},
            **more,
        )[0]
        return hits if self._existing else [(hit["position"], hit["distance"]) for hit in hits]
