"""Runs and qrels from any Python object: mappings, frames, records, named tuples, and objects of ranx."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from steelyard.errors import InputError
from steelyard.frames import is_frame
from steelyard.io.columns import NAMES
from steelyard.io.lists import qrels_of_mapping, run_of_mapping
from steelyard.qrels import Qrels
from steelyard.run import Run


def qrels_of(source: Any, columns: Mapping[str, str]) -> Qrels:
    """The qrels of an object; `columns` names the columns of a frame, or the fields of records, by role."""
    source = plain_form(source, "Qrels")
    if isinstance(source, Mapping):
        return qrels_of_mapping(source)
    from steelyard.io.frames import qrels_of_table

    return qrels_of_table(source, columns)


def run_of(source: Any, columns: Mapping[str, str]) -> Run:
    """The run of an object; `columns` as for `qrels_of`."""
    name = None if is_frame(source) else getattr(source, "name", None)
    source = plain_form(source, "Run")
    if isinstance(source, Mapping):
        return run_of_mapping(source, name)
    from steelyard.io.frames import run_of_table

    return run_of_table(source, columns, name)


def _is_columns(source: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a table by column, and not query to documents: its keys name both, and have as many rows."""
    if not 2 <= len(source) <= 12:
        return False
    keys = {str(key).lower() for key in source}
    lists = all(isinstance(column, (list, tuple)) for column in source.values())
    named = all(keys.intersection(NAMES[role]) for role in ("query_id", "doc_id"))
    return lists and named and len(set(map(len, source.values()))) == 1


def plain_form(source: Any, kind: Literal["Qrels", "Run"]) -> Any:
    """Named tuples as records, ranx's Qrels or Run as a mapping; anything else unchanged.

    >>> from collections import namedtuple
    >>> plain_form([namedtuple("Qrel", "query_id doc_id relevance")("q1", "d1", 2)], "Qrels")
    [{'query_id': 'q1', 'doc_id': 'd1', 'relevance': 2}]
    """
    if type(source).__module__.partition(".")[0] == "ranx" and hasattr(source, "to_dict"):
        name = type(source).__name__
        if name != kind:
            raise InputError(f"a {name} of ranx; expected a {kind}. Are the qrels and the run swapped?")
        return source.to_dict()
    listed = list(source) if isinstance(source, Iterator) else source
    if isinstance(listed, Mapping) and _is_columns(listed):
        raise InputError(
            f"a mapping of columns ({', '.join(map(str, listed))}); expected a frame, as in pl.DataFrame(columns), "
            "or a mapping of query to documents."
        )
    filled = isinstance(listed, (list, tuple)) and len(listed) > 0
    if filled and all(isinstance(one, tuple) and hasattr(one, "_asdict") for one in listed):
        return [one._asdict() for one in listed]
    return listed
