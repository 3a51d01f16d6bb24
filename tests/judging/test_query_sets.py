"""agreement(scores=...): sets of queries, and the known figures of TREC 2023."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

import steelyard as sy
from needs import needs_shared, shared_data
from steelyard.errors import InputError
from steelyard.judging.query_sets import set_verdict
from steelyard.statistics.agreement import query_set_agreement, split_taus

KEYS = [
    *["reference", "set", "measure", "queries", "reference_queries", "tau", "tau_low", "tau_high"],
    *["split_tau", "split_low", "split_high", "bias", "reversed"],
]
"""The promised fields of the JSON."""


def table(runs: int = 9, real: int = 12, synthetic: int = 5, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(real + synthetic):
        kind = "real" if query < real else "synthetic"
        values = np.linspace(0.3, 0.6, runs) + rng.normal(0, 0.1, runs)
        rows += [{"run": f"r{r}", "query_id": str(query), "kind": kind, "P@5": values[r]} for r in range(runs)]
    return pl.DataFrame(rows)


@needs_shared
def test_known_figures_of_trec_2023() -> None:
    data = shared_data("dl2023-queries")
    found = sy.agreement(
        scores=data / "scores.csv", queries=data / "queries.tsv", by="kind", reference="real", measures=["nDCG@10"]
    )
    rows = {row["set"]: row for row in found.query_sets.iter_rows(named=True)}
    assert {name: (round(row["tau"], 4), round(row["bias"], 4)) for name, row in rows.items()} == {
        "t5": (0.8723, -0.0860),
        "gpt4": (0.8175, 0.0068),
    }
    assert {name: (row["queries"], row["reference_queries"]) for name, row in rows.items()} == {
        "t5": (13, 51),
        "gpt4": (18, 51),
    }
    # Known from a few hundred splits: their standard error is about .005 for a mean and .01 for an end of the range.
    for name, known in (("t5", (0.784, 0.616, 0.878)), ("gpt4", (0.804, 0.693, 0.881))):
        split = [rows[name][each] for each in ("split_tau", "split_low", "split_high")]
        assert split == pytest.approx(known, abs=0.012)
    assert [row["reversed"] for row in rows.values()] == [0, 0]
    assert found.verdict.count("as well as real queries of the same number do") == 2


def test_tau_splits_and_pairs_equal_a_slow_computation() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((6, 7)), rng.random((6, 3))
    found = query_set_agreement(a, b, draws=50, seed=1)
    assert found.tau.value == pytest.approx(kendalltau(a.mean(1), b.mean(1)).statistic)
    assert found.tau.low <= found.tau.value <= found.tau.high
    assert found.bias.value == pytest.approx(b.mean() - a.mean())
    every = {
        round(kendalltau(a[:, list(c)].mean(1), np.delete(a, list(c), 1).mean(1)).statistic, 9)
        for c in combinations(range(7), 3)
    }
    assert set(np.round(found.splits, 9)) == every  # 2,000 splits see all 35
    assert found.tested.reversed <= found.opposite


def test_reversed_pairs_are_significant_with_both_sets_in_opposite_directions() -> None:
    rng = np.random.default_rng(0)
    a = np.array([[0.2], [0.5], [0.8]]) + rng.normal(0, 0.01, (3, 10))
    b = np.array([[0.5], [0.2], [0.8]]) + rng.normal(0, 0.01, (3, 8))
    found = query_set_agreement(a, b, draws=20)
    assert (found.tested.a, found.tested.b, found.tested.both, found.tested.reversed, found.opposite) == (3, 3, 3, 1, 1)


def test_the_same_seed_gives_the_same_splits_and_a_set_as_large_as_the_reference_is_compared_with_halves() -> None:
    a = np.random.default_rng(2).random((5, 8))
    assert np.array_equal(split_taus(a, 3, 100, 7), split_taus(a, 3, 100, 7))
    assert not np.array_equal(split_taus(a, 3, 100, 7), split_taus(a, 3, 100, 8))
    assert query_set_agreement(a, np.hstack([a, a]), draws=10).split_queries == 4
    assert len(query_set_agreement(a[:, :1], a, draws=10).splits) == 0


def test_sets_are_named_by_a_column_of_the_table_or_of_the_queries(tmp_path: Path) -> None:
    frame = table()
    inside = sy.agreement(scores=frame, reference="real", measures="P@5")
    (tmp_path / "queries.jsonl").write_text(
        "".join(
            json.dumps({"_id": q, "text": "?", "kind": k}) + "\n"
            for q, k in frame.select("query_id", "kind").unique().rows()
        )
    )
    beside = sy.agreement(
        scores=frame.drop("kind"), queries=tmp_path / "queries.jsonl", by="kind", reference="real", measures=["P@5"]
    )
    assert inside.query_sets.equals(beside.query_sets)


def test_json_has_the_promised_fields_and_every_format_is_written(tmp_path: Path) -> None:
    found = sy.agreement(scores=table(), reference="real", measures=["P@5"])
    (row,) = json.loads(found.to_json())["query_sets"]
    assert set(KEYS) <= set(row)
    page = found.to_html(tmp_path / "sets.html")
    assert page.count("<svg") == 2
    assert f"synthetic {row['tau']:.2f}</text>" in page
    assert "as many real" in found.to_markdown()
    assert len(found.to_csv().splitlines()) == 2


def test_queries_without_a_set_or_without_a_score_of_every_run_are_left_out() -> None:
    frame = table().with_columns(kind=pl.when(pl.col("query_id") == "0").then(None).otherwise(pl.col("kind")))
    frame = frame.filter(~((pl.col("query_id") == "1") & (pl.col("run") == "r3")))
    found = sy.agreement(scores=frame, reference="real", measures=["P@5"])
    assert found.query_sets["reference_queries"].to_list() == [10]
    assert any("1 query has no 'kind'" in line for line in found.notes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reference": "reel"}, "Did you mean"),
        ({"reference": None}, "reference is not given"),
        ({"judges": {"a": {}}, "reference": "real"}, "give one of the two"),
        ({"by": "sort", "reference": "real"}, "sort"),
    ],
)
def test_wrong_arguments_name_what_was_expected(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        sy.agreement(**{"scores": table(), "measures": ["P@5"], **change})  # type: ignore[call-overload]


def test_few_runs_are_no_basis_for_a_verdict() -> None:
    found = sy.agreement(scores=table(runs=4), reference="real", measures=["P@5"])
    assert found.verdict.startswith("Whether synthetic ranks runs like real cannot be judged from 4 runs")


def test_a_set_that_ranks_runs_the_other_way_round_is_below_the_range() -> None:
    frame = table().with_columns(
        pl.when(pl.col("kind") == "synthetic").then(1 - pl.col("P@5")).otherwise(pl.col("P@5")).alias("P@5")
    )
    found = sy.agreement(scores=frame, reference="real", measures=["P@5"])
    (row,) = found.query_sets.iter_rows(named=True)
    assert row["tau_high"] < row["split_low"]
    assert "less like real than as many real queries do" in set_verdict(row)
