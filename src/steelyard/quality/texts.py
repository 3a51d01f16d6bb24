"""What is wrong with the texts of a corpus and of questions: one pass over the documents, in chunks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from steelyard.datasets.duplicates import near_duplicates
from steelyard.lazy import polars as pl
from steelyard.quality.effects import Board, CheckFinding, changed_run, examples
from steelyard.wording import counted

CHUNK = 20_000  # Documents that are looked at together.
NEAR_UP_TO = 20_000  # In corpora up to this size near-duplicates count as copies; in larger ones only equal texts do.

NEAR = 0.9
SHORTEST = 10  # A text with fewer letters and digits than this is near-empty.
LONG_WORDS = 2048  # A text with more words is far longer than the 512 tokens that most embedding models read.
COPIED = 6  # A question of at least this many words that is in a relevant document word for word was copied from it.
EDGE = 40  # Characters at the start or the end of a text that are compared to find boilerplate.

_BROKEN = r"\x{FFFD}|Ã[\x{80}-\x{BF}]|â€|Â[\x{A0}-\x{BF}]"
_SCRIPTS = ("Latin", "Cyrillic", "Han", "Hiragana", "Hangul", "Arabic", "Greek", "Hebrew", "Devanagari", "Thai")
_COMMON = {
    "English": "the of and to in is for with that are by from this was",
    "German": "der die und das ist nicht den von mit für eine auf dem",
    "French": "le les des est dans pour une sur par qui aux sont avec",
    "Spanish": "el los las una por que con para del como más sus",
    "Italian": "il che di per una sono della nel con gli alla dei",
    "Portuguese": "não uma dos das para com são pelo pela mais ao",
    "Dutch": "de het een van en niet voor met zijn dat op te",
}


def _scanned(corpus: Any, wanted: Collection[str]) -> tuple[pl.DataFrame, str, set[str]]:
    """One row per document; the language that most are in, or their script; which wanted texts are of a document."""
    sample = "".join(islice(corpus.texts.values(), 500))[:30_000]
    counts = {name: pl.Series([sample]).str.count_matches(rf"\p{{{name}}}")[0] for name in _SCRIPTS}
    script = max(_SCRIPTS, key=lambda name: counts[name])
    usual = r"\p{Han}\p{Hiragana}\p{Katakana}" if script in ("Han", "Hiragana") else rf"\p{{{script}}}"
    spoken = max(_COMMON, key=lambda name: len(re.findall(_words_of(name), sample.lower())))
    others = "|".join(_words_of(name) for name in _COMMON if name != spoken)
    parts: list[pl.DataFrame] = []
    asked, equal = sorted(wanted), set[str]()
    pairs = zip(corpus, corpus.texts.values(), strict=True)
    while chunk := list(islice(pairs, CHUNK)):
        text, plain = pl.col("text").str, pl.col("plain")
        start = plain.str.slice(0, 400).str
        frame = pl.DataFrame(chunk, schema={"doc_id": pl.String, "text": pl.String}, orient="row")
        frame = frame.with_columns(
            plain=text.to_lowercase().str.replace_all(r"[\W_]+", " ").str.strip_chars(),
            broken=text.contains(_BROKEN),
            start=text.strip_chars().str.slice(0, EDGE).hash(),
            end=text.strip_chars().str.slice(-EDGE).hash(),
            size=text.len_chars(),
        ).with_columns(
            words_hash=plain.hash(),
            letters=plain.str.len_chars(),
            words=plain.str.count_matches(" "),
            foreign=start.count_matches(rf"[\p{{L}}--[{usual}]]"),
            known_letters=start.count_matches(r"\p{L}"),
        )
        if asked:
            equal.update(frame.filter(pl.col("plain").is_in(asked))["plain"].to_list())
        strange = pl.col("foreign") > 0.5 * pl.col("known_letters")
        if script == "Latin":
            spoken_words, other = start.count_matches(_words_of(spoken)), start.count_matches(others)
            seen = start.count_matches(" ") + 1
            strange = strange | ((seen >= 15) & (other >= 0.12 * seen) & (other > 4 * spoken_words))
        frame = frame.with_columns(strange=(pl.col("known_letters") >= 10) & strange)
        parts.append(frame.drop("text", "plain", "foreign", "known_letters"))
    return pl.concat(parts), spoken if script == "Latin" else f"the script {script}", equal


def _words_of(language: str) -> str:
    return rf"\b(?:{'|'.join(_COMMON[language].split())})\b"


def text_findings(board: Board) -> Iterator[CheckFinding]:
    """The findings on the corpus and on the questions."""
    equal: set[str] = set()
    if len(board.dataset.corpus):
        rows, usual, equal = _scanned(board.dataset.corpus, _judged_questions(board).values())
        yield from _corpus_findings(board, rows, usual)
    yield from question_findings(board, equal)


def _judged_questions(board: Board) -> dict[str, str]:
    """The words of every judged question that has any."""
    judged = set(board.qrels.queries)
    plain = {query: _plain(text) for query, text in board.dataset.queries.items() if query in judged}
    return {query: text for query, text in plain.items() if text}


def _corpus_findings(board: Board, rows: pl.DataFrame, usual: str) -> Iterator[CheckFinding]:
    """Empty texts, boilerplate, other languages, broken encoding, long documents, and copies of relevant ones."""

    def chosen(condition: pl.Expr) -> list[str]:
        return rows.filter(condition)["doc_id"].to_list()

    if empty := chosen(pl.col("letters") < SHORTEST):
        kept = ~pl.col("doc_id").is_in(empty)
        text = (
            f"{counted(len(empty), 'document has', 'documents have')} fewer than {SHORTEST} letters. Remove them, or "
            "fix the step that reads them. Effect: without them in qrels and lists."
        )
        qrels = board.fixed_qrels(board.rows.filter(kept))
        effect = board.effect(qrels, lambda run: changed_run(run, lambda listed: listed.filter(kept)))
        yield CheckFinding("near-empty-text", "warning", len(empty), text, examples(empty), effect)
    if broken := chosen(pl.col("broken")):
        text = f"{counted(len(broken), 'document has', 'documents have')} broken characters, as in 'Ã©'"
        yield _of_documents(board, "broken-encoding", broken, f"{text}. Read the source as UTF-8")
    strange = chosen(pl.col("strange"))
    if strange and len(strange) <= 0.2 * rows.height:
        text = f"{counted(len(strange), 'document is', 'documents are')} not in {usual}, as most are"
        yield _of_documents(board, "other-language", strange, f"{text}. Check that they belong to this corpus")
    if long := chosen((pl.col("words") >= LONG_WORDS) | (pl.col("letters") >= 8 * LONG_WORDS)):
        text = (
            f"{counted(len(long), 'document has', 'documents have')} more than {LONG_WORDS:,} words (or "
            f"{8 * LONG_WORDS:,} letters); embedding models that read 512 tokens ignore most of it"
        )
        yield _of_documents(board, "long-document", long, f"{text}. Split them into chunks")
    yield from _boilerplate(board, rows)
    yield from _copies(board, rows)


def _boilerplate(board: Board, rows: pl.DataFrame) -> Iterator[CheckFinding]:
    """Texts that start or end with the same words as many others, and are not equal to them."""
    least = max(20, 0.05 * rows.height)
    long = rows.filter(pl.col("size") >= 2 * EDGE).unique("words_hash", maintain_order=True)
    for edge in ("start", "end"):
        common = long[edge].value_counts(sort=True).head(1)
        if common.height and common["count"][0] >= least:
            shared = long.filter(pl.col(edge) == common[edge][0])["doc_id"].to_list()
            first = board.dataset.corpus.texts[shared[0]].strip()
            shown = first[:EDGE] if edge == "start" else first[-EDGE:]
            text = (
                f"{len(shared):,} different documents ({len(shared) / rows.height:.0%}) {edge} with the same {EDGE} "
                f"characters, {shown!r}. Remove what they share"
            )
            yield _of_documents(board, "boilerplate", shared, text)


def _of_documents(board: Board, code: str, documents: list[str], text: str) -> CheckFinding:
    """A finding on documents whose effect is on the queries that they are relevant to."""
    text = f"{text}. Effect: on queries whose relevant documents are among them."
    return CheckFinding(code, "warning", len(documents), text, examples(documents), board.affected(set(documents)))


def _copies(board: Board, rows: pl.DataFrame) -> Iterator[CheckFinding]:
    """Copies of relevant documents that are not relevant themselves: finding one counts as nothing."""
    named = rows.filter(pl.col("letters") >= SHORTEST)
    same = named.filter(pl.col("words_hash").is_duplicated()).group_by("words_hash", maintain_order=True).agg("doc_id")
    groups = [tuple(group) for group in same["doc_id"].to_list()]
    if rows.height <= NEAR_UP_TO:
        groups = near_duplicates(board.dataset.corpus, NEAR)
    group_of = pl.DataFrame({"doc_id": groups}, schema={"doc_id": pl.List(pl.String)}).with_row_index("group")
    group_of = group_of.explode("doc_id")
    relevant = board.rows.filter(pl.col("grade") > 0)
    near = relevant.join(group_of, on="doc_id", maintain_order="left").select("query_id", "group", original="doc_id")
    near = near.join(group_of, on="group", maintain_order="left_right").select("query_id", "doc_id", "original")
    frame = near.join(relevant, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    frame = frame.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    if not frame.height:
        return
    kept = board.rows.join(frame, on=["query_id", "doc_id"], how="anti")

    def credited(rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with copies under the id of the document that they copy."""
        joined = rows.join(frame, on=["query_id", "doc_id"], how="left", maintain_order="left")
        return joined.with_columns(doc_id=pl.coalesce("original", "doc_id")).drop("original")

    text = (
        f"{counted(frame.height, 'copy', 'copies')} of relevant documents (nearly the same text under a different id) "
        f"{'is' if frame.height == 1 else 'are'} not judged relevant. Judge them alike, under one target, or keep one "
        "of each. Effect: a copy counts as the document that it copies."
    )
    shown = examples(f"{query}: {copy} copies {doc}" for query, copy, doc in frame.iter_rows())
    effect = board.effect(board.fixed_qrels(kept), lambda run: changed_run(run, credited))
    yield CheckFinding("copy-of-relevant", "warning", frame.height, text, shown, effect)


# Questions

_DEPENDENT = re.compile(
    r"^(and|but|or|so|then|also|what about|how about|why not|what else)\b"
    r"|\bthis (passage|document|text|article|section|paragraph|excerpt|context)\b"
    r"|\b(in|by|of) the (passage|document|text|article|excerpt|author)\b(?! \w)"
    r"|\baccording to the (passage|document|text|article|excerpt|author)\b"
    r"|\b(mentioned above|previous (question|answer)|the same one)\b"
    r"|^(is|are|was|were|does|do|did|can|could|will|would|has|have|how does|how do|why does|why is|when was|where is) "
    r"(it|they|he|she|this|that|these|those)\b(?! \w+ \w+ \w+ \w+)",
    re.IGNORECASE,
)


_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]")
"""Scripts without spaces between words: four characters count as a word."""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def question_findings(board: Board, seen: Collection[str] = ()) -> Iterator[CheckFinding]:
    """Questions that are documents, copy their relevant document, repeat others, or need a context; `seen`: the words
    of those that are the text of a document."""
    queries, corpus, plain = board.dataset.queries, board.dataset.corpus, _judged_questions(board)
    relevant: dict[str, set[tuple[str, float]]] = {query: set() for query in plain}
    for query, doc, grade, _ in board.rows.iter_rows():
        if query in relevant and grade > 0:
            relevant[query].add((doc, grade))
    if same := [query for query, text in plain.items() if text in seen]:
        yield _of_queries(board, "question-is-document", same, "the text of a document of the corpus")
    copied = [
        query
        for query, text in plain.items()
        if (text.count(" ") >= COPIED - 1 or (len(text) >= 4 * COPIED and _UNSPACED.search(text)))
        and text not in seen
        and any(text in _plain(corpus[doc]) for doc, _ in relevant[query] if doc in corpus)
    ]
    if copied:
        yield _of_queries(board, "question-copies-relevant", copied, "word for word in a relevant document")
    if context := [query for query in plain if _DEPENDENT.search(queries[query].strip())]:
        yield _of_queries(board, "not-standalone", context, "not understandable without a context")
    by_text: dict[str, list[str]] = {}
    for query, text in plain.items():
        by_text.setdefault(text, []).append(query)
    repeated = [group for group in by_text.values() if len(group) > 1]
    if differ := [group for group in repeated if len({frozenset(relevant[query]) for query in group}) > 1]:
        whose = {query: group for group in differ for query in group}
        rows = [row for row in board.rows.iter_rows() if row[0] not in whose]
        merged: dict[tuple[str, str, Any], float] = {}
        for query, doc, grade, target in board.rows.iter_rows():
            for other in whose.get(query, ()):
                merged[other, doc, target] = max(grade, merged.get((other, doc, target), grade))
        rows += [(query, doc, grade, target) for (query, doc, target), grade in merged.items()]
        text = (
            f"{counted(len(whose), 'query', 'queries')} have the text of another query and different relevant "
            "documents. Merge their judgments. Effect: each has the judgments of all with its text."
        )
        shown = examples(map(", ".join, differ))
        effect = board.effect(board.fixed_qrels(pl.DataFrame(rows, schema=board.rows.schema, orient="row")))
        yield CheckFinding("same-question-different-qrels", "warning", len(whose), text, shown, effect)
    if equal := [query for group in repeated if group not in differ for query in group[1:]]:
        yield _of_queries(board, "repeated-question", equal, "an earlier one and its judgments", "repeats", "repeat")


def _of_queries(
    board: Board, code: str, queries: list[str], what: str, one: str = "is", many: str = "are"
) -> CheckFinding:
    """A finding on queries whose effect is the leaderboard without them."""
    count = counted(len(queries), f"question {one}", f"questions {many}")
    text = f"{count} {what}. Rewrite or remove. Effect: without them."
    return CheckFinding(code, "warning", len(queries), text, examples(queries), board.without(set(queries)))
