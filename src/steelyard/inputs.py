"""What a number was made from, as far as that is cheap to say: what is in memory by its content, a file by its size."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.judgments import Qrels
from steelyard.runs import Run
from steelyard.version import __version__

MOST_HASHED = 1_000_000
"""Runs and judgments of more rows than this are not hashed only to be told by it: that takes seconds."""


class File(NamedTuple):
    """A file by its name and its size. It is measured in one pass; to hash it would take longer than that."""

    name: str
    size: int | None


@dataclass(frozen=True, eq=False)
class Inputs:
    """The judgments and the run of an evaluation, to tell them by; None where the run is not known by anything."""

    judgments: Qrels | File
    run: Run | File | None = None

    @classmethod
    def of(cls, qrels: Any, truth: Qrels, run: Any) -> Inputs:
        """Of what was given, and the judgments it became; a mapping or frame of a run is not kept."""
        known = run if isinstance(run, Run) else _file(run)
        return cls(_file(qrels) or truth, known)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """`judgments` and `run`, each by its `fingerprint`, or by `file` and `bytes`; without what is not known."""
        parts = {"judgments": known_by(self.judgments), "run": known_by(self.run)}
        return {name: known for name, known in parts.items() if known is not None}


def known_by(source: Any) -> dict[str, Any] | None:
    """What judgments, a run or a file can be told by; None where that would be dear, or there is nothing."""
    if isinstance(source, (Qrels, Run)):
        cheap = "fingerprint" in vars(source) or len(source) <= MOST_HASHED
        return {"fingerprint": source.fingerprint} if cheap else None
    file = source if isinstance(source, File) else _file(source)
    return None if file is None else {"file": file.name, "bytes": file.size}


def _file(given: Any) -> File | None:
    if not isinstance(given, (str, Path)):
        return None
    path = Path(given)
    return File(path.name, path.stat().st_size if path.is_file() else None)


def versions() -> dict[str, str]:
    """The versions that had a part in a number: Steelyard's, numpy's, and polars' where it was loaded."""
    made = {"steelyard": __version__}
    for name in ("numpy", "polars"):
        if name in sys.modules:
            made[name] = str(sys.modules[name].__version__)
    return made
