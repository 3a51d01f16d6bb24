"""Run: a ranked list of documents for each query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from steelyard.io.files import UNNAMED, is_stream
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.notes import Note
from steelyard.wording import counted


class Run:
    """Ranked lists from a mapping, a frame (polars, pandas, pyarrow), records or, with `Run.read`, a file.

    Records may be named tuples (ir_measures' ScoredDoc); ranx's Run is also accepted.

    >>> Run({"q1": {"d1": 12.3, "d2": 9.1}}, name="bm25")      # scores: ordered by the tie policy
    Run 'bm25': 1 query, 2 documents
    >>> Run({"q1": ["d1", "d2"]})                               # ranked ids keep their order
    Run 'run': 1 query, 2 documents
    >>> Run({"q1": [("d1", 0.9), ("d2", 0.9)]}).ordered         # and so do the pairs that a retriever returns
    True

    `seconds` is the time of each query, for `Latency`; `tokens` the length of each document, for
    measures with a `budget`; `texts` the documents' texts, for near-duplicates (and their length in
    white-space words, where `tokens` is missing). `notes` reports what was ignored or converted.
    """

    name: str
    ordered: bool
    notes: tuple[Note, ...] = ()
    seconds: dict[str, float] | None = None
    tokens: dict[str, int] | None = None
    texts: dict[str, str] | None = None
    _mapping: dict[str, Any] | None = None
    _empty: tuple[str, ...] = ()

    def __init__(
        self,
        source: Any,
        name: str | None = None,
        *,
        seconds: Mapping[str, float] | None = None,
        tokens: Mapping[str, int] | None = None,
        texts: Mapping[str, str] | None = None,
        query_id: str | None = None,
        doc_id: str | None = None,
        score: str | None = None,
        rank: str | None = None,
    ) -> None:
        given = {"query_id": query_id, "doc_id": doc_id, "score": score, "rank": rank}
        columns = {role: str(name) for role, name in given.items() if name is not None}
        if isinstance(source, (str, Path)):
            source = Run.read(source, **columns)
        run = source if isinstance(source, Run) else looked_up("steelyard.io.objects:run_of")(source, columns)
        self.__dict__.update(run.__dict__)
        self.name = name or self.name
        if seconds is not None:
            self.seconds = dict(seconds)
        if tokens is not None or texts is not None:
            self.texts = dict(texts) if texts is not None else None
            lengths = {doc: len(text.split()) for doc, text in (texts or {}).items()} if tokens is None else tokens
            self.tokens = dict(lengths)

    @classmethod
    def from_table(
        cls,
        table: pl.DataFrame,
        ordered: bool,
        *,
        name: str | None = None,
        empty: tuple[str, ...] = (),
        notes: tuple[Note, ...] = (),
    ) -> Run:
        """A run from a checked table of query_id, doc_id and score. `ordered`: its rows have an order of their own.

        `empty` names the queries with an empty list.
        """
        run = cls.__new__(cls)
        run.__dict__.update(table=table, ordered=ordered, name=name or UNNAMED, notes=notes, _empty=empty)
        return run

    @classmethod
    def from_lists(cls, lists: dict[str, Any], ordered: bool, name: str | None = None) -> Run:
        """A run from checked lists: query to a dict of scores, to ids, or to (id, score) pairs, best first."""
        run = cls.__new__(cls)
        run.__dict__.update(_mapping=lists, ordered=ordered, name=name or UNNAMED)
        return run

    @classmethod
    def read(cls, path: str | Path, format: str | None = None, name: str | None = None, **columns: str) -> Run:
        """Read a file; the format is detected from the content unless `format` names one.

        The run's name is `name`, or the tag in the file, or the file's own name.
        """
        run: Run = looked_up("steelyard.io.reading:read_run")(Path(path), format, columns)
        return cls(run, name=name) if name else run

    @classmethod
    def of(cls, source: Any, name: str | None = None, **options: Any) -> Run:
        """A Run unchanged; a path read; anything else passed to Run(), with the same arguments."""
        if isinstance(source, (str, Path)):
            extras: dict[str, Any] = {key: options.pop(key) for key in ("seconds", "tokens", "texts") if key in options}
            source, options = cls.read(source, name=name, **options), extras
        if isinstance(source, Run) and not options and name in (None, source.name):
            return source
        return cls(source, name=name, **options)

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write a file, in the format of its suffix (.trec, .tsv, .json, .parquet, ...) or `format`."""
        looked_up("steelyard.io.reading:write_run")(self, Path(path), format)

    def without_empty(self) -> Run:
        """The same without the queries that have an empty list, which a TREC file cannot hold.

        >>> Run({"q1": ["d1"], "q2": []}).without_empty()
        Run 'run': 1 query, 1 document
        """
        kept = Run(self)
        kept._empty = ()
        if self.mapping is not None:
            kept._mapping = {query: listed for query, listed in self.mapping.items() if listed}
        return kept

    @property
    def mapping(self) -> dict[str, Any] | None:
        """The run as a mapping, where it was created from one."""
        return self._mapping

    @property
    def empty(self) -> tuple[str, ...]:
        """The queries with an empty list."""
        if self.mapping is not None:
            return tuple(query for query, listed in self.mapping.items() if not len(listed))
        return self._empty

    @cached_property
    def table(self) -> pl.DataFrame:
        """The rows in the order of the input: query_id, doc_id, score (null for ranked ids without scores)."""
        assert self.mapping is not None
        queries: list[str] = []
        docs: list[str] = []
        scores: list[float | None] = []
        for query, listed in self.mapping.items():
            ids, values = ids_and_scores(listed)
            queries += [query] * len(ids)
            docs += ids
            scores += values
        schema: dict[str, Any] = {"query_id": str, "doc_id": str, "score": float}
        return pl.DataFrame({"query_id": queries, "doc_id": docs, "score": scores}, schema=schema)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A polars frame, best first: query_id, doc_id, rank, score (null for ranked ids without scores).

        Documents with equal scores are in trec_eval's order, by id, descending.
        """
        from steelyard.alignment.ranking import ranked_rows

        return ranked_rows(self.table, self.ordered)

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order of the input, including those with an empty list."""
        if self.mapping is not None:
            return list(self.mapping)
        return [*self.table["query_id"].unique(maintain_order=True).to_list(), *self._empty]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content, independent of the file it came from."""
        import hashlib

        digest = hashlib.sha256()
        frame = self.frame.sort("query_id", "rank")
        for column in ("query_id", "doc_id"):
            digest.update("\n".join(frame[column].to_list()).encode())
        digest.update(frame["rank"].to_numpy().astype("<i8").tobytes())
        digest.update(frame["score"].fill_null(float("nan")).to_numpy().astype("<f8").tobytes())
        return digest.hexdigest()[:16]

    def __len__(self) -> int:
        """How many documents there are, over all queries."""
        return self.table.height if self.mapping is None else sum(map(len, self.mapping.values()))

    def __repr__(self) -> str:
        size = f"{counted(len(self.queries), 'query', 'queries')}, {counted(len(self), 'document')}"
        return f"Run {self.name!r}: {size}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.fingerprint == other.fingerprint

    __hash__ = None  # type: ignore[assignment]


def ids_and_scores(listed: Any) -> tuple[list[str], list[float | None]]:
    """The ids and scores of one list of `Run.from_lists`, in its order."""
    if isinstance(listed, dict):
        return list(listed), list(listed.values())
    if listed and isinstance(listed[0], tuple):
        return [doc for doc, _ in listed], [score for _, score in listed]
    return list(listed), [None] * len(listed)


def readable_again(source: Any) -> Any:
    """A run that can be read more than once: an iterator or a pipe is read into a Run, anything else is unchanged."""
    if isinstance(source, Iterator):
        return Run(source)
    return Run.read(source) if isinstance(source, (str, Path)) and is_stream(Path(source)) else source
