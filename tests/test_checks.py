"""The one rule for whole numbers: numpy's count everywhere, booleans and floats nowhere."""

from __future__ import annotations

import json

import numpy as np
import pytest

import steelyard as sy
from steelyard import statistics
from steelyard.checks import is_number, is_whole, number_between, unknown_name, whole_number
from steelyard.chunking import Fixed
from steelyard.comparison.lists import compare_lists
from steelyard.errors import InputError, PolicyError, SteelyardError
from steelyard.retrievers import BM25, Dense, GraphFlow, Hybrid, Random, Rerank, SwarmRerank
from steelyard.retrievers.adapters import Python

CORPUS = {"d1": "red fox", "d2": "grey wolf", "d3": "red deer"}
QRELS = {f"q{n}": ["d1"] for n in range(6)}
RUNS = {
    "one": {query: {"d1": 3.0, "d2": 2.0, "d3": 1.0} for query in QRELS},
    "two": {query: {"d3": 3.0, "d2": 2.0, "d1": 1.0} for query in QRELS},
}
DIFFERENCES = [0.1, 0.3, 0.0, 0.2, 0.1, -0.2]


def by_length(query, texts):
    return [len(text) for text in texts]


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_whole_numbers_of_any_library(value):
    assert is_whole(value, 3)
    assert not is_whole(value, 4)
    assert type(whole_number("k", value)) is int


@pytest.mark.parametrize("value", [3.0, "3", True, None, np.float64(3), np.True_, np.array([3, 4]), [3]])
def test_other_values_are_not_whole_numbers(value):
    assert not is_whole(value, 0)
    with pytest.raises(InputError, match="k is .*; expected a whole number, 0 or more"):
        whole_number("k", value)


def test_numbers_and_names():
    assert all(map(is_number, (3, 0.5, np.float32(0.5), np.int64(3))))
    assert not any(map(is_number, (True, np.True_, "3", None, float("nan"), float("inf"))))
    assert type(number_between("b", np.float32(0.5), 0, 1)) is float
    with pytest.raises(PolicyError, match="b is 2; expected a number from 0 to 1"):
        number_between("b", 2, 0, 1, error=PolicyError)
    assert unknown_name("test", "tt", ["t", "sign"], also=["tt2"]).startswith(
        "unknown test 'tt'; expected one of t, sign. Did you mean"
    )


RETRIEVERS = {
    "random": lambda n: Random(seed=n),
    "bm25": lambda n: BM25(),
    "dense": lambda n: Dense(dimensions=n),
    "hybrid": lambda n: Hybrid(of=["bm25", "random"], depth=n),
    "rerank": lambda n: Rerank("random", by_length, candidates=n),
    "graph-flow": lambda n: GraphFlow(walks=n, steps=n, seeds=n, neighbours=n, seed=n),
    "swarm-rerank": lambda n: SwarmRerank(candidates=n, agents=n, steps=n, neighbours=n, seed=n),
    "python": lambda n: Python(len_of, concurrency=n, version="1"),
}


def len_of(query, k):
    return json.loads(json.dumps([f"d{rank}" for rank in range(k)]))


@pytest.mark.parametrize("name", RETRIEVERS)
def test_retrievers_accept_numpy_integers_in_settings_and_as_k(name):
    plain, numpy = (RETRIEVERS[name](number).index(CORPUS) for number in (2, np.int64(2)))
    assert numpy.retrieve(["fox"], k=np.int64(2)) == plain.retrieve(["fox"], k=2)
    assert json.dumps(numpy.settings()) == json.dumps(plain.settings())
    for wrong in (2.0, True):
        with pytest.raises(SteelyardError, match="expected a whole number of documents, 1 or more"):
            plain.retrieve(["fox"], k=wrong)


CALLS = {
    "evaluate depth": lambda n: sy.evaluate(QRELS, RUNS["one"], ["RR"], depth=n).to_dict(),
    "interval": lambda n: sy.evaluate(QRELS, RUNS["one"], ["RR"]).interval("RR", draws=n, seed=n),
    "compare at": lambda n: sy.compare(QRELS, RUNS, ["P"], at=[n]).to_dict(),
    "compare seed": lambda n: sy.compare(QRELS, RUNS, ["RR"], test="permutation", seed=n, permutations=n).to_dict(),
    "fuse depth": lambda n: sy.fuse(RUNS, depth=n).frame.to_dicts(),
    "tune": lambda n: sy.tune(QRELS, RUNS, folds=n, seed=n, grid={"k": [1, 60]}).to_dict(),
    "chunker": lambda n: Fixed(tokens=n).spans("one two three"),
    "compare lists": lambda n: compare_lists(RUNS, depth=n).to_dict(),
    "permutation": lambda n: statistics.permutation_test(DIFFERENCES, permutations=n, seed=n),
    "bootstrap": lambda n: statistics.bootstrap_test(DIFFERENCES, draws=n, seed=n),
    "mean interval": lambda n: statistics.mean_interval(DIFFERENCES, draws=n, seed=n),
    "tukey": lambda n: statistics.tukey([DIFFERENCES, DIFFERENCES[::-1]], draws=n, seed=n),
    "max-t": lambda n: statistics.max_t(np.random.default_rng(0).random((3, 40)), permutations=n, seed=n),
    "rank intervals": lambda n: statistics.rank_intervals([DIFFERENCES, DIFFERENCES[::-1]], draws=n, seed=n),
    "rank stability": lambda n: statistics.rank_stability([[0.9, 0.2], [0.3, 0.7]], [0.5, 0.5], draws=n, seed=n),
}


@pytest.mark.parametrize("name", CALLS)
def test_seeds_depths_and_counts_accept_numpy_integers_and_nothing_else(name):
    plain, numpy = CALLS[name](2), CALLS[name](np.int64(2))
    assert repr(numpy) == repr(plain)
    for wrong in (2.5, "2", True):
        with pytest.raises(SteelyardError, match=r"is (2\.5|'2'|True); expected a whole number"):
            CALLS[name](wrong)


def test_a_bench_accepts_numpy_integers():
    settings = {"dataset": "demo", "retrievers": ["bm25"], "measures": ["RR@10"]}
    bench = sy.Bench(**settings, depth=np.int64(5), seed=np.int64(1), at=[np.int64(3)])
    assert [type(value) for value in (bench.depth, bench.seed, bench.at[0])] == [int, int, int]
