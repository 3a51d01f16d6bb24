"""Statistics over numbers per query: tests, intervals, corrections, effect sizes, power and ranks.

This package knows nothing of retrieval: arrays in, numbers out. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.statistics.arrays import differences
    from steelyard.statistics.corrections import CORRECTIONS, Correction, FamilyResult, adjust, best_of_p, max_t, tukey
    from steelyard.statistics.effect import Tally, cohens_d, relative_change, shown_p, stars, tally
    from steelyard.statistics.intervals import INTERVAL_METHODS, difference_interval, mean_interval, mean_intervals
    from steelyard.statistics.paired import (
        FAMILY_TESTS,
        PAIRED_TESTS,
        TESTS,
        fall_tests,
        paired_tests,
        sign_test,
        smallest_p,
        t_test,
        wilcoxon_test,
    )
    from steelyard.statistics.power import PowerResult, detectable_effect, power_analysis, power_of_t, queries_needed
    from steelyard.statistics.ranks import Flip, Stability, groups_of, rank_intervals, rank_stability, tie_groups
    from steelyard.statistics.resampling import (
        TestResult,
        bootstrap_test,
        bootstrap_tests,
        permutation_test,
        permutation_tests,
    )

__all__ = ["CORRECTIONS", "FAMILY_TESTS", "INTERVAL_METHODS", "PAIRED_TESTS", "Correction", "FamilyResult", "Flip"]
__all__ += ["TESTS", "PowerResult", "Stability", "Tally", "TestResult", "adjust", "best_of_p", "bootstrap_test"]
__all__ += ["bootstrap_tests", "cohens_d", "detectable_effect", "difference_interval", "differences", "fall_tests"]
__all__ += ["groups_of", "max_t", "mean_interval", "mean_intervals", "paired_tests", "permutation_test"]
__all__ += ["permutation_tests", "power_analysis", "power_of_t", "queries_needed", "rank_intervals", "rank_stability"]
__all__ += ["relative_change", "shown_p", "sign_test", "smallest_p", "stars", "t_test", "tally", "tie_groups", "tukey"]
__all__ += ["wilcoxon_test"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
