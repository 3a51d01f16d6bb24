"""The mean over all orders of tied documents, compared with an enumeration of every order."""

from __future__ import annotations

from itertools import chain, groupby, permutations, product
from math import log2

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Ordering
from steelyard.errors import MeasureError
from steelyard.measures.compute import values
from steelyard.measures.grammar import parse
from steelyard.measures.registry import definitions

Judgment = tuple[str, float, "str | None"]

EVERYWHERE = """
    P; P(rel=2); P(denominator=retrieved); R; R(cap=True); R(per=target); R(per=target, cap=True)
    F; F(beta=2, denominator=retrieved); F(per=target); F(per=target, cap=True, denominator=retrieved)
    Hit; Hit(rel=0.5); RR; RR(rel=0.5); RR(per=target)
    AP; AP(denominator=min); AP(denominator=found); AP(per=target); AP(per=target, denominator=found)
    DCG; DCG(gain=exp, discount=reciprocal); DCG(rel=1)
    nDCG; nDCG(gain=exp); nDCG(gain={0: -1, 1: 3}); nDCG(ideal=retrieved); nDCG(per=target); nDCG(ideal=all)
    nDCG(ideal=found); nDCG(ideal=found, gain={0: -1, 1: 3}); nDCG(ideal=found, discount=reciprocal, rel=1)
    DR; StRecall; Diversity; AllTargets; AP_IA; P_IA; NumRelRet; Found; Judged; Unjudged; Unjudged(denominator=k)
    Confusion; Confusion(denominator=distractors); RBP; RBP(gain=linear, p=0.5); RBPResidual
"""
MEASURES = [
    parse(f"{name}{at}")
    for name in EVERYWHERE.strip().replace("\n", ";").split(";")
    for at in ("", "@1", "@2", "@3", "@4")
]
MEASURES.append(parse("Composite(weights={nDCG@3: 0.5, AP(denominator=found)@2: 0.3, Confusion@2: 0.2})"))


def judgments(lists: dict[str, list[Judgment]]) -> sy.Qrels:
    rows = [(query, *judgment) for query, judged in lists.items() for judgment in judged]
    frame = pl.DataFrame(
        rows,
        schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64, "target": pl.String},
        orient="row",
    )
    return sy.Qrels(frame)


def table(qrels: sy.Qrels, run: sy.Run, expected: bool = False) -> np.ndarray:
    """One row a measure, one column a query."""
    a = align(qrels, run, Ordering(ties="expected" if expected else "docid-desc")).alignment
    return np.array([values(measure, a, expected) for measure in MEASURES])


def orders(scores: dict[str, float]) -> list[list[str]]:
    """Every order of a list in which documents of equal score may stand."""
    best_first = sorted(scores, key=lambda doc: -scores[doc])
    groups = [list(permutations(group)) for _, group in groupby(best_first, key=lambda doc: scores[doc])]
    return [list(chain.from_iterable(order)) for order in product(*groups)]


@st.composite
def tied_lists(draw: st.DrawFn) -> tuple[list[Judgment], dict[str, float]]:
    docs = [f"d{number}" for number in range(draw(st.integers(1, 6)))]
    scores = {doc: float(draw(st.integers(1, 3))) for doc in docs}
    grades = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
    judged: list[Judgment] = []
    for doc in [*docs, "elsewhere"]:
        about = draw(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=2, unique=True))
        judged += [(doc, draw(grades), target) for target in about]
    return judged or [("elsewhere", 1.0, None)], scores


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(tied_lists())
def test_it_is_the_mean_over_every_order(case: tuple[list[Judgment], dict[str, float]]) -> None:
    judged, scores = case
    listed = orders(scores)
    one_by_one = table(
        judgments({str(number): judged for number in range(len(listed))}),
        sy.Run({str(number): order for number, order in enumerate(listed)}),
    )
    at_once = table(judgments({"q": judged}), sy.Run({"q": scores}), expected=True)
    for measure, many, mean in zip(MEASURES, one_by_one, at_once, strict=True):
        assert mean[0] == pytest.approx(many.mean(), abs=1e-12), measure


@settings(max_examples=30, deadline=None, derandomize=True)
@given(tied_lists())
def test_without_ties_it_is_the_measure(case: tuple[list[Judgment], dict[str, float]]) -> None:
    judged, scores = case
    apart = sy.Run({"q": {doc: score + number / 10 for number, (doc, score) in enumerate(scores.items())}})
    qrels = judgments({"q": judged})
    np.testing.assert_allclose(table(qrels, apart, expected=True), table(qrels, apart), atol=1e-14, rtol=0)


def test_one_relevant_document_among_three_tied() -> None:
    means = sy.evaluate(
        {"q": ["a"]}, {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, ["RR", "AP", "P@1", "Hit@2", "nDCG"], ties="expected"
    ).means
    assert means["RR"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert means["AP"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert means["P@1"] == pytest.approx(1 / 3)
    assert means["Hit@2"] == pytest.approx(2 / 3)
    assert means["nDCG"] == pytest.approx((1 + 1 / log2(3) + 1 / 2) / 3)


def test_a_large_group_needs_no_count_of_its_orders() -> None:
    run = {"q": {f"d{number:04d}": 1.0 for number in range(2000)}}
    means = sy.evaluate({"q": ["d0007", "d1999"]}, run, ["P@10", "Hit@10", "RR", "AP@10"], ties="expected").means
    assert means["P@10"] == pytest.approx(2 / 2000)
    assert means["Hit@10"] == pytest.approx(1 - 1990 * 1989 / (2000 * 1999))
    first = [2 * (2000 - rank) / (2000 * 1999) / rank for rank in range(1, 2000)]
    assert means["RR"] == pytest.approx(sum(first))
    at_rank = [(1 + (rank - 1) / 1999) / rank / 1000 for rank in range(1, 11)]
    assert means["AP@10"] == pytest.approx(sum(at_rank) / 2)


def test_groups_of_several_queries_are_kept_apart() -> None:
    qrels = {"one": ["a"], "two": ["a"], "none": ["z"], "missing": ["a"]}
    run = {"one": {"a": 1.0, "b": 1.0}, "two": {"b": 3.0, "a": 2.0, "c": 2.0}, "none": {"a": 1.0, "b": 1.0}}
    assert sy.evaluate(qrels, run, "RR", ties="expected").per_query["RR"].to_list() == pytest.approx(
        [3 / 4, (1 / 2 + 1 / 3) / 2, 0, 0]
    )


def test_a_repeated_document_in_a_group_keeps_a_rank_and_adds_nothing() -> None:
    frame = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "a", "b"], "score": [1.0, 1.0, 1.0]})
    means = sy.evaluate({"q": ["a"]}, sy.Run(frame), ["P@1", "R@3"], ties="expected").means
    assert means == pytest.approx({"P@1": 1 / 3, "R@3": 1.0})


def test_a_run_that_carries_its_order_has_no_ties() -> None:
    run = sy.Run({"q": [("a", 1.0), ("b", 1.0)]})
    assert sy.evaluate({"q": ["b"]}, run, "RR", ties="expected").means == {"RR": 0.5}


def test_a_budget_among_tied_documents_is_refused() -> None:
    tokens = {"a": 10, "b": 10}
    tied = sy.Run({"q": {"a": 1.0, "b": 1.0}}, tokens=tokens)
    for measure in ("R(budget=10)", "Hit(budget=10)"):
        with pytest.raises(MeasureError, match="'q' has a relevant document that ties"):
            sy.evaluate({"q": ["a"]}, tied, measure, ties="expected")
        apart = sy.Run({"q": {"a": 1.0, "b": 2.0}}, tokens=tokens)
        assert sy.evaluate({"q": ["b"]}, apart, measure, ties="expected").means[measure] == 1.0


def test_too_many_contents_are_refused_and_many_simple_ones_are_not() -> None:
    chained = [(f"d{number}", 1.0, f"t{need}") for number in range(40) for need in (number, number + 1)]
    run = sy.Run({"q": {f"d{number}": 1.0 for number in range(40)}})
    with pytest.raises(MeasureError, match="too many different ways"):
        sy.evaluate(judgments({"q": chained}), run, "AllTargets@20", ties="expected")
    graded = {f"d{number}": number / 2 for number in range(40)}
    with pytest.raises(MeasureError, match="too many different ways"):
        sy.evaluate({"q": graded}, run, "nDCG(ideal=found)@20", ties="expected")
    flat = {"q": [f"d{number}" for number in range(20)]}
    means = sy.evaluate(flat, run, ["F(per=target)@20", "F@20"], ties="expected").means
    assert means["F(per=target)@20"] == pytest.approx(means["F@20"])


def test_measures_without_a_mean_are_refused() -> None:
    with pytest.raises(MeasureError, match="ties=expected is not defined for ERR"):
        sy.evaluate({"q": ["a"]}, {"q": {"a": 1.0}}, "ERR", ties="expected")


def test_every_mean_takes_the_parameters_of_its_measure() -> None:
    from inspect import signature

    for definition in definitions().values():
        if callable(definition.expected):
            own, mean = signature(definition.function).parameters, signature(definition.expected).parameters
            assert list(own) == list(mean), definition.name
            defaults = {p.name: p.default for p in mean.values() if p.default is not p.empty}
            assert defaults.items() <= {p.name: p.default for p in own.values()}.items(), definition.name
