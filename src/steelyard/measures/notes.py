"""The notes of measures that the qrels give nothing to count."""

from __future__ import annotations

from steelyard.notes import Texts, declare

WARNINGS: Texts = {
    "no-distractors": "no document is judged a distractor (a grade below 0), so {measures:listed} can only be 0",
    "no-grade-zero": "no document is judged not relevant (grade 0), so {measures:listed} {measures:is|are} the "
    "share of the relevant documents that are retrieved",
    "no-unanswerable-query": "every query has a relevant document, so {measures:listed} {measures:has|have} no "
    "query to count",
    "no-such-grade": "no document has grade {level:g} or above, so {measures:listed} can only be 0",
}
INFO: Texts = {
    "no-targets": "the qrels name no targets, so in {measures:listed} each relevant document is its own target"
}
declare(warning=WARNINGS, info=INFO)
