"""Random qrels and runs: graded, partly judged, with ties, empty lists and missing queries."""

from __future__ import annotations

import numpy as np

POOL = [f"d{number:02d}" for number in range(40)]


def judgments(rng, queries, lowest=0, highest=3):
    """Grades of 1 to 12 documents a query; some queries have no relevant one."""
    made = {}
    for number in range(queries):
        docs = rng.permutation(POOL)[: rng.integers(1, 13)].tolist()
        grades = rng.integers(lowest, highest + 1, len(docs))
        made[f"q{number}"] = dict(zip(docs, grades.tolist(), strict=True))
    return made


def tie_free_run(rng, qrels, missing=0.05):
    """Scores that are all different; some lists are empty, and some queries have none."""
    made = {}
    for query in qrels:
        if rng.random() >= missing:
            docs = rng.permutation(POOL)[: rng.integers(0, 26)].tolist()
            made[query] = dict(zip(docs, np.sort(rng.random(len(docs)))[::-1].tolist(), strict=True))
    return made


def tied_where_it_does_not_matter(rng, run, qrels):
    """The same run, neighbours of the same grade (or both unjudged) often given the same score."""
    made = {}
    for query, listed in run.items():
        above = None
        made[query] = {}
        for doc, score in listed.items():
            grade = qrels[query].get(doc)
            if above is not None and above[0] == grade and rng.random() < 0.6:
                score = above[1]
            made[query][doc] = score
            above = (grade, score)
    return made
