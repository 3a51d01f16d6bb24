"""The common measures compared with loops over lists, as one would write them without a library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from random_runs import POOL, judgments

import steelyard as sy

CUTS = (1, 3, 10, None)


@pytest.fixture(scope="module")
def case():
    """Grades from -1, ranked lists with repeats and documents never judged; some empty, some missing."""
    rng = np.random.default_rng(99)
    qrels = judgments(rng, 1500, lowest=-1)
    run = {query: rng.choice(POOL, rng.integers(0, 16)).tolist() for query in qrels if rng.random() > 0.05}
    return qrels, run


@pytest.fixture(scope="module")
def targets():
    """Two or three targets a query, of one to three documents each, which they may share."""
    rng = np.random.default_rng(100)
    truth = {
        f"q{number}": [rng.permutation(POOL[:12])[: rng.integers(1, 4)].tolist() for _ in range(rng.integers(2, 4))]
        for number in range(800)
    }
    run = {query: rng.permutation(POOL[:20])[: rng.integers(0, 12)].tolist() for query in truth}
    return truth, run


def first_occurrences(listed):
    """The grade-bearing places of a list: (rank, document), a repeat holding its rank and nothing else."""
    seen = set()
    for rank, doc in enumerate(listed, start=1):
        if doc not in seen:
            seen.add(doc)
            yield rank, doc


def precision(grades, listed, k):
    hits = sum(1 for rank, doc in first_occurrences(listed) if grades.get(doc, 0) >= 1 and (k is None or rank <= k))
    out_of = k if k is not None else len(listed)
    return hits / out_of if out_of else 0.0


def precision_of_returned(grades, listed, k):
    listed = listed if k is None else listed[:k]
    return precision(grades, listed, None)


def recall(grades, listed, k):
    relevant = {doc for doc, grade in grades.items() if grade >= 1}
    found = relevant & set(listed if k is None else listed[:k])
    return len(found) / len(relevant) if relevant else 0.0


def f1(grades, listed, k):
    p, r = precision(grades, listed, k), recall(grades, listed, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def reciprocal_rank(grades, listed, k):
    for rank, doc in enumerate(listed if k is None else listed[:k], start=1):
        if grades.get(doc, 0) >= 1:
            return 1 / rank
    return 0.0


def precisions(grades, listed, k):
    found, values = 0, []
    for rank, doc in first_occurrences(listed if k is None else listed[:k]):
        if grades.get(doc, 0) >= 1:
            found += 1
            values.append(found / rank)
    return values


def average_precision(grades, listed, k):
    relevant = sum(grade >= 1 for grade in grades.values())
    return sum(precisions(grades, listed, k)) / relevant if relevant else 0.0


def average_precision_of_found(grades, listed, k):
    values = precisions(grades, listed, k)
    return sum(values) / len(values) if values else 0.0


def hit(grades, listed, k):
    return float(any(grades.get(doc, 0) >= 1 for doc in (listed if k is None else listed[:k])))


def ndcg(grades, listed, k, gain=float):
    worth = {doc: gain(grade) for doc, grade in grades.items() if grade > 0}
    places = first_occurrences(listed if k is None else listed[:k])
    got = sum(worth.get(doc, 0.0) / math.log2(rank + 1) for rank, doc in places)
    best = sorted(worth.values(), reverse=True)[:k]
    most = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, start=1))
    return got / most if most else 0.0


def exponential_ndcg(grades, listed, k):
    return ndcg(grades, listed, k, lambda grade: 2.0**grade - 1)


def confusion(grades, listed, k):
    listed = listed if k is None else listed[:k]
    wrong = {doc for doc, grade in grades.items() if grade < 0}
    return len(wrong & set(listed)) / len(listed) if listed else 0.0


def confusion_of_distractors(grades, listed, k):
    wrong = {doc for doc, grade in grades.items() if grade < 0}
    return len(wrong & set(listed if k is None else listed[:k])) / len(wrong) if wrong else 0.0


LOOPS = {
    "P": precision,
    "P(denominator=retrieved)": precision_of_returned,
    "R": recall,
    "F": f1,
    "RR": reciprocal_rank,
    "AP": average_precision,
    "AP(denominator=found)": average_precision_of_found,
    "Hit": hit,
    "nDCG": ndcg,
    "nDCG(gain=exp)": exponential_ndcg,
    "Confusion": confusion,
    "Confusion(denominator=distractors)": confusion_of_distractors,
}


@pytest.mark.parametrize("k", CUTS)
@pytest.mark.parametrize("measure", LOOPS)
def test_the_loop_agrees(measure, k, case):
    qrels, run = case
    name = measure if k is None else f"{measure}@{k}"
    ours = sy.evaluate(qrels, run, [name]).per_query[name].to_list()
    loop = LOOPS[measure]
    assert ours == pytest.approx([loop(grades, run.get(query, []), k) for query, grades in qrels.items()], abs=1e-9)


def targets_found(groups, listed, k):
    first = set(listed if k is None else listed[:k])
    return sum(1 for group in groups if first & set(group))


def reciprocal_rank_per_target(groups, listed, k):
    return sum(reciprocal_rank(dict.fromkeys(group, 1), listed, k) for group in groups) / len(groups)


def average_precision_per_target(groups, listed, k):
    values = [average_precision_of_found(dict.fromkeys(group, 1), listed, k) for group in groups]
    return sum(values) / len(values)


TARGET_LOOPS = {
    "DR": lambda groups, listed, k: targets_found(groups, listed, k) / len(groups),
    "R(per=target)": lambda groups, listed, k: targets_found(groups, listed, k) / len(groups),
    "Diversity": targets_found,
    "AllTargets": lambda groups, listed, k: float(targets_found(groups, listed, k) == len(groups)),
    "RR(per=target)": reciprocal_rank_per_target,
    "AP(per=target, denominator=found)": average_precision_per_target,
}


@pytest.mark.parametrize("k", CUTS)
@pytest.mark.parametrize("measure", TARGET_LOOPS)
def test_the_loop_over_targets_agrees(measure, k, targets):
    truth, run = targets
    name = measure if k is None else f"{measure}@{k}"
    ours = sy.evaluate(truth, run, [name]).per_query[name].to_list()
    loop = TARGET_LOOPS[measure]
    assert ours == pytest.approx([loop(groups, run[query], k) for query, groups in truth.items()], abs=1e-9)
