"""The documents of a dataset: as retrievers index them, and piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

from steelyard.datasets.fields import take_id, take_links, take_rest, take_text
from steelyard.datasets.findings import Finding
from steelyard.datasets.packed import PackedIds, PackedJson, PackedMapping, PackedTexts, TextPacker
from steelyard.errors import InputError
from steelyard.ids import kind_of
from steelyard.wording import counted

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
