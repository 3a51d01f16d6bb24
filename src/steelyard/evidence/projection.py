"""The interval join: which spans meet which chunks, without a look at every pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.errors import InputError, problem_report
from steelyard.evidence.chunks import overlapping_chunks
from steelyard.evidence.evidence import Alternative, Ways, shortened
from steelyard.evidence.facts import Matching, find_facts, normalised
from steelyard.qrels import Qrels, Row
from steelyard.wording import counted, worded

BLOCK = 4_000_000
"""Candidate pairs that are held at once."""


@dataclass(frozen=True)
class Intervals:
    """Stretches of documents: one entry a stretch, end exclusive. Documents are numbered."""

    doc: Ints
    start: Ints
    end: Ints


def overlaps(spans: Intervals, chunks: Intervals) -> tuple[Ints, Ints, Ints]:
    """Every span and chunk that share a character, as (span, chunk, shared), by span and then chunk.

    Chunks are sorted by where they start, in classes of like length: a chunk of length L to 2 L can
    only meet a span if it starts less than 2 L before it. So two binary searches a span and class
    give candidates of which at most a part near the border is not a pair.

    >>> one = np.array([0])
    >>> book = Intervals(np.array([0, 0]), np.array([0, 50]), np.array([50, 100]))
    >>> [part.tolist() for part in overlaps(Intervals(one, one + 40, one + 70), book)]
    [[0, 0], [0, 1], [10, 20]]
    """
    stride = 1 + max((int(part.max()) for part in (spans.end, chunks.end) if len(part)), default=0)
    starts, ends = chunks.doc * stride + chunks.start, chunks.doc * stride + chunks.end
    low, high = spans.doc * stride + spans.start, spans.doc * stride + spans.end
    length = ends - starts
    size_class = np.frexp(np.maximum(length, 1).astype(np.float64))[1]
    found: list[tuple[Ints, Ints, Ints]] = []
    for power in np.unique(size_class[length > 0]).tolist():
        members = np.flatnonzero((size_class == power) & (length > 0))
        members = members[np.argsort(starts[members], kind="stable")]
        sorted_starts = starts[members]
        first = np.searchsorted(sorted_starts, low - 2**power, side="right")
        last = np.searchsorted(sorted_starts, high, side="left")
        for span, place in ranges(first, last):
            chunk = members[place]
            shared = np.minimum(high[span], ends[chunk]) - np.maximum(low[span], starts[chunk])
            meet = shared > 0
            found.append((span[meet], chunk[meet], shared[meet]))
    empty = np.zeros(0, dtype=np.int64)
    span, chunk, shared = (
        np.concatenate([empty, *parts]) for parts in (zip(*found, strict=True) if found else ((), (), ()))
    )
    order = np.lexsort((chunk, span))
    return span[order], chunk[order], shared[order]


def ranges(first: Ints, last: Ints) -> Iterator[tuple[Ints, Ints]]:
    """The numbers from first up to last of every row, as (row, number), in blocks of bounded size."""
    counts = np.maximum(0, last - first)
    through = np.cumsum(counts)
    row = 0
    while row < len(counts):
        done = int(through[row - 1]) if row else 0
        stop = max(row + 1, int(np.searchsorted(through, done + BLOCK, side="right")))
        rows = np.repeat(np.arange(row, stop), counts[row:stop])
        if len(rows):
            offset = np.arange(len(rows)) - np.repeat(
                through[row:stop] - counts[row:stop] - done, counts[row:stop]
            )
            yield rows, first[rows] + offset
        row = stop


def equal_codes(wanted: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """Every pair of places where the two hold the same code, as (place in wanted, place in codes)."""
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    first = np.searchsorted(sorted_codes, wanted, side="left")
    last = np.searchsorted(sorted_codes, wanted, side="right")
    parts = [(row, order[place]) for row, place in ranges(first, last)]
    empty = np.zeros(0, dtype=np.int64)
    left, right = (
        np.concatenate([empty, *side]) for side in (zip(*parts, strict=True) if parts else ((), ()))
    )
    return left, right


STAND_IN = "unfound"


def relevant_rows(
    queries: Sequence[str], ways: Ways, way: Ints, chunk: Ints, chunks: pl.DataFrame
) -> tuple[list[Row], pl.DataFrame]:
    """The judgments of relevant chunks; a target that no chunk satisfies has a stand-in, which no run returns."""
    number = {query: at for at, query in enumerate(queries)}
    widest = max(ways.target, default=0) + 1
    key = np.array(
        [number[query] * widest + target for query, target in zip(ways.query, ways.target, strict=True)],
        dtype=np.int64,
    )
    grade = np.array([each.grade for each in ways.way])
    pair = key[way] * chunks.height + chunk
    unique, inverse = np.unique(pair, return_inverse=True)
    best: Floats = np.zeros(len(unique))
    np.maximum.at(best, inverse, grade[way])
    target, at = np.divmod(unique, chunks.height)
    names = chunks["chunk_id"].gather(at).to_list()
    rows: list[Row] = [
        (queries[code // widest], name, value, str(code % widest))
        for code, name, value in zip(target.tolist(), names, best.tolist(), strict=True)
    ]
    missing: dict[int, list[int]] = {}
    found = set(target.tolist())
    for place, code in enumerate(key.tolist()):
        if code not in found and ways.target[place]:
            missing.setdefault(code, []).append(place)
    for code, places in missing.items():
        query, label = queries[code // widest], str(code % widest)
        rows.append(
            (query, f"{STAND_IN}:{query}:{label}", max(float(grade[place]) for place in places), label)
        )
    unfound = pl.DataFrame(
        {
            "query_id": pl.Series([queries[code // widest] for code in missing], dtype=pl.String),
            "target": pl.Series([code % widest for code in missing], dtype=pl.Int64),
            "what": pl.Series(
                [" or ".join(str(ways.way[place]) for place in places) for places in missing.values()],
                dtype=pl.String,
            ),
        }
    )
    return rows, unfound


def misleading_rows(
    ways: Ways, way: Ints, chunk: Ints, chunks: pl.DataFrame, relevant: Sequence[Row]
) -> tuple[list[Row], int]:
    """The judgments of chunks that hold a distractor and nothing relevant; and how many hold both."""
    names = chunks["chunk_id"].gather(chunk).to_list()
    worst: dict[tuple[str, str], float] = {}
    for place, name in zip(way.tolist(), names, strict=True):
        pair = (ways.query[place], name)
        worst[pair] = min(worst.get(pair, 0.0), ways.way[place].grade)
    answering = {(query, name) for query, name, _, _ in relevant} if worst else set()
    rows: list[Row] = [
        (query, name, grade, None) for (query, name), grade in worst.items() if (query, name) not in answering
    ]
    return rows, len(worst) - len(rows)


def lost_distractors(ways: Ways, places: Ints) -> pl.DataFrame:
    """The distractors that are in no chunk."""
    listed = places.tolist()
    return pl.DataFrame(
        {
            "query_id": pl.Series([ways.query[place] for place in listed], dtype=pl.String),
            "what": pl.Series([str(ways.way[place]) for place in listed], dtype=pl.String),
        }
    )


def target_notes(
    split: pl.DataFrame,
    unfound: pl.DataFrame,
    lost: pl.DataFrame,
    overlapping: int,
    chunks: int,
    overlap: str,
    with_documents: bool,
) -> list[str]:
    """What became of the targets: spans cut, facts and targets in no chunk; and chunks that overlap."""
    notes = []
    if split.height:
        notes.append(
            f"{counted(split.height, 'span is split by chunk borders; it counts', 'spans are split by chunk borders; they count')} "
            f"by overlap={overlap}"
        )
    nowhere = lost.filter(~pl.col("in_document").fill_null(False))
    if nowhere.height:
        where = "no document" if with_documents else "no chunk"
        what = "this fact" if nowhere.height == 1 else f"these {nowhere.height:,} facts"
        shown = [
            f"{shortened(fact)!r} (query {query!r})"
            for query, fact in nowhere.select("query_id", "fact").head(10).iter_rows()
        ]
        more = f", and {nowhere.height - 10:,} more" if nowhere.height > 10 else ""
        notes.append(f"{what} cannot be found by any retriever, being in {where}: {', '.join(shown)}{more}")
    if lost.height > nowhere.height:
        notes.append(
            f"{counted(lost.height - nowhere.height, 'fact is', 'facts are')} in a document and in no "
            "chunk: a chunk border "
            f"cuts {worded(lost.height - nowhere.height, 'it', 'them')}"
        )
    if unfound.height:
        notes.append(
            f"{counted(unfound.height, 'target is satisfied by no chunk; it stays', 'targets are satisfied by no chunk; they stay')} "
            f"in the judgments, under a stand-in, and {worded(unfound.height, 'counts', 'count')} as not "
            "found"
        )
    if overlapping:
        notes.append(
            f"{overlapping:,} of {counted(chunks, 'chunk')} {worded(overlapping, 'overlaps', 'overlap')} "
            "one before; a target found twice counts once"
        )
    return notes


def distractor_notes(known: int, lost: int, both: int) -> list[str]:
    """What became of the distractors: how many are in no chunk, and in one that is relevant too."""
    notes = []
    if lost:
        notes.append(
            f"{lost:,} of {counted(known, 'distractor')} {worded(lost, 'is', 'are')} in no chunk "
            "and cannot mislead"
        )
    if both:
        notes.append(
            f"{counted(both, 'chunk holds', 'chunks hold')} a distractor and what the same query needs; "
            f"{worded(both, 'it counts', 'they count')} as relevant"
        )
    return notes


Overlap = Literal["any", "majority", "whole"]


@dataclass(frozen=True, eq=False)
class Projection:
    """Judgments on one chunking, and a report.

    `split` holds the spans that no chunk has whole: query_id, target, doc_id, start, end, pieces (the
    chunks that share it) and best (the largest share of it in one chunk). `unfound` holds the targets
    that no chunk satisfies: query_id, target, what. `lost_facts` holds the facts that are in no chunk:
    query_id, target, fact, in_document (whether a document has it; null where documents were not given).
    `lost_distractors` holds the distractors that are in no chunk: query_id, what. `both` is how many
    chunks hold a distractor and something relevant to the same query: these count as relevant.
    """

    qrels: Qrels
    split: pl.DataFrame
    unfound: pl.DataFrame
    lost_facts: pl.DataFrame
    lost_distractors: pl.DataFrame
    both: int
    chunks: int
    overlapping: int
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(
            [
                f"Evidence on {counted(self.chunks, 'chunk')}. {self.qrels}",
                *(f"  {note}" for note in self.notes),
            ]
        )


def project(
    queries: Sequence[str],
    ways: Ways,
    chunks: pl.DataFrame,
    overlap: Overlap,
    matching: Matching,
    documents: Mapping[str, str] | None,
    said: Sequence[str] = (),
) -> Projection:
    """The evidence on the chunks of a checked table; `said` are notes on the evidence itself."""
    if overlap not in ("any", "majority", "whole"):
        raise InputError(f"overlap is {overlap!r}; expected 'any', 'majority' or 'whole'.")
    kinds = np.array([_looked_up_by(way) for way in ways.way], dtype="U8")
    _check_columns(ways, kinds, chunks)
    if documents is not None:
        _check_spans(ways, documents)
    span_pairs, split = _spans(ways, kinds == "span", chunks, overlap)
    fact_pairs, lost = _facts(ways, kinds == "fact", chunks, matching, documents)
    parts = [span_pairs, fact_pairs, _hashes(ways, kinds == "hash", chunks)]
    parts += [_named(ways, kinds == name, chunks, name) for name in ("chunk_id", "parent", "doc_id", "page")]
    way = np.concatenate([part[0] for part in parts])
    chunk = np.concatenate([part[1] for part in parts])
    held = _conditions(ways, way, chunk, chunks)
    way, chunk = way[held], chunk[held]
    misleads = np.array([each.misleads for each in ways.way], dtype=bool)
    rows, unfound = relevant_rows(queries, ways, way[~misleads[way]], chunk[~misleads[way]], chunks)
    misled, both = misleading_rows(ways, way[misleads[way]], chunk[misleads[way]], chunks, rows)
    qrels = Qrels.from_rows([*rows, *misled], queries)
    astray = lost_distractors(ways, np.setdiff1d(np.flatnonzero(misleads), way))
    overlapping = overlapping_chunks(chunks)
    notes = (
        *said,
        *target_notes(split, unfound, lost, overlapping, chunks.height, overlap, documents is not None),
        *distractor_notes(int(misleads.sum()), astray.height, both),
    )
    qrels.notes += notes
    return Projection(qrels, split, unfound, lost, astray, both, chunks.height, overlapping, notes)


def _looked_up_by(way: Alternative) -> str:
    """The condition by which a way's chunks are looked up; the others are held against what it gives."""
    if way.is_span:
        return "span"
    given = (
        ("fact", way.fact),
        ("hash", way.hash),
        ("chunk_id", way.chunk_id),
        ("parent", way.parent),
        ("doc_id", way.doc_id),
    )
    return next((name for name, value in given if value is not None), "page")


def _check_columns(
    ways: Ways, kinds: np.ndarray[tuple[int], np.dtype[np.str_]], chunks: pl.DataFrame
) -> None:
    """What the evidence asks of the chunks that they do not have."""
    needs = (
        ("span", "start", "spans, and the chunks have no start and end (and several share a document)"),
        ("fact", "text", "facts, and the chunks have no text"),
        ("hash", "text", "hashes, and the chunks have no text"),
        ("page", "page", "pages, and the chunks have no page"),
    )
    for kind, column, said in needs:
        wanted = (
            int(np.sum(kinds == kind)) if kind != "page" else sum(way.page is not None for way in ways.way)
        )
        lacking = chunks[column].null_count()
        if wanted and lacking and (kind != "page" or lacking == chunks.height):
            raise InputError(
                f"the evidence names {wanted:,} {said}: {lacking:,} of {counted(chunks.height, 'chunk')} "
                f"{worded(lacking, 'lacks', 'lack')} it. Add the column."
            )
    parents = {way.parent for way in ways.way if way.parent is not None}
    if parents and not parents & set(chunks["parent"].unique().to_list()):
        shown = ", ".join(map(repr, chunks["parent"].head(3).to_list()))
        raise InputError(
            f"the parent rule maps to nothing the evidence names: it gives {shown}, ..., and the evidence "
            f"names {', '.join(map(repr, sorted(parents)[:3]))}. Name a column or another rule (parent=...)."
        )


def _check_spans(ways: Ways, documents: Mapping[str, str]) -> None:
    problems = []
    for query, target, way in zip(ways.query, ways.target, ways.way, strict=True):
        if not way.is_span:
            continue
        text = documents.get(str(way.doc_id))
        where = f"query {query!r}, {f'target {target}' if target else 'a distractor'}: {way}"
        if text is None:
            problems.append(f"{where}: there is no such document")
        elif way.end is not None and way.end > len(text):
            problems.append(f"{where} is out of range: the document has {len(text):,}")
        elif way.content is not None and normalised(text[way.start : way.end]) != normalised(way.content):
            problems.append(
                f"{where} is {shortened(text[way.start : way.end], 30)!r}, and the evidence says {shortened(way.content, 30)!r}"
            )
    if problems:
        raise InputError(
            problem_report(
                f"{counted(len(problems), 'span does not fit its document', 'spans do not fit their documents')}:",
                problems,
                "Mend the offsets, or give the documents that they were made on.",
            )
        )


def _codes(values: Sequence[str | None], column: pl.Series) -> tuple[Ints, Ints]:
    """Values and a column as numbers, equal where they are equal; -1 for a value that is not there."""
    unique = column.unique(maintain_order=True).drop_nulls()
    place = pl.DataFrame({"value": unique, "code": pl.Series(range(len(unique)), dtype=pl.Int64)})
    columns = (
        column.rename("value").to_frame().join(place, on="value", how="left", maintain_order="left")["code"]
    )
    wanted = pl.DataFrame({"value": pl.Series(list(values), dtype=pl.String)}).join(
        place, on="value", how="left", maintain_order="left"
    )["code"]
    return wanted.fill_null(-1).to_numpy(), columns.fill_null(-2).to_numpy()


def _spans(
    ways: Ways, chosen: Bools, chunks: pl.DataFrame, overlap: Overlap
) -> tuple[tuple[Ints, Ints], pl.DataFrame]:
    """Spans and the chunks that hold enough of each; and the spans that no chunk holds whole."""
    places = np.flatnonzero(chosen)
    spans = [ways.way[place] for place in places.tolist()]
    doc, chunk_doc = _codes([way.doc_id for way in spans], chunks["doc_id"])
    start = np.array([way.start for way in spans], dtype=np.int64)
    end = np.array([way.end for way in spans], dtype=np.int64)
    placed = (
        np.flatnonzero(chunks["start"].is_not_null().to_numpy())
        if len(spans)
        else np.zeros(0, dtype=np.int64)
    )
    table = Intervals(
        chunk_doc[placed], chunks["start"].gather(placed).to_numpy(), chunks["end"].gather(placed).to_numpy()
    )
    known = np.flatnonzero(doc >= 0)
    span, chunk, shared = overlaps(Intervals(doc[known], start[known], end[known]), table)
    span, chunk = known[span], placed[chunk]
    length = end - start
    needed = {"any": np.ones(len(span)), "majority": length[span] // 2 + 1, "whole": length[span]}[overlap]
    enough = shared >= needed
    best = np.zeros(len(spans), dtype=np.int64)
    np.maximum.at(best, span, shared)
    pieces = np.bincount(span, minlength=len(spans))
    needed_whole = np.array([not way.misleads for way in spans], dtype=bool)
    cut = np.flatnonzero(needed_whole & (pieces > 0) & (best < length))
    split = pl.DataFrame(
        {
            "query_id": pl.Series([ways.query[places[at]] for at in cut.tolist()], dtype=pl.String),
            "target": pl.Series([ways.target[places[at]] for at in cut.tolist()], dtype=pl.Int64),
            "doc_id": pl.Series([spans[at].doc_id for at in cut.tolist()], dtype=pl.String),
            "start": start[cut],
            "end": end[cut],
            "pieces": pieces[cut],
            "best": best[cut] / length[cut],
        }
    )
    return (places[span[enough]], chunk[enough]), split


def _facts(
    ways: Ways, chosen: Bools, chunks: pl.DataFrame, matching: Matching, documents: Mapping[str, str] | None
) -> tuple[tuple[Ints, Ints], pl.DataFrame]:
    """Facts and the chunks that contain them; and the facts that are in no chunk."""
    places = np.flatnonzero(chosen)
    facts = [str(ways.way[place].fact) for place in places.tolist()]
    shares = [ways.way[place].share or matching.share for place in places.tolist()]
    fact, chunk = find_facts(facts, shares, chunks["text"], matching)
    wanted = np.array([not ways.way[place].misleads for place in places.tolist()], dtype=bool)
    lost = np.flatnonzero(wanted & (np.bincount(fact, minlength=len(facts)) == 0))
    inside: list[bool | None] = [None] * len(lost)
    if documents is not None and len(lost):
        texts = pl.Series("text", [str(documents[doc]) for doc in documents], dtype=pl.String)
        there, _ = find_facts([facts[at] for at in lost], [shares[at] for at in lost], texts, matching)
        inside = (np.bincount(there, minlength=len(lost)) > 0).tolist()
    frame = pl.DataFrame(
        {
            "query_id": pl.Series([ways.query[places[at]] for at in lost.tolist()], dtype=pl.String),
            "target": pl.Series([ways.target[places[at]] for at in lost.tolist()], dtype=pl.Int64),
            "fact": pl.Series([facts[at] for at in lost.tolist()], dtype=pl.String),
            "in_document": pl.Series(inside, dtype=pl.Boolean),
        }
    )
    return (places[fact], chunk), frame


def _hashes(ways: Ways, chosen: Bools, chunks: pl.DataFrame) -> tuple[Ints, Ints]:
    """Hashes and the chunks whose text, as it is or in its normal form, has that digest."""
    import hashlib

    places = np.flatnonzero(chosen)
    wanted: dict[str, list[int]] = {}
    for place in places.tolist():
        wanted.setdefault(str(ways.way[place].hash), []).append(place)
    algorithms = {ways.way[place].algorithm for place in places.tolist()}
    found: list[tuple[int, int]] = []
    for number, text in enumerate(chunks["text"].to_list() if wanted else []):
        forms = {text, normalised(text)}
        digests = {
            hashlib.new(name, form.encode(), usedforsecurity=False).hexdigest()
            for name in algorithms
            for form in forms
        }
        found += [(place, number) for digest in digests for place in wanted.get(digest, ())]
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _named(ways: Ways, chosen: Bools, chunks: pl.DataFrame, column: str) -> tuple[Ints, Ints]:
    """Ways that name a chunk, a parent, a document or a page, and the chunks of that name."""
    places = np.flatnonzero(chosen)
    if not len(places):
        return places, places
    wanted, codes = _codes([getattr(ways.way[place], column) for place in places.tolist()], chunks[column])
    left, chunk = equal_codes(wanted, codes)
    return places[left], chunk


def _conditions(ways: Ways, way: Ints, chunk: Ints, chunks: pl.DataFrame) -> Bools:
    """The pairs that also meet the other conditions of their way."""
    held = np.ones(len(way), dtype=bool)
    for column in ("chunk_id", "doc_id", "parent", "page"):
        # The join of spans has met their documents.
        values = [None if column == "doc_id" and each.is_span else getattr(each, column) for each in ways.way]
        asked = np.array([value is not None for value in values], dtype=bool)
        if asked.any():
            wanted, codes = _codes(values, chunks[column])
            held &= ~asked[way] | (wanted[way] == codes[chunk])
    return held
