"""LanceDB: search by vectors, by words or both, of the corpus or an existing table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from steelyard.retrievers.adapters.base import PASSES, DatabaseEngine, Kept
from steelyard.retrievers.base import CheckedCorpus
from steelyard.retrievers.dense import Dense
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.temporary import temporary_folder

_CLASSES = {"ivf-flat": "IvfFlat", "ivf-pq": "IvfPq", "hnsw": "HnswFlat"}  # Those of LanceDB.


class LanceDB(DatabaseEngine):
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
