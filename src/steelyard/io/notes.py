"""The notes of reading and writing files: what was assumed, ignored or lost."""

from __future__ import annotations

from steelyard.notes import Texts, declare


def _mteb_selected(**levels: str) -> str:
    return "read " + ", ".join(f"{level} {name!r}" for level, name in levels.items())


WARNINGS: Texts = {
    "ranks-ignored": "the column {column!r} gives another order than the scores in {queries:,} "
    "{queries:query|queries}: the scores were used (rank={column}, or the name own_rank, uses the ranks)",
    "beir-header-with-fractions": "the header is that of BEIR qrels, but the scores are not whole numbers",
    "relevant-not-in-corpus": "{count:,} {count:relevant document is|relevant documents are} not in the file's "
    "corpus (as {document!r})",
    "scores-dropped": "{format} has no column for scores: the order is kept, the scores are not",
    "seconds-dropped": "{format} cannot hold the seconds of each query",
    "scale-dropped": "{format} cannot hold the lowest relevant grade of the scale, {level:g}: write jsonl, or "
    "evaluate with rel={level:g} (--set rel={level:g})",
    "ranges-dropped": "{format} cannot hold the gold spans and the places of the chunks, which SpanR, SpanP and "
    "SpanIoU need: write jsonl",
    "spans-unmatched": "{count:,} {count:trace belongs|traces belong} to no query of the qrels (as {question!r})",
    "articles-missing": "{count:,} {count:piece of evidence names|pieces of evidence name} an article that is not "
    "in the corpus",
}
INFO: Texts = {
    "judgments-merged": "{count:,} {count:judgment|judgments} given twice with the same grade {count:was|were} merged",
    "ids-are-numbers": "{role} holds numbers, which were read as text",
    "no-grades": "no column holds grades: every document listed was read as relevant, grade 1",
    "queries-numbered": "no column holds a query id: queries were numbered from 0, in the order of the file "
    "(query_id=... names a column)",
    "questions-numbered": "queries were numbered from 0, in the order of the file",
    "comments-skipped": "{count:,} {count:comment line|comment lines} (#) skipped",
    "several-tags": "{count:,} tags in one file ({tags:joined}, ...): the run is named after the first",
    "iterations-ignored": "column 2 has {count:,} values ({values:joined}, ...) and was not used; "
    "format='trec-diversity' (steelyard convert --from trec-diversity) reads it as subtopics; of a frame, "
    "target='iteration'",
    "read-as-subtopics": "column 2 was read as subtopics: some documents are judged under several",
    "three-columns": "three columns without a header: these may be ranks or grades",
    "three-columns-are-qrels": "three columns without a header were read as query, document, grade",
    "lists-of-ids": "lists of ids may be ranked lists or relevant documents",
    "fractions-as-in-a-run": "the numbers are not whole, as in a run",
    "holds-run-and-qrels": "the file holds a run and qrels",
    "read-as": "read as {kind:run?a run|qrels}, as requested; the file could also be {other:run?a run|qrels}",
    "list-is-one-target": "a retrieval_gt that is one list, or one id, was read as one target, as in AutoRAG",
    "judged-queries-without-text": "{count:,} {count:judged query has|judged queries have} no text in the file",
    "mteb-selected": _mteb_selected,
    "empty-queries-dropped": "{count:,} {count:query|queries} without documents {count:was|were} dropped "
    "({queries!r:examples})",
    "scores-made-from-ranks": "the run has no scores: each list was given the scores n, n - 1, ... 1, "
    "which keep its order",
    "scores-replaced-by-ranks": "the scores were replaced: each list has the scores n, n - 1, ... 1, "
    "which keep its order",
    "split-chosen": "the qrels of split {split!r} were read; there are also {others:joined} (split=...)",
    "facts-are-corpus": "no articles beside the questions: the evidence facts are the corpus",
    "across-percent": "the values of {source} are in percent; they were divided by 100",
    "across-left-out": "{source}: {names:listed} {names:is|are} an average and was left out",
}
declare(warning=WARNINGS, info=INFO)
