"""Span measures: how much of the relevant text was retrieved, and how much of the retrieved text is relevant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.alignment.hits import Floats, Ints
from steelyard.checks import whole_number
from steelyard.chunking import Tokenizer, token_starts, tokenizer_of
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.evidence.chunks import chunk_table
from steelyard.evidence.evidence import Evidence
from steelyard.notes import Note, note
from steelyard.run import Run
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

NAMES = ("SpanR", "SpanP", "SpanIoU")


@dataclass(frozen=True, eq=False)
class SpanScores:
    """Span recall, precision and IoU: `means`, `per_query` (a polars frame), intervals and notes."""

    name: str
    queries: Sequence[str]
    columns: Mapping[str, Floats]
    notes: tuple[Note, ...] = ()

    def __getitem__(self, measure: str) -> float:
        if measure not in self.columns:
            raise MeasureError(
                f"{measure!r} was not measured; measured: {', '.join(self.columns)}.{did_you_mean(measure, self.columns)}"
            )
        return self.means[measure]

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of each measure over the queries that have spans."""
        return {
            name: float(np.mean(values)) if len(values) else float("nan")
            for name, values in self.columns.items()
        }

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A polars frame: query_id, then one column per measure."""
        import polars as pl

        return pl.DataFrame({"query_id": pl.Series(list(self.queries), dtype=pl.String), **self.columns})

    def interval(self, measure: str, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
        """A bootstrap interval of the mean over queries; the same seed gives the same interval."""
        from steelyard.statistics.intervals import mean_interval

        if measure not in self.columns:
            self[measure]
        low, high = mean_interval(self.columns[measure], level=level, draws=None, seed=seed)
        return low, high

    def __repr__(self) -> str:
        lines = [f"  {name}  {value:.4f}" for name, value in self.means.items()]
        head = f"Span scores of {self.name!r} over {counted(len(self.queries), 'query', 'queries')}"
        return "\n".join([head, *lines, *(f"  {each}" for each in self.notes)])


def span_scores(
    evidence: Any,
    chunks: Any,
    run: Any,
    *,
    k: int | Sequence[int] | None = None,
    budget: int | Sequence[int] | None = None,
    unit: Literal["character", "token"] = "character",
    tokenizer: str | Tokenizer = "whitespace",
    documents: Mapping[str, str] | None = None,
) -> SpanScores:
    """Recall, precision and IoU of the retrieved text with respect to the spans of the evidence, per query.

    With G the relevant text of a query (all its spans) and T the text of the retrieved chunks, both
    as sets of characters, so that shared text counts once:
    SpanR = |G and T| / |G|, SpanP = |G and T| / |T|, SpanIoU = |G and T| / |G or T|.

    k cuts at a rank, budget at a number of tokens of context (a chunk must fit completely); one or
    several of either, or neither for everything retrieved. unit='token' counts tokens of the
    `documents` instead of characters; a token belongs to the place of its first character. Nothing
    retrieved: 0. A query of the evidence that is not in the run counts 0; queries without a span are
    left out, with a note.

    >>> evidence = Evidence({"q": [{"doc_id": "d", "start": 0, "end": 10}]})
    >>> halves = [{"chunk_id": c, "doc_id": "d", "start": a, "end": a + 8} for c, a in (("x", 0), ("y", 4))]
    >>> span_scores(evidence, halves, {"q": ["x", "y"]}, k=[1, 2]).means["SpanR@2"]
    1.0
    """
    if unit not in ("character", "token"):
        raise InputError(f"unit is {unit!r}; expected 'character' or 'token'.")
    key, retrieved_run = Evidence.of(evidence), Run.of(run)
    table = chunk_table(chunks, documents=documents)
    if table["start"].null_count():
        raise InputError(
            "span measures need every chunk's start and end, and some chunks of one document have none."
        )
    relevant = _RelevantText(key, unit, tokenizer, documents)
    retrieved, unknown = _retrieved(retrieved_run, table, relevant, tokenizer if budget is not None else None)
    cuts = [(f"@{at}", retrieved.rank <= at) for at in _several(k, "k")]
    for at in _several(budget, "budget"):
        cuts.append((f"(budget={at})", retrieved.through <= at))
    if not cuts:
        cuts = [("", np.ones(len(retrieved.rank), dtype=bool))]
    columns: dict[str, Floats] = {}
    for label, chosen in cuts:
        text = retrieved.chosen(chosen)
        size = relevant.covered(text)
        union = relevant.covered([np.concatenate([a, b]) for a, b in zip(relevant.parts, text, strict=True)])
        shared = relevant.size + size - union
        for name, whole in zip(NAMES, (relevant.size, size, union), strict=True):
            columns[name + label] = np.divide(shared, whole, out=np.zeros(len(whole)), where=whole > 0)
    notes = tuple(_notes(key, retrieved_run, relevant, unknown))
    return SpanScores(retrieved_run.name, relevant.queries, columns, notes)


class _RelevantText:
    """The relevant text of every query that has a span, and the unit in which lengths are counted."""

    def __init__(
        self, key: Evidence, unit: str, tokenizer: str | Tokenizer, documents: Mapping[str, str] | None
    ) -> None:
        spans = key.spans
        if not spans.height:
            raise InputError(
                "the evidence has no character spans; span measures need {'doc_id', 'start', 'end'}."
            )
        self.queries: list[str] = spans["query_id"].unique(maintain_order=True).to_list()
        self.query_code = {query: at for at, query in enumerate(self.queries)}
        self.doc_code: dict[str, int] = {}
        self._tokens = unit == "token"
        self._tokenizer, self._documents = tokenizer, documents
        self._starts: dict[int, Ints] = {}
        if self._tokens and documents is None:
            raise InputError(
                "unit='token' needs the documents (documents=...), to know where their tokens are."
            )
        docs = [self.code_of(doc) for doc in spans["doc_id"].to_list()]
        self.parts = self.placed(
            np.array([self.query_code[query] for query in spans["query_id"].to_list()], dtype=np.int64),
            np.array(docs, dtype=np.int64),
            spans["start"].to_numpy(),
            spans["end"].to_numpy(),
        )
        self.size = self.covered(self.parts)

    def code_of(self, doc: str) -> int:
        return self.doc_code.setdefault(doc, len(self.doc_code))

    def placed(self, query: Ints, doc: Ints, start: Ints, end: Ints) -> list[Ints]:
        """Spans as query, document, start and end, in characters or tokens."""
        if not self._tokens:
            return [query, doc, start.astype(np.int64), end.astype(np.int64)]
        names = list(self.doc_code)
        first, last = np.zeros(len(start), dtype=np.int64), np.zeros(len(end), dtype=np.int64)
        for code in np.unique(doc).tolist():
            if code not in self._starts:
                text = (self._documents or {}).get(names[code])
                if text is None:
                    raise InputError(f"document {names[code]!r} is not among the documents.")
                self._starts[code] = token_starts(text, self._tokenizer)
            chosen = doc == code
            first[chosen] = np.searchsorted(self._starts[code], start[chosen])
            last[chosen] = np.searchsorted(self._starts[code], end[chosen])
        return [query, doc, first, last]

    def covered(self, parts: Sequence[Ints]) -> Floats:
        """How much of the documents each query's spans cover; what several cover counts once."""
        query, doc, start, end = parts
        order = np.lexsort((start, doc, query))
        query, doc, start, end = query[order], doc[order], start[order], end[order]
        stride = int(end.max(initial=0)) + 1
        group = (query * (len(self.doc_code) + 1) + doc) * stride
        reach = np.maximum.accumulate(np.concatenate([[0], group + end]))[:-1]
        new = np.maximum(0, group + end - np.maximum(group + start, reach)) if len(query) else group
        return np.bincount(query, weights=new, minlength=len(self.queries)).astype(np.float64)


@dataclass(frozen=True)
class _Retrieved:
    """Every chunk retrieved for a query with spans: its span, rank, and the tokens up to its end."""

    parts: list[Ints]
    rank: Ints
    through: Ints

    def chosen(self, chosen: Any) -> list[Ints]:
        return [part[chosen] for part in self.parts]


def _retrieved(
    run: Run, table: pl.DataFrame, relevant: _RelevantText, tokenizer: str | Tokenizer | None
) -> tuple[_Retrieved, int]:
    """The retrieved chunks, and how many are not among the chunks."""
    import polars as pl

    codes = pl.DataFrame(
        {"query_id": relevant.queries, "query": pl.Series(range(len(relevant.queries)), dtype=pl.Int64)}
    )
    columns = ["chunk_id", "doc_id", "start", "end"]
    if tokenizer is not None:
        table = table.with_columns(tokens=_lengths(run, table, tokenizer))
        columns.append("tokens")
    listed = run.frame.select("query_id", pl.col("doc_id").alias("chunk_id"), "rank").join(
        codes, on="query_id"
    )
    found = listed.join(table.select(columns), on="chunk_id", how="left", maintain_order="left")
    unknown = found["start"].null_count()
    through = np.zeros(found.height, dtype=np.int64)
    if tokenizer is not None:
        sums = found.sort("query", "rank").with_columns(
            through=pl.col("tokens").fill_null(0).cum_sum().over("query")
        )
        found, through = sums, sums["through"].to_numpy()
    kept = found["start"].is_not_null().to_numpy()
    found = found.filter(pl.col("start").is_not_null())
    doc = np.array([relevant.code_of(name) for name in found["doc_id"].to_list()], dtype=np.int64)
    parts = relevant.placed(
        found["query"].to_numpy(), doc, found["start"].to_numpy(), found["end"].to_numpy()
    )
    return _Retrieved(parts, found["rank"].to_numpy(), through[kept]), unknown


def _lengths(run: Run, table: pl.DataFrame, tokenizer: str | Tokenizer) -> Any:
    """The tokens of every chunk: from the run where it has them, otherwise counted in the texts."""
    import polars as pl

    if run.tokens is not None:
        counts = [run.tokens.get(chunk) for chunk in table["chunk_id"].to_list()]
    elif table["text"].null_count():
        raise InputError(
            "a budget needs the chunks' texts, or the token counts of the run (Run(..., tokens=...))."
        )
    else:
        tokenize = tokenizer_of(tokenizer)
        counts = [len(tokenize(text)) for text in table["text"].to_list()]
    return pl.Series(counts, dtype=pl.Int64)


def _several(value: int | Sequence[int] | None, what: str) -> list[int]:
    listed = [] if value is None else list(value) if isinstance(value, Iterable) else [value]
    return [whole_number(what, number, 1) for number in listed]


def _notes(evidence: Evidence, run: Run, relevant: _RelevantText, unknown: int) -> list[Note]:
    notes: list[Note] = []
    without = len(evidence.queries) - len(relevant.queries)
    if without:
        notes.append(note("queries-without-span", count=without, queries=len(evidence.queries)))
    missing = set(relevant.queries) - set(run.queries)
    if missing:
        notes.append(note("queries-not-in-run", count=len(missing)))
    if unknown:
        notes.append(note("retrieved-chunks-unknown", count=unknown))
    return notes
