"""Wrong files: the error names the file, the line and what was expected."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from steelyard.datasets import Corpus, Dataset, Queries
from steelyard.errors import InputError

GOOD_CORPUS = '{"_id": "d1", "text": "A balance."}\n'
GOOD_QUERIES = '{"_id": "q1", "text": "weighing"}\n'
GOOD_QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\n"


def make(folder: Path, corpus: str = GOOD_CORPUS, queries: str = GOOD_QUERIES, qrels: str = GOOD_QRELS) -> Path:
    (folder / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"_id": "d2", "text": "cut sho', "not JSON at column 23"),
        ('["d2", "text"]', "a list, not an object"),
        ('{"text": "no id"}', "no _id among the fields text"),
        ('{"_id": "d2"}', "no text among no fields at all"),
        ('{"_id": "d2", "passage": "x"}', "no text among the fields passage"),
        ('{"_id": "", "text": "x"}', "_id is empty; expected text or a whole number"),
        ('{"_id": 2.5, "text": "x"}', "_id is a float; expected text or a whole number"),
        ('{"_id": true, "text": "x"}', "_id is a bool; expected text or a whole number"),
        ('{"_id": "d2", "text": ["x"]}', "text is a list; expected text"),
        ('{"_id": "d2", "text": "x", "title": 3}', "title is a int; expected text"),
        ('{"_id": "d2", "text": "x", "links": "d1"}', "links is a str; expected a list of document ids"),
        ('{"_id": "d2", "text": "x", "links": [null]}', "a link is nothing (None); expected text"),
        ('{"_id": "d2", "text": "x", "group": ["g"]}', "group is a list; expected text"),
        ('{"_id": "d2", "text": "\\ud800"}', "holds half of a surrogate pair, which is not a character"),
        ('{"_id": "d2", "text": "x", "text": "y"}', "the name 'text' occurs twice in one JSON object"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_wrong_line_of_the_corpus(tmp_path: Path, line: str, problem: str) -> None:
    make(tmp_path, corpus=f"{GOOD_CORPUS}\n{line}\n")
    with pytest.raises(InputError) as caught:
        Dataset.read(tmp_path)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'corpus.jsonl'}: 1 line is not as expected:\n  line 3: {problem}")
    assert text.endswith('Expected one document per line, as {"_id": "d1", "title": "...", "text": "..."}.')


def test_all_wrong_lines_are_counted_and_ten_shown(tmp_path: Path) -> None:
    make(tmp_path, queries=GOOD_QUERIES + '{"text": "?"}\n' * 25)
    with pytest.raises(InputError) as caught:
        Dataset.read(tmp_path)
    text = str(caught.value)
    assert "queries.jsonl: 25 lines are not as expected" in text
    assert "line 11: " in text
    assert "line 12: " not in text
    assert "... and 15 more" in text


@pytest.mark.parametrize(
    ("qrels", "problem"),
    [
        ("query-id\tcorpus-id\tscore\nq1\td1\thigh\n", "row 1: 'high'"),
        ("query-id\tcorpus-id\tscore\nq1\td1\n", "2 columns, and the header has 3"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t2\n", "query 'q1', document 'd1': graded 1 and 2"),
        ("query-id\tcorpus-id\tscore\nq1\td1\tinf\n", "grade inf is not a finite number"),
        ("", "empty"),
    ],
)
def test_qrels_that_cannot_be_read(tmp_path: Path, qrels: str, problem: str) -> None:
    make(tmp_path, qrels=qrels)
    with pytest.raises(InputError) as caught:
        Dataset.read(tmp_path)
    assert str(tmp_path / "qrels.tsv") in str(caught.value)
    assert problem in str(caught.value)


def test_empty_and_undecodable_files(tmp_path: Path) -> None:
    make(tmp_path, corpus="\n\n")
    with pytest.raises(InputError, match=r"corpus\.jsonl: the file is empty. Expected one document per line"):
        Dataset.read(tmp_path)
    make(tmp_path)
    (tmp_path / "corpus.jsonl").write_bytes('{"_id": "d1", "text": "café"}\n'.encode("latin-1"))
    with pytest.raises(InputError, match=r"line 1: byte \d+ \(0xe9\) is not UTF-8"):
        Dataset.read(tmp_path)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder or file"):
        Dataset.read(tmp_path / "gone")
    with pytest.raises(InputError, match="unknown layout.*The folder holds nothing"):
        Dataset.read(tmp_path)
    (tmp_path / "corpus.jsonl").write_text(GOOD_CORPUS)
    with pytest.raises(InputError, match=r"there are no qrels: expected qrels.tsv.*The folder holds corpus.jsonl"):
        Dataset.read(tmp_path)
    (tmp_path / "qrels.tsv").write_text(GOOD_QRELS)
    (tmp_path / "querys.jsonl").write_text(GOOD_QUERIES)
    with pytest.raises(
        InputError, match=r"there is no queries.jsonl; the folder holds corpus.jsonl, qrels.tsv, querys.jsonl"
    ):
        Dataset.read(tmp_path)
    with pytest.raises(InputError, match="one file of a dataset in BEIR's layout; name its folder"):
        Dataset.read(tmp_path / "corpus.jsonl")
    (tmp_path / "data.bin").write_bytes(b"?")
    with pytest.raises(InputError, match=r"unknown suffix '\.bin'; name the format"):
        Dataset.read(tmp_path / "data.bin")


def test_formats_and_options_that_do_not_exist(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(InputError, match=r"unknown dataset format 'bier'.*Did you mean beir\?"):
        Dataset.read(tmp_path, format="bier")
    with pytest.raises(
        InputError, match=r"a beir dataset has no option 'splits'; its options are split.*Did you mean split\?"
    ):
        Dataset.read(tmp_path, splits="dev")
    with pytest.raises(InputError, match=r"a beir dataset has no option 'seed'"):
        Dataset.read("demo", seed=1)
    with pytest.raises(
        InputError, match=r"unjudged='dorp': expected one of keep, drop, unanswerable. Did you mean drop"
    ):
        Dataset.read(tmp_path, unjudged="dorp")


def test_autorag_tables_without_their_columns(tmp_path: Path) -> None:
    pl.DataFrame({"qid": ["q"], "query": ["?"], "gt": [["d"]]}).write_parquet(tmp_path / "qa.parquet")
    with pytest.raises(InputError, match=r"there is no corpus.parquet; name the file \(corpus=...\)"):
        Dataset.read(tmp_path)
    pl.DataFrame({"doc_id": ["d"], "contents": ["x"]}).write_parquet(tmp_path / "corpus.parquet")
    with pytest.raises(InputError, match=r"no column 'retrieval_gt'; expected qid, query, retrieval_gt"):
        Dataset.read(tmp_path)
    pl.DataFrame({"qid": ["q"], "query": ["?"], "retrieval_gt": [[1]]}).write_parquet(tmp_path / "qa.parquet")
    with pytest.raises(InputError, match="row 1: a int among the ids"):
        Dataset.read(tmp_path)
    pl.DataFrame({"qid": ["q", None], "query": ["?", "!"], "retrieval_gt": [[["d"]], []]}).write_parquet(
        tmp_path / "qa.parquet"
    )
    with pytest.raises(InputError, match=r"qid is empty in 1 row:\n  row 2"):
        Dataset.read(tmp_path)
    (tmp_path / "corpus.parquet").write_bytes((tmp_path / "corpus.parquet").read_bytes()[:40])
    (tmp_path / "qa.parquet").unlink()
    pl.DataFrame({"qid": ["q"], "query": ["?"], "retrieval_gt": [[["d"]]]}).write_parquet(tmp_path / "qa.parquet")
    with pytest.raises(InputError, match="cannot be read as one"):
        Dataset.read(tmp_path)


def test_autorag_empty_targets_are_dropped(tmp_path: Path) -> None:
    truth = [[["a", "b"], []], [[]], None, [["", "c"]]]
    frame = pl.DataFrame({"qid": [1, 2, 3, 4], "query": ["?"] * 4, "retrieval_gt": truth})
    frame.write_parquet(tmp_path / "qa.parquet")
    pl.DataFrame({"doc_id": ["a", "b", "c"], "contents": ["x", "y", None]}).write_parquet(tmp_path / "corpus.parquet")
    dataset = Dataset.read(tmp_path)
    assert dataset.qrels.queries == ["1", "2", "3", "4"]
    rows = dataset.qrels.frame.drop_nulls("doc_id").rows()
    assert rows == [("1", "a", 1, "1"), ("1", "b", 1, "1"), ("4", "c", 1, "1")]
    assert dataset.corpus["c"] == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"queries": {}, "corpus": {}}, "there is no object 'relevant_docs'"),
        ({"queries": {"q": 1}, "corpus": {"d": "x"}, "relevant_docs": {}}, "query 'q': a int, not its text"),
        ({"queries": {"q": "?"}, "corpus": {"d": "x"}, "relevant_docs": {"q": "d"}}, "not a list of document ids"),
        ({"queries": {"q": "?"}, "corpus": {"": "x"}, "relevant_docs": {}}, "the id of a document is empty"),
    ],
)
def test_wrong_llama_index_json(tmp_path: Path, content: object, problem: str) -> None:
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        Dataset.read(path)
    assert problem in str(caught.value)
    assert "EmbeddingQAFinetuneDataset.save_json" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "MultiHopRAG.json: an empty list"),
        (["question"], "entry 1: a str, not an object"),
        ([{"question": "?"}], "entry 1: query is nothing (None), not text"),
        ([{"query": "?", "evidence_list": ["fact"]}], "entry 1: evidence_list is not a list of objects"),
        ([{"query": "?", "evidence_list": [{"url": "u"}]}], "entry 1: a piece of evidence has no fact"),
    ],
)
def test_wrong_multihop_json(tmp_path: Path, content: object, problem: str) -> None:
    path = tmp_path / "MultiHopRAG.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        Dataset.read(path)
    assert problem in str(caught.value)


def test_ms_marco_lines_of_another_width(tmp_path: Path) -> None:
    (tmp_path / "collection.tsv").write_text("0\tgood\nbad\n\tno id\n1\ta\tb\n")
    (tmp_path / "queries.tsv").write_text("1\tq\n")
    (tmp_path / "qrels.tsv").write_text("1\t0\t0\t1\n")
    with pytest.raises(InputError) as caught:
        Dataset.read(tmp_path)
    assert [line.strip() for line in str(caught.value).splitlines()[1:4]] == [
        "line 2: 1 column",
        "line 3: the id is empty",
        "line 4: 3 columns",
    ]


def test_wrong_mappings() -> None:
    with pytest.raises(InputError, match="document 'd1' is a int; expected its text"):
        Corpus.of({"d1": 3})
    with pytest.raises(InputError, match="text is a int; expected text"):
        Queries.of({"q1": 3})
