"""Random: seeded, the same for the same query, and uniform."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.retrievers import Random, RetrieverError

CORPUS = {f"d{i}": "text" for i in range(64)}


def test_the_same_seed_and_query_give_the_same_list() -> None:
    one, other = Random(seed=42).index(CORPUS), Random(seed=42).index(CORPUS)
    assert one.retrieve(["a", "b", "a"], k=10) == other.retrieve(["a", "b", "a"], k=10)
    assert one.retrieve(["a"], k=5)[0] == other.retrieve(["b", "a"], k=10)[1][:5]


def test_seeds_and_queries_give_other_lists() -> None:
    chance = Random(seed=1).index(CORPUS)
    first, second = chance.retrieve(["a", "b"], k=64)
    assert first != second
    assert first != Random(seed=2).index(CORPUS).retrieve(["a"], k=64)[0]
    assert {doc for doc, _ in first} == set(CORPUS)
    assert [score for _, score in first] == sorted((score for _, score in first), reverse=True)


def test_the_expected_recall_at_1_is_one_in_n() -> None:
    answers = Random(seed=7).index(CORPUS).retrieve([f"query {i}" for i in range(6400)], k=1)
    hits = sum(found[0][0] == "d13" for found in answers)
    # 100 expected, with a standard deviation of 10.
    assert 70 <= hits <= 130


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True])
def test_a_bad_seed_is_refused(seed: Any) -> None:
    with pytest.raises(RetrieverError, match="expected a whole number"):
        Random(seed=seed)


def test_any_text_is_a_query() -> None:
    assert len(Random().index(CORPUS).retrieve(["", "\ud800", "𠮷"], k=3)) == 3
