"""Reading and writing runs and judgments: one file a format, found by content."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard.formats.files import read_qrels, read_run, write_qrels, write_run
from steelyard.formats.registry import Format, formats
from steelyard.formats.sniff import Detected, sniff

if TYPE_CHECKING:
    from steelyard.formats.converting import Converted, convert
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

_LATER = {
    "Converted": "converting",
    "convert": "converting",
    "Finding": "validate",
    "Validation": "validate",
    "validate_file": "validate",
}


def __getattr__(name: str) -> Any:
    """What only two verbs of the command line need is imported when it is asked for."""
    if name in _LATER:
        return getattr(import_module(f"steelyard.formats.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
