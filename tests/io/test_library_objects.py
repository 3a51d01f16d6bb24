"""Runs, judgments and measures as other libraries hold them."""

from __future__ import annotations

from collections import namedtuple
from types import ModuleType

import polars as pl
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.errors import InputError, MeasureError

QRELS = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}
RUN = {"q1": {"a": 1.0, "u": 0.7, "b": 0.5}, "q2": {"z": 0.5}}
Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")
ScoredDoc = namedtuple("ScoredDoc", "query_id doc_id score")


def tuples():
    judged = [Qrel(query, doc, grade, "0") for query, docs in QRELS.items() for doc, grade in docs.items()]
    listed = [ScoredDoc(query, doc, score) for query, docs in RUN.items() for doc, score in docs.items()]
    return judged, listed


def test_named_tuples_are_records():
    judged, listed = tuples()
    assert sy.Qrels(judged) == sy.Qrels(QRELS)
    assert sy.Run(listed, name="one") == sy.Run(RUN)
    expected = sy.evaluate(QRELS, RUN, ["nDCG@10", "AP"]).means
    assert sy.evaluate(judged, listed, ["nDCG@10", "AP"]).means == expected
    assert sy.evaluate(iter(judged), iter(listed), ["nDCG@10", "AP"]).means == expected
    board = sy.compare(judged, {"x": listed, "y": iter(listed)}, ["AP"]).leaderboard
    assert board["AP"].to_list() == [expected["AP"]] * 2


def test_an_iterator_is_read_once_also_where_nothing_is_judged():
    text = str(sy.evaluate(QRELS, iter([ScoredDoc("q1", "A", 1.0)]), "AP").coverage)
    assert "the run has 'A'" in text


def test_tuples_without_known_names_are_refused():
    odd = namedtuple("Odd", "x y")
    with pytest.raises(InputError, match="query_id"):
        sy.Qrels([odd(1, 2)])


def test_ranx_is_known_by_its_module_and_read_by_its_to_dict():
    module = ModuleType("ranx.data_structures")
    held = type("Run", (), {"__module__": module.__name__, "name": "mine", "to_dict": lambda self: RUN})()
    assert (sy.Run(held).name, sy.Run(held)) == ("mine", sy.Run(RUN))
    assert sy.evaluate(QRELS, held, "AP").name == "mine"


def test_measures_of_ir_measures():
    theirs = import_peer("ir_measures")
    measures = [theirs.nDCG @ 10, theirs.AP(rel=2), theirs.nDCG(dcg="exp-log2") @ 10, theirs.SetRelP]
    scores = sy.evaluate(QRELS, RUN, measures)
    assert list(scores.means) == list(map(str, measures))
    assert scores[measures[0]] == scores["nDCG@10"]
    assert str(scores.measures["nDCG(dcg='exp-log2')@10"]) == "nDCG(gain=exp)@10"
    assert sy.evaluate(QRELS, RUN, measures[0]).means == {"nDCG@10": scores["nDCG@10"]}
    gains = theirs.nDCG(gains={1: 3, 2: 1}) @ 10
    mean = sy.evaluate(QRELS, RUN, [gains])[gains]
    assert sy.compare(QRELS, {"x": RUN}, gains).leaderboard[str(gains)].to_list() == [pytest.approx(mean)]


def test_measures_of_ir_measures_give_its_numbers():
    import_peer("pytrec_eval")
    theirs = import_peer("ir_measures")
    for measure in (theirs.nDCG @ 10, theirs.nDCG(gains={1: 3, 2: 1}) @ 10):
        expected = theirs.calc_aggregate([measure], QRELS, RUN)[measure]
        assert sy.evaluate(QRELS, RUN, [measure])[measure] == pytest.approx(expected, abs=1e-12)


def test_wrong_measures_are_refused():
    for wrong in (3, [3], [object]):
        with pytest.raises(MeasureError, match="is not a measure|unknown measure"):
            sy.evaluate(QRELS, RUN, wrong)


def test_run_of_accepts_the_arguments_of_run(tmp_path):
    frame = pl.DataFrame({"question": ["q1"], "doc_id": ["a"], "score": [1.0]})
    run = sy.Run.of(frame, "named", query_id="question", seconds={"q1": 0.5})
    assert (run.name, run.queries, run.seconds) == ("named", ["q1"], {"q1": 0.5})
    frame.write_csv(tmp_path / "run.csv")
    again = sy.Run.of(tmp_path / "run.csv", query_id="question", seconds={"q1": 0.5})
    assert (again.queries, again.seconds) == (["q1"], {"q1": 0.5})
    assert sy.Run.of(run) is run
    judged = pl.DataFrame({"question": ["q1"], "doc_id": ["a"], "grade": [1]})
    assert sy.Qrels.of(judged, query_id="question").queries == ["q1"]


def test_a_parameter_that_is_a_policy_names_the_policy():
    with pytest.raises(MeasureError, match="unjudged=remove .--set unjudged=remove."):
        sy.evaluate(QRELS, RUN, "AP(judged_only=True)")
