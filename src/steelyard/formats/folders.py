"""A folder where a file was expected: which of its files could have been meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steelyard.errors import InputError
from steelyard.formats.registry import Kind
from steelyard.formats.sniffing import sniff

_LOOKED_AT = 100
_SHOWN = 5


def folder_error(folder: Path, kind: Kind) -> InputError:
    """An error that names the files of that kind in the folder and in those right below it; else what it holds."""
    wanted = "a run" if kind == "run" else "judgments"
    meant = [path for path in _files(folder) if _could_be(path, kind)]
    if meant:
        said = f"Which of these was meant: {_listed(meant)}?"
    else:
        held = [path.relative_to(folder) for path in sorted(folder.iterdir())]
        what = f"It holds {_listed(held)}" if held else "It is empty"
        said = f"{what}; nothing in it reads as {wanted}."
    return InputError(f"{folder} is a folder; expected a file with {wanted}. {said}")


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder, then those of the folders in it, hidden ones left out; a hundred at the most."""
    shown = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    below = [path for sub in shown if sub.is_dir() for path in sorted(sub.iterdir())]
    found = [path for path in (*shown, *below) if path.is_file() and not path.name.startswith(".")]
    yield from found[:_LOOKED_AT]


def _could_be(path: Path, kind: Kind) -> bool:
    try:
        return sniff(path).kind in (kind, "either")
    except InputError:
        return False


def _listed(paths: list[Path]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(map(str, paths[:_SHOWN])) + more
