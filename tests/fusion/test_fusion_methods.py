"""Every method and normalisation: numbers computed by hand, a plain reference, and general properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_fusion import fused as plainly_fused

from steelyard.errors import InputError
from steelyard.fusion.fuse import METHODS, NORMS, fuse_lists, method_named

A = [("x", 10.0), ("y", 6.0), ("z", 2.0)]
B = [("y", 0.9), ("w", 0.5), ("x", 0.1)]
SCORED = [name for name, method in METHODS.items() if method.reads == "scores"]
RANKED = [name for name, method in METHODS.items() if method.reads == "ranks"]

# min-max: A gives x 1, y 0.5, z 0; B gives y 1, w 0.5, x 0. Ranks: A x1 y2 z3; B y1 w2 x3. Four candidates.
BY_HAND = {
    "rrf": {"y": 1 / 62 + 1 / 61, "x": 1 / 61 + 1 / 63, "w": 1 / 62, "z": 1 / 63},
    "combsum": {"y": 1.5, "x": 1.0, "w": 0.5, "z": 0.0},
    "wsum": {"y": 1.5, "x": 1.0, "w": 0.5, "z": 0.0},
    "combmnz": {"y": 3.0, "x": 2.0, "w": 0.5, "z": 0.0},
    "combanz": {"y": 0.75, "x": 0.5, "w": 0.5, "z": 0.0},
    "combmax": {"y": 1.0, "x": 1.0, "w": 0.5, "z": 0.0},
    "combmin": {"y": 0.5, "x": 0.0, "w": 0.5, "z": 0.0},
    "combmed": {"y": 0.75, "x": 0.5, "w": 0.5, "z": 0.0},
    "borda": {"y": 3 + 4, "x": 4 + 2, "w": 1 + 3, "z": 2 + 1},
    "isr": {"y": 2 * (1 / 4 + 1), "x": 2 * (1 + 1 / 9), "w": 1 / 4, "z": 1 / 9},
    "logn-isr": {
        "y": math.log(2.01) * 1.25,
        "x": math.log(2.01) * 10 / 9,
        "w": math.log(1.01) / 4,
        "z": math.log(1.01) / 9,
    },
    "rbc": {"y": 0.2 * (0.8 + 1), "x": 0.2 * (1 + 0.64), "w": 0.2 * 0.8, "z": 0.2 * 0.64},
    # y ties with x and beats w and z; x beats z and ties with w; w and z tie: each list has one of them.
    "condorcet": {"y": 2.5, "x": 2.0, "w": 1.0, "z": 0.5},
}


@pytest.mark.parametrize("method", METHODS)
def test_by_hand(method):
    found = fuse_lists([A, B], method)
    assert dict(found) == pytest.approx(BY_HAND[method], abs=1e-15)
    assert found == sorted(sorted(found, reverse=True), key=lambda pair: -pair[1])


@pytest.mark.parametrize(
    ("norm", "of_a"),
    [
        ("min-max", {"x": 1.0, "y": 0.5, "z": 0.0}),
        ("max", {"x": 1.0, "y": 0.6, "z": 0.2}),
        ("sum", {"x": 8 / 12, "y": 4 / 12, "z": 0.0}),
        ("z", {"x": math.sqrt(1.5), "y": 0.0, "z": -math.sqrt(1.5)}),
        ("rank", {"x": 1.0, "y": 2 / 3, "z": 1 / 3}),
        ("none", {"x": 10.0, "y": 6.0, "z": 2.0}),
    ],
)
def test_normalisations_by_hand(norm, of_a):
    assert dict(fuse_lists([A, []], "combsum", norm)) == pytest.approx(of_a)


@pytest.mark.parametrize(("norm", "each"), [("min-max", 1.0), ("max", 1.0), ("sum", 0.5), ("z", 0.0), ("none", 3.0)])
def test_lists_with_equal_scores_have_a_defined_value(norm, each):
    assert fuse_lists([[("a", 3.0), ("b", 3.0)], []], "combsum", norm) == [("b", each), ("a", each)]


def test_scores_that_are_all_0_stay_0_under_max():
    assert fuse_lists([[("a", 0.0)], []], "combsum", "max") == [("a", 0.0)]


def test_weights():
    assert dict(fuse_lists([A, B], "wsum", weights=[0.75, 0.25])) == {"x": 0.75, "y": 0.625, "w": 0.125, "z": 0.0}
    assert dict(fuse_lists([A, B], "rrf", weights=[2, 1], k=0))["y"] == 2 / 2 + 1 / 1
    assert dict(fuse_lists([A, B], "borda", weights=[2, 1]))["w"] == 2 * 1 + 3
    assert [doc for doc, _ in fuse_lists([A, B], "condorcet", weights=[2, 1])][:3] == ["x", "y", "z"]


def test_a_list_of_weight_0_is_not_used():
    for method in ("rrf", "wsum", "borda", "isr", "rbc", "condorcet"):
        assert fuse_lists([A, B], method, weights=[1, 0]) == fuse_lists([A], method)


def test_a_condorcet_cycle_is_a_tie():
    """Three lists in a cycle: every document beats one other and all have the same points."""
    lists = [
        [("a", 3.0), ("b", 2.0), ("c", 1.0)],
        [("b", 3.0), ("c", 2.0), ("a", 1.0)],
        [("c", 3.0), ("a", 2.0), ("b", 1.0)],
    ]
    assert fuse_lists(lists, "condorcet") == [("c", 1.0), ("b", 1.0), ("a", 1.0)]


def test_ties_are_not_decided_by_rounding():
    """0.1 + 0.2 is not 0.3 in floating point, but the votes are tied."""
    lists = [[("a", 1.0), ("b", 0.0)], [("a", 1.0), ("b", 0.0)], [("b", 1.0), ("a", 0.0)]]
    assert fuse_lists(lists, "condorcet", weights=[0.1, 0.2, 0.3]) == [("b", 0.5), ("a", 0.5)]


def test_repeats_count_once():
    again = [("x", 10.0), ("x", 9.0), ("y", 6.0), ("z", 2.0)]
    assert fuse_lists([again, B], "rrf") == fuse_lists([A, B], "rrf")


def test_nothing_to_fuse():
    assert fuse_lists([[], []], "combsum") == []
    assert fuse_lists([A, []], "rrf") == [("x", 1 / 61), ("y", 1 / 62), ("z", 1 / 63)]


# Against a plain reference, on lists of whole-number scores: many ties, few documents.


def _ranked(found):
    return sorted(sorted(found.items(), reverse=True), key=lambda pair: -pair[1])


a_list = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 9).map(float), max_size=8).map(_ranked)
some_lists = st.lists(a_list, min_size=2, max_size=4)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_every_method_equals_the_plain_reference(method, data):
    lists = data.draw(some_lists)
    norm = data.draw(st.sampled_from(list(NORMS))) if method in SCORED else "none"
    weights = None
    if METHODS[method].weighted:
        weights = data.draw(
            st.none() | st.lists(st.integers(0, 3), min_size=len(lists), max_size=len(lists)).filter(any)
        )
    found = dict(fuse_lists(lists, method, norm if method in SCORED else None, weights))
    assert found == pytest.approx(plainly_fused(lists, method, norm, weights), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@given(lists=some_lists, data=st.data())
@settings(deadline=None, max_examples=30)
def test_the_order_of_the_lists_does_not_matter_to_the_last_bit(method, lists, data):
    order = data.draw(st.permutations(range(len(lists))))
    weights = None
    if METHODS[method].weighted:
        weights = data.draw(st.lists(st.floats(0.1, 1), min_size=len(lists), max_size=len(lists)))
    moved = fuse_lists([lists[i] for i in order], method, weights=weights and [weights[i] for i in order])
    assert moved == fuse_lists(lists, method, weights=weights)


@pytest.mark.parametrize("method", METHODS)
@given(listed=a_list, times=st.integers(2, 4))
@settings(deadline=None, max_examples=30)
def test_a_list_fused_with_itself_keeps_its_order(method, listed, times):
    kept = [doc for doc, _ in fuse_lists([listed] * times, method)]
    assert kept == [doc for doc, _ in listed]


@pytest.mark.parametrize("method", RANKED)
@given(lists=some_lists, data=st.data())
@settings(deadline=None, max_examples=40)
def test_a_higher_rank_in_a_list_never_lowers_the_fused_rank(method, lists, data):
    column = data.draw(st.integers(0, len(lists) - 1))
    if len(lists[column]) < 2:
        return
    place = data.draw(st.integers(1, len(lists[column]) - 1))
    better = [list(listed) for listed in lists]
    better[column][place - 1 : place + 1] = reversed(better[column][place - 1 : place + 1])
    doc = lists[column][place][0]
    before = [found for found, _ in fuse_lists(lists, method)].index(doc)
    assert [found for found, _ in fuse_lists(better, method)].index(doc) <= before


@pytest.mark.parametrize("method", METHODS)
@given(lists=some_lists)
@settings(deadline=None, max_examples=40)
def test_a_document_that_is_higher_in_every_list_is_higher_in_the_fusion(method, lists):
    """For two documents that are in all lists, one with the higher score in each."""
    found = dict(fuse_lists(lists, method))
    scores = [dict(listed) for listed in lists]
    everywhere = [doc for doc in found if all(doc in score for score in scores)]
    for one in everywhere:
        for other in everywhere:
            if all(score[one] > score[other] for score in scores):
                assert found[one] > found[other]


@pytest.mark.parametrize("norm", ["min-max", "sum", "z"])
@given(lists=some_lists)
@settings(deadline=None, max_examples=30)
def test_a_retrievers_scale_does_not_matter(norm, lists):
    scaled = [[(doc, 8 * score - 16) for doc, score in lists[0]], *lists[1:]]
    expected = dict(fuse_lists(lists, "combsum", norm))
    assert dict(fuse_lists(scaled, "combsum", norm)) == pytest.approx(expected, abs=1e-12)


# Errors.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "rff"}, "Did you mean rrf"),
        ({"method": "combsun"}, "Did you mean combsum"),
        ({"method": "combsum", "norm": "min-mx"}, "Did you mean min-max"),
        ({"method": "rrf", "norm": "z"}, "uses ranks, not scores"),
        ({"method": "rrf", "kk": 3}, "Did you mean k"),
        ({"method": "combsum", "k": 3}, "it takes none"),
        ({"method": "rrf", "k": -1}, "a number, 0 or more"),
        ({"method": "rrf", "k": float("inf")}, "a number, 0 or more"),
        ({"method": "rrf", "k": True}, "k is True"),
        ({"method": "rbc", "phi": 1}, "from 0 to below 1"),
        ({"method": "logn-isr", "sigma": 1.5}, "from 0 to 1"),
        ({"method": "wsum", "weights": [1]}, "1 weight for 2 runs"),
        ({"method": "wsum", "weights": [1, 2, 3]}, "3 weights for 2 runs"),
        ({"method": "wsum", "weights": [1, -2]}, "none below 0"),
        ({"method": "wsum", "weights": [1, float("nan")]}, "finite"),
        ({"method": "wsum", "weights": [0, 0]}, "all weights are 0"),
        ({"method": "wsum", "weights": ["a", "b"]}, "one number per run"),
        ({"method": "combmnz", "weights": [1, 1]}, "combmnz takes no weights; these do: rrf, wsum"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        fuse_lists([A, B], **settings)


def test_max_needs_a_positive_score():
    with pytest.raises(InputError, match="-2 in a list of run 2 .*min-max, z or rank"):
        fuse_lists([A, [("a", -2.0), ("b", -3.0)]], "combsum", "max")


def test_names_of_other_tools():
    assert [method_named(name).name for name in ("CombMNZ", "mnz", "bordafuse", "weighted_sum", "RRF")] == [
        "combmnz", "combmnz", "borda", "wsum", "rrf",
    ]  # fmt: skip
    assert fuse_lists([A, B], "sum", "zmuv") == fuse_lists([A, B], "combsum", "z")
