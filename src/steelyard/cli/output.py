"""Where results go: data to stdout or a file, in the format asked for; everything else to stderr."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeVar

from steelyard.comparison.result import Comparison
from steelyard.report.comparison import comparison_tables
from steelyard.report.rows import is_long, movers_lines, remarks
from steelyard.report.tables import Table, comma_separated, fitted, latex, markdown, plain

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
    elif format is Format.table and output is None:
        print_tables([table])
    else:
        write(_WRITERS.get(format, plain)(table), output)


def print_tables(tables: Sequence[Table], below: bool = False) -> None:
    """Print tables one below the other, and `below` others: in a pipe as they are, on a terminal so that they fit."""
    if sys.stdout.isatty():
        _print_rich(tables)
    else:
        print(("\n" if below else "") + "\n\n".join(map(plain, tables)))


def write(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file: wholly or not at all."""
    if output is None:
        print(text)
        return
    from steelyard.io.files import write_file

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


def _print_rich(tables: Sequence[Table]) -> None:
    """Tables on a terminal: one that is too wide goes on below, and nothing in it is cut."""
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


PATIENCE = 60.0
"""Seconds after which a pipe is told that the same thing is still being done."""


@contextmanager
def bench_watched() -> Iterator[Callable[[str, int, int], None]]:
    """What to tell of a bench's progress. What the bench logs meanwhile is said."""
    handler = _Saying()
    log = logging.getLogger("steelyard.bench")
    log.addHandler(handler)
    try:
        with watched() if sys.stderr.isatty() else _lines() as watch:
            yield watch
    finally:
        log.removeHandler(handler)


class _Saying(logging.Handler):
    """Says what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


@contextmanager
def _lines() -> Iterator[Callable[[str, int, int], None]]:
    """A line for every new thing that is done, and one for each that takes longer than one should wait in silence."""
    begun: set[str] = set()
    now: tuple[str, float] = ("", monotonic())
    over = threading.Event()

    def watch(what: str, done: int, total: int) -> None:
        nonlocal now
        now = f"{what}, {done:,} of {total:,} done" if total > 1 else what, monotonic()
        if what not in begun:
            begun.add(what)
            say(what)

    def remind() -> None:
        while not over.wait(PATIENCE / 4):
            what, since = now
            if what and monotonic() - since >= PATIENCE:
                say(f"still {what}: no progress for {monotonic() - since:.0f} s")
                over.wait(PATIENCE * 3 / 4)

    thread = threading.Thread(target=remind, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()


def print_comparison(
    result: Comparison,
    format: Format,
    output: Path | None,
    movers: int = 0,
    texts: Mapping[str, object] | None = None,
) -> None:
    """Print a comparison in the format asked for: tables to stdout, what to know about them to stderr."""
    format = format_for(format, output)
    if format is Format.json:
        write(result.to_json(movers), output)
    elif format is Format.markdown:
        write(result.to_markdown(movers, texts), output)
    elif format is Format.latex:
        write(result.to_latex(movers, texts), output)
        say(result.verdict)
    elif format is Format.csv:
        write(result.to_csv(), output)
        _say_all(result)
    elif output is not None:
        write(result.to_text(movers, texts), output)
    else:
        _print_tables(result, movers, texts)


def _print_tables(result: Comparison, movers: int, texts: Mapping[str, object] | None) -> None:
    say(result.verdict)
    print_tables(comparison_tables(result))
    for line in remarks(result, short=is_long(result)):
        say(line)
    if movers:
        print("\n" + "\n".join(movers_lines(result, movers, texts)))


def _say_all(result: Comparison) -> None:
    """What is to be known of a comparison whose table cannot say it."""
    for line in (result.verdict, *remarks(result, tables=False)):
        say(line)
    if result.plan.baseline is None and result.tested_pairs:
        say(
            "The tests of every two runs are in the JSON; with --baseline NAME, the differences from it are columns here."
        )
