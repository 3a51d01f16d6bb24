"""What to do, in the words of whoever asked: flags on the command line, arguments in Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FLAGS = ContextVar("flags", default=False)


@contextmanager
def as_flags() -> Iterator[None]:
    """Within it, advice names the options of the command line."""
    token = _FLAGS.set(True)
    try:
        yield
    finally:
        _FLAGS.reset(token)


def option(name: str, value: str | int) -> str:
    """An argument of `check` with its value, as it is written where the advice is read.

    >>> option("allow", "queries"), option("rules", "RR >= 0.4")
    ("allow='queries'", "rules=['RR >= 0.4']")
    >>> with as_flags():
    ...     option("allow_failed", 2), option("rules", "RR >= 0.4")
    ('--allow-failed 2', "--rule 'RR >= 0.4'")
    """
    if not _FLAGS.get():
        return f"{name}={[value]!r}" if name == "rules" else f"{name}={value!r}"
    flag = "rule" if name == "rules" else name.replace("_", "-")
    return f"--{flag} {shlex.quote(str(value))}"
