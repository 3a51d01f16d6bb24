"""Every layout that Dataset.read knows, on small examples."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from needs import import_peer
from steelyard.datasets import Dataset
from steelyard.errors import InputError


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def trio(tmp_path: Path) -> Path:
    folder = tmp_path / "trio"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        lines(
            {"_id": "d1", "title": "Scales", "text": "A balance.", "links": ["d2"], "group": "g", "url": "u"},
            {"id": 2, "text": "A boat.", "metadata": {"year": 1900}},
            {"_id": "d3", "title": None, "text": "A rope."},
        )
    )
    (folder / "queries.jsonl").write_text(
        lines(
            {"_id": "q1", "text": "weighing", "type": "easy"},
            {"_id": "q2", "query": "rowing", "metadata": {"type": "hard"}},
            {"_id": "q3", "text": "mooring"},
        )
    )
    return folder


def test_records_keep_all_fields(trio: Path) -> None:
    (trio / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\ttarget\nq1\td1\t2\tx\nq2\t2\t1\t\nq2\td3\t-1\t\n")
    dataset = Dataset.read(trio)
    assert dict(dataset.corpus) == {"d1": "Scales\nA balance.", "2": "A boat.", "d3": "A rope."}
    assert dict(dataset.corpus.titles) == {"d1": "Scales", "2": "", "d3": ""}
    assert dataset.corpus.links is not None
    assert dict(dataset.corpus.links) == {"d1": ["d2"], "2": (), "d3": ()}
    assert dict(dataset.corpus.groups) == {"d1": "g"}
    assert dict(dataset.corpus.metadata) == {"d1": {"url": "u"}, "2": {"year": 1900}, "d3": {}}
    assert dict(dataset.queries) == {"q1": "weighing", "q2": "rowing", "q3": "mooring"}
    assert dataset.queries.column("type") == {"q1": "easy", "q2": "hard"}
    assert dataset.qrels.frame.rows() == [("q1", "d1", 2, "x"), ("q2", "2", 1, "2"), ("q2", "d3", -1, None)]
    with pytest.raises(InputError, match=r"no column 'typ'; their columns: type. Did you mean type\?"):
        dataset.queries.column("typ")


def test_splits(trio: Path) -> None:
    (trio / "qrels").mkdir()
    (trio / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (trio / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq2\t2\t1\nq3\td3\t1\n")
    test = Dataset.read(trio)
    assert list(test.queries) == ["q1"]
    assert list(map(str, test.notes)) == [
        "the qrels of split 'test' were read; there are also train (split=...)",
        "2 queries without judgments dropped (unjudged='keep' keeps them)",
    ]
    assert list(Dataset.read(trio, split="train").queries) == ["q2", "q3"]
    assert list(Dataset.read(trio, split="train", unjudged="keep").queries) == ["q1", "q2", "q3"]
    with pytest.raises(
        InputError, match=r"no qrels for split 'trian'; the splits are test, train. Did you mean train\?"
    ):
        Dataset.read(trio, split="trian")
    (trio / "qrels" / "test.tsv").rename(trio / "qrels" / "dev.tsv")
    with pytest.raises(InputError, match=r"there are qrels for dev, train and none for test; select one"):
        Dataset.read(trio)


def test_files_of_other_names_and_formats(trio: Path) -> None:
    (trio / "gold.trec").write_text("q1 0 d1 1\nq2 0 2 2\n")
    (trio / "corpus.jsonl").rename(trio / "docs.jsonl")
    dataset = Dataset.read(trio, format="beir", corpus="docs.jsonl", qrels="gold.trec")
    assert dataset.qrels.frame.rows() == [("q1", "d1", 1, "d1"), ("q2", "2", 2, "2")]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_files(trio: Path, ending: str) -> None:
    (trio / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    plain = Dataset.read(trio)
    for path in sorted(trio.iterdir()):
        if ending == ".zst":
            packed = import_peer("zstandard").ZstdCompressor().compress(path.read_bytes())
        else:
            packed = gzip.compress(path.read_bytes())
        path.with_name(path.name + ending).write_bytes(packed)
        path.unlink()
    assert Dataset.read(trio) == plain


def test_a_header_alone_is_empty_qrels(trio: Path) -> None:
    (trio / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n")
    dataset = Dataset.read(trio)
    assert (len(dataset.qrels), len(dataset.queries)) == (0, 3)


def test_multihop_rag_articles_are_found_by_url_and_by_title(tmp_path: Path) -> None:
    questions = [
        {
            "query": "Both?",
            "question_type": "comparison_query",
            "evidence_list": [
                {"url": "http://a", "title": "changed since", "fact": "x"},
                {"title": "Second  article", "fact": "y"},
                {"url": "http://a", "fact": "z"},
            ],
        },
        {"query": "None?", "question_type": "null_query", "evidence_list": []},
        {"query": "Gone?", "question_type": "inference_query", "evidence_list": [{"url": "http://c", "fact": "w"}]},
    ]
    articles = [
        {"title": "First", "url": "http://a", "body": "one", "source": "S"},
        {"title": "Second article", "url": "http://b", "body": "two"},
    ]
    (tmp_path / "MultiHopRAG.json").write_text(json.dumps(questions))
    (tmp_path / "corpus.json").write_text(json.dumps(articles))
    dataset = Dataset.read(tmp_path)
    assert dict(dataset.corpus) == {"http://a": "First\none", "http://b": "Second article\ntwo"}
    assert dataset.corpus.metadata["http://a"] == {"source": "S", "url": "http://a"}
    assert dataset.qrels.frame.select("query_id", "doc_id").rows() == [
        ("0", "http://a"),
        ("0", "http://b"),
        ("1", None),
        ("2", "http://c"),
    ]
    assert str(dataset.notes[0]) == "1 piece of evidence names an article that is not in the corpus"
    assert dataset == Dataset.read(tmp_path / "MultiHopRAG.json")


def test_llama_index(tmp_path: Path) -> None:
    content = {
        "queries": {"q1": "Why?", "q2": "How?"},
        "corpus": {"n1": "Because.", "n2": "So."},
        "relevant_docs": {"q1": ["n1"], "q2": ["n2", "n1"]},
        "mode": "text",
    }
    path = tmp_path / "val_dataset.json"
    path.write_text(json.dumps(content))
    dataset = Dataset.read(path)
    assert dataset.name == "val_dataset"
    assert dict(dataset.corpus) == content["corpus"]
    assert dict(dataset.queries) == content["queries"]
    assert dataset.qrels.frame.select("query_id", "doc_id").rows() == [("q1", "n1"), ("q2", "n2"), ("q2", "n1")]


def test_ms_marco(tmp_path: Path) -> None:
    (tmp_path / "collection.tsv").write_text('0\tA "quoted passage.\n1\tAnother.\n')
    (tmp_path / "queries.dev.small.tsv").write_text("11\tfirst question\n12\tnever judged\n")
    (tmp_path / "qrels.dev.small.tsv").write_text("11\t0\t1\t1\n")
    dev = Dataset.read(tmp_path)
    assert dict(dev.corpus) == {"0": 'A "quoted passage.', "1": "Another."}
    assert dict(dev.queries) == {"11": "first question"}
    assert dev.qrels.frame.rows() == [("11", "1", 1, "1")]
    (tmp_path / "queries.train.tsv").write_text("12\tnever judged\n")
    (tmp_path / "qrels.train.tsv").write_text("12\t0\t0\t1\n")
    assert dict(Dataset.read(tmp_path, split="train").queries) == {"12": "never judged"}
    with pytest.raises(InputError, match=r"there are qrels for dev\.small, train; select one \(split=...\)"):
        Dataset.read(tmp_path)
    with pytest.raises(InputError, match=r"no qrels for split 'dev'; the splits are dev\.small, train"):
        Dataset.read(tmp_path, split="dev")


def test_ms_marco_documents(tmp_path: Path) -> None:
    (tmp_path / "msmarco-docs.tsv").write_text("D1\thttp://a\tTitle\tBody.\nD2\thttp://b\t.\tOther.\n")
    (tmp_path / "queries.tsv").write_text("1\tquestion\n")
    (tmp_path / "qrels.tsv").write_text("1 0 D1 1\n")
    dataset = Dataset.read(tmp_path)
    assert dataset.corpus["D1"] == "Title\nBody."
    assert dataset.corpus.metadata["D1"] == {"url": "http://a"}


class TestTable:
    def write(self, folder: Path, text: str, name: str = "faq.csv") -> Path:
        path = folder / name
        path.write_text(text)
        return path

    def test_rest_is_every_column_without_another_role(self, tmp_path: Path) -> None:
        path = self.write(
            tmp_path, "id,ask,answer,note,wrong,kind\na,how,by hand,,\"['b']\",x\nb,why,because,indeed,,y\n"
        )
        dataset = Dataset.read(path, queries="ask", distractors="wrong", columns=["kind"])
        assert dict(dataset.corpus) == {"a": "by hand", "b": "because indeed"}
        assert dict(dataset.queries) == {"a-1": "how", "b-1": "why"}
        assert dataset.queries.column("kind") == {"a-1": "x", "b-1": "y"}
        assert dataset.qrels.frame.rows() == [("a-1", "a", 1, "a"), ("a-1", "b", -1, None), ("b-1", "b", 1, "b")]

    def test_cells_are_joined_by_the_separator(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "id,q1,q2,text\na,x,,\nb,,y,t\n")
        dataset = Dataset.read(path, queries=["q1", "q2"], document="all", empty="nan", separator=" | ")
        assert dict(dataset.corpus) == {"a": "a | x | nan | nan", "b": "b | nan | y | t"}
        assert dict(dataset.queries) == {"a-1": "x", "b-1": "y"}

    def test_rows_of_one_text_are_one_document(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "question\tcontext\nfirst?\tsame\nsecond?\tsame\nthird?\tother\n", "qa.tsv")
        dataset = Dataset.read(path, queries="question", document="context")
        assert dict(dataset.corpus) == {"0": "same", "2": "other"}
        assert dict(dataset.queries) == {"0-1": "first?", "0-2": "second?", "2-1": "third?"}
        assert list(map(str, dataset.notes)) == [
            "no column holds ids: documents have the numbers of their rows, from 0",
            "1 row repeats the text of an earlier one and is the same document",
        ]

    def test_a_column_may_name_the_relevant_documents(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, 'id,ask,text,gold\na,x,A,"[[""b"", ""c""], [""a""]]"\nb,,B,\nc,,C,\n')
        dataset = Dataset.read(path, queries="ask", document="text", relevant="gold")
        assert dataset.qrels.frame.rows() == [("a-1", "b", 1, "1"), ("a-1", "c", 1, "1"), ("a-1", "a", 1, "2")]

    def test_header_names_may_be_written_with_other_white_space(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, 'id,"Item\n(short)",ask\na,text,x\n')
        dataset = Dataset.read(path, queries="ask", document="Item (short)")
        assert dict(dataset.corpus) == {"a": "text"}

    def test_a_distractor_that_is_the_row_itself_is_reported(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "id,ask,text,wrong\na,x,A,\"['a', 'b']\"\nb,,B,\n")
        dataset = Dataset.read(path, queries="ask", document="text", distractors="wrong")
        assert dataset.qrels.frame.rows() == [("a-1", "a", 1, "a"), ("a-1", "b", -1, None)]
        (finding,) = dataset.findings
        assert (finding.kind, finding.items) == ("relevant-distractor", (("a-1", "a"),))

    def test_wrong_options_and_cells(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, 'id,ask,text,wrong\na,x,A,"[\'b\'"\n,y,B,"{\'b\'}]"\nc,z,C,"[b]"\n')
        with pytest.raises(
            InputError, match=r"name the columns that hold queries \(queries=...\). The columns are id, ask"
        ):
            Dataset.read(path)
        with pytest.raises(InputError, match=r"no column 'asks' \(queries\).*Did you mean ask\?"):
            Dataset.read(path, queries="asks")
        with pytest.raises(InputError, match=r"expected the name of a column, or a list of names"):
            Dataset.read(path, queries={"ask": 1})
        with pytest.raises(InputError) as caught:
            Dataset.read(path, queries="ask", distractors="wrong")
        assert "2 rows not as expected" in str(caught.value)
        assert "row 2: id (id) is empty" in str(caught.value)
        assert "row 3: a cell does not hold a list: '[b]'" in str(caught.value)


class Doc(NamedTuple):
    doc_id: str
    text: str


class TitledDoc(NamedTuple):
    doc_id: str
    title: str
    abstract: str


class Page(NamedTuple):
    doc_id: str
    parts: tuple[str, ...]

    def default_text(self) -> str:
        return " ".join(self.parts)


class Query(NamedTuple):
    query_id: str
    text: str


class Judgment(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    subtopic_id: str


class Source:
    def __init__(self, documents: list[Any], judged: bool = True) -> None:
        self.documents = documents
        self.judged = judged

    def has_docs(self) -> bool:
        return True

    has_queries = has_docs

    def has_qrels(self) -> bool:
        return self.judged

    def docs_iter(self) -> Iterator[Any]:
        return iter(self.documents)

    def queries_iter(self) -> Iterator[Query]:
        return iter([Query("1", "one"), Query("2", "two")])

    def qrels_iter(self) -> Iterator[Judgment]:
        return iter([Judgment("1", "a", 2, "s1"), Judgment("1", "b", 0, "s1")])


def test_ir_datasets_by_id(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "toy/test": Source([Doc("a", "text"), TitledDoc("b", "Title", "Abstract"), Page("c", ("x", "y"))]),
        "toy": Source([], judged=False),
    }
    fake = ModuleType("ir_datasets")
    fake.load = known.__getitem__  # type: ignore[attr-defined]
    fake.registry = known  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ir_datasets", fake)
    dataset = Dataset.read("ir_datasets:toy/test")
    assert dataset.name == "toy/test"
    assert dict(dataset.corpus) == {"a": "text", "b": "Title\nAbstract", "c": "x y"}
    assert dict(dataset.queries) == {"1": "one"}
    assert dataset.qrels.frame.rows() == [("1", "a", 2, "s1"), ("1", "b", 0, "s1")]
    assert Dataset.read("toy/test", format="ir_datasets") == dataset
    with pytest.raises(InputError, match=r"ir_datasets has no dataset 'toy/tset'. Did you mean toy/test"):
        Dataset.read("ir_datasets:toy/tset")
    with pytest.raises(InputError, match="ir_datasets:toy has no qrels"):
        Dataset.read("ir_datasets:toy")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(InputError, match="pip install ir_datasets"):
        Dataset.read("ir_datasets:toy/test")


def test_a_folder_whose_qrels_are_elsewhere(trio: Path, tmp_path: Path) -> None:
    (trio / "qrels.tsv").write_text("not a qrels table\n")
    bare = Dataset.read(trio, judged=False)
    assert (len(bare.queries), len(bare.qrels)) == (3, 0)
    (trio / "named.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert len(Dataset.read(trio, judged=False, qrels="named.tsv").qrels) == 1, "a file that is named is read"
    (tmp_path / "collection.tsv").write_text("0\tA passage.\n")
    (tmp_path / "queries.tsv").write_text("7\twhat?\n")
    assert list(Dataset.read(tmp_path, judged=False, format="msmarco").queries) == ["7"]
    with pytest.raises(InputError, match="there is no qrels.tsv"):
        Dataset.read(tmp_path, format="msmarco")
