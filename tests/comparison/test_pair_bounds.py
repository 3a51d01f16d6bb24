"""Bounds of a difference of two runs: against all gradings of the documents in either list."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from steelyard.comparison.bounds import SharedUnjudged, pair_bounds
from steelyard.errors import MeasureError
from steelyard.measures import bounds as bounds_module
from steelyard.measures.gradings import grade_levels

sys.path.insert(0, str(Path(__file__).parent.parent / "measures"))
from all_gradings import aligned, over_all_gradings, random_case, shared_documents
from test_bounds import EVERY, SCALES, check


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_over_all_shared_gradings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judged, lists = random_case(random.Random(seed), SCALES[seed], 5 if seed < 2 else 4, runs=2, queries=8)
    a, b = (aligned(judged, listed) for listed in lists)
    shared = SharedUnjudged(*shared_documents(judged, *lists))
    tables = over_all_gradings(EVERY, judged, lists, grade_levels(a).tolist())
    for most in (4096, 0):
        monkeypatch.setattr(bounds_module, "MOST_GRADINGS", most)
        for row, measure in enumerate(EVERY):
            check(measure, pair_bounds(measure, a, b, shared), tables, row, (judged, lists))
