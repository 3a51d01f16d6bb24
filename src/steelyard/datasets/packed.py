"""Millions of texts in a few flat arrays: one block of UTF-8 bytes, and where each text ends in it.

A list of Python strings costs about fifty bytes per text beyond the text itself, and a dictionary of
ids a hundred more. Packed, a text costs eight and an id sixteen; texts are decoded when they are read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property
from hashlib import sha256
from typing import Any, Generic, TypeVar, overload
from zlib import crc32

import numpy as np
import numpy.typing as npt

V = TypeVar("V")


class TextPacker:
    """Collects texts for a `PackedTexts`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("q")

    def add(self, text: bytes) -> None:
        """Add a text, as UTF-8."""
        self._data += text
        self._ends.append(len(self._data))

    def pad(self, count: int) -> None:
        """Add empty texts until there are `count` texts."""
        missing = count - len(self._ends)
        if missing:
            self._ends.frombytes(np.full(missing, len(self._data), np.int64).tobytes())

    def arrays(self) -> tuple[bytearray, npt.NDArray[np.int64]]:
        """The bytes, and where each text ends; a column of empty texts takes no space."""
        if not self._data:
            return self._data, np.broadcast_to(np.int64(0), len(self._ends))
        return self._data, np.frombuffer(self._ends, dtype=np.int64)


class PackedTexts(Sequence[str]):
    """A sequence of texts in one block of bytes.

    >>> texts = PackedTexts.of(["one", "", "three"])
    >>> texts[2], texts[-3], len(texts)
    ('three', 'one', 3)
    """

    def __init__(self, data: bytes | bytearray, ends: npt.NDArray[np.int64]) -> None:
        self._data = data
        self._ends = ends

    @classmethod
    def of(cls, texts: Iterable[str], errors: str = "strict") -> PackedTexts:
        """Pack texts; `errors` as for `str.encode`."""
        packer = TextPacker()
        for text in texts:
            packer.add(text.encode("utf-8", errors))
        return cls(*packer.arrays())

    @property
    def packed(self) -> tuple[bytes, npt.NDArray[np.int64]]:
        """The bytes, and where each text ends."""
        if not isinstance(self._data, bytes):
            self._data = bytes(self._data)
        return self._data, np.ascontiguousarray(self._ends)

    def raw(self) -> Iterator[bytes]:
        """The texts as UTF-8, in order."""
        data, start = memoryview(self._data), 0
        for end in self._ends.tolist():
            yield bytes(data[start:end])
            start = end

    def raw_at(self, position: int) -> bytes:
        """The text at a position, from 0, as UTF-8."""
        start = int(self._ends[position - 1]) if position else 0
        return bytes(memoryview(self._data)[start : int(self._ends[position])])

    def take(self, positions: Iterable[int]) -> PackedTexts:
        """The texts at these positions, in that order."""
        packer = TextPacker()
        for position in positions:
            packer.add(self.raw_at(position))
        return type(self)(*packer.arrays())

    @cached_property
    def digest(self) -> bytes:
        """A hash of the texts and their bounds."""
        hashed = sha256(self._ends.astype("<i8").tobytes())
        hashed.update(self._data)
        return hashed.digest()

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[str]:
        return map(bytes.decode, self.raw())

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self.raw_at(position).decode() for position in range(*place.indices(len(self)))]
        position = place + len(self) if place < 0 else place
        if not 0 <= position < len(self):
            raise IndexError(f"text {place} of {len(self)}")
        return self.raw_at(position).decode()


class PackedIds(PackedTexts):
    """Ids that can be looked up: sorted keys of a 32-bit hash and the position, eight bytes per id."""

    @cached_property
    def _keys(self) -> array[int]:
        hashes = np.fromiter(map(crc32, self.raw()), np.uint64, len(self))
        keys = (hashes << np.uint64(32)) | np.arange(len(self), dtype=np.uint64)
        keys.sort()
        return array("Q", keys.tobytes())

    def position(self, key: str) -> int | None:
        """The position of an id (the first, if it occurs twice), or None."""
        try:
            raw = key.encode()
        except UnicodeEncodeError:
            return None
        keys, low = self._keys, crc32(raw) << 32
        for place in range(bisect_left(keys, low), len(keys)):
            position = keys[place] - low
            if position >> 32:
                return None
            if self.raw_at(position) == raw:
                return position
        return None

    def repeats(self) -> list[tuple[int, int]]:
        """Positions of ids that occurred before, each with the first position of that id."""
        keys = np.frombuffer(self._keys, dtype=np.uint64)
        same = np.flatnonzero((keys[1:] >> np.uint64(32)) == (keys[:-1] >> np.uint64(32))) + 1
        pairs: list[tuple[int, int]] = []
        for position in sorted(int(keys[place]) & 0xFFFFFFFF for place in same):
            first = self.position(self[position])
            if first is not None and first != position:
                pairs.append((position, first))
        return pairs


class Computed(Sequence[V]):
    """A sequence whose values are computed from those of packed texts when they are read.

    >>> shown = Computed("{}: {}".format, PackedTexts.of(["a", "b"]), PackedTexts.of(["one", "two"]))
    >>> shown[1], shown[:1], len(shown)
    ('b: two', ['a: one'], 2)
    """

    def __init__(self, compute: Callable[..., V], *columns: PackedTexts) -> None:
        self._compute = compute
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, place: Any) -> Any:
        values = [column[place] for column in self._columns]
        return list(map(self._compute, *values)) if isinstance(place, slice) else self._compute(*values)

    def __iter__(self) -> Iterator[V]:
        return map(self._compute, *self._columns)


class PackedMapping(Mapping[str, V], Generic[V]):
    """Ids to values, in the order of the input; both sequences may be packed.

    >>> mapping = PackedMapping(PackedIds.of(["b", "a"]), PackedTexts.of(["B", "A"]))
    >>> mapping["a"], list(mapping), "c" in mapping
    ('A', ['b', 'a'], False)
    """

    def __init__(self, ids: PackedTexts, values: Sequence[V]) -> None:
        assert isinstance(ids, PackedIds)
        self._ids = ids
        self._values = values

    def __getitem__(self, key: str) -> V:
        position = self._ids.position(key) if isinstance(key, str) else None
        if position is None:
            raise KeyError(key)
        return self._values[position]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._ids.position(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def items(self) -> ItemsView[str, V]:
        """Id and value, in order, without looking each id up."""
        return _Items(self)

    def values(self) -> ValuesView[V]:
        """The values, in order, without looking each id up."""
        return _Values(self)


class _Items(ItemsView[str, V]):
    _mapping: PackedMapping[V]

    def __iter__(self) -> Iterator[tuple[str, V]]:
        return zip(self._mapping._ids, self._mapping._values, strict=True)


class _Values(ValuesView[V]):
    _mapping: PackedMapping[V]

    def __iter__(self) -> Iterator[V]:
        return iter(self._mapping._values)
