"""Saved indexes of a bench: BM25 indexes of large corpora, opened again if corpus, settings and version are equal."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from steelyard.benchmark.cache import key_of
from steelyard.datasets.corpus import Corpus
from steelyard.errors import SteelyardError
from steelyard.io.files import write_file
from steelyard.masking import identifying
from steelyard.retrievers.base import Retriever
from steelyard.retrievers.bm25 import BM25

SAVED_FROM = 100_000
"""Documents: the index of a smaller corpus is made in about a second, and is not saved."""

_INDEX_NAME = re.compile(r"[0-9a-f]{20}\.bm25(\.json)?")


class IndexStore:
    """The saved index of a retriever on a corpus, and beside it the cost of making it."""

    def __init__(self, folder: Path, retriever: BM25, corpus: Corpus) -> None:
        key = key_of(corpus.fingerprint, identifying(retriever.settings()))
        self.path = folder / f"{key}.bm25"
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
