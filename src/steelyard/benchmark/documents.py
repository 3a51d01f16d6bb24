"""Texts that retrievers return: kept in a file of the cache while a bench runs, not in memory."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from steelyard.errors import InputError
from steelyard.io.files import not_written
from steelyard.notes import Note, note
from steelyard.retrievers.adapters.documents import MADE, Keep, title_and_metadata
from steelyard.safe_text import utf8

if TYPE_CHECKING:
    import polars as pl

FILE = "documents.sqlite"
COLUMNS = ("doc_id", "text", "title", "metadata")
"""The columns of documents.parquet; the metadata is JSON, or empty."""

_RECENT = 50_000
"""Documents whose texts are known to be in the file; the others are looked up."""
_BATCH = 20_000
_EXAMPLES = 4


class ReturnedTexts:
    """The texts that the retrievers of a bench return, one per document id; the first of a bench is kept.

    `corpus`: documents whose texts are known, which are not kept again.
    """

    def __init__(self, cache: Path, corpus: Collection[str], fresh: bool = False) -> None:
        self.path = cache / FILE
        self._corpus = corpus
        self._session = uuid4().hex
        self._recent: dict[str, int] = {}
        self._database: sqlite3.Connection | None = None
        self._different: dict[str, Counter[str]] = {}
        if fresh:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def keeper(self, run: str) -> Keep:
        """A function that keeps the texts that one retriever returns."""

        def keep(doc: str, text: str, document: Any) -> None:
            if self._recent.get(doc) != hash(text) and doc not in self._corpus:
                self._add(run, doc, text, document)

        return keep

    def _add(self, run: str, doc: str, text: str, document: Any) -> None:
        if len(self._recent) >= _RECENT:
            self._recent.clear()
        raw, key = utf8(text), utf8(doc).decode()
        digest = blake2b(raw, digest_size=12).digest()
        row = self._execute("select digest, session from documents where doc_id = ?", (key,)).fetchone()
        if row is not None and row[0] != digest and row[1] == self._session:
            self._different.setdefault(run, Counter())[doc] += 1
            return
        self._recent[doc] = hash(text)
        if row is None or row[0] != digest:
            title, metadata = title_and_metadata(document)
            shown = utf8(json.dumps(metadata, ensure_ascii=False, default=str)).decode() if metadata else ""
            values = (key, digest, raw.decode(), utf8(title).decode(), shown, self._session)
            self._execute("insert or replace into documents values (?, ?, ?, ?, ?, ?)", values)
        elif row[1] != self._session:
            self._execute("update documents set session = ? where doc_id = ?", (self._session, key))

    def flush(self) -> None:
        """Write what was added, so that it is there if the process ends."""
        if self._database is not None:
            self._execute("commit", ()) if self._database.in_transaction else None

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self.flush()
            self._database.close()
            self._database = None

    def _execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        try:
            if self._database is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._database = sqlite3.connect(self.path, check_same_thread=False, isolation_level="DEFERRED")
                # What the process has written is safe if it is killed; after a power failure the bench starts afresh.
                for setting in ("journal_mode = wal", "synchronous = off", "cache_size = -8000"):
                    self._database.execute(f"pragma {setting}")
                self._database.execute(
                    "create table if not exists documents (doc_id text primary key, digest blob, text text, "
                    "title text, metadata text, session text)"
                )
            return self._database.execute(statement, values)
        except sqlite3.OperationalError as error:
            raise not_written(self.path, OSError(str(error))) from None
        except sqlite3.DatabaseError as error:
            raise InputError(f"cannot be read ({error}); run the bench with --fresh.", self.path) from None

    def rows(self, ids: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
        """Id, text, title and metadata of the documents that have a text."""
        if self._database is None and not self.path.exists():
            return
        wanted = iter(ids)
        while batch := list(islice(wanted, 500)):
            places = ", ".join("?" * len(batch))
            found = self._execute(
                f"select doc_id, text, title, metadata from documents where doc_id in ({places})",
                [utf8(doc).decode() for doc in batch],
            )
            by_id = {row[0]: row for row in found}
            yield from (by_id[doc] for doc in batch if doc in by_id)

    def notes(self) -> list[Note]:
        """Documents whose texts changed while the bench ran."""
        return [
            note("texts-differ", run=run, count=len(docs), documents=[doc for doc, _ in docs.most_common(_EXAMPLES)])
            for run, docs in self._different.items()
        ]


def write_documents(rows: Iterable[tuple[str, str, str, str]], path: Path) -> None:
    """Write documents.parquet, in parts that are joined at the end; the file is replaced when it is complete."""
    import polars as pl

    parts: list[Path] = []
    remaining = iter(rows)
    try:
        while batch := list(islice(remaining, _BATCH)):
            parts.append(path.with_name(f"{path.name}.part{len(parts)}"))
            _frame(batch).write_parquet(parts[-1])
        made = path.with_name(f"{path.name}.new")
        if len(parts) < 2:
            _frame([]).write_parquet(made) if not parts else os.replace(parts.pop(), made)
        else:
            pl.scan_parquet(parts).sink_parquet(made)
        os.replace(made, path)
    except OSError as error:
        raise not_written(path, error) from None
    finally:
        for part in parts:
            with suppress(OSError):
                part.unlink()


def _frame(rows: Sequence[tuple[str, str, str, str]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def id_notes(lists: Mapping[str, Collection[str]], returned: ReturnedTexts, by_text: Collection[str]) -> list[Note]:
    """Ids that were made from texts, and retrievers that return the same texts under different ids.

    lists: the documents that each retriever returned. by_text: the retrievers for which ids from texts were chosen.
    """
    notes = []
    for run, docs in lists.items():
        made = 0 if run in by_text else sum(doc.startswith(MADE) for doc in docs)
        if made:
            notes.append(note("ids-made", run=run, count=made))
    digests = {run: _text_digests(islice(docs, _BATCH), returned) for run, docs in lists.items()}
    names = [run for run, texts in digests.items() if texts]
    for place, run in enumerate(names):
        for other in names[place + 1 :]:
            shared = digests[run].keys() & digests[other].keys()
            apart = [text for text in shared if digests[run][text] != digests[other][text]]
            if apart and 2 * len(apart) > len(shared):
                first = apart[0]
                pair = (digests[run][first], digests[other][first])
                notes.append(note("same-texts-different-ids", run=run, other=other, count=len(apart), ids=pair))
    return notes


def _text_digests(docs: Iterable[str], returned: ReturnedTexts) -> dict[bytes, str]:
    return {blake2b(text.strip().encode(), digest_size=12).digest(): doc for doc, text, _, _ in returned.rows(docs)}
