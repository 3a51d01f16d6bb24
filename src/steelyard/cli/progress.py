"""How far a bench is: a bar on a terminal; in a pipe a line for everything that is begun, and for what takes long."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from steelyard.cli.output import say, watched

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
