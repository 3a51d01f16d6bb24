"""A part of `make faults`: commands that are killed leave old or new files, and the next run goes on."""

from __future__ import annotations

import random

import pytest

from needs import not_on_windows

pytestmark = [not_on_windows, pytest.mark.slow]


@pytest.fixture(scope="module")
def here():
    from scripts.faults import laboratory

    with laboratory() as made:
        yield made


def test_kills(here):
    from scripts.faults import COMMANDS, kills

    tried, problems = kills(here, len(COMMANDS), random.Random(1))
    assert problems == []
    assert dict(tried) == dict.fromkeys(COMMANDS, 1)


def test_retrievers_that_break(here):
    from scripts.faults import retrievers

    tried, problems = retrievers(here, 0, random.Random(1))
    assert problems == []
    assert sum(tried.values()) == 8
