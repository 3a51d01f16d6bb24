"""The time of a query is that of the user's call: reading its result is not part of it, making it is."""

from __future__ import annotations

import pytest

from clocks import Clock
from steelyard.benchmark import retrieval
from steelyard.benchmark.retrieval import _asked
from steelyard.retrievers.adapters import Python

SLOW = 0.05
clock = Clock()


@pytest.fixture(autouse=True)
def time_of_the_test(monkeypatch):
    monkeypatch.setattr(retrieval, "perf_counter", clock)


class SlowToRead:
    """A document whose id takes long to read."""

    score = 1.0

    @property
    def id(self) -> str:
        clock.advance(SLOW)
        return "d1"


def slow_generator(query: str, k: int):
    clock.advance(SLOW)
    yield ("d1", 1.0)


class Own:
    """A retriever by the protocol."""

    label = "own"

    def index(self, corpus):
        return self

    def retrieve(self, queries, k=10):
        clock.advance(SLOW)
        return [[("d1", 1.0)] for _ in queries]

    def settings(self):
        return {}

    def size_in_bytes(self):
        return 0


def test_reading_a_result_is_not_part_of_the_time():
    retriever = Python(lambda query, k: [SlowToRead()], name="mine")
    found, taken = _asked(retriever, ["a question"], 10)
    assert taken == 0
    assert retriever.read(["a question"], found, 10) == [[("d1", 1.0)]]


@pytest.mark.parametrize("retriever", [Python(slow_generator, name="mine"), Own()], ids=["lazy", "protocol"])
def test_making_a_result_is_part_of_the_time(retriever):
    found, taken = _asked(retriever, ["a question"], 10)
    assert [list(map(tuple, listed)) for listed in found] == [[("d1", 1.0)]]
    assert taken == pytest.approx(SLOW)
