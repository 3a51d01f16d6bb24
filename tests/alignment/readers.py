"""Both ways of reading a run, called by name, so that one test can compare them with the same reference."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from needs import needs_kernel
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.alignment.scans import scan_file, scan_frame, scan_mapping
from steelyard.io.files import run_name
from steelyard.native import native_available
from steelyard.run import Run

READERS = [pytest.param("native", marks=needs_kernel), "portable"]
AVAILABLE = ("native", "portable") if native_available() else ("portable",)
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


def scan_text(reader: str, text: bytes, judged: JudgedDocs, ordering: Ordering, **options: Any) -> Hits | None:
    """Hits of a TREC file. The native reader gives None for an unusual one, the portable reader an error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.run"
        path.write_bytes(text)
        return scan_path(reader, path, judged, ordering, **options)


def scan_path(reader: str, path: Path, judged: JudgedDocs, ordering: Ordering, **options: Any) -> Hits | None:
    with reader_named(reader):
        if reader == "native":
            return scan_file(path, judged, ordering, **options)
        assert scan_file(path, judged, ordering, **options) is None
        return table_hits(path, judged, ordering)


def table_hits(path: Path, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """Hits of a TREC file that is read into a table."""
    run = Run.read(path, "trec-run")
    # A table keeps the tag of its file only as its name.
    tags = () if run.name == run_name(path) else (run.name,)
    return replace(scan_frame(run, judged, ordering), tags=tags)


def scan_dict(reader: str, run: Any, judged: JudgedDocs, ordering: Ordering) -> Hits | None:
    with reader_named(reader):
        if reader == "native":
            return scan_mapping(run, judged, ordering)
        assert scan_mapping(run, judged, ordering) is None
        return scan_frame(Run(run), judged, ordering)
