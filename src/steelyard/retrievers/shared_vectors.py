"""Embeddings of a corpus, computed once per model: shared by the retrievers of a process, and stored by a bench."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from steelyard.io.files import written_atomically

Vectors: TypeAlias = npt.NDArray[np.float32]
Embedder: TypeAlias = Callable[[Sequence[str]], npt.ArrayLike]

KEPT = 8
"""The number of stored embeddings that a folder keeps: those that were used last."""

_SUFFIX = ".npz"
_DIGEST = "sha256"


@dataclass(frozen=True)
class Embedded:
    """The embeddings of a corpus, one row of length 1 (or 0) per document, and the model that embeds queries.

    `arrays` are those of a model that was fitted on the corpus; they are stored with the vectors.
    """

    vectors: Vectors
    embed: Embedder
    arrays: dict[str, npt.NDArray[Any]]

    @property
    def nbytes(self) -> int:
        """The memory of the vectors and of the fitted model."""
        return self.vectors.nbytes + sum(array.nbytes for array in self.arrays.values())


_SHARED: WeakValueDictionary[str, Embedded] = WeakValueDictionary()
_FOLDER: ContextVar[Path | None] = ContextVar("folder of stored embeddings", default=None)


@contextmanager
def stored_vectors(folder: Path) -> Iterator[None]:
    """Within this context, embeddings are stored in a folder, and read from it if they are there."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def clear_vectors(folder: Path) -> None:
    """Forget the embeddings of this process, and remove those that are stored in a folder."""
    _SHARED.clear()
    for path in folder.glob(f"*{_SUFFIX}"):
        path.unlink(missing_ok=True)


def corpus_digest(texts: Sequence[str]) -> str:
    """A hash of texts in their order."""
    digest = sha256()
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def shared_vectors(
    model: dict[str, Any],
    texts: Sequence[str],
    compute: Callable[[], Embedded],
    restore: Callable[[Vectors, dict[str, npt.NDArray[Any]]], Embedded] | None,
) -> Embedded:
    """The embeddings of texts by a model: those of another retriever or of the folder, or else computed.

    model: what identifies the model, in JSON types. restore: makes Embedded from what was stored; None if the model
    cannot be identified in another process.
    """
    key = sha256(json.dumps([model, corpus_digest(texts)], sort_keys=True).encode()).hexdigest()[:32]
    known = _SHARED.get(key)
    if known is not None:
        return known
    folder = _FOLDER.get() if restore is not None else None
    found = None
    if folder is not None and restore is not None:
        stored = _read(folder / f"{key}{_SUFFIX}", len(texts))
        found = None if stored is None else restore(*stored)
    if found is None:
        found = compute()
        if folder is not None:
            _write(folder / f"{key}{_SUFFIX}", found)
    _SHARED[key] = found
    return found


def _read(path: Path, rows: int) -> tuple[Vectors, dict[str, npt.NDArray[Any]]] | None:
    """The stored vectors and the arrays of their model; None if there are none, or the file was changed."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            # Nothing is compressed when it is written: what would unpack to more than the file is not read.
            if sum(entry.file_size for entry in file.zip.infolist()) > path.stat().st_size:
                return None
            arrays = {name: file[name] for name in file.files}
        stored = arrays.pop(_DIGEST)
        if not np.array_equal(stored, _digest(arrays)):
            return None
        vectors = arrays.pop("vectors")
        path.touch()
    except Exception:
        # Whatever is wrong with the file, the embeddings can be computed again.
        return None
    if vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != rows:
        return None
    return vectors, arrays


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint8]:
    """A hash of arrays with names, types and shapes. The file's own checksums do not cover which arrays it has."""
    digest = sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).data)
    return np.frombuffer(digest.digest(), np.uint8)


def _write(path: Path, embedded: Embedded) -> None:
    arrays: dict[str, Any] = {"vectors": embedded.vectors, **embedded.arrays}
    arrays[_DIGEST] = _digest(arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path) as file:
        np.savez(file, **arrays)
    by_age = sorted(path.parent.glob(f"*{_SUFFIX}"), key=lambda file: -file.stat().st_mtime)
    for old in by_age[KEPT:]:
        with suppress(OSError):
            old.unlink()
