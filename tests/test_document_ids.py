"""Runs without a judged document: ids of both sides, and how they differ."""

from __future__ import annotations

import polars as pl
import pytest

import steelyard as sy
from steelyard.cli import run as cli
from steelyard.coverage import id_difference
from steelyard.errors import InputError

QRELS = {"q1": {"doc1": 1, "doc2": 0}, "q2": {"doc3": 1}}
LISTS = {"q1": ["DOC7", "DOC1"], "q2": ["DOC9"]}


@pytest.mark.parametrize(
    ("returned", "judged", "what"),
    [
        (["D1", "D2"], ["d2", "d3"], "upper and lower case"),
        ([" d1"], ["d1"], "white space around them"),
        (["msmarco_12", "msmarco_7"], ["7"], "the prefix 'msmarco_' of the run's ids"),
        (["7"], ["D7", "D8"], "the prefix 'D' of the qrels' ids"),
        (["a.pdf", "b.pdf"], ["b"], "the suffix '.pdf' of the run's ids"),
        (["12"], ["2"], None),
        (["paris"], ["is"], None),
        (["x"], ["y"], None),
        (["1.2.3", "4"], ["1.2"], None),
        (["d1", "D2"], ["d2", "d1"], None),
        ([], ["y"], None),
    ],
)
def test_difference_between_ids(returned, judged, what):
    assert id_difference(returned, judged) == what


def forms(tmp_path):
    """The same run as a mapping, a Run, a frame and a file."""
    run = sy.Run(LISTS)
    run.write(tmp_path / "mixed.run")
    rows = [(query, doc, 1.0) for query, docs in LISTS.items() for doc in docs]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    return [LISTS, run, frame, tmp_path / "mixed.run"]


def test_ids_of_both_sides_are_shown_for_every_kind_of_run(tmp_path):
    for run in forms(tmp_path):
        assert (
            "No retrieved document is judged: the run has 'DOC7', 'DOC1', the qrels 'doc1', 'doc2'; "
            "the ids differ only in upper and lower case."
        ) in str(sy.evaluate(QRELS, run, "AP").coverage)


def test_no_note_where_a_document_is_judged():
    for run in ({"q1": ["DOC7"], "q2": ["doc3"]}, {"q1": []}):
        assert sy.evaluate(QRELS, run, "AP").coverage.notes == ()


def test_a_poor_run_is_measured_and_one_with_other_ids_is_refused(tmp_path, capsys):
    poor = sy.evaluate({"q": ["a"]}, {"q": ["x"]}, "AP")
    assert (
        "No retrieved document is judged: the run has 'x', the qrels 'a'; check that the two files belong together."
    ) in str(poor.coverage)
    assert sy.compare({"q": ["a"]}, {"one": {"q": ["x"]}}, ["AP"]).leaderboard["AP"].to_list() == [0.0]
    with pytest.raises(InputError, match="run 'one': no retrieved document is judged: .* differ only in upper"):
        sy.compare(QRELS, {"one": LISTS}, ["AP"])
    noted = sy.compare(QRELS, {"one": LISTS, "other": {"q1": ["doc1"]}}, ["AP"], unmatched="note")
    assert (noted.runs, list(noted.unmeasured)) == (("other",), ["one"])
    with pytest.raises(InputError, match="no run was measured"):
        sy.compare(QRELS, {"one": {}}, ["AP"])
    (tmp_path / "qrels.trec").write_text("q1 0 doc1 1\n")
    (tmp_path / "one.run").write_text("q1 Q0 DOC1 1 2.0 one\n")
    assert cli(["evaluate", str(tmp_path / "qrels.trec"), str(tmp_path / "one.run"), "-m", "AP"]) == 2
    out, err = capsys.readouterr()
    assert "AP" in out
    assert "upper and lower case" in err


def test_a_run_without_hits_is_measured_if_its_ids_occur_with_other_queries():
    qrels = {"q1": ["d1"], "q2": ["d2"]}
    missed = {"q1": ["d2"], "q2": ["d1"]}
    result = sy.compare(qrels, {"missed": missed, "found": {"q1": ["d1"], "q2": ["d2"]}}, ["RR"])
    assert result.leaderboard["RR"].to_list() == [1.0, 0.0]
