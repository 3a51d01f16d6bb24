"""Measures of targets found: how much of what a query needs came back, each need counted once."""

from __future__ import annotations

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.measures.binary import recall
from steelyard.measures.registry import measure


@measure("DR", aliases=("deduplicated_recall", "DedupRecall"), ideal=1.0)
def deduplicated_recall(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """De-duplicated recall: documents projected on distinct targets, then recall.

    DR@k = |targets with a document in the first k| / |targets|: R(per=target)@k.

    rel: the lowest grade at which a document satisfies a target.
    No target, or an empty list: 0.
    """
    return recall(a, k, rel, per="target")


@measure("Diversity", aliases=("DiversityCount", "diversity_count"), high=np.inf)
def diversity(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Number of distinct targets found in the first k.

    rel: the lowest grade at which a document satisfies a target.
    """
    return targets_found(a, k, rel)


@measure("AllTargets", aliases=("all_hops", "AllHops"), ideal=1.0)
def all_targets(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Whether every target is found in the first k ('all hops').

    AllTargets@k = 1 if each of the query's targets has a document in the first k, else 0.

    rel: the lowest grade at which a document satisfies a target.
    No target: 0.
    """
    needed = a.target_counts(rel)
    return np.where((targets_found(a, k, rel) == needed) & (needed > 0), 1.0, 0.0)


def targets_found(a: Alignment, k: int | None, rel: float) -> Floats:
    """How many targets of each query have a document in the first k."""
    hit, target, grade = a.hit_targets
    found = np.unique(target[(grade >= rel) & a.within(k)[hit]])
    return np.bincount(a.targets.query[found], minlength=a.size).astype(np.float64)
