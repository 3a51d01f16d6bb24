"""Reading and writing runs and judgments: one file a format, found by content."""

from __future__ import annotations

from steelyard.formats.convert import Converted, convert
from steelyard.formats.files import read_qrels, read_run, write_qrels, write_run
from steelyard.formats.registry import Format, formats
from steelyard.formats.sniff import Detected, sniff
from steelyard.formats.validate import Finding, Validation, validate_file

__all__ = [
    "Converted",
    "Detected",
    "Finding",
    "Format",
    "Validation",
    "convert",
    "formats",
    "read_qrels",
    "read_run",
    "sniff",
    "validate_file",
    "write_qrels",
    "write_run",
]
