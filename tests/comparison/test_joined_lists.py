"""Two runs joined by hashes give what a join of their frames gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.comparison import unjudged as joined_lists
from steelyard.comparison.unjudged import JoinedLists, PairedLists, RunLists, SharedUnjudged, count_unjudged, join_lists

QRELS = sy.Qrels({"q1": {"a": 1, "b": 0, "z": 2}, "q2": {"c": 1}, "q3": {"a": -1}, "q4": []})
SIZE = len(QRELS.queries)
documents = st.lists(st.sampled_from("abcdefgh"), max_size=10)
runs = st.dictionaries(st.sampled_from(["q4", "q2", "q1", "q3", "n1"]), documents)


def lists_of(run: dict[str, list[str]]) -> RunLists:
    rows = [(query, doc, rank) for query, docs in run.items() for rank, doc in enumerate(docs, start=1)]
    schema = {"query_id": pl.String, "doc_id": pl.String, "rank": pl.Int64}
    return RunLists.of(pl.DataFrame(rows, schema=schema, orient="row"), QRELS)


def plain(run: dict[str, list[str]]) -> list[tuple[int, str, int]]:
    """By number of the query, with the first rank of every document."""
    return [
        (number, doc, run[query].index(doc) + 1)
        for number, query in enumerate(QRELS.queries)
        for doc in dict.fromkeys(run.get(query, []))
    ]


def same(one: JoinedLists, other: JoinedLists) -> None:
    for name in ("query", "ranks", "grade", "lengths"):
        found, expected = getattr(one.pair, name), getattr(other.pair, name)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    for name in ("query", "rank_a", "rank_b"):
        np.testing.assert_array_equal(getattr(one.shared, name), getattr(other.shared, name))


def join_frames(one: RunLists, two: RunLists, size: int) -> JoinedLists:
    """The documents of two runs by a join of their frames."""
    most = joined_lists.MOST_RANKS
    frames = [lists.frame.with_columns(grade=pl.Series(lists.grade).fill_nan(None)) for lists in (one, two)]
    both = frames[0].join(frames[1], on=["query", "doc_id"], how="full", coalesce=True, suffix="_b")
    both = both.with_columns(grade=pl.coalesce("grade", "grade_b")).sort("query", "rank", "rank_b")
    unjudged_in_both = pl.col("grade").is_null() & pl.col("rank").is_not_null() & pl.col("rank_b").is_not_null()
    both_unjudged = both.filter(unjudged_in_both)
    shared = SharedUnjudged(*(both_unjudged[name].to_numpy() for name in ("query", "rank", "rank_b")))
    first = both.filter((pl.col("rank") <= most) | (pl.col("rank_b") <= most))
    ranks = [first[name].cast(float).fill_null(float("inf")).to_numpy() for name in ("rank", "rank_b")]
    query, grade = first["query"].to_numpy().astype(np.int64), first["grade"].fill_null(float("nan")).to_numpy()
    lengths = np.array([np.bincount(lists.query, minlength=size) for lists in (one, two)])
    return JoinedLists(PairedLists(query, np.array(ranks), grade, lengths), shared)


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, 100])
@settings(max_examples=150, deadline=None)
@given(one=runs, two=runs)
def test_lists_joined_by_hashes_are_those_joined_as_frames(most, one, two):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined_lists, "MOST_RANKS", most)
        a, b = lists_of(one), lists_of(two)
        assert list(zip(a.query.tolist(), a.frame["doc_id"].to_list(), a.rank.tolist(), strict=True)) == plain(one)
        expected = join_frames(a, b, SIZE)
        same(join_lists(a, b, SIZE), expected)
        same(join_lists(replace(a, distinct=False), b, SIZE), expected)
        for depth in (1, 3):
            count = int(np.sum(expected.pair.unjudged & expected.pair.within(depth)))
            assert count_unjudged(a, b, depth) == count
            assert count_unjudged(replace(a, distinct=False), b, depth) == count


@pytest.mark.slow
@given(one=runs, two=runs)
def test_equal_hashes_of_different_documents_are_noticed(one, two):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "steelyard.alignment.scans.row_hashes", lambda docs, query: (docs.hash().to_numpy() % 3).astype(np.uint64)
        )
        a, b = lists_of(one), lists_of(two)
        same(join_lists(a, b, SIZE), join_frames(a, b, SIZE))
        assert list(zip(a.query.tolist(), a.frame["doc_id"].to_list(), a.rank.tolist(), strict=True)) == plain(one)
