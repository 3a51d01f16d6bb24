"""Bounds: equal to the extremes over all gradings where they are exact, around them elsewhere."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from all_gradings import aligned, over_all_gradings, random_case
from test_every_measure import forms, variants

from steelyard.errors import MeasureError
from steelyard.measures import bounds as bounds_module
from steelyard.measures.bounds import Bounds, bounds, judged_share
from steelyard.measures.compute import values
from steelyard.measures.grammar import Measure, parse
from steelyard.measures.gradings import FIXED, grade_levels
from steelyard.measures.registry import definitions

CLOSE = 1e-9
MORE = [
    *("R(cap=True)@2", "R(cap=True, rel=2)@3", "R(per=target)@2", "R(per=target, cap=True)@1", "P(denominator=retrieved)@3"),
    *("F(beta=2)@3", "F(denominator=retrieved)@3", "F(cap=True)@2", "F(per=target)@2", "RR(per=target)@2"),
    *("AP(denominator=min)@3", "AP(denominator=found)@3", "AP(per=target)@3", "AP(rel=2)@4", "AP(rel=0)", "AP(rel=9)"),
    *("nDCG(gain=exp)@3", "nDCG(ideal=all)@2", "nDCG(ideal=retrieved)@3", "nDCG(ideal=found)@3", "nDCG(ideal=found)"),
    *("nDCG(gain={0: 0.5, 1: 2, 2: 0.25})@3", "nDCG(rel=2)@3", "nDCG(discount=reciprocal, gain=binary)@2"),
    *("nDCG(gain={1: -1})@3", "DCG(gain={0: 0.5, 1: 2, 2: 0.25})@3", "DCG(gain={1: -1})@3", "nDCG(per=target)@3"),
    *("RBP(gain=grade)", "RBP(gain=linear, rel=2)@3", "RR(rel=0)", "RR(rel=2)@3", "Hit(rel=3)@2", "Bpref(rel=2)"),
    *("SetF(weight=0.5)", "SetF(weight=-0.5)", "Utility(missed=-1, found=2)", "Utility(found=-1, wrong=2)"),
    *("ERR(max_grade=2)@3", "nERR(max_grade=2)@3", "BPM(T=0.7)@4", "INST(T=2)", "SDCG(min_rel=1)@3", "INSQ(min_rel=-1)"),
    *("alpha_nDCG(alpha=0)@3", "NRBP(alpha=1, beta=1)", "Rprec(rel=2)", "IPrec(rounding=raised)@0.4"),
    *("Counted(of=AP, no_relevant=skip)", "Counted(of=P@3, empty=skip, no_relevant=silent)", "Counted(of=nDCG@2)"),
    *("Counted(of=R@3, known=returned)", "Counted(of=AP, unjudged=remove, rel=2)", "Counted(of=Judged@2)"),
    *("Composite(weights={AP: 1, P@3: 2})", "Abstain(rel=2)"),
    *("Counted(of=R(budget=3)@2)", "Hit(budget=4)@2", "R(budget=4, cap=True)@2", "R(budget=4, rel=0)", "R(budget=2, rel=9)"),
]


def settings() -> list[Measure]:
    """Every measure of the registry with several parameters, but for what the runs here do not carry."""
    everything = [
        m for d in definitions().values() for m in [*forms(d), *variants(d)] if m.parameters.get("near") is not True
    ]
    return list(dict.fromkeys([*everything, *map(parse, MORE)]))


EVERY = settings()
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


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("tried", [True, False], ids=["with enumeration", "without"])
def test_bounds_hold_over_all_gradings(seed: int, tried: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not tried:
        monkeypatch.setattr(bounds_module, "MOST_GRADINGS", 0)
    chance = random.Random(seed)
    scale = SCALES[seed % len(SCALES)]
    judged, (listed,) = random_case(chance, scale, 5 if len(scale) < 4 else 4)
    a = aligned(judged, listed)
    tables = over_all_gradings(EVERY, judged, [listed], grade_levels(a).tolist())
    for row, measure in enumerate(EVERY):
        check(measure, bounds(measure, a), tables, row, (judged, listed))
