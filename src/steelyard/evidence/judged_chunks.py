"""Which chunk meets which condition, as judgments: relevant to a target, or a distractor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from steelyard.alignment.hits import Floats, Ints
from steelyard.evidence.alternatives import Ways
from steelyard.judgment_forms import Row

STAND_IN = "unfound"


def relevant_rows(
    queries: Sequence[str], ways: Ways, way: Ints, chunk: Ints, chunks: pl.DataFrame
) -> tuple[list[Row], pl.DataFrame]:
    """The judgments of relevant chunks; a target that no chunk satisfies has a stand-in, which no run returns."""
    number = {query: at for at, query in enumerate(queries)}
    widest = max(ways.target, default=0) + 1
    key = np.array(
        [number[query] * widest + target for query, target in zip(ways.query, ways.target, strict=True)],
        dtype=np.int64,
    )
    grade = np.array([each.grade for each in ways.way])
    pair = key[way] * chunks.height + chunk
    unique, inverse = np.unique(pair, return_inverse=True)
    best: Floats = np.zeros(len(unique))
    np.maximum.at(best, inverse, grade[way])
    target, at = np.divmod(unique, chunks.height)
    names = chunks["chunk_id"].gather(at).to_list()
    rows: list[Row] = [
        (queries[code // widest], name, value, str(code % widest))
        for code, name, value in zip(target.tolist(), names, best.tolist(), strict=True)
    ]
    missing: dict[int, list[int]] = {}
    found = set(target.tolist())
    for place, code in enumerate(key.tolist()):
        if code not in found and ways.target[place]:
            missing.setdefault(code, []).append(place)
    for code, places in missing.items():
        query, label = queries[code // widest], str(code % widest)
        rows.append(
            (query, f"{STAND_IN}:{query}:{label}", max(float(grade[place]) for place in places), label)
        )
    unfound = pl.DataFrame(
        {
            "query_id": pl.Series([queries[code // widest] for code in missing], dtype=pl.String),
            "target": pl.Series([code % widest for code in missing], dtype=pl.Int64),
            "what": pl.Series(
                [" or ".join(str(ways.way[place]) for place in places) for places in missing.values()],
                dtype=pl.String,
            ),
        }
    )
    return rows, unfound


def misleading_rows(
    ways: Ways, way: Ints, chunk: Ints, chunks: pl.DataFrame, relevant: Sequence[Row]
) -> tuple[list[Row], int]:
    """The judgments of chunks that hold a distractor and nothing relevant; and how many hold both."""
    names = chunks["chunk_id"].gather(chunk).to_list()
    worst: dict[tuple[str, str], float] = {}
    for place, name in zip(way.tolist(), names, strict=True):
        pair = (ways.query[place], name)
        worst[pair] = min(worst.get(pair, 0.0), ways.way[place].grade)
    answering = {(query, name) for query, name, _, _ in relevant} if worst else set()
    rows: list[Row] = [
        (query, name, grade, None) for (query, name), grade in worst.items() if (query, name) not in answering
    ]
    return rows, len(worst) - len(rows)


def lost_distractors(ways: Ways, places: Ints) -> pl.DataFrame:
    """The distractors that are in no chunk."""
    listed = places.tolist()
    return pl.DataFrame(
        {
            "query_id": pl.Series([ways.query[place] for place in listed], dtype=pl.String),
            "what": pl.Series([str(ways.way[place]) for place in listed], dtype=pl.String),
        }
    )
