"""Time limits for one input, in seconds of the processor: a busy machine does not make an input look like a hang."""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import time
from collections.abc import Iterator
from typing import Any, TextIO

LONGEST = 10
"""Seconds of the processor for one input."""

LONGEST_CALL = 6 * LONGEST
"""Seconds of the processor after which a call that does not let Python run ends the process."""

LONGEST_WAIT = 600
"""Seconds by the clock: threads that wait for each other use no processor."""


class Hang(BaseException):
    """An input that takes too long. Not an Exception: the code under test must not handle it."""


def _late(*_: Any) -> None:
    raise Hang


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Raises a Hang after LONGEST seconds of the processor, of all threads together."""
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def long_calls_end(messages: TextIO) -> None:
    """From now on a call that does not let Python run, or waits forever, ends the process, with a traceback."""
    import resource  # Windows has none; there, the kept inputs are read without limits

    faulthandler.register(signal.SIGXCPU, messages, chain=True)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + LONGEST_CALL, hard))
    faulthandler.dump_traceback_later(LONGEST_WAIT, exit=True, file=messages)
