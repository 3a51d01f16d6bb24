"""Run: what a retriever returned, a ranked list of documents for each query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import InputError
from steelyard.ids import kind_of, text_ids
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


class Run:
    """Ranked lists: from a mapping, a frame (polars, pandas, pyarrow), records or, with `Run.read`, a file.

    Records may be named tuples (ir_measures' ScoredDoc); ranx's Run is taken as it is.

    >>> Run({"q1": {"d1": 12.3, "d2": 9.1}}, name="bm25")      # scores: ordered by the tie rule
    Run 'bm25': 1 query, 2 documents
    >>> Run({"q1": ["d1", "d2"]})                               # ranked ids keep their order
    Run 'run': 1 query, 2 documents
    >>> Run({"q1": [("d1", 0.9), ("d2", 0.9)]}).ordered         # and so does a retriever's answer
    True

    `seconds` gives each query's time for `Latency`; `tokens` each document's length for measures
    with a `budget`; `texts` the documents' texts for near-repeats (and their length, where
    `tokens` is not given: white-space words).
    """

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
        self.notes: tuple[str, ...] = ()
        self._mapping: dict[str, Any] | None = None
        self._empty: tuple[str, ...] = ()
        called = getattr(source, "name", None)
        if not isinstance(source, (Run, Mapping)):
            from steelyard.io.records import plain_form

            source = plain_form(source)
        if isinstance(source, Run):
            self.__dict__.update(source.__dict__)
        elif isinstance(source, Mapping):
            self._mapping, self.ordered = _checked(source)
        else:
            from steelyard.io.columns import run_frame

            columns = {"query_id": query_id, "doc_id": doc_id, "score": score, "rank": rank}
            found = run_frame(source, columns)
            self.__dict__["table"], self.ordered, self.notes = found.table, found.ordered, found.notes
            self._empty = found.empty
        self.name: str = name or called or "run"
        if not isinstance(source, Run) or seconds is not None:
            self.seconds = dict(seconds) if seconds is not None else None
        if not isinstance(source, Run) or tokens is not None or texts is not None:
            self.texts = dict(texts) if texts is not None else None
            self.tokens = dict(tokens) if tokens is not None else _lengths(self.texts)

    @classmethod
    def read(
        cls, path: str | Path, format: str | None = None, name: str | None = None, **columns: str
    ) -> Run:
        """Read a file; the format is found from its content unless `format` insists on one.

        The run's name is `name`, or the tag the file holds, or the file's own name.
        """
        from steelyard.io import read_run

        run = read_run(Path(path), format, columns)
        return cls(run, name=name) if name else run

    @classmethod
    def of(cls, source: Any, name: str | None = None, **given: Any) -> Run:
        """A Run as it is; a path read; anything else made into one. Takes what Run() takes."""
        if isinstance(source, (str, Path)):
            columns = {key: value for key, value in given.items() if key not in _CARRIED}
            source = cls.read(source, name=name, **columns)
            given = {key: value for key, value in given.items() if key in _CARRIED}
        if isinstance(source, Run) and not given and name in (None, source.name):
            return source
        return cls(source, name=name, **given)

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write a file, in the format its name asks for (.trec, .tsv, .json, .parquet, ...) or `format`."""
        from steelyard.io import write_run

        write_run(self, Path(path), format)

    def without_empty(self) -> Run:
        """The same without the queries answered with an empty list, which a TREC file cannot hold.

        >>> Run({"q1": ["d1"], "q2": []}).without_empty()
        Run 'run': 1 query, 1 document
        """
        kept = Run(self)
        kept._empty = ()
        if self._mapping is not None:
            kept._mapping = {query: listed for query, listed in self._mapping.items() if listed}
        return kept

    @property
    def mapping(self) -> dict[str, Any] | None:
        """The run as a mapping, where it was made from one."""
        return self._mapping

    @cached_property
    def table(self) -> pl.DataFrame:
        """The rows as they came: query_id, doc_id, score (null for ranked ids without scores)."""
        import polars as pl

        assert self._mapping is not None
        queries: list[str] = []
        docs: list[str] = []
        scores: list[float | None] = []
        for query, listed in self._mapping.items():
            ids, values = _pairs(listed)
            queries += [query] * len(ids)
            docs += ids
            scores += values
        return pl.DataFrame({"query_id": queries, "doc_id": docs, "score": scores}, schema=_SCHEMA)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A polars frame, best first: query_id, doc_id, rank, score (null for ranked ids without scores).

        Documents of equal score are in trec_eval's order, by id, largest first.
        """
        from steelyard.alignment.ranking import ranked_rows

        return ranked_rows(self.table, self.ordered)

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order they came; a query answered with an empty list is one of them."""
        if self._mapping is not None:
            return list(self._mapping)
        return [*self.table["query_id"].unique(maintain_order=True).to_list(), *self._empty]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content: the same lists, whatever file they came from, have the same one."""
        import hashlib

        digest = hashlib.sha256()
        frame = self.frame.sort("query_id", "rank")
        for column in ("query_id", "doc_id"):
            digest.update("\n".join(frame[column].to_list()).encode())
        digest.update(frame["rank"].to_numpy().astype("<i8").tobytes())
        digest.update(frame["score"].fill_null(float("nan")).to_numpy().astype("<f8").tobytes())
        return digest.hexdigest()[:16]

    def __len__(self) -> int:
        """How many documents were returned, over all queries."""
        if self._mapping is not None:
            return sum(map(len, self._mapping.values()))
        return self.table.height

    def __repr__(self) -> str:
        held = f"{counted(len(self.queries), 'query', 'queries')}, {counted(len(self), 'document')}"
        return f"Run {self.name!r}: {held}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.fingerprint == other.fingerprint

    __hash__ = None  # type: ignore[assignment]


_CARRIED = ("seconds", "tokens", "texts")
"""What a run carries beside its lists."""


def readable_again(source: Any) -> Any:
    """A run as it was given, but one that can be gone through once only, which is read."""
    return Run(source) if isinstance(source, Iterator) else source


_SCHEMA: dict[str, Any] = {"query_id": str, "doc_id": str, "score": float}


def _lengths(texts: Mapping[str, str] | None) -> dict[str, int] | None:
    return None if texts is None else {doc: len(text.split()) for doc, text in texts.items()}


def _checked(source: Mapping[Any, Any]) -> tuple[dict[str, Any], bool]:
    """A copy of the mapping with text ids and finite scores, and whether its lists carry their own order."""
    queries = text_ids(source, "query id", "the run", unique=True)
    copied: dict[str, Any] = {}
    ordered: bool | None = None
    for query, listed in zip(queries, source.values(), strict=True):
        where = f"the run's list for query {query!r}"
        if isinstance(listed, Mapping):
            own = False
            copied[query] = dict(
                zip(
                    text_ids(listed, "document id", where, unique=True),
                    _scores(listed.values(), where),
                    strict=True,
                )
            )
        elif isinstance(listed, Sequence) and not isinstance(listed, (str, bytes)):
            own = True
            copied[query] = _ranked_list(listed, where)
        else:
            raise InputError(
                f"{where} is {kind_of(listed)}; expected a mapping of document id to score, "
                "a list of ids, best first, or a list of (id, score) pairs."
            )
        if ordered is not None and own != ordered and len(listed):
            raise InputError(
                f"{where} is in another form than the lists before it; use mappings or lists, not both."
            )
        ordered = own if len(listed) or ordered is None else ordered
    return copied, bool(ordered)


def _ranked_list(listed: Sequence[Any], where: str) -> list[Any]:
    if listed and all(isinstance(item, (tuple, list)) and len(item) == 2 for item in listed):
        ids = text_ids((item[0] for item in listed), "document id", where)
        return list(zip(ids, _scores((item[1] for item in listed), where), strict=True))
    return text_ids(listed, "document id", where)


def _scores(values: Any, where: str) -> list[float]:
    listed = list(values)
    try:
        array = np.array(listed, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(len(listed), np.nan)
    if array.ndim != 1 or not np.all(np.isfinite(array)):
        bad = next(
            (v for v in listed if not isinstance(v, (int, float, np.number)) or not np.isfinite(v)), listed
        )
        raise InputError(
            f"{where}: score {bad!r} is not a finite number; take the document out, or score it."
        )
    return [float(value) for value in array]


def _pairs(listed: Any) -> tuple[list[str], list[float | None]]:
    """The ids and scores of one list, in the order given."""
    if isinstance(listed, dict):
        return list(listed), list(listed.values())
    if listed and isinstance(listed[0], tuple):
        return [doc for doc, _ in listed], [score for _, score in listed]
    return list(listed), [None] * len(listed)
