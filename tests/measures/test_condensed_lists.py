"""Condensed lists (unjudged="remove"): unjudged documents are removed and the ranks below them move up."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import import_peer
from steelyard.errors import MeasureError, PolicyError

AVERAGED = [
    *("nDCG@3", "AP", "P@3", "R@2", "RR", "RBP(p=0.5)", "Judged@2", "Unjudged@2", "Confusion@2"),
    "R(per=target)@2",
]
MEASURES = [*AVERAGED, "Bpref", "ERR@3", "Rprec", "NumRet", "infAP", "INST", "SetP", "Accuracy"]
IDS = [f"d{number}" for number in range(8)]
QRELS = st.dictionaries(st.sampled_from(IDS), st.integers(-1, 3), min_size=1, max_size=6)
SCORED = st.lists(st.tuples(st.sampled_from(IDS), st.integers(0, 3)), max_size=12)


def condensed(judged: dict[str, int], listed: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The definition, in plain Python: judged documents alone, each where it comes first."""
    kept: list[tuple[str, float]] = []
    for doc, score in listed:
        if doc in judged and doc not in [other for other, _ in kept]:
            kept.append((doc, score))
    return kept


@given(judged=QRELS, listed=SCORED, ties=st.sampled_from(["docid-desc", "docid-asc", "stable", "expected"]))
@settings(max_examples=35, deadline=None)
def test_the_same_as_a_run_whose_unjudged_documents_were_taken_out_before(judged, listed, ties):
    """Scored rows in the order of their scores, so that the first occurrence of a document is its best."""
    rows = sorted(listed, key=lambda row: -row[1])
    columns = {"query_id": ["q"] * len(rows), "doc_id": [d for d, _ in rows], "score": [float(s) for _, s in rows]}
    kept = condensed(judged, rows)
    before = {"query_id": ["q"] * len(kept), "doc_id": [d for d, _ in kept], "score": [float(s) for _, s in kept]}
    wanted = [*AVERAGED, "NumRet"] if ties == "expected" else MEASURES
    made = [
        sy.evaluate({"q": judged}, sy.Run(pl.DataFrame(given, schema=SCHEMA)), wanted, ties=ties, **policies)
        for given, policies in ((columns, {"unjudged": "remove"}), (before, {}))
    ]
    there = [scores.means if scores.coverage.answered else None for scores in made]
    if there[1] is None:  # nothing judged came back: an empty list there, no list at all here
        assert there[0] is None or there[0]["NumRet"] == 0
    else:
        assert there[0] == pytest.approx(there[1], abs=1e-12, nan_ok=True)


SCHEMA = {"query_id": str, "doc_id": str, "score": float}


def test_by_hand():
    judged = {"q": {"a": 1, "b": 0, "c": 2}, "r": {"e": 1}}
    run = {"q": ["x", "a", "y", "a", "b", "z", "c"], "r": ["x", "y"]}
    scores = sy.evaluate(judged, run, ["AP", "RR", "P@3", "NumRet", "Judged@3", "Repeats"], unjudged="remove")
    assert dict(zip(scores.queries, scores.matrix.T.tolist(), strict=True)) == {
        "q": pytest.approx([(1 + 2 / 3) / 2, 1, 2 / 3, 3, 1, 0]),
        "r": [0, 0, 0, 0, 0, 0],
    }
    assert scores.coverage.documents == 9
    assert "5 of 8 distinct documents (62%) are unjudged and were removed from the lists" in str(scores.coverage)
    assert scores.policies["unjudged"] == "remove"
    assert sy.evaluate(judged, run, "NumRet", unjudged="remove", depth=2)["NumRet"] == 2


def test_measures_of_whole_lists_are_refused():
    run = sy.Run({"q": {"a": 2.0, "x": 1.0}}, texts={"a": "one two", "x": "three"})
    for measure in ("R(budget=10)", "Repeats", "Repeats(near=True)", "Abstain(threshold=1)"):
        with pytest.raises(MeasureError, match="unjudged=remove"):
            sy.evaluate({"q": ["a"]}, run, measure, unjudged="remove")
    assert sy.evaluate({"q": ["a"]}, run, "Repeats(near=False)", unjudged="remove").means == {"Repeats(near=False)": 0}
    with pytest.raises(PolicyError, match="keep, remove"):
        sy.evaluate({"q": ["a"]}, run, "AP", unjudged="drop")


def test_compare_explain_and_identify_support_it():
    qrels, run = {"q": {"a": 1, "b": 0}}, {"q": ["x", "a", "b"]}
    assert sy.compare(qrels, {"one": run}, ["RR"], unjudged="remove").leaderboard["RR"].to_list() == [1.0]
    assert "unjudged=keep" in sy.explain("RR")
    assert sy.evaluate(qrels, run, "Counted(of=RR, unjudged=remove)").means.popitem()[1] == 1
    found = sy.identify(qrels, run, "1.0", ["RR"], ["steelyard"])
    assert [match.but for match in found.matches] == ["unjudged=remove"]


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "P@10", "RR", "R@10", "Rprec"])
def test_equals_ir_measures(measure):
    import_peer("pytrec_eval")
    theirs = import_peer("ir_measures")
    qrels = {"q1": {"a": 1, "b": 2, "c": 0}, "q2": {"d": 1, "e": 0}, "q3": {"f": 1}}
    run = {
        "q1": {f"u{n}": 20.0 - n for n in range(9)} | {"c": 30.5, "a": 15.5, "b": 1.5},
        "q2": {"e": 2.0, "x": 1.5, "d": 1.0},
        "q3": {"y": 1.0},
    }
    asked = theirs.parse_measure(measure)(judged_only=True)
    expected = theirs.calc_aggregate([asked], qrels, run)[asked]
    assert expected > 0
    assert sy.evaluate(qrels, run, measure, unjudged="remove")[measure] == pytest.approx(expected, abs=1e-12)
    assert sy.evaluate(qrels, run, asked)[asked] == pytest.approx(expected, abs=1e-12)
