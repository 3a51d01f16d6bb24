"""Millions of texts in a few flat arrays: one run of UTF-8 bytes, and where each text ends in it.

A list of Python strings costs some fifty bytes a text beyond the text itself, and a dictionary of
ids a hundred more. Packed, a text costs eight and an id sixteen; texts are decoded when asked for.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property
from hashlib import sha256
from typing import Any, Generic, TypeVar, overload
from zlib import crc32

import numpy as np
import numpy.typing as npt

from steelyard.datasets.fields import Finding, take_id, take_links, take_rest, take_text
from steelyard.errors import InputError
from steelyard.ids import kind_of
from steelyard.wording import counted

V = TypeVar("V")


class TextPacker:
    """Texts on their way into a `PackedTexts`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("q")

    def add(self, text: bytes) -> None:
        """One more text, as UTF-8."""
        self._data += text
        self._ends.append(len(self._data))

    def pad(self, count: int) -> None:
        """Empty texts, until there are `count` texts."""
        missing = count - len(self._ends)
        if missing:
            self._ends.frombytes(np.full(missing, len(self._data), np.int64).tobytes())

    def arrays(self) -> tuple[bytearray, npt.NDArray[np.int64]]:
        """The bytes, and where each text ends; a column of empty texts takes no room."""
        if not self._data:
            return self._data, np.broadcast_to(np.int64(0), len(self._ends))
        return self._data, np.frombuffer(self._ends, dtype=np.int64)


class PackedTexts(Sequence[str]):
    """A sequence of texts in one run of bytes.

    >>> texts = PackedTexts.of(["one", "", "three"])
    >>> texts[2], texts[-3], len(texts)
    ('three', 'one', 3)
    """

    def __init__(self, data: bytearray, ends: npt.NDArray[np.int64]) -> None:
        self._data = data
        self._ends = ends

    @classmethod
    def of(cls, texts: Iterable[str]) -> PackedTexts:
        """Texts, packed."""
        packer = TextPacker()
        for text in texts:
            packer.add(text.encode())
        return cls(*packer.arrays())

    def raw(self) -> Iterator[bytes]:
        """The texts as UTF-8, one after another."""
        data, start = memoryview(self._data), 0
        for end in self._ends.tolist():
            yield bytes(data[start:end])
            start = end

    def raw_at(self, position: int) -> bytes:
        """The text at a position, 0 first, as UTF-8."""
        start = int(self._ends[position - 1]) if position else 0
        return bytes(memoryview(self._data)[start : int(self._ends[position])])

    def take(self, positions: Iterable[int]) -> PackedTexts:
        """The texts at these positions, in their order."""
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
    """Ids that can be looked up: sorted keys of a 32-bit hash above the position, eight bytes an id."""

    @cached_property
    def _keys(self) -> array[int]:
        hashes = np.fromiter(map(crc32, self.raw()), np.uint64, len(self))
        keys = (hashes << np.uint64(32)) | np.arange(len(self), dtype=np.uint64)
        keys.sort()
        return array("Q", keys.tobytes())

    def position(self, wanted: str) -> int | None:
        """Where an id stands (the first place, where it comes twice), or None."""
        try:
            raw = wanted.encode()
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
        """Positions whose id came before, each with the first position of that id."""
        keys = np.frombuffer(self._keys, dtype=np.uint64)
        same = np.flatnonzero((keys[1:] >> np.uint64(32)) == (keys[:-1] >> np.uint64(32))) + 1
        suspects = sorted(int(keys[place]) & 0xFFFFFFFF for place in same)
        found: list[tuple[int, int]] = []
        for position in suspects:
            first = self.position(self[position])
            if first is not None and first != position:
                found.append((position, first))
        return found


class PackedJson(Sequence[Any]):
    """A sequence of JSON values, parsed when asked for; an empty text is `default`."""

    def __init__(self, texts: PackedTexts, default: Any) -> None:
        self._texts = texts
        self._default = default

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._value(text) for text in self._texts[place]]
        return self._value(self._texts[place])

    def __iter__(self) -> Iterator[Any]:
        return map(self._value, self._texts)

    def _value(self, text: str) -> Any:
        return json.loads(text) if text else self._default


class PackedMapping(Mapping[str, V], Generic[V]):
    """Ids to values, in the order they came; both sequences may be packed.

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


ID_NAMES = ("_id", "id", "doc_id", "docid", "docno")
TEXT_NAMES = ("text", "contents", "body")
_COLUMNS = ("ids", "titles", "texts", "links", "groups", "metadata")
_SPARSE = ("titles", "links", "groups", "metadata")


class Corpus(PackedMapping[str]):
    """Documents in order: id to text, the title on a line before the text where there is one.

    >>> corpus = Corpus.of({"d1": "Plain text.", "d2": {"title": "Steelyard", "text": "A balance."}})
    >>> corpus["d2"], corpus.titles["d2"], corpus.texts["d2"], corpus.links
    ('Steelyard\\nA balance.', 'Steelyard', 'A balance.', None)
    """

    def __init__(self, columns: Mapping[str, PackedTexts]) -> None:
        self._columns = dict(columns)
        super().__init__(columns["ids"], _Passages(columns["titles"], columns["texts"]))

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Corpus:
        """A corpus of id to text, or of id to a record with text and any of title, links, group and more."""
        if isinstance(source, Corpus):
            return source
        builder = CorpusBuilder()
        for doc_id, document in source.items():
            builder.add_record({"_id": doc_id, **_record(document, f"document {doc_id!r}")})
        return builder.build()[0]

    @property
    def titles(self) -> Mapping[str, str]:
        """Id to title; an empty text where a document has none."""
        return PackedMapping(self._columns["ids"], self._columns["titles"])

    @property
    def texts(self) -> Mapping[str, str]:
        """Id to text without the title."""
        return PackedMapping(self._columns["ids"], self._columns["texts"])

    @cached_property
    def links(self) -> Mapping[str, Sequence[str]] | None:
        """Id to the ids it links to; None where no document has links."""
        if not any(self._columns["links"].raw()):
            return None
        return PackedMapping(self._columns["ids"], PackedJson(self._columns["links"], ()))

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """Id to group (documents that say the same thing), for the documents that name one."""
        pairs = zip(self._columns["ids"], self._columns["groups"], strict=True)
        return {doc_id: group for doc_id, group in pairs if group}

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """Id to everything else that is known of a document."""
        return PackedMapping(self._columns["ids"], PackedJson(self._columns["metadata"], {}))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content and its order."""
        return sha256(b"".join(self._columns[name].digest for name in _COLUMNS)).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"Corpus: {counted(len(self), 'document')}"


class CorpusBuilder:
    """Documents one after another; of an id that comes again, the first is kept and the rest reported."""

    def __init__(self) -> None:
        self._packers = {name: TextPacker() for name in _COLUMNS}
        self._count = 0

    def add(
        self,
        doc_id: str,
        text: str,
        title: str = "",
        links: Sequence[str] = (),
        group: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """One more document."""
        fields = [("ids", doc_id), ("texts", text)]
        if title:
            fields.append(("titles", title))
        if links:
            fields.append(("links", json.dumps(links, ensure_ascii=False)))
        if group:
            fields.append(("groups", group))
        if metadata:
            fields.append(("metadata", json.dumps(metadata, ensure_ascii=False, sort_keys=True, default=str)))
        try:
            raw = [(name, value.encode()) for name, value in fields]
        except UnicodeEncodeError:
            raise InputError("holds half of a surrogate pair, which is no character") from None
        for name, value in raw:
            packer = self._packers[name]
            if name in _SPARSE:
                packer.pad(self._count)
            packer.add(value)
        self._count += 1

    def add_record(self, record: dict[str, Any]) -> None:
        """One more document, from a record whose fields have the usual names; the record is used up."""
        doc_id = take_id(record, ID_NAMES)
        text = take_text(record, TEXT_NAMES)
        title = take_text(record, ("title",), "")
        group = record.pop("group", None)
        if group is not None and (isinstance(group, bool) or not isinstance(group, (str, int))):
            raise InputError(f"group is {kind_of(group)}; expected text")
        links = take_links(record)
        self.add(doc_id, text, title, links, "" if group is None else str(group), take_rest(record))

    def build(self) -> tuple[Corpus, tuple[Finding, ...]]:
        """The corpus, and the ids that came again."""
        for name in _SPARSE:
            self._packers[name].pad(self._count)
        columns = {
            name: (PackedIds if name == "ids" else PackedTexts)(*self._packers[name].arrays())
            for name in _COLUMNS
        }
        ids = columns["ids"]
        assert isinstance(ids, PackedIds)
        repeats = ids.repeats()
        if not repeats:
            return Corpus(columns), ()
        dropped = {later for later, _ in repeats}
        kept = [position for position in range(len(ids)) if position not in dropped]
        body, title = columns["texts"], columns["titles"]
        differ = [ids[n] for n, first in repeats if (body[n], title[n]) != (body[first], title[first])]
        return Corpus({name: column.take(kept) for name, column in columns.items()}), (
            repeated_ids("document", [ids[later] for later, _ in repeats], differ),
        )


def repeated_ids(what: str, repeated: Sequence[str], differ: Sequence[str]) -> Finding:
    """The finding on ids that came again, whose text may differ from the first."""
    text = f"{len(differ):,} with another text" if differ else "always with the same text"
    many = "queries" if what == "query" else f"{what}s"
    return Finding.of(
        "error" if differ else "warning",
        f"duplicate-{what}",
        f"{counted(len(repeated), what, many)} had the id of an earlier one, {text}; the first was kept:",
        ((item,) for item in dict.fromkeys([*differ, *repeated])),
        len(set(repeated)),
        f"Give every {what} an id of its own.",
    )


class _Passages(Sequence[str]):
    """Title and text on lines of their own, as retrievers index them."""

    def __init__(self, titles: PackedTexts, texts: PackedTexts) -> None:
        self._titles = titles
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[position] for position in range(*place.indices(len(self)))]
        return _passage(self._titles[place], self._texts[place])

    def __iter__(self) -> Iterator[str]:
        return map(_passage, self._titles, self._texts)


def _passage(title: str, text: str) -> str:
    return f"{title}\n{text}" if title else text


def _record(document: Any, where: str) -> dict[str, Any]:
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, Mapping):
        return dict(document)
    raise InputError(f"{where} is {kind_of(document)}; expected its text, or a record with text and title.")
