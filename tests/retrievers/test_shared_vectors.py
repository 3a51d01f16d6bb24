"""Stored embeddings: used again if the file is as it was written, otherwise computed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.retrievers.embeddings import Embedded, Vectors, clear_vectors, shared_vectors, stored_vectors

TEXTS = ["a", "bb", "ccc"]
VECTORS = np.eye(3, 4, dtype=np.float32)


class Model:
    """Embeds TEXTS, and counts how often."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.computed = folder, 0

    def _compute(self) -> Embedded:
        self.computed += 1
        return Embedded(VECTORS, lambda texts: VECTORS[: len(texts)], {"terms": np.arange(6.0).reshape(2, 3)})

    @staticmethod
    def _restore(vectors: Vectors, arrays: dict[str, Any]) -> Embedded:
        return Embedded(vectors, lambda texts: VECTORS[: len(texts)], arrays)

    def vectors(self) -> Vectors:
        """The vectors as a new process gets them."""
        clear_vectors(self.folder / "nowhere")
        with stored_vectors(self.folder):
            return shared_vectors({"model": "m"}, TEXTS, self._compute, self._restore).vectors


@pytest.fixture
def model(tmp_path: Path) -> Model:
    stored = Model(tmp_path)
    assert np.array_equal(stored.vectors(), VECTORS)
    assert np.array_equal(stored.vectors(), VECTORS)
    assert stored.computed == 1
    return stored


def changed(**others: Any) -> Callable[[Path], None]:
    """Writes the file again with other arrays, as its own checksums allow."""

    def write(path: Path) -> None:
        with np.load(path) as file:
            arrays = {**{name: file[name] for name in file.files}, **others}
        np.savez(path, **{name: array for name, array in arrays.items() if array is not None})

    return write


def flipped(path: Path) -> None:
    """One bit of the vectors is another."""
    data = bytearray(path.read_bytes())
    data[data.index(VECTORS.tobytes())] ^= 1
    path.write_bytes(data)


def compressed(path: Path) -> None:
    """The same arrays, packed: so could be gigabytes of zeros."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez_compressed(path, **{**arrays, "more": np.zeros(10**6)})


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        compressed,
        changed(vectors=np.ones((3, 5), np.float32)),
        changed(vectors=np.ones((2, 4), np.float32)),
        changed(vectors=VECTORS.reshape(4, 3)),
        changed(vectors=VECTORS.astype(np.float64)),
        changed(terms=np.arange(6.0).reshape(3, 2)),
        changed(terms=None),
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: path.write_bytes(b""),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_computed_again(model: Model, damage: Callable[[Path], None]) -> None:
    (path,) = model.folder.glob("*.npz")
    damage(path)
    assert np.array_equal(model.vectors(), VECTORS)
    assert model.computed == 2
    assert np.array_equal(model.vectors(), VECTORS)
    assert model.computed == 2


def test_what_unpacks_to_more_than_the_file_is_not_read(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = model.folder.glob("*.npz")
    compressed(path)
    read: list[str] = []
    with np.load(path) as file:
        file_type = type(file)
    original = file_type.__getitem__
    monkeypatch.setattr(file_type, "__getitem__", lambda self, name: (read.append(name), original(self, name))[1])
    assert np.array_equal(model.vectors(), VECTORS)
    assert not read
