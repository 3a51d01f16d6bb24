"""LanceDB: vector, full-text and hybrid search of the corpus, or of an existing table."""

from __future__ import annotations

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
from steelyard.retrievers.base import Documents, RetrieverError, unknown
from steelyard.retrievers.filters import Filter
from steelyard.retrievers.shared_vectors import Vectors

_KINDS: dict[str, dict[str, int]] = {
    "flat": {},
    "ivf-flat": {"lists": 64, "probes": 20},
    "ivf-pq": {"lists": 64, "probes": 20},
    "hnsw": {"m": 20, "ef_construction": 300, "ef_search": 150},
}
_CLASSES = {"ivf-flat": "IvfFlat", "ivf-pq": "IvfPq", "hnsw": "HnswFlat"}
_SEARCHES = ("vector", "text", "hybrid")


class LanceDB(Engine):
    """Vector, full-text or hybrid search in LanceDB.

    search: `vector`, `text` (BM25) or `hybrid` (both, fused by RRF).
    kind: the index of the vectors: `flat` (exact), `ivf-flat`, `ivf-pq` or `hnsw`.
    lists, probes: of ivf-flat and ivf-pq; the number of lists, and of lists that are searched.
    m, ef_construction, ef_search: of hnsw; links per document, candidates while it is built and while it is searched.
    of: the dense retriever whose vectors are used, such as `dense`.
    model, vectors: instead of `of`, the model and the vectors as for `dense`.
    filter: as for `dense`; it is applied before the search.
    target: the folder or the URI of an existing database, with `table`; nothing is written to it.
    table: the name of the table, for a target.
    column: its column of vectors, or of text if search is text.
    where: filter of LanceDB for a target, in SQL.
    id: its column with the document id.
    api_key: for a URI; ${VARIABLE} is read from the environment.
    folder, version, name: as for `python`.

    Scores are cosines for vectors (for a target minus the distance), BM25 for text, and RRF for both.
    """

    extra = "lancedb"

    def __init__(
        self,
        target: str | Path | None = None,
        search: str = "vector",
        kind: str = "flat",
        lists: int | None = None,
        probes: int | None = None,
        m: int | None = None,
        ef_construction: int | None = None,
        ef_search: int | None = None,
        of: Any = None,
        model: Any = None,
        vectors: Any = None,
        filter: Filter | None = None,
        table: str | None = None,
        column: str | None = None,
        where: str | None = None,
        id: str = "id",
        api_key: str | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or table or ("lancedb" if search == "vector" else f"lancedb-{search}")
        os.environ.setdefault("LANCE_LOG", "error")
        self._package = package("lancedb", self.extra, "lancedb")
        if search not in _SEARCHES:
            raise unknown(label, "search", search, _SEARCHES)
        self._search_type = search
        given = {
            "lists": lists,
            "probes": probes,
            "m": m,
            "ef_construction": ef_construction,
            "ef_search": ef_search,
        }
        self._kind = kind
        self._parameters = chosen_kind(kind, _KINDS, given, label)
        known: dict[str, Any] = {
            "retriever": "lancedb",
            "package": self._package.__version__,
            "search": search,
        }
        if target is None:
            known |= {"kind": kind, **self._parameters}
        else:
            required(table, "table", "the name of the table", label)
            known |= {
                "target": str(target),
                "table": table,
                "column": column,
                "where": where,
                "version": version,
            }
        source = None if search == "text" else vector_source(of, model, vectors, folder, label)
        super().__init__(label, target is not None, known, source, filter, id)
        self._where = PASSES if filter is not None else where
        self._column = column
        self._folder: Path | None = None
        self._table: Any = None
        self._id = id if target is not None else "position"
        if target is not None:
            key, address = opened([{"api_key": api_key}, str(target)], label)
            address = address if "://" in address else str(Path(folder or ".") / address)
            if "://" not in address and not Path(address).is_dir():
                raise RetrieverError(f"{label}: there is no database in {address}.")
            remote = {"api_key": key["api_key"]} if key["api_key"] else {}
            self._open = lambda: self._package.connect(address, **remote).open_table(table)

    def size_in_bytes(self) -> int:
        """The files of the table."""
        return folder_bytes(self._folder)

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        import pyarrow as pa

        columns: dict[str, Any] = {"position": pa.array(range(len(documents)), pa.int64())}
        if self._search_type != "vector":
            columns["text"] = documents.texts
        if vectors is not None:
            columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        if kept is not None:
            columns[PASSES] = kept
        self._folder = temporary_folder(self, "lancedb")
        table = self._package.connect(str(self._folder)).create_table("documents", pa.table(columns))
        indexes = self._package.index
        if "text" in columns:
            table.create_index("text", config=indexes.FTS())
        if vectors is not None and self._kind != "flat":
            chosen = self._parameters
            sizes = (
                {"m": chosen["m"], "ef_construction": chosen["ef_construction"], "num_partitions": 1}
                if self._kind == "hnsw"
                else {"num_partitions": min(chosen["lists"], len(documents))}
            )
            config = getattr(indexes, _CLASSES[self._kind])(distance_type="cosine", **sizes)
            try:
                table.create_index("vector", config=config)
            except Exception as error:
                raise RetrieverError(
                    f"{self.label}: LanceDB cannot make an index {self._kind} of {len(documents)} documents: {error}"
                ) from None
        self._table = table

    def _search(self, query: str, vector: Vectors | None, k: int) -> list[tuple[Any, float]]:
        if self._table is None:
            self._table = self._open()
        asked = self._request(query, vector).limit(k)
        if self._where is not None:
            asked = (
                asked.where(self._where)
                if self._search_type == "text"
                else asked.where(self._where, prefilter=True)
            )
        return [(row[self._id], self._score_of(row)) for row in asked.to_list()]

    def _request(self, query: str, vector: Vectors | None) -> Any:
        if self._search_type == "text":
            columns = {"fts_columns": self._column} if self._column else {}
            return self._table.search(query, query_type="fts", **columns)
        columns = {"vector_column_name": self._column} if self._column else {}
        if self._search_type == "hybrid":
            both = self._table.search(query_type="hybrid", **columns).vector(vector).text(query)
            return self._approximate(both).rerank(self._package.rerankers.RRFReranker())
        return self._approximate(self._table.search(vector, **columns))

    def _approximate(self, request: Any) -> Any:
        if not self._existing:
            request = request.distance_type("cosine")
        if "probes" in self._parameters:
            request = request.nprobes(self._parameters["probes"])
        return request.ef(self._parameters["ef_search"]) if "ef_search" in self._parameters else request

    def _score_of(self, row: dict[str, Any]) -> float:
        if "_distance" in row and self._search_type == "vector":
            return float((0 if self._existing else 1) - row["_distance"])
        return float(row["_score"] if self._search_type == "text" else row["_relevance_score"])
