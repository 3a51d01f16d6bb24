"""Both ways of reading, called by name, so that one test can hold them to the same answer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steelyard.alignment.files import scan_file
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.alignment.mappings import scan_mapping
from steelyard.native import native_available

READERS = [
    pytest.param(
        "native", marks=pytest.mark.skipif(not native_available(), reason="the native kernel was not built")
    ),
    "portable",
]
BUILT = ("native", "portable") if native_available() else ("portable",)
TIES = ["docid-desc", "docid-asc", "stable", "expected"]
DUPLICATES = ["hold", "collapse", "error"]


@contextmanager
def reader_named(name: str) -> Iterator[None]:
    before = os.environ.get("STEELYARD_NATIVE")
    os.environ["STEELYARD_NATIVE"] = "1" if name == "native" else "0"
    try:
        yield
    finally:
        os.environ.pop("STEELYARD_NATIVE")
        if before is not None:
            os.environ["STEELYARD_NATIVE"] = before


def scan_text(
    reader: str, text: bytes, judged: JudgedDocs, ordering: Ordering, **options: Any
) -> Hits | None:
    with tempfile.TemporaryDirectory() as folder, reader_named(reader):
        path = Path(folder) / "a.run"
        path.write_bytes(text)
        return scan_file(path, judged, ordering, **options)


def scan_dict(reader: str, run: Any, judged: JudgedDocs, ordering: Ordering) -> Hits | None:
    with reader_named(reader):
        return scan_mapping(run, judged, ordering)
