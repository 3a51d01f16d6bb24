"""Corpora that are read from the databases where they already are, which stay as they were."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.retrievers.adapters.postgres import server_package

pytestmark = pytest.mark.adapters

DOCUMENTS = {f"p{number}": f"Page {number} is about water." for number in range(1200)}
"""More than are read at a time."""

Source = dict[str, Any]


def lancedb(folder: Path, monkeypatch: Any) -> Source:
    package, arrow = import_peer("lancedb"), import_peer("pyarrow")
    titles = ["A page"] * len(DOCUMENTS)
    table = arrow.table({"doc_id": list(DOCUMENTS), "body": list(DOCUMENTS.values()), "title": titles})
    package.connect(str(folder / "lance")).create_table("pages", table)
    return {"lancedb": "lance", "table": "pages"}


def sqlite(folder: Path, monkeypatch: Any) -> Source:
    with sqlite3.connect(folder / "pages.db") as connection:
        connection.execute("create table pages (doc_id text, content text, title text)")
        connection.executemany("insert into pages values (?, ?, 'A page')", DOCUMENTS.items())
    connection.close()
    return {"sqlite": "pages.db", "table": "pages"}


def postgres(folder: Path, monkeypatch: Any) -> Source:
    import_peer(server_package())
    psycopg = import_peer("psycopg")
    from steelyard.retrievers.adapters.postgres import private_server

    address = private_server()
    with psycopg.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists stored_pages")
        cursor.execute("create table stored_pages (doc_id text, content text, title text)")
        cursor.executemany("insert into stored_pages values (%s, %s, 'A page')", list(DOCUMENTS.items()))
    return {"postgres": address, "table": "stored_pages"}


def chroma(folder: Path, monkeypatch: Any) -> Source:
    client = import_peer("chromadb").PersistentClient(str(folder / "chroma"))
    collection = client.create_collection("pages", embedding_function=None)
    metadata = [{"_id": "another", "text": "another text", "key": doc} for doc in DOCUMENTS]
    vectors = [[1.0, float(number)] for number in range(len(DOCUMENTS))]
    collection.add(ids=list(DOCUMENTS), embeddings=vectors, documents=list(DOCUMENTS.values()), metadatas=metadata)
    return {"chroma": "chroma", "collection": "pages"}


def qdrant(folder: Path, monkeypatch: Any) -> Source:
    package = import_peer("qdrant_client")
    client, models = package.QdrantClient(":memory:"), package.models
    client.create_collection("pages", models.VectorParams(size=2, distance=models.Distance.COSINE))
    payloads = [{"doc_id": doc, "text": text} for doc, text in DOCUMENTS.items()]
    vectors = [[1.0, float(number)] for number in range(len(DOCUMENTS))]
    client.upsert("pages", models.Batch(ids=list(range(len(DOCUMENTS))), vectors=vectors, payloads=payloads))
    module = ModuleType("stored_pages_client")
    module.__dict__["client"] = client
    monkeypatch.setitem(sys.modules, "stored_pages_client", module)
    return {"qdrant": "stored_pages_client:client", "collection": "pages", "id": "metadata.doc_id"}


@pytest.mark.parametrize("make", [lancedb, sqlite, postgres, chroma, qdrant])
def test_documents_are_read_from_where_they_are(
    make: Callable[[Path, Any], Source], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    source = make(tmp_path, monkeypatch)
    assert dict(sy.Dataset.of(queries=["Why?"], corpus=source).corpus) == DOCUMENTS
    result = sy.bench({"queries": ["page 7 water"], "corpus": source, "retrievers": ["bm25-okapi"], "depth": 3})
    assert result.runs["bm25-okapi"].frame["doc_id"].to_list()[0] == "p7"
    store, place = next(iter(source)), "collection" if "collection" in source else "table"
    with pytest.raises(sy.SteelyardError, match=f"the corpus in {store}.*(nothing|exist)"):
        sy.Dataset.of(queries=["Why?"], corpus={**source, place: "nothing"})
    with pytest.raises(sy.SteelyardError, match=f"the corpus in {store}.*needs `{place}`"):
        sy.Dataset.of(queries=["Why?"], corpus={key: value for key, value in source.items() if key != place})
    if place == "table":
        titled = sy.Dataset.of(queries=["Why?"], corpus={**source, "title": "title"}).corpus
        assert set(titled.titles.values()) == {"A page"}
        for wrong in ("id", "text"):
            with pytest.raises(sy.SteelyardError, match=f"the corpus in {store}.*nothing.*doc_id"):
                sy.Dataset.of(queries=["Why?"], corpus={**source, wrong: "nothing"})


def test_other_ids_of_a_collection_and_rows_of_sqlite(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    source = {**chroma(tmp_path, monkeypatch), "id": "metadata.key"}
    assert dict(sy.Dataset.of(queries=["Why?"], corpus=source).corpus) == DOCUMENTS
    with sqlite3.connect("rows.db") as connection:
        connection.execute("create table pages (body text)")
        connection.executemany("insert into pages values (?)", [("one",), ("two",)])
    connection.close()
    by_row = {"sqlite": "rows.db", "table": "pages"}
    assert dict(sy.Dataset.of(queries=["Why?"], corpus=by_row).corpus) == {"1": "one", "2": "two"}


def test_a_database_that_cannot_be_reached_is_one_clear_error(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    import_peer("qdrant_client")
    import_peer("psycopg")
    for source, expected in (
        ({"lancedb": "nowhere", "table": "t"}, "no database in nowhere"),
        ({"sqlite": "nowhere.db", "table": "t"}, "no database nowhere.db"),
        ({"chroma": "nowhere", "collection": "t"}, "no database in nowhere"),
        ({"qdrant": "http://127.0.0.1:1", "collection": "t"}, "cannot be read"),
        ({"postgres": "postgresql://127.0.0.1:1/x", "table": "t"}, "no connection to PostgreSQL"),
        ({"sqlite": "nowhere.db", "tabel": "t"}, "Did you mean table"),
    ):
        with pytest.raises(sy.SteelyardError, match=expected):
            sy.Dataset.of(queries=["Why?"], corpus=source)
    assert not list(tmp_path.iterdir()), "nothing is made"
