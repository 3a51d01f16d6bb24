"""The cache of a bench: answers are appended to a file as they arrive, so that a stopped bench can continue."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from steelyard.checks import number_between
from steelyard.errors import SteelyardError
from steelyard.io.files import not_written
from steelyard.masking import identifying
from steelyard.retrievers.adapters.documents import read_lists
from steelyard.retrievers.base import Ranked
from steelyard.version import __version__

_FILE_NAME = re.compile(r"[0-9a-f]{20}\.jsonl")


@dataclass
class Answers:
    """The answers of one retriever: lists, seconds and errors by query, and the cost of indexing.

    `sessions` tells which times were measured together. `id_hint` is the field with the ids of the corpus, if the
    retriever returned other ids. `unfinished` is the query that was running when the process ended, if it was killed.
    `reads` has the stages of the retriever, if it returned any, and what each of them read; their lists are in the
    cache only.
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
        text = json.dumps(sorted(self.sessions.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def with_stages(self, reads: Mapping[str, list[str]], calls: Mapping[str, Any]) -> None:
        """Keep the stages of an answer; a query may skip stages, so the answer with the most of them counts."""
        if len(reads) > len(self.reads) and (len(reads) > 1 or calls):
            self.reads = dict(reads)

    def done(self, query: str) -> bool:
        """Whether the query has an answer; a query that failed is run again."""
        return query in self.lists


def cache_key(content: str, name: str, settings: dict[str, Any], depth: int) -> str:
    """The name of a retriever's cache; answers are cached as long as none of the arguments and no version changes.

    A variable of the environment counts with its value, unless it is a secret.
    """
    return key_of(content, name, identifying(settings), depth)


def key_of(*parts: Any) -> str:
    """The name of a file of the cache, from what its content depends on; the version is always part of it."""
    text = json.dumps([*parts, __version__], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class AnswerStore:
    """The cache file of one retriever: one line per answer."""

    def __init__(self, folder: Path, key: str) -> None:
        self.path = folder / f"{key}.jsonl"
        self._file: IO[str] | None = None

    def read(self) -> Answers:
        """The cached answers; an unreadable file and a line that a crash cut off are ignored."""
        answers = Answers()
        for entry in self.entries():
            try:
                if "cost" in entry:
                    answers.cost.update(entry["cost"])
                elif "id_hint" in entry:
                    answers.id_hint = entry["id_hint"]
                elif "started" in entry:
                    answers.unfinished = entry["query"]
                elif "error" in entry:
                    answers.errors[entry["query"]] = entry["error"]
                    answers.unfinished = None
                else:
                    found = [(doc, score) for doc, score in entry["list"]]
                    answers.lists[entry["query"]] = read_lists([found], "the cache", entry["query"], len(found))
                    answers.errors.pop(entry["query"], None)
                    answers.seconds[entry["query"]] = number_between("seconds", entry["seconds"])
                    answers.sessions[entry["query"]] = entry.get("session", "")
                    answers.unfinished = None
                    answers.with_stages(entry.get("reads") or {}, entry.get("calls") or {})
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, SteelyardError):
                continue
        return answers

    def entries(self) -> Iterator[Any]:
        """The lines of the file that can be read, one at a time: it also holds the lists of all stages."""
        with suppress(OSError), self.path.open("rb") as lines:
            for line in lines:
                with suppress(ValueError, RecursionError):
                    yield json.loads(line)

    def add(self, entry: dict[str, Any]) -> None:
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
    if not path.exists():
        return False
    with path.open("rb") as file:
        if file.seek(0, 2) == 0:
            return False
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
