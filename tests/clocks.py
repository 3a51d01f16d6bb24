"""Time that a test decides: no test asks the clock, so that a busy machine cannot change its result."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest


class Clock:
    """A clock that only moves when it is told to: by `advance`, or by `step` seconds whenever somebody asks."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    def advance(self, seconds: float) -> None:
        """Stands for a sleep, and for work that takes long."""
        self.now += seconds


FIXED_LATENCIES = """
import sys
from steelyard.benchmark import retrieval
from steelyard.cli import main

milliseconds = {"swarm-rerank": 4.0, "graph-flow": 5.0, "hybrid": 1.5, "dense": 0.5}
asked = retrieval._asked

def fixed(retriever, texts, depth):
    return asked(retriever, texts, depth)[0], milliseconds.get(retriever.label, 0.25) * len(texts) / 1000

retrieval._asked = fixed
sys.exit(main())
"""
"""The command line with a latency for every retriever of the demo: which of two tied runs is faster is not chance."""


def with_fixed_latencies(*arguments: str) -> list[str]:
    """The command that runs `steelyard` with FIXED_LATENCIES."""
    return [sys.executable, "-c", FIXED_LATENCIES, *arguments]


class HangingCalls:
    """Time limits of calls that pass at the moment when a call reports that it hangs, and never before.

    A call that hangs calls `hang()`; one that is awaited awaits an event that nobody sets.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._reported: concurrent.futures.Future[None] = concurrent.futures.Future()
        calling = "steelyard.retrievers.adapters.python"
        monkeypatch.setattr(f"{calling}.wait", self._wait)
        monkeypatch.setattr(f"{calling}.asyncio", SimpleNamespace(**{**vars(asyncio), "wait": self._wait_for_tasks}))

    def hang(self) -> None:
        """Never returns: its thread is abandoned, and ends with the process."""
        self._reported.set_result(None)
        concurrent.futures.Future[None]().result()

    def _wait(self, results: Sequence[concurrent.futures.Future[Any]], limit: float | None) -> SimpleNamespace:
        first = concurrent.futures.FIRST_COMPLETED
        done = concurrent.futures.wait([*results, self._reported], return_when=first).done
        if self._reported in done:
            self._reported = concurrent.futures.Future()
        return SimpleNamespace(done=done & set(results))

    async def _wait_for_tasks(self, tasks: Sequence[asyncio.Task[Any]], timeout: float | None) -> tuple[set[Any], Any]:
        """A task that has not ended after some turns of the event loop waits for something that never happens."""
        for _ in range(20):
            await asyncio.sleep(0)
        return {task for task in tasks if task.done()}, None
