"""Measures over subtopics: by hand, by a plain implementation of their definitions, and as in ndeval."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import import_peer
from steelyard.errors import MeasureError

Needs = dict[str, set[str]]
"""Which targets each judged document satisfies."""


def judgments(queries: dict[str, Needs]) -> sy.Qrels:
    rows = [(query, doc, 1, need) for query, held in queries.items() for doc in held for need in sorted(held[doc])]
    rows += [(query, doc, 0, "none") for query, held in queries.items() for doc in held if not held[doc]]
    return sy.Qrels(pl.DataFrame(rows, schema=["query_id", "doc_id", "grade", "target"], orient="row"))


def value(held: Needs, listed: list[str], measure: str) -> float:
    return float(sy.evaluate(judgments({"q": held}), {"q": listed}, measure)[measure])


HELD: Needs = {"a": {"x", "y"}, "b": {"x"}, "c": {"z"}, "d": {"x", "y"}, "n": set()}
LISTED = ["b", "n", "a", "unjudged", "c"]
# Gains of the list at alpha 0.5: 1 (x), 0, 0.5 + 1 (x again, y), 0, 1 (z).
# The ideal list: d and a gain 2 at first; after either, the other gains 1, and c gains 1.


class TestByHand:
    def test_alpha_dcg(self) -> None:
        gained = 1 + 1.5 / log2(4) + 1 / log2(6)
        best = sum(3 * 0.5**rank / log2(rank + 2) for rank in range(5))
        assert value(HELD, LISTED, "alpha_DCG@5") == pytest.approx(gained / best)
        assert value(HELD, LISTED, "alpha_DCG@1") == pytest.approx(1 / 3)
        assert value(HELD, LISTED, "alpha_DCG(alpha=0)@5") == pytest.approx(
            (1 + 2 / 2 + 1 / log2(6)) / sum(3 / log2(rank + 2) for rank in range(5))
        )

    def test_alpha_ndcg(self) -> None:
        gained = 1 + 1.5 / log2(4) + 1 / log2(6)
        ideal = 2 + 1 / log2(3) + 1 / log2(4) + 0.25 / log2(5)
        assert value(HELD, LISTED, "alpha_nDCG") == pytest.approx(gained / ideal)
        assert value(HELD, LISTED, "alpha_nDCG@3") == pytest.approx((1 + 0.75) / (2 + 1 / log2(3) + 1 / 2))
        assert value(HELD, LISTED, "alpha_nDCG(alpha=1)@2") == pytest.approx(1 / (2 + 1 / log2(3)))
        assert value(HELD, ["d", "a", "c", "b"], "alpha_nDCG") == pytest.approx(1.0)

    def test_err_ia(self) -> None:
        gained = 1 + 1.5 / 3 + 1 / 5
        assert value(HELD, LISTED, "ERR_IA@5") == pytest.approx(
            gained / sum(3 * 0.5**rank / (rank + 1) for rank in range(5))
        )
        assert value(HELD, LISTED, "nERR_IA@5") == pytest.approx(gained / (2 + 1 / 2 + 1 / 3 + 0.25 / 4))

    def test_nrbp(self) -> None:
        gained = 1 + 1.5 / 4 + 1 / 16
        assert value(HELD, LISTED, "NRBP") == pytest.approx(gained * 0.75 / 3)
        assert value(HELD, LISTED, "nNRBP") == pytest.approx(gained / (2 + 1 / 2 + 1 / 4 + 0.25 / 8))
        assert value(HELD, LISTED, "NRBP(alpha=1, beta=0.8)") == pytest.approx((1 + 0.64 + 0.8**4) / 3)

    def test_averages_over_targets(self) -> None:
        assert value(HELD, LISTED, "P_IA@5") == pytest.approx(4 / (5 * 3))
        assert value(HELD, LISTED, "P_IA") == pytest.approx(4 / (5 * 3))
        assert value(HELD, LISTED, "P_IA@10") == pytest.approx(4 / (10 * 3))
        assert value(HELD, LISTED, "AP_IA") == pytest.approx(((1 + 2 / 3) / 3 + (1 / 3) / 2 + 1 / 5) / 3)
        assert value(HELD, LISTED, "StRecall@2") == pytest.approx(1 / 3)
        assert value(HELD, LISTED, "StRecall@3") == pytest.approx(2 / 3)
        assert value(HELD, LISTED, "StRecall") == 1.0


def test_other_tools_names() -> None:
    names = ["alpha-nDCG@5", "ERR-IA@5", "nERR-IA@5", "alpha-DCG@5", "MAP-IA", "P-IA@5", "strec@5", "α_nDCG@5"]
    assert [str(sy.parse(name)) for name in names] == [
        "alpha_nDCG@5", "ERR_IA@5", "nERR_IA@5", "alpha_DCG@5", "AP_IA", "P_IA@5", "StRecall@5", "alpha_nDCG@5",
    ]  # fmt: skip


def test_grades_below_rel_do_not_satisfy() -> None:
    frame = pl.DataFrame(
        [("q", "a", 2.5, "x"), ("q", "a", 0.5, "y"), ("q", "b", -1.0, "x"), ("q", "b", 1.0, "y")],
        schema=["query_id", "doc_id", "grade", "target"],
        orient="row",
    )
    found = sy.evaluate(frame, {"q": ["a"]}, ["StRecall", "StRecall(rel=2)", "StRecall(rel=0.5)"]).means
    assert found == {"StRecall": 0.5, "StRecall(rel=2)": 1.0, "StRecall(rel=0.5)": 1.0}


def test_flat_judgments_are_a_target_a_document() -> None:
    means = sy.evaluate({"q": {"a": 2, "b": 1, "c": -1}}, {"q": ["c", "b", "a"]}, ["alpha_nDCG", "nDCG(gain=binary)"])
    assert means["alpha_nDCG"] == pytest.approx(means["nDCG(gain=binary)"])


def test_a_greedy_list_can_be_beaten() -> None:
    held: Needs = {"b": {"1", "3"}, "c": {"2", "4"}, "z": {"1", "2"}}
    assert value(held, ["b", "c"], "alpha_nDCG@2") > 1


@pytest.mark.parametrize(
    "measure", ["alpha_DCG@3", "alpha_nDCG", "ERR_IA@3", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"]
)
def test_queries_without_anything_to_find(measure: str) -> None:
    qrels = {"nothing": {"a": 0, "b": -2}, "missing": {"a": 1}, "empty": {"a": 1}}
    run = {"nothing": ["a", "b"], "empty": []}
    assert sy.evaluate(qrels, run, measure).per_query[measure].to_list() == [0.0, 0.0, 0.0]


def test_shares_out_of_range_are_refused() -> None:
    with pytest.raises(MeasureError, match=r"alpha is 1\.5"):
        value(HELD, LISTED, "alpha_nDCG(alpha=1.5)")
    with pytest.raises(MeasureError, match="beta is -1"):
        value(HELD, LISTED, "NRBP(beta=-1)")
    with pytest.raises(MeasureError, match="ERR_IA needs a cutoff"):
        value(HELD, LISTED, "ERR_IA")


# The definitions, read plainly: one document after the other.


def gains(held: Needs, listed: list[str], alpha: float) -> list[float]:
    left = {need: 1.0 for needs in held.values() for need in needs}
    found = []
    for doc in listed:
        needs = held.get(doc, set())
        found.append(sum(left[need] for need in needs))
        for need in needs:
            left[need] *= 1 - alpha
    return found


def greedy(held: Needs, alpha: float) -> list[str]:
    """At each rank what gains most; of equal ones the largest id."""
    chosen: list[str] = []
    while len(chosen) < len(held):
        rest = [doc for doc in held if doc not in chosen]
        chosen.append(max(rest, key=lambda doc: (round(gains(held, [*chosen, doc], alpha)[-1], 12), doc)))
    return chosen


def discounted(found: list[float], discount: Callable[[int], float], k: int | None) -> float:
    return sum(gain * discount(rank) for rank, gain in enumerate(found[:k], start=1))


def plainly(held: Needs, listed: list[str], name: str, k: int, alpha: float, beta: float) -> float:
    targets = len(set().union(*held.values()))
    if not targets:
        return 0.0
    discount: Callable[[int], float] = {
        "DCG": lambda rank: 1 / log2(rank + 1),
        "ERR_IA": lambda rank: 1 / rank,
        "NRBP": lambda rank: beta ** (rank - 1),
    }[name.lstrip("n").removeprefix("alpha_").lstrip("n")]
    deep = None if "NRBP" in name else k
    total = discounted(gains(held, listed, alpha), discount, deep)
    if name in ("alpha_nDCG", "nERR_IA", "nNRBP"):
        return total / discounted(gains(held, greedy(held, alpha), alpha), discount, deep)
    if name == "NRBP":
        return total * (1 - (1 - alpha) * beta) / targets
    return total / discounted([targets * (1 - alpha) ** rank for rank in range(k)], discount, k)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    held=st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from("1234"), max_size=3), min_size=1),
    listed=st.lists(st.sampled_from("abcdefghuv"), unique=True),
    k=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_as_a_plain_reading(held: Needs, listed: list[str], k: int, alpha: float) -> None:
    ascending = dict(sorted(held.items()))
    names = ["alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP"]
    written = [
        f"{name}(alpha={alpha}, beta=0.75)" if "NRBP" in name else f"{name}(alpha={alpha})@{k}" for name in names
    ]
    found = sy.evaluate(judgments({"q": ascending}), {"q": listed}, written).means
    for name, text in zip(names, written, strict=True):
        assert found[text] == pytest.approx(plainly(ascending, listed, name, k, alpha, 0.75), abs=1e-12), text


@pytest.mark.parametrize(
    ("alpha", "beta", "rel"), [(0.5, 0.5, 1), (0.25, 0.8, 1), (0.75, 0.2, 2), (0, 0.5, 1), (1, 0, 1)]
)
def test_as_ndeval(alpha: float, beta: float, rel: int) -> None:
    pyndeval = import_peer("pyndeval")
    rng = np.random.default_rng(5)
    rows, run = [], {}
    docs = [f"d{number:02d}" for number in range(50)]
    for query in map(str, range(20)):
        for doc in sorted(rng.choice(docs, 25, replace=False).tolist()):
            held = np.flatnonzero(rng.random(5) < 0.35).tolist()
            rows += [(query, doc, int(rng.choice([0, 1, 1, 2])), f"t{need}") for need in held]
        listed = rng.permutation(docs)[: int(rng.integers(1, 50))].tolist()
        run[query] = {doc: float(len(listed) - rank) for rank, doc in enumerate(listed)}
    ours = {
        **{f"{name}@{k}": f"{name}(alpha={alpha}, rel={rel})@{k}"
           for name in ("ERR-IA", "nERR-IA", "alpha-DCG", "alpha-nDCG") for k in (1, 2, 5, 20)},
        **{f"{name}@{k}": f"{name}(rel={rel})@{k}" for name in ("P-IA", "strec") for k in (1, 5, 20)},
        **{name: f"{name}(alpha={alpha}, beta={beta}, rel={rel})" for name in ("NRBP", "nNRBP")},
        "MAP-IA": f"MAP-IA(rel={rel})",
    }  # fmt: skip
    judged = [(query, need, doc, grade) for query, doc, grade, need in rows]
    evaluator = pyndeval.RelevanceEvaluator(judged, list(ours), relevance_level=rel, alpha=alpha, beta=beta)
    known = evaluator.evaluate([(query, doc, score) for query in run for doc, score in run[query].items()])
    qrels = sy.Qrels(pl.DataFrame(rows, schema=["query_id", "doc_id", "grade", "target"], orient="row"))
    found = sy.evaluate(qrels, run, list(ours.values())).per_query
    for row in found.iter_rows(named=True):
        targets = len({need for query, _, grade, need in rows if query == row["query_id"] and grade >= rel})
        for name, text in ours.items():
            undivided = targets if name in ("ERR-IA@1", "alpha-DCG@1") else 1
            assert row[text] * undivided == pytest.approx(known[row["query_id"]][name], abs=1e-12), text


def test_the_order_of_the_judgments_does_not_matter():
    """Equal gains of the greedy list go to the largest id, wherever it stands among the judgments."""
    groups = [["b", "a"], ["a", "c"], ["c", "b", "d"]]
    values = {
        sy.evaluate({"q": [list(group) for group in order]}, {"q": ["d", "b", "x", "a"]}, ["alpha_nDCG@4"])[
            "alpha_nDCG@4"
        ]
        for order in (groups, groups[::-1], [group[::-1] for group in groups])
    }
    assert len(values) == 1
