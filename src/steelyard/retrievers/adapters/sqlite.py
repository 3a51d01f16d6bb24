"""SQLite: full-text search by FTS5, and nearest neighbours by sqlite-vec."""

from __future__ import annotations

import sqlite3
import weakref
from importlib import import_module
from pathlib import Path
from typing import Any

from steelyard.checks import unknown_name
from steelyard.retrievers.adapters.base import PASSES, WORD, Engine, Kept, VectorEngine, found_rows, private_copy
from steelyard.retrievers.adapters.documents import HASH
from steelyard.retrievers.base import CheckedCorpus, RetrieverError
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import package
from steelyard.temporary import temporary_folder


class _Sqlite(Engine):
    """A table of SQLite, of the corpus in a temporary folder, or of an existing database."""

    id_path = "id"
    selects_texts = True
    _driver: Any = sqlite3
    _text: str | None = None

    target: str | Path | None = setting(
        "the file of an existing database; it is opened for reading only", default=None, kw_only=False
    )

    table: str | None = setting("the table", default=None, only="target", needed=True)

    def _set_up(self) -> None:
        super()._set_up()
        if not self._existing:
            return
        self._database = self._path("database")
        # A table or a column that does not exist: SQLite takes an unknown name in quotes for a text.
        try:
            cursor = self._client.execute(f"select * from {quoted(str(self.table))} limit 0")
        except self._driver.Error as error:
            raise self._error(f"SQLite cannot read the table: {error}.") from None
        columns = list(dict.fromkeys(["rowid", *(name for name, *_ in cursor.description)]))
        self._text = self._text_column(columns)
        for setting_name in ("id", "column"):
            column = getattr(self, setting_name, "rowid")
            if column not in columns and (setting_name, column) != ("id", HASH):
                raise self._error(f"{unknown_name(f'column in `{setting_name}`', column, columns)}")

    def _open(self) -> Any:
        """A connection that cannot write to the database and leaves no file beside it."""
        path, address = self._database, self._database.resolve().as_uri()
        log, shared = (path.with_name(f"{path.name}-{name}") for name in ("wal", "shm"))
        with path.open("rb") as file:
            written_ahead = file.read(20)[18:20] == b"\x02\x02"
        if written_ahead and not log.exists():
            # Even a reader would create the log and its shared memory, and leave them. Without a log nobody has the
            # database open for writing, so that it can be read as a file that does not change.
            address += "?immutable=1"
        elif written_ahead and not shared.exists():
            # The log of a process that was killed: reading it would create the shared memory, so a copy is read.
            address = private_copy(path, self, log).as_uri()
        else:
            # With a log in use, readers share its memory, as SQLite's locks require; nothing else is written.
            address += "?mode=ro"
        return self._connected(self._driver.connect(address, uri=True, check_same_thread=False))

    def _create(self) -> Any:
        self._folder = temporary_folder("sqlite", self)
        return self._connected(self._driver.connect(self._folder / "corpus.db", check_same_thread=False))

    def _connected(self, connection: Any) -> Any:
        weakref.finalize(self, connection.close)
        return connection

    def _selected(self, score: str) -> str:
        """The columns of a select: the id, the score and, if there is one, the text."""
        columns = f"{quoted(self._id_column(self._text))}, {score}"
        return columns if self._text is None else f"{columns}, {quoted(self._text)}"

    def _rows(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            return found_rows(self._client.execute(statement, values).fetchall())
        except self._driver.Error as error:
            raise self._error(f"SQLite could not search: {error}.") from None


class SqliteFts(_Sqlite):
    """Full-text search of SQLite: BM25 of FTS5 (with its fixed k1 1.2 and b 0.75).

    A query is searched as plain words, any of which may match.
    """

    retriever = "sqlite-fts"

    tokenizer: str = setting(
        "tokenizer of FTS5: `porter unicode61` (English stems), `unicode61` or `trigram`",
        default="porter unicode61",
        only="corpus",
    )
    table: str | None = setting("the FTS5 table", default=None, only="target", needed=True)
    id: str = setting(default="rowid", only="target", key="column")

    def _package_version(self) -> dict[str, Any]:
        return {"package": sqlite3.sqlite_version}

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        connection = self._create()
        try:
            with connection:
                connection.execute(
                    f"create virtual table documents using fts5(text, content='', tokenize={quoted(self.tokenizer)})"
                )
                connection.executemany("insert into documents(rowid, text) values (?, ?)", enumerate(documents.texts))
                connection.execute("insert into documents(documents) values ('optimize')")
        except sqlite3.Error as error:
            raise self._error(f"SQLite could not index the corpus: {error}.") from None
        self._client = connection

    def _search(self, query: str, vector: Vectors, k: int) -> list[Any]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(WORD.findall(query)))
        if not words:
            return []
        table = quoted(self.table or "documents")
        statement = f"select {self._selected('-rank')} from {table} where {table} match ? order by rank limit ?"
        return self._rows(statement, (words, k))


class SqliteVec(_Sqlite, VectorEngine):
    """Exact nearest neighbours in SQLite by sqlite-vec.

    It needs an interpreter whose sqlite3 can load extensions, or the package pysqlite3.
    """

    retriever = extra = "sqlite-vec"
    module = "sqlite_vec"

    table: str | None = setting("the vec0 table", default=None, only="target", needed=True)
    column: str = setting("the column of its vectors", default="embedding", only="target")
    id: str = setting(default="rowid", only="target", key="row")

    def _set_up(self) -> None:
        package(self.module, self.extra, self.retriever)  # The package that is missing is named before its driver.
        self._driver = _driver_with_extensions(self.label)
        super()._set_up()

    def _connected(self, connection: Any) -> Any:
        connection.enable_load_extension(True)
        self._package.load(connection)
        connection.enable_load_extension(False)
        return super()._connected(connection)

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        connection = self._create()
        passes = [1] * len(documents) if kept is None else kept.astype(int).tolist()
        with connection:
            connection.execute(
                f"create virtual table documents using vec0(embedding float[{vectors.shape[1]}] "
                f"distance_metric=cosine, {PASSES} integer)"
            )
            rows = ((row, vectors[row].tobytes(), passes[row]) for row in range(len(documents)))
            connection.executemany(f"insert into documents(rowid, embedding, {PASSES}) values (?, ?, ?)", rows)
        self._client = connection

    def _search(self, query: str, vector: Vectors, k: int) -> list[Any]:
        filtered = f" and {PASSES} = 1" if self.filter is not None else ""
        statement = (
            f"select {self._selected(f'{0 if self._existing else 1} - distance')} from "
            f"{quoted(self.table or 'documents')} where {quoted(self.column)} match ? and k = ?{filtered} "
            "order by distance"
        )
        return self._rows(statement, (vector.tobytes(), k))


def _driver_with_extensions(label: str) -> Any:
    """The sqlite3 of Python, or of pysqlite3, whichever can load extensions."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        return import_module("pysqlite3")
    except ImportError:
        raise RetrieverError(
            f"{label}: the sqlite3 of this Python cannot load extensions; "
            "install another one: pip install pysqlite3-binary, or pysqlite3 if that has no wheel for this machine"
        ) from None


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'
