"""The leaderboard of expense rules, from raw data to the printed table: its six BM25 rows, byte for byte."""

from __future__ import annotations

import ast
import csv

import numpy as np
import pytest

import steelyard as sy
from needs import SHARED, import_peer, needs_shared

rank_bm25 = import_peer("rank_bm25")

DATA = SHARED / "expense-rules"

pytestmark = needs_shared


@pytest.fixture(scope="module")
def rules():
    with (DATA / "eval_en.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def truth(rules):
    grades = {}
    for row in rules:
        wrong = dict.fromkeys(ast.literal_eval(row["Distractor Rules"]), -1)
        for example in ("Example 1", "Example 2"):
            grades[f"{row['Rule']} {example}"] = {row["Rule"]: 1, **wrong}
    return grades


@pytest.fixture(scope="module")
def runs(rules):
    ids = [row["Rule"] for row in rules]
    texts = [" ".join(cell or "nan" for cell in row.values()).split() for row in rules]
    asked = {f"{row['Rule']} {e}": row[e].split() for row in rules for e in ("Example 1", "Example 2")}
    made = {}
    for name, kind in {name: getattr(rank_bm25, name) for name in ("BM25Okapi", "BM25Plus", "BM25L")}.items():
        engine = kind(texts, k1=1.2, b=0.75)
        made[name] = {}
        for query, words in asked.items():
            scores = engine.get_scores(words)
            best = np.argsort(-scores, kind="stable")[:3]
            made[name][query] = [(ids[place], float(scores[place])) for place in best]
    rng = np.random.default_rng(42)
    made["Random"] = {query: [ids[place] for place in rng.permutation(len(ids))[:3]] for query in asked}
    return made


@pytest.fixture(scope="module")
def result(truth, runs):
    return sy.compare(truth, runs, at=[1, 3], dialect="leaderboard", composite="default")


def test_the_six_rows_are_the_published_ones(result):
    expected = (DATA / "expected_leaderboard.md").read_text("utf-8").splitlines()
    printed = result.to_markdown().splitlines()
    assert printed[:2] == expected[:2]
    assert [line for line in printed if line.startswith("| BM25")] == [
        line for line in expected if line.startswith("| BM25")
    ]


def test_rows_are_sorted_by_cutoff_and_then_composite(result):
    rows = [(row.k, -row.means["composite"]) for row in result.leaderboard_rows]
    assert rows == sorted(rows)


def test_random_is_near_its_expectation(result):
    first = next(row for row in result.leaderboard_rows if row.run == "Random" and row.k == 1)
    assert 0 <= first.means["Average Recall"] <= 4 / 64


def test_the_formula_weights_and_components_are_below(result):
    text = result.to_markdown()
    for part in ("## Composite score", "Average F1 Score (weight 0.4)", "1 - CR", "Average Hit Rate** is `Hit@1`"):
        assert part in text


def test_the_bench_gives_the_same_leaderboard_from_the_raw_table(tmp_path):
    settings = {"k1": 1.2, "b": 0.75, "tokenizer": "whitespace"}
    made = sy.bench(
        {
            "dataset": {
                "path": str(DATA / "eval_en.csv"),
                "format": "csv",
                "id": "Rule",
                "queries": ["Example 1", "Example 2"],
                "document": "all",
                "distractors": "Distractor Rules",
                "empty": "nan",
            },
            "depth": 3,
            "retrievers": [
                {"bm25-okapi": {**settings, "name": "BM25Okapi"}},
                {"bm25-plus": {**settings, "name": "BM25Plus"}},
                {"bm25-l": {**settings, "name": "BM25L"}},
                {"random": {"seed": 42, "name": "Random"}},
            ],
            "at": [1, 3],
            "dialect": "leaderboard",
            "composite": "default",
        },
        output=tmp_path,
    )
    printed = (tmp_path / "leaderboard.md").read_text("utf-8").splitlines()
    expected = (DATA / "expected_leaderboard.md").read_text("utf-8").splitlines()
    assert printed[:2] == expected[:2]
    assert [line for line in printed if line.startswith("| BM25")] == [
        line for line in expected if line.startswith("| BM25")
    ]
    assert "Composite score" in made.to_markdown()
