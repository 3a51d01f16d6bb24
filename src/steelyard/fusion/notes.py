"""The notes of fusion."""

from __future__ import annotations

from steelyard.notes import Texts, declare

WARNINGS: Texts = {
    "fused-missing-queries": "{run} is missing {count:,} of {queries:,} {queries:query|queries}, which "
    "{count:is|are} fused from the other runs",
    "fused-repeats": "{run} repeats {count:,} {count:document|documents} in a list; the best rank of each counts",
    "fused-increasing-scores": "{run} has scores that increase with the rank, as distances do; the order of its "
    "lists is used",
    "fused-distances": "{run} has scores that increase with the rank, as distances do; lists in which no score "
    "decreases are negated",
}
INFO: Texts = {
    "fused-weight-0": "{run} has weight 0 and is not used",
    "fusion-norm-not-tried": "norm={norm} was not tried: {reason}",
}
declare(warning=WARNINGS, info=INFO)
