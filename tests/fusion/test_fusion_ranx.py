"""Every fusion method that ranx also has: the same scores on random runs.

Where the definitions differ, a test shows how:
- a list whose scores are all equal, one-document lists among them: min-max and sum give 0 in ranx, as for
  documents that were not retrieved; 1 and 1/n here;
- a best score that is not positive: max divides by a billionth in ranx; an error here;
- weight 0: the run's documents stay with a score of 0 in ranx; the run is not used here;
- condorcet: the order within a cycle or a tie is that of a Python set in ranx; points here. Without cycles
  and ties the order is the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer

pytestmark = pytest.mark.slow

QUERIES = 150
NORMS = {"min-max": "min-max", "max": "max", "sum": "sum", "z": "zmuv", "rank": "rank", "none": None}
WEIGHTS = [0.5, 0.3, 0.2]
SCORED = {"combsum": "sum", "combmnz": "mnz", "combanz": "anz", "combmax": "max", "combmin": "min", "combmed": "med"}
RANKED = [
    ("rrf", "rrf", {"k": 60}),
    ("rrf", "rrf", {"k": 1}),
    ("borda", "bordafuse", {}),
    ("borda", "w_bordafuse", {"weights": WEIGHTS}),
    ("isr", "isr", {}),
    ("logn-isr", "logn_isr", {"sigma": 0.01}),
    ("logn-isr", "log_isr", {"sigma": 0.0}),
    ("rbc", "rbc", {"phi": 0.8}),
    ("rbc", "rbc", {"phi": 0.98}),
]
SHARED = [
    *((ours, theirs, norm, {}) for norm in NORMS for ours, theirs in SCORED.items()),
    *(("wsum", "wsum", norm, {"weights": WEIGHTS}) for norm in NORMS),
    *((ours, theirs, None, given) for ours, theirs, given in RANKED),
]


def random_runs(rng, lengths, pool=30, negative=False):
    """Three runs over the same queries, scores all different, best first."""
    runs = []
    for _ in range(3):
        run = {}
        for number in range(QUERIES):
            docs = rng.permutation([f"d{n:02d}" for n in range(pool)])[: rng.integers(*lengths)]
            scores = np.sort(rng.gamma(2, 3, len(docs)))[::-1] - (40 if negative else 0)
            run[f"q{number:03d}"] = dict(zip(docs.tolist(), scores.tolist(), strict=True))
        runs.append(run)
    return runs


def asked_of_ranx(runs, fusions):
    import_peer("ranx")
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", str(Path(__file__).parent / "ranx_fusion.py")],
        input=json.dumps({"runs": runs, "fusions": fusions}),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def by_query(run):
    found = {}
    for query, doc, score in run.frame.select("query_id", "doc_id", "score").iter_rows():
        found.setdefault(query, {})[doc] = score
    return found


@pytest.fixture(scope="module")
def runs():
    return random_runs(np.random.default_rng(7), (2, 21))


@pytest.fixture(scope="module")
def theirs(runs):
    fusions = [
        {
            "method": their_name,
            "norm": NORMS[norm] if norm else None,
            "params": {} if their_name == "log_isr" else given,
        }
        for _, their_name, norm, given in SHARED
    ]
    return asked_of_ranx(runs, fusions)


@pytest.mark.parametrize("place", range(len(SHARED)), ids=[f"{m}-{n}-{p}" for m, _, n, p in SHARED])
def test_the_same_score_for_every_document(place, runs, theirs):
    method, _, norm, given = SHARED[place]
    found = by_query(sy.fuse(runs, method, norm, **given))
    assert found.keys() == theirs[place].keys()
    assert sum(map(len, found.values())) > 20 * QUERIES
    for query, listed in theirs[place].items():
        assert found[query] == pytest.approx(listed, abs=1e-12)


def test_lists_with_equal_scores_count_as_retrieved():
    runs = [{"q": {"a": 3.0}}, {"q": {"b": 2.0, "c": 1.0}}]
    theirs = asked_of_ranx(runs, [{"method": "sum", "norm": norm, "params": {}} for norm in ("min-max", "sum")])
    assert [answer["q"]["a"] for answer in theirs] == [0.0, 0.0]
    assert [by_query(sy.fuse(runs, "combsum", norm))["q"]["a"] for norm in ("min-max", "sum")] == [1.0, 1.0]


def test_a_best_score_below_0_is_refused_where_ranx_divides_by_a_billionth():
    runs = random_runs(np.random.default_rng(8), (2, 5), negative=True)
    theirs = asked_of_ranx(runs, [{"method": "sum", "norm": "max", "params": {}}])
    assert min(theirs[0]["q000"].values()) < -1e9
    with pytest.raises(sy.SteelyardError, match="must be positive"):
        sy.fuse(runs, "combsum", "max")


def test_a_run_of_weight_0_is_not_used_and_ranx_keeps_its_documents_at_0():
    runs = [{"q": {"a": 2.0, "b": 1.0}}, {"q": {"c": 2.0, "b": 1.0}}]
    theirs = asked_of_ranx(runs, [{"method": "wsum", "norm": "min-max", "params": {"weights": [1.0, 0.0]}}])
    assert theirs[0]["q"] == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert by_query(sy.fuse(runs, "wsum", weights=[1, 0]))["q"] == {"a": 1.0, "b": 0.0}


def test_condorcet_gives_the_same_order_without_cycles():
    """Three complete lists have no ties; if all points differ there is no cycle."""
    runs = random_runs(np.random.default_rng(9), (6, 7), pool=6)
    found = by_query(sy.fuse(runs, "condorcet"))
    clear = [query for query, listed in found.items() if len(set(listed.values())) == 6]
    assert len(clear) > 30
    theirs = asked_of_ranx(runs, [{"method": "condorcet", "norm": None, "params": {}}])[0]
    assert [list(found[query]) for query in clear] == [
        sorted(theirs[query], key=theirs[query].get, reverse=True) for query in clear
    ]
