"""What a bench keeps for the next one: answers, appended as they arrive, so that a stopped bench can continue, and
saved indexes of large corpora. The lock of its folder."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any

from steelyard.checks import number_between
from steelyard.datasets.corpus import Corpus
from steelyard.errors import InputError, SteelyardError
from steelyard.io.files import hold, is_at, not_written, write_file
from steelyard.masking import identifying
from steelyard.retrievers.adapters.documents import read_lists
from steelyard.retrievers.base import Ranked, Retriever
from steelyard.retrievers.bm25 import BM25
from steelyard.version import __version__

CACHE = "cache"  # The folder of the cache in a result folder.
_FILE_NAME = re.compile(r"[0-9a-f]{20}\.jsonl")


@dataclass
class Answers:
    """The answers of one retriever: lists, seconds and errors by query, and the cost of indexing.

    `sessions` tells which times were measured together. `id_hint` is the field with the ids of the corpus, if the
    retriever returned other ids. `unfinished` is the query that was running when the process ended, if it was killed.
    `reads` has the stages of the retriever, if it returned any, and what each read; their lists are only here.
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
    """The name of a retriever's cache; answers are cached as long as none of the arguments and no version changes.

    A variable of the environment counts with its value, unless it is a secret.
    """
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
            cut_off = _is_cut_off(self.path)
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


def _is_cut_off(path: Path) -> bool:
    """Whether a file ends within a line."""
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) != b"\n"


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


SAVED_FROM = 100_000  # Documents: the index of a smaller corpus is made in about a second, and is not saved.

_INDEX_NAME = re.compile(r"[0-9a-f]{20}\.bm25(\.json)?")


class IndexStore:
    """The saved index of a retriever on a corpus, and beside it the cost of making it."""

    def __init__(self, folder: Path, retriever: BM25, corpus: Corpus) -> None:
        self.path = folder / f"{key_of(corpus.fingerprint, identifying(retriever.settings()))}.bm25"
        self._cost = self.path.with_name(f"{self.path.name}.json")
        self._retriever = retriever

    @property
    def names(self) -> set[str]:
        """The names of its files."""
        return {self.path.name, self._cost.name}

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
        for path in (self.path, self._cost):
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


LOCK, HELD_BY = ".lock", "process "  # The lock file of a result folder, and how its content begins.


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a result folder; an error that names the other process if another bench holds it.

    The lock is that of the operating system on a file in the folder: it ends with the process, however that ends. Where
    there are no such locks, nothing is held. The file goes only at the end: it tells that the result is an earlier one.
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
