"""What a bench keeps for the next one: answers, appended as they arrive, so that a stopped bench can continue; the
texts that came back, in a file and not in memory; and saved indexes of large corpora. The lock of its folder."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sqlite3
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import combinations, groupby, islice
from operator import itemgetter
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any
from uuid import uuid4

from steelyard.checks import number_between
from steelyard.datasets.corpus import Corpus
from steelyard.errors import InputError, SteelyardError
from steelyard.io.files import hold, is_at, not_written, write_file
from steelyard.masking import identifying
from steelyard.notes import Note, note
from steelyard.retrievers.adapters.documents import MADE, Keep, read_lists, title_and_metadata
from steelyard.retrievers.base import Ranked, Retriever
from steelyard.retrievers.bm25 import BM25
from steelyard.safe_text import utf8
from steelyard.version import __version__

CACHE = "cache"  # The folder of the cache in a result folder.
_FILE_NAME = re.compile(r"[0-9a-f]{20}\.jsonl")


@dataclass
class Answers:
    """The answers of one retriever: lists, seconds and errors by query, and the cost of indexing.

    `sessions`: which times were measured together. `id_hint`: the field with the ids of the corpus, if others came
    back. `unfinished`: the query that was running when the process was killed. `reads`: the stages and what each read.
    """

    lists: dict[str, Ranked] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    id_hint: str | None = None
    unfinished: str | None = None
    reads: dict[str, list[str]] = field(default_factory=dict)

    @property
    def session(self) -> str | None:
        """The session of the times; of several, a hash of the session of every query. None if it is unknown."""
        if not self.sessions or not all(self.sessions.values()):
            return None
        if len(set(self.sessions.values())) == 1:
            return next(iter(self.sessions.values()))
        return hashlib.sha256(json.dumps(sorted(self.sessions.items())).encode()).hexdigest()[:12]

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add a line of the cache."""
        if "cost" in entry:
            self.cost.update(entry["cost"])
        elif "id_hint" in entry:
            self.id_hint = entry["id_hint"]
        elif "started" in entry:
            self.unfinished = entry["query"]
        elif "error" in entry:
            self.errors[entry["query"]] = entry["error"]
            self.unfinished = None
        else:
            query, reads = entry["query"], entry.get("reads") or {}
            self.lists[query] = entry["list"]
            self.errors.pop(query, None)
            self.seconds[query] = number_between("seconds", entry["seconds"])
            self.sessions[query] = entry.get("session", "")
            self.unfinished = None
            # A query may skip stages, so the answer with the most of them counts.
            if len(reads) > len(self.reads) and (len(reads) > 1 or entry.get("calls")):
                self.reads = dict(reads)


def cache_key(content: str, name: str, settings: dict[str, Any], depth: int) -> str:
    """The name of a retriever's cache: another one for other arguments, versions and variables that are no secrets."""
    return key_of(content, name, identifying(settings), depth)


def key_of(*parts: Any) -> str:
    """The name of a file of the cache, from what its content depends on; the version is always part of it."""
    return hashlib.sha256(json.dumps([*parts, __version__], sort_keys=True, default=str).encode()).hexdigest()[:20]


class AnswerStore:
    """The cache file of one retriever: one line per answer."""

    def __init__(self, folder: Path, key: str) -> None:
        self.path = folder / f"{key}.jsonl"
        self._file: IO[str] | None = None

    def read(self) -> Answers:
        """The cached answers; an unreadable file and a line that a crash cut off are ignored."""
        answers = Answers()
        for entry in self.entries():
            with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError, SteelyardError):
                if not {"cost", "id_hint", "started", "error"} & set(entry):
                    pairs = [(doc, score) for doc, score in entry["list"]]
                    entry["list"] = read_lists([pairs], "the cache", entry["query"], len(pairs))
                answers.add(entry)
        return answers

    def entries(self) -> Iterator[Any]:
        """The lines of the file that can be read, one at a time: it also holds the lists of all stages."""
        with suppress(OSError), self.path.open("rb") as lines:
            for line in lines:
                with suppress(ValueError, RecursionError):
                    yield json.loads(line)

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append a line. It is written at once, so that a crash of the process loses no answer."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            cut_off = False
            with suppress(FileNotFoundError), self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    cut_off = file.read(1) != b"\n"
            self._file = self.path.open("a", encoding="utf-8", buffering=1)
            if cut_off:
                self._file.write("\n")
        try:
            self._file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise not_written(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                raise not_written(self.path, error) from None

    def clear(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def is_cache_file(path: Path) -> bool:
    """Whether a file is a cache of answers, by its name and its first line."""
    if not _FILE_NAME.fullmatch(path.name) or not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8") as lines:
            first = json.loads(next(lines, ""))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and bool({"cost", "query"} & set(first))


# Texts that retrievers return

COLUMNS = ("doc_id", "text", "title", "metadata")  # The columns of documents.parquet; the metadata is JSON, or empty.
_KNOWN = 1 << 22  # Places for hashes of documents and texts that are known to be in the file; the others are looked up.
_AT_ONCE = 500  # Documents that are looked up with one statement.
_COMPARED = 20_000  # Documents of a retriever whose texts are compared with those of the others.
_EXAMPLES = 4


class ReturnedTexts:
    """The texts that the retrievers of a bench return, one per document id: the first, unless the corpus has it."""

    def __init__(self, cache: Path, corpus: Collection[str], fresh: bool = False) -> None:
        self.path = cache / "documents.sqlite"
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

    def rows(self, ids: Iterable[str], columns: str = ", ".join(COLUMNS)) -> Iterator[Any]:
        """The columns of the documents that have a text; `digest` is a hash of the text."""
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
        """Documents with different texts in one of the runs (by file of answers), or in two, if there is no corpus."""
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


def id_notes(lists: Mapping[str, Collection[str]], returned: ReturnedTexts, by_text: Collection[str]) -> list[Note]:
    """Ids that were made from texts, unless chosen (`by_text`: runs), and equal texts under different ids of runs."""
    notes = []
    for run, docs in lists.items():
        count = 0 if run in by_text else sum(doc.startswith(MADE) for doc in docs)
        if count:
            notes.append(note("ids-made", run=run, count=count))
    digests = {run: dict(returned.rows(islice(docs, _COMPARED), "digest, doc_id")) for run, docs in lists.items()}
    for (run, ids), (other, theirs) in combinations([(run, texts) for run, texts in digests.items() if texts], 2):
        shared = ids.keys() & theirs.keys()
        apart = [text for text in shared if ids[text] != theirs[text]]
        if apart and 2 * len(apart) > len(shared):
            pair = (ids[apart[0]], theirs[apart[0]])
            notes.append(note("same-texts-different-ids", run=run, other=other, count=len(apart), ids=pair))
    return notes


# Saved indexes

SAVED_FROM = 100_000  # Documents: the index of a smaller corpus is made in about a second, and is not saved.

_INDEX_NAME = re.compile(r"[0-9a-f]{20}\.bm25(\.json)?")


class IndexStore:
    """The saved index of a retriever on a corpus, and beside it the cost of making it."""

    def __init__(self, folder: Path, retriever: BM25, corpus: Corpus) -> None:
        self.path = folder / f"{key_of(corpus.fingerprint, identifying(retriever.settings()))}.bm25"
        self._cost = self.path.with_name(f"{self.path.name}.json")
        self.files = (self.path, self._cost)
        self._retriever = retriever

    def restore(self) -> dict[str, Any] | None:
        """Open the index with the retriever; the cost of making it, or None if there is none that can be used."""
        try:
            cost = json.loads(self._cost.read_text("utf-8"))
            self._retriever.restore(self.path)
        except (OSError, ValueError, SteelyardError):
            return None
        return cost if isinstance(cost, dict) else None

    def save(self, cost: Mapping[str, Any]) -> None:
        """Save the index; where it cannot be written, the next bench makes it again."""
        with suppress(SteelyardError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._retriever.save(self.path)
            write_file(self._cost, json.dumps(dict(cost)).encode())

    def clear(self) -> None:
        """Remove the files."""
        for path in self.files:
            path.unlink(missing_ok=True)


def index_store(folder: Path, retriever: Retriever, corpus: Mapping[str, str]) -> IndexStore | None:
    """Where the index of a retriever is saved; None if it cannot be, or is not worth it."""
    if not isinstance(retriever, BM25) or not isinstance(corpus, Corpus) or len(corpus) < SAVED_FROM:
        return None
    return IndexStore(folder, retriever, corpus)


def other_indexes(folder: Path, kept: Collection[str]) -> list[Path]:
    """The files of saved indexes that are not among those kept."""
    return [
        path for path in sorted(folder.glob("*.bm25*")) if _INDEX_NAME.fullmatch(path.name) and path.name not in kept
    ]


# The lock

LOCK, HELD_BY = ".lock", "process "  # The lock file of a result folder, and how its content begins.


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a result folder; an error that names the other process if another bench holds it.

    The operating system's lock ends with the process; without such locks, nothing is held. The file goes only at the
    end: it tells that the result is an earlier one.
    """
    path = folder / LOCK
    with _lock_file(path) as file:
        if hold(file) is False or not is_at(file, path):
            file.seek(0)
            holder = file.read(200).strip() or "another process"
            raise InputError(
                f"another bench is running in this folder: {holder}. Wait until it has finished, or name another "
                "folder (-o, output=).",
                folder,
            )
        file.truncate(0)
        file.write(f"{HELD_BY}{os.getpid()} on {platform.node()}, since {datetime.now():%Y-%m-%d %H:%M:%S}")
        file.flush()
        yield
        file.truncate(0)  # Where an open file cannot be removed, it is empty.
        with suppress(OSError):
            path.unlink()


def _lock_file(path: Path) -> IO[str]:
    """A lock file, opened; its folder is made. A file of that name with another content is the user's."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8", errors="replace")
    except OSError as error:
        problem = f"cannot be written ({error.strerror}); name a folder that you may write to."
        raise InputError(problem, path.parent) from None
    file.seek(0)
    if file.read(len(HELD_BY)) not in ("", HELD_BY):
        file.close()
        raise InputError("is not a lock of Steelyard; move it, or name another folder (-o, output=).", path)
    return file


@contextmanager
def held(path: Path, seconds: float = 60.0) -> Iterator[None]:
    """Hold a lock file, and wait for it if another process has it; an error after so many seconds."""
    end = monotonic() + seconds
    while True:
        file = _lock_file(path)
        if hold(file) is not False and is_at(file, path):
            break
        file.close()
        if monotonic() > end:
            raise InputError(f"another process has been writing for {seconds:g} seconds; try again.", path.parent)
        sleep(0.01)
    with file:
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()
