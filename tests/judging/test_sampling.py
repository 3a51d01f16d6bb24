"""Documents drawn with known probabilities, and scores estimated from their judgments."""

from __future__ import annotations

from functools import partial

import dl2019_simulation as dl2019
import numpy as np
import pytest
from simulated_draws import simulate

import steelyard as sy
from needs import needs_shared
from steelyard.errors import InputError, MeasureError
from steelyard.judging.candidates import SMALLEST_DRAW, Candidates, Design, allocation, draw_documents, draw_queries
from steelyard.judging.pool import Pool, pool, sampled_scores
from steelyard.statistics.sampled import (
    bias_corrected,
    discounted_gain,
    inf_ndcg,
    jackknife,
    precision,
    stat_ap,
    xinf_ap,
)

RNG = np.random.default_rng(8)
DOCS = [f"d{place}" for place in range(60)]
RUNS = {name: {f"q{q}": [DOCS[i] for i in RNG.permutation(60)[:40]] for q in range(8)} for name in ("one", "two")}
QRELS = {f"q{q}": {doc: int(RNG.random() < 0.4) * int(RNG.integers(1, 4)) for doc in DOCS} for q in range(8)}
MEASURES = ["P@10", "DCG@10", "statAP", "xinfAP", "infNDCG", "infNDCG@10"]


def sample(budget: int | None = 200, seed: int = 0, **given: object) -> Pool:
    return pool(RUNS, strategy="sample", depth=20, budget=budget, seed=seed, **given)


# The draw


def test_the_budget_is_drawn_and_the_seed_decides() -> None:
    assert len(sample()) == 200
    assert sample().frame.equals(sample().frame)
    assert not sample(seed=1).frame.equals(sample().frame)


def test_inverse_probabilities_sum_to_the_population() -> None:
    everything = pool(RUNS, depth=20)
    assert (1 / sample().frame["probability"]).sum() == pytest.approx(len(everything))


def test_documents_at_good_ranks_are_drawn_more_often() -> None:
    rows = sample().frame.select("stratum", "probability", "ranks").rows()
    rates = {stratum: [p for s, p, _ in rows if s == stratum] for stratum in (1, 2)}
    assert min(rates[1]) > max(rates[2])
    assert {stratum for stratum, _, ranks in rows if min(ranks) <= 5} == {1}


def test_documents_are_drawn_as_often_as_their_probability_says() -> None:
    found = Candidates(("one",), {"q1": [DOCS[:20]]})
    draws = [draw_documents(found, {}, depth=20, budget=10, seed=seed) for seed in range(400)]
    for doc in (DOCS[0], DOCS[10], DOCS[19]):
        share = np.mean([("q1", doc) in order for _, order in draws])
        assert share == pytest.approx(draws[0][0].of("q1", doc)[0], abs=0.09)


def test_allocation_keeps_the_budget_and_the_smallest_draw() -> None:
    sizes = np.array([[5, 40], [3, 2], [20, 80]])
    for budget in (25, 40, 77, 149):
        counts = allocation(sizes, budget)
        assert counts.sum() == budget
        assert (counts <= sizes).all()
        assert (counts >= np.minimum(sizes, SMALLEST_DRAW)).all()
    assert allocation(sizes, None).tolist() == allocation(sizes, 999).tolist() == sizes.tolist()
    with pytest.raises(InputError, match="21 in all"):
        allocation(sizes, 20)


# The estimates


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_complete_sample_gives_the_measures_themselves(name: str) -> None:
    scores = sampled_scores(RUNS[name], sample(budget=None), QRELS, MEASURES)
    pooled = {query: {} for query in QRELS}
    for query, doc in pool(RUNS, depth=20).frame.select("query_id", "doc_id").iter_rows():
        pooled[query][doc] = QRELS[query][doc]
    names = ["P@10", "DCG@10", "AP", "AP", "nDCG", "nDCG@10"]
    expected = sy.evaluate(pooled, RUNS[name], sorted(set(names))).means
    for measure, same in zip(MEASURES, names, strict=True):
        assert scores[measure] == pytest.approx(expected[same], abs=1e-4)
        low, high = scores.interval(measure)
        assert (low, high) == (pytest.approx(scores[measure]), pytest.approx(scores[measure]))


def test_estimates_are_near_the_complete_values() -> None:
    complete = sampled_scores(RUNS["one"], sample(budget=None), QRELS, MEASURES)
    scores = sampled_scores(RUNS["one"], sample(), QRELS, MEASURES)
    for measure in MEASURES:
        low, high = scores.interval(measure, level=0.9999)
        assert low < complete[measure] < high
    assert scores.per_query.columns == ["query_id", *MEASURES]
    assert repr(scores).startswith("SampledScores of 8 queries: P@10 0.")


def test_documents_judged_before_are_used_with_probability_one() -> None:
    before = {query: {doc: grade for doc, grade in QRELS[query].items() if doc < "d3"} for query in QRELS}
    made = pool(RUNS, before, strategy="sample", depth=20, budget=100)
    assert made.design is not None
    judged = made.design.strata["q0"][0]
    assert judged
    assert not set(judged) & set(made.frame["doc_id"].filter(made.frame["query_id"] == "q0"))
    assert made.design.of("q0", judged[0]) == (1.0, 0)
    complete = sampled_scores(RUNS["one"], sample(budget=None), QRELS, ["statAP"])
    low, high = sampled_scores(RUNS["one"], made, QRELS, ["statAP"]).interval("statAP", level=0.9999)
    assert low < complete["statAP"] < high


def test_drawn_queries_widen_the_interval() -> None:
    scores = sampled_scores(RUNS["one"], sample(budget=None, queries=4), QRELS, ["statAP"])
    assert scores.queries == 8
    assert scores.per_query.height == 4
    low, high = scores.interval("statAP")
    assert high - low > 0.01


def test_a_written_sample_gives_the_same_scores(tmp_path: object) -> None:
    sample().write(f"{tmp_path}/pool.jsonl")
    read = Pool.read(f"{tmp_path}/pool.jsonl")
    assert sampled_scores(RUNS["one"], read, QRELS).means == sampled_scores(RUNS["one"], sample(), QRELS).means


def test_a_query_that_the_run_lacks_scores_zero() -> None:
    run = {query: listed for query, listed in RUNS["one"].items() if query != "q3"}
    scores = sampled_scores(run, sample(), QRELS, MEASURES).per_query
    assert scores.row(scores["query_id"].to_list().index("q3"))[1:] == (0.0,) * len(MEASURES)


def test_few_documents_leave_a_bias_of_inf_ndcg_which_is_reported() -> None:
    few, many, all_of_them = (sampled_scores(RUNS["one"], sample(budget), QRELS) for budget in (90, 200, None))
    (note,) = few.notes
    assert note.code == "few-documents-drawn"
    assert str(note).startswith("11 documents per query were drawn: with so few, infNDCG is about a tenth")
    assert repr(few).endswith(str(note))
    assert many.notes == all_of_them.notes == sampled_scores(RUNS["one"], sample(90), QRELS, ["statAP"]).notes == ()


def test_unjudged_documents_of_the_pool_are_an_error() -> None:
    qrels = {**QRELS, "q0": {}}
    with pytest.raises(InputError, match="of 200 documents of the pool are not in the qrels"):
        sampled_scores(RUNS["one"], sample(), qrels)


def test_a_pool_that_was_not_drawn_is_an_error() -> None:
    with pytest.raises(InputError, match='strategy="sample"'):
        sampled_scores(RUNS["one"], pool(RUNS), QRELS)


@pytest.mark.parametrize("text", ["AP", "P", "P@0", "statAP@10", "nDCG@10", "P@x"])
def test_measures_that_cannot_be_estimated_are_errors(text: str) -> None:
    with pytest.raises(MeasureError, match="cannot be estimated"):
        sampled_scores(RUNS["one"], sample(), QRELS, [text])


# dl2019


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ICT-BERT2", "bm25base_rm3_p"])
@pytest.mark.parametrize(
    "estimator",
    [partial(precision, k=10), partial(discounted_gain, k=10), stat_ap, xinf_ap, inf_ndcg],
    ids=["P@10", "DCG@10", "statAP", "xinfAP", "infNDCG"],
)
def test_estimates_are_unbiased_and_intervals_cover(name: str, estimator: object) -> None:
    """1,000 draws of 1,300 of 2,756 documents: the pool of eight runs to depth 20."""
    done = simulate(drawn_of_eight_runs(1300), dl2019.grades(), dl2019.lists()[name], estimator, draws=1000)
    assert abs(done.bias) < 3 * done.simulation_error
    assert 0.93 <= done.coverage <= 0.97


@needs_shared
@pytest.mark.slow
def test_intervals_of_xinf_ap_cover_with_few_documents() -> None:
    """12 documents per query, 200 draws for each of two runs: 94.5% are covered, 91% by one jackknife."""
    plain, found = (
        [
            simulate(drawn_of_eight_runs(500), dl2019.grades(), dl2019.lists()[name], xinf_ap, draws=200, made=made)
            for name in ("ICT-BERT2", "bm25base_rm3_p")
        ]
        for made in (jackknife, bias_corrected)
    )
    assert all(np.array_equal(one.corrected, other.corrected) for one, other in zip(plain, found, strict=True))
    assert np.mean([each.coverage for each in plain]) < 0.92
    assert 0.93 <= np.mean([each.coverage for each in found]) <= 0.97


def drawn_of_eight_runs(budget: int) -> Design:
    """The design of a sample of the pool of eight runs to depth 20."""
    chosen = {run: dl2019.runs()[run] for run in sorted(dl2019.runs())[::5]}
    made = pool(chosen, strategy="sample", depth=20, budget=budget).design
    assert made is not None
    return made


def test_a_larger_draw_of_queries_contains_the_smaller_one() -> None:
    queries = [f"q{number}" for number in range(50)]
    draws = [draw_queries(queries, count, 3) for count in (5, 20, 50)]
    assert set(draws[0]) < set(draws[1]) < set(draws[2]) == set(queries)
    assert draws[0] != draw_queries(queries, 5, 4)
