"""The ranking rule: how the documents of a query are ordered under an `Ordering`.

Best score first; documents of equal score by id or in the order of the input; a repeated document counts at
its best rank. The rule is implemented in Python for a table of many lists (`table_order`), and in the kernel
(src/kernel/rank.hpp). Tests hold the two equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.alignment.hits import Bools, Floats, Ints, Ordering
from steelyard.errors import PolicyError, problem_report
from steelyard.lazy import polars as pl
from steelyard.wording import counted


def compared(scores: Floats, ordering: Ordering) -> Floats:
    """Scores as they are compared: rounded to 32 bits where the ordering asks for it."""
    if not ordering.single:
        return scores
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def table_order(query: Ints, docs: pl.Series, scores: Floats | None, ordering: Ordering) -> Ints:
    """The row numbers of many lists: the rows of each query together, best first.

    `query` has a number for each row. Queries keep the order of the table if the rows of each are together, and
    are in ascending order otherwise. Without scores, the rows of a query keep their order. Only what is out of
    order is sorted: most runs are sorted already.
    """
    order = np.arange(len(query))
    heads = query[group_starts(query)]
    # More groups of adjacent rows than different numbers: the rows of some query are not together.
    if len(heads) > int(query.max(initial=-1)) + 1 or len(np.unique(heads)) < len(heads):
        # numpy sorts 16-bit numbers by counting them.
        order = np.argsort(query.astype(np.uint16) if query.max() < 1 << 16 else query, kind="stable")
        query = query[order]
    if scores is None:
        return order
    keys = compared(scores, ordering)[order]
    same_list: Bools = query[1:] == query[:-1]
    group = np.concatenate([[0], np.cumsum(~same_list)])[: len(query)]
    unsorted = np.zeros(len(query) and int(group[-1]) + 1, dtype=np.bool_)
    unsorted[group[1:][same_list & (keys[1:] > keys[:-1])]] = True
    if unsorted.any():
        rows = slice(None) if unsorted.all() else np.flatnonzero(unsorted[group])
        by_score = best_first(group[rows], keys[rows])
        order[rows], keys[rows] = order[rows][by_score], keys[rows][by_score]
    tied = np.concatenate([[False], same_list & (keys[1:] == keys[:-1])])
    if ordering.ties != "stable" and tied.any():
        group = np.cumsum(~tied)
        rows = np.flatnonzero(tied | np.append(tied[1:], False))
        table = pl.DataFrame({"group": group[rows], "doc_id": docs.gather(order[rows]), "row": order[rows]})
        descending = [False, ordering.ties != "docid-asc"]
        order[rows] = table.sort("group", "doc_id", descending=descending, maintain_order=True)["row"].to_numpy()
    return order


def best_first(group: NDArray[Any], keys: Floats) -> Ints:
    """The rows by group and descending key; rows with equal keys stay in order.

    The same as `np.lexsort((-keys, group))`. numpy sorts numbers several times as fast if the sort need not be
    stable, so equal keys are put in order afterwards; and it sorts 16-bit numbers by counting them.
    """
    highest = int(group.max(initial=0))
    small = group.astype(np.uint16) if highest < 1 << 16 else group
    order = np.argsort(-keys)
    if highest:
        order = order[np.argsort(small[order], kind="stable")]
    group, keys = small[order], keys[order]
    tied = np.concatenate([[False], (group[1:] == group[:-1]) & (keys[1:] == keys[:-1])])[: len(order)]
    if tied.any():
        rows = np.flatnonzero(tied | np.append(tied[1:], False))
        order[rows] = order[rows][np.lexsort((order[rows], np.cumsum(~tied)[rows]))]
    return order


def ranked_rows(table: pl.DataFrame, ordered: bool, ordering: Ordering | None = None) -> pl.DataFrame:
    """The rows of a run in ranking order: query_id, doc_id, rank, score and the other columns.

    Queries keep the order of the table. `ordered`: the rows of a query are in ranking order already. Repeats are
    removed under `collapse`. The default is trec_eval's order.
    """
    ordering = ordering or Ordering()
    numbered = table.select("query_id").with_row_index("row")
    first_row = numbered.select(pl.col("row").min().over("query_id").cast(pl.Int64)).to_series().to_numpy()
    rows = table[table_order(first_row, table["doc_id"], None if ordered else table["score"].to_numpy(), ordering)]
    if ordering.duplicates == "collapse":
        rows = rows.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query_id").alias("rank")
    return rows.select("query_id", "doc_id", rank, pl.exclude("query_id", "doc_id", "rank"))


def group_starts(*columns: Ints | Floats) -> Ints:
    """The first row of each group of adjacent rows that have the same values.

    >>> group_starts(np.array([4, 4, 2, 2]), np.array([1, 1, 1, 3])).tolist()
    [0, 2, 3]
    """
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    differs = [column[1:] != column[:-1] for column in columns]
    return np.flatnonzero(np.concatenate([[True], np.logical_or.reduce(differs)]))


def first_of_group(*columns: Ints | Floats) -> Ints:
    """For every row, the first row of its group of adjacent rows that have the same values."""
    starts = group_starts(*columns)
    return np.repeat(starts, np.diff(starts, append=len(columns[0])))


def repeat_error(total: int, query: str, doc: str) -> PolicyError:
    """The error of `duplicates="error"`: how many documents are repeated, and the first of them."""
    count = counted(total, "document is", "documents are")
    headline = f"{count} repeated in the list of a query (duplicates=error):"
    advice = "Remove the repeats, or choose duplicates=hold or duplicates=collapse."
    return PolicyError(problem_report(headline, [f"query {query!r}: document {doc!r}"], advice, total))
