"""Search engines, with the real engines: exact ones rank as Dense does, existing collections are only read."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import ClassVar

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.datasets.corpus import Corpus
from steelyard.retrievers import Dense
from steelyard.retrievers.adapters.postgres import private_server, server_package
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.embeddings import clear_vectors
from steelyard.retrievers.registry import retriever

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

MODULES = {
    "faiss": ["faiss"],
    "qdrant": ["qdrant_client"],
    "chroma": ["chromadb"],
    "lancedb": ["lancedb"],
    "milvus": ["pymilvus", "milvus_lite"],
    "pgvector": ["psycopg", server_package()],
    "postgres-fts": ["psycopg", server_package()],
    "sqlite-vec": ["sqlite_vec"],
    "sqlite-fts": [],
}
EXACT = [
    ("faiss", {}),
    ("faiss", {"kind": "Flat"}),
    ("qdrant", {}),
    ("lancedb", {}),
    ("milvus", {}),
    ("pgvector", {}),
    ("sqlite-vec", {}),
    # Approximate kinds that look at everything are exact.
    ("faiss", {"kind": "hnsw", "ef_search": 1000}),
    ("faiss", {"kind": "ivf", "lists": 8, "probes": 8}),
    ("chroma", {"ef_search": 1000}),
    ("lancedb", {"kind": "ivf-flat", "lists": 4, "probes": 4}),
    ("lancedb", {"kind": "hnsw", "ef_search": 1000}),
    ("milvus", {"kind": "hnsw", "ef_search": 1000}),
    ("pgvector", {"kind": "hnsw", "ef_search": 1000}),
    ("pgvector", {"kind": "ivfflat", "lists": 8, "probes": 8}),
]
WIDTH = 24


def vectors_of(texts):
    """One vector per text, at random but always the same."""
    rows = []
    for text in texts:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        rows.append(np.random.default_rng(seed).standard_normal(WIDTH))
    return np.array(rows)


@pytest.fixture(scope="module")
def documents():
    return {f"d{n}": f"text number {n} of words" for n in range(300)}


QUERIES = [f"question {n}" for n in range(12)]


@pytest.fixture
def engine(library):
    """An engine by name, if its package is installed."""

    def make(name, settings):
        for module in MODULES[name]:
            library(module)
        return retriever(name, settings)

    return make


def same_lists(found, expected):
    """Equal scores at every rank, and equal documents wherever the score is not tied."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert len(ours) == len(theirs)
        scores = [score for _, score in theirs]
        np.testing.assert_allclose([score for _, score in ours], scores, atol=2e-6)
        known = dict(theirs)
        for doc, score in ours:
            assert doc in known or score == pytest.approx(scores[-1], abs=2e-6)


@pytest.mark.parametrize("share", [None, 0.3])
@pytest.mark.parametrize(("name", "settings"), EXACT, ids=[f"{n}-{s.get('kind', '')}" for n, s in EXACT])
def test_exact_search_ranks_as_dense(engine, documents, name, settings, share):
    chosen = {"model": vectors_of, **settings} | ({"filter": share} if share else {})
    mine = engine(name, chosen).index(documents)
    expected = Dense(model=vectors_of, filter=share).index(documents).retrieve(QUERIES, 20)
    same_lists(mine.retrieve(QUERIES, 20), expected)
    assert mine.size_in_bytes() > 0
    assert mine.retrieve([], 5) == []


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("faiss", {"kind": "hnsw", "m": 2, "ef_search": 1}),
        ("faiss", {"kind": "ivf", "probes": 1}),
        ("pgvector", {"kind": "ivfflat", "probes": 1}),
        ("lancedb", {"kind": "ivf-flat", "lists": 16, "probes": 1}),
    ],
)
def test_a_narrow_search_is_approximate_and_its_scores_are_still_cosines(engine, documents, name, settings):
    found = engine(name, {"model": vectors_of, **settings}).index(documents).retrieve(QUERIES, 10)
    exact = Dense(model=vectors_of).index(documents).retrieve(QUERIES, len(documents))
    hits = 0
    for ours, theirs in zip(found, exact, strict=True):
        known = dict(theirs)
        for doc, score in ours:
            assert score == pytest.approx(known[doc], abs=2e-6)
        hits += len({doc for doc, _ in ours} & {doc for doc, _ in theirs[:10]})
    assert 0 < hits < 10 * len(QUERIES)


@pytest.mark.parametrize("name", ["sqlite-fts", "postgres-fts", "lancedb"])
def test_full_text_search_finds_words(engine, corpus, name):
    settings = {"search": "text"} if name == "lancedb" else {}
    mine = engine(name, settings).index(corpus)
    assert [doc for doc, _ in mine.retrieve(["wolf"], 3)[0]] == ["d2"]
    night = mine.retrieve(["owl at night"], 4)[0]
    assert night[0][0] == "d3"
    assert [score for _, score in night] == sorted((score for _, score in night), reverse=True)
    # The syntax of the engine's own query language has no meaning.
    odd = 'owl" AND NOT (night: | & ! *) \'"; drop table documents'
    assert mine.retrieve([odd], 4)[0][0][0] == "d3"
    assert mine.retrieve(["?! ..."], 4)[0] == []


def test_hybrid_search_of_lancedb(engine, corpus):
    mine = engine("lancedb", {"search": "hybrid", "model": vectors_of}).index(corpus)
    found = mine.retrieve(["owl at night"], 4)[0]
    assert {doc for doc, _ in found} <= set(corpus)
    assert found[0][1] > found[-1][1] > 0


@pytest.mark.parametrize(
    ("name", "settings", "wrong"),
    [
        ("faiss", {"kind": "tree"}, "unknown kind 'tree'.*flat, hnsw, ivf"),
        ("faiss", {"kind": "hnsw", "probes": 4}, "an index of kind hnsw has no `probes`.*parameter of ivf"),
        ("faiss", {"ef_search": 0, "kind": "hnsw"}, "ef_search"),
        ("faiss", {"of": "bm25"}, "`of` is bm25-okapi, which has no vectors"),
        ("faiss", {"of": "dense", "model": "lsa"}, "`of` and also `model`"),
        ("faiss", {"vectors": "nowhere.npy", "model": "json:dumps"}, "there is no file"),
        ("faiss", {"target": "nowhere.index", "model": "lsa"}, "there is no file"),
        ("faiss", {"filter": "all"}, "`filter` is a str; expected"),
        ("sqlite-fts", {"target": "nowhere.db", "table": "t"}, "there is no database"),
        ("sqlite-fts", {"target": "nowhere.db"}, "needs `table`"),
        ("lancedb", {"target": "nowhere", "table": "t", "model": "lsa"}, "there is no database"),
        ("lancedb", {"search": "magic"}, "unknown search 'magic'"),
        ("faiss", {"target": "nowhere.index"}, "an existing collection needs `model`"),
        ("chroma", {"target": "nowhere"}, "needs `collection`"),
        ("milvus", {"target": "nowhere.db", "collection": "c", "model": "lsa"}, "there is no database"),
        ("lancedb", {"target": 5, "table": "t", "search": "text"}, "there is no database in .*5"),
        ("milvus", {"target": 5, "collection": "c", "model": "lsa"}, "there is no database .*5"),
        ("sqlite-fts", {"target": 5, "table": "t"}, "there is no database .*5"),
        ("pgvector", {"table": "passages"}, "`table` needs a target"),
        ("pgvector", {"distance": "far"}, "unknown distance 'far'"),
        ("postgres-fts", {"rank": "bm25"}, "unknown rank 'bm25'"),
        ("qdrant", {"target": "http://127.0.0.1:1"}, "needs `collection`"),
    ],
)
def test_wrong_settings_are_explained(engine, name, settings, wrong):
    with pytest.raises(RetrieverError, match=wrong):
        engine(name, settings)


def test_a_filter_that_no_document_passes(engine):
    corpus = Corpus.of({"d1": {"text": "a fox", "year": 2020}, "d2": {"text": "an owl", "year": 2021}})
    mine = engine("faiss", {"model": vectors_of, "filter": {"year": 2021}}).index(corpus)
    assert [doc for doc, _ in mine.retrieve(["fox"], 5)[0]] == ["d2"]
    with pytest.raises(RetrieverError, match=r"no document passes.*has the field 'yaer'. Did you mean year\?"):
        engine("faiss", {"model": vectors_of, "filter": {"yaer": 2021}}).index(corpus)


class TestExistingCollections:
    """The same ranking as Dense from a collection that was made by other means, and nothing is written to it."""

    @pytest.fixture
    def expected(self, documents):
        return Dense(model=vectors_of).index(documents).retrieve(QUERIES, 10)

    @pytest.fixture
    def vectors(self, documents):
        found = vectors_of(documents.values())
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    def ranks(self, found, expected):
        assert [[doc for doc, _ in each] for each in found] == [[doc for doc, _ in each] for each in expected]

    def test_faiss(self, library, documents, expected, vectors, tmp_path):
        faiss = library("faiss")
        index = faiss.IndexFlatIP(WIDTH)
        index.add(vectors)
        faiss.write_index(index, str(tmp_path / "my.index"))
        before = (tmp_path / "my.index").read_bytes()
        (tmp_path / "ids.txt").write_text("\n".join(documents) + "\n")
        settings = {"target": "my.index", "model": vectors_of, "folder": tmp_path}
        self.ranks(retriever("faiss", settings).index(documents).retrieve(QUERIES, 10), expected)
        by_file = retriever("faiss", {**settings, "ids": "ids.txt"}).index({"other": "text"})
        self.ranks(by_file.retrieve(QUERIES, 10), expected)
        odd = [f"{doc}\u2028\x85\r{doc}" for doc in documents]
        (tmp_path / "ids.txt").write_bytes("\r\n".join(odd).encode())
        found = retriever("faiss", {**settings, "ids": "ids.txt"}).index({"other": "text"}).retrieve(QUERIES, 10)
        self.ranks(found, [[(f"{doc}\u2028\x85\r{doc}", score) for doc, score in each] for each in expected])
        (tmp_path / "ids.txt").write_text("\n".join([*documents, "one more"]) + "\n")
        with pytest.raises(RetrieverError, match="has 300 vectors for 301 ids"):
            retriever("faiss", {**settings, "ids": "ids.txt"}).index({"other": "text"})
        (tmp_path / "ids.txt").write_bytes(b"\xff")
        with pytest.raises(sy.InputError, match=r"ids\.txt: cannot be read"):
            retriever("faiss", {**settings, "ids": "ids.txt"})
        with pytest.raises(RetrieverError, match="has 300 vectors for 1 id"):
            retriever("faiss", settings).index({"other": "text"})
        assert (tmp_path / "my.index").read_bytes() == before

    @pytest.mark.parametrize("kind", ["IDMap,Flat", "IDMap2,Flat", "PCA8,IDMap,Flat", "IVF2,Flat", "IDMap,IVF2,Flat"])
    @pytest.mark.parametrize("numbers", [range(1, 9), range(-40, 40, 10)])
    def test_faiss_with_ids_of_its_own(self, library, tmp_path, kind, numbers):
        faiss = library("faiss")
        index, rows = faiss.index_factory(8, kind, faiss.METRIC_INNER_PRODUCT), np.eye(8, dtype=np.float32)
        index.train(rows)
        index.add_with_ids(rows, np.array(numbers))
        faiss.write_index(index, str(tmp_path / "my.index"))
        (tmp_path / "ids.txt").write_text("\n".join("abcdefgh"))
        settings = {"target": "my.index", "model": lambda texts: rows[list(map(int, texts))], "folder": tmp_path}
        by_corpus = retriever("faiss", settings).index(dict.fromkeys("abcdefgh", "text"))
        for mine in (by_corpus, retriever("faiss", {**settings, "ids": "ids.txt"})):
            found = mine.retrieve(list("01234567"), 1)
            assert [doc for each in found for doc, _ in each] == list("abcdefgh")

    def test_faiss_with_ids_in_no_order(self, library, tmp_path):
        faiss = library("faiss")
        index = faiss.IndexIDMap(faiss.IndexFlatIP(3))
        index.add_with_ids(np.eye(3, dtype=np.float32), np.array([2, 0, 1]))
        faiss.write_index(index, str(tmp_path / "my.index"))
        mine = retriever("faiss", {"target": tmp_path / "my.index", "model": vectors_of})
        with pytest.raises(
            RetrieverError, match="do not ascend .* unknown which document each one is. Add the vectors"
        ):
            mine.index(dict.fromkeys("abc", "text"))

    def test_faiss_distances_are_negated(self, library, tmp_path):
        faiss = library("faiss")
        index = faiss.IndexFlatL2(2)
        index.add(np.array([[3, 0], [0, 1], [0, 0]], dtype=np.float32))
        faiss.write_index(index, str(tmp_path / "my.index"))
        settings = {"target": tmp_path / "my.index", "model": lambda texts: np.array([[0, 1]] * len(texts), np.float32)}
        mine = retriever("faiss", settings).index(dict.fromkeys("abc", "text"))
        assert mine.retrieve(["text"], 3) == [[("b", 0), ("c", -1), ("a", -10)]]

    def test_sqlite_fts(self, corpus, tmp_path):
        path = tmp_path / "my.db"
        with sqlite3.connect(path) as connection:
            connection.execute("create virtual table passages using fts5(key unindexed, body)")
            connection.executemany("insert into passages values (?, ?)", corpus.items())
        connection.close()
        before = path.read_bytes()
        settings = {"target": "my.db", "table": "passages", "id": "key", "folder": tmp_path}
        mine = retriever("sqlite-fts", settings).index(corpus)
        assert mine.retrieve(["wolf"], 3)[0][0][0] == "d2"
        assert path.read_bytes() == before
        assert [each.name for each in tmp_path.iterdir()] == ["my.db"]
        with pytest.raises(RetrieverError, match="no such table: nothing"):
            retriever("sqlite-fts", {**settings, "table": "nothing"})
        with pytest.raises(RetrieverError, match=r"'kye'; expected one of rowid, key, body.* Did you mean key\?"):
            retriever("sqlite-fts", {**settings, "id": "kye"})

    def test_lancedb(self, library, documents, expected, vectors, tmp_path):
        import pyarrow as pa

        lancedb = library("lancedb")
        vector = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), WIDTH)
        table = pa.table({"key": list(documents), "embedding": vector})
        lancedb.connect(str(tmp_path)).create_table("passages", table)
        before = sorted(path.name for path in tmp_path.rglob("*"))
        settings = {"target": str(tmp_path), "table": "passages", "id": "key", "column": "embedding"}
        mine = retriever("lancedb", {**settings, "model": vectors_of}).index(documents)
        self.ranks(mine.retrieve(QUERIES, 10), expected)
        assert sorted(path.name for path in tmp_path.rglob("*")) == before
        with pytest.raises(RetrieverError, match="filter.*use `where`"):
            retriever("lancedb", {**settings, "model": vectors_of, "filter": 0.5})
        odd = {**settings, "model": vectors_of, "where": "key = 'd7'"}
        assert [doc for doc, _ in retriever("lancedb", odd).retrieve(["q"], 5)[0]] == ["d7"]

    def test_chroma(self, library, documents, expected, vectors, tmp_path):
        chromadb = library("chromadb")
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(tmp_path), settings)
        collection = client.create_collection(
            "passages", configuration={"hnsw": {"space": "cosine", "ef_search": 1000}}
        )
        collection.add(
            ids=[f"c-{doc}" for doc in documents],
            embeddings=vectors,
            metadatas=[{"key": doc, "odd": number % 2} for number, doc in enumerate(documents)],
            documents=list(documents.values()),
        )
        chosen = {"target": str(tmp_path), "collection": "passages", "model": vectors_of}
        mine = retriever("chroma", {**chosen, "id": "metadata.key"}).index(documents)
        self.ranks(mine.retrieve(QUERIES, 10), expected)
        assert mine.retrieve(QUERIES, 10)[0][0][1] == pytest.approx(expected[0][0][1] - 1, abs=1e-5)
        assert retriever("chroma", chosen).retrieve(QUERIES, 1)[0][0][0] == f"c-{expected[0][0][0]}"
        odd = retriever("chroma", {**chosen, "id": "metadata.key", "where": {"odd": 1}}).retrieve(QUERIES, 10)
        assert all(int(doc[1:]) % 2 for each in odd for doc, _ in each)
        by_text = retriever("chroma", {**chosen, "id": "hash"}).index(documents)
        self.ranks(by_text.retrieve(QUERIES, 10), expected)
        assert collection.count() == len(documents)

    def test_milvus(self, library, documents, expected, vectors, tmp_path):
        pymilvus = library("pymilvus")
        library("milvus_lite")
        path = str(tmp_path / "my.db")
        client = pymilvus.MilvusClient(path)
        client.create_collection("passages", dimension=WIDTH, metric_type="COSINE", auto_id=False)
        rows = [{"id": number, "vector": vectors[number], "key": doc} for number, doc in enumerate(documents)]
        client.insert("passages", rows)
        client.flush("passages")
        client.close()
        settings = {"target": path, "collection": "passages", "model": vectors_of, "id": "entity.key"}
        mine = retriever("milvus", settings).index(documents)
        found = mine.retrieve(QUERIES, 10)
        self.ranks(found, expected)
        assert found[0][0][1] == pytest.approx(expected[0][0][1], abs=1e-5)
        seven = retriever("milvus", {**settings, "where": "id == 7"}).retrieve(["q"], 5)[0]
        assert [doc for doc, _ in seven] == ["d7"]
        with pytest.raises(Exception, match="nothing"):
            retriever("milvus", {**settings, "collection": "nothing"}).retrieve(["q"], 5)

    def test_qdrant(self, library, documents, expected, vectors):
        package = library("qdrant_client")
        models = package.models
        client = package.QdrantClient(":memory:")
        shape = models.VectorParams(size=WIDTH, distance=models.Distance.COSINE)
        client.create_collection("passages", vectors_config=shape)
        points = [
            models.PointStruct(id=number, vector=vectors[number].tolist(), payload={"key": doc})
            for number, doc in enumerate(documents)
        ]
        client.upsert("passages", points)
        settings = {"target": client, "collection": "passages", "model": vectors_of, "id": "metadata.key"}
        mine = retriever("qdrant", {**settings, "exact": True}).index(documents)
        self.ranks(mine.retrieve(QUERIES, 10), expected)
        where = {"must": [{"key": "key", "match": {"value": "d7"}}]}
        seven = retriever("qdrant", {**settings, "where": where}).retrieve(["q"], 5)[0]
        assert [doc for doc, _ in seven] == ["d7"]
        with pytest.raises(RetrieverError, match="`where` is not a filter of Qdrant"):
            retriever("qdrant", {**settings, "where": {"must": 5}})

    @pytest.fixture(scope="class")
    def server(self):
        """The address of a new database of the private server."""
        psycopg = import_peer("psycopg")
        import_peer(server_package())
        address = private_server()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("create database trial")
        return address.replace("/postgres?", "/trial?")

    def test_postgres(self, server, library, corpus, documents, expected, vectors):
        psycopg = library("psycopg")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("create extension vector")
            connection.execute(f"create table passages (key text, body text, embedding vector({WIDTH}))")
            connection.cursor().executemany(
                "insert into passages values (%s, %s, %s)",
                [(doc, text, str(vectors[n].tolist())) for n, (doc, text) in enumerate(documents.items())],
            )
            connection.execute("create table articles (key text, words tsvector, body text)")
            connection.cursor().executemany(
                "insert into articles values (%s, to_tsvector('english', %s), %s)",
                [(doc, text, text) for doc, text in corpus.items()],
            )
        shared = {"target": server, "id": "key"}
        settings = {**shared, "table": "passages", "model": vectors_of}
        mine = retriever("pgvector", settings).index(documents)
        found = mine.retrieve(QUERIES, 10)
        self.ranks(found, expected)
        assert found[0][0][1] == pytest.approx(expected[0][0][1] - 1, abs=1e-5)
        # Vectors of another length are sent as they are: with l2 it makes a difference.
        far = retriever("pgvector", {**settings, "distance": "l2", "model": lambda texts: 9 * vectors_of(texts)})
        expected_far = np.argsort(np.linalg.norm(vectors - 9 * vectors_of(QUERIES[:1]), axis=1), kind="stable")
        assert [doc for doc, _ in far.retrieve(QUERIES[:1], 5)[0]] == [f"d{n}" for n in expected_far[:5]]
        seven = retriever("pgvector", {**settings, "where": "body like '%number 7 %'"}).retrieve(["q"], 5)[0]
        assert [doc for doc, _ in seven] == ["d7"]
        for column in ("words", "body"):
            text = retriever("postgres-fts", {**shared, "table": "public.articles", "column": column})
            assert [doc for doc, _ in text.retrieve(["the sleeping wolf"], 5)[0]] == ["d2"]
        every = retriever("postgres-fts", {**shared, "table": "articles", "column": "words", "match": "all"})
        assert [doc for doc, _ in every.retrieve(["owl night"], 5)[0]] == ["d3"]
        with pytest.raises(RetrieverError, match='relation "nothing" does not exist'):
            retriever("pgvector", {**settings, "table": "nothing"}).retrieve(["q"], 5)
        with psycopg.connect(server) as connection:
            assert connection.execute("select count(*) from passages").fetchone() == (len(documents),)
            tables = connection.execute("select count(*) from pg_tables where schemaname = 'public'").fetchone()
            assert tables == (2,)

    def test_the_corpus_is_indexed_in_a_temporary_table_of_a_server(self, server, library, documents, expected):
        psycopg = library("psycopg")
        with psycopg.connect(server) as connection:
            connection.execute("create extension if not exists vector")
        mine = retriever("pgvector", {"target": server, "model": vectors_of, "kind": "hnsw", "ef_search": 500})
        self.ranks(mine.index(documents).retrieve(QUERIES, 10), expected)
        with psycopg.connect(server) as connection:
            tables = "select count(*) from pg_tables where tablename = 'documents' and schemaname = 'public'"
            assert connection.execute(tables).fetchone() == (0,)


class Row:
    """A row of a database with named columns."""

    def __init__(self, id, distance):
        self.id, self.distance = id, distance


class TestNativeAnswers:
    """Answers of engines are understood as they are, and distances become negative scores."""

    def read(self, answer, **settings):
        return retriever("python", {"target": lambda query: answer, "name": "mine", **settings}).retrieve(["q"], 10)[0]

    def test_chroma(self):
        answer = {
            "ids": [["a", "b"]],
            "distances": [[0.25, 0.5]],
            "metadatas": [[{"key": "k1"}, {"key": "k2"}]],
            "documents": None,
            "embeddings": None,
        }
        assert self.read(answer) == [("a", -0.25), ("b", -0.5)]
        assert self.read(answer, id="metadata.key") == [("k1", -0.25), ("k2", -0.5)]
        assert self.read({"ids": [[]], "distances": [[]]}) == []

    def test_tables(self):
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"id": ["a", "b"], "vector": [[0.0], [1.0]], "_distance": [0.0, 0.5]})
        expected = [("a", 0.0), ("b", -0.5)]
        import polars as pl

        for answer in (table, table.to_pandas(), pl.from_arrow(table), table.to_pylist()):
            assert self.read(answer) == expected

    def test_rows_of_pgvector_and_hits_of_milvus(self):
        for rows in ([{"id": "a", "distance": 0.1}, {"id": "b", "distance": 0.3}], [Row("a", 0.1), Row("b", 0.3)]):
            assert self.read(rows) == [("a", -0.1), ("b", -0.3)]
        hits = [{"id": 1, "distance": 0.9, "entity": {}}, {"id": 2, "distance": 0.7, "entity": {}}]
        assert self.read(hits) == [("1", 0.9), ("2", 0.7)]

    def test_scores_and_pairs_are_kept(self):
        assert self.read([("a", 0.1), ("b", 0.3)]) == [("a", 0.1), ("b", 0.3)]
        assert self.read([{"id": "a", "score": 0.1, "distance": 7}]) == [("a", 0.1)]


class TestServersThatFail:
    """A server that is down, slow, refuses or returns garbage is an error per query, without secrets."""

    SECRET = "s3cr3t-pass"

    def bench(self, tmp_path, spec):
        data = tmp_path / "data"
        write_dataset(data, {"d1": "a fox", "d2": "an owl"}, {"q1": "fox", "q2": "owl"}, {"q1": "d1", "q2": "d2"})
        config = {"dataset": str(data), "retrievers": ["bm25", spec], "measures": ["nDCG@10"]}
        folder = tmp_path / "result"
        result = sy.bench(config, folder)
        row = result.rows[1]
        assert result.rows[0].queries == 2
        assert set(row.errors) == {"q1", "q2"}
        written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert self.SECRET.encode() not in written
        return row.errors["q1"]

    @pytest.fixture(params=["qdrant", "chroma"])
    def served(self, request, engine, monkeypatch):
        """The spec of an engine that is asked by HTTP, at a URL."""
        monkeypatch.setenv("ENGINE_KEY", self.SECRET)
        engine(request.param, {"model": vectors_of})
        return lambda url: {
            request.param: {
                "target": url,
                "collection": "passages",
                "model": vectors_of,
                "api_key": "${ENGINE_KEY}",
                "name": "served",
            }
            | ({"timeout": 1} if request.param == "qdrant" else {})
        }

    def test_down(self, served, tmp_path):
        assert "onnect" in self.bench(tmp_path, served("http://127.0.0.1:9"))

    def test_unauthorized(self, served, service, tmp_path):
        service.responds((401, json.dumps({"error": f"wrong key Bearer {self.SECRET}"}).encode()))
        error = self.bench(tmp_path, served(service.url))
        assert "401" in error or "wrong key" in error or "nauthorized" in error
        assert any(self.SECRET in str(request["headers"]) for request in service.requests)

    def test_garbage(self, served, service, tmp_path):
        service.responds((200, b"<html>not json"))
        assert self.bench(tmp_path, served(service.url))

    def test_slow(self, engine, service, tmp_path):
        engine("qdrant", {"model": vectors_of})
        service.responds((200, b"{}"))
        service.hold = True
        spec = {"target": service.url, "collection": "c", "model": vectors_of, "timeout": 1, "name": "slow"}
        assert "timed out" in self.bench(tmp_path, {"qdrant": spec})
        service.release.set()

    @pytest.mark.parametrize("name", ["pgvector", "postgres-fts"])
    def test_postgres_is_down_or_is_another_service(self, engine, service, tmp_path, monkeypatch, name):
        engine(name, {})
        monkeypatch.setenv("DATABASE_PASSWORD", self.SECRET)
        embedding = {"model": vectors_of} if name == "pgvector" else {}
        service.responds((200, b"{}"))
        port = service.server.server_address[1]
        for number, address in enumerate(("127.0.0.1:9", f"127.0.0.1:{port}")):
            url = f"postgresql://me:${{DATABASE_PASSWORD}}@{address}/db?sslmode=disable"
            spec = {name: {"target": url, "table": "passages", "timeout": 2, "name": "pg", **embedding}}
            folder = tmp_path / str(number)
            folder.mkdir()
            assert "no connection to PostgreSQL" in self.bench(folder, spec)

    def test_milvus_is_down(self, engine, tmp_path, monkeypatch):
        engine("milvus", {"model": vectors_of})
        monkeypatch.setenv("ENGINE_KEY", self.SECRET)
        spec = {
            "target": "http://127.0.0.1:9",
            "collection": "passages",
            "model": vectors_of,
            "api_key": "${ENGINE_KEY}",
            "timeout": 1,
            "name": "down",
        }
        assert "onnect" in self.bench(tmp_path, {"milvus": spec})


def write_dataset(folder, corpus, queries, qrels):
    """A dataset folder with one relevant document per query."""
    folder.mkdir()
    for name, texts in (("corpus", corpus), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    rows = "".join(f"{query}\t{doc}\t1\n" for query, doc in qrels.items())
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)


class TestSharedEmbeddings:
    """The embeddings of a corpus are computed once per model and corpus, in one process and in the cache of a bench."""

    MODULE = """
import hashlib
import numpy as np

calls = []

def embed(texts):
    calls.append(len(texts))
    rows = [hashlib.sha256(text.encode()).digest() for text in texts]
    return np.array([[byte - 128 for byte in row] for row in rows], float)
"""

    @pytest.fixture
    def bench(self, tmp_path, engine, monkeypatch):
        import importlib
        import sys

        engine("faiss", {})
        engine("qdrant", {})
        (tmp_path / "shared_model.py").write_text(self.MODULE)
        write_dataset(
            tmp_path / "data",
            {f"d{n}": f"text {n}" for n in range(40)},
            {f"q{n}": f"question {n}" for n in range(4)},
            {f"q{n}": f"d{n}" for n in range(4)},
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.chdir(tmp_path)
        importlib.invalidate_caches()
        sys.modules.pop("shared_model", None)
        clear_vectors(tmp_path)
        module = importlib.import_module("shared_model")

        def run(*retrievers, **more):
            module.calls.clear()
            config = {"dataset": str(tmp_path / "data"), "retrievers": list(retrievers), "measures": ["nDCG@10"]}
            result = sy.bench(config, tmp_path / "result", **more)
            assert not result.failed
            # Queries are embedded one at a time, or all four at once; documents forty at once.
            return module.calls.count(40), result

        return run

    MODEL: ClassVar = {"model": "shared_model:embed", "name": "mine"}

    def test_once_for_all_rows_and_never_again(self, bench, tmp_path):
        rows = [
            {"dense": self.MODEL},
            {"hybrid": {"of": ["bm25", "mine"]}},
            {"rerank": {"first": "mine", "score": "shared_scorer:longest"}},
            {"faiss": {"kind": "hnsw", "of": "mine"}},
            {"qdrant": {"of": "mine"}},
        ]
        (tmp_path / "shared_scorer.py").write_text("def longest(query, texts):\n    return [len(t) for t in texts]\n")
        assert bench(*rows)[0] == 1
        # A row that is added later finds them in the cache of the bench.
        assert bench(*rows, {"faiss": {"kind": "flat", "of": "mine", "name": "flat"}})[0] == 0
        assert bench(*rows, fresh=True)[0] == 1

    def test_a_damaged_file_is_computed_again(self, bench, tmp_path):
        assert bench({"dense": self.MODEL})[0] == 1
        (stored,) = (tmp_path / "result" / "cache" / "vectors").glob("*.npz")
        stored.write_bytes(stored.read_bytes()[:100])
        clear_vectors(tmp_path / "nowhere")
        assert bench({"dense": self.MODEL}, {"faiss": {"of": "mine"}})[0] == 1
        assert bench({"dense": self.MODEL}, {"faiss": {"of": "mine", "kind": "hnsw"}})[0] == 0

    def test_lsa_is_stored_with_its_model(self, bench, tmp_path):
        first = bench("dense")[1].runs["dense"]
        again = bench("dense", {"faiss": {"of": "dense"}})[1]
        assert len(list((tmp_path / "result" / "cache" / "vectors").glob("*.npz"))) == 1
        assert again.runs["faiss"].frame["doc_id"].to_list() == first.frame["doc_id"].to_list()

    def test_two_closures_of_one_function_are_two_models(self):
        def scaled(sign):
            return lambda texts: np.array([[sign * len(text), 1.0] for text in texts])

        corpus = {"d1": "a", "d2": "abcdef"}
        up, down = (Dense(model=scaled(sign)).index(corpus) for sign in (1, -1))
        assert up.vectors[0, 0] > 0 > down.vectors[0, 0]
        model = scaled(1)
        assert Dense(model=model).index(corpus).vectors is not up.vectors
        first = Dense(model=model).index(corpus)
        assert Dense(model=model, name="other").index(corpus).vectors is first.vectors
