"""How many more judgments would decide between two runs: simulated with the grades so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from steelyard.comparison.compare import compare
from steelyard.judging.candidates import Pairs, judged_grades
from steelyard.notes import shown_otherwise
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted

DRAWS = 6
DECIDED = 5
"""Simulations, and how many of them must give a verdict."""

FIRST_STEP = 10
FEWEST_GRADES = 5
"""Grades of documents that the same runs returned; with fewer, those of all documents are drawn from."""


@dataclass(frozen=True)
class Forecast:
    """The number of further judgments after which most simulations have a verdict.

    `left`: unjudged documents in the pool. `needed`: None if not even all of them would do; `share` is the share of
    simulations with a verdict then.
    """

    left: int
    needed: int | None
    share: float

    def __str__(self) -> str:
        if not self.left:
            return "Every document that could decide it is judged: only more questions can."
        if self.needed is not None:
            return (
                f"About {counted(self.needed, 'more judgment')} would decide it ({self.left:,} documents are left; "
                "simulated with the grades so far)."
            )
        return (
            f"Even all {self.left:,} documents that are left would decide it in only {self.share:.0%} of simulations: "
            "more questions are needed."
        )


def forecast(
    runs: Mapping[str, Run], qrels: Qrels, order: Pairs, measure: str, test: str = "t", seed: int = 0
) -> Forecast:
    """How many of the documents in `order` have to be judged until the two runs are significantly different, or not.

    An unjudged document gets the grade of a judged one that was returned by the same runs, drawn at random. A verdict
    is a significant difference that does not depend on unjudged documents.
    """
    if not order:
        return Forecast(0, None, 0.0)
    random = np.random.default_rng(seed)
    judged = judged_grades(qrels)
    returned = [set(run.frame.select("query_id", "doc_id").iter_rows()) for run in runs.values()]

    def returned_by(query: str, doc: str) -> tuple[bool, ...]:
        return tuple((query, doc) in pairs for pairs in returned)

    grades_by_runs: dict[tuple[bool, ...], list[float]] = {}
    for query, docs in judged.items():
        for doc, grade in docs.items():
            grades_by_runs.setdefault(returned_by(query, doc), []).append(grade)
    all_grades = [grade for grades in grades_by_runs.values() for grade in grades]

    def decided(count: int) -> int:
        """In how many simulations the first `count` documents decide; counted until it is clear whether in enough."""
        found = 0
        for draw in range(DRAWS):
            grades = {query: dict(docs) for query, docs in judged.items()}
            for query, doc in order[:count]:
                known = grades_by_runs.get(returned_by(query, doc), [])
                drawn = random.choice(known if len(known) >= FEWEST_GRADES else all_grades)
                grades.setdefault(query, {})[doc] = float(drawn)
            found += _is_decided(runs, grades, measure, test)
            if found >= DECIDED or (found + DRAWS - draw - 1 < DECIDED and count < len(order)):
                break
        return found

    with_all = decided(len(order))
    if with_all < DECIDED:
        return Forecast(len(order), None, with_all / DRAWS)
    steps = _steps(len(order))
    low, high = 0, len(steps) - 1
    while low < high:  # More judgments decide more often, apart from chance.
        middle = (low + high) // 2
        low, high = (low, middle) if decided(steps[middle]) >= DECIDED else (middle + 1, high)
    return Forecast(len(order), steps[high], with_all / DRAWS)


def _steps(total: int) -> list[int]:
    """10, 20, 40, ... and the total.

    >>> _steps(50)
    [10, 20, 40, 50]
    """
    steps = [FIRST_STEP]
    while steps[-1] * 2 < total:
        steps.append(steps[-1] * 2)
    return [*(step for step in steps if step < total), total]


def _is_decided(runs: Mapping[str, Run], grades: Mapping[str, Mapping[str, float]], measure: str, test: str) -> bool:
    with shown_otherwise():
        pairs = compare(grades, dict(runs), [measure], test=test).tested_pairs
    return any(pair.verdict in ("better", "worse") for pair in pairs)
