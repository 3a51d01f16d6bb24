"""Lists that are shorter than asked, or than a measure reads, are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import steelyard as sy

RETRIEVER = """
def few(queries, k):
    return [[(f"d{n}", 9.0 - n) for n in range(min(k, LIMIT))] for _ in queries]
"""


def codes(notes: Any) -> list[str]:
    return [note.code for note in notes]


def bench(folder: Path, limit: int, depth: int, measures: str, documents: int = 100) -> Any:
    for name, rows in (
        ("corpus", [{"_id": f"d{n}", "text": f"word{n}"} for n in range(documents)]),
        ("queries", [{"_id": f"q{n}", "text": "word1"} for n in range(3)]),
    ):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = "".join(f"q{n}\td{n}\t1\nq{n}\td{documents - 1}\t1\n" for n in range(3))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    module = f"limited_{limit}_{documents}_{depth}"
    (folder / f"{module}.py").write_text(RETRIEVER.replace("LIMIT", str(limit)))
    (folder / "bench.yaml").write_text(
        f"dataset: .\ndepth: {depth}\nmeasures: [{measures}]\n"
        f"retrievers:\n- python: {module}:few\n  name: few\n- random\n"
    )
    return sy.bench(folder / "bench.yaml", output=folder / "out")


def test_a_retriever_that_returns_4_of_50_documents_is_reported(tmp_path: Path) -> None:
    result = bench(tmp_path, limit=4, depth=50, measures="RR@3")
    short = [note for note in result.notes if note.code == "short-lists"]
    assert [(note["run"], note["longest"], note["asked"]) for note in short] == [("few", 4, 50)]
    assert "returned at most 4 of the 50 documents asked for" in (tmp_path / "out/leaderboard.md").read_text()


@pytest.mark.parametrize(("limit", "documents"), [(40, 100), (50, 100), (20, 20)])
def test_lists_that_are_long_enough_are_not_reported(tmp_path: Path, limit: int, documents: int) -> None:
    result = bench(tmp_path, limit, 50, "RR@3", documents)
    assert "short-lists" not in codes(result.notes)


def test_recall_at_1000_of_ten_documents_is_reported(tmp_path: Path) -> None:
    result = bench(tmp_path, limit=10, depth=10, measures="nDCG@10, R@1000")
    for coverage in result.comparison.coverage.values():
        found = next(note for note in coverage.all_notes() if note.code == "cutoff-deeper-than-lists")
        assert (found["measures"], found["depth"]) == (("R@1000",), 10)


LISTS = {f"q{n}": [f"d{m}" for m in range(n, n + 10)] for n in range(4)}
QRELS = {f"q{n}": {f"d{n}": 1, "other": 1} for n in range(4)}


def test_the_depth_of_a_run_is_seen_from_its_lists() -> None:
    scores = sy.evaluate(QRELS, LISTS, ["R@1000", "nDCG@10"])
    found = next(note for note in scores.notes if note.code == "cutoff-deeper-than-lists")
    assert found["measures"] == ("R@1000",)
    assert str(found).startswith("the lists end at 10 documents, and R@1000 has a deeper cutoff")


def test_the_depth_of_the_call_is_known() -> None:
    assert "cutoff-deeper-than-lists" in codes(sy.evaluate(QRELS, LISTS, "nDCG@10", depth=3).notes)
    assert "cutoff-deeper-than-lists" in codes(
        sy.compare(QRELS, {"a": LISTS, "b": LISTS}, ["nDCG@10"], depth=3).coverage["a"].all_notes()
    )


def test_no_note_where_every_relevant_document_is_found() -> None:
    found = {query: {next(iter(docs)): 1} for query, docs in QRELS.items()}
    assert "cutoff-deeper-than-lists" not in codes(sy.evaluate(found, LISTS, "R@1000").notes)
