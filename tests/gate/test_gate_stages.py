"""Gate rules on the ceiling of a stage: the values are recomputed from the lists that the stage returned."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import polars as pl
import pytest

import steelyard as sy
from steelyard.comparison.rules import parse_rule
from steelyard.errors import InputError

RNG = random.Random(11)
DOCS = [f"d{n:02}" for n in range(40)]
QUERIES = {f"q{n:02}": f"question {n}" for n in range(20)}
QRELS = {query: {doc: RNG.randint(1, 3) for doc in RNG.sample(DOCS, 5)} for query in QUERIES}
KINDS = {query: "even" if number % 2 else "odd" for number, query in enumerate(QUERIES)}
RULE = "ceiling(retrieve) nDCG@3 >= "


def pipeline(seed: int, size: int):
    def app(query: str) -> dict[str, object]:
        found = random.Random(f"{seed} {query}").sample(DOCS, size)
        return {"stages": {"retrieve": found, "rerank": found[2:8]}}

    return {"python": {"target": app, "name": "app"}}


def bench(folder: Path, seed: int = 1, size: int = 12, **more: object) -> sy.BenchResult:
    dataset = sy.Dataset.of(dict.fromkeys(DOCS, "a text"), QUERIES, QRELS)
    dataset.queries.columns["kind"] = KINDS
    given = {"dataset": dataset, "retrievers": [pipeline(seed, size), "random"], "measures": ["RR@5"], "warmup": 0}
    return sy.bench({**given, **more}, output=folder)


def ceilings(folder: Path) -> dict[str, float]:
    """nDCG@3 of the documents of `retrieve`, by grade."""
    rows = pl.read_parquet(folder / "stages.parquet").rows()
    found = {}
    for _, _, query, _, docs in rows:
        grades = sorted((QRELS[query].get(doc, 0) for doc in docs), reverse=True)[:3]
        ideal = sorted(QRELS[query].values(), reverse=True)[:3]
        gain, most = (sum(g / math.log2(i + 2) for i, g in enumerate(each)) for each in (grades, ideal))
        found[query] = gain / most
    return found


def mean(values: dict[str, float], kind: str | None = None) -> float:
    kept = [value for query, value in values.items() if kind in (None, KINDS[query])]
    return sum(kept) / len(kept)


def test_threshold_is_that_of_the_recomputed_ceiling(tmp_path: Path) -> None:
    bench(tmp_path)
    expected = mean(ceilings(tmp_path))
    below, above = (sy.gate(tmp_path, f"{RULE}{expected + step:.12f}") for step in (-1e-9, 1e-9))
    assert below.passed
    assert not above.passed
    assert [row.run for row in below.rows] == ["app"]
    assert below.rows[0].value == pytest.approx(expected, abs=1e-12)
    even = sy.gate(tmp_path, "ceiling(retrieve) nDCG@3[kind=even] >= 0.1")
    assert even.rows[0].value == pytest.approx(mean(ceilings(tmp_path), "even"), abs=1e-12)
    last = sy.gate(tmp_path, "ceiling(rerank) nDCG@3 >= 0.1").rows[0].value
    assert last == pytest.approx(sy.stages(tmp_path, "app", "nDCG@3").ceilings[1].mean(), abs=1e-12)


def test_baseline_folders_and_files_have_ceilings(tmp_path: Path) -> None:
    rule = "no significant drop in ceiling(retrieve) nDCG@3"
    bench(tmp_path / "before", size=30, gate=[rule])
    bench(tmp_path / "after", size=6, gate=[rule])
    before, after = (ceilings(tmp_path / name) for name in ("before", "after"))
    file = tmp_path / "baseline.json"
    sy.save_baseline(tmp_path / "before", file)
    for baseline in (tmp_path / "before", file):
        result = sy.gate(tmp_path / "after", baseline=baseline)
        row = next(row for row in result.rows if row.measure == "ceiling(retrieve) nDCG@3")
        assert not row.passed
        assert row.difference == pytest.approx(mean(after) - mean(before), abs=1e-12)
    stored = json.loads(file.read_text())
    assert stored["measures"]["ceiling(retrieve) nDCG@3"].startswith("ceiling(retrieve) nDCG")
    assert sy.gate(tmp_path / "before", baseline=file).passed
    no_default = sy.gate(tmp_path / "after", "RR@5 >= 0", baseline=file, run="app")
    assert {row.measure for row in no_default.rows} == {"RR@5", "ceiling(retrieve) nDCG@3"}


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ("ceiling(retreive) nDCG@3 >= 0.5", "no stage 'retreive'; the stages are retrieve, rerank. Did you mean"),
        ("ceiling(retrieve) nDGC@3 >= 0.5", "nDGC@3"),
        ("ceiling(retrieve) Latency <= 0.5", "cannot be split over stages"),
        ("ceiling(retrieve) >= 0.5", "needs a stage and a measure, as in"),
        ("ceiling nDCG@3 >= 0.5", "needs a stage and a measure, as in"),
    ],
)
def test_wrong_rules(rule: str, error: str, tmp_path: Path) -> None:
    bench(tmp_path)
    with pytest.raises(InputError, match=error.replace("(", r"\(")):
        sy.gate(tmp_path, rule)


def test_a_bench_refuses_a_wrong_ceiling_before_it_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be split over stages"):
        bench(tmp_path, gate=["ceiling(retrieve) Latency <= 1"])
    assert not tmp_path.joinpath("result.json").exists()


def test_stage_names_may_have_spaces_and_brackets() -> None:
    rule = parse_rule("ceiling( a + b (c) ) nDCG@10[type=x] not worse than baseline by 0.1")
    assert rule.ceiling == ("a + b (c)", "nDCG@10")
    assert (rule.column, rule.kind) == ("type", "not worse")
    assert parse_rule("nDCG@10 >= 0.3").ceiling is None
