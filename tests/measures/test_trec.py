"""trec_eval's measures and dialects: hand-computed cases, and a comparison with version 9 itself."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.dialects import dialect
from steelyard.errors import MeasureError, PolicyError

Grades = Mapping[str, float]


def value(measure: str, grades: Grades, ranked: list[str]) -> float:
    """One query's value of a measure for a list."""
    return float(sy.evaluate({"q": grades}, {"q": ranked}, measure).values(measure)[0])


ONE = {"a": 1, "b": 1, "c": 1, "d": 1}
LOG3 = math.log2(3)


@pytest.mark.parametrize(
    ("measure", "grades", "ranked", "expected"),
    [
        ("Rprec", {"a": 1, "b": 1, "c": 1}, ["a", "x", "y", "b"], 1 / 3),
        ("Rprec(rel=2)", {"a": 1, "b": 2}, ["a", "b"], 0.0),
        ("RprecMult@2", {"a": 1, "b": 1}, ["x", "a", "y", "b", "z"], 2 / 4),
        # 0.4 x 2 is 0.8, raised to 1.7 and cut to 1 document.
        ("RprecMult@0.4", {"a": 1, "b": 1}, ["a", "x"], 1.0),
        ("RprecMult@2", {"a": 1, "b": 1}, ["a"], 1 / 4),
        # Above b stands one of the two judged non-relevant; c is not found.
        ("Bpref", {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}, ["a", "x", "b", "u", "y"], (1 + 1 / 2) / 3),
        # No more than R non-relevant documents count.
        ("Bpref", {"a": 1, "x": 0, "y": 0, "z": 0}, ["x", "y", "a"], 0.0),
        # Neither unjudged nor pooled documents count.
        ("Bpref", {"a": 1, "x": 0, "p": -1}, ["u", "p", "a", "x"], 1.0),
        # Relevant at ranks 1, 3 and 6 of 4: precision 1, 2/3, 1/2.
        ("IPrec@0", ONE, ["a", "x", "b", "y", "z", "c"], 1.0),
        ("IPrec@0.5", ONE, ["a", "x", "b", "y", "z", "c"], 2 / 3),
        ("IPrec@0.6", ONE, ["a", "x", "b", "y", "z", "c"], 2 / 3),
        ("IPrec(rounding=raised)@0.6", ONE, ["a", "x", "b", "y", "z", "c"], 1 / 2),
        ("IPrec@1", ONE, ["a", "x", "b", "y", "z", "c"], 0.0),
        # A half rounds up: 0.5 x 5 is 3 documents.
        ("IPrec@0.5", {**ONE, "e": 1}, ["a", "x", "b", "y", "z", "c"], 1 / 2),
        # The best precision further down counts.
        ("IPrec@0.5", {"a": 1, "b": 1}, ["x", "a", "b"], 2 / 3),
        ("IPrecAvg(points=[0.25,0.5,0.75])", ONE, ["a", "x", "b", "y", "z", "c"], (1 + 2 / 3 + 1 / 2) / 3),
        ("IPrecAvg", {"a": 1}, ["x", "a"], 0.5),
        # Rank 4, one judged non-relevant and one pooled above it.
        ("infAP", {"a": 1, "b": 1, "n": 0, "p": -1}, ["n", "p", "u", "a"], (1 / 4 + 2 / 4 * 1e-5 / (1 + 2e-5)) / 2),
        ("infAP", {"a": 1}, ["a"], 1.0),
        ("Yaap", {"a": 1, "b": 1}, ["a", "x"], math.log(2 / 2)),
        ("Yaap", {"a": 1, "b": 1}, [], math.log(1 / 3)),
        ("BinG", {"a": 1, "b": 1}, ["x", "a"], 1 / LOG3 / 2),
        # The ideal costs 2 and then 1 more; b has got 1 of 2, a 3 of 3.
        ("G", {"a": 2, "b": 1}, ["b", "a"], (1 / LOG3 + 2) / 3),
        # A rank past the ideal list costs 1.
        ("G", {"a": 2}, ["x", "a"], 2 / math.log2(2 + 3 - 2) / 2),
        # nDCG@1 and nDCG@2; with two documents more, the whole list is a third point.
        ("Rndcg", {"a": 2, "b": 1}, ["b", "a", "x"], (1 / 2 + (1 + 2 / LOG3) / (2 + 1 / LOG3)) / 2),
        ("Rndcg", {"a": 2, "b": 1}, ["b", "a", "x", "y"], (1 / 2 + 2 * (1 + 2 / LOG3) / (2 + 1 / LOG3)) / 3),
        ("Rndcg(rel=3)", {"a": 2, "b": 1}, ["a", "b"], 0.0),
        # a at rank 2 against two of the ideal, and b, not found, against all of it.
        ("nDCGRel", {"a": 1, "b": 1}, ["x", "a"], (1 / LOG3) / (1 + 1 / LOG3)),
        # Grade 4 is the query's highest: b gains a quarter.
        ("ScaledRBP(p=0.5)", {"a": 4, "b": 1}, ["b", "x", "a"], 0.5 * (1 / 4 + 1 / 4)),
        ("ScaledRBP(p=0.5)", {"a": 0.5}, ["a"], 0.25),
        # Rank 2 is unjudged, rank 3 pooled only: 0.5^3 + 0.5 (0.5 + 0.25).
        ("UnjudgedRBP(p=0.5)", {"a": 1, "p": -1}, ["a", "x", "p"], 0.5),
        ("UnjudgedRBP(p=0.5)", {"a": 1, "b": 0}, ["a", "b"], 0.0),
        ("Unj@4", {"a": 1, "p": -1}, ["a", "x", "p"], 2 / 4),
        ("SetP", {"a": 1, "b": 1}, ["a", "x", "y", "z"], 1 / 4),
        ("SetR", {"a": 1, "b": 1}, ["a", "x", "y", "z"], 1 / 2),
        ("SetF", {"a": 1, "b": 1}, ["a", "x", "y", "z"], 2 * (1 / 8) / (3 / 4)),
        ("SetF(beta=2)", {"a": 1, "b": 1}, ["a", "x", "y", "z"], 5 * (1 / 8) / (4 / 4 + 1 / 2)),
        ("SetF(weight=4)", {"a": 1, "b": 1}, ["a", "x", "y", "z"], 5 * (1 / 8) / (4 / 4 + 1 / 2)),
        ("SetAP", {"a": 1, "b": 1}, ["a", "x", "y", "z"], 1 / 8),
        ("SetRelativeP", {"a": 1, "b": 1}, ["a", "x", "y", "z"], 1 / 2),
        ("SetRelativeP", {"a": 1, "b": 1}, ["x"], 0.0),
        ("Utility", {"a": 1, "b": 1}, ["a", "x", "y"], 1 - 2),
        (
            "Utility(found=2, wrong=-0.5, missed=-3, spared=0.1, documents=10)",
            {"a": 1, "b": 1},
            ["a", "x", "y"],
            2 - 1 - 3 + 0.1 * (10 - 4),
        ),
        ("NumNonrelJudgedRet", {"a": 1, "x": 0, "y": 0, "p": -1}, ["x", "p", "a", "u"], 1.0),
    ],
)
def test_hand_computed(measure: str, grades: Grades, ranked: list[str], expected: float) -> None:
    assert value(measure, grades, ranked) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_geometric_means_have_a_floor() -> None:
    qrels = {"good": {"a": 1, "x": 0}, "bad": {"a": 1, "x": 0}}
    run = {"good": ["a", "x"], "bad": ["x", "a"]}
    scores = sy.evaluate(qrels, run, ["GMAP", "GMBpref"])
    assert scores["GMAP"] == pytest.approx(math.sqrt(1 * 0.5))
    assert scores["GMBpref"] == pytest.approx(math.sqrt(1 * 1e-5))
    assert sorted(scores.values("GMBpref")) == [0.0, 1.0]


def test_sums_do_not_cross_queries() -> None:
    """A query's value is the same alone and among many of other lengths."""
    rng = random.Random(7)
    qrels, run = {}, {}
    for number in range(40):
        docs = [f"d{n}" for n in range(rng.randint(1, 30))]
        qrels[f"q{number}"] = {doc: rng.choice([-1, 0, 0.5, 1, 2, 4]) for doc in docs}
        run[f"q{number}"] = rng.sample([*docs, "x", "y", "z"], rng.randint(1, len(docs)))
    wanted = ["Rndcg", "nDCGRel", "G", "IPrec@0.3", "IPrecAvg", "infAP", "Bpref", "BinG", "ScaledRBP"]
    together = sy.evaluate(qrels, run, wanted)
    for place, query in enumerate(together.queries):
        alone = sy.evaluate({query: qrels[query]}, {query: run[query]}, wanted)
        assert [together.values(name)[place] for name in wanted] == list(alone.means.values())


def test_grades_need_not_be_whole() -> None:
    grades = {"a": 0.5, "b": 1.5, "n": 0.25, "p": -0.5}
    ranked = ["n", "p", "a", "b"]
    assert value("Bpref(rel=0.5)", grades, ranked) == 0.0
    assert value("Rprec(rel=0.5)", grades, ranked) == 0.0
    assert value("NumNonrelJudgedRet(rel=0.5)", grades, ranked) == 1.0
    got = 0.25 / math.log2(3 + 1.5 - 1 - 0.25) + 0.5 / math.log2(2 + 3.5 - 0.75) + 1.5 / math.log2(2 + 4.5 - 2.25)
    assert value("G", grades, ranked) == pytest.approx(got / 2.25)


@pytest.mark.parametrize("points", ["[]", "[0.5,half]", "[0.5,1.5]", "[-0.1]"])
def test_points_must_be_levels_of_recall(points: str) -> None:
    with pytest.raises(MeasureError, match=r"points=\[0.25,0.5,0.75\]"):
        value(f"IPrecAvg(points={points})", ONE, ["a"])


class TestVersions:
    ranked = ("a", "x", "b", "y", "z", "c")

    def run_both(self, measure: str, run: object, grades: Grades = ONE) -> tuple[float, float]:
        nine, ten = (sy.evaluate({"q": grades}, {"q": run}, measure, dialect=f"trec_eval-{v}") for v in (9, 10))
        return nine[measure], ten[measure]

    def test_interpolated_precision(self) -> None:
        """0.6 x 4 is 2.4 documents: 9 raises it to 3.3 and cuts to 3, 10 rounds to 2."""
        assert self.run_both("iprec_at_recall_0.60", list(self.ranked)) == (1 / 2, 2 / 3)
        assert self.run_both("IPrec@0.6", list(self.ranked)) == (1 / 2, 2 / 3)
        assert self.run_both("11pt_avg_.6", list(self.ranked)) == (1 / 2, 2 / 3)

    def test_scores_that_differ_only_past_32_bits_tie_in_9(self) -> None:
        """Tied, the larger id stands first."""
        scores = {"a": 1.00000002, "x": 1.00000001}
        assert np.float32(scores["a"]) == np.float32(scores["x"])
        assert self.run_both("recip_rank", scores) == (1 / 2, 1.0)

    def test_multiples_of_r_are_raised_in_both(self) -> None:
        """0.3 x 4 is 1.2 documents, raised to 2.1 and cut to 2."""
        assert self.run_both("Rprec_mult_0.30", list(self.ranked)) == (1 / 2, 1 / 2)

    def test_only_10_has_rbp_and_unjudged(self) -> None:
        assert "unj_5" not in dialect("trec_eval-9").sets["all_trec"]
        assert "unj_5" in dialect("trec_eval-10").sets["all_trec"]


@pytest.mark.parametrize("version", ["trec_eval-9", "trec_eval-10"])
class TestDialect:
    qrels: ClassVar = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 0}}

    def test_a_query_missing_from_the_run_is_skipped(self, version: str) -> None:
        run = {"q1": ["a"], "q3": ["a"]}
        assert sy.evaluate(self.qrels, run, ["map", "num_q"], dialect=version).means == {"map": 0.5, "num_q": 2.0}

    def test_option_c_is_missing_zero(self, version: str) -> None:
        found = sy.evaluate(self.qrels, {"q1": ["a"]}, ["map", "gm_map"], dialect=version, missing="zero")
        assert found.means == pytest.approx({"map": 1 / 3, "gm_map": 1e-10 ** (1 / 3)})

    def test_a_query_without_relevant_documents_counts(self, version: str) -> None:
        assert sy.evaluate(self.qrels, {"q3": ["a"]}, "P_5", dialect=version).means == {"P_5": 0.0}

    def test_a_document_twice_is_an_error(self, version: str) -> None:
        with pytest.raises(PolicyError, match="document 'a'"):
            sy.evaluate(self.qrels, {"q1": ["a", "a"]}, "map", dialect=version)

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("P.7", "P@7"),
            ("P_7", "P@7"),
            ("recall_2000", "R@2000"),
            ("map_cut.3", "AP@3"),
            ("ndcg_cut_23", "nDCG@23"),
            ("success.2", "Hit@2"),
            ("relative_P_5", "R(cap=True)@5"),
            ("Rprec_mult.0.35", "RprecMult@0.35"),
            ("utility_2,-1,0,0", "Utility(found=2)"),
            ("utility.1,-2,.5,0", "Utility(wrong=-2, missed=0.5)"),
            ("ndcg_1=3,2=9,4=4.5", "nDCG(gain={1: 3, 2: 9, 4: 4.5})"),
            ("G.1=3", "G(gain={1: 3})"),
            ("set_F.2", "SetF(weight=2)"),
            ("recip_rank", "RR"),
            ("set_relative_P", "SetRelativeP"),
        ],
    )
    def test_names(self, version: str, written: str, meant: str) -> None:
        assert str(dialect(version).measure(written)) == meant

    def test_families_of_cutoffs(self, version: str) -> None:
        scores = sy.evaluate(self.qrels, {"q1": ["a"]}, ["success", "iprec_at_recall"], dialect=version)
        assert list(scores.means)[:4] == ["success_1", "success_5", "success_10", "iprec_at_recall_0.00"]
        assert len(scores.means) == 3 + 11

    def test_every_name_of_every_set_has_a_meaning(self, version: str) -> None:
        dialect_ = dialect(version)
        for listed in dialect_.sets.values():
            for name in listed:
                assert str(dialect_.measure(name))


def judged_runs(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Random judgments (binary, graded, pooled, without a relevant one) and runs with ties."""
    rng = random.Random(seed)
    scales = [[0, 1], [0, 1, 2, 3, 4], [-1, 0, 1, 2], [0, 0, 0, 3], [0]]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in range(20):
        pool = [f"d{n}" for n in range(rng.randint(1, 60))]
        scale = rng.choice(scales)
        judged = {doc: rng.choice(scale) for doc in rng.sample(pool, rng.randint(1, len(pool)))}
        judged[pool[0]] = max(0, judged.get(pool[0], 0))  # version 9 needs one grade of 0 or more
        qrels[f"q{query}"] = judged
        docs = rng.sample([*pool, *(f"x{n}" for n in range(20))], rng.randint(1, len(pool) + 20))
        run[f"q{query}"] = {doc: rng.choice([rng.random(), 1 + rng.randint(0, 3) * 1e-8]) for doc in docs}
    return qrels, run


@pytest.mark.parametrize("rel", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_the_same_as_version_9_itself(seed: int, rel: int) -> None:
    """pytrec_eval carries the C code of version 9; every measure it offers, to 1e-12."""
    pytrec_eval = import_peer("pytrec_eval")
    qrels, run = judged_runs(seed)
    offered = set(pytrec_eval.supported_measures) - {"runid", "relstring", "num_q"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, offered, relevance_level=rel).evaluate(run)
    names = sorted(theirs["q0"])
    assert len(names) > 80
    ours = sy.evaluate(qrels, run, names, dialect="trec_eval-9", rel=rel)
    for name in names:
        expected = np.array([theirs[query][name] for query in ours.queries])
        if name in ("gm_map", "gm_bpref"):
            expected = np.where(expected <= math.log(1e-5), 0.0, np.exp(expected))
        np.testing.assert_allclose(ours.values(name), expected, rtol=1e-12, atol=1e-12, err_msg=name)
