"""The pool of several runs is the same with and without the kernel."""

from __future__ import annotations

import os
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import needs_kernel
from steelyard.alignment.ranking import ranked_rows
from steelyard.fusion.candidates import CandidatePool, PooledRuns, pool_runs
from steelyard.run import Run

ids = st.sampled_from(["a", "ab", "abcdefgh", "abcdefghi", "abcdefgh-long-id-1", "abcdefgh-long-id-2", "é", "𝄞", "0"])
scores = st.sampled_from([1.5, 0.0, -0.0, 2.0, -3.0, 1e300])
rows = st.lists(st.tuples(st.sampled_from(["q1", "q2", "q3"]), ids, scores), max_size=25)
SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}


@contextmanager
def portable():
    before = os.environ.get("STEELYARD_NATIVE")
    os.environ["STEELYARD_NATIVE"] = "0"
    try:
        yield
    finally:
        del os.environ["STEELYARD_NATIVE"]
        if before is not None:
            os.environ["STEELYARD_NATIVE"] = before


def run_of(made: list[tuple[str, str, float]], grouped: bool, form: str, name: str) -> Run:
    """A run in one of its forms: by score, by its own ranks, ids alone, in two chunks, or with an empty list."""
    if grouped:
        made = sorted(made, key=lambda row: row[0])
    frame = pl.DataFrame(made, schema=SCHEMA, orient="row")
    if form == "chunks":
        frame = pl.concat([frame[:3], frame[3:]], rechunk=False)
    if form == "ranked":
        return Run(frame.with_columns(rank=pl.int_range(pl.len())), name, rank="rank")
    if form == "ids":
        return Run(frame.drop("score"), name)
    if form == "empty":
        frame = pl.concat([frame, pl.DataFrame({"query_id": ["q1", "q9"]})], how="diagonal")
    return Run(frame, name)


forms = st.sampled_from(["scores", "chunks", "ranked", "ids", "empty"])


def documents(pooled: PooledRuns) -> list[str]:
    return pooled.documents(np.arange(pooled.pool.size)).to_list()


def same(one: PooledRuns, other: PooledRuns) -> None:
    assert one.queries == other.queries
    assert documents(one) == documents(other)
    assert one.empty == other.empty
    assert one.notes == other.notes
    assert one.pool.starts.tolist() == other.pool.starts.tolist()
    assert one.pool.rank.tolist() == other.pool.rank.tolist()
    np.testing.assert_array_equal(one.pool.value, other.pool.value)


@pytest.mark.slow
@needs_kernel
@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(rows, forms), min_size=2, max_size=4), st.booleans())
def test_the_kernel_gives_the_same_pool(made, grouped):
    runs = [run_of(each, grouped, form, f"r{n}") for n, (each, form) in enumerate(made)]
    found = pool_runs(runs, scores=False)
    with portable():
        same(found, pool_runs(runs, scores=False))
    if not any(run.table["score"].null_count() for run in runs):
        found = pool_runs(runs, scores=True)
        with portable():
            same(found, pool_runs(runs, scores=True))


@needs_kernel
@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_the_kernel_sorts_candidates_the_same(sizes, data):
    score = np.array(
        data.draw(
            st.lists(
                st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan, -np.inf, np.inf]),
                min_size=sum(sizes),
                max_size=sum(sizes),
            )
        )
    )
    starts = np.cumsum([0, *sizes[:-1]])
    pool = CandidatePool(starts, np.ones((1, len(score)), dtype=np.int64), score[None])
    found = pool.best_first(score)
    with portable():
        assert found.tolist() == pool.best_first(score).tolist()


@settings(max_examples=50, deadline=None)
@given(rows, rows, st.sampled_from([None, 1, 3]))
def test_the_rows_of_a_fused_run_are_in_ranking_order(one, other, depth):
    fused = sy.fuse([run_of(one, True, "scores", "a"), run_of(other, True, "scores", "b")], depth=depth)
    assert fused.frame.equals(ranked_rows(fused.table, ordered=False))
