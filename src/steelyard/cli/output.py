"""Output: tables to stdout or a file, in every format; messages and progress to stderr."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeAlias, TypeVar

from steelyard.report.tables import Table, comma_separated, fitted, latex, markdown, plain

Item = TypeVar("Item")
Progress: TypeAlias = Callable[[str, int, int], None]

QUIET_SECONDS = 60.0
"""Seconds without progress after which a message is printed in a pipe."""


class Format(str, Enum):
    """The formats of a table."""

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
_SUFFIXES = {".json": Format.json, ".csv": Format.csv, ".md": Format.markdown, ".tex": Format.latex}


def format_for(format: Format, output: Path | None) -> Format:
    """The format; by default that of the file's name."""
    return _SUFFIXES.get(output.suffix, format) if output is not None and format is Format.table else format


def emit(table: Table, data: Any, format: Format, output: Path | None) -> None:
    """Print a table, or write it to a file. `data` (a value, or a function that returns it) is the JSON."""
    emit_tables([table], data, format, output)


def emit_tables(tables: Sequence[Table], data: Any, format: Format, output: Path | None) -> None:
    """Print tables, or write them to a file. `data` (a value, or a function that returns it) is the JSON."""
    format = format_for(format, output)
    if format is Format.json:
        import json

        write(json.dumps(data() if callable(data) else data, indent=1, ensure_ascii=False), output)
    elif format is Format.table and output is None:
        print_tables(tables)
    else:
        write("\n\n".join(map(_WRITERS.get(format, plain), tables)), output)


def write(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file completely or not at all."""
    if output is None:
        print(text)
        return
    from steelyard.io.files import write_file

    write_file(output, (text + "\n").encode())


def print_message(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr)


def print_messages(texts: Iterable[str]) -> None:
    """Print messages to stderr, one per line."""
    for text in texts:
        print_message(text)


def print_tables(tables: Sequence[Table], below: bool = False) -> None:
    """Print tables: in a pipe as they are, on a terminal cut to its width. `below`: there are tables above."""
    if sys.stdout.isatty():
        _print_to_terminal(tables)
    else:
        print(("\n" if below else "") + "\n\n".join(map(plain, tables)))


def _print_to_terminal(tables: Sequence[Table]) -> None:
    """Print tables with rich; a table that is too wide is continued below."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(highlight=False)
    style = "" if "NO_COLOR" in os.environ else "bold"
    for part in (part for table in tables for part in fitted(table, console.width)):
        console.print()
        if part.title:
            console.print(Text(part.title, style=style))
        grid = Grid(
            box=box.SIMPLE_HEAD, header_style=style, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1)
        )
        whole = not part.prose()
        for place, (column, right) in enumerate(zip(part.columns, part.numeric(), strict=True)):
            justify: Literal["left", "right"] = "right" if right else "left"
            one_line = right or (whole and place >= part.keys)
            grid.add_column(Text(column), justify=justify, overflow="fold", no_wrap=one_line)
        for row in part.shown():
            grid.add_row(*map(Text, row))
        console.print(grid)
        if part.note:
            console.print(Text(part.note))
    console.print()


# Progress


def with_progress(items: Sequence[Item], label: Callable[[Item], str]) -> Iterator[Item]:
    """The items, with a progress bar on a terminal."""
    if len(items) < 2 or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(items))
        for item in items:
            bar.update(task, description=label(item))
            yield item
            bar.advance(task)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar with the remaining time, on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda step, done, total: bar.update(task, description=step, completed=done, total=total)


@contextmanager
def bench_progress() -> Iterator[Progress]:
    """The progress of a bench: a bar on a terminal, lines in a pipe; what the bench logs is printed."""
    handler = _MessageHandler()
    log = logging.getLogger("steelyard.bench")
    log.addHandler(handler)
    try:
        with progress_bar() if sys.stderr.isatty() else _progress_lines() as progress:
            yield progress
    finally:
        log.removeHandler(handler)


class _MessageHandler(logging.Handler):
    """Prints log records to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        print_message(record.getMessage())


@contextmanager
def _progress_lines() -> Iterator[Progress]:
    """One line for every new step, and one for every minute without progress."""
    started: set[str] = set()
    now: tuple[str, float] = ("", monotonic())
    finished = threading.Event()

    def progress(step: str, done: int, total: int) -> None:
        nonlocal now
        now = f"{step}, {done:,} of {total:,} done" if total > 1 else step, monotonic()
        if step not in started:
            started.add(step)
            print_message(step)

    def remind() -> None:
        while not finished.wait(QUIET_SECONDS / 4):
            step, since = now
            if step and monotonic() - since >= QUIET_SECONDS:
                print_message(f"still {step}: no progress for {monotonic() - since:.0f} s")
                finished.wait(QUIET_SECONDS * 3 / 4)

    thread = threading.Thread(target=remind, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        finished.set()
        thread.join()
