"""Repeats: repeated documents and, if texts are known, nearly repeated texts."""

from __future__ import annotations

import numpy as np
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


GRADED = {"q1": {"a": 1, "b": 2}, "q2": {"a": 1}, "q3": {"c": 2}}
FOUND = {"q1": ["a", "b"], "q2": ["a", "x"], "q3": ["x", "c"]}


@pytest.mark.parametrize(
    "policies", [{}, {"rel": 2}, {"rel": 2, "no_relevant": "skip"}, {"rel": 2, "ties": "expected"}]
)
def test_a_composite_has_the_level_and_the_policies_of_its_parts(policies):
    composite, nested = "Composite(weights={P@1: 1, RR: 3})", "Composite(weights={Composite(weights={P@1: 2}): 1})"
    scores = sy.evaluate(
        GRADED, FOUND, ["P@1", "RR", composite, nested, "Composite(weights={Judged@1: 1})"], **policies
    )
    assert list(scores.means) == ["P@1", "RR", composite, nested, "Composite(weights={Judged@1: 1})"]
    np.testing.assert_allclose(scores.values(composite), (scores.values("P@1") + 3 * scores.values("RR")) / 4)
    np.testing.assert_allclose(scores.values(nested), scores.values("P@1"))
    assert scores.values("Composite(weights={Judged@1: 1})").tolist() == [1, 1, 0]
    board = sy.compare(GRADED, {"found": FOUND}, "RR", composite={"P@1": 1, "RR": 3}, **policies).leaderboard
    assert scores[composite] == pytest.approx(board["composite"][0])


def test_a_composite_has_the_scale_of_the_qrels_unless_its_parts_state_a_level():
    qrels = sy.Qrels(GRADED)
    qrels.relevant_from = 2.0
    unstated, stated = "Composite(weights={P@1: 1})", "Composite(weights={P(rel=1)@1: 1})"
    assert sy.evaluate(qrels, FOUND, [unstated, stated]).means == pytest.approx({unstated: 0, stated: 2 / 3})
    assert sy.evaluate(GRADED, FOUND, [unstated, stated], rel=2).means == pytest.approx({unstated: 0, stated: 2 / 3})
    labels = sy.evaluate(GRADED, FOUND, [unstated, stated, "P@1"], rel=2).labels
    assert labels[unstated] == "Composite(weights={P(rel=2)@1: 1})"
    assert (labels[stated], labels["P@1"]) == (stated, "P(rel=2)@1")


@pytest.mark.parametrize("measure", ["Repeats", "Repeats@2", "Repeats@9"])
def test_a_list_whose_repeats_are_removed_has_none(measure):
    for found in (["a"] * 4, ["a", "a", "b"], ["b", "a", "b", "a"]):
        assert sy.evaluate({"q": {"a": 1}}, {"q": found}, [measure], duplicates="collapse")[measure] == 0
    texts = dict.fromkeys("ab", "one two three four five six seven") | {"c": "eight nine ten eleven twelve"}
    near = sy.evaluate(
        {"q": {"a": 1}}, sy.Run({"q": ["a", "a", "b", "c"]}, texts=texts), [measure], duplicates="collapse"
    )
    assert near[measure] == pytest.approx(1 / 2 if measure == "Repeats@2" else 1 / 3)
