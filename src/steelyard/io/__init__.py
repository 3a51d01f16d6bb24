"""Reading and writing runs and judgments: one file a format, found by content.

Names are loaded when first used: a clean TREC file needs little of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
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
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
