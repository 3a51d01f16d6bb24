"""The settings that results are cached by stay the same: stored results of an unchanged retriever remain valid."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from needs import import_peer
from steelyard.retrievers.registry import retriever

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

RECORDED = Path(__file__).with_name("fingerprints.json")
"""The settings of each case as they were recorded; `package` is left out, since it is the installed version."""

MODEL = {"model": "client:search"}
URL = "http://127.0.0.1:9"
DATABASE = "postgresql://me:${PATH}@127.0.0.1:9/db"
CASES = [
    ("chroma", {}),
    ("chroma", {"m": 8, "ef_search": 40, "filter": 0.1, **MODEL}),
    ("chroma", {"target": "folder", "collection": "c", "where": {"a": 1}, "id": "metadata.key", **MODEL}),
    ("chroma", {"target": URL, "collection": "c", "api_key": "abcdefgh", "version": "2", **MODEL}),
    ("faiss", {}),
    ("faiss", {"kind": "hnsw", "m": 4, "of": "dense", "filter": {"year": 2020}}),
    ("faiss", {"kind": "ivf", "probes": 2}),
    ("faiss", {"kind": "IVF64,PQ16"}),
    ("faiss", {"target": "my.index", "ids": "ids.txt", "version": 3, **MODEL}),
    ("lancedb", {}),
    ("lancedb", {"search": "text"}),
    ("lancedb", {"search": "hybrid", "kind": "hnsw", "ef_search": 20}),
    ("lancedb", {"kind": "ivf-pq", "lists": 4}),
    ("lancedb", {"target": "folder", "table": "t", "column": "v", "where": "a = 1", "id": "key", **MODEL}),
    ("milvus", {}),
    ("milvus", {"kind": "hnsw"}),
    ("milvus", {"kind": "ivf", "probes": 3, "filter": 0.5}),
    ("milvus", {"target": URL, "collection": "c", "column": "v", "where": "a == 1", "id": "entity.key", **MODEL}),
    ("qdrant", {}),
    ("qdrant", {"embed": "client:search", "filter": 0.5}),
    (
        "qdrant",
        {"target": URL, "collection": "c", "using": "v", "ef_search": 9, "exact": True, "version": "1", **MODEL},
    ),
    ("qdrant", {"target": "client:search", "collection": "c", "where": {"must": []}, "id": "hash", **MODEL}),
    ("sqlite-fts", {}),
    ("sqlite-fts", {"tokenizer": "trigram"}),
    ("sqlite-fts", {"target": "my.db", "table": "passages", "id": "key", "version": "1"}),
    ("sqlite-vec", {}),
    ("sqlite-vec", {"target": "my.db", "table": "vectors", "column": "v", **MODEL}),
    ("postgres-fts", {}),
    (
        "postgres-fts",
        {"config": "simple", "rank": "ts_rank_cd", "normalization": 2, "match": "all", "target": DATABASE},
    ),
    ("postgres-fts", {"target": DATABASE, "table": "a.t", "column": "c", "id": "key", "timeout": 4}),
    ("pgvector", {}),
    ("pgvector", {"kind": "ivfflat", "lists": 9, "filter": 0.5, **MODEL}),
    ("pgvector", {"kind": "hnsw", "target": DATABASE, "table": "t", "distance": "l2", "where": "a", **MODEL}),
    ("tantivy", {}),
    ("tantivy", {"tokenizer": "raw"}),
    ("tantivy", {"target": "tantivy", "fields": "title body", "id": "key", "version": "7"}),
    ("bm25s", {}),
    ("bm25s", {"method": "bm25+", "k1": 1, "stopwords": None, "stemmer": "english"}),
    ("http", {"target": URL + "/?q={query}&key=${PATH}"}),
    (
        "http",
        {
            "target": URL,
            "body": {"near": "{vector}"},
            "id": "r[*].id",
            "score": "r[*].s",
            "headers": {"X-Key": "abcdefgh"},
            **MODEL,
        },
    ),
    ("http", {"target": URL, "body": {"q": "{query}"}, "id": "hash", "text": "r[*].t", "version": "5"}),
    ("elasticsearch", {"target": URL + "/passages", "field": "body"}),
    ("opensearch", {"target": URL, "index": "p", "query": {"query": {"match_all": {}}}, "id": "metadata.key"}),
    ("elasticsearch", {"target": "client:client", "index": "p", "version": "1"}),
    ("python", {"target": "client:search"}),
    ("callable", {"target": "client:Client", "arguments": {"a": 1}, "batch": True, "id": "hash", "score": "sim"}),
    ("langchain", {"target": "client:Client", "own_k": True, "arguments": {"a": 2}}),
    ("llama-index", {"target": "client:client", "id": "document"}),
    ("haystack", {"target": "client:client", "output": "a.documents", "id": "metadata.key"}),
    ("haystack", {"target": "client:client", "inputs": {"query": "{query}"}}),
    ("pyterrier", {"target": "client:client", "version": "1"}),
]

CLIENT = """
class Client:
    def __init__(self, a=0):
        pass
    def search(self, query, k=10):
        return []
    invoke = retrieve = transform = search
    def run(self, query, top_k=10):
        return {"documents": []}

client = Client()
search = client.search
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the targets of the cases."""
    folder = tmp_path_factory.mktemp("targets")
    (folder / "folder").mkdir()
    (folder / "client.py").write_text(CLIENT)
    driver = sqlite3 if hasattr(sqlite3.Connection, "enable_load_extension") else import_peer("pysqlite3")
    with driver.connect(folder / "my.db") as connection:
        connection.execute("create virtual table passages using fts5(key unindexed, body)")
        connection.enable_load_extension(True)
        import_peer("sqlite_vec").load(connection)
        connection.execute("create virtual table vectors using vec0(v float[2])")
    connection.close()
    faiss = import_peer("faiss")
    faiss.write_index(faiss.IndexFlatIP(2), str(folder / "my.index"))
    (folder / "ids.txt").write_text("")
    tantivy = import_peer("tantivy")
    schema = tantivy.SchemaBuilder()
    for field in ("key", "title", "body"):
        schema.add_text_field(field, stored=True)
    (folder / "tantivy").mkdir()
    tantivy.Index(schema.build(), path=str(folder / "tantivy"))
    return folder


def fingerprint(name, settings, folder):
    relative = {} if name in ("postgres-fts", "bm25s") else {"folder": str(folder)}
    found = retriever(name, {**settings, **relative}).settings()
    found.pop("package", None)
    return json.loads(json.dumps(found))


@pytest.mark.parametrize(("name", "settings"), CASES, ids=[f"{n}-{name}" for n, (name, _) in enumerate(CASES)])
def test_settings_are_as_recorded(folder, name, settings, library, monkeypatch):
    pyterrier = ["pyterrier"] if name == "pyterrier" else []
    for module in ("chromadb", "lancedb", "pymilvus", "qdrant_client", "psycopg", "bm25s", "Stemmer", *pyterrier):
        library(module)
    monkeypatch.syspath_prepend(str(folder))
    recorded = json.loads(RECORDED.read_text("utf-8"))
    assert fingerprint(name, settings, folder) == recorded[f"{name} {json.dumps(settings)}"]
