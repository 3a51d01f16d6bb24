"""Statistics over numbers per query: tests, intervals, corrections, effect sizes, power and ranks.

This package knows nothing of retrieval: arrays in, numbers out. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.statistics.arrays import differences as differences
    from steelyard.statistics.corrections import CORRECTIONS as CORRECTIONS
    from steelyard.statistics.corrections import Correction as Correction
    from steelyard.statistics.corrections import FamilyResult as FamilyResult
    from steelyard.statistics.corrections import adjust as adjust
    from steelyard.statistics.corrections import best_of_p as best_of_p
    from steelyard.statistics.corrections import max_t as max_t
    from steelyard.statistics.corrections import tukey as tukey
    from steelyard.statistics.effect import PowerResult as PowerResult
    from steelyard.statistics.effect import Tally as Tally
    from steelyard.statistics.effect import cohens_d as cohens_d
    from steelyard.statistics.effect import detectable_effect as detectable_effect
    from steelyard.statistics.effect import power_analysis as power_analysis
    from steelyard.statistics.effect import power_of_t as power_of_t
    from steelyard.statistics.effect import queries_needed as queries_needed
    from steelyard.statistics.effect import relative_change as relative_change
    from steelyard.statistics.effect import shown_p as shown_p
    from steelyard.statistics.effect import stars as stars
    from steelyard.statistics.effect import tally as tally
    from steelyard.statistics.intervals import INTERVAL_METHODS as INTERVAL_METHODS
    from steelyard.statistics.intervals import difference_interval as difference_interval
    from steelyard.statistics.intervals import mean_interval as mean_interval
    from steelyard.statistics.intervals import mean_intervals as mean_intervals
    from steelyard.statistics.paired import FAMILY_TESTS as FAMILY_TESTS
    from steelyard.statistics.paired import PAIRED_TESTS as PAIRED_TESTS
    from steelyard.statistics.paired import TESTS as TESTS
    from steelyard.statistics.paired import TestResult as TestResult
    from steelyard.statistics.paired import bootstrap_test as bootstrap_test
    from steelyard.statistics.paired import bootstrap_tests as bootstrap_tests
    from steelyard.statistics.paired import fall_tests as fall_tests
    from steelyard.statistics.paired import paired_tests as paired_tests
    from steelyard.statistics.paired import permutation_test as permutation_test
    from steelyard.statistics.paired import permutation_tests as permutation_tests
    from steelyard.statistics.paired import sign_test as sign_test
    from steelyard.statistics.paired import smallest_p as smallest_p
    from steelyard.statistics.paired import t_test as t_test
    from steelyard.statistics.paired import wilcoxon_test as wilcoxon_test
    from steelyard.statistics.ranks import Flip as Flip
    from steelyard.statistics.ranks import Stability as Stability
    from steelyard.statistics.ranks import groups_of as groups_of
    from steelyard.statistics.ranks import rank_intervals as rank_intervals
    from steelyard.statistics.ranks import rank_stability as rank_stability
    from steelyard.statistics.ranks import tie_groups as tie_groups

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "arrays": ("differences",),
        "corrections": ("CORRECTIONS", "Correction", "FamilyResult", "adjust", "best_of_p", "max_t", "tukey"),
        "effect": (
            *("PowerResult", "Tally", "cohens_d", "detectable_effect", "power_analysis", "power_of_t"),
            *("queries_needed", "relative_change", "shown_p", "stars", "tally"),
        ),
        "intervals": ("INTERVAL_METHODS", "difference_interval", "mean_interval", "mean_intervals"),
        "paired": (
            *("FAMILY_TESTS", "PAIRED_TESTS", "TESTS", "TestResult", "bootstrap_test", "bootstrap_tests", "fall_tests"),
            *("paired_tests", "permutation_test", "permutation_tests", "sign_test", "smallest_p", "t_test"),
            "wilcoxon_test",
        ),
        "ranks": ("Flip", "Stability", "groups_of", "rank_intervals", "rank_stability", "tie_groups"),
    },
)
