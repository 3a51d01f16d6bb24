"""The documents and the queries of a dataset."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

from steelyard.checks import is_whole
from steelyard.datasets.findings import Finding, repeated_ids
from steelyard.datasets.packed import Computed, PackedIds, PackedMapping, PackedTexts, TextPacker
from steelyard.errors import InputError, did_you_mean
from steelyard.ids import kind_of
from steelyard.safe_text import has_lone_surrogate
from steelyard.wording import counted

HALF_CHARACTER = "holds half of a surrogate pair, which is not a character"
_DOCUMENT_IDS = ("_id", "id", "doc_id", "docid", "docno")
_DOCUMENT_TEXTS = ("text", "contents", "body")
_QUERY_IDS = ("_id", "id", "query_id", "qid")
_QUERY_TEXTS = ("text", "query", "question")
_COLUMNS = ("ids", "titles", "texts", "links", "groups", "metadata")
_SPARSE = ("titles", "links", "groups", "metadata")


class Corpus(PackedMapping[str]):
    """Documents in order: id to text, preceded by the title on a line of its own where there is one.

    >>> corpus = Corpus.of({"d1": "Plain text.", "d2": {"title": "Steelyard", "text": "A balance."}})
    >>> corpus["d2"], corpus.titles["d2"], corpus.texts["d2"], corpus.links
    ('Steelyard\\nA balance.', 'Steelyard', 'A balance.', None)
    """

    def __init__(self, columns: Mapping[str, PackedTexts]) -> None:
        self._columns = dict(columns)
        super().__init__(columns["ids"], Computed(passage, columns["titles"], columns["texts"]))

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Corpus:
        """A corpus from id to text, or from id to a record with text and any of title, links, group and more."""
        if isinstance(source, Corpus):
            return source
        builder = CorpusBuilder()
        for doc_id, document in source.items():
            if not isinstance(document, (str, Mapping)):
                expected = "expected its text, or a record with text and title"
                raise InputError(f"document {doc_id!r} is {kind_of(document)}; {expected}.")
            builder.add_record({"_id": doc_id, **({"text": document} if isinstance(document, str) else document)})
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
        return PackedMapping(self._columns["ids"], Computed(partial(_parsed, ()), self._columns["links"]))

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """Id to group (documents with the same content), for the documents that have one."""
        pairs = zip(self._columns["ids"], self._columns["groups"], strict=True)
        return {doc_id: group for doc_id, group in pairs if group}

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """Id to all other fields of a document."""
        return PackedMapping(self._columns["ids"], Computed(partial(_parsed, {}), self._columns["metadata"]))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content and its order."""
        return sha256(b"".join(self._columns[name].digest for name in _COLUMNS)).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"Corpus: {counted(len(self), 'document')}"


class CorpusBuilder:
    """Collects documents; of an id that occurs again, the first is kept and the others are reported."""

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
        """Add a document."""
        fields = {"ids": doc_id, "texts": text, "titles": title, "groups": group}
        if links:
            fields["links"] = json.dumps(links, ensure_ascii=False)
        if metadata:
            fields["metadata"] = json.dumps(metadata, ensure_ascii=False, sort_keys=True, default=str)
        try:
            raw = [(name, value.encode()) for name, value in fields.items() if value or name in ("ids", "texts")]
        except UnicodeEncodeError:
            raise InputError(HALF_CHARACTER) from None
        for name, encoded in raw:
            if name in _SPARSE:
                self._packers[name].pad(self._count)
            self._packers[name].add(encoded)
        self._count += 1

    def add_record(self, record: dict[str, Any]) -> None:
        """Add a document from a record whose fields have the usual names; its fields are removed."""
        self.add(*document_of(record))

    def build(self) -> tuple[Corpus, tuple[Finding, ...]]:
        """The corpus, and a finding on repeated ids."""
        for name in _SPARSE:
            self._packers[name].pad(self._count)
        ids = PackedIds(*self._packers["ids"].arrays())
        columns = {name: PackedTexts(*self._packers[name].arrays()) for name in _COLUMNS} | {"ids": ids}
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


def document_of(record: dict[str, Any]) -> tuple[str, str, str, list[str], str, dict[str, Any]]:
    """The arguments of `CorpusBuilder.add` of a record whose fields have the usual names; its fields are removed."""
    doc_id, text = as_id(*_taken(record, _DOCUMENT_IDS)), _as_text(*_taken(record, _DOCUMENT_TEXTS))
    title = _as_text(record.pop("title", None), "title")
    group = record.pop("group", None)
    if group is not None and not isinstance(group, str) and not is_whole(group):
        raise InputError(f"group is {kind_of(group)}; expected text")
    links = record.pop("links", None)
    if links is not None and not isinstance(links, list):
        raise InputError(f"links is {kind_of(links)}; expected a list of document ids")
    linked = [as_id(link, "a link") for link in links or ()]
    return doc_id, text, title, linked, "" if group is None else str(group), _take_rest(record)


def passage(title: str, text: str) -> str:
    """What retrievers index: the title on a line of its own, if there is one, and the text."""
    return f"{title}\n{text}" if title else text


def _parsed(default: Any, text: str) -> Any:
    """The JSON value of a packed text; an empty text is `default`."""
    return json.loads(text) if text else default


class Queries(Mapping[str, str]):
    """Queries in order: id to text, with columns of other fields, to slice scores by.

    >>> queries = Queries.of({"q1": {"text": "Why?", "type": "causal"}, "q2": "Where?"})
    >>> queries["q1"], queries.column("type")
    ('Why?', {'q1': 'causal'})
    """

    def __init__(self, texts: Mapping[str, str], columns: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._texts = dict(texts)
        self._columns = {name: dict(values) for name, values in (columns or {}).items()}

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Queries:
        """Queries from id to text, or from id to a record with text and more."""
        if isinstance(source, Queries):
            return source
        builder = QueriesBuilder()
        for query_id, query in source.items():
            builder.add_record({"_id": query_id, **(query if isinstance(query, Mapping) else {"text": query})})
        return builder.build()[0]

    @property
    def columns(self) -> Mapping[str, Mapping[str, Any]]:
        """Column name to id to value; a query without a value is not in that column."""
        return self._columns

    def column(self, name: str) -> dict[str, Any]:
        """One column: id to value."""
        if name not in self._columns:
            columns, near = ", ".join(self._columns) or "none", did_you_mean(name, self._columns)
            raise InputError(f"the queries have no column {name!r}; their columns: {columns}.{near}")
        return dict(self._columns[name])

    def only(self, ids: Collection[str]) -> Queries:
        """The queries among these ids."""
        texts = {query: text for query, text in self._texts.items() if query in ids}
        columns = {
            name: {query: value for query, value in values.items() if query in texts}
            for name, values in self._columns.items()
        }
        return Queries(texts, {name: values for name, values in columns.items() if values})

    @cached_property
    def fingerprint(self) -> str:
        """A hash of ids, texts and columns."""
        columns = {name: sorted(values.items()) for name, values in sorted(self._columns.items())}
        return sha256(json.dumps([list(self._texts.items()), columns], default=str).encode()).hexdigest()[:16]

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        columns = f", columns {', '.join(self._columns)}" if self._columns else ""
        return f"Queries: {counted(len(self), 'query', 'queries')}{columns}"


class QueriesBuilder:
    """Collects queries; of an id that occurs again, the first is kept and the others are reported."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._columns: dict[str, dict[str, Any]] = {}
        self._repeated: list[str] = []
        self._differ: list[str] = []

    def add(self, query_id: str, text: str, columns: Mapping[str, Any] | None = None) -> bool:
        """Add a query; False if its id occurred before, and the query was ignored."""
        if has_lone_surrogate(query_id) or has_lone_surrogate(text):
            raise InputError(HALF_CHARACTER)
        if query_id in self._texts:
            self._repeated.append(query_id)
            if self._texts[query_id] != text:
                self._differ.append(query_id)
            return False
        self._texts[query_id] = text
        for name, value in (columns or {}).items():
            if value is not None:
                self._columns.setdefault(name, {})[query_id] = value
        return True

    def add_record(self, record: dict[str, Any]) -> None:
        """Add a query from a record whose fields have the usual names; its fields are removed."""
        query_id, text = as_id(*_taken(record, _QUERY_IDS)), _as_text(*_taken(record, _QUERY_TEXTS))
        self.add(query_id, text, _take_rest(record))

    def build(self) -> tuple[Queries, tuple[Finding, ...]]:
        """The queries, and a finding on repeated ids."""
        findings = (repeated_ids("query", self._repeated, self._differ),) if self._repeated else ()
        return Queries(self._texts, self._columns), findings


def _taken(record: dict[str, Any], names: Sequence[str]) -> tuple[Any, str]:
    """The value under the first of these names, which is removed, and that name."""
    for name in names:
        if name in record:
            return record.pop(name), name
    fields = f"the fields {', '.join(list(record)[:8])}{', ...' if len(record) > 8 else ''}"
    raise InputError(f"no {names[0]} among {fields if record else 'no fields at all'}")


def as_id(value: Any, name: str) -> str:
    """An id as text; a whole number is read as its digits.

    >>> as_id(7, "_id")
    '7'
    """
    if isinstance(value, str) and value:
        return value
    if is_whole(value):
        return str(value)
    raise InputError(f"{name} is {'empty' if value == '' else kind_of(value)}; expected text or a whole number")


def _as_text(value: Any, name: str) -> str:
    """A text; null is an empty one."""
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} is {kind_of(value)}; expected text")
    return value or ""


def _take_rest(record: dict[str, Any]) -> dict[str, Any]:
    """The remaining fields, and those of an object called metadata."""
    inner = record.pop("metadata", None)
    if inner is not None and not isinstance(inner, Mapping):
        return {**record, "metadata": inner}
    return {**(inner or {}), **record}
