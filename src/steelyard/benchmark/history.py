"""The history of a bench: one JSON line per run of it, with the commit, fingerprints and the values per query."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import subprocess
from collections.abc import Iterable
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.benchmark.cache import held
from steelyard.checks import is_number
from steelyard.comparison.history import History, uncollected
from steelyard.comparison.scores import label
from steelyard.errors import InputError
from steelyard.io.files import read_bytes, write_file
from steelyard.report.documents import plain_values
from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.benchmark.result import BenchResult

LOG = logging.getLogger("steelyard.bench")

GIT_SECONDS = 10  # After this long git is taken as absent.


_LINE = re.compile(rb"\s*|\{.*\"fingerprints\".*\}\s*")
"""A line of a history, or a blank one. `read_history` looks closer; this finds markers of a merge, and cut lines."""


def check_history(file: Path) -> None:
    """An error if a file that a line would be added to has lines and none of a history: it is something else."""
    lines = [line for line in read_bytes(file).split(b"\n") if line.strip()] if file.exists() else []
    if lines and not any(map(_LINE.fullmatch, lines)):
        raise InputError(
            "is not a history, so no line is added to it: expected a new file, or one that `history: FILE` in "
            "bench.yaml wrote. Choose another name.",
            file,
        )


def append_history(file: Path, result: BenchResult, folder: Path) -> None:
    """Add a line on the result of one dataset; `folder` is in the git repository whose commit is recorded.

    The file is replaced as a whole while a lock is held: a crash leaves the old file or the new one, and two writers
    lose no line. Lines that are none of a history are kept, with a warning: only the user can tell what they are.
    """
    line = json.dumps(history_record(result, folder, file), ensure_ascii=False, allow_nan=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    with held(file.parent / f".{file.name}.lock"):
        before = read_bytes(file) if file.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"
        wrong = [number for number, text in enumerate(before.split(b"\n"), 1) if not _LINE.fullmatch(text)]
        write_file(file, before + line.encode() + b"\n")
    if wrong:
        LOG.warning(
            "%s: line %d is not a line of a history, and it cannot be read until it is removed or the conflict of a "
            "merge is resolved. The line on this result was added.",
            file,
            wrong[0],
        )


def history_record(result: BenchResult, folder: Path, file: Path | None = None) -> dict[str, Any]:
    """What one line has: time, git, fingerprints, definitions, means, and the values of every query."""
    comparison, tables = result.comparison, result.comparison.score_tables
    columns = [(table, number, column) for table in tables for number, column in enumerate(table.columns)]
    keys = [label(column.key, table.k) for table, _, column in columns]
    means_of = [table.means()[:, number].tolist() for table, number, _ in columns]
    queries = list(dict.fromkeys(query for table in tables for query in table.queries))
    runs: dict[str, Any] = {}
    for place, run in enumerate(tables[0].runs):
        means = [means[place] for means in means_of]
        values = [table.values[table.runs.index(run), number].tolist() for table, number, _ in columns]
        values_of = {"means": dict(zip(keys, means, strict=True)), "values": dict(zip(keys, values, strict=True))}
        runs[run] = plain_values(values_of)
    return {
        "steelyard": __version__,
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **git_state(folder, file),
        "dataset": result.dataset.name,
        "fingerprints": fingerprints_of(result),
        "measures": {
            key: column.measure.spelled if column.measure is not None else digest(comparison.weights)
            for key, (_, _, column) in zip(keys, columns, strict=True)
        },
        "settings": comparison.settings,
        "queries": queries,
        "runs": runs,
    }


def fingerprints_of(result: BenchResult) -> dict[str, str]:
    """The fingerprints of the dataset and its parts, and of the settings, whose changes are what a history shows."""
    return {
        "dataset": result.dataset.fingerprint,
        "corpus": result.dataset.corpus.fingerprint,
        "queries": result.dataset.queries.fingerprint,
        "qrels": result.dataset.qrels.fingerprint,
        "settings": digest([{row.run: [row.retriever, row.settings] for row in result.rows}, result.bench.depth]),
    }


def git_state(folder: Path, file: Path | None = None) -> dict[str, Any]:
    """The commit, the branch, and whether tracked files were changed (the history itself apart); None without git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "branch": None, "dirty": None}
    top = Path(_git(folder, "rev-parse", "--show-toplevel") or folder).resolve()
    apart = []
    if file is not None:
        inside = file.resolve().is_relative_to(top)
        apart = [f":(exclude,top,literal){file.resolve().relative_to(top).as_posix() if inside else file.name}"]
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":(top)", *apart)
    branch = _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    return {"commit": commit, "branch": branch, "dirty": None if changed is None else bool(changed)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


def digest(value: Any) -> str:
    """What stands for settings or weights in a line of the history."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def history(path: str | Path, alpha: float = 0.05) -> History:
    """Read the history of a bench: its points over time, with breaks and tested changes.

    alpha: the significance level of changes.
    """
    with uncollected():
        return History.of(read_history(path), alpha)


def read_history(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a history, oldest first, whatever their order in the file: git may have merged two branches."""
    file = Path(path)
    if not file.is_file():
        raise InputError("there is no such file; `history: FILE` in bench.yaml writes one.", file)
    earlier: dict[str, dict[str, Any]] = {}
    with uncollected():
        # A BytesIO yields one line after the other, ended by a line feed only, and copies no more than that.
        lines = enumerate(BytesIO(read_bytes(file)), start=1)
        records = [_checked(line, file, number, earlier) for number, line in lines if not line.isspace()]
    if not records:
        raise InputError("the history has no line yet; `history: FILE` in bench.yaml adds one per bench.", file)
    return sorted(records, key=lambda record: str(record["time"]))


_FIELDS = {"time": str, "dataset": str, "measures": dict, "fingerprints": dict, "queries": list, "runs": dict}
_TYPES = tuple(_FIELDS.values())
_REPEATED = ("queries", "measures", "fingerprints", "settings")
"""Fields that are the same in most lines of a dataset; equal ones are kept once, which saves most of the memory."""


def _checked(line: bytes, file: Path, number: int, earlier: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The record of a line, or an error. orjson refuses NaN, Infinity and half of a character."""
    import orjson

    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        record = None
    right = type(record) is dict and tuple(map(type, map(record.get, _FIELDS))) == _TYPES
    if not right or not _has_numbers(record["runs"].values()):
        raise InputError(
            f"line {number} is not a line of a history: expected a JSON object with "
            f"{', '.join(_FIELDS)}. Remove it, or resolve the conflict of a merge.",
            file,
        )
    last = earlier.setdefault(record["dataset"], {})
    for name in record.keys() & _REPEATED:
        if name in last and record[name] == last[name]:
            record[name] = last[name]
        else:
            last[name] = record[name]
    return dict(record)


def _has_numbers(runs: Iterable[Any]) -> bool:
    """Whether the means and the values per query of runs are numbers, if there are any."""
    numbers: list[Any] = []
    for run in runs:
        means, values = (run.get("means"), run.get("values")) if type(run) is dict else (None, None)
        if type(means) is dict:
            numbers += means.values()
        for of_measure in values.values() if type(values) is dict else ():
            if type(of_measure) is list:
                numbers += of_measure
            elif of_measure:
                return False
    # Most lists have only floats, whose sum shows whether one of them is infinite.
    if set(map(type, numbers)) == {float} and math.isfinite(sum(numbers)):
        return True
    return all(value is None or is_number(value) for value in numbers)
