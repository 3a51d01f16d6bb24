"""What a user has stays as it was: files, collections, tables and rows, also under names that an adapter could use."""

from __future__ import annotations

import os
import signal
import sqlite3
from importlib import import_module

import numpy as np
import pytest
from scripts.engines import CASES, home

import steelyard as sy
from steelyard.retrievers.adapters.base import Engine
from steelyard.retrievers.adapters.postgres import private_server, server_package
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.registry import adapter_classes, retriever

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


def vectors_of(texts):
    return np.array([np.random.default_rng(list(text.encode())).standard_normal(8) for text in texts])


def files(folder):
    """Every file of a folder with its content and the time of its last change."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())}


class Database:
    """A database of the user's, with tables under likely names, a sequence, and a function that writes."""

    def __init__(self, psycopg):
        self._psycopg = psycopg
        name = f"user_{os.urandom(6).hex()}"
        self.address = private_server()
        self.execute(f"create database {name}")
        self.address = self.address.replace("/postgres?", f"/{name}?")
        for table in ("documents", "passages", "corpus", "steelyard"):
            self.execute(f"create table {table} (id text, words text)")
            self.execute(f"insert into {table} values ('d1', 'the text of a user')")
        self.execute("create sequence counter")
        self.execute(
            "create function evil() returns bool language plpgsql as "
            "$$ begin insert into passages values ('evil', null); return true; end $$"
        )

    def execute(self, statement):
        with self._psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def add_vectors(self):
        self.execute("create extension vector")
        self.execute("alter table passages add column embedding vector(4)")
        self.execute("update passages set embedding = '[1,2,3,4]'")

    def state(self):
        """Every relation, extension, function and row, with the transaction that wrote it."""
        relations = self.execute(
            "select relname, oid, relfilenode, relkind from pg_class "
            "where relnamespace = 'public'::regnamespace order by 1"
        )
        rows = {
            name: self.execute(f"select xmin::text, * from {name}") for name, _, _, kind in relations if kind in "rS"
        }
        others = "select extname from pg_extension order by 1", "select oid, proname, prosrc from pg_proc order by 1"
        return relations, rows, *map(self.execute, others)


@pytest.fixture
def database(library):
    library(server_package())
    return Database(library("psycopg"))


def test_every_engine_is_a_case():
    modules = {name: import_module(f"steelyard.retrievers.adapters.{name}") for name in adapter_classes()}
    classes = [getattr(modules[name], cls) for name, names in adapter_classes().items() for cls in names]
    assert {cls.retriever for cls in classes if issubclass(cls, Engine)} == set(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("engine", list(CASES))
def test_nothing_changes_by_a_bench_that_is_killed_fails_or_succeeds(library, request, engine):
    """The engine indexes the corpus and searches a collection of the user's, in folders full of look-alikes."""
    library(CASES[engine].package)
    case, database = CASES[engine], None
    if case.package == server_package():
        database = request.getfixturevalue("database")
        if engine == "pgvector":
            database.add_vectors()
    with home() as here:
        here.add_collections(engine)
        address = database.address if database else ""
        rows = [here.settings(engine, row, address) for row in case.rows]
        files_before, rows_before = here.state(), database and database.state()
        killed = here.start(engine, rows, "killed", wait=True)
        assert killed.stdout.readline() == "ready\n", killed.communicate()
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        # The killed bench may have left a folder of its own, until the next one starts.
        assert files_before.items() <= here.state().items()
        assert (database and database.state()) == rows_before
        failed = here.start(engine, [here.settings(engine, case.wrong, address)], "failed")
        assert "nothing" in failed.communicate()[1]
        assert failed.returncode == 1
        assert here.state() == files_before
        assert (database and database.state()) == rows_before
        succeeded = here.start(engine, rows, "succeeded")
        errors = succeeded.communicate()[1]
        assert succeeded.returncode == 0, errors
        assert here.state() == files_before
        assert here.processes() == []
        assert (database and database.state()) == rows_before


class TestSqlite:
    def make(self, folder, mode):
        path = folder / "my.db"
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(f"pragma journal_mode={mode}")
        connection.execute("create virtual table passages using fts5(key unindexed, body)")
        connection.execute("insert into passages values ('d1', 'an owl')")
        return path, connection

    def search(self, path):
        mine = retriever("sqlite-fts", {"target": str(path), "table": "passages", "id": "key"})
        return [doc for doc, _ in mine.retrieve(["owl"], 3)[0]]

    def test_its_connection_cannot_write(self, tmp_path):
        path, connection = self.make(tmp_path, "delete")
        connection.close()
        mine = retriever("sqlite-fts", {"target": str(path), "table": "passages", "id": "key"})
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            mine._client.execute("insert into passages values ('d2', 'a fox')").fetchall()

    @pytest.mark.parametrize("mode", ["delete", "wal"])
    def test_a_closed_database(self, tmp_path, mode):
        path, connection = self.make(tmp_path, mode)
        connection.close()
        before = files(tmp_path)
        assert list(before) == ["my.db"]
        assert self.search(path) == ["d1"]
        assert files(tmp_path) == before

    def test_a_log_in_use_is_read_and_kept(self, tmp_path):
        path, connection = self.make(tmp_path, "wal")
        before = {name: content for name, (content, _) in files(tmp_path).items()}
        assert self.search(path) == ["d1"]
        after = {name: content for name, (content, _) in files(tmp_path).items()}
        # The memory that SQLite shares between processes has the locks of readers; nothing else may differ.
        assert list(after) == ["my.db", "my.db-shm", "my.db-wal"]
        assert {**after, "my.db-shm": None} == {**before, "my.db-shm": None}
        connection.close()

    def test_a_log_that_a_killed_process_left(self, tmp_path):
        _, connection = self.make(tmp_path, "wal")
        left = tmp_path / "left"
        left.mkdir()
        for name in ("my.db", "my.db-wal"):
            (left / name).write_bytes((tmp_path / name).read_bytes())
        connection.close()
        before = files(left)
        mine = retriever("sqlite-fts", {"target": str(left / "my.db"), "table": "passages", "id": "key"})
        assert [doc for doc, _ in mine.retrieve(["owl"], 3)[0]] == ["d1"]
        assert files(left) == before

    def test_a_pipe_is_no_database(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(RetrieverError, match="there is no database"):
            retriever("sqlite-fts", {"target": str(tmp_path / "pipe"), "table": "passages"})


class TestPostgres:
    @pytest.mark.parametrize(
        "where", ["nextval('counter') > 0", "evil()", "set_config('a.b', 'c', false) > '' and evil()"]
    )
    def test_a_condition_cannot_write(self, database, where):
        database.add_vectors()
        before = database.state()
        settings = {"target": database.address, "table": "passages", "model": lambda texts: vectors_of(texts)[:, :4]}
        with pytest.raises(RetrieverError, match="read-only transaction"):
            retriever("pgvector", {**settings, "where": where}).retrieve(["owl"], 3)
        assert len(retriever("pgvector", settings).retrieve(["owl"], 3)[0]) == 1
        assert database.state() == before

    def test_a_condition_cannot_take_forever(self, database):
        database.add_vectors()
        settings = {"target": database.address, "table": "passages", "model": vectors_of, "timeout": 0.2}
        with pytest.raises(RetrieverError, match="statement timeout"):
            retriever("pgvector", {**settings, "where": "pg_sleep(600) is null"}).retrieve(["owl"], 3)

    @pytest.mark.parametrize("name", ["postgres-fts", "pgvector"])
    def test_indexing_the_corpus_twice_changes_no_table(self, database, corpus, name):
        database.add_vectors()
        before = database.state()
        settings = {"target": database.address} | ({"model": vectors_of} if name == "pgvector" else {})
        mine = retriever(name, settings).index(corpus)
        first = mine.retrieve(["owl at night"], 3)
        assert first[0]
        assert mine.index(corpus).retrieve(["owl at night"], 3) == first
        assert database.state() == before

    def test_pgvector_is_not_installed_into_the_database(self, database, corpus):
        before = database.state()
        for _ in range(2):
            with pytest.raises(RetrieverError, match="create extension vector"):
                retriever("pgvector", {"target": database.address, "model": vectors_of}).index(corpus)
        assert database.state() == before


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_a_query_without_a_score_fails_alone(library, corpus, tmp_path, kind):
    """The cosine of a vector of zeros is nan in pgvector; that is the failure of one query."""
    library(server_package())

    def embed(texts):
        return np.array([[0.0] * 8 if text == "unknown" else vectors_of([text])[0] for text in texts])

    queries = {"q1": "owl at night", "q2": "unknown", "q3": "fox"}
    dataset = sy.Dataset.of(corpus=corpus, queries=queries, qrels={query: ["d3"] for query in queries})
    rows = [{"pgvector": {"model": embed, "kind": kind}}, "bm25"]
    result = sy.bench({"dataset": dataset, "retrievers": rows, "measures": ["RR"]}, output=tmp_path / "out")
    assert set(result.rows[0].errors) <= {"q2"}
    assert {"q1", "q3"} <= set(result.runs["pgvector"].frame["query_id"].to_list())
    if kind == "exact":
        assert "is nan; expected a finite number" in result.rows[0].errors["q2"]
