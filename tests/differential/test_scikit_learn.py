"""Comparison with the ranking metrics of scikit-learn, where all documents are retrieved and judged."""

from __future__ import annotations

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer

sklearn_metrics = import_peer("sklearn.metrics")

QUERIES, DOCUMENTS = 1500, 12


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(7)
    grades = rng.integers(0, 4, (QUERIES, DOCUMENTS)) * (rng.random((QUERIES, DOCUMENTS)) < 0.6)
    return grades, rng.random((QUERIES, DOCUMENTS)), rng.integers(0, 4, (QUERIES, DOCUMENTS)).astype(float)


def mapping(table):
    return {
        f"q{row}": {f"d{column}": v for column, v in enumerate(values)} for row, values in enumerate(table.tolist())
    }


def by_fives(function, truth, scores, **options):
    """scikit-learn gives means only: those of every five queries."""
    return [float(function(truth[row : row + 5], scores[row : row + 5], **options)) for row in range(0, QUERIES, 5)]


def our_fives(scores, name):
    return scores.per_query[name].to_numpy().reshape(-1, 5).mean(axis=1).tolist()


@pytest.mark.parametrize("k", [1, 5, None])
def test_ndcg_and_dcg_without_ties(k, tables):
    grades, scores, _ = tables
    at = "" if k is None else f"@{k}"
    ours = sy.evaluate(mapping(grades), mapping(scores), [f"nDCG{at}", f"DCG{at}"])
    for name, function in ((f"nDCG{at}", sklearn_metrics.ndcg_score), (f"DCG{at}", sklearn_metrics.dcg_score)):
        theirs = by_fives(function, grades, scores, k=k, ignore_ties=True)
        assert our_fives(ours, name) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3, 5, None])
def test_ndcg_averages_ties_as_expected_does(k, tables):
    grades, _, tied = tables
    at = "" if k is None else f"@{k}"
    ours = sy.evaluate(mapping(grades), mapping(tied), [f"nDCG{at}", f"DCG{at}"], ties="expected")
    for name, function in ((f"nDCG{at}", sklearn_metrics.ndcg_score), (f"DCG{at}", sklearn_metrics.dcg_score)):
        theirs = by_fives(function, grades, tied, k=k)
        assert our_fives(ours, name) == pytest.approx(theirs, abs=1e-9)


def test_average_precision_without_ties(tables):
    """With ties scikit-learn takes each score as one threshold, not as orders to average over."""
    grades, scores = tables[0][:400], tables[1][:400]
    some = (grades > 0).any(axis=1)
    theirs = [
        float(sklearn_metrics.average_precision_score(true > 0, score))
        for true, score in zip(grades[some], scores[some], strict=True)
    ]
    ours = sy.evaluate(mapping(grades), mapping(scores), ["AP"]).per_query["AP"].to_numpy()
    assert ours[some] == pytest.approx(theirs, abs=1e-9)
    assert not ours[~some].any()


def test_top_k_accuracy_is_hit_at_k(tables):
    _, scores, _ = tables
    right = np.random.default_rng(8).integers(0, DOCUMENTS, QUERIES)
    truth = {f"q{row}": [f"d{column}"] for row, column in enumerate(right.tolist())}
    for k in (1, 3):
        theirs = sklearn_metrics.top_k_accuracy_score(right, scores, k=k, labels=np.arange(DOCUMENTS))
        assert sy.evaluate(truth, mapping(scores), [f"Hit@{k}"])[f"Hit@{k}"] == pytest.approx(theirs, abs=1e-9)
