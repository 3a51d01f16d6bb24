"""Measures of user models: numbers computed by hand, by plain implementations and by other tools."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from math import log2
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer, not_on_windows
from steelyard.errors import MeasureError

Grades = dict[str, dict[str, float]]
Scores = dict[str, dict[str, float]]


def value(grades: list[float | None], measure: str, unfound: tuple[float, ...] = ()) -> float:
    """The measure of one list, given the grade at each rank (None: not judged)."""
    docs = [f"d{rank}" for rank in range(len(grades))]
    judged = {doc: grade for doc, grade in zip(docs, grades, strict=True) if grade is not None}
    judged |= {f"unfound{number}": grade for number, grade in enumerate(unfound)}
    return float(sy.evaluate({"q": judged}, {"q": docs}, measure)[measure])


def collection(seed: int, queries: int = 25) -> tuple[Grades, Scores]:
    """Judgments and a run without ties, by chance; some lists short, some documents distractors."""
    rng = np.random.default_rng(seed)
    docs = [f"d{number:02d}" for number in range(60)]
    grades: Grades = {}
    scores: Scores = {}
    for query in map(str, range(1, queries + 1)):
        judged = rng.choice(docs, 25, replace=False).tolist()
        grades[query] = dict(zip(judged, rng.choice([0, 0, 1, 2, 4, -1], 25).tolist(), strict=True))
        length = int(rng.integers(1, 60))
        listed = rng.choice(docs, length, replace=False).tolist()
        scores[query] = dict(zip(listed, (rng.permutation(length) + 1.0).tolist(), strict=True))
    grades["1"]["d00"] = 4
    return grades, scores


class TestERR:
    def test_by_hand(self) -> None:
        by_hand = 7 / 16 + (9 / 16) * (3 / 16) / 2 + (9 / 16) * (13 / 16) * (15 / 16) / 3
        assert by_hand == 0.633056640625
        assert value([3, 2, 4], "ERR") == pytest.approx(by_hand, abs=1e-15)
        assert value([3, 2, 4], "ERR@2") == pytest.approx(7 / 16 + (9 / 16) * (3 / 16) / 2, abs=1e-15)
        assert value([None, 3, -2, 0, 2, 4], "ERR") == pytest.approx(
            7 / 16 / 2 + (9 / 16) * (3 / 16) / 5 + (9 / 16) * (13 / 16) * (15 / 16) / 6, abs=1e-15
        )

    def test_the_ideal_list_has_1_when_normalised(self) -> None:
        ideal = 15 / 16 + (1 / 16) * (7 / 16) / 2 + (1 / 16) * (9 / 16) * (3 / 16) / 3
        assert value([3, 2, 4], "nERR") == pytest.approx(0.633056640625 / ideal, abs=1e-15)
        assert value([4, 3, 2], "nERR@2") == 1.0
        assert value([3], "nERR@1", unfound=(4,)) == pytest.approx(7 / 15, abs=1e-15)

    def test_max_grade(self) -> None:
        assert value([1], "ERR") == 1 / 2
        assert value([1], "ERR(max_grade=4)") == 1 / 16
        assert value([1], "ERR", unfound=(3,)) == 1 / 8
        assert value([5, 1], "ERR(max_grade=1)") == 1 / 2 + 1 / 2 * 1 / 2 / 2
        with pytest.raises(MeasureError, match="max_grade is 0"):
            value([1], "ERR(max_grade=0)")

    def test_scales_of_floats_and_of_a_hundred(self) -> None:
        assert value([0.5], "ERR") == pytest.approx((2**0.5 - 1) / 2**0.5)
        assert value([50, 100, 100], "ERR") == pytest.approx(1 / 2)
        assert value([100, 100], "ERR") == 1.0

    def test_nothing_relevant(self) -> None:
        assert value([0, -3, None], "ERR") == value([0, -3, None], "nERR") == 0.0


class TestRBP:
    def test_by_hand(self) -> None:
        assert value([1, 0, 2, None], "RBP(p=0.5)") == 0.5 * (1 + 0.25)
        assert value([1, 0, 2, None], "RBP(p=0.5)@2") == 0.5
        assert value([1, 0, 2], "RBP(p=0.5, rel=2)") == 0.125
        assert value([1, 0, 2], "RBP(p=0.5, gain=linear)") == 0.5 * (0.5 + 0.25)
        assert value([1, 0, 2], "RBP(p=0.5, gain=linear, rel=2)") == 0.125
        assert value([None, 1], "RBP") == pytest.approx(0.2 * 0.8)
        assert value([1, 1], "RBP(p=0)") == 1.0

    def test_the_residual_is_what_is_not_known(self) -> None:
        assert value([1, None, 0], "RBPResidual(p=0.5)") == 1 - 0.5 - 0.125
        assert value([1, None, 0], "RBPResidual(p=0.5)@1") == 0.5
        assert value([], "RBPResidual", unfound=(1,)) == 1.0

    def test_the_residual_comes_along(self) -> None:
        means = sy.evaluate({"q": ["a"]}, {"q": ["a", "b"]}, ["RBP(p=0.5)@2"]).means
        assert means == {"RBP(p=0.5)@2": 0.5, "RBP(p=0.5)@2 residual": 0.5}

    def test_more_judgments_stay_within_the_residual(self) -> None:
        grades: list[float | None] = [None, 1, None, 0, 1, None]
        low, width = value(grades, "RBP"), value(grades, "RBPResidual")
        for known in (0.0, 1.0):
            full = value([known if grade is None else grade for grade in grades], "RBP")
            assert low <= full <= low + width + 1e-12

    def test_p_is_a_chance_below_1(self) -> None:
        with pytest.raises(MeasureError, match="p is 1"):
            value([1], "RBP(p=1)")


def read_by(continues: Callable[[int, float], float], gains: list[float], ranks: int = 1000) -> float:
    """Gain per document of a reader whose chance of going on depends on the rank and the gain so far."""
    weight, gained, weights, worth = 1.0, 0.0, 0.0, 0.0
    for rank in range(1, ranks + 1):
        gain = gains[rank - 1] if rank <= len(gains) else 0.0
        weights += weight
        worth += weight * gain
        gained += gain
        weight *= continues(rank, gained)
    return worth / weights


LISTS: list[list[float]] = [
    [1, 0, 0, 1],
    [0, 0, 0.5, 0, 1, 0.25],
    [1, 1, 1, 1, 1],
    [0, 0, 0],
    [0] * 600 + [1] + [0] * 600 + [1],
]


class TestReaders:
    @pytest.mark.parametrize("goal", [0.25, 0.5, 1, 2.5])
    @pytest.mark.parametrize("gains", LISTS)
    def test_inst_and_insq_are_what_a_reader_does(self, gains: list[float], goal: float) -> None:
        def inst(rank: int, gained: float) -> float:
            left = goal - gained
            return ((rank + goal + left - 1) / (rank + goal + left)) ** 2

        def insq(rank: int, gained: float) -> float:
            return ((rank + 2 * goal - 1) / (rank + 2 * goal)) ** 2

        assert value([*gains], f"INST(T={goal}, max_rel=1)") == pytest.approx(read_by(inst, gains), abs=1e-12)
        assert value([*gains], f"INSQ(T={goal}, max_rel=1)") == pytest.approx(read_by(insq, gains), abs=1e-12)

    def test_grades_are_scaled(self) -> None:
        scaled = value([0.5, 0, 1], "INST(max_rel=1)")
        assert value([1, -1, 2], "INST") == scaled
        assert value([1, -1, 2], "INST(max_rel=2)") == scaled
        assert value([2, 1, 3], "INST(min_rel=1)") == scaled
        assert value([2, 0, 7], "INST(min_rel=1, max_rel=3)") == scaled
        assert value([1, 1], "INST(min_rel=1)") == 0.0
        with pytest.raises(MeasureError, match="max_rel is 1 and min_rel is 2"):
            value([1], "INST(min_rel=2, max_rel=1)")

    def test_a_player_stops_when_enough_is_gained_or_spent(self) -> None:
        assert value([0, 0.5, 0.5, 1], "BPM@10") == pytest.approx(1 / 3)
        assert value([0, 0.5, 0.5, 1], "BPM(T=2)@10") == pytest.approx(2 / 4)
        assert value([0, 0.5, 0.5, 1], "BPM(T=3)@10") == pytest.approx(2 / 10)
        assert value([0, 0.5, 0.5, 1], "BPM@2") == pytest.approx(0.5 / 2)
        assert value([1, 3, 3, 3], "BPM(T=1.1)@3") == pytest.approx((1 / 3 + 1) / 2)
        assert value([1, 1, 1, 3], "BPM@4") == pytest.approx(1 / 3), "three thirds are one"
        with pytest.raises(MeasureError, match="T is 0"):
            value([1], "BPM(T=0)@3")

    def test_scaled_dcg_wants_k_best_documents(self) -> None:
        whole = 1 + 1 / log2(3) + 1 / 2
        assert value([2, None, 1], "SDCG@3") == pytest.approx((1 + 0.5 / 2) / whole)
        assert value([2, None, 1], "SDCG(max_rel=4)@3") == pytest.approx((0.5 + 0.25 / 2) / whole)
        assert value([1, 1, 1], "SDCG@3") == 1.0


class TestCompat:
    def test_by_hand(self) -> None:
        # Depths 1, 2, 3 share 0, 1 and 1 documents with the ideal list (a, b).
        grades = {"q": {"a": 2, "b": 1}}
        run = {"q": ["x", "a", "y"]}
        means = sy.evaluate(grades, run, ["Compat(p=0.5, normalize=False)", "Compat(p=0.5)"]).means
        overlap, itself = 0.5 / 2 + 0.25 / 3, 1 + 0.5 + 0.25 * 2 / 3
        assert means["Compat(p=0.5, normalize=False)"] == pytest.approx(overlap / 1.75)
        assert means["Compat(p=0.5)"] == pytest.approx(overlap / itself)

    def test_equal_grades_are_ideal_in_any_order(self) -> None:
        grades = {"q": {"a": 1, "b": 1, "c": 1}}
        for order in (["a", "b", "c"], ["c", "a", "b"]):
            assert sy.evaluate(grades, {"q": order}, "Compat").means["Compat"] == pytest.approx(1.0)
        assert sy.evaluate(grades, {"q": ["x", "a"]}, "Compat")["Compat"] < 1

    def test_bounds_of_p(self) -> None:
        assert value([1, 1], "Compat(p=1)") == pytest.approx(1.0)
        with pytest.raises(MeasureError, match="p is 2"):
            value([1], "Compat(p=2)")


class TestAccuracy:
    def test_by_hand(self) -> None:
        # Relevant at ranks 1 and 4, above 3 and 1 of the three others: 4 pairs of 6.
        assert value([1, 0, None, 2, None], "Accuracy") == pytest.approx(4 / 6)
        assert value([1, 0, None, 2, None], "Accuracy(rel=2)") == pytest.approx(1 / 4)
        assert value([1, 0, None, 2, None], "Accuracy@3") == 1.0
        assert value([1, 1], "Accuracy") == 1.0

    def test_lists_without_a_relevant_document_are_left_out(self) -> None:
        scores = sy.evaluate({"a": ["x"], "b": ["x"], "c": ["x"]}, {"a": ["y", "x"], "b": ["y"]}, "Accuracy")
        assert scores.means["Accuracy"] == 0.0
        np.testing.assert_array_equal(scores.per_query["Accuracy"].to_numpy(), [0.0, np.nan, np.nan])


GRADED = ["ERR", "nERR", "RBP", "RBP(gain=linear)", "INST", "INSQ", "BPM@5", "SDCG@5"]
GRADED += ["Compat", "Compat(normalize=False)"]


@pytest.mark.parametrize("measure", GRADED)
def test_queries_without_anything_to_find(measure: str) -> None:
    qrels = {"judged": {"a": 1.5, "b": -1}, "nothing": {"a": 0, "b": -2}, "missing": {"a": 1}, "empty": {"a": 1}}
    run = {"judged": ["b", "a"], "nothing": ["a", "b"], "empty": []}
    found = sy.evaluate(qrels, run, measure).per_query[measure].to_list()
    assert found[0] > 0
    assert found[1:] == [0.0, 0.0, 0.0]
    assert sy.evaluate({"q": {"a": 0}}, {"q": ["a"]}, measure).means[measure] == 0.0


def ir_measures() -> Any:
    import_peer("cwl")
    return import_peer("ir_measures")


def theirs(measure: Any, grades: Grades, scores: Scores) -> dict[str, float]:
    module = ir_measures()
    provider = {"Compat": "compat", "Accuracy": "accuracy", "ERR": "gdeval"}.get(measure.NAME, "cwl_eval")
    logging.getLogger("ir_measures.cwl_eval").setLevel("ERROR")
    return {one.query_id: one.value for one in getattr(module, provider).iter_calc([measure], grades, scores)}


@pytest.mark.parametrize(
    ("ours", "written"),
    [
        ("INST", "INST(max_rel=4)"),
        ("INST(T=2.5)", "INST(T=2.5,max_rel=4)"),
        ("INST(T=0.3)", "INST(T=0.3,max_rel=4)"),
        ("INST(T=3, min_rel=1, max_rel=2)", "INST(T=3.0,min_rel=1,max_rel=2)"),
        ("INSQ(T=2)", "INSQ(T=2.0,max_rel=4)"),
        ("INSQ(max_rel=2)", "INSQ(max_rel=2)"),
        ("BPM@10", "BPM(max_rel=4)@10"),
        ("BPM(T=2.5)@7", "BPM(T=2.5,max_rel=4)@7"),
        ("SDCG@10", "SDCG(max_rel=4)@10"),
        ("SDCG(max_rel=2)@5", "SDCG(max_rel=2)@5"),
        ("RBP", "RBP(rel=1)"),
        ("RBP(p=0.5, rel=2)", "RBP(p=0.5,rel=2)"),
        ("Compat", "Compat"),
        ("Compat(p=0.8, normalize=False)", "Compat(p=0.8,normalize=False)"),
        ("Accuracy(rel=2)", "Accuracy(rel=2)"),
        ("Accuracy(rel=4)@20", "Accuracy(rel=4)@20"),
    ],
)
def test_as_ir_measures(ours: str, written: str) -> None:
    measure = ir_measures().parse_measure(written)
    grades, scores = collection(seed=11)
    known = theirs(measure, grades, scores)
    found = sy.evaluate(grades, scores, ours).per_query
    for query, number in zip(found["query_id"], found[ours], strict=True):
        assert np.isnan(number) if query not in known else number == pytest.approx(known[query], abs=1e-12)


@not_on_windows  # ir_measures hands a temporary file that is still open to Perl
@pytest.mark.skipif(shutil.which("perl") is None, reason="no Perl for gdeval")
@pytest.mark.parametrize("k", [1, 5, 20])
def test_err_as_gdeval(k: int) -> None:
    grades, scores = collection(seed=12)
    known = theirs(ir_measures().parse_measure(f"ERR@{k}"), grades, scores)
    found = sy.evaluate(grades, scores, f"ERR(max_grade=4)@{k}").per_query
    for query, number in zip(found["query_id"], found[f"ERR(max_grade=4)@{k}"], strict=True):
        assert number == pytest.approx(known[query], abs=5.1e-6), "gdeval prints five digits"


def test_quoted_choices_are_read_as_ir_measures_writes_them():
    assert sy.parse("SDCG(dcg='log2')@5") == sy.parse("SDCG@5")
    with pytest.raises(MeasureError, match=r"SDCG\(dcg='log'\): expected log2\."):
        sy.parse("SDCG(dcg='log')@5")


def test_grades_as_gains_have_no_highest_value() -> None:
    qrels = {f"q{n}": {"a": 5, "b": 0} for n in range(8)}
    runs = {
        "best": {query: ["a"] for query in qrels},
        "worst": {query: ["a" if query == "q0" else "b"] for query in qrels},
    }
    measure = "RBP(gain=grade, p=0.1)"
    (pair,) = (row for row in sy.compare(qrels, runs, [measure]).pairs.to_dicts() if row["measure"] == measure)
    assert pair["difference"] == pytest.approx(4.5 * 7 / 8)
    assert pair["low"] < pair["difference"] < pair["high"]
    assert (sy.parse(measure).range, sy.parse("RBP").range) == ((0.0, np.inf), (0.0, 1.0))
    assert "to inf" in str(sy.explain(measure))


def test_a_gain_that_is_too_large_is_refused() -> None:
    with pytest.raises(MeasureError, match=r"2\^1100 is too large"):
        sy.evaluate({"q1": {"a": 1100, "b": 1}, "q2": {"z": 1}}, {"q1": ["a"], "q2": ["z"]}, ["nDCG(gain=exp)@10"])
