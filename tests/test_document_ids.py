"""What is said where not one document that came back is judged."""

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
        (["msmarco_12", "msmarco_7"], ["7"], "'msmarco_', with which those of the run begin"),
        (["7"], ["D7", "D8"], "'D', with which those of the judgments begin"),
        (["a.pdf", "b.pdf"], ["b"], "'.pdf', in which those of the run end"),
        (["12"], ["2"], None),
        (["paris"], ["is"], None),
        (["x"], ["y"], None),
        (["1.2.3", "4"], ["1.2"], None),
        (["d1", "D2"], ["d2", "d1"], None),
        ([], ["y"], None),
    ],
)
def test_what_makes_ids_differ(returned, judged, what):
    assert id_difference(returned, judged) == what


def forms(tmp_path):
    """The same run as a mapping, a Run, a frame and a file."""
    held = sy.Run(LISTS)
    held.write(tmp_path / "mixed.run")
    rows = [(query, doc, 1.0) for query, docs in LISTS.items() for doc in docs]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    return [LISTS, held, frame, tmp_path / "mixed.run"]


def test_ids_of_both_sides_are_shown_whatever_the_run_came_in(tmp_path):
    for run in forms(tmp_path):
        told = str(sy.evaluate(QRELS, run, "AP").coverage)
        assert (
            "No document that came back is judged: the run has 'DOC7', 'DOC1', the judgments 'doc1', 'doc2'"
            in told
        )
        assert "the ids differ only in upper and lower case." in told


def test_nothing_is_said_where_one_document_is_judged():
    told = str(sy.evaluate(QRELS, {"q1": ["DOC7"], "q2": ["doc3"]}, "AP").coverage)
    assert "came back is judged" not in told
    assert "came back is judged" not in str(sy.evaluate(QRELS, {"q1": []}, "AP").coverage)


def test_a_poor_run_is_measured_and_one_with_other_ids_is_refused(tmp_path, capsys):
    poor = sy.evaluate({"q": ["a"]}, {"q": ["x"]}, "AP")
    assert "the run has 'x', the judgments 'a'; check that they belong together." in str(poor.coverage)
    assert sy.compare({"q": ["a"]}, {"one": {"q": ["x"]}}, ["AP"]).leaderboard["AP"].to_list() == [0.0]
    with pytest.raises(
        InputError, match="run 'one': no document that came back is judged: .* differ only in upper"
    ):
        sy.compare(QRELS, {"one": LISTS}, ["AP"])
    (tmp_path / "qrels.trec").write_text("q1 0 doc1 1\n")
    (tmp_path / "one.run").write_text("q1 Q0 DOC1 1 2.0 one\n")
    assert cli(["evaluate", str(tmp_path / "qrels.trec"), str(tmp_path / "one.run"), "-m", "AP"]) == 2
    out, err = capsys.readouterr()
    assert "AP" in out
    assert "upper and lower case" in err


def test_a_run_that_only_missed_is_measured_though_its_ids_stand_with_other_queries():
    truth = {"q1": ["d1"], "q2": ["d2"]}
    missed = {"q1": ["d2"], "q2": ["d1"]}
    result = sy.compare(truth, {"missed": missed, "found": {"q1": ["d1"], "q2": ["d2"]}}, ["RR"])
    assert result.leaderboard["RR"].to_list() == [1.0, 0.0]
