"""The notes of evidence: spans and facts that chunks split, or that no chunk has."""

from __future__ import annotations

from steelyard.notes import Texts, declare


def _facts_not_found(count: int, where: str, facts: tuple[str, ...]) -> str:
    which = "this fact" if count == 1 else f"these {count:,} facts"
    more = f", and {count - len(facts):,} more" if count > len(facts) else ""
    return f"{which} cannot be found by any retriever, being in no {where}: {', '.join(facts)}{more}"


WARNINGS: Texts = {
    "facts-not-found": _facts_not_found,
    "facts-split": "{count:,} {count:fact is|facts are} in a document but in no chunk: a chunk boundary splits "
    "{count:it|them}",
    "targets-not-found": "{count:,} {count:target is|targets are} satisfied by no chunk; {count:it stays|they stay} "
    "in the qrels, under a placeholder, and {count:counts|count} as not found",
    "retrieved-chunks-unknown": "{count:,} {count:retrieved chunk is|retrieved chunks are} not among the chunks and "
    "{count:counts|count} as no text",
}
INFO: Texts = {
    "grade-0-dropped": "{count:,} {count:judgment|judgments} of grade 0 (judged, not relevant) {count:is|are} not "
    "evidence and {count:was|were} dropped",
    "spans-split": "{count:,} {count:span is|spans are} split by chunk boundaries and {count:counts|count} by "
    "overlap={overlap}",
    "chunks-overlap": "{count:,} of {chunks:,} {chunks:chunk|chunks} {count:overlaps|overlap} an earlier one; "
    "a target found twice counts once",
    "distractors-not-found": "{count:,} of {distractors:,} {distractors:distractor|distractors} {count:is|are} in "
    "no chunk and cannot mislead",
    "relevant-with-distractor": "{count:,} {count:chunk holds|chunks hold} a distractor and a target of the same "
    "query; {count:it counts|they count} as relevant",
}
declare(warning=WARNINGS, info=INFO)
