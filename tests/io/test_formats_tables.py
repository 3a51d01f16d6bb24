"""CSV, TSV, BEIR and Parquet tables: columns by name, ids as text, wrong rows reported."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from steelyard.errors import InputError
from steelyard.io import sniff
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.run import Run


def put(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


@pytest.mark.parametrize(
    "header",
    ["query_id,doc_id,score", "qid,docid,score", "q_id,docno,similarity", "Query-ID,corpus-id,Score", "topic,pid,sim"],
)
def test_usual_names(file: Path, header: str) -> None:
    run = Run.read(put(file, f"{header}\n007,d1,1.5\n007,d2,2.5\n"))
    assert run == Run({"007": {"d2": 2.5, "d1": 1.5}})
    assert sniff(file).format == "csv"


def test_quoted_ids_with_spaces_commas_and_line_ends(file: Path) -> None:
    put(file, 'query_id,doc_id,relevance\n"who, me?","a ""big""\ndoc",1\nplain query,d 2,0\n')
    assert Qrels.read(file) == Qrels({"who, me?": {'a "big"\ndoc': 1}, "plain query": {"d 2": 0}})


def test_windows_ends_and_byte_order_mark(file: Path) -> None:
    put(file, "\ufeffqid\tdocno\trel\r\nq1\td1\t2\r\n")
    assert Qrels.read(file) == Qrels({"q1": {"d1": 2}})


def test_columns_by_name(file: Path) -> None:
    put(file, "question;x,passage,how good\nq1,d1,3\n")
    qrels = Qrels.read(file, query_id="question;x", doc_id="passage", grade="how good")
    assert qrels == Qrels({"q1": {"d1": 3}})
    with pytest.raises(InputError, match=r"no column 'pasage' for doc_id.*Did you mean passage\?"):
        Qrels.read(file, query_id="question;x", doc_id="pasage")
    with pytest.raises(InputError, match="has no role 'doc' to name a column for"):
        Qrels.read(file, query_id="question;x", doc_id="passage", doc="passage")


def test_a_table_without_grades_lists_relevant_documents(file: Path) -> None:
    qrels = Qrels.read(put(file, "qid,docid\nq1,d1\n"))
    assert qrels == Qrels({"q1": ["d1"]})
    assert qrels.notes[-1] == note("no-grades")


RANKED = "qid,docid,rank,score\nq1,b,2,9\nq1,a,1,5\nq2,b,1,9\n"


def test_scores_are_used_before_ranks_with_a_note(file: Path) -> None:
    run = Run.read(put(file, RANKED))
    assert not run.ordered
    assert run.frame.filter(query_id="q1")["doc_id"].to_list() == ["b", "a"]
    assert run.notes[-1] == note("ranks-ignored", column="rank", queries=1)
    assert not Run.read(put(file, RANKED.replace("q1,b,2", "q1,b,0"))).notes


def test_ranks_order_a_run_where_they_are_named_or_alone(file: Path) -> None:
    for run in (
        Run.read(put(file, RANKED), rank="rank"),
        Run.read(put(file, RANKED.replace("rank", "own_rank"))),
        Run.read(put(file, "qid,docid,rank\nq1,b,2\nq1,a,1\n")),
    ):
        assert run.ordered
        assert run.frame.filter(query_id="q1")["doc_id"].to_list() == ["a", "b"]
        assert not run.notes


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_retrievers_own_order_comes_back_with_its_scores(tmp_path: Path, suffix: str) -> None:
    run = Run({"q1": [("a", 1.0), ("b", 2.0), ("c", 2.0)]})
    run.write(tmp_path / f"run.{suffix}")
    again = Run.read(tmp_path / f"run.{suffix}")
    assert again.ordered
    assert again.frame.equals(run.frame)


def test_a_frame_holds_each_query_in_one_piece_in_the_order_they_came(file: Path) -> None:
    run = Run.read(put(file, "query_id,doc_id,score\nb,d1,1\na,d1,9\nb,d2,5\na,d2,3\n"))
    assert run.frame.select("query_id", "doc_id", "rank").rows() == [
        ("b", "d2", 1),
        ("b", "d1", 2),
        ("a", "d1", 1),
        ("a", "d2", 2),
    ]
    assert Run(run.frame).frame.equals(run.frame)


def test_an_empty_list_is_a_row_without_a_document(file: Path) -> None:
    run = Run.read(put(file, "qid,docid,score\nq1,d1,2\nq2,,\n"))
    assert run.queries == ["q1", "q2"]
    assert len(run) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("q1,d1,1\nq2,d2\n", "line 3: 2 columns, and the header has 3"),
        ("q1,d1,1\nq2,d2,1,extra\n", "line 3: 4 columns, and the header has 3"),
        ("q1,d1,1\nq2,,5\n", "row 2: query 'q2', document None, score 5.0"),
        ("q1,d1,1\n,d2,5\n", "(query_id) is empty in 1 row"),
        ("q1,d1,1\nq2,d2,high\n", "row 2: 'high'"),
        ("q1,d1,1\nq2,d2,nan\n", "row 2: query 'q2', document 'd2', score nan"),
        ("q1,d1,1\nq2,d2,\n", "row 2: query 'q2', document 'd2', score None"),
        ("", "a header line and nothing else"),
    ],
)
def test_wrong_rows_of_a_run(file: Path, rows: str, message: str) -> None:
    put(file, "qid,docid,score\n" + rows)
    with pytest.raises(InputError) as caught:
        Run.read(file)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_a_judgment_without_a_grade(file: Path) -> None:
    with pytest.raises(InputError, match="1 judgment has no grade"):
        Qrels.read(put(file, "qid,docid,rel\nq1,d1,1\nq1,d2,\n"))


def test_disagreement_names_the_file(file: Path) -> None:
    with pytest.raises(InputError, match=r"file: 1 judgment disagrees") as caught:
        Qrels.read(put(file, "qid,docid,rel\nq1,d1,1\nq1,d1,2\n"))
    assert "query 'q1', document 'd1': graded 1 and 2" in str(caught.value)


class TestBeir:
    def test_header_and_target(self, file: Path) -> None:
        put(file, "query-id\tcorpus-id\tscore\ttarget\nq1\td1\t1\tfirst\nq1\td2\t-1\t\n")
        assert (sniff(file).format, sniff(file).kind) == ("beir", "qrels")
        assert Qrels.read(file) == Qrels.from_rows([("q1", "d1", 1, "first"), ("q1", "d2", -1, None)])

    def test_written_as_beir_reads_it(self, file: Path) -> None:
        Qrels({"1": {"a": 2}}).write(file, "beir")
        assert file.read_text() == "query-id\tcorpus-id\tscore\n1\ta\t2\n"

    def test_a_run_under_the_same_header(self, file: Path) -> None:
        put(file, "query-id\tcorpus-id\tscore\nq1\td1\t0.75\nq1\td2\t0.5\n")
        assert Run.read(file) == Run({"q1": {"d1": 0.75, "d2": 0.5}})
        assert Qrels.read(file).notes[0] == note("beir-header-with-fractions")


class TestParquet:
    def test_number_ids_are_text_with_a_note(self, file: Path) -> None:
        pl.DataFrame({"qid": [1, 1], "docid": [10, 11], "score": [2.0, 1.0]}).write_parquet(file)
        run = Run.read(file)
        assert run == Run({"1": {"10": 2.0, "11": 1.0}})
        assert run.notes == (note("ids-are-numbers", role="query_id"), note("ids-are-numbers", role="doc_id"))

    def test_float_ids_are_refused(self, file: Path) -> None:
        pl.DataFrame({"qid": [1.5], "docid": ["a"], "score": [2.0]}).write_parquet(file)
        with pytest.raises(InputError, match="expected text or whole numbers"):
            Run.read(file)

    def test_cut_short(self, file: Path) -> None:
        pl.DataFrame({"qid": ["1"], "docid": ["a"], "score": [2.0]}).write_parquet(file)
        file.write_bytes(file.read_bytes()[:-20])
        with pytest.raises(InputError, match="cannot be read as one"):
            Run.read(file)

    def test_a_table_of_lists(self, file: Path) -> None:
        frame = pl.DataFrame({"query_id": ["q1", "q2"], "docs": [["a", "b"], []], "scores": [[0.5, 0.25], []]})
        frame.write_parquet(file)
        run = Run.read(file)
        assert run == Run({"q1": [("a", 0.5), ("b", 0.25)]})
        assert run.queries == ["q1", "q2"]
        frame.rename({"docs": "mine"}).write_parquet(file)
        assert Qrels.read(file, doc_id="mine") == Qrels({"q1": ["a", "b"], "q2": []})

    def test_a_corpus_is_neither(self, file: Path) -> None:
        pl.DataFrame({"doc_id": ["a"], "contents": ["text"]}).write_parquet(file)
        with pytest.raises(InputError, match="no columns hold query and document; the columns are doc_id, contents"):
            Qrels.read(file)


@pytest.mark.parametrize("topic", ["topic", "topic_id"])
def test_questions_of_one_topic_are_several_queries(tmp_path, topic):
    header = f"{topic},question_id,doc_id"
    (tmp_path / "r.csv").write_text(f"{header},score\nt1,q1,d1,2\nt1,q2,d1,1\n")
    (tmp_path / "q.csv").write_text(f"{header},grade\nt1,q1,d1,1\nt1,q2,d2,1\n")
    assert list(Run.read(tmp_path / "r.csv").queries) == ["q1", "q2"]
    assert list(Qrels.read(tmp_path / "q.csv").queries) == ["q1", "q2"]
    listed = {topic: "t1", "question_id": "q1", "results": ["d1"]}
    assert list(Run([listed, listed | {"question_id": "q2"}]).queries) == ["q1", "q2"]
