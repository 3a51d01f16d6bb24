"""The notes of judging."""

from __future__ import annotations

from steelyard.notes import Texts, declare

WARNINGS: Texts = {
    "damaged-answers": "{file}: {count:,} {count:answer is|answers are} damaged and not used; the questions are asked "
    "again",
    "documents-address-judge": "{documents:count} {documents:document seems|documents seem} to address the judge, as "
    "in 'ignore previous instructions' or 'grade: 3': {documents:listed}; look at their grades",
    "drafting-stopped": "stopped: {reason}; the same command continues",
    "fewer-passages": "{drawn:,} of {wanted:,} passages were drawn: the corpus has no more different ones with content "
    "(25 words or more)",
    "judging-stopped": "stopped: {reason}",
}
INFO: Texts = {
    "corpus-not-searched": "the corpus has {documents:,} documents; with more than {most:,}, no retriever searches it "
    "for other passages that answer the questions",
    "few-documents-drawn": "{documents:,} documents per query were drawn: with so few, infNDCG is about a tenth of its "
    "standard error too high after the correction; from {enough:,} on, the bias is negligible",
    "graded-not-marked": "{count:,} {count:document has|documents have} a grade above 0 and no marked text: "
    "{count:it counts|they count} as a whole",
    "only-source-relevant": "only the passage that a question was drafted from is known to be relevant; "
    "`steelyard pool` proposes what else to judge",
    "spans-left-out": "{count:,} {count:marked span|marked spans} of documents without a grade above 0 "
    "{count:was|were} left out",
}
declare(warning=WARNINGS, info=INFO)
