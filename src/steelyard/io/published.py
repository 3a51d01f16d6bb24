"""Published results: a mean per run and dataset, without the queries; and tables of them, as BEIR's.

A table is CSV, TSV or Markdown. With datasets as columns its first column is called model, run, method, ...; with
datasets as rows, as in BEIR's own tables, it is called dataset, corpus or task. A long table has a column for each,
and one of values. Columns and rows of averages are left out.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.errors import InputError
from steelyard.io.columns import RUN_NAMES
from steelyard.io.files import errors_name, read_bytes, reading
from steelyard.notes import Note, note

DATASET_NAMES = ("dataset", "datasets", "dataset_name", "corpus", "task", "task_name", "collection")
"""Names of a column of datasets."""
_RUNS = (*RUN_NAMES, "models", "approach", "encoder")
_VALUES = ("value", "score", "mean")
_AVERAGES = re.compile(r"(macro |micro )?(avg|average|mean)\b.*", re.IGNORECASE)
_Cell = tuple[str, str, str, Sequence[str]]  # Run, dataset, value, and the row they are in.
_MARKUP = re.compile(r"[*_`]|\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Published:
    """The scores of one run on one dataset, by metric; a table has one without a name.

    `parts` is the number of splits and subsets that they are means of.
    """

    run: str
    dataset: str
    scores: Mapping[str, float]
    parts: int = 1
    source: str = ""


def read_result_table(path: Path) -> tuple[list[Published], list[Note]]:
    """The values of a table of runs and datasets."""
    with errors_name(path), reading(path):
        rows = _cells(read_bytes(path).decode("utf-8-sig"))
        if len(rows) < 2 or len(rows[0]) < 2:
            raise InputError("expected a table of runs and datasets: CSV, TSV or Markdown, with a header.")
        head = [name.strip() for name in rows[0]]
        lower = [name.lower() for name in head]
        dataset, run, value = (
            next((place for place, name in enumerate(lower) if name in names), None)
            for names in (DATASET_NAMES, _RUNS, _VALUES)
        )
        notes: list[Note] = []
        cells: list[_Cell]
        if dataset is not None and run is not None and value is not None:
            if short := next((row for row in rows[1:] if len(row) <= max(run, dataset, value)), None):
                raise InputError(f"the row {','.join(short)!r} is too short.")
            cells = [(row[run].strip(), row[dataset].strip(), row[value], row) for row in rows[1:]]
        elif 0 in (dataset, run):
            cells, left_out = _matrix(head, rows[1:], by_dataset=dataset == 0)
            if left_out:
                notes.append(note("across-left-out", source=path.name, names=left_out))
        else:
            problem = f"its first column is {head[0]!r}"
            raise InputError(f"{problem}; expected `dataset` (one row per dataset) or `model` (one row per run).")
        values = [
            Published(name, on, {"": number}, 1, str(path))
            for name, on, text, row in cells
            if (number := _number(text, row)) is not None
        ]
        if any(published.scores[""] > 1.0 for published in values):
            notes.append(note("across-percent", source=path.name))
            values = [replace(published, scores={"": published.scores[""] / 100}) for published in values]
        return values, notes


def _cells(text: str) -> list[list[str]]:
    """The cells of CSV, TSV or the first Markdown table of a text."""
    import csv

    lines = text.split("\n")
    piped = [line.strip() for line in lines if line.strip().startswith("|")]
    if piped:
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in piped]
        rows = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
        return [[_MARKUP.sub(r"\1", cell) for cell in row] for row in rows]
    separator = "\t" if lines and "\t" in lines[0] else ","
    return [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]


def _matrix(head: Sequence[str], rows: Sequence[Sequence[str]], by_dataset: bool) -> tuple[list[_Cell], list[str]]:
    """The cells of a matrix, and the averages that were left out."""
    cells: list[_Cell] = []
    left_out: list[str] = []
    for row in rows:
        if len(row) > len(head):
            raise InputError(f"the row of {row[0]!r} has {len(row)} cells, and the header {len(head)}.")
        for name, cell in zip(head[1:], row[1:], strict=False):
            run, dataset = (name, row[0].strip()) if by_dataset else (row[0].strip(), name)
            if _AVERAGES.fullmatch(dataset):
                left_out.append(dataset)
            else:
                cells.append((run, dataset, cell, row))
    return cells, list(dict.fromkeys(left_out))


def _number(text: str, row: Sequence[str]) -> float | None:
    """The number of a cell; None for an empty cell or a dash."""
    bare = text.strip().rstrip("%*†‡").strip()
    if bare in ("", "-", "–", "—") or bare.lower() in ("n/a", "na", "nan", "none", "null"):
        return None
    try:
        number = float(bare)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{text.strip()!r} in the row of {row[0]!r} is not a number.")
    return number
