"""Answers as they come in, kept on disk so that a stopped bench goes on where it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from steelyard.version import __version__


@dataclass
class Answers:
    """One retriever's answers: lists, seconds and errors by query, and what indexing cost.

    `id_hint` is another `id` by which its documents would be in the corpus, where they are not.
    """

    lists: dict[str, list[tuple[str, float | None]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    id_hint: str | None = None

    def done(self, query: str) -> bool:
        """Whether the query was answered; one that failed is asked again."""
        return query in self.lists


def key_of(dataset: str, name: str, settings: dict[str, Any], depth: int) -> str:
    """What a retriever's answers depend on: change any of it and they are asked for anew."""
    content = json.dumps([dataset, name, settings, depth, __version__], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:20]


class AnswerStore:
    """A file of one retriever's answers, a line each, appended as they come."""

    def __init__(self, folder: Path, key: str) -> None:
        self.path = folder / f"{key}.jsonl"
        self._file: IO[str] | None = None

    def read(self) -> Answers:
        """What is there; a line that was cut short by a crash, or an unreadable file, counts as not there."""
        answers = Answers()
        try:
            lines = self.path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return answers
        for line in lines:
            try:
                kept = json.loads(line)
                if "cost" in kept:
                    answers.cost.update(kept["cost"])
                elif "id_hint" in kept:
                    answers.id_hint = kept["id_hint"]
                elif "error" in kept:
                    answers.errors[kept["query"]] = kept["error"]
                else:
                    answers.errors.pop(kept["query"], None)
                    answers.lists[kept["query"]] = [(doc, score) for doc, score in kept["list"]]
                    answers.seconds[kept["query"]] = kept["seconds"]
            except (ValueError, KeyError, TypeError):
                continue
        return answers

    def add(self, line: dict[str, Any]) -> None:
        """Append a line; it is on disk when the bench stops or every few hundred lines."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            broken = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
            self._file = self.path.open("a", encoding="utf-8", buffering=1 << 16)
            if broken:
                self._file.write("\n")
        self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Put everything on disk."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def clear(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)
