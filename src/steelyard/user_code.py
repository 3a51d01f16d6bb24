"""Calls of a user's own code: whatever it raises, prints or changes does not reach the caller."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TypeVar

from steelyard.errors import SteelyardError
from steelyard.safe_text import error_text

Result = TypeVar("Result")


class UserCodeError(SteelyardError):
    """What a user's code raised, as text; the exception itself is its cause."""


def run_user_code(call: Callable[[], Result], label: str = "") -> Result:
    """The result of a call of a user's code.

    Whatever it raises, also SystemExit, becomes a UserCodeError; only KeyboardInterrupt stops the caller. What it
    prints goes to stderr, and the working directory is restored. `label` starts the text of errors that are not ours.

    >>> run_user_code(lambda: 1 + 1)
    2
    >>> run_user_code(lambda: sys.exit(0))
    Traceback (most recent call last):
    ...
    steelyard.user_code.UserCodeError: SystemExit: 0
    """
    try:
        with _same_folder(), redirect_stdout(sys.stderr), no_child_returns():
            return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = error_text(error)
        raise UserCodeError(text if isinstance(error, SteelyardError) or not label else f"{label}: {text}") from error


async def await_user_code(work: Awaitable[Result]) -> Result:
    """The result of an awaitable; SystemExit, which would stop the event loop, is an ordinary error."""
    try:
        with no_child_returns():
            return await work
    except SystemExit as error:
        raise UserCodeError(error_text(error)) from error


@contextmanager
def no_child_returns() -> Iterator[None]:
    """End a forked child that leaves the block, with its own exit code: it must not go on with its parent's work."""
    process = os.getpid()
    code = 0
    try:
        yield
    except BaseException as error:
        if os.getpid() == process:
            raise
        status = error.code if isinstance(error, SystemExit) else 1
        code = 0 if status is None else status & 0xFF if isinstance(status, int) else 1
    if os.getpid() != process:
        os._exit(code)  # Without `atexit` and open buffers, which are copies of the parent's.


@contextmanager
def _same_folder() -> Iterator[None]:
    """Return to the working directory."""
    folder = None
    with suppress(OSError):
        folder = os.getcwd()
    try:
        yield
    finally:
        with suppress(OSError):
            if folder is not None and os.getcwd() != folder:
                os.chdir(folder)
