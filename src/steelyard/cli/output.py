"""Where results go: data to stdout or a file, in the format asked for; everything else to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from steelyard.report.tables import Table, comma_separated, latex, markdown, plain

Item = TypeVar("Item")


class Format(str, Enum):
    """The formats a table can be printed in."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


_WRITERS: dict[Format, Callable[[Table], str]] = {
    Format.csv: comma_separated,
    Format.markdown: markdown,
    Format.latex: latex,
}


_NAMED = {".json": Format.json, ".csv": Format.csv, ".md": Format.markdown, ".tex": Format.latex}


def format_for(format: Format, output: Path | None) -> Format:
    """The format asked for; where none was, the one the file's name says."""
    return _NAMED.get(output.suffix, format) if output is not None and format is Format.table else format


def emit(table: Table, data: Any, format: Format, output: Path | None) -> None:
    """Print a table, or write it to a file. `data`, or what it gives when called, is what JSON shows instead."""
    format = format_for(format, output)
    if format is Format.json:
        import json

        write(json.dumps(data() if callable(data) else data, indent=1, ensure_ascii=False), output)
    elif format is Format.table and output is None and _colours():
        _print_rich(table)
    else:
        write(_WRITERS.get(format, plain)(table), output)


def write(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file: wholly or not at all."""
    if output is None:
        print(text)
        return
    from steelyard.formats.atomic import write_file

    write_file(output, (text + "\n").encode())


def say(text: str) -> None:
    """Say something that is not data."""
    print(text, file=sys.stderr)


def followed(items: Sequence[Item], label: Callable[[Item], str]) -> Iterator[Item]:
    """The items one by one, with a progress bar on a terminal and none in a pipe."""
    if len(items) < 2 or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(items))
        for item in items:
            bar.update(task, description=label(item))
            yield item
            bar.advance(task)


@contextmanager
def watched() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar with the time left, on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def _colours() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _print_rich(table: Table) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=box.SIMPLE_HEAD, header_style="bold")
    for column, right in zip(table.columns, table.numeric(), strict=True):
        grid.add_column(Text(column), justify="right" if right else "left")
    for row in table.shown():
        grid.add_row(*map(Text, row))
    Console().print(grid)
