"""Evidence on one chunking: the judgments, and what the chunk borders did to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from steelyard.alignment.hits import Bools, Ints
from steelyard.errors import InputError, problem_report
from steelyard.evidence.alternatives import Alternative, Ways, shortened
from steelyard.evidence.chunk_table import overlapping_chunks
from steelyard.evidence.fact_match import find_facts
from steelyard.evidence.judged_chunks import lost_distractors, misleading_rows, relevant_rows
from steelyard.evidence.normalise import Matching, normalised
from steelyard.evidence.projection_notes import distractor_notes, target_notes
from steelyard.evidence.span_join import Intervals, equal_codes, overlaps
from steelyard.judgments import Qrels
from steelyard.wording import counted, worded

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
