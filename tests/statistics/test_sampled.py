"""Estimates from sampled judgments: against complete judgments, all possible samples, infAP and sample_eval.pl."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from steelyard.errors import InputError
from steelyard.statistics.sampled import (
    ESTIMATORS,
    Estimator,
    SampledPool,
    bias_corrected,
    discounted_gain,
    inf_ndcg,
    jackknife,
    precision,
    sampled_interval,
    stat_ap,
    two_stage_variance,
    xinf_ap,
)

nan = float("nan")
RANK = [1, 2, 3, 5, 6, 7, 0, 0]
STRATUM = [0, 0, 1, 0, 1, 1, 1, 0]
GRADE = [2.0, 0.0, 1.0, 1.0, 3.0, 0.0, 1.0, 0.0]
EVERY: dict[str, Estimator] = {
    "P@5": partial(precision, k=5),
    "DCG@5": partial(discounted_gain, k=5),
    "statAP": stat_ap,
    "xinfAP": xinf_ap,
    "infNDCG": inf_ndcg,
    "infNDCG@5": partial(inf_ndcg, k=5),
}


def every_sample(counts: tuple[int, ...]) -> Iterator[SampledPool]:
    """All draws of so many documents from each stratum."""
    strata = [np.flatnonzero(np.array(STRATUM) == number) for number in range(len(counts))]
    draws = [combinations(docs, count) for docs, count in zip(strata, counts, strict=True)]
    for chosen in product(*draws):
        grade = np.full(len(GRADE), nan)
        drawn = [doc for part in chosen for doc in part]
        grade[drawn] = np.array(GRADE)[drawn]
        yield SampledPool.of(RANK, STRATUM, grade)


def random_pool(rng: np.random.Generator, strata: int = 2) -> SampledPool:
    size = int(rng.integers(8, 30))
    rank = np.zeros(size, dtype=int)
    listed = rng.permutation(size)[: rng.integers(4, size)]
    rank[listed] = rng.permutation(40)[: len(listed)] + 1
    grade = rng.integers(0, 4, size).astype(float)
    grade[rng.random(size) < 0.5] = nan
    return SampledPool.of(rank, rng.integers(0, strata, size), grade)


# Complete judgments


@pytest.mark.parametrize(
    ("estimator", "measure"),
    [
        (EVERY["P@5"], "P@5"),
        (EVERY["DCG@5"], "DCG@5"),
        (EVERY["statAP"], "AP"),
        (EVERY["xinfAP"], "AP"),
        (EVERY["infNDCG"], "nDCG"),
        (EVERY["infNDCG@5"], "nDCG@5"),
        (partial(inf_ndcg, published=True), "nDCG"),
    ],
)
def test_complete_judgments_give_the_measure_itself(estimator: Estimator, measure: str) -> None:
    docs = [f"d{place}" for place in range(len(RANK))]
    listed = {rank: doc for doc, rank in zip(docs, RANK, strict=True) if rank}
    run = {"q1": [listed.get(rank, f"other{rank}") for rank in range(1, 8)]}
    qrels = {"q1": dict(zip(docs, map(int, GRADE), strict=True))}
    result = jackknife(SampledPool.of(RANK, STRATUM, GRADE), estimator)
    tolerance = 1e-4 if estimator is xinf_ap else 1e-12
    assert float(result.estimate) == pytest.approx(sy.evaluate(qrels, run, [measure]).means[measure], abs=tolerance)
    assert float(result.corrected) == float(result.estimate)
    assert float(result.variance) == 0.0


def test_nothing_relevant_is_zero() -> None:
    pool = SampledPool.of(RANK, STRATUM, [0.0] * 8)
    assert [float(estimator(pool)) for estimator in EVERY.values()] == [0.0] * len(EVERY)


# All possible samples


@pytest.mark.parametrize("name", ["P@5", "DCG@5"])
def test_horvitz_thompson_totals_and_their_variance_are_unbiased(name: str) -> None:
    results = [jackknife(pool, EVERY[name]) for pool in every_sample((2, 3))]
    estimates = np.array([result.estimate for result in results])
    truth = float(EVERY[name](SampledPool.of(RANK, STRATUM, GRADE)))
    assert estimates.mean() == pytest.approx(truth, abs=1e-12)
    assert np.mean([result.variance for result in results]) == pytest.approx(estimates.var(), abs=1e-12)
    assert all(result.corrected == pytest.approx(result.estimate, abs=1e-12) for result in results)


def test_sum_of_precisions_of_stat_ap_is_unbiased() -> None:
    complete = SampledPool.of(RANK, STRATUM, GRADE)
    truth = float(stat_ap(complete) * complete.gain().sum())
    sums = [float(stat_ap(pool) * (pool.gain() * pool.weight()).sum()) for pool in every_sample((2, 2))]
    assert np.mean(sums) == pytest.approx(truth, abs=1e-12)


def two_strata(
    documents: tuple[int, int], drawn: tuple[int, int], relevant: tuple[float, float], size: int
) -> tuple[Any, Any, Any, Any]:
    """Rank, stratum and grade of the documents of two strata, and `size` random draws: their grades, nan elsewhere."""
    rng, count = np.random.default_rng(2), sum(documents)
    stratum = np.repeat([0, 1], documents)
    rank = np.where(np.arange(count) % 3 == 2, 0, np.arange(count) + 1)
    grade = np.where(rng.random(count) < np.take(relevant, stratum), rng.integers(1, 4, count), 0).astype(float)
    draws = np.full((size, count), nan)
    for first, last, number in ((0, documents[0], drawn[0]), (documents[0], count, drawn[1])):
        chosen = first + np.argsort(rng.random((size, last - first)), axis=1)[:, :number]
        draws[np.arange(size)[:, None], chosen] = grade[chosen]
    return rank, stratum, grade, draws


@pytest.mark.parametrize("estimator", [stat_ap, inf_ndcg])
def test_jackknife_removes_most_of_the_bias_of_ratios(estimator: Estimator) -> None:
    """1,500 draws of 15 and 8 from strata of 15 and 30 documents. What is left is of higher order in 1/n."""
    rank, stratum, grade, draws = two_strata((15, 30), (15, 8), relevant=(0.7, 0.3), size=1500)
    truth = float(estimator(SampledPool.of(rank, stratum, grade)))
    parts = [jackknife(SampledPool.of(rank, stratum, part), estimator) for part in np.split(draws, 15)]
    before = np.concatenate([part.estimate for part in parts]) - truth
    after = np.concatenate([part.corrected for part in parts]) - truth
    error = after.std() / np.sqrt(1500)
    assert abs(before.mean()) > 4 * error
    assert abs(after.mean()) < 0.5 * abs(before.mean())


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [stat_ap, xinf_ap])
def test_the_variance_contains_that_of_the_correction(estimator: Estimator) -> None:
    """2,000 draws of 6 and 6 from strata of 20 and 44 documents: one jackknife gives 0.77 and 0.68 of the variance."""
    rank, stratum, _, draws = two_strata((20, 44), (6, 6), relevant=(0.4, 0.1), size=2000)
    pools = [SampledPool.of(rank, stratum, part) for part in np.split(draws, 40)]
    once, both = ([made(pool, estimator) for pool in pools] for made in (jackknife, bias_corrected))
    assert all(np.array_equal(one.corrected, other.corrected) for one, other in zip(once, both, strict=True))
    true = np.concatenate([each.corrected for each in both]).var()
    plain, found = (np.mean([each.variance for each in made]) for made in (once, both))
    assert plain < 0.8 * true
    assert 0.95 * true < found < 1.1 * true


def test_the_variance_is_that_of_one_jackknife_of_unbiased_estimates_of_many_documents_and_of_two() -> None:
    many = SampledPool.of(np.arange(1, 101), [0] * 100, np.where(np.arange(100) < 50, np.arange(100) % 3, nan))
    few = next(iter(every_sample((2, 3))))
    for pool, estimator in ((many, stat_ap), (few, stat_ap), (few, EVERY["P@5"])):
        assert bias_corrected(pool, estimator).variance == jackknife(pool, estimator).variance


# Peers


def test_xinf_ap_with_one_stratum_is_inf_ap_of_trec_eval() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        pool = random_pool(rng, strata=1)
        docs = {int(rank): f"d{place}" for place, rank in enumerate(pool.rank) if rank}
        grades = np.where(np.isnan(pool.grade), -1, pool.grade).astype(int)
        qrels = {"q1": {f"d{place}": int(grade) for place, grade in enumerate(grades)}}
        run = {"q1": [docs.get(rank, f"other{rank}") for rank in range(1, 41)]}
        expected = sy.evaluate(qrels, run, ["infAP"]).means["infAP"]
        assert float(xinf_ap(pool)) == pytest.approx(expected, abs=1e-12)


def test_values_of_sample_eval() -> None:
    """Computed in Perl with the infAP and infNDCG part of NIST's sample_eval.pl, transcribed, to ten digits."""
    pool = SampledPool.of(
        [1, 2, 3, 5, 6, 7, 8, 10, 0, 0, 0, 0],
        [1, 1, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2],
        [nan, 2, 1, 0, nan, 3, nan, 1, 1, 2, nan, 0],
    )
    assert float(xinf_ap(pool, unseen=1 / 3)) == pytest.approx(0.5026566759, abs=1e-10)
    assert float(inf_ndcg(pool, published=True)) == pytest.approx(0.5343189349, abs=1e-10)


def test_stat_ap_by_hand() -> None:
    """Two of four drawn, both relevant, at ranks 1 and 3: p = 1/2, p of the pair = 2*1 / (4*3) = 1/6."""
    pool = SampledPool.of([1, 2, 3, 4], [0, 0, 0, 0], [1, nan, 1, nan])
    assert float(stat_ap(pool)) == pytest.approx((2 * 1 / 1 + (2 + 6) / 3) / 4, abs=1e-12)


# Shapes, draws and intervals


@pytest.mark.parametrize("name", sorted(EVERY))
def test_many_draws_at_once_are_the_draws_one_by_one(name: str) -> None:
    samples = list(every_sample((2, 3)))
    stacked = SampledPool(samples[0].rank, samples[0].stratum, np.stack([pool.grade for pool in samples]))
    together = jackknife(stacked, EVERY[name])
    for field in ("estimate", "corrected", "variance"):
        alone = [float(getattr(jackknife(pool, EVERY[name]), field)) for pool in samples]
        np.testing.assert_allclose(getattr(together, field), alone, atol=1e-12)


def test_hajek_precision_stays_below_one() -> None:
    pool = SampledPool.of([1, 2, 3, 0, 0, 0], [0] * 6, [1, 1, nan, nan, nan, nan])
    assert float(precision(pool, 3)) == pytest.approx(2.0)
    assert float(precision(pool, 3, hajek=True)) == pytest.approx(1.0)


def test_one_document_drawn_of_several_has_no_variance() -> None:
    result = jackknife(SampledPool.of([1, 2, 3], [0, 0, 0], [1, nan, nan]), stat_ap)
    assert np.isnan(result.variance)
    assert np.isnan(result.corrected)


def test_relevance_starts_at_rel() -> None:
    pool = SampledPool.of([1, 2], [0, 0], [1, 2])
    assert float(precision(pool, 2, rel=2)) == 0.5
    assert float(stat_ap(pool, rel=2)) == 0.5


def test_interval_of_drawn_queries_is_wider() -> None:
    values, noise = np.array([0.2, 0.5, 0.9, 0.4]), np.full(4, 0.001)
    all_low, all_high = sampled_interval(values, noise)
    low, high = sampled_interval(values, noise, queries=40)
    assert low < all_low < 0.5 < all_high < high
    assert sampled_interval(values, noise, queries=4) == (all_low, all_high)
    between = values.var(ddof=1) / 4
    assert two_stage_variance(values, noise, 8) == pytest.approx(0.5 * between + 0.5 * 0.004 / 16)
    assert np.isnan(two_stage_variance(values[:1], noise[:1], 8))


def test_two_stage_variance_is_unbiased() -> None:
    """Over all samples of two of four queries, with noise of known variance in every query."""
    rng = np.random.default_rng(1)
    truth, noise = np.array([0.1, 0.4, 0.5, 0.9]), np.array([0.01, 0.02, 0.03, 0.01])
    means, variances = [], []
    for _ in range(1000):
        values = truth + rng.normal(0.0, np.sqrt(noise))
        for chosen in combinations(range(4), 2):
            picked = list(chosen)
            means.append(values[picked].mean())
            variances.append(two_stage_variance(values[picked], noise[picked], 4))
    assert np.mean(variances) == pytest.approx(np.var(means), rel=0.08)


@pytest.mark.parametrize(
    ("rank", "stratum", "grade", "message"),
    [
        ([1, 2], [0], [1, 1], "one entry per document"),
        ([1, 1], [0, 0], [1, 1], "same rank"),
        ([1, -1], [0, 0], [1, 1], "negative"),
    ],
)
def test_wrong_arrays_are_errors(rank: list[int], stratum: list[int], grade: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SampledPool.of(rank, stratum, grade)


def test_wrong_level_is_an_error() -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        sampled_interval([0.5], [0.1], level=95)


def test_estimators_by_name() -> None:
    assert list(ESTIMATORS) == ["P", "DCG", "statAP", "xinfAP", "infNDCG"]
