"""A BM25 index in a file: written atomically, checked when it is opened, and mapped into memory.

The file has a magic number, the size and the SHA-256 of a JSON header, the header, and arrays in little-endian order,
each at a multiple of 64 bytes. The header has the version of the format, the settings of the retriever, the length of
the file, and the place, the type, the size and the CRC-32 of each array.

The postings are mapped and not copied: a query touches only those of its terms, and processes share them. Their
checksums are computed by a thread while the first queries are searched, so that opening an index takes no longer for a
large one; no result is returned before they are known to be right. A mapped file that another process truncates would
end this process with a signal, so files are replaced and never changed, the length is checked before every search, and
the thread reads the file and not the map.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any
from weakref import finalize
from zlib import crc32

import numpy as np
import numpy.typing as npt

from steelyard.datasets.packed import PackedTexts
from steelyard.errors import InputError
from steelyard.io.files import changed, no_such_file, reading, written_atomically
from steelyard.retrievers.postings import Floats, Postings
from steelyard.version import __version__

Array = npt.NDArray[Any]
_MAGIC = b"steelyard bm25 \n"
_START = len(_MAGIC) + 8 + 32  # the magic number, the size of the header and its hash
_VERSION = 1
_ALIGNED = 64
_PIECE = 1 << 20  # bytes of a checksum that are read at a time
_MAPPED = ("docs", "codes")
_POSTINGS = ("starts", "docs", "codes", "pair_counts", "pair_lengths")
_TYPES: dict[str, tuple[str, ...]] = {
    "starts": ("<i8",),
    "docs": ("<i4",),
    "codes": ("<u2", "<u4"),
    "pair_counts": ("<i4",),
    "pair_lengths": ("<i8",),
    "largest": ("<f8",),
    "term_bytes": ("|u1",),
    "term_ends": ("<i8",),
    "id_bytes": ("|u1",),
    "id_ends": ("<i8",),
}


@dataclass(frozen=True)
class SavedIndex:
    """An index and the settings that it was saved with. `largest` is the largest product of factors of each term."""

    settings: Mapping[str, Any]
    postings: Postings
    largest: Floats
    ids: PackedTexts


class IndexFile:
    """An open index file; its arrays are valid as long as it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._descriptor = os.dup(file.fileno())
        except FileNotFoundError:
            raise no_such_file(path, "saved index") from None
        except ValueError:
            raise _damaged(path, "it is empty") from None
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror}).", path) from None
        finalize(self, os.close, self._descriptor)
        self._length = len(self._map)
        self._unchecked: dict[str, Mapping[str, Any]] = {}
        self._wrong: str | None = None
        self._checks: Thread | None = None

    def __reduce__(self) -> tuple[type[IndexFile], tuple[Path]]:
        """A copy opens the file again."""
        return IndexFile, (self.path,)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Check that the file still has its length; whatever cannot be done with its content is an InputError."""
        if self._map.size() != self._length:
            raise changed(self.path)
        with reading(self.path):
            yield

    @contextmanager
    def searching(self) -> Iterator[None]:
        """`reading`, and at the end an InputError if the checksum of a mapped array is wrong."""
        with self.reading():
            yield
        if self._checks is not None:
            self._checks.join()
        if self._unchecked:
            # The thread could not read the file, or this is a forked process, which has no such thread.
            with self.reading():
                self._check()
        if self._wrong is not None:
            raise _damaged(self.path, f"the checksum of {self._wrong} is wrong")

    def _check(self) -> None:
        """Compute the checksums of the mapped arrays; those that cannot be read remain unchecked."""
        for name, entry in list(self._unchecked.items()):
            last = entry["first"] + entry["count"] * np.dtype(entry["type"]).itemsize
            checksum = 0
            for start in range(entry["first"], last, _PIECE):
                size = min(_PIECE, last - start)
                # Windows has no pread, and does not let anyone truncate a mapped file.
                by_map = not hasattr(os, "pread")
                piece = self._map[start : start + size] if by_map else os.pread(self._descriptor, size, start)
                if len(piece) < size:
                    raise changed(self.path)
                checksum = crc32(piece, checksum)
            if checksum != entry["crc32"]:
                self._wrong = name
            self._unchecked.pop(name, None)

    def read(self) -> SavedIndex:
        """The index; an InputError if the file is not one, or is damaged. The check of the postings is started."""
        with self.reading():
            header = self._header()
            index = _index_of(header, {name: self._array(name, header["arrays"][name]) for name in _TYPES}, self.path)
        self._unchecked = {name: header["arrays"][name] for name in _MAPPED}

        def check() -> None:
            with suppress(InputError, OSError):
                self._check()

        self._checks = Thread(target=check, name="checksums of an index", daemon=True)
        self._checks.start()
        return index

    def _header(self) -> dict[str, Any]:
        if self._map[: len(_MAGIC)] != _MAGIC:
            raise InputError("not a saved BM25 index; expected a file that BM25.save() wrote.", self.path)
        size = int.from_bytes(self._map[len(_MAGIC) : len(_MAGIC) + 8], "little")
        text = self._map[_START : _START + min(size, self._length)]
        if len(text) != size or sha256(text).digest() != self._map[_START - 32 : _START]:
            raise _damaged(self.path, "the checksum of its header is wrong")
        header: dict[str, Any] = json.loads(text)
        if header["version"] != _VERSION:
            raise InputError(
                f"written by Steelyard {header['steelyard']} in another version of the format; index the corpus again.",
                self.path,
            )
        if header["length"] != self._length:
            raise _damaged(self.path, f"it has {self._length:,} of {header['length']:,} bytes")
        return header

    def _array(self, name: str, entry: Mapping[str, Any]) -> Array:
        kind, first, count = entry["type"], entry["first"], entry["count"]
        if kind not in _TYPES[name] or first % _ALIGNED or not 0 <= first <= self._length or count < 0:
            raise _damaged(self.path, f"{name} cannot be in the file")
        array: Array = np.frombuffer(self._map, kind, count, first) if count else np.empty(0, kind)
        if name in _MAPPED:
            return array
        array = array.copy()
        if crc32(array.data) != entry["crc32"]:
            raise _damaged(self.path, f"the checksum of {name} is wrong")
        return array


def write_index(path: Path, index: SavedIndex) -> None:
    """Write an index; what was at the path is replaced."""
    postings = index.postings
    term_bytes, term_ends = PackedTexts.of(postings.vocabulary, "surrogatepass").packed
    id_bytes, id_ends = index.ids.packed
    arrays: dict[str, Array] = {
        **{name: getattr(postings, name) for name in _POSTINGS},
        "largest": index.largest,
        "term_bytes": np.frombuffer(term_bytes, np.uint8),
        "term_ends": term_ends,
        "id_bytes": np.frombuffer(id_bytes, np.uint8),
        "id_ends": id_ends,
    }
    for name, array in arrays.items():
        kinds = _TYPES[name]
        stored = next((kind for kind in kinds if np.dtype(kind).itemsize == array.dtype.itemsize), kinds[0])
        arrays[name] = np.ascontiguousarray(array, stored)
    header: dict[str, Any] = {"version": _VERSION, "steelyard": __version__, "settings": dict(index.settings)}
    header |= {"documents": postings.documents, "tokens": postings.tokens}
    entries = {
        name: {"type": array.dtype.str, "count": len(array), "crc32": crc32(array.data)}
        for name, array in arrays.items()
    }
    # The place of every array, and the length of the file.
    header_size = _START + len(json.dumps({**header, "length": 2**63, "arrays": entries})) + 40 * len(entries)
    length = -(-header_size // _ALIGNED) * _ALIGNED
    for name, array in arrays.items():
        entries[name]["first"] = length
        length += -(-array.nbytes // _ALIGNED) * _ALIGNED
    text = json.dumps({**header, "length": length, "arrays": entries}).encode()
    with written_atomically(path) as file:
        file.write(_MAGIC + len(text).to_bytes(8, "little") + sha256(text).digest() + text)
        for name, array in arrays.items():
            file.write(bytes(entries[name]["first"] - file.tell()))
            file.write(array.data)
        file.write(bytes(length - file.tell()))


def _index_of(header: Mapping[str, Any], arrays: Mapping[str, Array], path: Path) -> SavedIndex:
    """The index of the arrays, after a check that they fit together."""
    terms, documents = len(arrays["largest"]), header["documents"]
    pairs = len(arrays["pair_counts"])
    whole = (
        _borders(arrays["starts"][1:], terms, len(arrays["docs"]))
        and arrays["starts"][0] == 0
        and len(arrays["docs"]) == len(arrays["codes"])
        and len(arrays["pair_lengths"]) == pairs
        and (pairs > 0 or not len(arrays["docs"]))
        and (arrays["codes"].dtype != np.uint16 or pairs < 2**16)
        and _borders(arrays["term_ends"], terms, len(arrays["term_bytes"]))
        and _borders(arrays["id_ends"], documents, len(arrays["id_bytes"]))
        and 0 < documents < 2**30
    )
    if not whole:
        raise _damaged(path, "its arrays do not fit together")
    texts = PackedTexts(arrays["term_bytes"].tobytes(), arrays["term_ends"])
    vocabulary = {text.decode("utf-8", "surrogatepass"): number for number, text in enumerate(texts.raw())}
    if len(vocabulary) != terms:
        raise _damaged(path, "a term occurs twice")
    of_postings: dict[str, Any] = {name: arrays[name] for name in _POSTINGS}
    postings = Postings(vocabulary=vocabulary, documents=documents, tokens=header["tokens"], **of_postings)
    ids = PackedTexts(arrays["id_bytes"].tobytes(), arrays["id_ends"])
    return SavedIndex(header["settings"], postings, arrays["largest"], ids)


def _borders(ends: Array, count: int, last: int) -> bool:
    """Whether there are `count` ends that ascend to `last`."""
    if len(ends) != count or (count == 0 and last):
        return False
    return count == 0 or bool(ends[0] >= 0 and ends[-1] == last and (ends[1:] >= ends[:-1]).all())


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"the saved index is damaged: {reason}. Index the corpus again.", path)
