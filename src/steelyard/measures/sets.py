"""Measures of the retrieved documents as a set: their order does not matter. All are trec_eval's."""

from __future__ import annotations

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.measures.binary import precision, recall, share
from steelyard.measures.registry import measure, summed


@measure("SetP", aliases=("exact_prec",), cutoff="none", tail=False, bounded="additive")
def set_precision(a: Alignment, rel: float = 1) -> Floats:
    """Share of the retrieved documents that are relevant.

    SetP = |relevant found| / |retrieved|

    Empty list: 0.
    """
    return precision(a, rel=rel, denominator="retrieved")


@measure("SetR", aliases=("set_recall", "exact_recall"), cutoff="none", ideal=1.0, bounded="counts")
def set_recall(a: Alignment, rel: float = 1) -> Floats:
    """Share of the relevant documents that are retrieved.

    SetR = |relevant found| / R

    Nothing relevant, or an empty list: 0.
    """
    return recall(a, rel=rel)


@measure("SetF", cutoff="none", tail=False, cites="van Rijsbergen, Information Retrieval, 1979", bounded="counts")
def set_f(a: Alignment, beta: float = 1, weight: float | None = None, rel: float = 1) -> Floats:
    """Harmonic mean of SetP and SetR.

    SetF = (1 + x) SetP SetR / (x SetP + SetR), x = beta^2

    beta: how many times recall is weighted as much as precision.
    weight: x itself, as trec_eval takes it; None: beta squared.
    None found: 0.
    """
    p, r = set_precision(a, rel), set_recall(a, rel)
    x = beta**2 if weight is None else weight
    return share((1 + x) * p * r, x * p + r)


@measure("SetAP", aliases=("set_map",), cutoff="none", tail=False, bounded="counts")
def set_average_precision(a: Alignment, rel: float = 1) -> Floats:
    """Precision times recall of the retrieved documents.

    SetAP = |relevant found|^2 / (|retrieved| R)

    Nothing relevant, or an empty list: 0.
    """
    return set_precision(a, rel) * set_recall(a, rel)


@measure("SetRelativeP", aliases=("SetRelP", "set_relative_P"), cutoff="none", ideal=1.0, tail=False, bounded="counts")
def set_relative_precision(a: Alignment, rel: float = 1) -> Floats:
    """Precision of the retrieved documents, as a share of the highest that a list of this length can reach.

    SetRelativeP = |relevant found| / min(|retrieved|, R)

    Nothing relevant, or an empty list: 0.
    """
    return share(a.per_query(a.grade >= rel), np.minimum(a.relevant(rel), a.returned()))


@measure("Utility", cutoff="none", low=-np.inf, high=np.inf, tail=False, needs_relevant=False, bounded="additive")
def utility(
    a: Alignment,
    found: float = 1,
    wrong: float = -1,
    missed: float = 0,
    spared: float = 0,
    documents: int = 0,
    rel: float = 1,
) -> Floats:
    """Weighted number of retrieved and of missed documents.

    Utility = found x |relevant, retrieved| + wrong x |not relevant, retrieved|
    + missed x |relevant, not retrieved| + spared x |neither|

    found: the weight of a relevant document that is retrieved.
    wrong: the weight of any other document that is retrieved.
    missed: the weight of a relevant document that is not retrieved.
    spared: the weight of a document that is neither relevant nor retrieved.
    documents: the number of documents in the collection, for `spared`.
    Empty list: missed x R + spared x (documents - R).
    """
    hits, whole, returned = a.per_query(a.grade >= rel), a.relevant(rel), a.returned()
    retrieved = found * hits + wrong * (returned - hits)
    return retrieved + missed * (whole - hits) + spared * (documents + hits - returned - whole)


@summed("NumNonrelJudgedRet", bounded="additive", zeros=True)
def num_nonrel_judged_ret(a: Alignment, rel: float = 1) -> Floats:
    """Number of retrieved documents that are judged not relevant, summed over queries.

    rel: the lowest grade that counts as relevant.
    Grades below 0 count as unjudged, as in trec_eval.
    """
    return a.per_query((a.grade >= 0) & (a.grade < rel))
