"""What coverage counts and says of a run."""

import pytest

import steelyard as sy

QRELS = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
LISTS = {"q1": ["a"], "q2": []}


def forms(tmp_path):
    """The same lists as a mapping, as JSON, as a table with a row that names no document, and as JSON lines."""
    run = sy.Run(LISTS, name="run")
    yield run
    for suffix in ("json", "csv", "parquet", "jsonl"):
        run.write(tmp_path / f"run.{suffix}")
        yield sy.Run.read(tmp_path / f"run.{suffix}")


def test_an_empty_list_is_counted_and_said_whatever_it_came_in(tmp_path):
    for run in forms(tmp_path):
        scores = sy.evaluate(QRELS, run, ["RR", "NumQ"])
        assert (scores.coverage.answered, scores.coverage.missing, scores.coverage.empty) == (2, 1, 1)
        assert "1 query is answered with an empty list and counts as 0." in str(scores.coverage)
        assert scores.to_dict()["coverage"]["empty"] == 1
        assert scores["RR"] == pytest.approx(1 / 3)


def test_an_empty_list_counts_where_missing_queries_are_left_out(tmp_path):
    for run in forms(tmp_path):
        scores = sy.evaluate(QRELS, run, "recip_rank", dialect="trec_eval-9")
        assert scores.means == {"recip_rank": 0.5}
        assert "though missing queries are left out; a TREC file cannot hold an empty list" in str(
            scores.coverage
        )
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 1 run\n")
    from_trec = sy.evaluate(QRELS, tmp_path / "run.trec", "recip_rank", dialect="trec_eval-9")
    assert (from_trec.means, from_trec.coverage.empty) == ({"recip_rank": 1.0}, 0)
    assert "empty list" not in str(from_trec.coverage)


def test_explain_says_what_an_empty_list_is_where_missing_queries_are_left_out():
    assert "one with an empty list is not" in sy.explain("map", dialect="trec_eval-9")
    assert "empty list is not" not in sy.explain("nDCG@10")


def test_one_of_a_thing_is_one():
    scores = sy.evaluate({"q1": ["a"]}, {"q1": ["a"]}, "RR")
    assert str(scores.coverage) == "1 of 1 query answered, 1 document."
    assert repr(scores).splitlines()[0] == "Scores of 'run' over 1 query"
    unjudged = sy.evaluate({"q1": ["a"]}, {"q1": ["a", "x"]}, "RR").coverage
    assert "1 of 2 documents (50%) was never judged." in str(unjudged)
    assert repr(sy.Run({"q1": ["x"]})) == "Run 'run': 1 query, 1 document"
    assert repr(sy.Qrels({"q1": [["a"]]})) == "Qrels: 1 query, 1 judgment, 1 relevant, 1 target"


def test_what_holds_of_judgments_and_run_is_said_once(tmp_path):
    for name in ("qrels", "run"):
        (tmp_path / f"{name}.json").write_text('{"q1": ["a", "b"]}')
    said = sy.evaluate(tmp_path / "qrels.json", tmp_path / "run.json", "RR").coverage
    assert str(said).count("Lists of ids may be ranked lists or relevant documents.") == 1
