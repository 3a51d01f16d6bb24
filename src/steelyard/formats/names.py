"""What a run is called after its file."""

from __future__ import annotations

from pathlib import Path

from steelyard.formats.compression import compression_named


def bare_name(path: Path) -> Path:
    """The path without the suffix of its compression.

    >>> bare_name(Path("bm25.trec.gz")).name
    'bm25.trec'
    """
    return path.with_suffix("") if compression_named(path) else path


def run_name(path: Path) -> str:
    """The file's own name, without suffixes of format and compression.

    >>> run_name(Path("runs/bm25.v2.trec.gz"))
    'bm25.v2'
    """
    return bare_name(path).stem
