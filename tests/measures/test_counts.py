"""Repeats: repeated documents and, if texts are known, nearly repeated texts."""

from __future__ import annotations

import pytest

import steelyard as sy
from steelyard.benchmark.folder import load_result
from steelyard.errors import MeasureError

DOG = "the quick brown fox jumps over the lazy dog and runs away"
TEXTS = {"a": DOG, "b": DOG.upper(), "c": "of this the fox knows nothing at all"}


def repeats(measure: str, texts: dict[str, str] | None) -> float:
    run = sy.Run({"q": ["a", "b", "c", "a"]}, texts=texts)
    return sy.evaluate({"q": ["a"]}, run, measure)[measure]


def test_near_repeats_count_where_there_are_texts():
    assert repeats("Repeats@3", None) == 0
    assert repeats("Repeats@4", None) == 1 / 4
    assert repeats("Repeats@3", TEXTS) == 1 / 3
    assert repeats("Repeats@4", TEXTS) == 2 / 4


def test_near_repeats_can_be_left_out_or_insisted_on():
    assert repeats("Repeats(near=False)@4", TEXTS) == 1 / 4
    assert repeats("Repeats(near=True)@4", TEXTS) == 2 / 4
    with pytest.raises(MeasureError, match="texts"):
        repeats("Repeats(near=True)@4", None)


def test_a_bench_knows_the_texts(tmp_path):
    asked = {
        "dataset": sy.Dataset.of(TEXTS, {"q": "fox"}, {"q": ["a"]}),
        "retrievers": [{"bm25-okapi": {"name": "bm25"}}],
        "measures": ["Repeats@3"],
    }
    result = sy.bench(asked, tmp_path / "out")
    assert result.comparison.leaderboard["Repeats@3"].to_list() == [1 / 3]
    assert load_result(tmp_path / "out").comparison.leaderboard["Repeats@3"].to_list() == [1 / 3]
