"""Whether qrels look as if they were made from the first documents of one run.

If so, all judged documents are in the first k of that run. In qrels made independently of the run, the number of judged
documents decreases smoothly with the rank and does not end at k.

The test. Let k be the last rank of a judged document. If one judged document is not in the run, or if k is
below 2 or above `MAX_DEPTH`, there is no edge. Otherwise the expected number of judged documents below rank k,
under a smooth decay, is the sum of:

- Relevant documents. The gaps between the ranks of relevant documents follow a zeta distribution, P(gap = g)
  proportional to g^-s, with s fitted by maximum likelihood. A document below k would have had a gap larger than the
  ranks that were left; the probabilities of that are added up. In a perfect run all gaps are 1: nothing is expected.
- Documents judged not relevant. Their ranks follow a zeta distribution; the probabilities of one below k are added up.
- Full queries: all of the first k documents are judged, and no other. With a constant rate, a query has no further
  judged document with probability h = queries / judged documents, and each full query adds -log(h). Some datasets limit
  the number of relevant documents per query themselves. Therefore this part counts only if the two parts above are at
  least `OWN_EVIDENCE`, which a perfect or nearly perfect run does not reach.

With E expected documents, the probability of none is exp(-E); the run is flagged if this is at most `LEVEL`. If every
query has one judged document, a relevant one, it may be a known item: no run is flagged. The fit does not know about
the cut at k and expects too few documents below it. It needs about ten judged documents.

Strays. A few documents may have been judged for other reasons. If at most `STRAYS` of the judged documents are not in
the first k, the number of relevant ones among them is compared with the number E that a geometric decay leads one to
expect below k: with a relevant documents in the upper half of the first k ranks and b in the lower half, the next
halves have b (b / a), b (b / a)^2 ... b / a is reduced by its standard error and is at most `SLOWEST`. If the qrels
do not end at k, the number is Poisson with mean E; the run is flagged if the probability of so few is at most
`STRAY_LEVEL`. Of the depths that are flagged, the one with the largest deviance counts. Queries that all have the
same number of relevant documents end at some rank themselves. Therefore the variance of the number per query must be
at least `LEAST_VARIANCE`, and at least `VARIED` times as large as if each of the first k were relevant by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.lazy import special

LEVEL = 0.05
MAX_DEPTH = 20
OWN_EVIDENCE = 0.5
STRAYS = 0.12
STRAY_LEVEL = 0.001
SLOWEST = 0.95
VARIED, LEAST_VARIANCE = 0.8, 0.3
EXPONENTS = np.concatenate([np.arange(1.05, 6.0, 0.05), np.arange(6.0, 20.5, 0.5)])


@dataclass(frozen=True)
class Edge:
    """Qrels that look made from the first `depth` documents of a run; p: that of so sharp an end by a smooth decay."""

    depth: int
    p: float


def find_edge(query: Ints, rank: Floats, relevant: Bools, judged: int, positives: int | None = None) -> Edge | None:
    """The edge that the qrels have in one run, or None.

    One entry per judged document that the run returned: the number of its query, its rank from 1, and whether it is
    relevant. `judged` is the number of judged documents in the qrels, `positives` that of the relevant ones (default:
    all that the run did not return are relevant). Leave out distractors, which no run returned to be judged.

    >>> query = np.repeat(np.arange(40), 2)
    >>> rank = np.array([[1, 3], [2, 5], [1, 4], [3, 5]] * 10).ravel()
    >>> find_edge(query, rank, np.ones(80, dtype=bool), judged=80).depth
    5
    >>> find_edge(query, rank, np.ones(80, dtype=bool), judged=90) is None
    True
    """
    if not len(rank) or (relevant.all() and len(np.unique(query)) == len(rank)):
        return None
    depth = int(rank.max())
    if len(rank) < judged or depth > MAX_DEPTH:
        return _edge_with_strays(query, rank, relevant, judged, positives)
    if not 2 <= depth <= MAX_DEPTH:
        return None
    expected = _expected_relevant(query[relevant], rank[relevant], depth)
    if not relevant.all():
        others = rank[~relevant]
        expected += float(len(others) * _beyond(_exponent(others), np.array([float(depth)]))[0])
    if expected >= OWN_EVIDENCE:
        # -log of the probability that no query with `depth` judged documents has a further one.
        counts = np.unique(query, return_counts=True)[1]
        expected += float(np.sum(counts == depth) * np.log(counts.sum() / len(counts)))
    p = float(np.exp(-expected))
    return Edge(depth, p) if p <= LEVEL else _edge_with_strays(query, rank, relevant, judged, positives)


def _edge_with_strays(query: Ints, rank: Floats, relevant: Bools, judged: int, positives: int | None) -> Edge | None:
    """The edge above which nearly all judged documents are, or None."""
    if positives is None:
        positives = judged - len(rank) + int(relevant.sum())
    per_query = np.bincount(np.unique(query, return_inverse=True)[1], relevant)
    counts = np.bincount(rank[relevant & (rank <= MAX_DEPTH)].astype(np.int64), minlength=MAX_DEPTH + 1)
    best, edge = 0.0, None
    for depth in range(2, MAX_DEPTH + 1):
        above = rank <= depth
        strays, half = positives - int(counts[: depth + 1].sum()), depth // 2
        lower, upper = (int(part.sum()) for part in (counts[depth - half + 1 : depth + 1], counts[1 : half + 1]))
        if judged - above.sum() > STRAYS * judged or not lower or not upper:
            continue
        share = counts[1 : depth + 1] / len(per_query)
        if per_query.var() < max(LEAST_VARIANCE, VARIED * float(np.sum(share * (1 - share)))):
            continue
        slope = min(SLOWEST, lower / upper * np.exp(-np.sqrt(1 / lower + 1 / upper)))
        expected = lower * slope / (1 - slope)
        deviance = expected - strays + float(special.xlogy(strays, strays / expected))
        p = float(special.pdtr(strays, expected))
        if p <= STRAY_LEVEL and deviance > best:
            best, edge = deviance, Edge(depth, p)
    return edge


def _expected_relevant(query: Ints, rank: Floats, depth: int) -> float:
    """Expected number of relevant documents below `depth`, by the gaps between relevant documents."""
    if not len(rank):
        return 0.0
    order = np.lexsort((rank, query))
    query, rank = query[order], rank[order].astype(np.float64)
    before = np.where(np.diff(query, prepend=-1) != 0, 0.0, np.r_[0.0, rank[:-1]])
    return float(_beyond(_exponent(rank - before), depth - before).sum())


def _exponent(numbers: Floats) -> float:
    """The exponent of the zeta distribution of some whole numbers, by maximum likelihood on a grid."""
    likelihood = -EXPONENTS * np.log(numbers).mean() - np.log(special.zeta(EXPONENTS))
    return float(EXPONENTS[np.argmax(likelihood)])


def _beyond(exponent: float, numbers: Floats) -> Floats:
    """The probability of a larger number than each of these, under the zeta distribution."""
    return np.asarray(special.zeta(exponent, numbers + 1) / special.zeta(exponent))
