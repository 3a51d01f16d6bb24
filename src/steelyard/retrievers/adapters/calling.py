"""How calls are made: within a time limit, concurrently, and awaited in one event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Any

from steelyard.retrievers.base import RetrieverError, number
from steelyard.user_code import await_user_code, no_child_returns


class TimeLimit:
    """Calls with a time limit, each in a thread; without a limit, in the calling thread.

    Threads are reused, so that consecutive calls are in one thread. Python cannot stop a thread: one whose call
    takes too long is abandoned and ends when the call returns, or with the process.

    >>> TimeLimit(5.0, "mine").run(lambda: 1 + 1)
    2
    """

    def __init__(self, seconds: float | None, label: str) -> None:
        self.seconds = None if seconds is None else number(label, "`timeout`", seconds, 1e-3)
        self._label = label
        self._idle: list[_Worker] = []
        weakref.finalize(self, _stop, self._idle)

    def __deepcopy__(self, memo: dict[int, Any]) -> TimeLimit:
        return TimeLimit(self.seconds, self._label)

    def run(self, call: Callable[[], Any], times: float | None = 1) -> Any:
        """The result of a call within `times` the limit (None: without a limit); an error if it takes longer."""
        if self.seconds is None:
            with no_child_returns():
                return call()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker()
        limit = None if times is None else times * self.seconds
        result = worker.start(call)
        if not wait([result], limit).done:
            worker.stop()
            raise self.late(limit)
        self._idle.append(worker)
        return result.result()

    def late(self, limit: float | None) -> RetrieverError:
        """The error of a call that took too long."""
        return RetrieverError(
            f"{self._label}: no result within {limit:g} s; the call was abandoned (`timeout` sets the limit)."
        )


class _Worker:
    """A thread that makes one call after the other."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="steelyard-call").start()

    def start(self, call: Callable[[], Any]) -> Future[Any]:
        result: Future[Any] = Future()
        self._calls.put((call, result))
        return result

    def stop(self) -> None:
        """Let the thread end after its current call."""
        self._calls.put(None)

    def _work(self) -> None:
        while (task := self._calls.get()) is not None:
            call, result = task
            try:
                with no_child_returns():
                    found = call()
                result.set_result(found)
            except BaseException as error:
                result.set_exception(error)


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.stop()


def ask_each(ask: Callable[[str], Any], queries: Sequence[str], concurrency: int) -> list[Any]:
    """One result per query, with up to `concurrency` calls at the same time, each in a thread.

    >>> ask_each(str.upper, ["a", "b"], 2)
    ['A', 'B']
    """
    if concurrency == 1 or len(queries) < 2:
        return [ask(query) for query in queries]
    with ThreadPoolExecutor(min(concurrency, len(queries))) as pool:
        return list(pool.map(ask, queries))


class Loop:
    """One event loop for all calls, so that an async client can be used in several calls.

    It runs in the calling thread, or in another thread if a loop is already running there, as in a notebook.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._one_at_a_time = threading.Lock()
        weakref.finalize(self, self._loop.close)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine."""
        with self._one_at_a_time:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return self._loop.run_until_complete(work)
            with ThreadPoolExecutor(1) as other:
                return other.submit(self._loop.run_until_complete, work).result()


async def awaited(
    results: Sequence[Any], concurrency: int, limit: float | None, late: Callable[[float | None], Exception]
) -> list[Any]:
    """The results, with awaitables awaited, up to `concurrency` at the same time, each within the limit."""
    free = asyncio.Semaphore(concurrency)

    async def one(result: Any) -> Any:
        if not inspect.isawaitable(result):
            return result
        async with free:
            task = asyncio.ensure_future(await_user_code(result))
            if not (await asyncio.wait([task], timeout=limit))[0]:
                task.cancel()
                raise late(limit)
            return task.result()

    finished = await asyncio.gather(*map(one, results), return_exceptions=True)
    for result in finished:
        if isinstance(result, BaseException):
            raise result
    return list(finished)
