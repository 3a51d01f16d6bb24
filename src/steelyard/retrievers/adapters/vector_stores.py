"""Vector databases: Chroma, LanceDB, Milvus and Qdrant, with the vectors of the corpus or an existing collection."""

from __future__ import annotations

import logging
import os
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import uuid4

from steelyard.retrievers.adapters.base import PASSES, Kept, VectorEngine, private_copy
from steelyard.retrievers.base import CheckedCorpus
from steelyard.retrievers.dense import Dense
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import identity_of, instantiated, load_target, package
from steelyard.temporary import temporary_folder

_OWN = "documents"  # The name of the collection of the corpus.
_CLASSES = {"ivf-flat": "IvfFlat", "ivf-pq": "IvfPq", "hnsw": "HnswFlat"}  # Those of LanceDB.
_BATCH = 2048


class _Database(VectorEngine):
    """A vector database whose target has an address, a client, or a name of one."""

    api_key: str | None = setting(default=None, only="target")

    def _set_up(self) -> None:
        if self._existing:
            secrets, self._address = self._opened([{"api_key": self.api_key}, self.target])
            self._key = secrets["api_key"]
        super()._set_up()

    def _is_url(self) -> bool:
        return isinstance(self._address, str) and "://" in self._address


class Chroma(_Database):
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
        self._client_settings = self._package.config.Settings(anonymized_telemetry=False)

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        client = self._package.EphemeralClient(self._client_settings)
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
                settings=self._client_settings,
            )
        if ":" in target and not (Path(self.folder or ".") / target).is_dir():
            return instantiated(load_target(target, self.label, self.folder), self.label)
        # Chroma writes to its files whenever a collection is opened and searched, and has no way to only read them.
        copy = private_copy(self._path("database in", target), self)
        return self._package.PersistentClient(str(copy), self._client_settings)


class LanceDB(_Database):
    """Vector, full-text or hybrid search in LanceDB.

    Scores are cosines for vectors (for a target minus the distance), BM25 for text, RRF for both. Filters apply first.
    """

    retriever = extra = "lancedb"
    module = "lancedb"
    selects_texts = True

    target: str | Path | None = setting(
        "the folder or the URI of an existing database, with `table`; nothing is written to it",
        default=None,
        kw_only=False,
    )
    search: Literal["vector", "text", "hybrid"] = setting(
        "by vectors, by words (BM25), or both, fused by RRF", default="vector"
    )
    kind: Literal["flat", "ivf-flat", "ivf-pq", "hnsw"] = setting(
        "the index of the vectors, flat is exact", default="flat", key=None
    )
    lists: int = setting(default=64, low=1, kinds=("ivf-flat", "ivf-pq"), key=None)
    probes: int = setting(default=20, low=1, kinds=("ivf-flat", "ivf-pq"), key=None)
    m: int = setting(default=20, low=1, kinds=("hnsw",), key=None)
    ef_construction: int = setting(default=300, low=1, kinds=("hnsw",), key=None)
    ef_search: int = setting(default=150, low=1, kinds=("hnsw",), key=None)
    table: str | None = setting("the name of the table", default=None, only="target", needed=True)
    column: str | None = setting("the column of vectors, or of text if search is text", default=None, only="target")
    where: str | None = setting("filter of LanceDB, in SQL", default=None, only="target")
    id: str = setting(default="id", only="target")

    def _label(self) -> str:
        by_search = self.retriever if self.search == "vector" else f"{self.retriever}-{self.search}"
        return str(self.name or self.table or by_search)

    def _set_up(self) -> None:
        os.environ.setdefault("LANCE_LOG", "error")
        super()._set_up()
        self._condition = PASSES if self.filter is not None else self.where
        if self._existing and not self._is_url():
            self._address = str(self._path("database in", self._address))

    def _vector_source(self) -> Dense | None:
        return None if self.search == "text" else super()._vector_source()

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on; for a target, the kind only if it is chosen."""
        chosen = {"kind": self.kind, **self._parameters}
        return super().settings() | (chosen if self.kind != "flat" or not self._existing else {})

    def _open(self) -> Any:
        remote = {"api_key": self._key} if self._key else {}
        return self._package.connect(self._address, **remote).open_table(self.table)

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        import pyarrow as pa

        columns: dict[str, Any] = {"position": pa.array(range(len(documents)), pa.int64())}
        if self.search != "vector":
            columns["text"] = documents.texts
        if self._source is not None:
            columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        if kept is not None:
            columns[PASSES] = kept
        self._folder = temporary_folder("lancedb", self)
        table = self._package.connect(str(self._folder)).create_table("documents", pa.table(columns))
        indexes = self._package.index
        if "text" in columns:
            table.create_index("text", config=indexes.FTS())
        if self._source is not None and self.kind != "flat":
            chosen = self._parameters
            sizes: dict[str, int] = {key: chosen[key] for key in ("m", "ef_construction") if key in chosen}
            sizes["num_partitions"] = min(chosen.get("lists", 1), len(documents))
            config = getattr(indexes, _CLASSES[self.kind])(distance_type="cosine", **sizes)
            try:
                table.create_index("vector", config=config)
            except Exception as error:
                raise self._error(
                    f"LanceDB cannot make an index {self.kind} of {len(documents)} documents: {error}"
                ) from None
        self._client = table

    def _search(self, query: str, vector: Vectors, k: int) -> list[Any]:
        asked = self._request(query, vector).limit(k)
        if self._condition is not None:
            asked = asked.where(self._condition, **({} if self.search == "text" else {"prefilter": True}))
        text = self._text_column(self._client.schema.names) if self._existing else None
        column = self._id_column(text) if self._existing else "position"
        rows = asked.to_list()
        if text is None or "." in column:
            return [(row[column], self._score_of(row)) for row in rows]
        return [{column: row[column], "score": self._score_of(row), "text": row.get(text)} for row in rows]

    def _request(self, query: str, vector: Vectors) -> Any:
        if self.search == "text":
            columns = {"fts_columns": self.column} if self.column else {}
            return self._client.search(query, query_type="fts", **columns)
        columns = {"vector_column_name": self.column} if self.column else {}
        if self.search == "hybrid":
            asked = self._client.search(query_type="hybrid", **columns).vector(vector).text(query)
        else:
            asked = self._client.search(vector, **columns)
        if not self._existing:
            asked = asked.distance_type("cosine")
        if "probes" in self._parameters:
            asked = asked.nprobes(self._parameters["probes"])
        if "ef_search" in self._parameters:
            asked = asked.ef(self._parameters["ef_search"])
        return asked.rerank(self._package.rerankers.RRFReranker()) if self.search == "hybrid" else asked

    def _score_of(self, row: dict[str, Any]) -> float:
        if "_distance" in row and self.search == "vector":
            return float((0 if self._existing else 1) - row["_distance"])
        return float(row["_score"] if self.search == "text" else row["_relevance_score"])


class Milvus(_Database):
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


class Qdrant(_Database):
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
