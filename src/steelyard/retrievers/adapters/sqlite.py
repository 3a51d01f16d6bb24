"""SQLite: full-text search by FTS5, and nearest neighbours by sqlite-vec."""

from __future__ import annotations

import re
import sqlite3
import weakref
from importlib import import_module
from pathlib import Path
from typing import Any

from steelyard.retrievers.adapters.engines import (
    PASSES,
    Engine,
    Kept,
    folder_bytes,
    required,
    temporary_folder,
    vector_source,
)
from steelyard.retrievers.adapters.targets import package
from steelyard.retrievers.base import Documents, RetrieverError
from steelyard.retrievers.filters import Filter
from steelyard.retrievers.shared_vectors import Vectors

WORD = re.compile(r"[^\W_]+")


class SqliteFts(Engine):
    """Full-text search of SQLite: BM25 of FTS5 (with its fixed k1 1.2 and b 0.75).

    tokenizer: tokenizer of FTS5 for the corpus: `porter unicode61` (English stems), `unicode61` or `trigram`.
    target: the file of an existing database; it is opened for reading only.
    table: its FTS5 table.
    id: its column with the document id; `rowid` by default.
    folder, version, name: as for `python`.

    A query is searched as plain words, any of which may match.
    """

    def __init__(
        self,
        target: str | Path | None = None,
        tokenizer: str = "porter unicode61",
        table: str | None = None,
        id: str = "rowid",
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or "sqlite-fts"
        known: dict[str, Any] = {"retriever": "sqlite-fts", "package": sqlite3.sqlite_version}
        if target is None:
            known["tokenizer"] = tokenizer
        else:
            required(table, "table", "the FTS5 table", label)
            known |= {"target": str(target), "table": table, "version": version, "column": id}
        super().__init__(label, target is not None, known)
        self._tokenizer = tokenizer
        self._table, self._id = (table or "documents", id) if target is not None else ("documents", "rowid")
        self._folder: Path | None = None
        self._connection: Any = None
        self._path = None if target is None else Path(folder or ".") / target
        if self._path is not None and not self._path.is_file():
            raise RetrieverError(f"{label}: there is no database {self._path}.")

    def size_in_bytes(self) -> int:
        """The size of the database."""
        return folder_bytes(self._folder)

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        self._folder = temporary_folder(self, "sqlite")
        connection = sqlite3.connect(self._folder / "corpus.db", check_same_thread=False)
        try:
            with connection:
                connection.execute(
                    f"create virtual table documents using fts5(text, content='', tokenize={_quoted(self._tokenizer)})"
                )
                rows = enumerate(documents.texts)
                connection.executemany("insert into documents(rowid, text) values (?, ?)", rows)
                connection.execute("insert into documents(documents) values ('optimize')")
        except sqlite3.Error as error:
            raise RetrieverError(f"{self.label}: SQLite could not index the corpus: {error}.") from None
        weakref.finalize(self, connection.close)
        self._connection = connection

    def _search(self, query: str, vector: Vectors | None, k: int) -> list[tuple[Any, float]]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(WORD.findall(query)))
        if not words:
            return []
        if self._connection is None:
            assert self._path is not None
            self._connection = read_only(self._path)
        table, column = _quoted(self._table), _quoted(self._id)
        statement = f"select {column}, -rank from {table} where {table} match ? order by rank limit ?"
        try:
            found: list[tuple[Any, float]] = self._connection.execute(statement, (words, k)).fetchall()
        except sqlite3.Error as error:
            raise RetrieverError(f"{self.label}: SQLite could not search: {error}.") from None
        return found


class SqliteVec(Engine):
    """Exact nearest neighbours in SQLite by sqlite-vec.

    of: the dense retriever whose vectors are used, such as `dense`.
    model, vectors: instead of `of`, the model and the vectors as for `dense`.
    filter: as for `dense`.
    target: the file of an existing database; it is opened for reading only.
    table: its vec0 table.
    column: the column of its vectors.
    id: its column with the document id; `rowid` by default.
    folder, version, name: as for `python`.

    It needs an interpreter whose sqlite3 can load extensions, or the package pysqlite3.
    """

    extra = "sqlite-vec"

    def __init__(
        self,
        target: str | Path | None = None,
        table: str | None = None,
        column: str = "embedding",
        id: str = "rowid",
        of: Any = None,
        model: Any = None,
        vectors: Any = None,
        filter: Filter | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or "sqlite-vec"
        self._package = package("sqlite_vec", self.extra, "sqlite-vec")
        self._driver = _driver_with_extensions(label)
        known: dict[str, Any] = {"retriever": "sqlite-vec", "package": self._package.__version__}
        if target is not None:
            required(table, "table", "the vec0 table", label)
            known |= {"target": str(target), "table": table, "column": column, "version": version, "row": id}
        source = vector_source(of, model, vectors, folder, label)
        super().__init__(label, target is not None, known, source, filter)
        self._table, self._column, self._id = (
            (table, column, id) if target is not None else ("documents", "embedding", "rowid")
        )
        self._where = f" and {PASSES} = 1" if filter is not None else ""
        self._folder: Path | None = None
        self._connection: Any = None
        self._path = None if target is None else Path(folder or ".") / target
        if self._path is not None and not self._path.is_file():
            raise RetrieverError(f"{label}: there is no database {self._path}.")

    def size_in_bytes(self) -> int:
        """The size of the database."""
        return folder_bytes(self._folder)

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        assert vectors is not None
        self._folder = temporary_folder(self, "sqlite")
        connection = self._loaded(self._driver.connect(self._folder / "corpus.db", check_same_thread=False))
        width = vectors.shape[1]
        passes = [1] * len(documents) if kept is None else kept.astype(int).tolist()
        with connection:
            connection.execute(
                f"create virtual table documents using vec0(embedding float[{width}] distance_metric=cosine, "
                f"{PASSES} integer)"
            )
            rows = ((row, vectors[row].tobytes(), passes[row]) for row in range(len(documents)))
            connection.executemany(
                f"insert into documents(rowid, embedding, {PASSES}) values (?, ?, ?)", rows
            )
        weakref.finalize(self, connection.close)
        self._connection = connection

    def _search(self, query: str, vector: Vectors | None, k: int) -> list[tuple[Any, float]]:
        assert vector is not None
        if self._connection is None:
            assert self._path is not None
            self._connection = self._loaded(read_only(self._path, self._driver))
        statement = (
            f"select {_quoted(self._id)}, {0 if self._existing else 1} - distance from {_quoted(str(self._table))} "
            f"where {_quoted(self._column)} match ? and k = ?{self._where} order by distance"
        )
        try:
            found: list[tuple[Any, float]] = self._connection.execute(
                statement, (vector.tobytes(), k)
            ).fetchall()
        except self._driver.Error as error:
            raise RetrieverError(f"{self.label}: SQLite could not search: {error}.") from None
        return found

    def _loaded(self, connection: Any) -> Any:
        connection.enable_load_extension(True)
        self._package.load(connection)
        connection.enable_load_extension(False)
        return connection


def read_only(path: Path, driver: Any = sqlite3) -> Any:
    """A connection to a database that cannot write to it."""
    return driver.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _driver_with_extensions(label: str) -> Any:
    """The sqlite3 of Python, or of pysqlite3, whichever can load extensions."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        return import_module("pysqlite3")
    except ImportError:
        raise RetrieverError(
            f"{label}: the sqlite3 of this Python cannot load extensions; install another one: pip install pysqlite3-binary"
        ) from None


def _quoted(name: str) -> str:
    """A name in SQL."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
