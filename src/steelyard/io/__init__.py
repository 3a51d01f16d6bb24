"""Reading and writing runs and qrels in every format, detected from the content.

Names are loaded when first used: a clean TREC file needs little of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.io.detect import Detected as Detected
    from steelyard.io.detect import sniff as sniff
    from steelyard.io.reading import Converted as Converted
    from steelyard.io.reading import convert as convert
    from steelyard.io.reading import read_qrels as read_qrels
    from steelyard.io.reading import read_run as read_run
    from steelyard.io.reading import write_qrels as write_qrels
    from steelyard.io.reading import write_run as write_run
    from steelyard.io.registry import Format as Format
    from steelyard.io.registry import formats as formats
    from steelyard.io.validate import Finding as Finding
    from steelyard.io.validate import Validation as Validation
    from steelyard.io.validate import validate_file as validate_file

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "detect": ("Detected", "sniff"),
        "reading": (
            "Converted",
            "convert",
            "read_qrels",
            "read_run",
            "write_qrels",
            "write_run",
        ),
        "registry": ("Format", "formats"),
        "validate": ("Finding", "Validation", "validate_file"),
    },
)
