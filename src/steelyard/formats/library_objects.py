"""Runs and judgments as other libraries hold them in memory: named tuples, as ir_measures has them, and ranx's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def plain_form(source: Any) -> Any:
    """Named tuples as records, ranx's Qrels and Run as a mapping; anything else as it is.

    >>> from collections import namedtuple
    >>> plain_form([namedtuple("Qrel", "query_id doc_id relevance")("q1", "d1", 2)])
    [{'query_id': 'q1', 'doc_id': 'd1', 'relevance': 2}]
    """
    if type(source).__module__.partition(".")[0] == "ranx" and hasattr(source, "to_dict"):
        return source.to_dict()
    listed = list(source) if isinstance(source, Iterator) else source
    if isinstance(listed, (list, tuple)) and listed and all(map(_named, listed)):
        return [one._asdict() for one in listed]
    return listed


def _named(one: Any) -> bool:
    return isinstance(one, tuple) and hasattr(one, "_asdict")
