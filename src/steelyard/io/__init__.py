"""Reading and writing runs and qrels in every format, detected from the content.

Names are loaded when first used: a clean TREC file needs little of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.io.formats import Detected, Format, list_formats, register_format, sniff
    from steelyard.io.reading import Converted, convert, read_qrels, read_run, write_qrels, write_run
    from steelyard.io.validate import FileFinding, Validation, validate_file

__all__ = ["Converted", "Detected", "FileFinding", "Format", "Validation", "convert", "list_formats", "read_qrels"]
__all__ += ["read_run", "register_format", "sniff", "validate_file", "write_qrels", "write_run"]

__getattr__, __dir__, _ = lazy_names(
    __name__,
    {
        "formats": ("Detected", "Format", "list_formats", "register_format", "sniff"),
        "reading": ("Converted", "convert", "read_qrels", "read_run", "write_qrels", "write_run"),
        "validate": ("FileFinding", "Validation", "validate_file"),
    },
    __all__,
)
