"""Reading a Run held in a frame by sorting all of it: the readable way, and the reference for the fast one."""

from __future__ import annotations

import numpy as np
import polars as pl

from steelyard.alignment.frame_rows import (
    answered_by,
    documents_of,
    group_begins,
    ints,
    keys_of,
    query_numbers,
)
from steelyard.alignment.hits import Bools, Hits, Ints, JudgedDocs, Ordering
from steelyard.errors import PolicyError, problem_report
from steelyard.runs import Run
from steelyard.wording import counted

NEARLY = 0.9
"""Two texts nearly repeat each other when they share this much of their word 3-grams (Jaccard)."""


def hits_by_sorting(run: Run, table: pl.DataFrame, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """Rank every list, then look up the judged documents. The table has all rows of the run, or those of some queries."""
    size = len(judged.query_ids)
    numbers = pl.Series("query", query_numbers(table, judged))
    table = table.with_columns(numbers).with_row_index("row").filter(pl.col("query") >= 0)
    table = _with_ranks(_in_order(table, ordering, run.ordered))
    top = np.full(size, np.nan)
    best = table.group_by("query").agg(pl.col("score").max())
    top[ints(best, "query")] = best["score"].fill_null(float("nan")).to_numpy()
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
        retrieved=np.bincount(ints(table, "query"), minlength=size).astype(np.int64),
        answered=answered,
        top_score=top,
        query=ints(hits, "query"),
        doc=ints(hits, "doc"),
        rank=ints(hits, "rank"),
        tie_first=ints(hits, "tie_first"),
        tie_size=ints(hits, "tie_size"),
        repeat_query=ints(repeats, "query"),
        repeat_rank=ints(repeats, "rank"),
        run_only_queries=run_only,
        run_only_examples=examples,
        tokens_through=ints(hits, "tokens_through") if "tokens_through" in hits.columns else None,
        near_query=None if near is None else ints(near, "query"),
        near_rank=None if near is None else ints(near, "rank"),
    )


def _split_repeats(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows whose document comes for the first time in its list, and the others.

    Only rows whose key is not alone can be repeats: a few as a rule, and only they are compared.
    """
    alone = ~pl.Series(keys_of(table["doc_id"], ints(table, "query"))).is_duplicated()
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
    query = ints(table, "query")
    first = _first_of_group(query[1:] != query[:-1], len(query))
    return table.with_columns(pl.Series("rank", np.arange(len(query)) - first + 1, dtype=pl.Int64))


def _with_ties(table: pl.DataFrame, ordered: bool) -> pl.DataFrame:
    """The ranks that each row's group of equal scores holds: itself alone where the order is the run's own."""
    rank = ints(table, "rank")
    size = np.ones(len(rank), dtype=np.int64)
    if not ordered and len(rank):
        query, key = ints(table, "query"), table["key"].to_numpy()
        first = _first_of_group((query[1:] != query[:-1]) | (key[1:] != key[:-1]), len(rank))
        rank, size = rank[first], np.bincount(first, minlength=len(first))[first]
    return table.with_columns(pl.Series("tie_first", rank), pl.Series("tie_size", size, dtype=pl.Int64))


def _first_of_group(differs: Bools, length: int) -> Ints:
    """For every row the first row of its group, given where a row differs from the one before it."""
    begins = group_begins(differs, length)
    return np.repeat(begins, np.diff(begins, append=length))


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
