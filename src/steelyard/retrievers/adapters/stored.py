"""Documents of databases as a corpus: PostgreSQL, SQLite, LanceDB, Chroma and Qdrant, which are only read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.checks import unknown_name
from steelyard.errors import InputError
from steelyard.retrievers.adapters.chroma import Chroma
from steelyard.retrievers.adapters.engines import Engine, text_column
from steelyard.retrievers.adapters.lancedb import LanceDB
from steelyard.retrievers.adapters.postgres import PostgresFts
from steelyard.retrievers.adapters.qdrant import Qdrant
from steelyard.retrievers.adapters.sqlite import SqliteFts, quoted
from steelyard.retrievers.dense import Dense

_BATCH = 1000
_SETTINGS = ("table", "collection", "id", "text", "title", "api_key", "timeout")


class _ChromaDocuments(Chroma):
    def _vector_source(self) -> Dense | None:
        return None

    def _open(self) -> Any:
        return self._target_client().get_collection(self.collection, embedding_function=None)


class _QdrantDocuments(Qdrant):
    def _vector_source(self) -> Dense | None:
        return None


_CLASSES: dict[str, type[Engine]] = {
    "postgres": PostgresFts,
    "sqlite": SqliteFts,
    "lancedb": LanceDB,
    "chroma": _ChromaDocuments,
    "qdrant": _QdrantDocuments,
}


def stored_documents(store: str, settings: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """The documents of a database, as records with `_id`, `text` and, if it is named, `title`.

    settings: the target under the name of the database, `table` or `collection`, and the columns `id`, `text`, `title`.
    """
    chosen = {str(name): value for name, value in settings.items() if name != store}
    for name in chosen:
        if name not in _SETTINGS:
            raise InputError(f"corpus in {store}: {unknown_name('setting', name, _SETTINGS)}")
    title = chosen.pop("title", None)
    if store == "lancedb":
        chosen["search"] = "text"
    if store == "sqlite":
        chosen.setdefault("id", "rowid")
    cls = _CLASSES[store]
    known = {"folder": str(folder)} if "folder" in cls.declared else {}
    engine = cls(**{"target": settings[store], "name": f"the corpus in {store}", **known, **chosen})
    columns = {"id": str(getattr(engine, "id", "id")), "text": engine.text, "title": title}
    read = {"postgres": _postgres, "sqlite": _sqlite, "lancedb": _lancedb, "chroma": _chroma, "qdrant": _qdrant}
    return read[store](engine, columns)


def _text_of(columns: Mapping[str, Any], known: list[str], engine: Any) -> str:
    found = text_column(known, columns["text"], engine.label)
    if found is None:
        raise InputError(f"{engine.label}: no column holds texts; set `text` to one of {', '.join(known)}.")
    return found


def _records(rows: Any) -> Iterator[dict[str, Any]]:
    for doc, text, *title in rows:
        yield {"_id": doc, "text": text, **({"title": title[0]} if title else {})}


def _postgres(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    described = engine._run(engine._sql("select * from {table} limit 0", table=engine._table)).description
    text = _text_of(columns, [column.name for column in described], engine)
    named = {"id": columns["id"], "text": text, **({"title": columns["title"]} if columns["title"] else {})}
    statement = engine._sql(
        f"select {', '.join(f'{{{role}}}' for role in named)} from {{table}} order by {{id}}",
        table=engine._table,
        **named,
    )
    connection = engine._connection
    # A cursor of the server, so that a large table is not in memory at once; it needs a transaction.
    with connection.transaction(), connection.cursor(name="steelyard_corpus") as cursor:
        cursor.itersize = _BATCH
        yield from _records(cursor.execute(statement))


def _sqlite(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    table = quoted(str(engine.table))
    described = engine._client.execute(f"select * from {table} limit 0").description
    text = _text_of(columns, [name for name, *_ in described], engine)
    selected = [columns["id"], text, *([columns["title"]] if columns["title"] else [])]
    yield from _records(engine._client.execute(f"select {', '.join(map(quoted, selected))} from {table}"))


def _lancedb(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    table = engine._client
    text = _text_of(columns, table.schema.names, engine)
    selected = [columns["id"], text, *([columns["title"]] if columns["title"] else [])]
    for batch in table.to_lance().to_batches(columns=selected) if hasattr(table, "to_lance") else []:
        yield from _records(tuple(row[name] for name in selected) for row in batch.to_pylist())


def _chroma(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    collection = engine._client
    for first in range(0, collection.count(), _BATCH):
        found = collection.get(limit=_BATCH, offset=first, include=["documents", "metadatas"])
        for doc, text, metadata in zip(found["ids"], found["documents"], found["metadatas"], strict=True):
            yield {"_id": doc, **(metadata or {}), "text": text or ""}


def _qdrant(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    client, place = engine._client, None
    while True:
        points, place = client.scroll(engine.collection, limit=_BATCH, offset=place, with_payload=True)
        for point in points:
            payload = dict(point.payload or {})
            text = payload.pop(_text_of(columns, list(payload), engine))
            yield {**payload, "_id": str(point.id), "text": text}
        if place is None:
            return
