"""Pools of documents to judge, recognised where a run or qrels are expected: they have no scores and no grades."""

from __future__ import annotations

import json
import re

from steelyard.io.text import Source

POOL = "this is a pool: documents to judge, without grades; judge it first with `steelyard judge`."
_FIELDS = {"query_id", "doc_id", "priority", "runs", "ranks", "strategy"}


def is_pool(source: Source) -> bool:
    """Whether a file is a pool, also where its first line, which records how it was made, was removed."""
    if not source.start.startswith(b"{"):
        return False
    if is_pool_header(source.first_line):
        return True
    try:
        row = json.loads(source.first_line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and row.keys() >= _FIELDS and "grade" not in row


def is_pool_header(line: str) -> bool:
    """Whether a line, or the start of a long one, is the first line of a pool.

    >>> is_pool_header('{"pool": {"strategy": "depth"'), is_pool_header('{"pool": {"d1": 0.7}}')
    (True, False)
    """
    return re.match(r'\{\s*"pool"\s*:\s*\{', line) is not None and '"strategy"' in line
