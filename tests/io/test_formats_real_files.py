"""Real files, where they are available: none of them is in the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.io import sniff, validate_file
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.run import Run

DATA = Path(__file__).parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared test data is not at ../shared/data")


@pytest.mark.parametrize(
    ("name", "format", "queries", "judged", "relevant"),
    [
        ("trec_eval_test/qrels.test", "trec-qrels", 3, 3681, 561),
        ("trec_eval_test/qrels.rel_level", "trec-qrels", 3, 3681, None),
        ("scifact/qrels_test.tsv", "beir", 300, 339, 339),
        ("cranfield/qrels.tsv", "beir", 225, 1837, 1612),
        ("docs-rag/qrels.tsv", "beir", 100, 192, 192),
        ("unanswerable/qrels.tsv", "beir", 300, 300, 300),
        ("autorag/qa_data_sample.parquet", "autorag", 10, 10, 10),
        ("autorag/korean/qa.parquet", "autorag", 20, 20, 20),
    ],
)
def test_judgments(name: str, format: str, queries: int, judged: int, relevant: int | None) -> None:
    assert sniff(DATA / name).format == format
    qrels = Qrels.read(DATA / name)
    assert (len(qrels.queries), len(qrels)) == (queries, judged)
    assert relevant is None or int((qrels.grades > 0).sum()) == relevant
    assert validate_file(DATA / name).ok


@pytest.mark.parametrize(
    ("name", "run_name", "queries", "documents"),
    [
        ("trec_eval_test/results.test", "STANDARD", 3, 1500),
        ("trec_eval_test/results.trunc", "STANDARD", 2, 584),
        ("docs-rag/runs/retrieve_base.trec", "retrieve_base", 99, 293),
    ],
)
def test_runs(name: str, run_name: str, queries: int, documents: int) -> None:
    run = Run.read(DATA / name)
    assert (run.name, len(run.queries), len(run)) == (run_name, queries, documents)
    assert validate_file(DATA / name).ok


def test_comments_change_nothing_but_the_notes() -> None:
    plain = Qrels.read(DATA / "trec_eval_test/qrels.123")
    commented = Qrels.read(DATA / "trec_eval_test/qrels.comments.123")
    assert len(commented) == len(plain) + 1  # it has one document more, with a # in its id
    assert note("comments-skipped", count=3) in commented.notes


def test_a_corpus_is_neither_run_nor_judgments() -> None:
    assert not validate_file(DATA / "scifact/corpus.jsonl").ok
    assert not validate_file(DATA / "autorag/corpus_data_sample.parquet").ok
