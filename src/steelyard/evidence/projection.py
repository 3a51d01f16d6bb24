"""Evidence on one chunking: which chunk satisfies which target, as qrels with a report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.alignment.ranges import Ranges
from steelyard.chunking import Tokenizer, token_starts
from steelyard.errors import SHOWN_PROBLEMS, InputError
from steelyard.evidence.chunks import overlapping_chunks
from steelyard.evidence.conditions import Alternative, Alternatives, one_line
from steelyard.evidence.facts import Matching, blocks, find_facts, normalised
from steelyard.notes import Note, note
from steelyard.qrels import Qrels, Row
from steelyard.wording import counted, worded

Overlap = Literal["any", "majority", "whole"]
Unit = Literal["character", "token"]

BLOCK = 4_000_000  # Candidate pairs of a span and a chunk that are in memory at once.

Pairs: TypeAlias = tuple[Ints, Ints]  # Alternatives and the chunks that meet them.

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
    every: Alternatives,
    chunks: pl.DataFrame,
    overlap: Overlap,
    matching: Matching,
    documents: Mapping[str, str] | None,
    notes: Sequence[Note] = (),
) -> Projection:
    """The evidence on the chunks of a checked table; `notes` are those on the evidence itself."""
    if overlap not in ("any", "majority", "whole"):
        raise InputError(f"overlap is {overlap!r}; expected 'any', 'majority' or 'whole'.")
    kinds = np.array([_lookup(one) for one in every.alternative], dtype="U8")
    _check_columns(every, kinds, chunks)
    if documents is not None:
        _check_spans(every, documents)
    names = ("chunk_id", "parent", "doc_id", "page")
    places = {kind: np.flatnonzero(kinds == kind) for kind in ("span", "fact", "hash", *names)}
    span_pairs, split = _spans(every, places["span"], chunks, overlap)
    fact_pairs, lost = _facts(every, places["fact"], chunks, matching, documents)
    parts = [span_pairs, fact_pairs, _hashes(every, places["hash"], chunks)]
    parts += [_named(every, places[name], chunks, name) for name in names]
    at, chunk = map(np.concatenate, zip(*parts, strict=True))
    met = _meets_all(every, at, chunk, chunks)
    at, chunk = at[met], chunk[met]
    distractor = np.array([one.is_distractor for one in every.alternative], dtype=bool)
    wrong = distractor[at]
    rows, unfound = _relevant_rows(queries, every, (at[~wrong], chunk[~wrong]), chunks)
    wrong_rows, both = _distractor_rows(every, (at[wrong], chunk[wrong]), chunks, rows)
    qrels = Qrels.from_rows([*rows, *wrong_rows], queries)
    nowhere = np.setdiff1d(np.flatnonzero(distractor), at).tolist()
    lost_rows = [(every.query[place], str(every.alternative[place])) for place in nowhere]
    lost_distractors = _rows_frame(lost_rows, "query_id", "what")
    overlapping = overlapping_chunks(chunks)
    # Facts in no chunk: those that no document has either, and those that a chunk boundary splits.
    unknown = lost.filter(~pl.col("in_document").fill_null(False))
    some = unknown.select("query_id", "fact").head(SHOWN_PROBLEMS).iter_rows()
    shown = [f"{one_line(fact)!r} (query {query!r})" for query, fact in some]
    where = "chunk" if documents is None else "document"
    all_notes = (
        *notes,
        *_notes("spans-split", split.height, overlap=overlap),
        *_notes("facts-not-found", unknown.height, where=where, facts=shown),
        *_notes("facts-split", lost.height - unknown.height),
        *_notes("targets-not-found", unfound.height),
        *_notes("chunks-overlap", overlapping, chunks=chunks.height),
        *_notes("distractors-not-found", lost_distractors.height, distractors=int(distractor.sum())),
        *_notes("relevant-with-distractor", both),
    )
    qrels.notes += all_notes
    return Projection(qrels, split, unfound, lost, lost_distractors, both, chunks.height, overlapping, all_notes)


def _lookup(alternative: Alternative) -> str:
    """The condition by which its chunks are looked up; the others are checked on the chunks found."""
    if alternative.is_span:
        return "span"
    conditions = ("fact", "hash", "chunk_id", "parent", "doc_id")
    return next((name for name in conditions if getattr(alternative, name) is not None), "page")


def _check_columns(every: Alternatives, kinds: np.ndarray[tuple[int], np.dtype[np.str_]], chunks: pl.DataFrame) -> None:
    needs = (
        ("span", "start", "spans, and the chunks have no start and end (and several share a document)"),
        ("fact", "text", "facts, and the chunks have no text"),
        ("hash", "text", "hashes, and the chunks have no text"),
        ("page", "page", "pages, and the chunks have no page"),
    )
    for kind, column, what in needs:
        count = sum(one.page is not None for one in every.alternative) if kind == "page" else int(np.sum(kinds == kind))
        lacking = chunks[column].null_count()
        if count and lacking and (kind != "page" or lacking == chunks.height):
            some = f"{lacking:,} of {counted(chunks.height, 'chunk')} {worded(lacking, 'lacks', 'lack')} it"
            raise InputError(f"the evidence names {count:,} {what}: {some}. Add the column.")
    parents = {one.parent for one in every.alternative if one.parent is not None}
    if parents and not parents & set(chunks["parent"].unique().to_list()):
        shown = ", ".join(map(repr, chunks["parent"].head(3).to_list()))
        raise InputError(
            f"the parent rule gives no parent that the evidence names: it gives {shown}, ..., and the evidence "
            f"names {', '.join(map(repr, sorted(parents)[:3]))}. Name a column or another rule (parent=...)."
        )


def _check_spans(every: Alternatives, documents: Mapping[str, str]) -> None:
    problems = []
    for query, target, one in zip(every.query, every.target, every.alternative, strict=True):
        if not one.is_span:
            continue
        text = documents.get(str(one.doc_id))
        where = f"query {query!r}, {f'target {target}' if target else 'a distractor'}: {one}"
        if text is None:
            problems.append(f"{where}: there is no such document")
        elif one.end is not None and one.end > len(text):
            problems.append(f"{where} is out of range: the document has {len(text):,}")
        elif one.content is not None and normalised(text[one.start : one.end]) != normalised(one.content):
            there, expected = one_line(text[one.start : one.end], 30), one_line(one.content, 30)
            problems.append(f"{where} is {there!r}, but its content is {expected!r}")
    if problems:
        count = counted(len(problems), "span does not match its document", "spans do not match their documents")
        advice = "Fix the offsets, or pass the documents for which they were made."
        raise InputError.of_problems(f"{count}:", problems, advice)


def _codes(values: Sequence[str | None], column: pl.Series) -> tuple[Ints, Ints]:
    """Values and a column as numbers, equal where they are equal; -1 for a value that is not in the column."""
    unique = column.unique(maintain_order=True).drop_nulls()
    place = pl.DataFrame({"value": unique, "code": pl.Series(range(len(unique)), dtype=pl.Int64)})
    searched, columns = (
        pl.DataFrame({"value": series}).join(place, on="value", how="left", maintain_order="left")["code"]
        for series in (pl.Series(list(values), dtype=pl.String), column)
    )
    return searched.fill_null(-1).to_numpy(), columns.fill_null(-2).to_numpy()


def _spans(every: Alternatives, places: Ints, chunks: pl.DataFrame, overlap: Overlap) -> tuple[Pairs, pl.DataFrame]:
    """Spans and the chunks that contain enough of each; and the spans that are not whole in any chunk."""
    spans = [every.alternative[place] for place in places.tolist()]
    doc, chunk_doc = _codes([one.doc_id for one in spans], chunks["doc_id"])
    start = np.array([one.start for one in spans], dtype=np.int64)
    end = np.array([one.end for one in spans], dtype=np.int64)
    placed = np.flatnonzero(chunks["start"].is_not_null().to_numpy()) if len(spans) else np.zeros(0, dtype=np.int64)
    starts, ends = (chunks[name].gather(placed).to_numpy() for name in ("start", "end"))
    with_chunks = np.flatnonzero(doc >= 0)
    table = Intervals(chunk_doc[placed], starts, ends)
    span, chunk, shared = overlaps(Intervals(doc[with_chunks], start[with_chunks], end[with_chunks]), table)
    span, chunk = with_chunks[span], placed[chunk]
    length = end - start
    needed = {"any": np.ones(len(span)), "majority": length[span] // 2 + 1, "whole": length[span]}[overlap]
    enough = shared >= needed
    best = np.zeros(len(spans), dtype=np.int64)
    np.maximum.at(best, span, shared)
    pieces = np.bincount(span, minlength=len(spans))
    of_target = np.array([not one.is_distractor for one in spans], dtype=bool)
    cut = np.flatnonzero(of_target & (pieces > 0) & (best < length))
    numbers = {"start": start[cut], "end": end[cut], "pieces": pieces[cut], "best": best[cut] / length[cut]}
    names = [(every.query[places[at]], every.target[places[at]], spans[at].doc_id) for at in cut.tolist()]
    split = _rows_frame(names, "query_id", "target", "doc_id").with_columns(**numbers)
    return (places[span[enough]], chunk[enough]), split


def _facts(
    every: Alternatives, places: Ints, chunks: pl.DataFrame, matching: Matching, documents: Mapping[str, str] | None
) -> tuple[Pairs, pl.DataFrame]:
    """Facts and the chunks that contain them; and the facts that are in no chunk."""
    chosen_facts = [every.alternative[place] for place in places.tolist()]
    facts = [str(one.fact) for one in chosen_facts]
    shares = [one.share or matching.share for one in chosen_facts]
    fact, chunk = find_facts(facts, shares, chunks["text"], matching)
    of_target = np.array([not one.is_distractor for one in chosen_facts], dtype=bool)
    lost = np.flatnonzero(of_target & (np.bincount(fact, minlength=len(facts)) == 0))
    inside: list[bool | None] = [None] * len(lost)
    if documents is not None and len(lost):
        texts = pl.Series("text", [str(documents[doc]) for doc in documents], dtype=pl.String)
        there, _ = find_facts([facts[at] for at in lost], [shares[at] for at in lost], texts, matching)
        inside = (np.bincount(there, minlength=len(lost)) > 0).tolist()
    rows = [(every.query[places[at]], every.target[places[at]], facts[at]) for at in lost.tolist()]
    frame = _rows_frame(rows, "query_id", "target", "fact")
    return (places[fact], chunk), frame.with_columns(in_document=pl.Series(inside, dtype=pl.Boolean))


def _rows_frame(rows: Sequence[tuple[str | int | None, ...]], *names: str) -> pl.DataFrame:
    """A frame of rows: `target` is a number, every other column text."""
    schema = {name: pl.Int64 if name == "target" else pl.String for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _hashes(every: Alternatives, places: Ints, chunks: pl.DataFrame) -> Pairs:
    """Hashes and the chunks whose text, unchanged or normalised, has that digest."""
    searched: dict[str, list[int]] = {}
    for place in places.tolist():
        searched.setdefault(str(every.alternative[place].hash), []).append(place)
    algorithms = {every.alternative[place].algorithm for place in places.tolist()}
    matches: list[tuple[int, int]] = []
    for number, text in enumerate(chunks["text"].to_list() if searched else []):
        forms = {text, normalised(text)}
        digests = {
            hashlib.new(name, form.encode(), usedforsecurity=False).hexdigest() for name in algorithms for form in forms
        }
        matches += [(place, number) for digest in digests for place in searched.get(digest, ())]
    pairs = np.array(matches, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _named(every: Alternatives, places: Ints, chunks: pl.DataFrame, column: str) -> Pairs:
    """Alternatives that name a chunk, a parent, a document or a page, and the chunks with that name."""
    names = pl.Series([getattr(every.alternative[place], column) for place in places.tolist()], dtype=pl.String)
    named = chunks.select(name=column).with_row_index("chunk")
    matches = pl.DataFrame({"name": names, "place": places}).join(named, on="name", maintain_order="left_right")
    return matches["place"].to_numpy(), matches["chunk"].cast(pl.Int64).to_numpy()


def _meets_all(every: Alternatives, at: Ints, chunk: Ints, chunks: pl.DataFrame) -> Bools:
    """Which pairs also meet the other conditions of their alternative."""
    met = np.ones(len(at), dtype=bool)
    for column in ("chunk_id", "doc_id", "parent", "page"):
        # The join of spans has matched their documents.
        values = [None if column == "doc_id" and one.is_span else getattr(one, column) for one in every.alternative]
        conditional = np.array([value is not None for value in values], dtype=bool)
        if conditional.any():
            searched, codes = _codes(values, chunks[column])
            met &= ~conditional[at] | (searched[at] == codes[chunk])
    return met


def _relevant_rows(
    queries: Sequence[str], every: Alternatives, pairs: Pairs, chunks: pl.DataFrame
) -> tuple[list[Row], pl.DataFrame]:
    """The judgments of relevant chunks, a placeholder for each target that no chunk satisfies, and these targets."""
    place, chunk = pairs
    number = {query: at for at, query in enumerate(queries)}
    stride = max(every.target, default=0) + 1
    codes = [number[query] * stride + target for query, target in zip(every.query, every.target, strict=True)]
    grade = np.array([one.grade for one in every.alternative])
    unique, inverse = np.unique(np.array(codes, dtype=np.int64)[place] * chunks.height + chunk, return_inverse=True)
    best: Floats = np.zeros(len(unique))
    np.maximum.at(best, inverse, grade[place])
    target, row = np.divmod(unique, chunks.height)
    names = chunks["chunk_id"].gather(row).to_list()
    rows: list[Row] = [
        (queries[code // stride], name, value, str(code % stride))
        for code, name, value in zip(target.tolist(), names, best.tolist(), strict=True)
    ]
    missing: dict[int, list[int]] = {}
    satisfied = set(target.tolist())
    for at, code in enumerate(codes):
        if code not in satisfied and every.target[at]:
            missing.setdefault(code, []).append(at)
    unfound = []
    for code, places in missing.items():
        query, label = queries[code // stride], code % stride
        rows.append((query, f"{_PLACEHOLDER}:{query}:{label}", float(grade[places].max()), str(label)))
        unfound.append((query, label, " or ".join(str(every.alternative[at]) for at in places)))
    return rows, _rows_frame(unfound, "query_id", "target", "what")


def _distractor_rows(
    every: Alternatives, pairs: Pairs, chunks: pl.DataFrame, relevant: Sequence[Row]
) -> tuple[list[Row], int]:
    """The judgments of chunks with a distractor and no target of the query; and the number of those with both."""
    places, chunk = pairs
    worst: dict[tuple[str, str], float] = {}
    for place, name in zip(places.tolist(), chunks["chunk_id"].gather(chunk).to_list(), strict=True):
        pair = (every.query[place], name)
        worst[pair] = min(worst.get(pair, 0.0), every.alternative[place].grade)
    answering = {(query, name) for query, name, _, _ in relevant} if worst else set()
    rows: list[Row] = [(*pair, grade, None) for pair, grade in worst.items() if pair not in answering]
    return rows, len(worst) - len(rows)


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
