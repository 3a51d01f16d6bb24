"""Prediction-powered estimates: by hand, against plain loops, and the coverage of their intervals."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.predictions import resampled_coverage, values_by_judge
from scipy import stats

from needs import needs_shared
from steelyard.errors import InputError
from steelyard.statistics.prediction_powered import (
    PredictionPowered,
    prediction_powered,
    prediction_powered_differences,
    shared_weight,
)

Array = npt.NDArray[np.float64]


def masked(y: Array, n: int) -> Array:
    """Human values of the first n queries only."""
    kept = y.copy()
    kept[:, n:] = np.nan
    return kept


def loop_estimate(y: Array, f: Array, n: int) -> tuple[float, float]:
    """The estimate and the mean lambda of one series, query by query."""
    others, more = f[n:], len(f) - n
    weights = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        covariance = np.cov(y[rest], f[rest])[0, 1]
        pooled = np.var(np.delete(f, i), ddof=1)
        r = np.corrcoef(y[rest], f[rest])[0, 1]
        t2 = r * r * (n - 3) / (1 - r * r)
        weights.append(max(covariance, 0.0) / (pooled * (1 + n / more)) * max(1 - 1 / t2, 0.0))
    weight = np.array(weights)
    return float((y[:n] - weight * (f[:n] - others.mean())).mean()), float(weight.mean())


def test_equals_a_loop_over_queries() -> None:
    rng = np.random.default_rng(1)
    y = rng.random((20, 60))
    f = y * 0.7 + rng.normal(0.2, 0.1, y.shape)
    for row, found in enumerate(prediction_powered(masked(y, 15), f)):
        estimate, weight = loop_estimate(y[row], f[row], 15)
        assert found.estimate == pytest.approx(estimate, abs=1e-12)
        assert found.lambda_ == pytest.approx(weight, abs=1e-12)
        assert (found.n, found.N, found.left_out) == (15, 45, 0)
        assert found.effective_n > 15


def test_without_useful_predictions_it_is_the_t_interval() -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(0.1, 1.0, (1, 12))
    for f in (np.zeros((1, 40)), -np.pad(y, ((0, 0), (0, 28)), mode="wrap")):
        (found,) = prediction_powered(masked(np.pad(y, ((0, 0), (0, 28))), 12), f)
        interval = stats.ttest_1samp(y[0], 0.0).confidence_interval()
        assert found.lambda_ == 0.0
        assert not found.helped
        assert found.estimate == pytest.approx(y.mean())
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
        assert found.p == pytest.approx(stats.ttest_1samp(y[0], 0.0).pvalue)
        assert found.effective_n == 12.0
        assert "do not help" in found.summary()


def test_few_human_values_or_no_others_leave_the_predictions_out() -> None:
    y = np.arange(10.0)[None] / 10
    assert prediction_powered(masked(y, 4), y)[0].lambda_ == 0.0
    assert prediction_powered(y, y)[0].lambda_ == 0.0
    (one,) = prediction_powered(masked(y, 1), y)
    assert one.n == 1
    assert math.isnan(one.low)
    (none,) = prediction_powered(masked(y, 0), y)
    assert none.n == 0
    assert math.isnan(none.estimate)


def test_a_human_value_without_prediction_is_left_out_unless_all_are() -> None:
    y = np.linspace(0.1, 0.9, 20)[None]
    f = y.copy()
    f[0, [0, 15]] = np.nan
    (found,) = prediction_powered(masked(y, 10), f)
    assert (found.n, found.N, found.left_out) == (9, 9, 2)
    f[0, :10] = np.nan
    (found,) = prediction_powered(masked(y, 10), f)
    assert (found.n, found.N, found.lambda_) == (10, 0, 0.0)
    assert found.estimate == pytest.approx(y[0, :10].mean())


def test_rows_do_not_depend_on_each_other() -> None:
    rng = np.random.default_rng(3)
    y, f = rng.random((5, 30)), rng.random((5, 30)) * 0.3
    f += y
    together = prediction_powered(masked(y, 10), f, (0, 1))
    alone = [prediction_powered(masked(y, 10)[i : i + 1], f[i : i + 1], (0, 1))[0] for i in range(5)]
    for one, other in zip(together, alone, strict=True):
        assert (one.estimate, one.low, one.high) == pytest.approx((other.estimate, other.low, other.high))


def test_differences_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(4)
    y, f = rng.random((3, 30)), rng.random((3, 30))
    (found,) = prediction_powered_differences(masked(y, 12), f, [(2, 0)])
    assert found == prediction_powered(masked(y, 12)[[2]] - masked(y, 12)[[0]], f[[2]] - f[[0]])[0]


def loop_weight(y: Array, f: Array, n: int) -> list[float]:
    """The weight of every human-judged query, from all others, summed over the rows."""
    y, f = y - y.mean(axis=0), f - f.mean(axis=0)
    more, weights = y.shape[1] - n, []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        covariance = sum(np.cov(a[rest], b[rest])[0, 1] for a, b in zip(y, f, strict=True))
        pooled = np.var(np.delete(f, i, axis=1), axis=1, ddof=1).sum()
        r2 = covariance**2 / (np.var(y[:, rest], axis=1, ddof=1).sum() * np.var(f[:, rest], axis=1, ddof=1).sum())
        weights.append(covariance / (pooled * (1 + n / more)) * max(1 - (1 - r2) / (r2 * (n - 3)), 0.0))
    return weights


def test_one_weight_for_all_rows_equals_a_loop_and_differences_add_up() -> None:
    rng = np.random.default_rng(8)
    y = rng.random((4, 60))
    f = y * 0.7 + rng.normal(0.2, 0.1, y.shape)
    weight = shared_weight(masked(y, 15), f)
    assert weight[:15] == pytest.approx(loop_weight(y, f, 15), abs=1e-12)
    assert not weight[15:].any()
    means = [each.estimate for each in prediction_powered(masked(y, 15), f, (0, 1), weight=weight)]
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    for (i, j), found in zip(pairs, prediction_powered_differences(masked(y, 15), f, pairs, 0.95, weight), strict=True):
        assert found.estimate == pytest.approx(means[i] - means[j], rel=0, abs=1e-12)
    assert not shared_weight(masked(y, 15), 1 - f).any()
    assert not shared_weight(masked(y, 4), f).any()
    single = shared_weight(masked(y[:1], 15), f[:1])
    own = prediction_powered(masked(y[:1], 15), f[:1])[0]
    assert single[:15].mean() == pytest.approx(own.lambda_, abs=1e-12)


def test_bounds_are_kept_and_equal_values_have_an_interval_of_some_width() -> None:
    y = np.ones((1, 30))
    (found,) = prediction_powered(masked(y, 10), y, bounds=(0, 1))
    assert found.estimate == found.high == 1.0
    assert 0.7 < found.low < 0.95


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InputError, match="same shape"):
        prediction_powered([[1.0, 2.0]], [[1.0]])
    with pytest.raises(InputError, match="finite"):
        prediction_powered([[1.0, math.inf]], [[1.0, 1.0]])
    with pytest.raises(InputError, match="bounds"):
        prediction_powered([[1.0, 2.0]], [[1.0, 2.0]], bounds=(1, 0))
    with pytest.raises(InputError, match="95%"):
        prediction_powered([[1.0, 2.0]], [[1.0, 2.0]], level=95)


def coverage(found: list[PredictionPowered], truth: float) -> float:
    return 100.0 * float(np.mean([one.low <= truth <= one.high for one in found]))


def ndcg_like(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, float]:
    """Beta(1.3, 1.3), 15% zeros."""
    return rng.beta(1.3, 1.3, shape) * (rng.random(shape) > 0.15), 0.425


def rr_like(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, float]:
    """One over a geometric rank, 0 below rank 10."""
    rank, places = rng.geometric(0.5, shape), np.arange(1, 11)
    return np.where(rank <= 10, 1.0 / rank, 0.0), float((0.5**places / places).sum())


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, float]:
    return rng.normal(0.0, 0.2, shape), 0.0


VALUES = {"ndcg": (ndcg_like, (0.0, 1.0)), "rr": (rr_like, (0.0, 1.0)), "difference": (normal, None)}


def predictions(y: Array, kind: str, rng: np.random.Generator) -> Array:
    """Predictions of a given worth; a share of them belongs to other queries."""
    right = {"good": 0.85, "useless": 0.0, "misleading": 0.7}[kind]
    mixed = np.where(rng.random(y.shape) < right, y, rng.permuted(y, axis=1))
    return -mixed if kind == "misleading" else mixed * 0.8 + 0.15


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20, 50])
@pytest.mark.parametrize("kind", ["good", "useless", "misleading"])
@pytest.mark.parametrize("values", sorted(VALUES))
def test_intervals_cover_what_they_say(values: str, kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    make, bounds = VALUES[values]
    y, truth = make(rng, (2000, 5 * n))
    found = prediction_powered(masked(y, n), predictions(y, kind, rng), bounds)
    assert 93.0 <= coverage(found, truth) <= 97.0
    shares = np.mean([one.high - one.low for one in found]) / np.mean([one.human_high - one.human_low for one in found])
    assert shares < 0.8 if kind == "good" else shares < 1.01


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.15, 0.8])
def test_skewed_values_of_ten_queries_are_covered_where_t_fails(chance: float) -> None:
    # RR with mean 0.32 or 0.89. With 0.89 one sample in ten is ten times 1, where Student's t has no width.
    rng = np.random.default_rng(5)
    rank, places = rng.geometric(chance, (2000, 50)), np.arange(1, 11)
    y = np.where(rank <= 10, 1.0 / rank, 0.0)
    truth = float((chance * (1 - chance) ** (places - 1) / places).sum())
    f = predictions(y, "good", rng)
    assert coverage(prediction_powered(masked(y, 10), f), truth) < 91.0
    assert 92.0 <= coverage(prediction_powered(masked(y, 10), f, (0.0, 1.0)), truth) <= 99.5


@pytest.fixture(scope="module")
def dl2019() -> dict[str, Array]:
    """Per-query nDCG@10 of all 37 runs by NIST and by the eight models: runs x queries."""
    return values_by_judge("nDCG@10")


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20])
@pytest.mark.parametrize("judge", ["umbrela-gpt4", "query-similarity-llama3-8b"])
def test_intervals_cover_on_resampled_queries_of_dl2019(dl2019: dict[str, Array], judge: str, n: int) -> None:
    rng = np.random.default_rng(n)
    found = []
    for human, predicted in zip(dl2019["nist"][::6], dl2019[judge][::6], strict=True):
        drawn = rng.integers(0, 43, (2000, 43))
        estimates = prediction_powered(masked(human[drawn], n), predicted[drawn], (0.0, 1.0))
        found.append(coverage(estimates, float(human.mean())))
    assert 93.0 <= np.mean(found) <= 97.0
    assert min(found) > 92.0


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20, 30])
def test_intervals_with_one_weight_for_all_runs_cover_on_dl2019(dl2019: dict[str, Array], n: int) -> None:
    """Each model, 500 draws: 93% to 97%, give or take three standard errors of the simulation."""
    judges = sorted(set(dl2019) - {"nist"})
    assert len(judges) == 8
    for number, judge in enumerate(judges):
        means, differences = resampled_coverage(dl2019["nist"], dl2019[judge], n, draws=500, seed=10 * n + number)
        for found in (means, differences):
            assert found.error <= 0.007
            assert 0.93 - 3 * found.error <= found.covered <= 0.97 + 3 * found.error, judge
        assert differences.width < 1.0
        assert means.width < 1.05


@pytest.mark.parametrize(("n", "size"), [(20, 40), (20, 100), (50, 100)])
def test_intervals_of_the_mean_over_exactly_these_queries_cover_it(n: int, size: int) -> None:
    """The finite population: other intervals hold the mean of these queries in 99 to 100% of cases."""
    rng = np.random.default_rng(n + size)
    y = rng.beta(2, 3, (800, size))
    f = y + rng.normal(0.1, 0.12, y.shape)
    true = y.mean(axis=1)
    human = masked(y, n)

    def covered(found: list[PredictionPowered]) -> float:
        return float(np.mean([each.low <= mean <= each.high for each, mean in zip(found, true, strict=True)]))

    for bounds in (None, (0.0, 1.0)):
        wide, narrow = (prediction_powered(human, f, bounds, finite=finite) for finite in (False, True))
        assert [each.estimate for each in wide] == [each.estimate for each in narrow]
        assert covered(wide) > 0.98
        assert 0.93 <= covered(narrow) <= 0.975
    pairs = prediction_powered_differences(human, f, [(0, 1)], finite=True)
    assert pairs == prediction_powered(human[:1] - human[1:2], f[:1] - f[1:2], finite=True)


def test_the_mean_over_exactly_these_queries_is_known_if_all_are_judged() -> None:
    y = np.random.default_rng(1).random((1, 12))
    (found,) = prediction_powered(y, y, finite=True)
    assert (found.low, found.high) == (found.estimate, found.estimate)
    assert found.estimate == pytest.approx(float(y.mean()))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_constant_difference_has_the_p_value_of_equal_signs(n: int) -> None:
    predicted = np.array([[1.0] * (n + 10), [0.5] * (n + 10)])
    for finite in (False, True):
        found = prediction_powered_differences(masked(predicted, n), predicted, [(0, 1), (1, 0)], finite=finite)
        assert [estimate.p for estimate in found] == [2 / 2**n] * 2
