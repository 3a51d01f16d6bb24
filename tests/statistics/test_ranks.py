"""Rank intervals and tie groups."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from steelyard.errors import InputError
from steelyard.statistics import groups_of, rank_intervals, t_test, tie_groups


def test_clear_order_has_narrow_ranks_and_equal_runs_have_wide_ones() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(0.0, 0.1, (4, 200)) + np.array([[0.9], [0.5], [0.5], [0.1]])
    intervals = rank_intervals(table)
    assert intervals[0] == (1, 1)
    assert intervals[3] == (4, 4)
    assert intervals[1] == intervals[2] == (2, 3)


def test_a_run_equal_to_another_on_every_query_shares_its_ranks() -> None:
    row = np.random.default_rng(2).random(30)
    assert rank_intervals([row, row, row]) == [(1, 3)] * 3


def test_rank_intervals_shrink_with_the_level_and_repeat_with_the_seed() -> None:
    table = np.random.default_rng(3).random((6, 40))
    wide, narrow = rank_intervals(table, 0.99), rank_intervals(table, 0.5)
    assert all(a <= c and d <= b for (a, b), (c, d) in zip(wide, narrow, strict=True))
    assert rank_intervals(table, seed=1) == rank_intervals(table, seed=1)


def test_rank_intervals_with_missing_values_and_with_one_query() -> None:
    table = np.array([[0.9, 0.8, math.nan, 0.9], [0.1, 0.2, 0.3, 0.1]])
    assert rank_intervals(table) == [(1, 1), (2, 2)]
    assert rank_intervals([[0.9], [0.1], [0.2]]) == [(1, 3)] * 3


def test_runs_share_a_letter_if_and_only_if_the_difference_is_not_significant() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        table = rng.normal(0.0, 0.2, (6, 40)) + rng.choice([0.0, 0.1, 0.2, 0.3], (6, 1))
        letters = tie_groups(table, correction="none")
        for i, j in itertools.combinations(range(6), 2):
            assert bool(set(letters[i]) & set(letters[j])) == (t_test(table[i] - table[j]).p >= 0.05)
        used = "".join(letters)
        assert set(used) == set("abcdefghij"[: len(set(used))])
        assert "a" in letters[int(table.mean(axis=1).argmax())]


def test_a_chain_has_letters_that_overlap() -> None:
    p = np.array([[1, 0.2, 0.01], [0.2, 1, 0.2], [0.01, 0.2, 1]])
    assert groups_of([0.9, 0.8, 0.7], p) == ["a", "ab", "b"]


def test_a_run_that_differs_from_both_neighbours_has_its_own_letter() -> None:
    p = np.array([[1, 0.01, 0.2], [0.01, 1, 0.01], [0.2, 0.01, 1]])
    assert groups_of([0.9, 0.8, 0.7], p) == ["a", "b", "a"]


def test_runs_without_a_test_share_a_letter_and_the_order_of_runs_does_not_matter() -> None:
    p = np.full((3, 3), math.nan)
    assert groups_of([0.9, 0.5, 0.1], p) == ["a", "a", "a"]
    p = np.array([[1, 0.001, 0.001], [0.001, 1, 0.001], [0.001, 0.001, 1]])
    assert groups_of([0.1, 0.9, 0.5], p) == ["c", "a", "b"]
    assert groups_of([0.5, 0.5, 0.1], p) == ["a", "a", "b"]
    assert tie_groups([[0.3, 0.4]]) == ["a"]
    assert tie_groups([[0.3], [0.9]]) == ["a", "a"]


def test_more_groups_than_letters_are_numbered() -> None:
    significant = np.full((55, 55), 0.001)
    letters = groups_of(np.arange(55, 0, -1), significant)
    assert letters[0] == "a"
    assert letters[51:] == ["Z", "[53]", "[54]", "[55]"]


def test_groups_need_all_pairs() -> None:
    with pytest.raises(InputError, match="2 x 2"):
        groups_of([0.1, 0.2], [[1.0]])
