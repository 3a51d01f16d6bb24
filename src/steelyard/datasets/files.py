"""Files of a dataset's folder, found by name, compressed or not."""

from __future__ import annotations

from pathlib import Path

from steelyard.errors import InputError

_ENDINGS = ("", ".gz", ".gzip", ".zst", ".zstd", ".lz4")


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name, or its compressed form."""
    candidates = (folder / f"{name}{ending}" for ending in _ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def required_file(folder: Path, name: str) -> Path:
    """The file of that name, or its compressed form; an error that shows what is there where it is not."""
    found = find_file(folder, name)
    if found is None:
        raise InputError(f"{folder} has no {name}; it holds {listing(folder)}.")
    return found


def queries_beside(qrels: Path) -> Path | None:
    """The queries of the dataset that judgments belong to: beside their file, above a folder `qrels`, or in the
    dataset's folder where that is what was given."""
    beside = qrels.parent.parent if qrels.parent.name == "qrels" else qrels.parent
    path = (qrels if qrels.is_dir() else beside) / "queries.jsonl"
    return path if path.is_file() else None


def listing(folder: Path) -> str:
    """The names in a folder, the first ten of them, for a message."""
    if not folder.is_dir():
        return "nothing: it is not a folder"
    names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
    more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more if names else "nothing"
