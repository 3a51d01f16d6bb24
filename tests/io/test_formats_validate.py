"""Findings of `validate`, and `convert`."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.io import Converted, convert, validate_file
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.run import Run


def found(path: Path, severity: str) -> list[str]:
    return [finding.text for finding in validate_file(path).findings if finding.severity == severity]


class TestRuns:
    def test_a_clean_run(self, file: Path) -> None:
        file.write_text("q1 Q0 d1 1 2.0 bm25\nq1 Q0 d2 2 1.0 bm25\nq2 Q0 d1 1 2.0 bm25\n")
        report = validate_file(file)
        assert report.ok
        assert (report.kind, report.format) == ("run", "trec-run")
        assert str(report) == (
            f"{file}: a run, format trec-run\n"
            "  run 'bm25': 2 queries, 3 documents\n"
            "  documents per query: 1 to 2, median 1.5"
        )

    def test_everything_at_once(self, file: Path) -> None:
        file.write_text("q1 Q0 d1 1 1.0 t\nq1 Q0 d2 2 3.0 t\nq1 Q0 d1 3 0.5 t\nq1 Q0 d4 4 0.5 t\n# c\n")
        warnings = found(file, "warning")
        assert "1 document is repeated in the same list (as query 'q1', document 'd1')" in warnings
        assert any(
            text.startswith("2 documents have the same score as another in their list, in 1 query") for text in warnings
        )
        assert any(
            text.startswith("the rank column gives another order than the scores in 1 query") for text in warnings
        )
        assert "1 comment line (#) skipped" in found(file, "info")
        assert validate_file(file).ok

    def test_empty_answers_and_blank_ids(self, file: Path) -> None:
        file.write_text('{"q1": ["a ", "b"], "q2": []}')
        warnings = found(file, "warning")
        assert "1 query has an empty list" in warnings
        assert any("starts or ends with white space, as 'a '" in text for text in warnings)

    def test_scores_against_the_order(self, file: Path) -> None:
        file.write_text('{"q1": [["a", 1.5], ["b", 2.5]]}')
        assert found(file, "warning") == [
            "scores increase within the order of the run in 1 query (as query 'q1', document 'b')"
        ]

    def test_no_documents(self, file: Path) -> None:
        file.write_text('{"q1": [], "q2": []}')
        assert "no documents" in [f.text for f in validate_file(file, "json", "run").findings]


class TestJudgments:
    def test_grades_and_queries_without(self, file: Path) -> None:
        file.write_text("q1 0 d1 2\nq1 0 d2 -1\nq2 0 d1 0\nq2 0 d1 0\n")
        assert found(file, "warning") == ["1 query without a relevant document (as q2)"]
        assert found(file, "info") == [
            "1 judgment given twice with the same grade was merged",
            "2 queries, 3 judgments, 1 relevant",
            "grades: -1 (1), 0 (1), 2 (1)",
        ]

    def test_empty_queries_and_fractions(self, file: Path) -> None:
        file.write_text("qid,docid,grade\nq1,d1,0.5\nq2,,\n")
        assert found(file, "warning") == [
            "1 query without a judgment (as q2)",
            "1 query with grades above 0, but all below 1: not relevant without rel (as q1)",
            "some grades are not whole numbers: are these grades, or the scores of a run?",
        ]

    def test_a_wrong_file_is_a_finding(self, file: Path) -> None:
        file.write_text("q1 0 d1 2\nq1 0 d1 1\n")
        report = validate_file(file)
        assert not report.ok
        assert (report.kind, report.format) == ("qrels", "trec-qrels")
        assert "  error: 1 judgment disagrees" in str(report)

    def test_an_unreadable_file_is_a_finding(self, file: Path) -> None:
        report = validate_file(file)
        assert (report.ok, report.kind) == (False, None)
        assert str(report) == f"{file}: not readable\n  error: there is no such file."

    def test_a_file_that_holds_both(self, file: Path) -> None:
        file.write_text('[{"id": "q1", "retrieved_context_ids": ["a"], "reference_context_ids": ["b"]}]')
        report = validate_file(file)
        assert (report.kind, report.format) == ("both", "ragas")
        assert "1 query, 1 judgment, 1 relevant" in str(report)
        assert "run 'file': 1 query, 1 document" in str(report)


class TestConvert:
    def test_a_run(self, tmp_path: Path) -> None:
        before, after = tmp_path / "a.trec", tmp_path / "b.jsonl.gz"
        before.write_text("q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\n# c\n")
        done = convert(before, after)
        assert done == Converted("run", "trec-run", "jsonl", 1, 2, (note("comments-skipped", count=1),))
        assert Run.read(after) == Run.read(before)
        assert str(done).splitlines()[0] == "run, trec-run to jsonl: 1 query, 2 documents"

    def test_judgments(self, tmp_path: Path) -> None:
        before, after = tmp_path / "a", tmp_path / "qrels.tsv"
        before.write_text("q1 0 d1 1\n")
        assert convert(before, after).after == "beir"
        assert after.read_text() == "query-id\tcorpus-id\tscore\nq1\td1\t1\n"

    def test_ambiguous_content_follows_the_request(self, tmp_path: Path) -> None:
        before = tmp_path / "lists.json"
        before.write_text('{"q1": ["a", "b"]}')
        assert convert(before, tmp_path / "x", to_format="trec-qrels").kind == "qrels"
        assert Qrels.read(tmp_path / "x") == Qrels({"q1": ["a", "b"]})
        converted = convert(before, tmp_path / "x.run")
        assert converted.kind == "run"
        assert converted.notes[-1] == note("scores-made-from-ranks")
        assert (tmp_path / "x.run").read_text() == "q1 Q0 a 1 2.0 lists\nq1 Q0 b 2 1.0 lists\n"
        assert convert(before, tmp_path / "y.json", kind="qrels").kind == "qrels"

    def test_what_is_lost_is_reported_or_refused(self, tmp_path: Path) -> None:
        before = tmp_path / "run.json"
        before.write_text('{"q1": {"a": 1.5}, "q2": {}}')
        with pytest.raises(InputError, match="1 query has no documents, which a trec-run file cannot express"):
            convert(before, tmp_path / "run.trec")
        before.write_text('{"q1": {"a": 1.5}}')
        lossy = convert(before, tmp_path / "run.tsv", to_format="msmarco")
        assert lossy.notes[-1] == note("scores-dropped", format="msmarco")

    def test_queries_without_documents_are_dropped_on_request_and_reported(self, tmp_path: Path) -> None:
        before = tmp_path / "run.json"
        before.write_text('{"q0": {}, "q1": {"a": 1.5}, "q2": {}}')
        done = convert(before, tmp_path / "run.trec", drop_empty=True)
        assert (done.queries, done.rows) == (1, 1)
        assert str(done.notes[-1]) == "2 queries without documents were dropped ('q0', 'q2')"
        assert Run.read(tmp_path / "run.trec").queries == ["q1"]
        assert Run.read(before).queries == ["q0", "q1", "q2"]
        targets = {"q0": [], "q1": [["a", "b"], ["c"]], "q2": [], "q3": [["d"]]}
        Qrels(targets).write(tmp_path / "qrels.jsonl")
        done = convert(tmp_path / "qrels.jsonl", tmp_path / "qrels.tsv", drop_empty=True)
        assert (done.queries, done.rows) == (2, 4)
        kept = Qrels.read(tmp_path / "qrels.tsv")
        assert kept == Qrels({query: judged for query, judged in targets.items() if judged})
        assert "dropped" not in str(convert(tmp_path / "qrels.tsv", tmp_path / "b.json", drop_empty=True))

    def test_named_columns_decide_what_a_table_holds(self, tmp_path: Path) -> None:
        before = tmp_path / "a.csv"
        before.write_text("q,d,label\nq1,a,1\n")
        named = {"query_id": "q", "doc_id": "d"}
        assert convert(before, tmp_path / "x.trec", columns=named).kind == "qrels"
        assert convert(before, tmp_path / "x.trec", columns={**named, "score": "label"}).kind == "run"
        assert validate_file(before, columns={**named, "score": "label"}).kind == "run"
        assert not validate_file(before, columns={**named, "score": "labl"}).ok

    def test_formats_named(self, tmp_path: Path) -> None:
        before = tmp_path / "a"
        before.write_text("q1 0 d1 1\nq1 1 d2 1\n")
        assert convert(before, tmp_path / "b.csv", from_format="trec-diversity").before == "trec-diversity"
        assert Qrels.read(tmp_path / "b.csv").has_targets
        with pytest.raises(InputError, match="format 'autorag' cannot write qrels"):
            convert(before, tmp_path / "c", to_format="autorag")
