"""The example of docs/bench.md."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from steelyard.benchmark.config import check_bench

PAGE = (Path(__file__).parents[2] / "docs" / "bench.md").read_text("utf-8")


def test_documented_sweep(tmp_path):
    (example,) = re.findall(r"```yaml\n(retrievers:.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.py").write_text(
        "class CharGram:\n    def __init__(self, n): pass\n    def retrieve(self, query): pass\n"
    )
    given = {"dataset": "demo", "measures": ["RR"], **yaml.safe_load(example)}
    given["retrievers"][1]["python"]["folder"] = str(tmp_path)
    labels = [spec.label for spec in check_bench(given)[1]]
    assert labels == [
        *(f"bm25-okapi k1={k1} b={b}" for k1 in (0.9, 1.2) for b in (0.4, 0.75)),
        "chargram n=3",
        "chargram n=4",
    ]  # fmt: skip
