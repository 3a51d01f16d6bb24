"""A measure's values on an alignment, and their summary over queries."""

from __future__ import annotations

import numpy as np

from steelyard.alignment.alignment import Alignment, MissingDataError
from steelyard.alignment.hits import Floats
from steelyard.errors import MeasureError
from steelyard.measures.grammar import Measure
from steelyard.measures.registry import expectations

_CARRY = {
    "tokens": "a budget needs each document's length: Run(..., tokens={doc_id: count}) or texts={doc_id: text}, or a column `tokens`; "
    "on the command line --dataset DIR",
    "texts": "near-repeats need the documents' texts: Run(..., texts={doc_id: text}), or on the command "
    "line --dataset DIR",
    "seconds": "it needs each query's time: Run(..., seconds={query_id: seconds}); a bench records them",
    "tokens kept": "with unjudged=remove the tokens of the documents taken out are not known; choose unjudged=keep",
    "texts kept": "with unjudged=remove it is not known which of the documents left nearly repeat one another; "
    "choose unjudged=keep, or near=False",
    "scores kept": "with unjudged=remove the best score of the documents left is not known; choose unjudged=keep",
    "scores": "a threshold needs scores, and this run has ranked ids only",
}


def values(measure: Measure, a: Alignment, expected: bool = False) -> Floats:
    """One number a query; NaN where the measure does not apply to it.

    `expected` averages over all orders of tied documents, where the measure can.
    """
    function = measure.definition.function
    if expected:
        able = expectations()
        if measure.name in able:
            function = able[measure.name]
        elif measure.name not in ("NumRet", "NumRel", "NumQ", "Latency"):
            raise MeasureError(
                f"ties=expected is not defined for {measure.name}; it is for {', '.join(sorted(able))}. "
                "Choose ties=docid-desc, docid-asc or stable."
            )
    arguments = measure.parameters
    if measure.definition.cutoff != "none":
        arguments["k" if measure.definition.cutoff_kind == "rank" else "r"] = measure.cutoff
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(function(a, **arguments), dtype=np.float64)
    except MissingDataError as missing:
        raise MeasureError(f"{measure} cannot be computed from this run: {_CARRY[missing.what]}.") from None


def summary(measure: Measure, per_query: Floats) -> float:
    """The measure over all queries; NaN values are left out. NaN where no query is left."""
    kept = per_query[~np.isnan(per_query)]
    how = _how(measure)
    if how == "sum":
        return float(kept.sum())
    if not len(kept):
        return float("nan")
    if how == "geometric":
        return float(np.exp(np.mean(np.log(np.maximum(kept, GEOMETRIC_FLOOR)))))
    if how == "max":
        return float(kept.max())
    if how.startswith("p"):
        return float(np.percentile(kept, int(how[1:])))
    return float(kept.mean())


def reads_texts(measure: Measure) -> bool:
    """Whether a measure looks at the documents' texts, or at how long they are: near-repeats, or a budget."""
    given = measure.parameters
    return given.get("budget") is not None or given.get("near", False) is not False


def averaged(measure: Measure) -> bool:
    """Whether a measure over all queries is its mean, so that an interval of the mean is its interval."""
    return _how(measure) == "mean"


def _how(measure: Measure) -> str:
    how = measure.definition.summary
    return str(measure.parameters.get(how, how))


GEOMETRIC_FLOOR = 1e-5
"""The least value that enters a geometric mean, as trec_eval has it."""
