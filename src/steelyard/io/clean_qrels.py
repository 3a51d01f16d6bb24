"""TREC judgments as most files have them, read at once: `query 0 document grade`.

Clean files only: four words a line, the second always 0 or always Q0, the last a whole number, the
lines of a query together, each document once. Anything else is left to the other readers, which
find out what the file is and say what is wrong with it.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import numpy as np

from steelyard.alignment.hits import Floats, JudgedDocs
from steelyard.native import kernel

_LARGE = 1 << 28
_ODD = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\r(?!\n)|\xef\xbb\xbf")
_WHOLE = re.compile(rb"[-+]?[0-9]{1,15}")


def read_clean_qrels(path: Path) -> tuple[JudgedDocs, Floats] | None:
    """The judged documents and their grades; None where the file is not a clean one."""
    if not path.is_file() or path.stat().st_size > _LARGE:
        return None
    data = path.read_bytes()
    native = kernel()
    if native is None:
        return _read_portable(data)
    found = native.read_qrels(data)
    if found is None:
        return None
    query_ids, starts, doc_ids, grades = found
    return JudgedDocs(query_ids, np.frombuffer(starts, np.int64), doc_ids), np.frombuffer(grades)


def _read_portable(data: bytes) -> tuple[JudgedDocs, Floats] | None:
    if _ODD.search(data) is not None:
        return None
    rows = list(map(bytes.split, data.removesuffix(b"\n").split(b"\n")))
    if set(map(len, rows)) != {4}:
        return None
    queries, middles, docs, grades = zip(*rows, strict=True)
    runs = [(query, len(list(group))) for query, group in groupby(queries)]
    heads = [query for query, _ in runs]
    grade_of = {grade: float(grade) for grade in set(grades) if _WHOLE.fullmatch(grade)}
    if (
        set(middles) not in ({b"0"}, {b"Q0"})
        or not all(grade in grade_of for grade in set(grades))
        or len(set(heads)) < len(heads)
        or any(query.startswith(b"#") for query in heads)
        or len(set(zip(queries, docs, strict=True))) < len(rows)
    ):
        return None
    try:
        query_ids, doc_ids = (b"\n".join(ids).decode().split("\n") for ids in (heads, docs))
    except UnicodeDecodeError:
        return None
    starts = np.cumsum([0, *(size for _, size in runs)], dtype=np.int64)
    return JudgedDocs(query_ids, starts, doc_ids), np.array([grade_of[grade] for grade in grades])
