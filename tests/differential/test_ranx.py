"""Every metric that ranx and Steelyard share, on thousands of random queries.

Where they differ by definition, the reason is in the test's name or docstring. ranx puts equal scores in
an order it does not state, so ties are among documents of the same grade, where no order matters.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from random_runs import judgments, tie_free_run, tied_where_it_does_not_matter

import steelyard as sy
from needs import import_peer

# ranx compiles its functions for half a minute.
pytestmark = pytest.mark.slow

SHARED = [
    *("precision@10", "recall@10", "f1@10", "hit_rate@10", "mrr@10", "map@10", "ndcg@10", "hits@10"),
    *("precision", "recall", "f1", "mrr", "map", "ndcg", "r-precision", "precision@1", "ndcg@1"),
    *("dcg@10", "dcg", "dcg_burges@5", "ndcg_burges@5", "ndcg_burges"),
    *("precision@5-l2", "map@10-l2", "ndcg@10-l2", "ndcg_burges@3-l3", "mrr-l3", "r-precision-l2"),
    *("rbp.80", "rbp.95-l2"),
]
QUERIES = 2000
APART = ["bpref", "bpref-l2"]


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(20240611)
    qrels = judgments(rng, QUERIES)
    run = tied_where_it_does_not_matter(rng, tie_free_run(rng, qrels), qrels)
    # Ties are among documents of the same grade: all documents of grade 0 of a query become distractors, or none.
    below = {query for query in qrels if rng.random() < 0.3}
    return {
        query: {doc: -1 if query in below and grade == 0 else grade for doc, grade in grades.items()}
        for query, grades in qrels.items()
    }, run


@pytest.fixture(scope="module")
def theirs(case):
    import_peer("ranx")
    qrels, run = case
    program = Path(__file__).parent / "ranx_values.py"
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)],
        input=json.dumps({"qrels": qrels, "run": run, "metrics": SHARED + APART}),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


@pytest.fixture(scope="module")
def ours(case):
    scores = sy.evaluate(*case, [*SHARED, *APART, "RBP(p=0.8, gain=linear)"], dialect="ranx")
    return {
        metric: dict(zip(scores.queries, row, strict=True))
        for metric, row in zip(scores.measures, scores.matrix, strict=True)
    }


def differing(ours, theirs, queries):
    return {query: (ours[query], theirs[query]) for query in queries if abs(ours[query] - theirs[query]) > 1e-9}


def test_the_cases_are_what_they_should_be(case):
    qrels, run = case
    assert len(qrels) > len(run) > 1800
    assert sum(not listed for listed in run.values()) > 20
    assert sum(len(set(listed.values())) < len(listed) for listed in run.values()) > 1000
    assert sum(max(grades.values()) <= 0 for grades in qrels.values()) > 20
    assert sum(min(grades.values()) < 0 < max(grades.values()) for grades in qrels.values()) > 200


@pytest.mark.parametrize("metric", SHARED)
def test_the_same_on_every_query(metric, ours, theirs):
    assert len(theirs[metric]) == QUERIES
    assert differing(ours[metric], theirs[metric], theirs[metric]) == {}


@pytest.mark.parametrize(("metric", "rel"), [("bpref", 1), ("bpref-l2", 2)])
def test_bpref_where_something_is_relevant_and_something_is_not(metric, rel, case, ours, theirs):
    """ranx divides by min(R, N) without looking: where either is 0 its value is not a number."""
    qrels, _ = case
    both = {q for q, grades in qrels.items() if min(grades.values()) < rel <= max(grades.values())}
    assert len(both) > 1200
    assert differing(ours[metric], theirs[metric], both) == {}
    alone = [q for q in qrels if q not in both]
    assert all(np.isnan(theirs[metric][q]) or theirs[metric][q] == ours[metric][q] == 0 for q in alone)


def test_rbp_is_not_divided_by_the_highest_grade_there(case, ours, theirs):
    """ranx multiplies by the grade; RBP(gain=linear) by grade / highest, so that it stays within 0 and 1."""
    scaled = {query: 3 * value for query, value in ours["RBP(p=0.8, gain=linear)"].items()}
    assert differing(scaled, theirs["rbp.80"], theirs["rbp.80"]) == {}
