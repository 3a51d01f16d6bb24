"""PostgreSQL: full-text search and nearest neighbours by pgvector, of the corpus or of an existing table."""

from __future__ import annotations

import re
import tempfile
import warnings
import weakref
from functools import cache
from pathlib import Path
from typing import Any

from steelyard.masking import masked
from steelyard.retrievers.adapters.engines import PASSES, Engine, Kept, chosen_kind, opened, vector_source
from steelyard.retrievers.adapters.targets import package
from steelyard.retrievers.base import Documents, RetrieverError, number, unknown, whole
from steelyard.retrievers.filters import Filter
from steelyard.retrievers.shared_vectors import Vectors

_WORD = re.compile(r"[^\W_]+")
_KINDS: dict[str, dict[str, int]] = {
    "exact": {},
    "hnsw": {"m": 16, "ef_construction": 64, "ef_search": 40},
    "ivfflat": {"lists": 64, "probes": 1},
}
_RANKS = ("ts_rank", "ts_rank_cd")


class _Postgres(Engine):
    """A table of PostgreSQL, of the corpus or an existing one. The connection is opened for the first query.

    The corpus is in a temporary table, which PostgreSQL removes when the connection is closed. Without a target, a
    private server of the package pgserver is started.
    """

    def _connect_to(self, target: str | None, table: str | None, timeout: float) -> None:
        """Set how the connection is opened."""
        self._psycopg = package("psycopg", "postgres", self.label)
        package("psycopg.sql", "postgres", self.label)
        self._address = None if target is None else opened({"url": target}, self.label)["url"]
        self._table = table
        self._timeout = number(self.label, "timeout", timeout, 0.001)
        self._connected: Any = None
        self._bytes = 0

    @property
    def _connection(self) -> Any:
        """An open connection; a broken one is replaced, unless the corpus was in it."""
        if self._connected is not None and self._existing and self._connected.closed:
            self._connected = None
        if self._connected is None:
            milliseconds = max(1, int(1000 * self._timeout))
            address = self._address or private_server()
            try:
                self._connected = self._psycopg.connect(
                    address,
                    autocommit=True,
                    connect_timeout=max(1, round(self._timeout)),
                    options=f"-c statement_timeout={milliseconds if self._existing else 0}",
                )
                weakref.finalize(self, self._connected.close)
                if self._existing:
                    self._connected.read_only = True
            except self._psycopg.Error as error:
                raise RetrieverError(f"{self.label}: no connection to PostgreSQL: {_text(error)}") from None
        return self._connected

    def size_in_bytes(self) -> int:
        """The table of the corpus with its indexes."""
        return self._bytes

    def _run(self, statement: Any, values: Any = None, prepare: bool | None = None) -> Any:
        try:
            return self._connection.execute(statement, values, prepare=prepare)
        except self._psycopg.Error as error:
            raise RetrieverError(f"{self.label}: PostgreSQL: {_text(error)}") from None

    def _name(self, name: str) -> Any:
        """A name in SQL; a dot separates the schema."""
        return self._psycopg.sql.Identifier(*name.split("."))

    def _sql(self, text: str, **names: str) -> Any:
        named = {key: self._name(value) for key, value in names.items()}
        return self._psycopg.sql.SQL(text).format(**named)

    def _measure(self) -> None:
        """The size of the table of the corpus."""
        self._run("analyze documents")
        self._bytes = self._run("select pg_total_relation_size('documents')").fetchone()[0]


class PostgresFts(_Postgres):
    """Full-text search of PostgreSQL.

    config: the text search configuration, such as english or simple.
    rank: `ts_rank` or `ts_rank_cd`, with `normalization` (0: a document's length has no influence).
    match: `any` word of the query, or `all`.
    target: the URL of a server; ${VARIABLE} is read from the environment. Without it, a private server of the package
        pgserver is started.
    table: an existing table; nothing is written to it. Without it, the corpus is indexed in a temporary table.
    column: its column of text or tsvector.
    id: its column with the document id.
    timeout: seconds per query of an existing table.
    version, name: as for `python`.

    Equal ranks are in the order of the ids.
    """

    extra = "postgres"

    def __init__(
        self,
        target: str | None = None,
        config: str = "english",
        rank: str = "ts_rank",
        normalization: int = 0,
        match: str = "any",
        table: str | None = None,
        column: str = "text",
        id: str = "id",
        timeout: float = 30.0,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or table or "postgres-fts"
        if rank not in _RANKS:
            raise unknown(label, "rank", rank, _RANKS)
        if match not in ("any", "all"):
            raise unknown(label, "match", match, ("any", "all"))
        known: dict[str, Any] = {
            "retriever": "postgres-fts",
            "config": config,
            "rank": rank,
            "normalization": whole(label, "normalization", normalization),
            "match": match,
        }
        if table is not None:
            if target is None:
                raise RetrieverError(f"{label}: `table` needs a target, the URL of its server.")
            known |= {"target": target, "table": table, "column": column, "row": id, "version": version}
        self._config, self._joint = config, " | " if match == "any" else " & "
        self._column, self._id = (column, id) if table is not None else ("words", "position")
        super().__init__(label, table is not None, known)
        self._connect_to(target, table, timeout)
        self._rank = f"{rank}({{words}}, query, {known['normalization']})"
        self._statement: Any = None

    def _prepared(self) -> Any:
        """The statement; text of an existing table is parsed while it is searched."""
        names = {"table": self._table or "documents", "column": self._column, "id": self._id}
        words = "{column}"
        if self._existing:
            kind = self._run(self._sql("select pg_typeof({column}) from {table} limit 1", **names)).fetchone()
            if kind is None or str(kind[0]) != "tsvector":
                words = "to_tsvector(%(config)s::regconfig, {column}::text)"
        rank = self._rank.replace("{words}", words)
        return self._sql(
            f"select {{id}}, {rank} as score from {{table}}, to_tsquery(%(config)s::regconfig, %(words)s) query "
            f"where {words} @@ query order by score desc, {{id}} limit %(k)s",
            **names,
        )

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        self._run("drop table if exists documents")
        self._run("create temporary table documents (position bigint primary key, words tsvector)")
        with self._connection.cursor() as cursor:
            try:
                cursor.executemany(
                    "insert into documents values (%s, to_tsvector(%s::regconfig, %s))",
                    (
                        (row, self._config, text.replace("\0", " "))
                        for row, text in enumerate(documents.texts)
                    ),
                )
            except self._psycopg.Error as error:
                raise RetrieverError(
                    f"{self.label}: PostgreSQL could not index the corpus: {_text(error)}"
                ) from None
        self._run("create index on documents using gin (words)")
        self._measure()

    def _search(self, query: str, vector: Vectors | None, k: int) -> list[tuple[Any, float]]:
        words = self._joint.join(f"'{word}'" for word in dict.fromkeys(_WORD.findall(query)))
        if not words:
            return []
        if self._statement is None:
            self._statement = self._prepared()
        values = {"config": self._config, "words": words, "k": k}
        found: list[tuple[Any, float]] = self._run(self._statement, values, prepare=True).fetchall()
        return found


class PgVector(_Postgres):
    """Nearest neighbours in PostgreSQL by pgvector: exact, or approximate (hnsw, ivfflat).

    kind: `exact`, `hnsw` or `ivfflat`.
    m, ef_construction, ef_search: of hnsw; links per document, candidates while it is built and while it is searched.
        A search returns at most ef_search documents.
    lists, probes: of ivfflat; the number of lists, and of lists that are searched.
    of: the dense retriever whose vectors are used, such as `dense`.
    model, vectors: instead of `of`, the model and the vectors as for `dense`.
    filter: as for `dense`; pgvector applies it after the search of the index, so that fewer documents may be found.
    target: the URL of a server; ${VARIABLE} is read from the environment. Without it, a private server of the package
        pgserver is started.
    table: an existing table; nothing is written to it. Without it, the corpus is indexed in a temporary table.
    column: its column of vectors.
    id: its column with the document id.
    distance: the operator of an existing table: `cosine`, `l2` or `product`.
    where: a condition in SQL for an existing table.
    timeout: seconds per query of an existing table.
    folder, version, name: as for `python`.

    Scores are cosines for the corpus, and minus the distance for an existing table.
    """

    extra = "postgres"

    def __init__(
        self,
        target: str | None = None,
        kind: str = "exact",
        m: int | None = None,
        ef_construction: int | None = None,
        ef_search: int | None = None,
        lists: int | None = None,
        probes: int | None = None,
        of: Any = None,
        model: Any = None,
        vectors: Any = None,
        filter: Filter | None = None,
        table: str | None = None,
        column: str = "embedding",
        id: str = "id",
        distance: str = "cosine",
        where: str | None = None,
        timeout: float = 30.0,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or table or "pgvector"
        operators = {"cosine": "<=>", "l2": "<->", "product": "<#>"}
        if distance not in operators:
            raise unknown(label, "distance", distance, operators)
        given = {
            "m": m,
            "ef_construction": ef_construction,
            "ef_search": ef_search,
            "lists": lists,
            "probes": probes,
        }
        self._kind = kind
        self._parameters = chosen_kind(kind, _KINDS, given, label)
        known: dict[str, Any] = {"retriever": "pgvector", "kind": kind, **self._parameters}
        if table is not None:
            if target is None:
                raise RetrieverError(f"{label}: `table` needs a target, the URL of its server.")
            known |= {"target": target, "table": table, "column": column, "row": id, "version": version}
            known |= {"distance": distance, "where": where}
        source = vector_source(of, model, vectors, folder, label)
        super().__init__(label, table is not None, known, source, filter)
        self._connect_to(target, table, timeout)
        condition = f" where {PASSES}" if filter is not None else ""
        if table is not None and where:
            condition = f" where {where.replace('{', '{{').replace('}', '}}').replace('%', '%%')}"
        self._set = False
        self._statement = self._sql(
            f"select {{id}}, {{column}} {operators[distance]} %s::vector as distance from {{table}}{condition} "
            "order by distance limit %s",
            table=table or "documents",
            column=column if table is not None else "vector",
            id=id if table is not None else "position",
        )

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        assert vectors is not None
        try:
            self._run("create extension if not exists vector")
        except RetrieverError as error:
            raise RetrieverError(f"{error} The server needs the extension pgvector.") from None
        width = vectors.shape[1]
        self._run("drop table if exists documents")
        self._run(
            f"create temporary table documents (position bigint primary key, {PASSES} bool, vector vector({width}))"
        )
        with self._connection.cursor() as cursor, cursor.copy("copy documents from stdin") as copy:
            for row in range(len(documents)):
                copy.write_row((row, kept is None or bool(kept[row]), _vector_text(vectors[row])))
        if self._kind != "exact":
            built = {
                key: value for key, value in self._parameters.items() if key not in ("ef_search", "probes")
            }
            options = ", ".join(f"{key} = {value}" for key, value in built.items())
            self._run("set max_parallel_maintenance_workers = 0")
            self._run(
                f"create index on documents using {self._kind} (vector vector_cosine_ops) with ({options})"
            )
        self._measure()

    def _search(self, query: str, vector: Vectors | None, k: int) -> list[tuple[Any, float]]:
        assert vector is not None
        if not self._set:
            self._prepare_session()
        found = self._run(self._statement, (_vector_text(vector), k), prepare=True).fetchall()
        one = 0 if self._existing else 1
        return [(doc, one - distance) for doc, distance in found]

    def _prepare_session(self) -> None:
        """The parameters of the search; an index of the corpus is always used, also where a scan would be faster."""
        names = {"ef_search": "hnsw.ef_search", "probes": "ivfflat.probes"}
        for key, setting in names.items():
            if key in self._parameters:
                self._run("select '[1]'::vector")  # Loads pgvector, which knows these settings.
                self._run(f"set {setting} = {self._parameters[key]}")
        if not self._existing and self._kind != "exact":
            self._run("set enable_seqscan = off")
        self._set = True


def _vector_text(vector: Vectors) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"


@cache
def private_server() -> str:
    """The address of a server that all retrievers share; it is removed when this process ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = package("pgserver", "postgres", "a private PostgreSQL server")
        folder = tempfile.mkdtemp(prefix="steelyard-postgres-")
        address: str = pgserver.get_server(folder, cleanup_mode="delete").get_uri()
    return address


def _text(error: Exception) -> str:
    """The first line of an error, without secrets."""
    lines = masked(str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
