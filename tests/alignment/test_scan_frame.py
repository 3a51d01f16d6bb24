"""Runs held as tables give the hits of the reference."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import AVAILABLE, DUPLICATES, TIES, reader_named
from reference import judged_docs, reference_hits

from same_hits import same_hits
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.alignment.scans import scan_frame
from steelyard.errors import PolicyError
from steelyard.run import Run

JUDGED = judged_docs({"q1": ["a", "d1", "é", "\ud800"], "q2": ["x", "d2"], "q3": [], "q4": ["d1"], "q5": ["a"]})
queries = st.sampled_from(["q1", "q2", "q3", "q4", "n1", "n2"])
ids = st.sampled_from(["a", "d1", "d2", "é", "x", "𝄞", "zz", "0", "long" * 30])
scores = st.sampled_from([1.5, 0.0, -0.0, 2.0, -3.0, 0.1, 0.10000000149, 1e300, -1e300, float(2**60)])
rows = st.lists(st.tuples(queries, ids, scores), max_size=40)
orderings = st.builds(Ordering, st.sampled_from(TIES), st.sampled_from(DUPLICATES), st.booleans())


def frame(rows: list[tuple[str, str, float]]) -> pl.DataFrame:
    schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def scan_all(run: Run, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """The hits, which are the same with and without the kernel, and however the columns are held in memory."""
    table = run.table
    cut = table.height // 3
    pieces = Run(run)
    pieces.__dict__["table"] = pl.concat([table[:cut], table[cut:cut], table[cut:]], rechunk=False)
    found = []
    for reader in AVAILABLE:
        with reader_named(reader):
            found += [scan_frame(each, judged, ordering) for each in (run, pieces)]
    assert all(same_hits(each, found[0]) for each in found)
    return found[0]


def unique(rows: list[tuple[str, str, float]]) -> list[tuple[str, str, float]]:
    return list({row[:2]: row for row in rows}.values())


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(rows=rows, ordering=orderings, repeats=st.booleans(), grouped=st.booleans(), falling=st.booleans())
def test_rows_of_any_order(rows, ordering, repeats, grouped, falling):
    if not repeats:
        rows = unique(rows)
    if falling:
        rows = sorted(rows, key=lambda row: -row[2])
    if grouped:
        rows = sorted(rows, key=lambda row: row[0])
    run = Run(frame(rows))
    try:
        expected = reference_hits(rows, JUDGED, ordering)
    except PolicyError:
        with pytest.raises(PolicyError, match="repeated in the list"):
            scan_all(run, JUDGED, ordering)
        return
    assert same_hits(scan_all(run, JUDGED, ordering), expected)


@settings(max_examples=100, deadline=None)
@given(rows=rows, ties=st.sampled_from(TIES), duplicates=st.sampled_from(["hold", "collapse"]))
def test_a_named_rank_column_gives_the_order(rows, ties, duplicates):
    ranks = list(range(len(rows), 0, -1))
    table = frame(rows).with_columns(rank=pl.Series(ranks, dtype=pl.Int64))
    run, ordering = Run(table, rank="rank"), Ordering(ties, duplicates)
    by_rank = [(query, doc, float(-rank)) for (query, doc, _), rank in zip(rows, ranks, strict=True)]
    expected = reference_hits(by_rank, JUDGED, Ordering("stable", duplicates))
    tops = [max((s for q, _, s in rows if q == query), default=np.nan) for query in JUDGED.query_ids]
    expected = Hits(**{**expected.__dict__, "top_score": np.array(tops, dtype=np.float64)})
    assert same_hits(scan_all(run, JUDGED, ordering), expected)


@pytest.mark.slow
@pytest.mark.parametrize("lists", [2, 70, 2000])
@pytest.mark.parametrize("ties", TIES)
def test_a_large_frame_of_ties(ties, lists):
    """Many documents of equal score, unsorted lists, interleaved queries."""
    rng = np.random.default_rng(7)
    # The reference compares every pair of a list.
    count = 4_000 if lists == 2 else 20_000
    table = pl.DataFrame(
        {
            "query_id": [f"q{number}" for number in rng.integers(0, lists, count)],
            "doc_id": [f"d{number}" for number in rng.permutation(count)],
            "score": rng.integers(0, 9, count) / 4,
        }
    )
    docs = {query: part["doc_id"].to_list()[::7] for (query,), part in table.group_by("query_id")}
    judged, ordering = judged_docs(docs), Ordering(ties)
    found = scan_all(Run(table), judged, ordering)
    assert found.tie_size.max() > 3
    assert same_hits(found, reference_hits(table.rows(), judged, ordering))


def test_repeats_in_some_queries():
    rows = [("q1", "a", 3.0), ("q2", "x", 1.0), ("q1", "a", 2.0), ("q2", "d2", 2.0), ("q1", "d1", 1.0)]
    for duplicates in ("hold", "collapse"):
        ordering = Ordering("docid-desc", duplicates)
        assert same_hits(scan_all(Run(frame(rows)), JUDGED, ordering), reference_hits(rows, JUDGED, ordering))


@pytest.mark.parametrize("seed", range(40))
def test_near_repeats_are_those_of_comparing_every_pair(seed: int) -> None:
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(30)]
    base = [draw.choices(words, k=draw.choice([0, 1, 3, 20, 100])) for _ in range(4)]
    texts = {}
    for number in range(25):
        text = list(draw.choice(base))
        for _ in range(draw.choice([0, 0, 1, 1, 2, 3]) if text else 0):
            text[draw.randrange(len(text))] = draw.choice(words)
        texts[f"d{number}"] = " ".join(text[: draw.choice([None, None, len(text) - 1])])
    lists = {f"q{n}": draw.sample(list(texts), 20) for n in range(3)}
    run = Run(lists, texts=texts)
    hits = scan_frame(run, judged_docs({query: ["d1"] for query in lists}), Ordering())
    expected = [
        (place, rank)
        for place, docs in enumerate(lists.values())
        for rank, doc in enumerate(docs, 1)
        if any(nearly(texts[doc], texts[other]) for other in docs[: rank - 1])
    ]
    near = hits.near_repeats
    assert near is not None
    assert list(zip(near.query.tolist(), near.rank.tolist(), strict=True)) == expected


def nearly(one: str, other: str) -> bool:
    """Whether two texts share nine tenths of their sequences of three words."""
    a, b = (
        {tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))}
        for words in (text.split() for text in (one, other))
    )
    return len(a & b) >= 0.9 * len(a | b)
