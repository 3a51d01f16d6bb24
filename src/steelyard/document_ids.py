"""Whether a run and the judgments call their documents alike: what is said where not one is known to both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
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
    """What makes ids differ that would else be the same: case, or what all of one side begin with or end in.

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
        for one in sorted(longer):
            for cut in filter(partial(_parts, one), range(1, len(one))):
                begin, end = one[:cut], one[cut:]
                if end in shorter and _all_and_none(longer, shorter, str.startswith, begin):
                    return f"{begin!r}, with which those of {whose} begin"
                if begin in shorter and _all_and_none(longer, shorter, str.endswith, end):
                    return f"{end!r}, in which those of {whose} end"
    return None


def _all_and_none(ids: set[str], others: set[str], holds: Callable[[str, str], bool], part: str) -> bool:
    """Whether all ids begin with (or end in) a part that none of the others does."""
    return all(holds(one, part) for one in ids) and not any(holds(one, part) for one in others)


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
