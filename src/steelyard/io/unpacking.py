"""Limits on what a small file may unpack to: compressed text, Parquet pages, aliases in YAML.

Unpacked data may be up to 256 MiB, and more if it is at most 200 times as large as the file: runs and qrels rarely
reach 30 times. STEELYARD_MAX_UNPACKED, a number of bytes, replaces this limit. Sizes are checked while data is
unpacked, or before it: not after memory was used.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from steelyard.errors import InputError
from steelyard.lazy import polars as pl

MAX_UNPACKED = "STEELYARD_MAX_UNPACKED"
_SMALL = 1 << 28
_RATIO = 200
_MOST_REPEATED = 100_000


def unpacked_limit(packed: int) -> int:
    """The bytes that a file of `packed` bytes may unpack to.

    >>> unpacked_limit(96_000), unpacked_limit(10_000_000)
    (268435456, 2000000000)
    """
    given = os.environ.get(MAX_UNPACKED)
    if not given:
        return max(_SMALL, _RATIO * packed)
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise InputError(f"{MAX_UNPACKED} is {given!r}; expected a number of bytes, as in {1 << 30}.")
    return int(given)


def check_unpacked(size: int, packed: int, kind: str, path: Path | None) -> None:
    """Refuse data that unpacks to more than the limit."""
    limit = unpacked_limit(packed)
    if size > limit:
        raise InputError(
            f"the {kind} data of {packed:,} bytes unpacks to more than {limit:,} bytes, the limit for a file of "
            f"this size: it is damaged, or made to fill the memory. If it is neither, set {MAX_UNPACKED} to a "
            "larger number of bytes.",
            path,
        )


def read_parquet(data: bytes, path: Path | None) -> pl.DataFrame:
    """The table of a Parquet file. Raises what polars raises, and InputError for one that polars must not see.

    That is one that unpacks to too much, or has damaged headers: for a wrong count polars ends the process.
    """
    try:
        size = _parquet_size(data)
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        raise damaged_parquet("its headers are damaged", path) from None
    check_unpacked(size, len(data), "Parquet", path)
    return pl.read_parquet(io.BytesIO(data))


def damaged_parquet(reason: str, path: Path | None) -> InputError:
    """The error for a Parquet file that cannot be read."""
    problem = f"starts as a Parquet file but cannot be read as one ({reason})"
    return InputError(f"{problem}; it may be truncated: get a complete copy.", path)


_CELL = 16  # bytes of a value in memory, without the text it may refer to


def _parquet_size(data: bytes) -> int:
    """The bytes that a Parquet file unpacks to: those of its pages, and of its cells, which may be run lengths.

    Read from the headers of the pages, by which they are unpacked. What does not start as Parquet has no size here.
    """
    if not data.startswith(b"PAR1"):
        return 0
    footer = _Thrift(data, len(data) - 8 - int.from_bytes(data[-8:-4], "little")).struct()
    size = 0
    for group in footer[4]:
        size += _CELL * _count(group[3]) * len(group[1])
        for chunk in (column[3] for column in group[1]):
            size += _CELL * _count(chunk[5])
            at = chunk.get(11) or chunk[9]  # the dictionary, if there is one, is before the data
            end = at + _count(chunk[7])
            while at < end:
                reader = _Thrift(data, at)
                header = reader.struct()
                values = next((header[kind][1] for kind in (5, 8, 7) if kind in header), 0)
                size += _count(header[2]) + _CELL * _count(values)
                at = reader.at + _count(header[3])
    return size


def _count(value: int) -> int:
    if value < 0:
        raise ValueError("a negative count")
    return value


class _Thrift:
    """A reader of Thrift's compact protocol, in which Parquet writes its headers: a struct is a dict by field number.

    https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
    """

    def __init__(self, data: bytes, at: int) -> None:
        if at < 0:
            raise ValueError("before the start of the file")
        self.data, self.at = data, at

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == 1 if kind < 3 else self._value(kind)
        return fields

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 70:
                raise ValueError("a number of more than 64 bits")

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _value(self, kind: int) -> Any:
        if kind < 4:
            return self._byte()
        if kind < 7:
            return self._integer()
        if kind in (7, 8):
            size = 8 if kind == 7 else self._unsigned()
            self.at += size
            return None
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._unsigned()
            if size > len(self.data) - self.at:
                raise ValueError("a list that is longer than the file")
            return [self._value(head & 15) for _ in range(size)]
        if kind == 12:
            return self.struct()
        raise ValueError("a type that Parquet does not use")


def load_yaml(text: str | bytes) -> Any:
    """The value of a YAML text. Raises what yaml raises, and InputError for aliases that repeat too much."""
    import yaml

    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        check_aliases(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def check_aliases(root: Any) -> None:
    """Refuse a composed YAML document that contains itself, or becomes far larger where its aliases are."""
    sizes: dict[int, int | None] = {}

    def size(node: Any) -> int:
        cached = sizes.get(id(node), 0)
        if cached is None:
            raise InputError(f"line {node.start_mark.line + 1}: the YAML value contains itself.")
        if cached:
            return cached
        sizes[id(node)] = None
        total = 1
        if isinstance(node.value, list):
            total += sum(size(part) for item in node.value for part in (item if isinstance(item, tuple) else (item,)))
        sizes[id(node)] = total
        return total

    if size(root) - len(sizes) > _MOST_REPEATED:
        many = f"more than {_MOST_REPEATED:,} values"
        raise InputError(f"the aliases of this YAML stand for {many}; write the values themselves.")
