"""What runs are called: after their files, and so that no two are called alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.errors import InputError
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


def distinct_names(names: Sequence[str], runs: Sequence[Any]) -> list[str]:
    """Names for runs, no two alike: their own; where two share one, those of their files, or the paths.

    >>> distinct_names(["bm25", "bm25"], ["old/bm25.run", "old/bm25-plus.run"])
    ['bm25', 'bm25-plus']
    >>> distinct_names(["bm25", "bm25"], ["old/bm25.run", "new/bm25.run"])
    ['old/bm25.run', 'new/bm25.run']
    """
    choices = [list(names)]
    if all(isinstance(run, (str, Path)) for run in runs):
        choices += [[run_name(Path(run)) for run in runs], list(map(str, runs))]
    for chosen in choices:
        if len(set(chosen)) == len(chosen):
            return chosen
    twice = next(name for name in names if list(names).count(name) > 1)
    raise InputError(
        f"two runs are called {twice!r}; give them names of their own: {{'{twice}-1': ..., '{twice}-2': ...}}."
    )


def names_file(name: str, run: Any) -> bool:
    """Whether a name is that of a run's file, in any of the ways to say it."""
    if not isinstance(run, (str, Path)):
        return False
    path = Path(run)
    return name in (str(path), path.name, run_name(path))
