"""The history of a bench: one JSON line per run of it, with the commit, fingerprints and the values per query."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from steelyard.bench.lock import held
from steelyard.bench.result import BenchResult
from steelyard.checks import is_number
from steelyard.comparison.history import History
from steelyard.comparison.scores import label
from steelyard.errors import InputError
from steelyard.io.files import read_bytes, write_file
from steelyard.safe_text import has_lone_surrogate

GIT_SECONDS = 10
"""After this long git is taken as absent."""


def append_history(file: Path, result: BenchResult, folder: Path) -> None:
    """Add a line on the result of one dataset; `folder` is in the git repository whose commit is recorded.

    The file is replaced as a whole while a lock is held, so that a crash leaves the old file or the new one, and two
    writers lose no line.
    """
    line = json.dumps(history_record(result, folder, file), ensure_ascii=False, allow_nan=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    with held(file.parent / f".{file.name}.lock"):
        for part in file.parent.glob(f".{file.name}.*.part"):
            part.unlink(missing_ok=True)
        before = read_bytes(file) if file.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"
        write_file(file, before + line.encode() + b"\n")


def history_record(result: BenchResult, folder: Path, file: Path | None = None) -> dict[str, Any]:
    """What one line has: time, git, fingerprints, definitions, means, and the values of every query."""
    record = result.to_dict()
    comparison = result.comparison
    tables = comparison.score_tables
    keys = [(label(column.key, table.k), column) for table in tables for column in table.columns]
    queries = list(dict.fromkeys(query for table in tables for query in table.queries))
    runs: dict[str, Any] = {}
    for place, run in enumerate(tables[0].runs):
        values = {
            label(column.key, table.k): [
                _plain(value) for value in table.values[table.runs.index(run), number].tolist()
            ]
            for table in tables
            for number, column in enumerate(table.columns)
        }
        means = {
            label(column.key, table.k): _plain(float(mean))
            for table in tables
            for column, mean in zip(table.columns, table.means()[place].tolist(), strict=True)
        }
        runs[run] = {"means": means, "values": values}
    return {
        "steelyard": record["steelyard"],
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **git_state(folder, file),
        "dataset": result.dataset.name,
        "fingerprints": fingerprints_of(result),
        "measures": {
            key: column.measure.spelled if column.measure is not None else _digest(comparison.weights)
            for key, column in keys
        },
        "settings": comparison.settings,
        "queries": queries,
        "runs": runs,
    }


def fingerprints_of(result: BenchResult) -> dict[str, str]:
    """The fingerprints of the dataset, of its parts, and of the settings: the retrievers and the depth.

    Those of the settings do not break the line of a history, since a changed setting is what it shows.
    """
    settings = {row.run: [row.retriever, row.settings] for row in result.rows}
    return {
        "dataset": result.dataset.fingerprint,
        "corpus": result.dataset.corpus.fingerprint,
        "queries": result.dataset.queries.fingerprint,
        "qrels": result.dataset.qrels.fingerprint,
        "settings": _digest([settings, result.bench.depth]),
    }


def git_state(folder: Path, file: Path | None = None) -> dict[str, Any]:
    """The commit, the branch, and whether tracked files were changed (the history itself apart); None without git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "branch": None, "dirty": None}
    top = _git(folder, "rev-parse", "--show-toplevel") or str(folder)
    apart = [] if file is None else [f":(exclude,top,literal){_inside(file, Path(top))}"]
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":(top)", *apart)
    branch = _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    return {"commit": commit, "branch": branch, "dirty": None if changed is None else bool(changed)}


def _inside(file: Path, top: Path) -> str:
    try:
        return file.resolve().relative_to(top.resolve()).as_posix()
    except ValueError:
        return file.name


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def history(path: str | Path, alpha: float = 0.05) -> History:
    """Read the history of a bench: its points over time, with breaks and tested changes.

    alpha: the significance level of changes.
    """
    return History.of(read_history(path), alpha)


def read_history(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a history, oldest first, whatever their order in the file: git may have merged two branches."""
    file = Path(path)
    if not file.is_file():
        raise InputError("there is no such file; `history: FILE` in bench.yaml writes one.", file)
    found = []
    for number, line in enumerate(read_bytes(file).decode("utf-8", "replace").splitlines(), start=1):
        if line.strip():
            found.append(_checked(line, file, number))
    if not found:
        raise InputError(
            "the history has no line yet; `history: FILE` in bench.yaml adds one per bench.", file
        )
    return sorted(found, key=lambda each: str(each["time"]))


def _checked(line: str, file: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    known: tuple[tuple[str, type], ...] = (
        *(("time", str), ("dataset", str), ("measures", dict)),
        *(("fingerprints", dict), ("queries", list), ("runs", dict)),
    )
    if (
        not isinstance(record, Mapping)
        or any(not isinstance(record.get(key), kind) for key, kind in known)
        or not all(map(_has_numbers, record["runs"].values()))
        or has_lone_surrogate(json.dumps(record, ensure_ascii=False))
    ):
        raise InputError(
            f"line {number} is not a line of a history: expected a JSON object with "
            f"{', '.join(key for key, _ in known)}. Remove it, or resolve the conflict of a merge.",
            file,
        )
    return dict(record)


def _has_numbers(run: Any) -> bool:
    """Whether the means and the values per query of a run are numbers, where there are any."""

    def part(name: str) -> list[Any]:
        found = run.get(name) if isinstance(run, Mapping) else None
        return list(found.values()) if isinstance(found, Mapping) else []

    lists = [each for each in part("values") if each]
    return all(isinstance(each, list) for each in lists) and all(
        value is None or is_number(value) for each in (part("means"), *lists) for value in each
    )
