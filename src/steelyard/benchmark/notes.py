"""The notes of a benchmark, of its result folder, and of published results."""

from __future__ import annotations

from steelyard.notes import Texts, declare
from steelyard.wording import counted, listed


def _files_removed(folder: str, runs: tuple[str, ...], answers: int) -> str:
    files = ", ".join([*runs, *([f"{counted(answers, 'file')} of old answers"] if answers else [])])
    return f"removed from {folder}, because this bench does not have them: {files}"


def _chunkings_text_read(
    measure: str, favours: bool, depth: int, runs: tuple[tuple[str, str, float], ...], budget: str, measured: bool
) -> str:
    what = "favours large chunks" if favours else "does not count how much text is read"
    read = listed([f"{tokens:,.0f} with {run} ({place})" for run, place, tokens in runs])
    advice = "put it first to rank by it" if measured else "put it first among the measures to rank by it"
    return (
        f"ranking by {measure} {what}: the first {depth} documents have, in tokens per query, {read}. {budget} gives "
        f"every run the same amount of text: {advice}"
    )


ERRORS: Texts = {"dataset-error": "{text}"}
WARNINGS: Texts = {
    "no-qrels": "the dataset has no qrels, so the retrievers were run and not evaluated; their lists and times are "
    "reported. `{command}` judges what they returned, and gives a first verdict",
    "texts-differ": "retriever {run} returned different texts under one id for {count:,} {count:document|documents} "
    "({documents!r:examples}); the first text is kept",
    "different-texts-same-id": "{count:,} {count:id has|ids have} different texts in retrievers {run} and {other} "
    "({documents!r:examples}), and judgments of one text count for the other: unless these are the same passages, set "
    "`id: hash` for both, and judge again",
    "same-texts-different-ids": "retrievers {run} and {other} return the same texts under different ids ({count:,} "
    "{count:text|texts}, the first is {ids!r:joined}), so that they seem to find different documents: set `id: hash` "
    "for both, or `id` to the same field",
    "retriever-failed": "retriever {run} failed on {failed:,} of {queries:,} queries (the first, {query}: {error})",
    "unknown-documents": "retriever {run} returned {count:,} {count:document that is|documents that are} not in the "
    "corpus: it has {examples!r:joined}, the corpus {corpus!r:joined}{id_hint:?. {id_hint:hash?The texts are in the "
    "corpus|The ids of the corpus are in {id_hint}}: set `id: {id_hint}`|}",
    "short-lists": "retriever {run} returned at most {longest:,} of the {asked:,} {asked:document|documents} asked "
    "for; check its own limit on results",
    "bench-stopped": "the last bench in this folder stopped while {run} ran query {query!r}, which is run again; if "
    "it stops there again, the code of {run} does not return, or ends the process, on this query",
    "queries-not-run": "{count:,} of {queries:,} {queries:query|queries} {count:has|have} no judgment and "
    "{count:was|were} not run ({examples!r:examples})",
    "judged-queries-not-in-dataset": "{count:,} {count:judged query is|judged queries are} not in the dataset "
    "({examples!r:examples})",
    "chunkings-text-read": _chunkings_text_read,
    "chunks-over-budget": "the chunks of {chunking} have {tokens:,.0f} tokens on average, more than the budget of "
    "{measures:listed}: a list ends before the first chunk that does not fit",
    "result-file-missing": "the folder has no readable {file}: {what} are shown by their ids",
    "result-slices-missing": "the column {column!r} of the queries is not in the folder: there are no slices by it",
    "result-means-differ": "{count:,} {count:mean differs|means differ} from those that Steelyard {version} "
    "recorded ({examples:examples}): the folder was changed, or this version measures differently",
}
INFO: Texts = {
    "answers-cached": "answers and times from the cache: {runs:joined}",
    "judgments-used": "the qrels are the {judgments:,} {judgments:judgment|judgments} of {judges:listed} in {file} "
    "({queries:,} {queries:question|questions})",
    "ids-made": "retriever {run} returns documents without ids: {count:,} {count:id was|ids were} made from the texts "
    "(`id: metadata.KEY` names a field with the id)",
    "filtered-runs": "{runs:all} {runs:searches|search} only the documents that pass a filter, and can find only "
    "the relevant documents among them: their means are comparable only with each other",
    "no-exact-search": "what approximate search costs is not known for {runs:all}: the bench has no dense retriever "
    "with the same vectors and the same filter",
    "files-removed": _files_removed,
    "chunkings-have-own-qrels": "every run is evaluated with the qrels of its own chunking",
    "chunkings-evidence": "on {every:?every chunking|{chunkings:all}}: {texts:semicolons}",
    "across-published": "{runs:listed} {runs:has|have} published means only: differences are tested on datasets "
    "like these, not on these datasets, which needs values per query",
    "across-unused-datasets": "published values on {names:listed} were left out, since none of the results is on "
    "{names:it|them}",
    "across-splits": "the values of {tasks:listed} are means over several splits or subsets, as in MTEB",
}
declare(error=ERRORS, warning=WARNINGS, info=INFO)
