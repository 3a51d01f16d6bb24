"""Output: tables to stdout or a file, in every format; messages and progress to stderr."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TextIO, TypeAlias, TypeVar

from steelyard.errors import InputError
from steelyard.report.documents import Documented, Tables
from steelyard.report.tables import WIDTH, Table, fitted, plain
from steelyard.safe_text import cell_text, json_text, terminal_text, utf8

Item = TypeVar("Item")
Progress: TypeAlias = Callable[[str, int, int], None]

FIRST_SECONDS, QUIET_SECONDS = 5.0, 30.0
"""In a pipe, progress is printed from the first of these on, for every new step and after the second without a line."""
FIRST_ESTIMATE = 2.0  # Seconds of a step before which the time that is left cannot be estimated.


Format: TypeAlias = Literal["table", "json", "csv", "markdown", "latex"]
_SUFFIXES: dict[str, Format] = {".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex"}
_PAGES = (".html", ".htm")
_OTHERS = (*_PAGES, ".parquet", ".txt", "")  # A name without a suffix is that of a text.


def format_for(format: Format, output: Path | None) -> Format:
    """The format; by default that of the file's name."""
    if output is None or format != "table" or output.suffix in _OTHERS:
        return format
    if output.suffix not in _SUFFIXES:
        listed = ", ".join((*_SUFFIXES, *_OTHERS[:-1]))
        raise InputError(f"unknown suffix {output.suffix!r}; expected one of {listed}, or name the --format.", output)
    return _SUFFIXES[output.suffix]


def is_page(output: Path | None) -> bool:
    """Whether a file is to be a page, by its name."""
    return output is not None and output.suffix in _PAGES


def emit(table: Table, data: Any, format: Format, output: Path | None) -> None:
    """Print a table, or write it to a file. `data` (a value, or a function that returns it) is the JSON."""
    emit_result(Tables([table], data), format, output)


def emit_result(
    result: Documented,
    format: Format,
    output: Path | None,
    show: Callable[[], None] | None = None,
    **texts: Callable[[], str],
) -> None:
    """Print a result (`show`: on a screen), or write it to a file; `texts`: by format, in place of its own text."""
    kind = format_for(format, output)
    if output is not None and is_page(output):
        result.to_html(output)
        print_message(f"Page: {output}")
    elif output is not None and output.suffix == ".parquet":
        result.to_parquet(output)
        print_message(f"Written to {output}.")
    elif kind == "table" and output is None:
        show() if show is not None else print_tables(result.document().tables)
    else:
        text = texts.get(kind) or getattr(result, "to_text" if kind == "table" else f"to_{kind}")
        write(_shown_json(text(), output) if kind == "json" else text(), output)
        if output is not None:
            print_message(f"Written to {output}.")


def _shown_json(text: str, output: Path | None) -> str:
    """JSON in which what a stream or a terminal cannot show is escaped."""
    if output is None and not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
        import json

        text = json.dumps(json.loads(text), indent=1)
    return json_text(text)


def write(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file completely or not at all."""
    if output is None:
        print(terminal_text(text) if sys.stdout.isatty() else text)
        return
    from steelyard.io.files import write_file

    write_file(output, utf8(text + "\n"))


def width() -> int:
    """The columns of the terminal, or COLUMNS; 80 if neither is known."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


def write_prose(text: str, output: Path | None) -> None:
    """Print a text, wrapped on a terminal, or write it to a file."""
    if output is not None and output.suffix in (*_PAGES, ".parquet"):
        raise InputError("this is a text, not a page or a table; expected a name that ends with .txt.", output)
    write(wrapped(text) if output is None and sys.stdout.isatty() else text, output)


def print_message(text: str, style: str = "") -> None:
    """Print a message to stderr, wrapped on a terminal."""
    shown = wrapped(terminal_text(text)) if sys.stderr.isatty() else terminal_text(text)
    print(styled(shown, style, sys.stderr), file=sys.stderr)


def wrapped(text: str) -> str:
    """The text with its lines wrapped at the width of the terminal; what is indented or listed stays indented."""
    from textwrap import fill

    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" -!")
        indent = " " * (len(line) - len(body)) + ("  " if line.startswith("  ") else "")
        if len(line) > width():
            line = fill(line, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines.append(line)
    return "\n".join(lines)


_STYLES = {"bold": "1", "green": "1;32", "yellow": "33", "red": "31"}


def styled(text: str, style: str, stream: TextIO) -> str:
    """The text in a style, on a terminal with colours; NO_COLOR turns them off."""
    plain_terminal = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    if not style or plain_terminal or not stream.isatty():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def print_messages(texts: Iterable[str]) -> None:
    """Print messages to stderr, one per line."""
    for text in texts:
        print_message(text)


def print_tables(tables: Sequence[Table], below: bool = False) -> None:
    """Print tables; on a terminal, one that is too wide is continued below it. `below`: there are tables above."""
    if not sys.stdout.isatty():
        print(("\n" if below else "") + "\n\n".join(map(plain, tables)), flush=True)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(highlight=False, width=width())
    style = "" if "NO_COLOR" in os.environ else "bold"
    for part in (part for table in tables for part in fitted(table, console.width)):
        console.print()
        if part.title:
            console.print(Text(terminal_text(part.title), style=style))
        grid = Grid(box=box.SIMPLE_HEAD, header_style=style, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
        whole = not part.prose()
        for place, (column, right) in enumerate(zip(part.heads(), part.numeric(), strict=True)):
            justify: Literal["left", "right"] = "right" if right else "left"
            one_line = right or (whole and place >= part.keys)
            grid.add_column(Text(column), justify=justify, overflow="fold", no_wrap=one_line)
        for row in part.shown():
            grid.add_row(*map(Text, row))
        console.print(grid)
        if part.note:
            console.print(Text(terminal_text(part.note)))
    console.print()


def page_line(page: Path, result: Path | None) -> str:
    """Where the page is; if it is the plain one, the command for the full one. `result` is its folder, if any."""
    from steelyard.report.page.page import missing_extra

    missing = missing_extra()
    if missing is None:
        return f"Report: {page}"
    again = "" if result is None else f" && {shlex.join(['steelyard', 'report', str(result), '-o', str(page)])}"
    return (
        f"Report: {page}. It is the plain page, because {missing} is not installed. "
        f"For the full one: pip install 'steelyard[report]'{again}"
    )


# Progress


def with_progress(items: Sequence[Item], label: Callable[[Item], str]) -> Iterator[Item]:
    """The items, with a progress bar on a terminal."""
    if len(items) < 2:
        yield from items
        return
    with progress_bar() as progress:
        for number, item in enumerate(items):
            progress(label(item), number, len(items))
            yield item


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar with the remaining time, on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column
    from rich.text import Text

    pace, rest = Pace(), Column(ratio=1, no_wrap=True, overflow="ellipsis")

    class PaceColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(pace.text())

    columns = (TextColumn("{task.description}", markup=False, table_column=rest), BarColumn(20), PaceColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
        task = bar.add_task("")

        def progress(step: str, done: int, total: int) -> None:
            pace.update(done, total)
            bar.update(task, description=cell_text(step), completed=done, total=total)

        yield progress


class Pace:
    """How far a step is, for how long it has run, and how long the rest will take at this pace."""

    def __init__(self) -> None:
        self.began = self.step = monotonic()
        self.first = self.done = self.total = 0

    def update(self, done: int, total: int) -> None:
        """So many are done; another total, or fewer than before, is a new step."""
        if total != self.total or done < self.done:
            self.step, self.first = monotonic(), done
        self.done, self.total = done, total

    def text(self) -> str:
        """As in '9 of 300, 15 s so far, about 8 min left'; no estimate before this step did something for a while."""
        now = monotonic()
        parts = [f"{self.done:,} of {self.total:,}"] if self.total > 1 else []
        parts.append(f"{_duration(now - self.began)} so far")
        took, did = now - self.step, self.done - self.first
        if did > 0 and took >= FIRST_ESTIMATE and self.done < self.total:
            parts.append(f"about {_duration(took / did * (self.total - self.done))} left")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    """A time in the largest unit of which there are two.

    >>> _duration(15), _duration(119.6), _duration(500), _duration(8000)
    ('15 s', '2 min', '8 min', '2.2 h')
    """
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def reserved_stdout() -> Iterator[None]:
    """Within it, whatever is written to standard output (by a library, or a process that it starts) goes to stderr."""
    try:
        sys.stdout.flush()
        output, messages = sys.stdout.fileno(), sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):
        yield
        return
    kept = os.dup(output)
    os.dup2(messages, output)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, output)
        os.close(kept)


@contextmanager
def bench_progress() -> Iterator[Progress]:
    """The progress of a bench, and what it logs, on stderr: a bar on a terminal, lines in a pipe."""

    class Printer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print_message(record.getMessage())

    handler = Printer()
    log = logging.getLogger("steelyard.bench")
    log.addHandler(handler)
    try:
        with reserved_stdout(), progress_bar() if sys.stderr.isatty() else _progress_lines() as progress:
            yield progress
    finally:
        log.removeHandler(handler)


@contextmanager
def _progress_lines() -> Iterator[Progress]:
    """Lines with the elapsed time, for work of more than a few seconds: at every new step, and twice a minute."""
    pace, printed = Pace(), monotonic()
    now = shown = ""
    finished = threading.Event()

    def line() -> None:
        nonlocal printed
        print_message(f"{now}: {pace.text()}")
        printed = monotonic()

    def progress(step: str, done: int, total: int) -> None:
        nonlocal now, shown
        now = step
        pace.update(done, total)
        if step != shown and monotonic() - printed >= FIRST_SECONDS:
            shown = step
            line()

    def remind() -> None:
        while not finished.wait(FIRST_SECONDS / 4):
            if now and monotonic() - printed >= QUIET_SECONDS:
                line()

    thread = threading.Thread(target=remind, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        finished.set()
        thread.join()
