"""Real datasets: counts known in advance, and the findings of validation."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from needs import shared_data
from steelyard.datasets import Dataset, validate_dataset
from steelyard.errors import InputError
from steelyard.notes import note


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judgments", "columns"),
    [
        ("scifact", 5183, 300, 339, []),
        ("cranfield", 1400, 225, 1837, ["orig_id"]),
        ("docs-rag", 232, 100, 192, ["answer"]),
        ("faq-ja", 1786, 749, 1817, []),
        ("unanswerable", 596, 600, 300, ["answerable", "answer"]),
        ("multihop-rag", 438, 500, 1153, ["question_type", "answer"]),
        ("autorag/korean", 55, 20, 20, ["generation_gt", "retrieval_gt_contents"]),
    ],
)
def test_counts(name: str, documents: int, queries: int, judgments: int, columns: list[str]) -> None:
    dataset = Dataset.read(shared_data(name))
    assert dataset.name == Path(name).name
    assert (len(dataset.corpus), len(dataset.queries), len(dataset.qrels)) == (documents, queries, judgments)
    assert sorted(dataset.queries.columns) == sorted(columns)
    assert not dataset.findings


def test_the_bundled_demo() -> None:
    demo = Dataset.read("demo")
    assert (demo.name, len(demo.corpus), len(demo.queries), len(demo.qrels)) == ("demo", 267, 115, 572)
    assert demo.corpus["index-01"].startswith("Start here: the handbook at a glance\nThe Merrin Valley")
    assert demo.corpus.links is not None
    assert "index-02" in demo.corpus.links["index-01"]
    assert len(demo.corpus.groups) == 26
    assert demo.queries.column("type")["fact-01"] == "factoid"
    assert demo.qrels.has_targets
    assert {finding.kind for finding in validate_dataset(demo)} == {"no-relevant", "unjudged-document"}


def test_a_split_is_found_by_its_file_name_and_titles_lead_the_text() -> None:
    scifact = Dataset.read(shared_data("scifact"))
    assert scifact == Dataset.read(shared_data("scifact"), split="test")
    lines = (shared_data("scifact") / "corpus.jsonl").read_text(encoding="utf-8").split("\n")
    first = json.loads(lines[0])
    assert scifact.corpus["4983"] == f"{first['title']}\n{first['text']}"
    assert (scifact.corpus.titles["4983"], scifact.corpus.texts["4983"]) == (first["title"], first["text"])


def test_unanswerable_questions_are_judged_as_having_no_answer() -> None:
    dataset = Dataset.read(shared_data("unanswerable"))
    assert len(dataset.qrels.queries) == 600
    (finding,) = [found for found in validate_dataset(dataset) if found.kind == "no-relevant"]
    answerable = dataset.queries.column("answerable")
    assert {query for (query,) in finding.items} == {query for query in answerable if not answerable[query]}


def test_policy_for_unjudged_queries() -> None:
    path = shared_data("multihop-rag")
    kept, dropped, unanswerable = (Dataset.read(path, unjudged=policy) for policy in ("keep", "drop", "unanswerable"))
    assert (len(kept.queries), len(kept.qrels.queries)) == (500, 429)
    assert (len(dropped.queries), len(dropped.qrels.queries)) == (429, 429)
    assert (len(unanswerable.queries), len(unanswerable.qrels.queries)) == (500, 500)
    assert dropped.notes[-1] == note("unjudged-queries-dropped", count=71)


def test_findings_on_cranfield() -> None:
    found = {finding.kind: finding for finding in validate_dataset(Dataset.read(shared_data("cranfield")))}
    assert found["empty-document"].items == (("471",), ("995",))
    assert found["near-duplicates"].items == (("1274", "1319"),)
    assert found["unjudged-document"].count == 476
    assert set(found) == {"empty-document", "near-duplicates", "unjudged-document"}


def test_near_duplicates_of_japanese_text() -> None:
    found = {finding.kind: finding for finding in validate_dataset(Dataset.read(shared_data("faq-ja")))}
    assert found["near-duplicates"].count == 54
    assert ("24", "33") in found["near-duplicates"].items


def test_autorag_with_two_question_files_asks_which() -> None:
    path = shared_data("autorag")
    with pytest.raises(InputError, match=r"2 qa files, qa_data_sample.parquet, qa_test_data_sample.parquet"):
        Dataset.read(path)
    in_folder = Dataset.read(path, qa="qa_data_sample.parquet")
    by_file = Dataset.read(path / "qa_data_sample.parquet", corpus="corpus_data_sample.parquet")
    assert in_folder == by_file
    assert (len(in_folder.corpus), len(in_folder.queries), len(in_folder.qrels.targets.name)) == (30, 10, 10)
    assert in_folder.corpus.metadata["5b957791-3c7b-4f29-a410-8d005a538855"] == {
        "last_modified_datetime": "2024-01-13 14:03:16.791052"
    }


def test_expense_rules_as_the_leaderboard_has_them() -> None:
    path = shared_data("expense-rules") / "eval_en.csv"
    dataset = Dataset.read(
        path,
        queries=["Example 1", "Example 2"],
        document="all",
        id="Rule",
        distractors="Distractor Rules",
        columns="Account",
        empty="nan",
    )
    assert (len(dataset.corpus), len(dataset.queries)) == (64, 128)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert list(dataset.corpus.values()) == [" ".join(cell or "nan" for cell in row) for row in rows]
    assert list(dataset.queries.values()) == [example for row in rows for example in row[10:12]]
    frame = dataset.qrels.frame
    assert frame.filter(frame["query_id"] == "RULE_061-2").select("doc_id", "grade").rows() == [
        ("RULE_061", 1),
        ("RULE_062", -1),
        ("RULE_051", -1),
    ]
    assert frame["grade"].value_counts(sort=True).rows() == [(-1, 380), (1, 128)]
    assert dataset.queries.column("Account")["RULE_001-1"] == "Travel expenses and transportation expenses"


@pytest.mark.parametrize("name", ["unanswerable", "docs-rag", "multihop-rag", "autorag/korean"])
def test_real_data_survives_writing(name: str, tmp_path: Path) -> None:
    before = Dataset.read(shared_data(name))
    before.write(tmp_path / "copy")
    after = Dataset.read(tmp_path / "copy")
    assert after.fingerprint == before.fingerprint
    assert after.qrels == before.qrels


def test_multihop_rag_json_is_read_as_its_trio(tmp_path: Path) -> None:
    trio = Dataset.read(shared_data("multihop-rag"), unjudged="unanswerable")
    facts = {doc: (trio.corpus.titles[doc], text) for doc, text in trio.corpus.texts.items()}
    judged: dict[str, list[str]] = {query: [] for query in trio.queries}
    for query, doc in trio.qrels.frame.drop_nulls("doc_id").select("query_id", "doc_id").iter_rows():
        judged[query].append(doc)
    questions = [
        {
            "query": text,
            "question_type": trio.queries.column("question_type")[query],
            "evidence_list": [{"title": facts[doc][0], "fact": facts[doc][1]} for doc in judged[query]],
        }
        for query, text in trio.queries.items()
    ]
    (tmp_path / "MultiHopRAG.json").write_text(json.dumps(questions), encoding="utf-8")
    read = Dataset.read(tmp_path)
    assert read.notes[0] == note("facts-are-corpus")
    assert dict(read.corpus) == dict(trio.corpus)
    assert dict(read.queries) == dict(trio.queries)
    assert read.qrels.fingerprint == trio.qrels.fingerprint
    assert sorted(read.qrels.queries) == sorted(trio.qrels.queries)
