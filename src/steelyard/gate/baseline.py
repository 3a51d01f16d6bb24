"""Writing a baseline: values per query in one small file, one line a query, that belongs in the repository."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.formats.atomic import write_file
from steelyard.gate.measured import Measured
from steelyard.gate.reading import measured
from steelyard.version import __version__


def save_baseline(result: Any, path: str | Path, run: str | Sequence[str] | None = None) -> None:
    """Write the values per query of a result (anything `check` takes) for gates to be held against.

    `run` names the runs to keep; left out, all. The same result gives the same bytes.
    """
    source = measured(result)
    names = [run] if isinstance(run, str) else list(run or source.board.runs)
    write_file(Path(path), (baseline_json(source, names) + "\n").encode())


def baseline_json(source: Measured, runs: Sequence[str]) -> str:
    """The text of a baseline: JSON shaped like that of `evaluate`, values listed in the order of `measures`."""
    head: dict[str, Any] = {
        "steelyard": source.version if source.version != "unknown" else __version__,
        "dialect": source.dialect,
        "policies": source.policies,
        "dataset": source.dataset,
        "at": list(source.cutoffs) or None,
        "measures": {key: source.definitions.get(key, key) for key in source.keys},
    }
    parts = [f'"{name}": {_dumped(value)}' for name, value in head.items() if value is not None]
    if source.judgments is not None:
        parts.append(f'"judgments": {_lines(source.judgments)}')
    told = ",\n".join(_run_json(source, run) for run in runs)
    return "{" + ",\n ".join([*parts, f'"runs": [\n{told}\n]']) + "}"


def _run_json(source: Measured, run: str) -> str:
    place = source.run(run)
    means = source.board.means()[place].tolist()
    values = source.board.values[place].T.tolist()
    asked = zip(source.board.queries, values, source.answered(run).tolist(), strict=True)
    rows = {query: [_plain(value) for value in row] for query, row, known in asked if known}
    summed = {key: _plain(mean) for key, mean in zip(source.keys, means, strict=True)}
    return f'{{"name": {_dumped(run)},\n "means": {_dumped(summed)},\n "per_query": {_lines(rows)}}}'


def _lines(mapping: Mapping[str, Any]) -> str:
    """A mapping, one line an entry: what changes shows in a diff."""
    return (
        "{\n" + ",\n".join(f"  {_dumped(key)}: {_dumped(value)}" for key, value in mapping.items()) + "\n }"
    )


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
