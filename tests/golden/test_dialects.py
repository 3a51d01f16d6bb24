"""Numbers of other tools, and of the documents that define them, in each dialect."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

import steelyard as sy
from needs import SHARED, import_peer, needs_shared
from steelyard.dialects import dialects

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CASES = {
    "one_of_five": (["a", "b", "c", "d", "e"], ["a"]),
    "two_of_three": (["a", "b", "c"], ["a", "x", "b", "y", "z"]),
    "short": (["a", "b"], ["x", "a"]),
    "none_found": (["a", "b"], ["x", "y", "z"]),
    "perfect": (["a", "b"], ["a", "b", "x", "y", "z", "w"]),
    "late": (["a", "b"], ["p", "q", "r", "s", "t", "u", "v", "w", "a", "b"]),
    "empty_list": (["a"], []),
    "no_relevant": ([], ["x", "y"]),
    "nothing_at_all": ([], []),
    "repeated_irrelevant": (["a", "b"], ["x", "x", "a", "b"]),
    "repeated_relevant": (["a", "b"], ["a", "a", "x", "b"]),
    "document_2": ([["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"]),
    "shared": ([["a", "b"], ["b", "c"]], ["b", "x", "a", "y", "z"]),
    "one_group": ([["a", "b", "c"]], ["x", "b", "a"]),
}

TOOLS = tomllib.loads((Path(__file__).parent / "tools.toml").read_text("utf-8"))

ONCE = "a document that comes again gains nothing"
DISTINCT = "a repeated document holds its rank"
ZERO = "an empty list counts as 0"

# Where Steelyard gives another number than the tool, on purpose: ours, and why.
OURS = {
    ("llama-index", "precision", "repeated_irrelevant"): (1 / 2, DISTINCT),
    ("llama-index", "precision", "repeated_relevant"): (1 / 2, DISTINCT),
    ("llama-index", "hit_rate_granular", "repeated_relevant"): (1.0, ONCE),
    ("llama-index", "mrr_granular", "repeated_relevant"): (5 / 8, ONCE),
    ("llama-index", "ap", "repeated_relevant"): (3 / 4, ONCE),
    ("llama-index", "ndcg", "repeated_relevant"): (0.8772153153380493, ONCE),
    ("llama-index", "ndcg_exponential", "repeated_relevant"): (0.8772153153380493, ONCE),
    ("mlflow", "precision_at_3", "repeated_relevant"): (1 / 3, ONCE),
    ("mlflow", "precision_at_10", "repeated_relevant"): (1 / 2, ONCE),
    ("mlflow", "ndcg_at_3", "repeated_relevant"): (0.6131471927654584, ONCE),
    ("mlflow", "ndcg_at_10", "repeated_relevant"): (0.8772153153380493, ONCE),
    ("autorag", "ndcg", "repeated_relevant"): (0.8772153153380493, ONCE),
    **{("autorag", metric, "empty_list"): (0.0, ZERO) for metric in TOOLS["autorag"]["values"]},
    ("ragas", "context_precision", "repeated_irrelevant"): (7 / 12, "the dialect's ids are sets"),
    ("ragas", "context_precision", "repeated_relevant"): (5 / 6, "the dialect's ids are sets"),
}  # fmt: skip

NUMBERS = [
    (tool, metric, case, value)
    for tool, known in TOOLS.items()
    for metric, values in known["values"].items()
    for case, value in values.items()
]


def value_of(dialect, metric, case):
    truth, listed = CASES[case]
    if dialect == "autorag" and truth and isinstance(truth[0], str):
        truth = [[doc] for doc in truth]
    scores = sy.evaluate({"q": truth}, {"q": listed}, [metric], dialect=dialect)
    return float(scores.per_query[metric][0])


@pytest.mark.parametrize(("dialect", "metric", "case", "theirs"), NUMBERS, ids=["-".join(n[:3]) for n in NUMBERS])
def test_a_tools_number(dialect, metric, case, theirs):
    ours = value_of(dialect, metric, case)
    if (dialect, metric, case) in OURS:
        stated, _why = OURS[dialect, metric, case]
        assert ours == pytest.approx(stated, abs=1e-9)
        assert theirs == "left out" or theirs != pytest.approx(stated, abs=1e-9)
    elif theirs == "left out":
        assert math.isnan(ours)
    elif theirs == "error":
        assert ours == 0
    else:
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_every_exception_is_of_a_number_that_is_there():
    assert set(OURS) <= {number[:3] for number in NUMBERS}


# Graded judgments and scored runs, for the tools that take them.

GRADED = {"q1": {"a": 1, "b": 2, "c": 0, "d": 1}, "q2": {"e": 1, "f": 1}, "q3": {"g": 1}, "q4": {"h": 3, "i": 1}}
SCORED = {
    "q1": {"a": 0.9, "x1": 0.8, "b": 0.7, "c": 0.6, "x2": 0.5},
    "q2": {"x3": 0.9, "e": 0.4},
    "q3": {"x4": 0.5, "x5": 0.4, "x6": 0.3},
    "q4": {"i": 0.9, "x7": 0.8, "h": 0.7},
}
WITHOUT_Q4 = {query: SCORED[query] for query in ("q1", "q2", "q3")}


def means(dialect, run, expected, **policies):
    return sy.evaluate(GRADED, run, list(expected), dialect=dialect, **policies).means


# ranx 0.3.21. The fourth query's judgments had a non-relevant document more there, for bpref below.
RANX = {
    "hits@3": 1.25, "hit_rate@1": 0.5, "precision@3": 0.41666666666666663, "precision": 0.39166666666666666,
    "recall@3": 0.5416666666666666, "f1@3": 0.4666666666666667, "r-precision": 0.41666666666666663, "mrr": 0.625,
    "mrr@2": 0.625, "map": 0.4097222222222222, "map@2": 0.2708333333333333, "dcg@3": 1.2827324383928644,
    "dcg_burges@3": 1.9077324383928644, "ndcg@3": 0.42854239366365154, "ndcg": 0.42854239366365154,
    "ndcg_burges@3": 0.39543719470202254, "precision@3-l2": 0.16666666666666666, "ndcg@3-l2": 0.25,
    "mrr-l2": 0.16666666666666666,
}  # fmt: skip


def test_ranx():
    assert means("ranx", SCORED, RANX) == pytest.approx(RANX, abs=1e-9)


def test_ranx_bpref_and_rbp():
    judged = {"q1": GRADED["q1"], "q4": {"h": 3, "i": 1, "n": 0}}
    run = {"q1": SCORED["q1"], "q4": {"i": 0.9, "n": 0.8, "h": 0.7}}
    assert sy.evaluate(judged, run, ["bpref"], dialect="ranx")["bpref"] == pytest.approx(0.5833333333333333, abs=1e-9)
    below = {"q": {"a": 1, "b": -1, "c": 0, "d": 2, "e": -2}}
    found = {"q": {"b": 9.0, "a": 8.0, "c": 7.0, "e": 6.0, "d": 5.0, "x": 4.0}}
    assert sy.evaluate(below, found, ["bpref"], dialect="ranx")["bpref"] == 0.25
    rbp = {"rbp.80": 0.29999999999999993, "rbp.80-l2": 0.16, "RBP": 0.29999999999999993}
    assert means("ranx", SCORED, rbp) == pytest.approx(rbp, abs=1e-9)


# ir_measures 0.4.3 over pytrec_eval-terrier 0.5.11; a missing query counts as 0.
IR_MEASURES = {
    "P@3": 0.41666666666666663, "R@3": 0.5416666666666666, "RR": 0.625, "RR@2": 0.625, "AP": 0.4097222222222222,
    "AP@3": 0.4097222222222222, "nDCG": 0.42854239366365154, "nDCG@3": 0.42854239366365154, "Success@1": 0.5,
    "Judged@3": 0.45833333333333326, "Judged": 0.44166666666666665, "Rprec": 0.41666666666666663,
    "Bpref": 0.5416666666666666, "SetP": 0.39166666666666666, "SetR": 0.5416666666666666, "SetF": 0.45,
    "NumRet": 13.0, "NumRet(rel=1)": 5.0, "NumRel": 8.0, "NumQ": 4.0, "IPrec@0.5": 0.5416666666666666,
    "infAP": 0.4097215277916664, "P(rel=2)@3": 0.16666666666666666, "SetAP": 0.2958333333333333,
    "SetP(relative=True)": 0.5416666666666666, "SetF(beta=2.0)": 0.47564935064935066,
    "SetF(rel=2,beta=3.0)": 0.29166666666666663, "SetF(beta=3.0, rel=2)": 0.29166666666666663,
}  # fmt: skip
IR_MEASURES_WITHOUT_Q4 = {
    "P@3": 0.25, "R@3": 0.29166666666666663, "RR": 0.375, "RR@2": 0.375, "AP": 0.20138888888888887,
    "nDCG@3": 0.2564101734285349, "Success@1": 0.25, "Judged@3": 0.29166666666666663, "Judged": 0.275,
    "Rprec": 0.29166666666666663, "Bpref": 0.29166666666666663, "SetP": 0.225, "SetF": 0.25, "NumRet": 10.0,
    "IPrec@0.5": 0.29166666666666663, "infAP": 0.20138861111666656,
}  # fmt: skip


def test_ir_measures():
    assert means("ir_measures", SCORED, IR_MEASURES) == pytest.approx(IR_MEASURES, abs=1e-9)
    found = means("ir_measures", WITHOUT_Q4, IR_MEASURES_WITHOUT_Q4)
    assert found == pytest.approx(IR_MEASURES_WITHOUT_Q4, abs=1e-9)


def test_ir_measures_where_gdeval_prints_five_digits_a_query():
    found = means("ir_measures", SCORED, ["nDCG(dcg='exp-log2')@3", "ERR@3"])
    assert found == pytest.approx({"nDCG(dcg='exp-log2')@3": 0.3954375, "ERR@3": 0.08789}, abs=1e-5)


# beir 2.2.0, rounded there to five digits.
BEIR = {
    "NDCG@3": 0.42854, "MAP@3": 0.40972, "Recall@3": 0.54167, "P@3": 0.41667, "NDCG@10": 0.42854, "MAP@10": 0.40972,
    "Recall@10": 0.54167, "P@10": 0.125, "MRR@3": 0.625, "R_cap@3": 0.54167, "Hole@3": 0.5, "Hole@10": 0.175,
    "Accuracy@3": 0.75,
}  # fmt: skip
BEIR_WITHOUT_Q4 = {"NDCG@3": 0.34188, "MAP@3": 0.26852, "Recall@3": 0.38889, "P@3": 0.33333}
BEIR_CUSTOM_WITHOUT_Q4 = {"MRR@3": 0.375, "R_cap@3": 0.29167, "Hole@3": 0.41667, "Accuracy@3": 0.5}


def test_beir():
    assert means("beir", SCORED, BEIR) == pytest.approx(BEIR, abs=5.1e-6)
    assert means("beir", WITHOUT_Q4, BEIR_WITHOUT_Q4) == pytest.approx(BEIR_WITHOUT_Q4, abs=5.1e-6)
    found = means("beir", WITHOUT_Q4, BEIR_CUSTOM_WITHOUT_Q4, missing="zero")
    assert found == pytest.approx(BEIR_CUSTOM_WITHOUT_Q4, abs=5.1e-6)


# mteb 2.26.24, rounded there to five digits but for mrr.
MTEB = {
    "ndcg_at_1": 0.20833, "ndcg_at_3": 0.42854, "map_at_3": 0.40972, "recall_at_1": 0.20833, "recall_at_10": 0.54167,
    "accuracy": 0.20833, "precision_at_3": 0.41667, "precision_at_10": 0.125, "mrr_at_1": 0.5, "mrr_at_3": 0.625,
    "hit_rate_at_3": 0.75,
}  # fmt: skip
MTEB_WITHOUT_Q4 = {"ndcg_at_3": 0.34188, "map_at_3": 0.26852, "mrr_at_3": 0.5, "hit_rate_at_1": 0.33333}


def test_mteb():
    assert means("mteb", SCORED, MTEB) == pytest.approx(MTEB, abs=5.1e-6)
    assert means("mteb", WITHOUT_Q4, MTEB_WITHOUT_Q4) == pytest.approx(MTEB_WITHOUT_Q4, abs=5.1e-6)


@pytest.mark.parametrize("dialect", ["beir", "mteb", "ir_measures"])
def test_pytrec_eval_compares_scores_as_32_bit_floats(dialect):
    """pytrec_eval-terrier 0.5.11: 1 + 1e-9 ties with 1, and the larger id goes first; 1 + 1e-6 does not."""
    name = {"beir": "MRR@10", "mteb": "mrr_at_10", "ir_measures": "RR"}[dialect]
    for ahead, value in ((1e-9, 0.5), (1e-6, 1.0)):
        run = {"q": {"a": 1 + ahead, "b": 1.0}}
        assert sy.evaluate({"q": {"a": 1, "b": 0}}, run, [name], dialect=dialect)[name] == value


def test_msmarco_counts_every_judged_query():
    """ms_marco_eval.py at 2ec0d6f: a passage at rank 11 and a query without a list add nothing."""
    judged = {"1": ["11", "12"], "2": ["21"], "3": ["31"], "4": ["41"], "5": ["51"]}
    run = {
        "1": ["98", "99", "12", "11"],
        "2": [str(900 + place) for place in range(10)] + ["21"],
        "3": ["31"],
        "5": ["91", "51"],
        "7": ["1"],
    }
    for name in ("MRR @10", "MRR@10", "MRR", "RR@10"):
        assert sy.evaluate(judged, run, [name], dialect="msmarco")[name] == pytest.approx(0.36666666666666664, abs=1e-9)


def test_haystack_uses_the_scores_of_the_ground_truth_as_gains():
    """haystack-ai 3.4.0, DocumentNDCGEvaluator."""
    found = sy.evaluate({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": ["c", "x", "a"]}, ["ndcg"], dialect="haystack")
    assert found["ndcg"] == pytest.approx(0.5250049893849101, abs=1e-9)


# evidently 0.7.23: lists of five, the grade at each rank; the third has nothing relevant.
LISTS = {"u1": [1, 0, 1, 0, 0], "u2": [1, 1, 0, 0, 0], "u3": [0, 0, 0, 0, 0], "u4": [0, 0, 0, 0, 1]}
GRADED_LISTS = {"u1": [3, 0, 1, 0, 0], "u2": [1, 2, 0, 0, 0], "u3": [0, 0, 0, 0, 0], "u4": [0, 0, 0, 0, 1]}
EVIDENTLY = {
    "precision@2": 0.5, "recall@2": 0.5, "map@2": 0.5, "mar@2": 0.3333333333333333, "ndcg@2": 0.5377157309218195,
    "mrr@2": 0.6666666666666666, "hit_rate@2": 0.6666666666666666, "precision@3": 0.4444444444444444,
    "recall@3": 0.6666666666666666, "map@3": 0.611111111111111, "mar@3": 0.5, "ndcg@3": 0.6399069297160626,
    "precision@5": 0.3333333333333333, "recall@5": 1.0, "map@5": 0.6777777777777777, "mar@5": 0.8333333333333334,
    "ndcg@5": 0.7688578654609097, "mrr@5": 0.7333333333333334, "hit_rate@5": 1.0,
    "precision_include_no_feedback@3": 0.3333333333333333, "recall_include_no_feedback@3": 0.5,
    "map_include_no_feedback@3": 0.4583333333333333, "mar_include_no_feedback@3": 0.375,
    "ndcg_include_no_feedback@3": 0.4799301972870469, "mrr_include_no_feedback@3": 0.5,
    "hit_rate_include_no_feedback@3": 0.5,
}  # fmt: skip
EVIDENTLY_GRADED = {"ndcg@2": 0.561984452326919, "ndcg@3": 0.6078863777229501, "ndcg@5": 0.7368373134677974}
EVIDENTLY_FROM_2 = {
    "precision@3": 1 / 3,
    "recall@3": 1.0,
    "map@3": 0.75,
    "mar@3": 1.0,
    "mrr@3": 0.75,
    "hit_rate@3": 1.0,
}


def listed(lists):
    judged = {user: {f"{user}d{place}": grade for place, grade in enumerate(grades)} for user, grades in lists.items()}
    for user in judged:
        judged[user]["relevant but never shown"] = 1
    return judged, {user: [f"{user}d{place}" for place in range(len(grades))] for user, grades in lists.items()}


def test_evidently_knows_only_what_came_back():
    judged, run = listed(LISTS)
    assert sy.evaluate(judged, run, list(EVIDENTLY), dialect="evidently").means == pytest.approx(EVIDENTLY, abs=1e-9)


def test_evidently_graded():
    judged, run = listed(GRADED_LISTS)
    found = sy.evaluate(judged, run, list(EVIDENTLY_GRADED), dialect="evidently").means
    assert found == pytest.approx(EVIDENTLY_GRADED, abs=1e-9)
    found = sy.evaluate(judged, run, list(EVIDENTLY_FROM_2), dialect="evidently", rel=2).means
    assert found == pytest.approx(EVIDENTLY_FROM_2, abs=1e-9)


def test_evidently_short_lists():
    """There map@5 of these is 1.4166666666666665, the last document of the short list counting four times."""
    judged, run = listed({"u1": [1, 0, 1, 0, 0], "u2": [0, 1]})
    expected = {"precision@5": 0.45, "recall@5": 1.0, "ndcg@5": 0.7753252713598225, "mrr@5": 0.75, "map@5": 2 / 3}
    assert sy.evaluate(judged, run, list(expected), dialect="evidently").means == pytest.approx(expected, abs=1e-9)


# The documents.


def test_document_2_in_the_default_dialect():
    truth, run = CASES["document_2"]
    expected = {
        "P@4": 0.5,
        "R@4": 2 / 3,
        "AP": 0.5555555555555556,
        "RR": 1.0,
        "nDCG@4": 0.7039180890341347,
        "R(per=target)": 0.5,
    }
    assert sy.evaluate({"q": truth}, {"q": run}, list(expected)).means == pytest.approx(expected, abs=1e-9)


DOCUMENT_4 = (
    {"Q1": ["A", "B", "C"], "Q2": ["D", "E"], "Q3": ["G", "H", "I"]},
    {"Q1": ["A", "D", "B", "E", "F"], "Q2": ["D", "E", "F", "G", "H"], "Q3": ["A", "B", "C", "D", "E"]},
)


def test_document_4():
    scores = sy.evaluate(*DOCUMENT_4, ["MAP@5", "MRR@5", "Hit@5", "Hits@5"], dialect="multihop-rag")
    assert scores.means == pytest.approx({"MAP@5": 11 / 18, "MRR@5": 2 / 3, "Hit@5": 2 / 3, "Hits@5": 2 / 3}, abs=1e-9)
    assert scores.per_query["MAP@5"].to_list() == pytest.approx([5 / 6, 1.0, 0.0], abs=1e-9)


def test_document_4_in_the_default_dialect():
    expected = {
        "AP@5": 0.5185185185185185,
        "nDCG@5": 0.5679726963447115,
        "P@5": 0.2666666666666667,
        "R@5": 0.5555555555555556,
    }
    assert sy.evaluate(*DOCUMENT_4, list(expected)).means == pytest.approx(expected, abs=1e-9)


def test_the_script_of_multihop_rag():
    """retrieval_evaluate.py at 33d3ad0 on the same lists: another MAP than its description."""
    scores = sy.evaluate(*DOCUMENT_4, "script", dialect="multihop-rag")
    expected = {"Hits@10": 2 / 3, "Hits@4": 2 / 3, "script_MAP@10": 0.39814814814814814, "MRR@10": 2 / 3}
    assert scores.means == pytest.approx(expected, abs=1e-9)


def test_multihop_rag_facts_that_share_a_chunk_and_a_chunk_at_rank_11():
    """The same script, two facts in the chunk at rank 5, and a fact found one rank too late."""
    facts = {"q1": [["ab"], ["ab"], ["c"]], "q2": [["late"]]}
    run = {"q1": ["u", "v", "w", "x", "ab", "y", "c"], "q2": [*"qrstuvwxyz", "late"]}
    expected = {"Hits@10": 0.5, "Hits@4": 0.0, "script_MAP@10": 0.09047619047619049, "MRR@10": 0.1}
    assert sy.evaluate(facts, run, "script", dialect="multihop-rag").means == pytest.approx(expected, abs=1e-9)


def test_document_3():
    ranks_1_and_2 = ["a", "b", *"cdefghij"]
    ranks_9_and_10 = [*"cdefghij", "a", "b"]
    scores = sy.evaluate(
        {"A": ["a", "b"], "B": ["a", "b"]}, {"A": ranks_1_and_2, "B": ranks_9_and_10}, ["R@10", "nDCG@10", "RR@10"]
    )
    assert scores.per_query["R@10"].to_list() == [1, 1]
    assert scores.per_query["nDCG@10"].to_list() == pytest.approx([1.0, 0.36181498356361597], abs=1e-9)
    assert scores.per_query["RR@10"].to_list() == pytest.approx([1.0, 0.1111111111111111], abs=1e-9)


def test_document_1_counts_a_query_without_a_hit_as_0():
    """Hit@k, MRR, Recall@20, DR@20 and the diversity count, over two near-duplicates of one target."""
    judged = {"q1": [["a1", "a2"], ["b"], ["c"]], "q2": [["d"]], "q3": [["e"], ["f"]]}
    run = {"q1": ["a2", "a1", "x", "b"], "q2": ["x", "y"], "q3": ["x", "e", "y", "f"]}
    scores = sy.evaluate(judged, run, ["Hit@1", "Hit@5", "MRR", "Recall@20", "DR@20", "Diversity@20"])
    assert scores.per_query["MRR"].to_list() == [1.0, 0.0, 0.5]
    assert scores.per_query["DR@20"].to_list() == pytest.approx([2 / 3, 0.0, 1.0], abs=1e-9)
    expected = {
        "Hit@1": 1 / 3,
        "Hit@5": 2 / 3,
        "MRR": 0.5,
        "Recall@20": (3 / 4 + 0 + 1) / 3,
        "DR@20": (2 / 3 + 0 + 1) / 3,
        "Diversity@20": 4 / 3,
    }
    assert scores.means == pytest.approx(expected, abs=1e-9)
    assert str(sy.parse("De-duplicate Recall@20")) == "DR@20"
    assert str(sy.parse("Diversity Count@20")) == "Diversity@20"


def test_one_of_five_returned_under_every_dialect():
    truth, listed = CASES["one_of_five"]

    def value(measure, dialect):
        return sy.evaluate({"q": truth}, {"q": listed}, [measure], dialect=dialect)[measure]

    for dialect in ("steelyard", "ranx", "llama-index", "haystack"):
        assert value("nDCG", dialect) == pytest.approx(0.33916020527361605, abs=1e-9)
    for dialect in ("mlflow", "autorag"):
        assert value("nDCG", dialect) == 1
        assert value("P@10", dialect) == 1
    assert value("Recall", "steelyard") == pytest.approx(0.2, abs=1e-9)
    assert value("recall", "haystack") == 1
    assert value("recall_multi_hit", "haystack") == pytest.approx(0.2, abs=1e-9)
    assert value("P@10", "steelyard") == pytest.approx(0.1, abs=1e-9)
    assert value("RR", "steelyard") == 1
    assert value("RR", "autorag") == pytest.approx(0.2, abs=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_leaderboard_cuts_recall_precision_and_f1_alone(k):
    judged = {"q": {"a": 1, "no": -1, "nor this": -1}}
    run = {"q": ["no", "a", "x"]}
    found = 1.0 if k >= 2 else 0.0
    expected = {
        "Average Recall": found,
        "Average Precision": found / k,
        "Average F1 Score": 2 * (found / k) * found / (found / k + found) if found else 0.0,
        "Average MRR": 0.5,
        "Average Hit Rate": 0.0,
        "Average nDCG": 0.5,
        "Average Confusion Rate": 0.5,
    }
    names = {f"{name}@{k}": value for name, value in expected.items()}
    assert sy.evaluate(judged, run, list(names), dialect="leaderboard").means == pytest.approx(names, abs=1e-9)
    plain = ["recall", "precision", "f1", "mrr", "hit_rate", "ndcg", "confusion"]
    short = {f"{name}@{k}": value for name, value in zip(plain, expected.values(), strict=True)}
    assert sy.evaluate(judged, run, list(short), dialect="leaderboard").means == pytest.approx(short, abs=1e-9)
    assert sy.evaluate(judged, run, [f"HitRate@{k}", f"ConfusionRate@{k}"], dialect="leaderboard").means == {
        f"HitRate@{k}": 0.0,
        f"ConfusionRate@{k}": 0.5,
    }


# The files themselves.

NAMES = [
    (name, pattern) for name, known in dialects().items() for pattern in known.names if not name.startswith("trec_eval")
]


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "pattern"), NAMES)
def test_every_name_means_a_measure_that_can_be_computed(dialect, pattern):
    text = re.sub(r"\{(\w+)\}", lambda hole: "0.2" if hole.group(1) == "r" else "5", pattern)
    qrels = sy.Evidence({"q": [{"doc_id": "a", "start": 0, "end": 1}]}).judge({"a": "A", "b": "B", "x": "X"})
    scores = sy.evaluate(qrels, {"q": {"a": 2.0, "x": 1.0}}, [text], dialect=dialect)
    assert len(scores.queries) == 1
    assert str(sy.parse(str(scores.measures[text]))) == str(scores.measures[text])


def test_every_tool_has_a_dialect_with_its_source():
    tools = {
        "ranx", "ir_measures", "beir", "mteb", "msmarco", "autorag", "multihop-rag", "leaderboard", "llama-index",
        "haystack", "mlflow", "ragas", "evidently", "trec_eval-9", "trec_eval-10",
    }  # fmt: skip
    assert tools <= set(dialects())
    assert all(dialects()[tool].source and dialects()[tool].about for tool in tools)


# Three real pipelines over product documentation.

DOCS_RAG = SHARED / "docs-rag"


@needs_shared
@pytest.mark.parametrize(
    ("run", "precision", "recall", "mrr"),
    [
        ("retrieve_base", 0.4217, 0.6492, 0.7267),
        ("retrieve_level_two", 0.4500, 0.7092, 0.7733),
        ("retrieve_level_three", 0.4533, 0.7092, 0.8383),
    ],
)
def test_docs_rag(run, precision, recall, mrr):
    wanted = ["P(denominator=retrieved)@3", "R@3", "RR@3"]
    scores = sy.evaluate(DOCS_RAG / "qrels.tsv", DOCS_RAG / "runs" / f"{run}.trec", wanted)
    assert list(scores.means.values()) == pytest.approx([precision, recall, mrr], abs=5.1e-5)


# ir_measures 0.4.3 with pyndeval 0.0.8 and cwl_eval 1.0.12: three documents with the same score, in three orders.
TIED = {
    "abc": {"BPM(max_rel=1,T=1)@2": 1.0, "SDCG(max_rel=1)@2": 0.613147, "Accuracy": 1.0, "RBP(rel=1)": 0.2},
    "cba": {"BPM(max_rel=1,T=1)@2": 0.0, "SDCG(max_rel=1)@2": 0.0, "Accuracy": 0.0, "RBP(rel=1)": 0.128},
    "bac": {"BPM(max_rel=1,T=1)@2": 0.5, "SDCG(max_rel=1)@2": 0.386853, "Accuracy": 0.5, "RBP(rel=1)": 0.16},
}
IN_ANY_ORDER = {
    "RR@10": 1.0, "Judged@1": 1.0, "Compat(p=0.8)": 0.724551, "StRecall@1": 0.5, "alpha_nDCG@2": 0.613147,
    "ERR_IA@2": 0.4, "ERR@2": 0.0,
}  # fmt: skip


class Qrel(NamedTuple):
    """ir_measures' own."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


SUBTOPICS = [Qrel("1", "a", 1, "1"), Qrel("1", "z", 1, "2"), Qrel("1", "b", 0, "1"), Qrel("1", "b", 0, "2")]


@pytest.mark.parametrize("order", TIED)
@pytest.mark.parametrize("native", ["0", "1"])
def test_ir_measures_orders_ties_by_measure(order, native, monkeypatch):
    monkeypatch.setenv("STEELYARD_NATIVE", native)
    expected = {**TIED[order], **IN_ANY_ORDER}
    run = {"1": dict.fromkeys(order, 1.0)}
    assert sy.evaluate(SUBTOPICS, run, list(expected), dialect="ir_measures").means == pytest.approx(expected, abs=5e-7)
    compared = sy.compare(SUBTOPICS, {"a": run}, list(expected), dialect="ir_measures")
    assert compared.leaderboard_rows[0].means == pytest.approx(expected, abs=5e-7)
    # pytrec_eval's own measures: by id, largest first; and a choice of the user holds for all measures.
    assert sy.evaluate(SUBTOPICS, run, ["RR", "P@1"], dialect="ir_measures").means == {"RR": 1 / 3, "P@1": 0}
    chosen = sy.evaluate(SUBTOPICS, run, ["RR@10", "RBP(rel=1)"], dialect="ir_measures", ties="docid-asc")
    assert chosen.means == {"RR@10": 1.0, "RBP(rel=1)": pytest.approx(0.2)}


def test_ir_measures_compares_64_bit_floats_but_for_pytrec_eval():
    run = {"q": {"b": 1.0, "c": 1.0, "a": 1.0 + 1e-12}}
    scores = sy.evaluate({"q": {"a": 1}}, run, ["RR@10", "Accuracy", "RR"], dialect="ir_measures")
    assert scores.means == {"RR@10": 1.0, "Accuracy": 1.0, "RR": 1 / 3}
    assert "ties=docid-asc" in sy.explain("RR@10", dialect="ir_measures")
    assert "32-bit" not in sy.explain("RR@10", dialect="ir_measures")
    assert "32-bit" in sy.explain("RR", dialect="ir_measures")


def test_ir_measures_subtopics_of_records_and_frames():
    pd = import_peer("pandas")
    records = [Qrel("q", "a", 1, "1"), Qrel("q", "a", 0, "2"), Qrel("q", "b", 1, "2"), Qrel("q", "c", 0, "0")]
    for source in (records, pd.DataFrame(records), pl.DataFrame([each._asdict() for each in records])):
        qrels = sy.Qrels(source)
        assert qrels.has_targets
        assert qrels.frame.sort("doc_id", "target").rows() == [
            ("q", "a", 1, "1"), ("q", "a", 0, "2"), ("q", "b", 1, "2"), ("q", "c", 0, None),
        ]  # fmt: skip
    rounds = [Qrel("q", "a", 1, "0.5"), Qrel("q", "b", 1, "1")]
    assert not sy.Qrels(rounds).has_targets
    assert [note.code for note in sy.Qrels(rounds).notes] == ["iterations-ignored"]
    assert sy.Qrels(pd.DataFrame(rounds), target="iteration").has_targets


def test_ir_measures_counts_only_queries_in_the_run():
    """pytrec_eval reports the queries of the run, and ir_measures gives the others 0."""
    qrels, run = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}}, {"q1": {"a": 1.0, "x": 2.0}}
    scores = sy.evaluate(qrels, run, ["NumQ", "NumRel", "RR@10", "Judged@2"], dialect="ir_measures")
    assert scores.means == {"NumQ": 1, "NumRel": 2, "RR@10": 0.25, "Judged@2": 0.25}
    assert sy.evaluate(qrels, run, ["NumQ", "NumRel"]).means == {"NumQ": 2, "NumRel": 3}


def test_documented_differences_from_ir_measures():
    """docs/dialects/README.md: Compat with scores below 0, and Accuracy of queries without a relevant document."""
    qrels = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}}
    runs = [{"q1": {"x": 3.0 - down, "a": 2.0 - down}, "q2": {"z": 1.0 - down}} for down in (0.0, 100.0)]
    compat = [sy.evaluate(qrels, run, "Compat(p=0.8)", dialect="ir_measures")["Compat(p=0.8)"] for run in runs]
    assert compat[0] == compat[1] > 0
    found = {"q1": {"a": 3.0, "x": 2.0}}
    for run in (found, {**found, "q2": {"z": 1.0}}):
        assert sy.evaluate(qrels, run, "Accuracy", dialect="ir_measures")["Accuracy"] == 1.0


def test_judged_only_removes_grades_below_0():
    """trec_eval -J keeps documents with a grade of 0 or more: form_res_rels.c."""
    qrels, run = {"q": {"a": 1, "n": -1, "z": 0}}, {"q": {"n": 4.0, "u": 3.0, "z": 2.0, "a": 1.0}}
    scores = sy.evaluate(qrels, run, ["RR(judged_only=True)", "P(judged_only=True)@2"], dialect="ir_measures")
    assert scores.means == {"RR(judged_only=True)": 0.5, "P(judged_only=True)@2": 0.5}
    assert sy.evaluate(qrels, run, "RR", unjudged="remove")["RR"] == pytest.approx(1 / 3)
