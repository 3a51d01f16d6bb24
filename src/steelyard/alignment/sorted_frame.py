"""Reading a Run held in a frame by sorting all of it: the readable way, and the reference for the fast one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.alignment.hits import Bools, Hits, Ints, JudgedDocs, Ordering
from steelyard.alignment.ranking import SHOWN_RUN_ONLY
from steelyard.errors import PolicyError, problem_report
from steelyard.runs import Run
from steelyard.wording import counted

Words: TypeAlias = NDArray[np.uint64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number that spreads small ones over 64 bits, so that equal keys are equal documents of a query."""

NEARLY = 0.9
"""Two texts nearly repeat each other when they share this much of their word 3-grams (Jaccard)."""


def query_numbers(table: pl.DataFrame, judged: JudgedDocs) -> Ints:
    """The number of each row's query; -1 where nobody judged it."""
    size = len(judged.query_ids)
    numbers = pl.DataFrame(
        {"query_id": _texts(judged.query_ids), "query": np.arange(size)},
        schema={"query_id": pl.String, "query": pl.Int64},
    )
    found = table.select("query_id").join(numbers, on="query_id", how="left", maintain_order="left")
    return _ints(found.fill_null(-1), "query")


def keys_of(docs: pl.Series, queries: Ints) -> Words:
    """A hash of each document and its query."""
    keys: Words = docs.hash().to_numpy() ^ (queries.astype(np.uint64) * _SPREAD)
    return keys


def documents_of(judged: JudgedDocs) -> pl.DataFrame:
    """The judged documents: query, doc_id and doc, their number."""
    return pl.DataFrame(
        {
            "query": np.repeat(np.arange(len(judged.query_ids)), np.diff(judged.starts)),
            "doc_id": _texts(judged.doc_ids),
            "doc": np.arange(len(judged.doc_ids)),
        },
        schema={"query": pl.Int64, "doc_id": pl.String, "doc": pl.Int64},
    )


def _texts(ids: Sequence[str]) -> list[str | None]:
    """Ids as a frame can hold them: one that has no UTF-8 form is in no frame."""
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        return [None if any("\ud800" <= letter <= "\udfff" for letter in text) else text for text in ids]
    return list(ids)


def answered_by(run: Run, judged: JudgedDocs) -> tuple[Bools, int, tuple[str, ...]]:
    """Which judged queries the run has; how many others it has, and the first of those."""
    came, known = run.queries, set(judged.query_ids)
    answered = set(came)
    only_run = [query for query in came if query not in known]
    found = np.fromiter((query in answered for query in judged.query_ids), np.bool_, len(judged.query_ids))
    return found, len(only_run), tuple(only_run[:SHOWN_RUN_ONLY])


def hits_by_sorting(run: Run, table: pl.DataFrame, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """Rank every list, then look up the judged documents. The table has all rows of the run, or those of some queries."""
    size = len(judged.query_ids)
    numbers = pl.Series("query", query_numbers(table, judged))
    table = table.with_columns(numbers).with_row_index("row").filter(pl.col("query") >= 0)
    table = _with_ranks(_in_order(table, ordering, run.ordered))
    top = np.full(size, np.nan)
    best = table.group_by("query").agg(pl.col("score").max())
    top[_ints(best, "query")] = best["score"].fill_null(float("nan")).to_numpy()
    firsts, repeats = _split_repeats(table)
    if ordering.duplicates == "error" and repeats.height:
        raise _repeat_error(repeats)
    if ordering.duplicates == "collapse":
        table = firsts = _with_ranks(firsts)
        standing = firsts.select("query", "doc_id", "rank")
        repeats = (
            repeats.drop("rank").join(standing, on=["query", "doc_id"], how="left").sort("query", "rank")
        )
    table = _with_ties(table, run.ordered)
    if run.tokens is not None or "tokens" in table.columns:
        table = _with_tokens(table, run)
    hits = (
        table.join(firsts.select("row"), on="row", how="semi")
        .join(documents_of(judged), on=["query", "doc_id"], how="inner")
        .sort("query", "rank")
    )
    near = _near_repeats(table, run.texts)
    answered, run_only, examples = answered_by(run, judged)
    return Hits(
        retrieved=np.bincount(_ints(table, "query"), minlength=size).astype(np.int64),
        answered=answered,
        top_score=top,
        query=_ints(hits, "query"),
        doc=_ints(hits, "doc"),
        rank=_ints(hits, "rank"),
        tie_first=_ints(hits, "tie_first"),
        tie_size=_ints(hits, "tie_size"),
        repeat_query=_ints(repeats, "query"),
        repeat_rank=_ints(repeats, "rank"),
        run_only_queries=run_only,
        run_only_examples=examples,
        tokens_through=_ints(hits, "tokens_through") if "tokens_through" in hits.columns else None,
        near_query=None if near is None else _ints(near, "query"),
        near_rank=None if near is None else _ints(near, "rank"),
    )


def _split_repeats(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows whose document comes for the first time in its list, and the others.

    Only rows whose key is not alone can be repeats: a few as a rule, and only they are compared.
    """
    alone = ~pl.Series(keys_of(table["doc_id"], _ints(table, "query"))).is_duplicated()
    again = table.filter(~alone).filter(pl.int_range(pl.len()).over("query", "doc_id") > 0)
    if not again.height:
        return table, again
    return table.join(again.select("row"), on="row", how="anti", maintain_order="left"), again


def _in_order(table: pl.DataFrame, ordering: Ordering, ordered: bool) -> pl.DataFrame:
    """The rows of each query best first; `key` is the score that was compared."""
    score = pl.col("score").cast(pl.Float32 if ordering.single else pl.Float64) + 0.0
    table = table.with_columns(score.alias("key"))
    if ordered:
        return table.sort("query", maintain_order=True)
    if ordering.ties == "stable":
        return table.sort("query", "key", descending=[False, True], maintain_order=True)
    ids_fall = ordering.ties != "docid-asc"
    return table.sort("query", "key", "doc_id", descending=[False, True, ids_fall], maintain_order=True)


def _with_ranks(table: pl.DataFrame) -> pl.DataFrame:
    """The place of each row in its list; the rows of a query stand together, best first."""
    query = _ints(table, "query")
    first = _first_of_group(query[1:] != query[:-1], len(query))
    return table.with_columns(pl.Series("rank", np.arange(len(query)) - first + 1, dtype=pl.Int64))


def _with_ties(table: pl.DataFrame, ordered: bool) -> pl.DataFrame:
    """The ranks that each row's group of equal scores holds: itself alone where the order is the run's own."""
    rank = _ints(table, "rank")
    size = np.ones(len(rank), dtype=np.int64)
    if not ordered and len(rank):
        query, key = _ints(table, "query"), table["key"].to_numpy()
        first = _first_of_group((query[1:] != query[:-1]) | (key[1:] != key[:-1]), len(rank))
        rank, size = rank[first], np.bincount(first, minlength=len(first))[first]
    return table.with_columns(pl.Series("tie_first", rank), pl.Series("tie_size", size, dtype=pl.Int64))


def _first_of_group(begins: Bools, length: int) -> Ints:
    """For every row the first row of its group, given where a row differs from the one before it."""
    starts = np.flatnonzero(np.concatenate([[True], begins])) if length else np.zeros(0, dtype=np.int64)
    return np.repeat(starts, np.diff(np.append(starts, length))).astype(np.int64)


def _with_tokens(table: pl.DataFrame, run: Run) -> pl.DataFrame:
    """The tokens of each list down to each of its documents."""
    if run.tokens is not None:
        lengths = pl.DataFrame(
            {"doc_id": list(run.tokens), "tokens": list(run.tokens.values())},
            schema={"doc_id": pl.String, "tokens": pl.Int64},
        )
        table = table.drop("tokens", strict=False).join(
            lengths, on="doc_id", how="left", maintain_order="left"
        )
    unknown = table.filter(pl.col("tokens").is_null())
    if unknown.height:
        shown, total = (
            unknown["doc_id"].unique(maintain_order=True).head(10).to_list(),
            unknown["doc_id"].n_unique(),
        )
        raise PolicyError(
            problem_report(
                f"{counted(total, 'returned document has', 'returned documents have')} no token count:",
                [f"document {doc!r}" for doc in shown],
                "A budget counts every document that comes back: give the run a length for each (tokens=, texts=).",
                total=total,
            )
        )
    return table.with_columns(pl.col("tokens").cum_sum().over("query").cast(pl.Int64).alias("tokens_through"))


def _near_repeats(table: pl.DataFrame, texts: dict[str, str] | None) -> pl.DataFrame | None:
    """Rows whose document, or nearly its text, came earlier in the list."""
    if texts is None:
        return None
    shingles = {doc: _shingles(texts.get(doc, doc)) for doc in table["doc_id"].unique().to_list()}
    repeated: list[bool] = []
    above: list[frozenset[str]] = []
    last = -1
    for query, doc in table.select("query", "doc_id").iter_rows():
        if query != last:
            above, last = [], query
        mine = shingles[doc]
        repeated.append(any(len(mine & other) >= NEARLY * len(mine | other) for other in above))
        above.append(mine)
    return table.filter(pl.Series(repeated, dtype=pl.Boolean))


def _shingles(text: str) -> frozenset[str]:
    words = text.lower().split()
    return frozenset(" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2)))


def _repeat_error(repeats: pl.DataFrame) -> PolicyError:
    shown = repeats.select("query_id", "doc_id").head(10).iter_rows()
    return PolicyError(
        problem_report(
            f"{counted(repeats.height, 'document comes', 'documents come')} more than once in a query's list "
            "(duplicates=error):",
            [f"query {query!r}: document {doc!r}" for query, doc in shown],
            "Take the repeats out, or choose duplicates=hold or duplicates=collapse.",
            total=repeats.height,
        )
    )


def _ints(frame: pl.DataFrame, column: str) -> Ints:
    return frame[column].to_numpy().astype(np.int64)
