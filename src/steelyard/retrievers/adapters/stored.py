"""Documents of databases as a corpus: PostgreSQL, SQLite, LanceDB, Chroma and Qdrant, which are only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.checks import unknown_name
from steelyard.errors import InputError, SteelyardError
from steelyard.io.datasets import DOCUMENT_IDS, find_column
from steelyard.retrievers.adapters.base import Engine
from steelyard.retrievers.adapters.chroma import Chroma
from steelyard.retrievers.adapters.lancedb import LanceDB
from steelyard.retrievers.adapters.postgres import PostgresFts
from steelyard.retrievers.adapters.qdrant import Qdrant
from steelyard.retrievers.adapters.sqlite import SqliteFts, quoted
from steelyard.safe_text import error_text

_BATCH = 1000
_SETTINGS = ("table", "collection", "id", "text", "title", "api_key", "timeout")


class _QdrantDocuments(Qdrant):
    embeds_queries = True


def stored_documents(store: str, settings: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """The documents of a database, as records with `_id`, `text` and, if it is named, `title`.

    settings: the target under the name of the database, `table` or `collection`, and the columns `id`, `text`, `title`.
    Without `id`, it is the first column with a usual name; of SQLite, the rowid if there is none.
    """
    chosen = {str(name): value for name, value in settings.items() if name != store}
    for name in chosen:
        if name not in _SETTINGS:
            raise InputError(f"corpus in {store}: {unknown_name('setting', name, _SETTINGS)}")
    if store == "postgres" and not chosen.get("table"):
        raise InputError("the corpus in postgres needs `table`, its name.")
    columns = {name: chosen.get(name) for name in ("id", "text", "title")}
    chosen.pop("title", None)
    if store == "lancedb":
        chosen["search"] = "text"
    cls, read = _STORES[store]
    label = f"the corpus in {store}"
    defaults = {"folder": str(folder)} if "folder" in cls.declared else {}
    try:
        yield from read(cls(**{"target": settings[store], "name": label, **defaults, **chosen}), columns)
    except SteelyardError:
        raise
    except Exception as error:  # Each database has its own for a table that is not there, or a server that is down.
        raise InputError(f"{label} cannot be read ({error_text(error)}).") from None


def _selected(engine: Any, columns: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The columns of a table to read: its ids, its texts, and its titles if they are named."""
    text, label = engine._text_column(names), engine.label
    if text is None:
        raise InputError(f"{label}: no column holds texts; set `text` to one of {', '.join(names)}.")
    doc = find_column(names, DOCUMENT_IDS, columns["id"], "id", label)
    if doc is None:
        raise InputError(f"{label}: no column holds ids; set `id` to one of {', '.join(names)}.")
    title = find_column(names, (), columns["title"], "title", label)
    return [doc, text, *([] if title is None else [title])]


def _records(rows: Any) -> Iterator[dict[str, Any]]:
    for doc, text, *title in rows:
        yield {"_id": doc, "text": text, **({"title": title[0]} if title else {})}


def _postgres(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names = _selected(engine, columns, engine._columns())
    named = {f"column_{place}": name for place, name in enumerate(names)}
    statement = engine._sql(
        f"select {', '.join(f'{{{place}}}' for place in named)} from {{table}} order by {{column_0}}",
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
    described = [name for name, *_ in engine._client.execute(f"select * from {table} limit 0").description]
    by_row = columns["id"] is None and find_column(described, DOCUMENT_IDS, None, "id", engine.label) is None
    selected = _selected(engine, {**columns, "id": "rowid"} if by_row else columns, [*described, "rowid"])
    yield from _records(engine._client.execute(f"select {', '.join(map(quoted, selected))} from {table}"))


def _lancedb(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    table = engine._client
    selected = _selected(engine, columns, table.schema.names)
    for batch in table.search().select(selected).to_batches(_BATCH):
        yield from _records(tuple(row[name] for name in selected) for row in batch.to_pylist())


def _chroma(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    collection = engine._target_client().get_collection(engine.collection, embedding_function=None)
    engine.index({})
    for first in range(0, collection.count(), _BATCH):
        batch = collection.get(limit=_BATCH, offset=first, include=["documents", "metadatas"])
        for doc, text, metadata in zip(batch["ids"], batch["documents"], batch["metadatas"], strict=True):
            record = {"id": doc, "metadata": metadata or {}, "text": text or ""}
            yield {**record["metadata"], "_id": engine._ids.of(record, "a document"), "text": record["text"]}


def _qdrant(engine: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    client, place = engine._client, None
    engine.index({})
    while True:
        points, place = client.scroll(engine.collection, limit=_BATCH, offset=place, with_payload=True)
        for point in points:
            payload = dict(point.payload or {})
            text = engine._text_column(list(payload))
            yield {**payload, "_id": engine._ids.of(point, "a point"), "text": payload[text] if text else ""}
        if place is None:
            return


_STORES: dict[str, tuple[type[Engine], Callable[[Any, Mapping[str, Any]], Iterator[dict[str, Any]]]]] = {
    "postgres": (PostgresFts, _postgres),
    "sqlite": (SqliteFts, _sqlite),
    "lancedb": (LanceDB, _lancedb),
    "chroma": (Chroma, _chroma),
    "qdrant": (_QdrantDocuments, _qdrant),
}
