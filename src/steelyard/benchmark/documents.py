"""Texts that retrievers return: kept in a file of the cache while a bench runs, not in memory."""

from __future__ import annotations

import json
import os
import sqlite3
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import combinations, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any
from uuid import uuid4

from steelyard.errors import InputError
from steelyard.io.files import not_written
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.retrievers.adapters.documents import MADE, Keep, title_and_metadata
from steelyard.safe_text import utf8

FILE = "documents.sqlite"
COLUMNS = ("doc_id", "text", "title", "metadata")  # The columns of documents.parquet; the metadata is JSON, or empty.
_KNOWN = 1 << 22  # Places for hashes of documents and texts that are known to be in the file; the others are looked up.
_AT_ONCE = 500  # Documents that are looked up with one statement.
_ROWS = 4_000
_CHARACTERS = 4_000_000  # The size of a part of a Parquet file.
_ID = 20  # Characters that are counted for an id in a list.
_COMPARED = 20_000  # Documents of a retriever whose texts are compared with those of the others.
_EXAMPLES = 4


class ReturnedTexts:
    """The texts that the retrievers of a bench return, one per document id; the first of a bench is kept.

    `corpus`: documents whose texts are known, which are not kept again.
    """

    def __init__(self, cache: Path, corpus: Collection[str], fresh: bool = False) -> None:
        self.path = cache / FILE
        self._corpus: Collection[str] = corpus or ()
        self._session = uuid4().hex
        self._known = array("q")
        self._database: sqlite3.Connection | None = None
        if fresh:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def keeper(self, answers: str) -> Keep:
        """A function that keeps the texts that one retriever returns, whose answers are in this file of the cache."""

        # A place for each hash, which a later one takes: 32 megabytes, however many documents there are.
        hashes = self._known = self._known or array("q", [0]) * _KNOWN

        def keep(doc: str, text: str, document: Any) -> None:
            seen = hash((answers, doc, text))
            if hashes[seen % _KNOWN] != seen and doc not in self._corpus:
                self._add(answers, doc, text, document)
                hashes[seen % _KNOWN] = seen

        return keep

    def _add(self, answers: str, doc: str, text: str, document: Any) -> None:
        """Add a text of a document to the file, and that it is in these answers; the first text of a bench stays."""
        raw, key = utf8(text), utf8(doc).decode()
        digest = blake2b(raw.strip(), digest_size=12).digest()
        title, metadata = title_and_metadata(document)
        shown = ""
        with suppress(Exception):  # The user's values may raise anything as text, or hold themselves.
            shown = utf8(json.dumps(metadata, ensure_ascii=False, default=str)).decode() if metadata else ""
        values = (key, digest, raw.decode(), utf8(title).decode(), shown, self._session)
        new = ", ".join(f"{name} = excluded.{name}" for name in ("digest", "text", "title", "metadata", "session"))
        update = f"on conflict (doc_id) do update set {new} where session != excluded.session"
        self._execute(f"insert into documents values (?, ?, ?, ?, ?, ?) {update}", values)
        self._execute("insert or ignore into returned values (?, ?, ?)", (key, answers, digest))

    def forget(self, answers: str) -> None:
        """Forget which texts are in a file of answers: all of them are asked for again."""
        if self.path.exists():
            self._execute("delete from returned where answers = ?", (answers,))

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
            return (self._database or self._opened()).execute(statement, values)
        except sqlite3.DatabaseError as error:
            raise self._file_error(error) from None

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = self._database = sqlite3.connect(self.path, check_same_thread=False, isolation_level="DEFERRED")
        # What the process has written is safe if it is killed; after a power failure the bench starts afresh.
        settings = "locking_mode=exclusive journal_mode=wal synchronous=off cache_size=-16000 wal_autocheckpoint=10000"
        for setting in settings.split():
            database.execute(f"pragma {setting}")
        database.execute(
            "create table if not exists documents (doc_id text primary key, digest blob, text text, "
            "title text, metadata text, session text)"
        )
        columns = "doc_id text, answers text, digest blob, primary key (doc_id, answers, digest)"
        database.execute(f"create table if not exists returned ({columns}) without rowid")
        return database

    def _file_error(self, error: sqlite3.DatabaseError) -> Exception:
        """An error of SQLite as one that names the file and what to do."""
        if isinstance(error, sqlite3.OperationalError):
            return not_written(self.path, OSError(str(error)))
        return InputError(f"cannot be read ({error}); run the bench with --fresh.", self.path)

    def rows(self, ids: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
        """Id, text, title and metadata of the documents that have a text."""
        return self._rows("doc_id, text, title, metadata", ids)

    def digests(self, ids: Iterable[str]) -> dict[bytes, str]:
        """The id of each text among the documents, by a hash of the text."""
        return dict(self._rows("digest, doc_id", ids))

    def _rows(self, columns: str, ids: Iterable[str]) -> Iterator[Any]:
        if self._database is None and not self.path.exists():
            return
        keys = (utf8(doc).decode() for doc in ids)
        while part := list(islice(keys, _AT_ONCE)):
            places = ", ".join("?" * len(part))
            statement = f"select {columns} from documents where doc_id in ({places}) order by doc_id"
            try:
                yield from self._execute(statement, part)
            except sqlite3.DatabaseError as error:
                raise self._file_error(error) from None

    def notes(self, runs: Mapping[str, str]) -> list[Note]:
        """Documents with different texts in one retriever; those with none in common in two, if there is no corpus.

        runs: the retriever of each file of answers.
        """
        if not self.path.exists():
            return []
        of_runs = f"from returned where answers in ({', '.join('?' * len(runs))})"
        several = f"select doc_id {of_runs} group by doc_id having min(digest) < max(digest)"
        statement = f"select doc_id, answers, digest {of_runs} and doc_id in ({several}) order by doc_id"
        in_one: dict[str, list[str]] = {}
        in_two: dict[tuple[str, str], list[str]] = {}
        for doc, rows in groupby(self._execute(statement, [*runs, *runs]), itemgetter(0)):
            texts: dict[str, set[bytes]] = {}
            for _, answers, digest in rows:
                texts.setdefault(answers, set()).add(digest)
            found = [(name, texts[answers]) for answers, name in runs.items() if answers in texts]
            for name in (name for name, own in found if len(own) > 1):
                in_one.setdefault(name, []).append(doc)
            for (name, own), (other, theirs) in combinations([] if self._corpus else found, 2):
                if own.isdisjoint(theirs):
                    in_two.setdefault((name, other), []).append(doc)
        differ = [("texts-differ", {"run": run}, docs) for run, docs in in_one.items()]
        differ += [("different-texts-same-id", {"run": a, "other": b}, docs) for (a, b), docs in in_two.items()]
        return [note(code, **names, count=len(docs), documents=docs[:_EXAMPLES]) for code, names, docs in differ]


def write_rows(rows: Iterable[tuple[Any, ...]], path: Path, schema: Mapping[str, Any]) -> None:
    """Write rows as Parquet, in parts that are joined at the end; the file is replaced when it is complete.

    A part is a few megabytes, and so is a row group of the file: both are in memory while they are written.
    """
    parts: list[Path] = []
    count = 0
    new_path = path.with_name(f"{path.name}.new")
    try:
        for part in _parts(rows):
            parts.append(path.with_name(f"{path.name}.part{len(parts)}"))
            pl.DataFrame(part, schema=schema, orient="row").write_parquet(parts[-1])
            count += len(part)
        if len(parts) < 2:
            pl.DataFrame(schema=schema).write_parquet(new_path) if not parts else os.replace(parts.pop(), new_path)
        else:
            pl.scan_parquet(parts).sink_parquet(new_path, row_group_size=-(-count // len(parts)))
        os.replace(new_path, path)
    except OSError as error:
        raise not_written(path, error) from None
    finally:
        for file in parts:
            with suppress(OSError):
                file.unlink()


def _parts(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows in parts with at most `_ROWS` rows, and not many more than `_CHARACTERS` characters."""
    part: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += sum(len(cell) * (1 if isinstance(cell, str) else _ID) for cell in row if isinstance(cell, str | list))
        if len(part) == _ROWS or size >= _CHARACTERS:
            yield part
            part, size = [], 0
    if part:
        yield part


def id_notes(lists: Mapping[str, Collection[str]], returned: ReturnedTexts, by_text: Collection[str]) -> list[Note]:
    """Ids that were made from texts, and retrievers that return the same texts under different ids.

    lists: the documents that each retriever returned. by_text: the retrievers for which ids from texts were chosen.
    """
    notes = []
    for run, docs in lists.items():
        count = 0 if run in by_text else sum(doc.startswith(MADE) for doc in docs)
        if count:
            notes.append(note("ids-made", run=run, count=count))
    digests = {run: returned.digests(islice(docs, _COMPARED)) for run, docs in lists.items()}
    for (run, ids), (other, theirs) in combinations([(run, texts) for run, texts in digests.items() if texts], 2):
        shared = ids.keys() & theirs.keys()
        apart = [text for text in shared if ids[text] != theirs[text]]
        if apart and 2 * len(apart) > len(shared):
            pair = (ids[apart[0]], theirs[apart[0]])
            notes.append(note("same-texts-different-ids", run=run, other=other, count=len(apart), ids=pair))
    return notes
