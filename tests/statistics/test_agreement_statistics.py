"""Agreement of grades and of rankings, against scikit-learn, krippendorff, scipy, plain loops and papers."""

from __future__ import annotations

import math
from itertools import chain, permutations, product

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from needs import import_peer
from steelyard.errors import InputError, PolicyError
from steelyard.statistics import agreement as ag

Array = npt.NDArray[np.float64]


def random_grades(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    n, highest = int(rng.integers(2, 40)), int(rng.integers(1, 6))
    a = rng.integers(0, highest + 1, n).astype(float)
    return a, np.where(rng.random(n) < 0.5, a, rng.integers(0, highest + 1, n))


def random_ranks(seed: int, items: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    n = items or int(rng.integers(2, 30))
    return rng.integers(0, 9, (1, n)) / 8.0, rng.integers(0, 9, (1, n)) / 8.0


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_kappa_equals_scikit_learn(weights: ag.Weights | None) -> None:
    metrics = import_peer("sklearn.metrics")
    compared = 0
    for seed in range(400):
        a, b = random_grades(seed)
        ours = ag.cohen_kappa(a, b, weights)
        if math.isnan(ours):
            assert len(np.unique(np.concatenate([a, b]))) == 1
            continue
        assert ours == pytest.approx(metrics.cohen_kappa_score(a, b, weights=weights), rel=0, abs=1e-12)
        compared += 1
    assert compared > 350


@pytest.mark.parametrize("level", ag.LEVELS)
def test_alpha_equals_krippendorff_with_gaps(level: ag.Level) -> None:
    peer = import_peer("krippendorff")
    compared = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        grades = rng.integers(0, rng.integers(2, 6), (rng.integers(2, 5), rng.integers(4, 40))) / 2.0
        grades[rng.random(grades.shape) < 0.3] = np.nan
        ours = ag.krippendorff_alpha(grades, level)
        if math.isnan(ours):
            continue
        theirs = peer.alpha(reliability_data=grades, level_of_measurement=level)
        assert ours == pytest.approx(theirs, rel=0, abs=1e-12)
        compared += 1
    assert compared > 900


def test_tau_b_equals_scipy_with_ties() -> None:
    for seed in range(1000):
        a, b = random_ranks(seed)
        theirs = stats.kendalltau(a[0], b[0]).statistic
        np.testing.assert_allclose(ag.kendall_tau(a, b)[0], theirs, rtol=0, atol=1e-12)


def test_ac1_by_hand() -> None:
    # 100 items, judges agree on 80 of one grade and 10 of the other: p_a = .9, pi = .85, p_e = 2 * .85 * .15.
    a = [0] * 80 + [1] * 10 + [0] * 5 + [1] * 5
    b = [0] * 80 + [1] * 10 + [1] * 5 + [0] * 5
    assert ag.ac1_of(ag.confusion_matrix(a, b)) == pytest.approx((0.9 - 0.255) / (1 - 0.255), abs=1e-12)
    assert ag.ac1_of(ag.confusion_matrix([1, 1], [1, 1])) == 1.0
    assert math.isnan(ag.ac1_of(ag.confusion_matrix([math.nan], [1])))


def test_confusion_matrix_and_bias_leave_out_gaps() -> None:
    a, b = [0, 1, 2, math.nan, 1], [1, 1, 3, 2, math.nan]
    found = ag.confusion_matrix(a, b)
    assert found.grades.tolist() == [0, 1, 2, 3]
    assert found.n == 3
    assert found.counts.tolist() == [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert ag.grade_bias(a, b) == pytest.approx(2 / 3)
    assert math.isnan(ag.grade_bias([math.nan], [1]))


def test_perfect_agreement_is_one_and_one_grade_is_undefined() -> None:
    grades = [0, 1, 2, 3, 1]
    for weights in (None, "linear", "quadratic"):
        assert ag.cohen_kappa(grades, grades, weights) == 1.0  # type: ignore[arg-type]
    assert ag.krippendorff_alpha([grades, grades]) == 1.0
    assert math.isnan(ag.cohen_kappa([1, 1], [1, 1]))
    assert math.isnan(ag.krippendorff_alpha([[1, 1], [1, 1]]))


def strict_tau_ap(reference: list[int], order: list[int]) -> float:
    """Yilmaz, Aslam and Robertson's formula: items best first, no ties."""
    place = {item: rank for rank, item in enumerate(reference)}
    shares = [
        sum(place[above] < place[item] for above in order[:rank]) / rank for rank, item in enumerate(order) if rank
    ]
    return 2.0 * sum(shares) / (len(order) - 1) - 1.0


def orders(scores: Array) -> list[list[int]]:
    """Every order of the items that the scores allow, best first."""
    levels = [np.flatnonzero(scores == value).tolist() for value in np.unique(scores)[::-1]]
    return [list(chain(*chosen)) for chosen in product(*map(permutations, levels))]


def test_tau_ap_weighs_the_top_more() -> None:
    # The same swap of neighbours at the top (C(2) = 0) and at the bottom (C(4) = 2 of 3).
    assert ag.tau_ap([[4, 3, 2, 1]], [[3, 4, 2, 1]])[0] == pytest.approx(2 / 3 * (0 + 1 + 1) - 1)
    assert ag.tau_ap([[4, 3, 2, 1]], [[4, 3, 1, 2]])[0] == pytest.approx(2 / 3 * (1 + 1 + 2 / 3) - 1)
    assert ag.tau_ap([[4, 3, 2, 1]], [[1, 2, 3, 4]])[0] == -1.0


def test_tau_ap_is_the_mean_over_all_orders_of_tied_items() -> None:
    for seed in range(150):
        rng = np.random.default_rng(seed)
        truth, ranking = rng.integers(0, 4, 5).astype(float), rng.integers(0, 3, 5).astype(float)
        every = [strict_tau_ap(a, b) for a in orders(truth) for b in orders(ranking)]
        assert ag.tau_ap(truth[None], ranking[None])[0] == pytest.approx(np.mean(every), rel=0, abs=1e-12)


def test_tau_ap_with_ties_equals_ircor() -> None:
    # The first data set in the tests of Urbano's R package ircor, and its results to four digits.
    x = [[0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992]]
    y = [[0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988]]
    tied_y = [[0.8, 0.4, 0.8, 1, 0.7, 0.1, 0.4, 0.5, 0.6, 1]]
    assert ag.tau_ap(x, y)[0] == pytest.approx(0.8519, abs=5e-5)
    assert ag.tau_ap(x, tied_y)[0] == pytest.approx(0.7454, abs=5e-5)


def test_rbo_of_the_papers_lists() -> None:
    # Webber, Moffat and Zobel 2010, table 1: S = abcdefg, T = zcavwxy; agreements 0, 0, 2/3, 2/4, 2/5, 2/6, 2/7.
    agreements = [0, 0, 2 / 3, 2 / 4, 2 / 5, 2 / 6, 2 / 7]
    for p in (0.5, 0.9):
        by_hand = (1 - p) * sum(p**d * a for d, a in enumerate(agreements)) + p**7 * agreements[-1]
        assert ag.rbo_lists("abcdefg", "zcavwxy", p) == pytest.approx(by_hand, abs=1e-15)


def test_rbo_of_uneven_lists() -> None:
    # ab against acbd, p = 0.5: X = 1, 1, 2, 2; the short list of 2 has agreement 1/2 at its end.
    by_hand = 0.5 * (1 + 0.5 * 0.5 + 0.25 * (2 + 0.5) / 3 + 0.125 * (2 + 1) / 4) + 0.5**4 * (1 / 4 + 1 / 2)
    assert ag.rbo_lists("ab", "acbd", 0.5) == pytest.approx(by_hand, abs=1e-15)
    assert ag.rbo_lists("acbd", "ab", 0.5) == ag.rbo_lists("ab", "acbd", 0.5)
    assert ag.rbo_lists("abc", "abc") == pytest.approx(1.0)
    assert ag.rbo_lists("abc", "xyz") == 0.0
    assert (ag.rbo_lists("", ""), ag.rbo_lists("", "a")) == (1.0, 0.0)
    with pytest.raises(InputError, match="repeated"):
        ag.rbo_lists("aa", "ab")


def test_rbo_of_scores_is_the_mean_over_all_orders_of_tied_items() -> None:
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 4, 5).astype(float), rng.integers(0, 3, 5).astype(float)
        every = [ag.rbo_lists(one, other, 0.8) for one in orders(a) for other in orders(b)]
        assert ag.rbo(a[None], b[None], 0.8)[0] == pytest.approx(np.mean(every), rel=0, abs=1e-12)


def test_drops_share_places_between_tied_items() -> None:
    assert ag.drops([[3, 2, 1]], [[1, 3, 3]]).tolist() == [[2.0, -0.5, -1.5]]


def test_rank_agreement_of_equal_judges() -> None:
    scores = np.random.default_rng(1).random((6, 20))
    found = ag.rank_agreement(scores, scores + 0.25, draws=200)
    for figure in (found.tau, found.tau_ap, found.rbo):
        assert (figure.value, figure.low, figure.high) == pytest.approx((1.0, 1.0, 1.0))
    assert found.drop.value == 0.0
    assert found.bias.value == pytest.approx(0.25)


def test_where_less_is_better_the_lowest_is_the_first() -> None:
    costs = np.random.default_rng(7).random((2, 6, 20))
    found, expected = ag.rank_agreement(*costs, less_is_better=True), ag.rank_agreement(*-costs)
    assert (found.tau, found.tau_ap, found.rbo) == (expected.tau, expected.tau_ap, expected.rbo)
    assert (found.drop, found.dropped) == (expected.drop, expected.dropped)
    assert found.bias.value == -expected.bias.value
    assert found.tau_ap != ag.rank_agreement(*costs).tau_ap


def test_rank_agreement_values_are_those_of_the_means_and_the_seed_decides() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((8, 30)), rng.random((8, 30))
    found = ag.rank_agreement(a, b, draws=300, seed=4)
    means_a, means_b = a.mean(axis=1), b.mean(axis=1)
    assert found.tau.value == pytest.approx(stats.kendalltau(means_a, means_b).statistic)
    assert found.dropped == int((np.argsort(np.argsort(-means_b)) - np.argsort(np.argsort(-means_a))).argmax())
    assert found.tau.low <= found.tau.value <= found.tau.high
    assert found == ag.rank_agreement(a, b, draws=300, seed=4)
    assert found.tau != ag.rank_agreement(a, b, draws=300, seed=5).tau


def test_significant_pairs_equal_scipys_t_tests() -> None:
    rng = np.random.default_rng(3)
    a = rng.random((7, 25)) + np.linspace(0, 0.6, 7)[:, None]
    b = rng.random((7, 25)) - np.linspace(0, 0.6, 7)[:, None]
    found = ag.significant_pairs(a, b)
    by_scipy = [
        (stats.ttest_rel(a[i], a[j]).pvalue < 0.05, stats.ttest_rel(b[i], b[j]).pvalue < 0.05)
        for i in range(7)
        for j in range(i + 1, 7)
    ]
    assert found.pairs == 21
    assert found.a == sum(one for one, _ in by_scipy)
    assert found.b == sum(other for _, other in by_scipy)
    assert found.both == sum(one and other for one, other in by_scipy)
    assert 0 < found.reversed <= found.both


def test_equal_runs_are_not_significantly_different() -> None:
    scores = np.repeat(np.random.default_rng(0).random((1, 9)), 3, axis=0)
    assert ag.significant_pairs(scores, scores) == ag.SignificantPairs(3, 0, 0, 0, 0)


def test_a_constant_difference_has_the_p_value_of_equal_signs() -> None:
    base = np.random.default_rng(0).random(3)
    scores = np.array([base + 0.5, base, base[::-1]])
    assert ag.significant_pairs(scores[:2], scores[:2]) == ag.SignificantPairs(1, 0, 0, 0, 0)
    assert ag.significant_signs(np.array([[0.1, 0.2, 0.6], [0.2, 0.6, 0.1]]), math.inf).tolist() == [0.0]


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InputError, match="same length"):
        ag.cohen_kappa([1, 2], [1])
    with pytest.raises(PolicyError, match="ordinal"):
        ag.krippendorff_alpha([[1, 2]], "ordinale")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="finite"):
        ag.kendall_tau([[1, math.nan]], [[1, 2]])
    with pytest.raises(InputError, match="between 0 and 1"):
        ag.rbo([[1, 2]], [[1, 2]], p=1.0)
    with pytest.raises(InputError, match="two runs"):
        ag.rank_agreement([[0.1, 0.2]], [[0.1, 0.2]])
