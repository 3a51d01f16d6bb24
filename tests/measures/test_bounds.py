"""Bounds: equal to the extremes over all gradings where they are exact, around them elsewhere."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from all_gradings import aligned, over_all_gradings, random_case
from test_every_measure import forms, variants

import steelyard as sy
from steelyard.alignment.hits import Repeats
from steelyard.measures import bounds as bounds_module
from steelyard.measures import gradings as gradings_module
from steelyard.measures.bounds import Bounds, bounds, judged_share
from steelyard.measures.compute import summary, values
from steelyard.measures.gradings import grade_levels, unjudged
from steelyard.measures.grammar import Measure, parse
from steelyard.measures.registry import definitions

CLOSE = 1e-9
MORE = [
    *(
        "R(cap=True)@2",
        "R(cap=True, rel=2)@3",
        "R(per=target)@2",
        "R(per=target, cap=True)@1",
        "P(denominator=retrieved)@3",
    ),
    *("F(beta=2)@3", "F(denominator=retrieved)@3", "F(cap=True)@2", "F(per=target)@2", "RR(per=target)@2"),
    *("AP(denominator=min)@3", "AP(denominator=found)@3", "AP(per=target)@3", "AP(rel=2)@4", "AP(rel=0)", "AP(rel=9)"),
    *("nDCG(gain=exp)@3", "nDCG(ideal=all)@2", "nDCG(ideal=retrieved)@3", "nDCG(ideal=found)@3", "nDCG(ideal=found)"),
    *("nDCG(gain={0: 0.5, 1: 2, 2: 0.25})@3", "nDCG(rel=2)@3", "nDCG(discount=reciprocal, gain=binary)@2"),
    *("nDCG(gain={1: -1})@3", "DCG(gain={0: 0.5, 1: 2, 2: 0.25})@3", "DCG(gain={1: -1})@3", "nDCG(per=target)@3"),
    *("RBP(gain=grade)", "RBP(gain=linear, rel=2)@3", "RR(rel=0)", "RR(rel=2)@3", "Hit(rel=3)@2", "Bpref(rel=2)"),
    *("SetF(weight=0.5)", "SetF(weight=-0.5)", "Utility(missed=-1, found=2)", "Utility(found=-1, wrong=2)"),
    *(
        "ERR(max_grade=2)@3",
        "nERR(max_grade=2)@3",
        "BPM(T=0.7)@4",
        "INST(T=2)",
        "SDCG(min_rel=1)@3",
        "INSQ(min_rel=-1)",
    ),
    *("alpha_nDCG(alpha=0)@3", "NRBP(alpha=1, beta=1)", "Rprec(rel=2)", "IPrec(rounding=raised)@0.4"),
    *("Counted(of=AP, no_relevant=skip)", "Counted(of=P@3, empty=skip, no_relevant=silent)", "Counted(of=nDCG@2)"),
    *("Counted(of=R@3, known=returned)", "Counted(of=AP, unjudged=remove, rel=2)", "Counted(of=Judged@2)"),
    *("Composite(weights={AP: 1, P@3: 2})", "Abstain(rel=2)"),
    *(
        "Counted(of=R(budget=3)@2)",
        "Hit(budget=4)@2",
        "R(budget=4, cap=True)@2",
        "R(budget=4, rel=0)",
        "R(budget=2, rel=9)",
    ),
]


def settings() -> list[Measure]:
    """Every measure of the registry with several parameters, but for what the runs here do not carry."""
    everything = [
        m for d in definitions().values() for m in [*forms(d), *variants(d)] if m.parameters.get("near") is not True
    ]
    return list(dict.fromkeys([*everything, *map(parse, MORE)]))


EVERY = settings()
NOT_EXACT = {"INST", "BPM", "Compat", "infAP", "Rndcg", "nDCGRel", "G", "nERR", "Composite", "Counted"}
EXACT = set(definitions()) - NOT_EXACT
"""Measures with exact bounds also where no gradings are tried."""
ODD = {m for m in EVERY if m.parameters.get("budget")} | {parse("nDCG(gain={1: -1})@3"), parse("SetF(weight=-0.5)")}
SCALES: list[list[float]] = [[0, 1], [-1, 0, 1], [0, 1, 2, 3], [-1, 0, 0.5, 2], [0, 0, 3]]


def check(measure: Measure, found: Bounds, tables: list[np.ndarray], row: int, case: Any) -> None:
    """The bounds of every query against the values of all its gradings."""
    for query, table in enumerate(tables):
        known = table[row][~np.isnan(table[row])]
        low, high = found.low[query], found.high[query]
        said = f"{measure}, query {query} of {case}: [{low}, {high}], exact={found.exact[query]}"
        if not len(known):
            assert np.isnan(low) or not found.exact[query], said
            continue
        assert low <= known.min() + CLOSE, f"{said} but {known.min()}"
        assert high >= known.max() - CLOSE, f"{said} but {known.max()}"
        if found.exact[query]:
            assert low == pytest.approx(known.min(), abs=CLOSE), f"{said} but {known.min()}"
            assert high == pytest.approx(known.max(), abs=CLOSE), f"{said} but {known.max()}"
        assert found.undefined[query] or len(known) == table.shape[1], f"{said} but some have no value"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_over_all_gradings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judged, (listed,) = random_case(random.Random(seed), SCALES[seed], 5 if seed < 2 else 4, queries=6)
    a = aligned(judged, listed)
    tables = over_all_gradings(EVERY, judged, [listed], grade_levels(a).tolist())
    for row, measure in enumerate(EVERY):
        monkeypatch.setattr(bounds_module, "MOST_GRADINGS", 0)
        found = bounds(measure, a)
        check(measure, found, tables, row, (judged, listed))
        assert measure.name not in EXACT or measure in ODD or np.all(found.exact), measure
        if not np.all(found.exact):
            monkeypatch.setattr(bounds_module, "MOST_GRADINGS", 4096)
            check(measure, bounds(measure, a), tables, row, (judged, listed))


OFTEN = [
    *(
        "nDCG@1",
        "nDCG@3",
        "nDCG",
        "nDCG(gain=exp)@4",
        "nDCG(ideal=all)@2",
        "nDCG(ideal=retrieved)@5",
        "nDCG(ideal=found)@3",
    ),
    *("AP", "AP@3", "AP(denominator=min)@3", "AP(denominator=found)@4", "R@3", "F@3", "RR@3", "Rprec", "Bpref", "Yaap"),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_longer_lists_with_formulas_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More unjudged documents than the cutoff, inside and below it."""
    monkeypatch.setattr(bounds_module, "MOST_GRADINGS", 0)
    scale, most = [([0, 1], 8), ([-1, 0, 1, 2], 6), ([0, 1, 3], 4)][seed % 3]
    judged, (listed,) = random_case(random.Random(seed), scale, most, queries=10)
    a = aligned(judged, listed)
    measures = list(map(parse, OFTEN))
    tables = over_all_gradings(measures, judged, [listed], grade_levels(a).tolist())
    for row, measure in enumerate(measures):
        found = bounds(measure, a)
        assert np.all(found.exact)
        check(measure, found, tables, row, (judged, listed))


def test_by_hand() -> None:
    a = aligned({"q": {"a": 1, "b": 1}}, {"q": ["x", "a", "y"]})
    for text, low, high in [
        ("P@2", 1 / 2, 1),
        ("RR", 1 / 2, 1),
        ("R@2", 1 / 3, 2 / 3),
        ("AP", (1 / 2) / 2, (1 + 1 + 1) / 4),
        ("Judged@2", 1 / 2, 1 / 2),
    ]:
        found = bounds(parse(text), a)
        assert (found.low[0], found.high[0], found.exact[0]) == (pytest.approx(low), pytest.approx(high), True), text


def test_levels_of_the_qrels() -> None:
    def levels(*grades: float) -> list[float]:
        return grade_levels(aligned({"q": dict(zip("abcdef", grades, strict=False))}, {})).tolist()

    assert levels(0, 1, 3) == [0, 1, 2, 3]
    assert levels(-1, 0) == [0]
    assert levels(0.5, 2) == [0, 0.5, 2]
    assert levels(1000, 7) == [0, 7, 1000]


def test_lists_that_are_cut_condensed_or_without_repeats() -> None:
    judged, listed = {"q": {"a": 1, "b": 1}}, {"q": ["x", "x", "a", "y", "b"]}
    a = aligned(judged, listed)
    nothing = np.array([], dtype=np.int64)
    for lists, documents in [
        (a, [1, 4]),
        (a.cut(3), [1]),
        (a.without_unjudged(), []),
        (replace(a, repeats=Repeats(nothing, nothing, held=False)), [1, 2, 4]),
    ]:
        assert unjudged(lists).ranks[0].tolist() == documents
        found = bounds(parse("P@5"), lists)
        assert found.high[0] - found.low[0] == pytest.approx(len(documents) / 5)


def test_targets_that_have_names_leave_the_range_of_the_measure() -> None:
    a = aligned({"q": [["a", "b"], ["c"]]}, {"q": ["a", "x"]})
    for text in ("R(per=target)", "DR", "StRecall", "RR(per=target)", "F(per=target)", "AP_IA"):
        found = bounds(parse(text), a)
        assert (found.low[0], found.high[0], found.exact[0]) == (0, 1, False), text
    assert bounds(parse("R"), a).exact[0]
    assert aligned_value("R(per=target)", {"q": [["a", "b"], ["c"]]}, {"q": ["a"]}) == (0.5, 0.5)


def aligned_value(text: str, judged: Any, listed: Any) -> tuple[float, float]:
    found = bounds(parse(text), aligned(judged, listed))
    return found.low[0], found.high[0]


def test_parts_of_a_composite_that_no_grading_changes_stay() -> None:
    a = aligned({"q": {"a": 1}}, {"q": ["a", "x"]})
    found = bounds(parse("Composite(weights={P@2: 1, Unjudged@2: 1, Judged@2: 2})"), a)
    assert (found.low[0], found.high[0]) == ((0.5 + 0.5 + 1) / 4, (1 + 0.5 + 1) / 4)
    assert found.exact[0]


@pytest.mark.parametrize("text", ["DCG(gain={1: -2, 2: 3})", "nDCG(gain={1: -2, 2: 3})", "SetF(weight=-0.5)"])
def test_intervals_of_gains_or_weights_below_zero_may_be_below_zero(text: str) -> None:
    judged = {query: {"a": 1, "b": 1, "c": 1, "d": 1, "e": 2} for query in ("q1", "q2", "q3")}
    scores = sy.evaluate(judged, {"q1": ["a"], "q2": ["b"], "q3": ["x", "a"]}, text)
    low, high = scores.interval(text)
    mean = float(np.mean(scores.values(text)))
    assert low < min(0, mean)
    assert high > mean


def test_too_many_gradings_leave_the_range_of_the_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    a = aligned({"q": {"a": 1, "b": 0}}, {"q": ["x", "a", "y", "b", "z"]})
    assert bounds(parse("Bpref"), a).exact[0]
    monkeypatch.setattr(gradings_module, "WORK", 1)
    monkeypatch.setattr(gradings_module, "LEAST_WORK", 1)
    for text in ("Bpref", "Compat", "INST", "infAP"):
        found = bounds(parse(text), a)
        assert (found.low[0], found.high[0], found.exact[0]) == (0, 1, False), text
    assert all(bounds(parse(text), a).exact[0] for text in OFTEN if text != "Bpref")


@pytest.mark.parametrize("text", ["Accuracy@3", "AP", "NumRelRet", "GMAP", "Abstain"])
def test_the_summary_over_all_gradings_of_all_queries(text: str) -> None:
    judged = {"1": {"a": 1}, "2": {"b": 0}, "3": {}, "4": {"c": 0}}
    listed = {"1": ["x", "a", "y"], "2": ["b", "x"], "3": ["u", "v"], "4": []}
    measure, a = parse(text), aligned(judged, listed)
    tables = over_all_gradings([measure], judged, [listed], [0, 1])
    means = [summary(measure, np.array(row)) for row in itertools.product(*(table[0] for table in tables))]
    low, high = bounds(measure, a).summary(measure)
    assert (low, high) == (pytest.approx(np.nanmin(means)), pytest.approx(np.nanmax(means)))


def test_a_highest_value_of_zero_has_no_sign() -> None:
    judged = {"1": {"a": 1, "x": 0}, "2": {"b": 0}}  # A grading of y gives query 2 a value, which is 0.
    ends = bounds(parse("R@1"), aligned(judged, {"1": ["x"], "2": ["b", "y"]}))
    skipped = sy.evaluate(judged, {"1": ["x"], "2": ["b", "y"]}, "R@1", no_relevant="skip")
    assert list(map(str, ends.summary(parse("R@1")))) == ["0.0", "0.0"]
    assert list(map(str, skipped.bounds("R@1"))) == ["0.0", "0.0"]


def test_the_share_that_was_judged() -> None:
    a = aligned({"1": {"a": 1, "b": -1}, "2": {"c": 0}}, {"1": ["a", "x", "x", "b"], "2": []})
    for text, share in [
        ("nDCG@2", 1 / 2),
        ("AP", 2 / 3),
        ("P@3", 1 / 2),
        ("IPrec@0.2", 2 / 3),
        ("Counted(of=P@1)", 1),
        ("Composite(weights={P@1: 1, R@2: 1})", 1 / 2),
        ("Composite(weights={P@1: 1, AP: 1})", 2 / 3),
    ]:
        assert judged_share(parse(text), a).tolist() == [pytest.approx(share), 0], text


def test_a_query_without_unjudged_documents_has_its_value() -> None:
    a = aligned({"q": {"a": 1, "b": 0, "c": 2}, "none": {"a": 1}}, {"q": ["b", "a"]})
    for measure in EVERY:
        found, now = bounds(measure, a), values(measure, a)
        np.testing.assert_array_equal(found.low, now)
        np.testing.assert_array_equal(found.high, now)
        assert np.all(found.exact)


@pytest.mark.parametrize("text", ["P@2", "AP", "nDCG@2", "GMAP", "NumRelRet", "RR(rel=2)"])
def test_queries_that_no_relevant_leaves_out_count_only_if_they_become_relevant(text: str) -> None:
    judged = {"1": {"a": 2, "e": 1}, "2": {"b": 0}, "3": {"c": 0}}
    listed = {"1": ["x", "a", "y"], "2": ["b"], "3": ["c", "z"]}
    scores = sy.evaluate(judged, listed, [text], no_relevant="skip")
    means = []
    for x, y, z in itertools.product(range(3), repeat=3):
        graded = {"1": judged["1"] | {"x": x, "y": y}, "2": judged["2"], "3": judged["3"] | {"z": z}}
        means.append(sy.evaluate(graded, listed, [text], no_relevant="skip")[text])
    low, high = scores.bounds(text)
    assert low <= min(means) + 1e-9
    assert high == pytest.approx(max(means))
    judged_lists = {"1": ["a", "e"], "2": ["b"], "3": ["c"]}
    scores = sy.evaluate(judged, judged_lists, [text], no_relevant="skip")
    assert scores.bounds(text) == (pytest.approx(scores[text]), pytest.approx(scores[text]))
