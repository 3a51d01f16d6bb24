"""ranx files: `{query: {document: number}}`, as JSON, or as CBOR in an LZ4 frame inside an LZ4 frame (.lz4)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from json import dumps
from typing import Any

from steelyard.errors import InputError
from steelyard.io.columns import check_roles
from steelyard.io.files import compress, optional, run_name, unpack_lz4
from steelyard.io.formats import Detected, Format, Kind, Shape
from steelyard.io.json import grades_by_query, one_score_each, read_qrels, read_run, rows_by_query
from steelyard.io.lists import qrels_of_lists, run_of_lists
from steelyard.io.text import Source
from steelyard.io.trec import check_no_targets, check_whole_grades, scored_frame
from steelyard.qrels import Qrels
from steelyard.run import Run


def _read_lz4(kind: Kind, source: Source, columns: Mapping[str, str]) -> Run | Qrels:
    """The run, ordered by its scores, or the qrels."""
    check_roles(columns, (), "a ranx file")
    content = lz4_content(source)
    lists = list(content), list(content.values())
    return qrels_of_lists(*lists) if kind == "qrels" else run_of_lists(*lists, None, run_name(source.path))


def lz4_content(source: Source) -> dict[str, Any]:
    """The content of a .lz4 file."""
    cbor = _cbor()
    try:
        content = cbor.loads(unpack_lz4(source.data, source.path))
    except cbor.CBORDecodeError as error:
        raise InputError(f"not as ranx writes it ({error}); get a complete copy.", source.path) from None
    if not isinstance(content, dict) or not all(isinstance(value, dict) for value in content.values()):
        raise InputError("expected {query: {document: number}}, as in a ranx file.", source.path)
    return content


def _scores(run: Run) -> dict[str, dict[str, float | None]]:
    """The scores of every query's documents, best first. A run without scores gets scores that keep its order."""
    rows = rows_by_query(run, scored_frame(run, "ranx"))
    return {query: one_score_each(query, documents) for query, documents in rows.items()}


def _grades(qrels: Qrels) -> dict[str, dict[str, float]]:
    check_no_targets(qrels, "ranx")
    check_whole_grades(qrels, "ranx")
    return grades_by_query(qrels)


def _json(content: Any) -> bytes:
    return dumps(content, ensure_ascii=False).encode()


def _packed(content: Any) -> bytes:
    packed: bytes = _cbor().dumps(content)
    return compress(compress(packed, "lz4"), "lz4")


def _cbor() -> Any:
    return optional("cbor2", "ranx .lz4 files need", "pip install 'steelyard[lz4]', or save the run as JSON.")


def _detect_lz4(shape: Shape) -> Detected | None:
    """LZ4 in LZ4 is how ranx compresses; whole numbers are read as grades."""
    if shape.form != "lz4":
        return None
    whole = all(isinstance(value, int) for values in lz4_content(shape.source).values() for value in values.values())
    return Detected("either", "ranx-lz4", "qrels" if whole else "run")


FORMATS = (
    Format(
        name="ranx",
        description="ranx's JSON: {query: {document: number}}",
        reads={"run": read_run, "qrels": read_qrels},  # its JSON is that of any object of queries
        writes={"run": lambda run: _json(_scores(run)), "qrels": lambda qrels: _json(_grades(qrels))},
        suffixes={"run": (".json.lz4",), "qrels": (".json.lz4",)},
        scores="required",
    ),
    Format(
        name="ranx-lz4",
        description="ranx's .lz4: the same as CBOR, compressed",
        detect=_detect_lz4,
        reads={"run": partial(_read_lz4, "run"), "qrels": partial(_read_lz4, "qrels")},
        writes={"run": lambda run: _packed(_scores(run)), "qrels": lambda qrels: _packed(_grades(qrels))},
        suffixes={"run": (".lz4",), "qrels": (".lz4",)},
        packed=True,
        scores="required",
    ),
)
