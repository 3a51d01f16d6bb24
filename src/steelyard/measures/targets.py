"""Measures of targets found: how much of what a query needs came back, each need counted once."""

from __future__ import annotations

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.measures.binary import recall, share
from steelyard.measures.registry import measure


@measure("DR", aliases=("deduplicated_recall", "deduplicate_recall", "DedupRecall"), ideal=1.0)
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


@measure("NewTargets", aliases=("new_targets",), high=np.inf)
def new_targets(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """New targets at each rank over the rank, summed, over the number of targets.

    NewTargets@k = sum over ranks r up to k of (targets first found at r) / r, / min(|T|, k). A document
    that brings several targets gains for each; one that brings none that was not found above gains
    nothing. The best value is 1 where one document has all the targets, and above 1 where these are
    more than k.

    rel: the lowest grade at which a document satisfies a target.
    No target, or none found: 0.
    """
    alone, owner = a.by_target(rel)
    first = 1 / alone.first(alone.within(k))
    gained = np.bincount(owner, weights=first, minlength=a.size).astype(np.float64)
    needed = np.bincount(owner, minlength=a.size).astype(np.float64)
    return share(gained, needed if k is None else np.minimum(needed, k))
