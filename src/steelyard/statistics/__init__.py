"""Statistics over numbers per query: tests, intervals, corrections, ranks, power.

This floor knows nothing of retrieval: arrays in, numbers out. Names are loaded when first used, and
importing this package imports nothing but numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy_names import loader

if TYPE_CHECKING:
    from steelyard.statistics.arrays import differences as differences
    from steelyard.statistics.bootstrap import bootstrap_test as bootstrap_test
    from steelyard.statistics.bootstrap import bootstrap_tests as bootstrap_tests
    from steelyard.statistics.corrections import CORRECTIONS as CORRECTIONS
    from steelyard.statistics.corrections import Correction as Correction
    from steelyard.statistics.corrections import adjust as adjust
    from steelyard.statistics.effect import Tally as Tally
    from steelyard.statistics.effect import cohens_d as cohens_d
    from steelyard.statistics.effect import relative_change as relative_change
    from steelyard.statistics.effect import shown_p as shown_p
    from steelyard.statistics.effect import stars as stars
    from steelyard.statistics.effect import tally as tally
    from steelyard.statistics.families import FamilyResult as FamilyResult
    from steelyard.statistics.families import max_t as max_t
    from steelyard.statistics.families import tukey as tukey
    from steelyard.statistics.intervals import INTERVAL_METHODS as INTERVAL_METHODS
    from steelyard.statistics.intervals import difference_interval as difference_interval
    from steelyard.statistics.intervals import mean_interval as mean_interval
    from steelyard.statistics.intervals import mean_intervals as mean_intervals
    from steelyard.statistics.one_sided import fall_tests as fall_tests
    from steelyard.statistics.one_sided import smallest_p as smallest_p
    from steelyard.statistics.outcome import TestResult as TestResult
    from steelyard.statistics.paired import sign_test as sign_test
    from steelyard.statistics.paired import t_test as t_test
    from steelyard.statistics.paired import wilcoxon_test as wilcoxon_test
    from steelyard.statistics.permutation import permutation_test as permutation_test
    from steelyard.statistics.permutation import permutation_tests as permutation_tests
    from steelyard.statistics.power import PowerResult as PowerResult
    from steelyard.statistics.power import detectable_effect as detectable_effect
    from steelyard.statistics.power import power_analysis as power_analysis
    from steelyard.statistics.power import power_of_t as power_of_t
    from steelyard.statistics.power import queries_needed as queries_needed
    from steelyard.statistics.ranks import groups_of as groups_of
    from steelyard.statistics.ranks import rank_intervals as rank_intervals
    from steelyard.statistics.ranks import tie_groups as tie_groups
    from steelyard.statistics.stability import Flip as Flip
    from steelyard.statistics.stability import Stability as Stability
    from steelyard.statistics.stability import rank_stability as rank_stability
    from steelyard.statistics.tests import FAMILY_TESTS as FAMILY_TESTS
    from steelyard.statistics.tests import PAIRED_TESTS as PAIRED_TESTS
    from steelyard.statistics.tests import TESTS as TESTS
    from steelyard.statistics.tests import paired_tests as paired_tests

_HOMES = {
    "arrays": ("differences",),
    "bootstrap": ("bootstrap_test", "bootstrap_tests"),
    "corrections": ("CORRECTIONS", "Correction", "adjust"),
    "effect": ("Tally", "cohens_d", "relative_change", "shown_p", "stars", "tally"),
    "families": ("FamilyResult", "max_t", "tukey"),
    "intervals": ("INTERVAL_METHODS", "difference_interval", "mean_interval", "mean_intervals"),
    "one_sided": ("fall_tests", "smallest_p"),
    "outcome": ("TestResult",),
    "paired": ("sign_test", "t_test", "wilcoxon_test"),
    "permutation": ("permutation_test", "permutation_tests"),
    "power": ("PowerResult", "detectable_effect", "power_analysis", "power_of_t", "queries_needed"),
    "ranks": ("groups_of", "rank_intervals", "tie_groups"),
    "stability": ("Flip", "Stability", "rank_stability"),
    "tests": ("FAMILY_TESTS", "PAIRED_TESTS", "TESTS", "paired_tests"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)
__getattr__ = loader(__name__, _HOME_OF)


def __dir__() -> list[str]:
    return __all__
