"""The notes of datasets."""

from __future__ import annotations

from steelyard.notes import Texts, declare

WARNINGS: Texts = {
    "empty-questions": "{count:,} {count:question is|questions are} empty and {count:was|were} left out "
    "({count:row|rows} {rows:examples})",
    "long-questions": "{count:,} {count:question has|questions have} more than 10,000 characters "
    "({queries!r:examples}; the first has {longest:,})",
    "read-as-windows-1252": "{file} is not UTF-8 and was read as Windows-1252 (Latin-1); save it as UTF-8 if letters "
    "look wrong",
}
INFO: Texts = {
    "questions-have-made-ids": "no column holds ids: the questions are q1 to q{count}, in their order. Add questions "
    "at the end, so that earlier ones keep their ids",
    "unjudged-queries-dropped": "{count:,} {count:query|queries} without judgments dropped "
    "(unjudged='keep' keeps them)",
    "unanswerable-queries": "{count:,} {count:query|queries} read as having no relevant document",
    "documents-numbered": "no column holds ids: documents have the numbers of their rows, from 0",
    "rows-merged": "{count:,} {count:row repeats|rows repeat} the text of an earlier one and {count:is|are} the "
    "same document",
}
declare(warning=WARNINGS, info=INFO)
