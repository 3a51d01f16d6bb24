"""The queries of a dataset, and what is known of each."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

from steelyard.datasets.corpus import repeated_ids
from steelyard.datasets.fields import Finding, take_id, take_rest, take_text
from steelyard.errors import InputError, did_you_mean
from steelyard.wording import counted

ID_NAMES = ("_id", "id", "query_id", "qid")
TEXT_NAMES = ("text", "query", "question")


class Queries(Mapping[str, str]):
    """Queries in order: id to text, with columns of what else is known, to slice scores by.

    >>> queries = Queries.of({"q1": {"text": "Why?", "type": "causal"}, "q2": "Where?"})
    >>> queries["q1"], queries.column("type")
    ('Why?', {'q1': 'causal'})
    """

    def __init__(
        self, texts: Mapping[str, str], columns: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self._texts = dict(texts)
        self._columns = {name: dict(values) for name, values in (columns or {}).items()}

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Queries:
        """Queries of id to text, or of id to a record with text and more."""
        if isinstance(source, Queries):
            return source
        builder = QueriesBuilder()
        for query_id, query in source.items():
            builder.add_record(
                {"_id": query_id, **(query if isinstance(query, Mapping) else {"text": query})}
            )
        return builder.build()[0]

    @property
    def columns(self) -> Mapping[str, Mapping[str, Any]]:
        """Name of a column to id to value; a query that lacks a value is not in that column."""
        return self._columns

    def column(self, name: str) -> dict[str, Any]:
        """Id to value of one column."""
        if name not in self._columns:
            there = ", ".join(self._columns) or "none"
            raise InputError(
                f"the queries have no column {name!r}; they have {there}.{did_you_mean(name, self._columns)}"
            )
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
        content = json.dumps([list(self._texts.items()), columns], default=str)
        return sha256(content.encode()).hexdigest()[:16]

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
    """Queries one after another; of an id that comes again, the first is kept and the rest reported."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._columns: dict[str, dict[str, Any]] = {}
        self._repeated: list[str] = []
        self._differ: list[str] = []

    def add(self, query_id: str, text: str, columns: Mapping[str, Any] | None = None) -> bool:
        """One more query; False where its id was there before, and it was passed over."""
        try:
            query_id.encode(), text.encode()
        except UnicodeEncodeError:
            raise InputError("holds half of a surrogate pair, which is no character") from None
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
        """One more query, from a record whose fields have the usual names; the record is used up."""
        query_id = take_id(record, ID_NAMES)
        text = take_text(record, TEXT_NAMES)
        self.add(query_id, text, take_rest(record))

    def build(self) -> tuple[Queries, tuple[Finding, ...]]:
        """The queries, and the ids that came again."""
        found = (repeated_ids("query", self._repeated, self._differ),) if self._repeated else ()
        return Queries(self._texts, self._columns), found
