"""Fusion of the lists of one query, written as simply as possible: the reference for the tests."""

from __future__ import annotations

import math
import statistics


def fused(lists, method, norm="min-max", weights=None):
    """Fused scores by document, from lists of (document, score), best first, no document twice in a list."""
    weights = weights or [1] * len(lists)
    lists = [listed for listed, weight in zip(lists, weights, strict=True) if weight]
    weights = [weight for weight in weights if weight]
    ranks = [{doc: rank for rank, (doc, _) in enumerate(listed, 1)} for listed in lists]
    scores = [normalised(listed, norm) for listed in lists]
    pool = {doc for listed in lists for doc, _ in listed}
    if method == "borda":
        return {doc: points(doc, len(pool), ranks, weights) for doc in pool}
    if method == "condorcet":
        return {doc: duels(doc, pool, ranks, weights) for doc in pool}
    scores_of = {}
    for doc in pool:
        having = [place for place, rank in enumerate(ranks) if doc in rank]
        own = [weights[place] for place in having]
        if method in ("rrf", "rbc", "isr", "logn-isr"):
            scores_of[doc] = from_ranks(method, [ranks[place][doc] for place in having], own)
        else:
            scores_of[doc] = from_scores(method, [scores[place][doc] for place in having], own)
    return scores_of


def from_ranks(method, ranks, weights, k=60, phi=0.8, sigma=0.01):
    pairs = list(zip(weights, ranks, strict=True))
    squares = math.fsum(w / r**2 for w, r in pairs)
    match method:
        case "rrf":
            return math.fsum(w / (k + r) for w, r in pairs)
        case "rbc":
            return math.fsum(w * (1 - phi) * phi ** (r - 1) for w, r in pairs)
        case "isr":
            return len(ranks) * squares
        case "logn-isr":
            return math.log(len(ranks) + sigma) * squares


def from_scores(method, scores, weights):
    total = math.fsum(scores)
    match method:
        case "combsum":
            return total
        case "wsum":
            return math.fsum(w * s for w, s in zip(weights, scores, strict=True))
        case "combmnz":
            return len(scores) * total
        case "combanz":
            return total / len(scores)
        case "combmax":
            return max(scores)
        case "combmin":
            return min(scores)
        case "combmed":
            return statistics.median(scores)


def points(doc, candidates, ranks, weights):
    total = 0
    for rank, weight in zip(ranks, weights, strict=True):
        left = (candidates - len(rank) + 1) / 2
        total += weight * (candidates - rank[doc] + 1 if doc in rank else left)
    return total


def duels(doc, pool, ranks, weights):
    total = 0.0
    for other in pool - {doc}:
        lead = 0
        for rank, weight in zip(ranks, weights, strict=True):
            mine, its = rank.get(doc, math.inf), rank.get(other, math.inf)
            lead += weight * ((mine < its) - (mine > its))
        total += 1 if lead > 0 else 0.5 if lead == 0 else 0
    return total


def normalised(listed, norm):
    scores = [score for _, score in listed]
    return {doc: scaled(norm, score, scores, rank) for rank, (doc, score) in enumerate(listed, 1)}


def scaled(norm, score, scores, rank):
    low, high, n = min(scores), max(scores), len(scores)
    mean = math.fsum(scores) / n
    match norm:
        case "min-max":
            return (score - low) / (high - low) if high > low else 1.0
        case "max":
            return score / high
        case "sum":
            return (score - low) / math.fsum(s - low for s in scores) if high > low else 1 / n
        case "z":
            deviation = math.sqrt(math.fsum((s - mean) ** 2 for s in scores) / n)
            return (score - mean) / deviation if high > low else 0.0
        case "rank":
            return 1 - (rank - 1) / n
        case "none":
            return score
