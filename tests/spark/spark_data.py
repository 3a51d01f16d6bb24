"""Qrels and runs with every edge case, as polars frames and as Spark frames of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

POOL = [f"d{number:02d}" for number in range(30)] + ["é", "ü9", "𝛼"]
KINDS = {pl.String: "string", pl.Float64: "double", pl.Int64: "long", pl.Boolean: "boolean"}


def judgments(seed: int, queries: int = 40, targets: bool = False) -> pl.DataFrame:
    """Grades from -1 to 3, some of them 0.5; queries without a relevant document, and without any judged document."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, str | None, float | None, str | None]] = []
    for number in rng.permutation(queries).tolist():
        query = f"q{number}"
        if number % 13 == 0:
            rows.append((query, None, None, None))
            continue
        docs = rng.permutation(POOL)[: rng.integers(1, 12)].tolist()
        for doc in docs:
            grade = float(rng.choice([-1, 0, 0, 0.5, 1, 1, 2, 3])) if number % 7 else 0.0
            if targets and grade > 0 and rng.random() < 0.8:
                named = rng.permutation(["t1", "t2", "t3", "t4"])[: rng.integers(1, 3)].tolist()
                rows += [(query, doc, grade, name) for name in named]
            else:
                rows.append((query, doc, grade, None))
    order = rng.permutation(len(rows)).tolist()
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64, "target": pl.String}
    frame = pl.DataFrame([rows[place] for place in order], schema=schema, orient="row")
    return frame if targets else frame.drop("target")


def run(seed: int, queries: int = 40, repeats: bool = True) -> pl.DataFrame:
    """Lists with tied scores and repeats, an empty list, missing queries and queries that only the run has."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, str | None, float | None, int]] = []
    for number in range(queries + 5):
        if number % 11 == 3:
            continue
        docs = rng.choice(POOL, rng.integers(1, 26), replace=repeats).tolist()
        if number % 17 == 5:
            rows.append((f"q{number}", None, None, 0))
            continue
        # Scores that differ only beyond 32 bits, and coarse ones that tie.
        scores = np.round(rng.random(len(docs)) * 4) + rng.choice([0, 1e-9], len(docs))
        rows += [
            (f"q{number}", doc, score, int(rng.integers(1, 40)))
            for doc, score in zip(docs, scores.tolist(), strict=True)
        ]
    order = rng.permutation(len(rows)).tolist()
    schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "tokens": pl.Int64}
    return pl.DataFrame([rows[place] for place in order], schema=schema, orient="row")


def in_spark(spark: Any, frame: pl.DataFrame) -> Any:
    """The same rows, in the same order, in several partitions."""
    schema = ", ".join(f"`{name}` {KINDS[type(dtype)]}" for name, dtype in frame.schema.items())
    return spark.createDataFrame(frame.rows(), schema)
