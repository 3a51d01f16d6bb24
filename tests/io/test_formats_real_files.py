"""Real files: those of NIST's test of trec_eval, and the collections of ../shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from needs import NIST, shared_data
from steelyard.io import sniff, validate_file
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.run import Run


def path_of(name: str) -> Path:
    folder, _, file = name.partition("/")
    return NIST / file if folder == NIST.name else shared_data(name)


@pytest.mark.parametrize(
    ("name", "format", "queries", "judged", "relevant"),
    [
        ("trec_eval/qrels.test", "trec-qrels", 3, 3681, 561),
        ("trec_eval/qrels.rel_level", "trec-qrels", 3, 3681, None),
        ("scifact/qrels_test.tsv", "beir", 300, 339, 339),
        ("cranfield/qrels.tsv", "beir", 225, 1837, 1612),
        ("docs-rag/qrels.tsv", "beir", 100, 192, 192),
        ("unanswerable/qrels.tsv", "beir", 300, 300, 300),
        ("autorag/qa_data_sample.parquet", "autorag", 10, 10, 10),
        ("autorag/korean/qa.parquet", "autorag", 20, 20, 20),
    ],
)
def test_judgments(name: str, format: str, queries: int, judged: int, relevant: int | None) -> None:
    assert sniff(path_of(name)).format == format
    qrels = Qrels.read(path_of(name))
    assert (len(qrels.queries), len(qrels)) == (queries, judged)
    assert relevant is None or int((qrels.grades > 0).sum()) == relevant
    assert validate_file(path_of(name)).ok


@pytest.mark.parametrize(
    ("name", "run_name", "queries", "documents"),
    [
        ("trec_eval/results.test", "STANDARD", 3, 1500),
        ("trec_eval/results.trunc", "STANDARD", 2, 584),
        ("docs-rag/runs/retrieve_base.trec", "retrieve_base", 99, 293),
    ],
)
def test_runs(name: str, run_name: str, queries: int, documents: int) -> None:
    run = Run.read(path_of(name))
    assert (run.name, len(run.queries), len(run)) == (run_name, queries, documents)
    assert validate_file(path_of(name)).ok


def test_comments_change_nothing_but_the_notes() -> None:
    plain = Qrels.read(NIST / "qrels.123")
    commented = Qrels.read(NIST / "qrels.comments.123")
    assert len(commented) == len(plain) + 1  # it has one document more, with a # in its id
    assert note("comments-skipped", count=3) in commented.notes


def test_a_corpus_is_neither_run_nor_judgments() -> None:
    assert not validate_file(shared_data("scifact/corpus.jsonl")).ok
    assert not validate_file(shared_data("autorag/corpus_data_sample.parquet")).ok
