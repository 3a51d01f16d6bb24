"""Whether a run and the judgments call their documents alike: what is said where not one is known to both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from steelyard.alignment.align import Aligned
from steelyard.judgments import Qrels
from steelyard.runs import Run

UNKNOWN = "no document that came back is judged"
DIFFER = "the ids differ only in"
"""How the note begins, and how it goes on where it can be seen what makes the ids differ."""

_LOOKED_AT = 20
"""How many queries are looked at for ids that are nearly the same."""


def with_unknown_documents(aligned: Aligned, qrels: Qrels, run: Any) -> Aligned:
    """The same; where documents came back and none of them is judged, with a note that shows ids of both."""
    a = aligned.alignment
    if len(a.rank) or not len(qrels) or not a.retrieved.any():
        return aligned
    answered = [query for query, size in zip(a.queries, a.retrieved.tolist(), strict=True) if size]
    queries = answered[:_LOOKED_AT]
    note = unknown_documents_note(_returned(Run.of(run), queries), _judged(qrels, queries))
    return replace(aligned, notes=(note, *aligned.notes))


def unknown_documents_note(returned: Sequence[str], judged: Sequence[str]) -> str:
    """The note on lists without a judged document: two ids of either side, and how they differ, if that is seen.

    >>> print(unknown_documents_note(["D1", "D7"], ["d1", "d2"]))
    no document that came back is judged: the run has 'D1', 'D7', the judgments 'd1', 'd2'; the ids differ only in upper and lower case
    """
    shown = [", ".join(map(repr, dict.fromkeys(ids[:2]))) or "none" for ids in (returned, judged)]
    what = difference(returned, judged)
    advice = f"{DIFFER} {what}" if what else "check that they belong together"
    return f"{UNKNOWN}: the run has {shown[0]}, the judgments {shown[1]}; {advice}"


def difference(returned: Iterable[str], judged: Iterable[str]) -> str | None:
    """What makes ids differ that would else be the same: case, what they begin with, or what they end in.

    Nothing where an id is on both sides: then they are called alike, and the run missed.

    >>> difference(["doc-12", "doc-7"], ["7", "8"]), difference(["a.txt"], ["a"]), difference(["x"], ["y"])
    ("'doc-', with which those of the run begin", "'.txt', in which those of the run end", None)
    """
    ours, theirs = set(returned), set(judged)
    if ours & theirs:
        return None
    if {one.strip().lower() for one in ours} & {one.strip().lower() for one in theirs}:
        spaced = {one.strip() for one in ours} & {one.strip() for one in theirs}
        return "white space around them" if spaced else "upper and lower case"
    for longer, shorter, whose in ((ours, theirs, "the run"), (theirs, ours, "the judgments")):
        begins, ends = Counter[str](), Counter[str]()
        for one in longer:
            for cut in range(1, len(one)):
                if _parts(one, cut):
                    begins[one[:cut]] += one[cut:] in shorter
                    ends[one[cut:]] += one[:cut] in shorter
        for counts, how in ((begins, "with which those of {} begin"), (ends, "in which those of {} end")):
            # The commonest; of equally common ones the first by letters, so that the same ids give the same words.
            common, number = min(counts.items(), key=lambda each: (-each[1], each[0]), default=("", 0))
            if number:
                return f"{common!r}, {how.format(whose)}"
    return None


def _parts(text: str, cut: int) -> bool:
    """Whether a text may be two parts there: not within a number or a word."""
    before, after = text[cut - 1], text[cut]
    return not (before.isdigit() and after.isdigit()) and not (before.isalpha() and after.isalpha())


def _returned(run: Run, queries: Sequence[str]) -> list[str]:
    """The documents that a run has for some queries, in its order."""
    if run.mapping is not None:
        lists = (run.mapping.get(query, ()) for query in queries)
        return [one if isinstance(one, str) else one[0] for listed in lists for one in listed]
    import polars as pl

    return run.table.filter(pl.col("query_id").is_in(list(queries)))["doc_id"].to_list()


def _judged(qrels: Qrels, queries: Sequence[str]) -> list[str]:
    """The documents judged for some queries; those of the first ones, where these have none."""
    judged, wanted = qrels.judged, set(queries)
    starts = judged.starts.tolist()
    places = [place for place, query in enumerate(judged.query_ids) if query in wanted]
    found = [doc for place in places for doc in judged.doc_ids[starts[place] : starts[place + 1]]]
    return found or list(islice(judged.doc_ids, 100))
