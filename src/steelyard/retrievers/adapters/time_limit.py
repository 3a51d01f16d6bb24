"""Calls that may take so long and no longer: each in a thread, which is given up when its time is over."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any

from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.checks import number


class TimeLimit:
    """Makes calls, each within so many seconds; without a limit, in the calling thread.

    Threads are used again, so that calls one after the other are made in one thread. Python cannot end a
    thread: one that is given up goes on until its call returns, and ends with the process at the latest.

    >>> TimeLimit(5.0, "mine").run(lambda: 1 + 1)
    2
    """

    def __init__(self, seconds: float | None, who: str) -> None:
        self.seconds = None if seconds is None else number(who, "`timeout`", seconds, 1e-3)
        self._who = who
        self._idle: list[_Worker] = []
        weakref.finalize(self, _dismiss, self._idle)

    def __deepcopy__(self, memo: dict[int, Any]) -> TimeLimit:
        return TimeLimit(self.seconds, self._who)

    def run(self, call: Callable[[], Any], times: float | None = 1) -> Any:
        """What the call gives, within `times` the limit (None: however long it takes); an error where it is late."""
        if self.seconds is None:
            return call()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker()
        limit = None if times is None else times * self.seconds
        answer = worker.begin(call)
        if not wait([answer], limit).done:
            worker.dismiss()
            raise self.late(limit)
        self._idle.append(worker)
        return answer.result()

    def late(self, limit: float | None) -> RetrieverError:
        """The error of a call that took too long."""
        return RetrieverError(
            f"{self._who}: no answer within {limit:g} s, and it was given up; `timeout` sets how long to wait."
        )


class _Worker:
    """A thread that makes the calls it is given, one after the other."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="steelyard-call").start()

    def begin(self, call: Callable[[], Any]) -> Future[Any]:
        answer: Future[Any] = Future()
        self._calls.put((call, answer))
        return answer

    def dismiss(self) -> None:
        """Let the thread end, after the call it is at."""
        self._calls.put(None)

    def _work(self) -> None:
        while (given := self._calls.get()) is not None:
            call, answer = given
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)


def _dismiss(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.dismiss()
