"""Reading runs and judgments as the command line names them: --columns, --qrels-columns, --qrels-format, folders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from steelyard.cli.output import say
from steelyard.cli.parsing import Option, UsageError
from steelyard.errors import FixedColumnsError
from steelyard.judgments import Qrels
from steelyard.runs import Run

RunColumns = Annotated[
    list[str] | None,
    Option(
        "What columns of the runs are called, where not by a usual name: query_id, doc_id, score, rank or "
        "seconds, as in doc_id=passage,score=sim.",
        "ROLE=NAME,...",
        names=("--columns",),
    ),
]
QrelsColumns = Annotated[
    list[str] | None,
    Option(
        "The same for the judgments: query_id, doc_id, grade or target.",
        "ROLE=NAME,...",
    ),
]
QrelsFormat = Annotated[
    str | None,
    Option("What the judgments are, where that is not seen: trec-diversity, msmarco, ...", "FORMAT"),
]
FileColumns = Annotated[
    list[str] | None,
    Option(
        "What columns of the file are called, where not by a usual name: query_id, doc_id; score, rank or "
        "seconds of a run; grade or target of judgments.",
        "ROLE=NAME,...",
        names=("--columns",),
    ),
]


def read_run(path: Path, columns: dict[str, str], among: int) -> Run:
    """A run with its columns named; one of several that has no columns to name, as a TREC file, is read as it is."""
    try:
        return Run.read(path, **columns)
    except FixedColumnsError as error:
        if among == 1:
            raise
        say(f"{error} --columns is taken to be for the other runs.")
        return Run.read(path)


def read_qrels(path: Path, given: list[str] | None, format: str | None) -> Qrels:
    """The judgments of a file, its columns or its format named; of a dataset's folder, its queries without an
    answer with them."""
    columns = named(given, "--qrels-columns")
    if (path / "queries.jsonl").is_file() and not columns and format is None:
        from steelyard.datasets.dataset import Dataset

        return Dataset.read(path).qrels
    return Qrels.read(path, format, **columns)


def named(given: list[str] | None, option: str) -> dict[str, str]:
    """The column named for each role. A comma that no `ROLE=` follows is part of a name.

    >>> named(["query_id=q,doc_id=title, short", "score=sim"], "--columns")
    {'query_id': 'q', 'doc_id': 'title, short', 'score': 'sim'}
    """
    found: dict[str, str] = {}
    for part in (part for text in given or [] for part in re.split(r",\s*(?=\w+=)", text)):
        role, equals, name = part.partition("=")
        if not (role and equals and name):
            raise UsageError(
                f"{option} is {part!r}; expected what a column is for and its name, as in {option} query_id=q,doc_id=d."
            )
        if found.setdefault(role, name) != name:
            raise UsageError(
                f"{option} names two columns for {role}, {found[role]!r} and {name!r}; keep one."
            )
    return found
