"""What an earlier bench wrote into a result folder, and the new result no longer needs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

_ANSWERS = re.compile(r"[0-9a-f]{20}\.jsonl")


def earlier_record(folder: Path) -> Mapping[str, Any]:
    """The record of the result that is there; empty where there is none that can be read."""
    try:
        record = json.loads((folder / "result.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def leftovers(
    folder: Path, cache: Path, earlier: Mapping[str, Any], runs: Collection[str], answers: Collection[str]
) -> list[Path]:
    """Files that a bench wrote and that neither the new result nor the next bench will read.

    Runs that the earlier result names and the new one does not. Answers that neither of the two
    used: a retriever that is taken out and put back again is not asked anew.
    """
    named = [row for row in earlier.get("runs", []) if isinstance(row, dict)]
    kept = {name.lower() for name in runs}
    gone = [str(row.get("file")) for row in named if str(row.get("file")).lower() not in kept]
    used = {*answers, *(row.get("answers") for row in named)}
    old = [path for path in sorted(cache.glob("*.jsonl")) if path.name not in used and _is_ours(path)]
    return [
        folder / "runs" / name
        for name in gone
        if Path(name).name == name and (folder / "runs" / name).is_file()
    ] + old


def removed(paths: Collection[Path]) -> list[Path]:
    """Remove the files; those that are gone. One that cannot be removed stays, and does no harm."""
    gone = []
    for path in paths:
        try:
            path.unlink()
        except OSError:
            continue
        gone.append(path)
    return gone


def _is_ours(path: Path) -> bool:
    """Whether a file is a bench's answers: by its name and by what its first line holds."""
    if not _ANSWERS.fullmatch(path.name) or not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8") as lines:
            first = json.loads(next(lines, ""))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and bool({"cost", "query"} & set(first))
