"""What a number was made from, as far as that is cheap to say: what is in memory by its content, a file by its size."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.judgments import Qrels
from steelyard.runs import Run
from steelyard.version import __version__


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
        judgments = _file(qrels) or truth
        return cls(judgments, _file(run) or (run if isinstance(run, Run) else None))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Each by what it is known by: `fingerprint`, or `file` and `bytes`. A run may not be there."""
        made = {"judgments": _shown(self.judgments)}
        return made if self.run is None else {**made, "run": _shown(self.run)}


def _file(given: Any) -> File | None:
    if not isinstance(given, (str, Path)):
        return None
    path = Path(given)
    return File(path.name, path.stat().st_size if path.is_file() else None)


def _shown(known: Qrels | Run | File) -> dict[str, Any]:
    if isinstance(known, File):
        return {"file": known.name, "bytes": known.size}
    return {"fingerprint": known.fingerprint}


def versions() -> dict[str, str]:
    """The versions that had a part in a number: Steelyard's, numpy's, and polars' where it was loaded."""
    made = {"steelyard": __version__}
    for name in ("numpy", "polars"):
        if name in sys.modules:
            made[name] = str(sys.modules[name].__version__)
    return made
