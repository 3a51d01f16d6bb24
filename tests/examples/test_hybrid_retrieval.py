"""The hybrid-retrieval experiment: its main result, and its numbers computed from the definitions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.hybrid_retrieval import VARIANTS, Shape, hybrid_retrieval, knowledge_base
from scipy import stats

from steelyard.errors import SteelyardError
from steelyard.retrievers import Dense, Retriever

ROOT = Path(__file__).parents[2]
SMALL = Shape(documents=100, topics=2, questions=1)


@pytest.fixture(scope="module")
def small():
    return hybrid_retrieval(seeds=[3, 4], base=knowledge_base(seed=5, shape=SMALL))


@pytest.fixture(scope="module")
def whole():
    return hybrid_retrieval(seeds=range(5))


def published_stars(p):
    return "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else "ns"


def plain_measures(found, targets):
    """Straight from the definitions."""
    relevant = {doc for target in targets for doc in target}
    ranks = [rank for rank, doc in enumerate(found, 1) if doc in relevant]
    hit_targets = [target for target in targets if any(doc in found[:20] for doc in target)]
    return {
        **{f"Hit@{k}": float(any(rank <= k for rank in ranks)) for k in (1, 5, 10, 20)},
        "MRR": 1 / ranks[0] if ranks else 0.0,
        "Recall@20": sum(rank <= 20 for rank in ranks) / len(relevant),
        "DR@20": len(hit_targets) / len(targets),
        "Diversity@20": float(len(hit_targets)),
    }


def pair_of(comparison, run, measure):
    return next(pair for pair in comparison.tested_pairs if (pair.run, pair.measure) == (run, measure))


def test_there_are_six_variants_and_each_is_a_retriever():
    assert list(VARIANTS) == ["graph-flow", "semantic", "leaping", "router-relevance", "router-visits", "swarm-rerank"]
    made = [make(0, Dense()) for make in VARIANTS.values()]
    assert all(isinstance(each, Retriever) for each in made)
    assert [each.label for each in made] == list(VARIANTS)
    assert len({str(each.settings()) for each in made}) == 6


def test_measures_equal_a_plain_computation(small):
    base = small.base
    fitted = Dense().index(base.corpus)
    rows = {(row["seed"], row["run"], row["query_id"]): row for row in small.scores.to_dicts()}
    assert len(rows) == 2 * 6 * len(base.questions)
    for seed in (3, 4):
        for name, make in VARIANTS.items():
            retriever = make(seed, Dense(model=fitted.embed, vectors=fitted.vectors)).index(base.corpus)
            lists = retriever.retrieve(list(base.questions.values()), 20)
            for question, found in zip(base.questions, lists, strict=True):
                expected = plain_measures([doc for doc, _ in found], base.targets[question])
                row = rows[seed, name, question]
                assert {key: row[key] for key in expected} == pytest.approx(expected)
                assert row["Latency"] > 0


def test_tests_are_paired_over_questions_on_means_over_seeds(small):
    wide = small.scores.group_by("run", "query_id", maintain_order=True).mean()
    values = {name: wide.filter(run=name).sort("query_id")["DR@20"].to_numpy() for name in VARIANTS}
    for name in VARIANTS:
        if name == "graph-flow":
            continue
        pair = pair_of(small.comparison, name, "DR@20")
        assert pair.baseline == "graph-flow"
        assert pair.difference == pytest.approx(np.mean(values[name] - values["graph-flow"]))
        expected = stats.ttest_rel(values[name], values["graph-flow"]).pvalue
        assert pair.p == pytest.approx(expected, nan_ok=True)
        assert pair.stars == published_stars(expected)


def test_questions_are_split_by_their_number_of_relevant_documents(small):
    seen = set()
    for level, comparison in small.by_complexity.items():
        for question in comparison.score_tables[0].queries:
            answers = sum(map(len, small.base.targets[question]))
            assert level == ("simple" if answers <= 3 else "medium" if answers <= 6 else "complex")
            seen.add(question)
    assert seen == set(small.base.questions)
    assert [cut.value for cut in small.comparison.slices] == list(small.by_complexity)


def test_the_same_seeds_give_the_same_scores_except_latency(small):
    again = hybrid_retrieval(seeds=[3, 4], base=knowledge_base(seed=5, shape=SMALL))
    assert again.scores.drop("Latency").equals(small.scores.drop("Latency"))


def test_the_tables_have_every_variant_measure_and_slice(small):
    text = small.to_markdown()
    head = next(line for line in text.splitlines() if line.startswith("| Retriever"))
    for measure in ("Hit@1", "Hit@5", "Hit@10", "Hit@20", "MRR", "Recall@20", "DR@20", "Diversity@20", "Latency"):
        assert measure in head
    for name in VARIANTS:
        assert text.count(f"| {name} ") == 2 + len(small.by_complexity)
    for level, comparison in small.by_complexity.items():
        assert f"{level} ({len(comparison.score_tables[0].queries)})" in text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": []}, "expected at least one"),
        ({"seeds": [1, 1]}, "each once"),
        ({"variants": {"semantic": VARIANTS["semantic"]}}, "there is no variant 'graph-flow'"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(SteelyardError, match=message):
        hybrid_retrieval(**wrong)


def command(*arguments):
    module = [sys.executable, "-m", "examples.hybrid_retrieval"]
    return subprocess.run([*module, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [["five"], ["1", "2"], ["0"]])
def test_the_command_refuses_a_wrong_number_of_seeds(arguments):
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage" in done.stderr or "expected" in done.stderr


@pytest.mark.slow
def test_the_command_prints_the_tables():
    done = command("1")
    assert done.returncode == 0
    assert done.stdout.startswith("# Hybrid retrieval\n\n500 documents, 240 questions, 1 seed;")


@pytest.mark.slow
def test_the_documentation_has_the_results(whole):
    page = (ROOT / "examples/hybrid_retrieval/README.md").read_text("utf-8")
    table = page.partition("## Results\n\n")[2].partition("\n\n")[0].splitlines()
    head, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    shown = {row[0]: dict(zip(head, row, strict=True)) for row in rows[1:]}
    assert list(shown) == [standing.run for standing in whole.comparison.leaderboard_rows]
    for standing in whole.comparison.leaderboard_rows:
        for measure in filter(None, head[1:]):
            text = shown[standing.run][measure]
            rounding = 0.51 * 10 ** -len(text.partition(".")[2])
            assert float(text) == pytest.approx(standing.means[measure], abs=rounding)


@pytest.mark.slow
def test_swarm_rerank_is_significantly_ahead_of_graph_flow_on_dr_at_20(whole):
    pair = pair_of(whole.comparison, "swarm-rerank", "DR@20")
    assert pair.difference > 0
    assert pair.p < 0.001
    assert pair.stars == "***"
    assert whole.comparison.leaderboard_rows[0].run == "swarm-rerank"


@pytest.mark.slow
def test_it_stays_ahead_with_holm_and_with_one_value_per_theme(whole):
    frame = whole.scores.group_by("run", "query_id", maintain_order=True).mean()
    swarm, flow = (frame.filter(run=name)["DR@20"].to_numpy() for name in ("swarm-rerank", "graph-flow"))
    assert stats.ttest_rel(swarm, flow).pvalue * len(whole.comparison.tested_pairs) < 0.001
    # The three questions about a theme have the same relevant documents, so this test uses one mean per theme.
    themes = [values.reshape(80, 3).mean(axis=1) for values in (swarm, flow)]
    assert stats.ttest_rel(*themes).pvalue < 0.001


@pytest.mark.slow
def test_graph_flow_is_a_strong_baseline(whole):
    row = {standing.run: standing.means for standing in whole.comparison.leaderboard_rows}
    assert row["graph-flow"]["DR@20"] > 0.8
    deep = {standing.run: standing.means["DR@20"] for standing in whole.by_complexity["complex"].leaderboard_rows}
    assert deep["graph-flow"] > deep["semantic"]
