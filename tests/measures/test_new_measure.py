"""A new measure is one declaration: evaluate, compare, bounds, explain and the page follow from it.

The same on Spark is in tests/spark/test_spark_evaluate.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.measures import registry
from steelyard.measures.registry import measure


@pytest.fixture(autouse=True)
def half_found() -> Iterator[None]:
    """The measure HalfFound: registered for a test, and unregistered after it."""

    @measure("HalfFound", aliases=("half_found",), bounded="additive", expected="linear", high=float("inf"))
    def half(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
        """Half the number of relevant documents in the first k.

        HalfFound@k = |relevant in the first k| / 2
        """
        return a.per_query((a.grade >= rel) * a.within(k)) / 2

    yield
    del registry._DEFINITIONS["HalfFound"]
    registry.names.cache_clear()


QRELS = {f"q{n}": {"a": 1, "b": 0, "c": 2} for n in range(6)}
GOOD = {query: ["a", "c", "x"] for query in QRELS}
BAD = {query: ["b", "x", "y", "a"] for query in QRELS}


def test_it_is_evaluated_listed_and_explained() -> None:
    scores = sy.evaluate(QRELS, GOOD, ["HalfFound@2", "half-found(rel=2)"])
    assert scores.means == {"HalfFound@2": 1.0, "half-found(rel=2)": 0.5}
    assert "HalfFound" in sy.list_measures()
    explained = str(sy.explain("HalfFound@2"))
    assert "Half the number of relevant documents" in explained
    assert "rel=1: the lowest grade that counts as relevant." in explained, "what many measures have is known"


def test_its_bounds_and_its_mean_over_ties_follow() -> None:
    assert sy.evaluate(QRELS, BAD, ["HalfFound@3"]).bounds("HalfFound@3") == (0.0, 1.0)
    tied = {"q0": {"a": 1.0, "x": 1.0}}
    assert sy.evaluate({"q0": {"a": 1}}, tied, "HalfFound@1", ties="expected").means == {"HalfFound@1": 0.25}


def test_it_is_compared_and_shown_on_the_page(tmp_path: Path) -> None:
    result = sy.compare(QRELS, {"good": GOOD, "bad": BAD}, ["HalfFound@3"], baseline="bad")
    (pair,) = [row for row in result.pairs.to_dicts() if row["measure"] == "HalfFound@3"]
    assert (pair["run"], pair["baseline"], pair["difference"]) == ("good", "bad", 1.0)
    page = tmp_path / "page.html"
    result.to_html(page)
    assert "HalfFound@3" in page.read_text(encoding="utf-8")


def test_without_any_declaration_the_bounds_are_still_valid() -> None:
    @measure("HalfFound", high=float("inf"))
    def half(a: Alignment, k: int | None = None) -> Floats:
        """Half the number of documents graded above 0 in the first k."""
        return a.per_query((a.grade > 0) & a.within(k)) / 2

    assert sy.evaluate(QRELS, BAD, ["HalfFound@3"]).bounds("HalfFound@3") == (0.0, 1.0)
