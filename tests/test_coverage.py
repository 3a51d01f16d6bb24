"""Coverage: the counts of a run, and its notes."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.coverage import id_difference, like_distances, unknown_documents_note
from steelyard.errors import InputError, MeasureError
from steelyard.io import validate_file

QRELS = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
LISTS = {"q1": ["a"], "q2": []}


def forms(tmp_path):
    """The same lists as a mapping, as JSON, as a table with a row that names no document, and as JSON lines."""
    run = sy.Run(LISTS, name="run")
    yield run
    for suffix in ("json", "csv", "parquet", "jsonl"):
        run.write(tmp_path / f"run.{suffix}")
        yield sy.Run.read(tmp_path / f"run.{suffix}")


def test_an_empty_list_is_counted_in_every_format(tmp_path):
    for run in forms(tmp_path):
        scores = sy.evaluate(QRELS, run, ["RR", "NumQ"])
        assert (scores.coverage.answered, scores.coverage.missing, scores.coverage.empty) == (2, 1, 1)
        assert "1 query has an empty list and scores 0." in str(scores.coverage)
        assert scores.to_dict()["coverage"]["empty"] == 1
        assert scores["RR"] == pytest.approx(1 / 3)


def test_an_empty_list_counts_where_missing_queries_are_skipped(tmp_path):
    for run in forms(tmp_path):
        scores = sy.evaluate(QRELS, run, "recip_rank", dialect="trec_eval-9")
        assert scores.means == {"recip_rank": 0.5}
        assert (
            "1 query has an empty list and scores 0 (missing queries are skipped, but an empty list is an answer; "
            "a TREC file cannot store one)."
        ) in str(scores.coverage)
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 1 run\n")
    from_trec = sy.evaluate(QRELS, tmp_path / "run.trec", "recip_rank", dialect="trec_eval-9")
    assert (from_trec.means, from_trec.coverage.empty) == ({"recip_rank": 1.0}, 0)
    assert "empty list" not in str(from_trec.coverage)


def test_explain_mentions_empty_lists_where_missing_queries_are_skipped():
    assert "one with an empty list is not" in sy.explain("map", dialect="trec_eval-9")
    assert "empty list is not" not in sy.explain("nDCG@10")


def test_skipped_queries_do_not_score_0():
    qrels = {"q1": {"a": 1}, "q2": {"a": 0}, "q3": {"a": 0}}
    skipped = sy.evaluate(qrels, {"q1": ["a"], "q2": ["a"]}, "AP", missing="skip").coverage
    assert "left out. 1 query has no relevant document and scores 0." in str(skipped)
    assert sy.evaluate(qrels, {"q1": ["a"], "q2": ["a"]}, "AP").coverage.no_relevant == 2


def test_precision_of_short_lists_is_one_note():
    scores = sy.evaluate({"q1": {"a": 1}}, {"q1": ["a"]}, ["P@5", "P@10", "P@1", "AP"])
    assert "No list has more than 1 document, so P@5 cannot exceed 0.2 and P@10 0.1." in str(scores.coverage)


def test_singular_and_plural():
    scores = sy.evaluate({"q1": ["a"]}, {"q1": ["a"]}, "RR")
    assert str(scores.coverage) == "1 of 1 query answered, 1 document."
    assert repr(scores).splitlines()[0] == "Scores of 'run' over 1 query"
    unjudged = sy.evaluate({"q1": ["a"]}, {"q1": ["a", "x"]}, "RR").coverage
    assert "1 of 2 documents (50%) is unjudged." in str(unjudged)
    assert repr(sy.Run({"q1": ["x"]})) == "Run 'run': 1 query, 1 document"
    assert repr(sy.Qrels({"q1": [["a"]]})) == "Qrels: 1 query, 1 judgment, 1 relevant, 1 target"


def test_a_note_on_both_qrels_and_run_is_shown_once(tmp_path):
    for name in ("qrels", "run"):
        (tmp_path / f"{name}.json").write_text('{"q1": ["a", "b"]}')
    said = sy.evaluate(tmp_path / "qrels.json", tmp_path / "run.json", "RR").coverage
    assert str(said).count("Lists of ids may be ranked lists or relevant documents.") == 1


def test_a_repeat_is_neither_judged_nor_unjudged():
    """u, u, a, a: two different documents, one of them judged, and two repeats."""
    for duplicates, places in (("hold", 4), ("collapse", 2)):
        asked = ["Judged@4", "Unjudged@4", "Judged@2", "RBPResidual(p=0.5)", "Hole@4"]
        scores = sy.evaluate({"q": {"a": 1}}, {"q": ["u", "u", "a", "a"]}, asked, duplicates=duplicates)
        assert scores["Judged@4"] == scores["Unjudged@4"] == 0.5
        counts = scores.coverage.counts()
        assert (counts["documents"], counts["unjudged"], counts["repeated"]) == (places, 1, 2)
        assert scores["Judged@2"] == (0 if duplicates == "hold" else 0.5)
        # The first rank is unknown, and what is below the list; a repeat gains nothing, which is known.
        assert scores["RBPResidual(p=0.5)"] == (1 / 2 + 1 / 16 if duplicates == "hold" else 1 / 2 + 1 / 4)
    assert "1 of 2 documents (50%) is unjudged" in str(scores.coverage)
    held = sy.evaluate({"q": {"a": 1}}, {"q": ["u", "u", "a", "a"]}, "AP")
    assert "1 of 2 distinct documents (50%) is unjudged" in str(held.coverage)


def test_grades_below_1_are_reported():
    qrels, run = {"q1": {"a": 0.5, "b": 0.2}, "q2": {"c": 1, "d": 0.4}}, {"q1": ["a"], "q2": ["c"]}
    scores = sy.evaluate(qrels, run, ["AP", "nDCG@3", "RR"])
    assert (
        "3 judgments have a grade above 0 but below 1, the lowest grade that AP, RR count as relevant; "
        "rel=0.2 (--set rel=0.2) includes them."
    ) in str(scores.coverage)
    assert (scores.coverage.below_rel, scores.coverage.no_relevant) == (3, 0)
    alone = sy.evaluate(qrels, run, "AP")
    assert alone.coverage.no_relevant == 1
    assert "1 query has no relevant document and scores 0" in str(alone.coverage)
    assert sy.evaluate(qrels, run, "AP", no_relevant="skip").means == {"AP": 1.0}
    for stated in (sy.evaluate(qrels, run, "AP", rel=0.2), sy.evaluate(qrels, run, "AP(rel=0.2)")):
        assert stated.means.popitem()[1] == 0.5
        counts = stated.coverage.counts()
        assert (counts["below_rel"], counts["no_relevant"], stated.coverage.notes) == (0, 0, ())


def test_queries_without_a_document_of_the_grade_that_one_measure_needs():
    qrels, run = {"q1": {"a": 2}, "q2": {"b": 1}, "q3": {"c": 1}}, {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    scores = sy.evaluate(qrels, run, ["nDCG@10", "RR(rel=2)@10", "P(rel=2)@1"])
    assert (scores.coverage.no_relevant, scores.coverage.no_relevant_strictest) == (0, 2)
    text = "2 queries have no document with grade 2 or above and score 0 on RR(rel=2)@10 and P(rel=2)@1"
    assert [str(note) for note in scores.notes] == [text]
    skipped = sy.evaluate(qrels, run, ["nDCG@10", "RR(rel=2)@10"], no_relevant="skip")
    assert skipped["RR(rel=2)@10"] == 1
    assert "2 queries have no document with grade 2 or above and are left out of RR(rel=2)@10" in str(skipped.coverage)
    scaled = sy.Qrels(qrels)
    scaled.relevant_from = 2
    for asked, told in ((["nDCG@10", "RR@10"], ["no-relevant-for-measure"]), (["RR@10"], ["no-relevant-document"])):
        assert [note.code for note in sy.evaluate(scaled, run, asked).notes] == told
    comparison = sy.compare(scaled, {"one": run, "two": run}, ["nDCG@10", "RR@10"])
    assert "no-relevant-for-measure" in {note.code for note in comparison.coverage["one"].notes}
    # No document at all has the grade: another note reports it.
    assert [note.code for note in sy.evaluate(qrels, run, ["nDCG@10", "P(rel=3)@1"]).notes] == ["no-such-grade"]


def test_no_note_on_an_explicit_relevance_level():
    scores = sy.evaluate({"q": {"a": 1}}, {"q": ["a"]}, ["AP"], rel=2)
    assert (scores.coverage.no_relevant, scores.coverage.below_rel) == (1, 0)
    assert "grade above 0" not in str(scores.coverage)


def test_graded_measures_do_not_use_rel():
    qrels, run = {"q1": {"a": 2}, "q2": {"b": 1}}, {"q1": ["a"], "q2": ["b"]}
    for policy in ("zero", "skip"):
        alone = sy.evaluate(qrels, run, "nDCG@10", rel=2, no_relevant=policy)
        assert (alone.coverage.no_relevant, alone.notes, alone["nDCG@10"]) == (0, [], 1)
        assert np.isfinite(alone.values("nDCG@10")).all()
        mixed = sy.evaluate(qrels, run, ["nDCG@10", "AP"], rel=2, no_relevant=policy)
        assert (mixed["nDCG@10"], mixed.coverage.no_relevant, mixed.coverage.no_relevant_strictest) == (1, 0, 1)
        outcome = {"zero": "scores 0 on AP", "skip": "is left out of AP"}[policy]
        assert list(map(str, mixed.notes)) == [f"1 query has no document with grade 2 or above and {outcome}"]


def test_notes_name_the_measures_that_score_0():
    qrels, run = {"q1": {"a": 0}, "q2": {"a": 0}}, {"q1": ["a"], "q2": []}
    alone = sy.evaluate(qrels, run, "Abstain")
    assert (alone["Abstain"], alone.coverage.no_relevant, alone.coverage.empty) == (0.5, 2, 1)
    assert "score" not in str(alone.coverage)
    assert "score 0." in str(sy.evaluate(qrels, run, ["RR", "Confusion@3", "NumRelRet"]).coverage)
    said = str(sy.evaluate(qrels, run, ["Abstain", "nDCG@10", "NumRet"]).coverage)
    assert "1 query has an empty list and scores 0 on nDCG@10." in said
    assert "2 queries have no relevant document and score 0 on nDCG@10." in said
    skipped = sy.evaluate(qrels, run, ["Abstain", "nDCG@10"], no_relevant="skip")
    assert "2 queries have no relevant document and are left out of nDCG@10." in str(skipped.coverage)


def test_qrels_count_relevant_documents_as_measures_do(tmp_path):
    qrels = sy.Qrels({"q1": {"a": 0.5, "b": 1}, "q2": {"c": 0.25}})
    assert repr(qrels).endswith("1 relevant, 2 graded above 0 but below 1 (relevant with rel=0.25)")
    qrels.write(tmp_path / "qrels.json")
    text = str(validate_file(tmp_path / "qrels.json", kind="qrels"))
    assert "1 query with grades above 0, but all below 1: not relevant without rel (as q2)" in text
    assert "without a relevant document" not in text


def test_scores_that_only_rise_look_like_distances():
    assert like_distances([[0.1, 0.2, 0.2, 0.4]])
    assert not like_distances([[0.1, 0.2]])
    assert not like_distances([[0.1, 0.2, 0.3, 0.1]])


def test_how_ids_differ():
    said = str(unknown_documents_note(["D1", "D7"], ["d1", "d2"]))
    assert said.startswith("no retrieved document is judged: the run has 'D1', 'D7', the qrels 'd1', 'd2'; ")
    assert said.endswith("; the ids differ only in upper and lower case")
    assert id_difference(["doc-12", "doc-7"], ["7", "8"]) == "the prefix 'doc-' of the run's ids"
    assert id_difference(["a.txt"], ["a"]) == "the suffix '.txt' of the run's ids"
    assert id_difference(["x"], ["y"]) is None


@pytest.mark.parametrize("ties", ["docid-desc", "docid-asc"])
@pytest.mark.parametrize("unjudged", ["keep", "remove"])
def test_a_tie_that_the_depth_cuts_through_is_counted(ties, unjudged):
    qrels, policies = {"q": {"a": 1, "b": 0}}, {"ties": ties, "unjudged": unjudged, "depth": 1}
    cut = sy.evaluate(qrels, {"q": {"a": 1.0, "b": 1.0}}, ["RR"], **policies)
    assert cut["RR"] == (ties == "docid-asc")
    assert cut.coverage.tie_sensitive == 1
    assert sy.evaluate(qrels, {"q": {"b": 2.0, "a": 1.0, "c": 1.0}}, ["RR"], **policies).coverage.tie_sensitive == 0


def test_a_sum_and_a_percentile_have_no_interval():
    run = sy.Run({"q1": ["a"], "q2": ["b"]}, seconds={"q1": 1.0, "q2": 9.0})
    scores = sy.evaluate(QRELS, run, ["RR", "NumRet", "Latency(stat=p95)", "Latency"])
    for measure, interval in scores.intervals().items():
        if interval is None:
            with pytest.raises(MeasureError, match="is not a mean over queries, so it has no interval"):
                scores.interval(measure)
        else:
            assert scores.interval(measure) == interval
    assert [key for key, interval in scores.intervals().items() if interval is None] == ["NumRet", "Latency(stat=p95)"]


def test_the_residual_of_rbp_is_beside_it_at_any_level_of_relevance():
    for measure, policies in (("RBP", {}), ("RBP", {"rel": 2}), ("RBP(p=0.8)", {}), ("RBP(p=0.5)", {})):
        assert list(sy.evaluate(QRELS, LISTS, [measure], **policies).means) == [measure, f"{measure} residual"]


@pytest.mark.parametrize("kind", [sy.Qrels, sy.Run])
def test_a_table_as_a_mapping_of_columns_is_refused(kind):
    columns = {"query_id": ["q1", "q2"], "doc_id": ["a", "b"], "rank": [1, 2]}
    with pytest.raises(InputError, match=r"a mapping of columns \(query_id, doc_id, rank\); expected a frame"):
        kind(columns)
    assert len(kind({"query": ["a"], "doc": ["a", "b"]}).queries) == 2
