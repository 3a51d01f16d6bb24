"""Results for gates: values per query, like the JSON of `evaluate --per-query`."""

from __future__ import annotations

import numpy as np


def made_result(values, run="mine", measure="AP", judged="key", **more):
    """A result of one run and measure from a list of values, one per query: q0, q1, ..."""
    rows = {f"q{number}": {measure: value} for number, value in enumerate(values)}
    head = {"steelyard": "0.1.0", "dialect": "steelyard", "judgments": dict.fromkeys(rows, judged)}
    return {**head, "runs": [{"name": run, "per_query": rows}], **more}


def pair(drop=0.0, n=60, seed=0, spread=0.1, **more):
    """(result, baseline): the same queries, the result lower by `drop` on average."""
    random = np.random.default_rng(seed)
    before = random.uniform(0.3, 0.7, n)
    after = before - drop + random.normal(0.0, spread, n)
    return made_result(after.tolist(), **more), made_result(before.tolist(), **more)
