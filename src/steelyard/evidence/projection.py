"""Evidence on one chunking: which chunk satisfies which target, as qrels with a report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from steelyard.alignment.hits import Ints
from steelyard.alignment.ranges import Ranges
from steelyard.chunking import Tokenizer, token_starts
from steelyard.errors import SHOWN_PROBLEMS, InputError
from steelyard.evidence.chunks import overlapping_chunks
from steelyard.evidence.conditions import ALTERNATIVE, DIGESTS, Alternative, one_line
from steelyard.evidence.facts import Matching, blocks, find_facts, normalised
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.wording import counted, worded

Overlap = Literal["any", "majority", "whole"]
Unit = Literal["character", "token"]

BLOCK = 4_000_000  # Candidate pairs of a span and a chunk that are in memory at once.

Pairs: TypeAlias = tuple[Ints, Ints]  # Alternatives and the chunks that meet them.

_NAMES = ("chunk_id", "parent", "doc_id", "page")
_LOOKUPS = ("start", "fact", "hash", *_NAMES)
"""Conditions: chunks are looked up by the first that an alternative has, and the others are checked on these chunks."""

_PLACEHOLDER = "unfound"
"""How the id of a document starts that represents a target which no chunk satisfies: no run returns it."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Qrels for one chunking, and a report.

    `split` has the spans that are not whole in any chunk: query_id, target, doc_id, start, end, pieces
    (the chunks that share it) and best (the largest share of it in one chunk). `unfound` has the
    targets that no chunk satisfies: query_id, target, what. `lost_facts` has the facts that are in no
    chunk: query_id, target, fact, in_document (whether a document has it; null without documents).
    `lost_distractors` has the distractors that are in no chunk: query_id, what. `both` is the number
    of chunks with a distractor and a target of the same query: these count as relevant.
    """

    qrels: Qrels
    split: pl.DataFrame
    unfound: pl.DataFrame
    lost_facts: pl.DataFrame
    lost_distractors: pl.DataFrame
    both: int
    chunks: int
    overlapping: int
    notes: tuple[Note, ...]

    def __repr__(self) -> str:
        head = f"Evidence on {counted(self.chunks, 'chunk')}. {self.qrels}"
        return "\n".join([head, *(f"  {note}" for note in self.notes)])


def project(
    queries: Sequence[str],
    alternatives: pl.DataFrame,
    chunks: pl.DataFrame,
    overlap: Overlap,
    matching: Matching,
    documents: Mapping[str, str] | None,
    notes: Sequence[Note] = (),
) -> Projection:
    """`Evidence.alternatives` on the chunks of a checked table; `notes` are those on the evidence itself."""
    if overlap not in ("any", "majority", "whole"):
        raise InputError(f"overlap is {overlap!r}; expected 'any', 'majority' or 'whole'.")
    # `goal` numbers the targets: the first alternative of each.
    ways = alternatives.with_row_index("way").with_columns(
        goal=pl.first("way").over("query_id", "target"),
        lookup=pl.coalesce(pl.when(pl.col(name).is_not_null()).then(pl.lit(name)) for name in _LOOKUPS),
    )
    _check_columns(ways, chunks)
    if documents is not None:
        _check_spans(ways, documents)
    by = {name: ways.filter(pl.col("lookup") == name) for name in _LOOKUPS}
    span_pairs, split = _spans(by["start"], chunks, overlap)
    fact_pairs, lost = _facts(by["fact"], chunks, matching, documents)
    parts = [span_pairs, fact_pairs, _hashes(by["hash"], chunks), *(_named(by[name], chunks, name) for name in _NAMES)]
    way, chunk = map(np.concatenate, zip(*parts, strict=True))
    met = np.ones(len(way), dtype=bool)
    for name in _NAMES:
        wanted = ways[name].gather(way)
        met &= (wanted.is_null() | (wanted == chunks[name].gather(chunk))).fill_null(False).to_numpy()
    way, chunk = way[met], chunk[met]
    pairs = ways[way].with_columns(chunk=chunk, chunk_id=chunks["chunk_id"].gather(chunk))
    by_target = pairs.filter(pl.col("grade") > 0).group_by("goal", "query_id", "target", "chunk", "chunk_id")
    relevant = by_target.agg(pl.max("grade")).sort("goal", "chunk")
    unmet = ways.filter(pl.col("target") > 0, ~pl.col("goal").is_in(relevant["goal"].unique().to_list()))
    of_target = _described(unmet).group_by("query_id", "target", maintain_order=True)
    unfound = of_target.agg(pl.col("what").str.join(" or "), pl.max("grade"))
    wrong = pairs.filter(pl.col("grade") < 0).group_by("query_id", "chunk_id", maintain_order=True).agg(pl.min("grade"))
    misleading = wrong.join(relevant, on=["query_id", "chunk_id"], how="anti", maintain_order="left")
    rows = [
        *relevant.select("query_id", "chunk_id", "grade", pl.col("target").cast(pl.String)).iter_rows(),
        *((query, f"{_PLACEHOLDER}:{query}:{at}", grade, str(at)) for query, at, _, grade in unfound.iter_rows()),
        *((query, chunk_id, grade, None) for query, chunk_id, grade in misleading.iter_rows()),
    ]
    qrels = Qrels.from_rows(rows, queries)
    distractors = ways.filter(pl.col("grade") < 0)
    lost_distractors = _described(distractors.filter(~pl.col("way").is_in(np.unique(way).tolist())))
    overlapping = overlapping_chunks(chunks)
    # Facts in no chunk: those that no document has either, and those that a chunk boundary splits.
    unknown = lost.filter(~pl.col("in_document").fill_null(False))
    some = unknown.select("query_id", "fact").head(SHOWN_PROBLEMS).iter_rows()
    shown = [f"{one_line(fact)!r} (query {query!r})" for query, fact in some]
    where, both = "chunk" if documents is None else "document", wrong.height - misleading.height
    all_notes = (
        *notes,
        *_notes("spans-split", split.height, overlap=overlap),
        *_notes("facts-not-found", unknown.height, where=where, facts=shown),
        *_notes("facts-split", lost.height - unknown.height),
        *_notes("targets-not-found", unfound.height),
        *_notes("chunks-overlap", overlapping, chunks=chunks.height),
        *_notes("distractors-not-found", lost_distractors.height, distractors=distractors.height),
        *_notes("relevant-with-distractor", both),
    )
    qrels.notes += all_notes
    nowhere, lost_distractors = unfound.drop("grade"), lost_distractors.select("query_id", "what")
    return Projection(qrels, split, nowhere, lost, lost_distractors, both, chunks.height, overlapping, all_notes)


def _described(ways: pl.DataFrame) -> pl.DataFrame:
    """Alternatives with what each is, in words."""
    rows = ways.select(ALTERNATIVE).iter_rows()
    return ways.with_columns(what=pl.Series([str(Alternative(*row)) for row in rows], dtype=pl.String))


def _check_columns(ways: pl.DataFrame, chunks: pl.DataFrame) -> None:
    needs = (
        ("start", "start", "spans, and the chunks have no start and end (and several share a document)"),
        ("fact", "text", "facts, and the chunks have no text"),
        ("hash", "text", "hashes, and the chunks have no text"),
        ("page", "page", "pages, and the chunks have no page"),
    )
    for name, column, what in needs:
        count = ways["page"].count() if name == "page" else int((ways["lookup"] == name).sum())
        lacking = chunks[column].null_count()
        if count and lacking and (name != "page" or lacking == chunks.height):
            some = f"{lacking:,} of {counted(chunks.height, 'chunk')} {worded(lacking, 'lacks', 'lack')} it"
            raise InputError(f"the evidence names {count:,} {what}: {some}. Add the column.")
    parents = set(ways["parent"].drop_nulls().to_list())
    if parents and not parents & set(chunks["parent"].unique().to_list()):
        shown = ", ".join(map(repr, chunks["parent"].head(3).to_list()))
        raise InputError(
            f"the parent rule gives no parent that the evidence names: it gives {shown}, ..., and the evidence "
            f"names {', '.join(map(repr, sorted(parents)[:3]))}. Name a column or another rule (parent=...)."
        )


def _check_spans(ways: pl.DataFrame, documents: Mapping[str, str]) -> None:
    problems = []
    spans = _described(ways.filter(pl.col("start").is_not_null()))
    columns = ("query_id", "target", "what", "doc_id", "start", "end", "content")
    for query, target, what, doc, start, end, content in spans.select(columns).iter_rows():
        text = documents.get(doc)
        where = f"query {query!r}, {f'target {target}' if target else 'a distractor'}: {what}"
        if text is None:
            problems.append(f"{where}: there is no such document")
        elif end > len(text):
            problems.append(f"{where} is out of range: the document has {len(text):,}")
        elif content is not None and normalised(text[start:end]) != normalised(content):
            there, expected = one_line(text[start:end], 30), one_line(content, 30)
            problems.append(f"{where} is {there!r}, but its content is {expected!r}")
    advice = "Fix the offsets, or pass the documents for which they were made."
    InputError.refuse(problems, "span does not match its document", "spans do not match their documents", advice)


def _spans(spans: pl.DataFrame, chunks: pl.DataFrame, overlap: Overlap) -> tuple[Pairs, pl.DataFrame]:
    """Spans and the chunks that contain enough of each; and the spans that are not whole in any chunk."""
    placed = chunks.with_row_index("chunk").filter(pl.col("start").is_not_null() & pl.lit(spans.height > 0))
    docs = pl.concat([spans["doc_id"], placed["doc_id"]])
    doc = docs.cast(pl.Enum(docs.unique())).to_physical().to_numpy().astype(np.int64)
    sides = zip(np.split(doc, [spans.height]), (spans, placed), strict=True)
    gold, there = (Intervals(number, side["start"].to_numpy(), side["end"].to_numpy()) for number, side in sides)
    span, chunk, shared = overlaps(gold, there)
    length = gold.end - gold.start
    needed = {"any": np.ones(len(span)), "majority": length[span] // 2 + 1, "whole": length[span]}[overlap]
    enough = shared >= needed
    best = np.zeros(spans.height, dtype=np.int64)
    np.maximum.at(best, span, shared)
    cut = (spans["grade"] > 0).to_numpy() & (best > 0) & (best < length)
    split = spans.select("query_id", "target", "doc_id", "start", "end")
    split = split.with_columns(pieces=np.bincount(span, minlength=spans.height), best=best / length).filter(cut)
    return (spans["way"].to_numpy()[span[enough]], placed["chunk"].to_numpy()[chunk[enough]]), split


def _facts(
    facts: pl.DataFrame, chunks: pl.DataFrame, matching: Matching, documents: Mapping[str, str] | None
) -> tuple[Pairs, pl.DataFrame]:
    """Facts and the chunks that contain them; and the facts that are in no chunk."""
    facts = facts.with_columns(pl.col("share").fill_null(matching.share))
    fact, chunk = find_facts(facts["fact"].to_list(), facts["share"].to_list(), chunks["text"], matching)
    nowhere = np.bincount(fact, minlength=facts.height) == 0
    lost = facts.filter((facts["grade"] > 0).to_numpy() & nowhere)
    inside: list[bool | None] = [None] * lost.height
    if documents is not None and lost.height:
        texts = pl.Series("text", [str(documents[doc]) for doc in documents], dtype=pl.String)
        there, _ = find_facts(lost["fact"].to_list(), lost["share"].to_list(), texts, matching)
        inside = (np.bincount(there, minlength=lost.height) > 0).tolist()
    lost = lost.select("query_id", "target", "fact", in_document=pl.Series(inside, dtype=pl.Boolean))
    return (facts["way"].to_numpy()[fact], chunk), lost


def _hashes(hashes: pl.DataFrame, chunks: pl.DataFrame) -> Pairs:
    """Hashes and the chunks whose text, unchanged or normalised, has that digest."""
    searched = dict(hashes.group_by("hash").agg("way").iter_rows())
    algorithms = {DIGESTS[len(digest)] for digest in searched}
    matches: list[tuple[int, int]] = []
    for number, text in enumerate(chunks["text"].to_list() if searched else []):
        forms = {text, normalised(text)}
        digests = {
            hashlib.new(name, form.encode(), usedforsecurity=False).hexdigest() for name in algorithms for form in forms
        }
        matches += [(way, number) for digest in digests for way in searched.get(digest, ())]
    pairs = np.array(matches, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _named(ways: pl.DataFrame, chunks: pl.DataFrame, name: str) -> Pairs:
    """Alternatives that name a chunk, a parent, a document or a page, and the chunks with that name."""
    named = chunks.select(name).with_row_index("chunk")
    matches = ways.select("way", name).join(named, on=name, maintain_order="left_right")
    return matches["way"].to_numpy(), matches["chunk"].to_numpy()


def _notes(code: str, count: int, **values: Any) -> list[Note]:
    """The note with a count, if it is not 0."""
    return [note(code, count=count, **values)] if count else []


class Intervals(NamedTuple):
    """Spans of documents, end exclusive; documents are numbered."""

    doc: Ints
    start: Ints
    end: Ints


def overlaps(spans: Intervals, chunks: Intervals) -> tuple[Ints, Ints, Ints]:
    """Every span and chunk that share a character, as (span, chunk, shared), by span and then chunk.

    Chunks are sorted by where they start, in classes of similar length: a chunk of length L to 2 L can
    overlap a span only if it starts less than 2 L before it. So two binary searches per span and
    class give candidates of which only a part near the boundary is not a pair.

    >>> one = np.array([0])
    >>> book = Intervals(np.array([0, 0]), np.array([0, 50]), np.array([50, 100]))
    >>> [part.tolist() for part in overlaps(Intervals(one, one + 40, one + 70), book)]
    [[0, 0], [0, 1], [10, 20]]
    """
    stride = 1 + max(int(end.max(initial=0)) for _, _, end in (spans, chunks))
    (low, high), (starts, ends) = ((doc * stride + start, doc * stride + end) for doc, start, end in (spans, chunks))
    length = ends - starts
    size_class = np.frexp(np.maximum(length, 1).astype(np.float64))[1]
    empty = np.zeros(0, dtype=np.int64)
    batches = [(empty, empty, empty)]
    for power in np.unique(size_class[length > 0]).tolist():
        members = np.flatnonzero((size_class == power) & (length > 0))
        members = members[np.argsort(starts[members], kind="stable")]
        sorted_starts = starts[members]
        first = np.searchsorted(sorted_starts, low - 2**power, side="right")
        for span, place in ranges(first, np.searchsorted(sorted_starts, high, side="left")):
            chunk = members[place]
            shared = np.minimum(high[span], ends[chunk]) - np.maximum(low[span], starts[chunk])
            overlap = shared > 0
            batches.append((span[overlap], chunk[overlap], shared[overlap]))
    span, chunk, shared = map(np.concatenate, zip(*batches, strict=True))
    order = np.lexsort((chunk, span))
    return span[order], chunk[order], shared[order]


def ranges(first: Ints, last: Ints) -> Iterator[tuple[Ints, Ints]]:
    """The numbers from first up to last of every row, as (row, number), in blocks of bounded size."""
    counts = np.maximum(0, last - first)
    for row, stop in blocks(counts, BLOCK):
        sizes = counts[row:stop]
        rows = np.repeat(np.arange(row, stop), sizes)
        if len(rows):
            yield rows, first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def ranges_of(
    gold: pl.DataFrame, table: pl.DataFrame, unit: Unit, tokenizer: str | Tokenizer, documents: Mapping[str, str] | None
) -> Ranges | None:
    """`Evidence.spans` and the chunks as ranges of their documents; None without spans.

    unit='token' counts tokens of the documents; a token belongs to the place of its first character.
    """
    if unit not in ("character", "token"):
        raise InputError(f"unit is {unit!r}; expected 'character' or 'token'.")
    if unit == "token" and documents is None:
        raise InputError("unit='token' needs the documents (documents=...), to know where their tokens are.")
    if not gold.height:
        return None
    gold = gold.drop("target")
    placed = table.filter(pl.col("start").is_not_null()).select("chunk_id", "doc_id", "start", "end")
    if unit == "token" and documents is not None:
        gold, placed = (_in_tokens(frame, tokenizer, documents) for frame in (gold, placed))
    return Ranges(gold, placed)


def _in_tokens(frame: pl.DataFrame, tokenizer: str | Tokenizer, documents: Mapping[str, str]) -> pl.DataFrame:
    """Ranges of characters as ranges of tokens."""
    parts = []
    for (name,), part in frame.group_by("doc_id", maintain_order=True):
        if name not in documents:
            raise InputError(f"document {name!r} is not among the documents.")
        starts = token_starts(documents[str(name)], tokenizer)
        parts.append(part.with_columns(**{name: np.searchsorted(starts, part[name]) for name in ("start", "end")}))
    return pl.concat(parts)
