"""Reading and writing runs and qrels in every format, detected from the content.

Names are loaded when first used: a clean TREC file needs little of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.io.formats import Detected as Detected
    from steelyard.io.formats import Format as Format
    from steelyard.io.formats import list_formats as list_formats
    from steelyard.io.formats import register_format as register_format
    from steelyard.io.formats import sniff as sniff
    from steelyard.io.reading import Converted as Converted
    from steelyard.io.reading import convert as convert
    from steelyard.io.reading import read_qrels as read_qrels
    from steelyard.io.reading import read_run as read_run
    from steelyard.io.reading import write_qrels as write_qrels
    from steelyard.io.reading import write_run as write_run
    from steelyard.io.validate import FileFinding as FileFinding
    from steelyard.io.validate import Validation as Validation
    from steelyard.io.validate import validate_file as validate_file

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "formats": ("Detected", "Format", "list_formats", "register_format", "sniff"),
        "reading": ("Converted", "convert", "read_qrels", "read_run", "write_qrels", "write_run"),
        "validate": ("FileFinding", "Validation", "validate_file"),
    },
)
