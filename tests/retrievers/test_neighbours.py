"""Nearest neighbours: exact up to 20,000 vectors, approximate above, and what that does to answers."""

from __future__ import annotations

import numpy as np
import pytest

import steelyard as sy
from needs import shared_data
from steelyard.retrievers import Dense, GraphFlow, SwarmRerank
from steelyard.retrievers import graph as neighbours


def clusters(count: int, dimensions: int = 64, seed: int = 0) -> np.ndarray:
    """Vectors of length 1 around one centre per hundred."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((count // 100 + 1, dimensions))
    made = centres[rng.integers(0, len(centres), count)] + 0.7 * rng.standard_normal((count, dimensions))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def shared_part(found: np.ndarray, expected: np.ndarray) -> float:
    pairs = zip(found.tolist(), expected.tolist(), strict=True)
    return float(np.mean([len(set(one) & set(other)) / len(other) for one, other in pairs]))


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 10, 40])
def test_approximate_neighbours_are_nearly_the_exact_ones(k):
    vectors = clusters(3000)
    found = neighbours.approximate(vectors, k)
    assert all(len(set(row)) == k and place not in row for place, row in enumerate(found.tolist()))
    assert shared_part(found, neighbours.exact(vectors, k)) > 0.95
    assert found.tolist() == neighbours.approximate(vectors, k).tolist()


def test_equal_vectors_have_other_vectors_as_neighbours():
    vectors = np.tile(np.array([[1.0, 0.0]], dtype=np.float32), (1000, 1))
    found = neighbours.approximate(vectors, 5)
    assert all(len(set(row)) == 5 and place not in row for place, row in enumerate(found.tolist()))


def test_neighbours_are_exact_up_to_the_limit(monkeypatch):
    vectors = clusters(600)
    monkeypatch.setattr(neighbours, "EXACT_UP_TO", 600)
    assert neighbours.nearest(vectors, 7).tolist() == neighbours.exact(vectors, 7).tolist()
    monkeypatch.setattr(neighbours, "EXACT_UP_TO", 599)
    assert neighbours.nearest(vectors, 7).tolist() == neighbours.approximate(vectors, 7).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("retriever", [GraphFlow, SwarmRerank])
def test_answers_with_approximate_neighbours_are_within_0_005_of_the_exact_ones(retriever, monkeypatch):
    data = sy.Dataset.read(shared_data("scifact"))
    queries = {query: data.queries[query] for query in data.qrels.queries}
    found = []
    for limit in (len(data.corpus), 0):
        monkeypatch.setattr(neighbours, "EXACT_UP_TO", limit)
        index = retriever(graph="neighbours", embedding=Dense(model="lsa")).index(dict(data.corpus))
        lists = index.retrieve(list(queries.values()), k=100)
        found.append(sy.evaluate(data.qrels, dict(zip(queries, lists, strict=True)), ["nDCG@10"]).means["nDCG@10"])
    assert found[0] == pytest.approx(found[1], abs=0.005)
