"""The notes of a report: what to do next."""

from __future__ import annotations

from typing import Any

from steelyard.notes import Texts, declare
from steelyard.wording import counted


def _step_faster(run: str, leader: str, ratio: float, seconds: tuple[float, float], measure: str) -> str:
    times = f"{seconds[0] * 1e3:.3g} vs {seconds[1] * 1e3:.3g} ms per query"
    return f"consider {run}: it is tied with {leader} on {measure} and {ratio:.2g} times faster ({times})"


def _step_judge(run: str, other: str, count: int, most: int, depth: int, undecided: bool, command: str = "") -> str:
    which = (
        f"the {counted(count, 'unjudged document')}" if count <= most else f"{most} of the {count:,} unjudged documents"
    )
    why = "the outcome depends on them" if undecided else "they can change which of the two is better"
    how = f" ({command})" if command else ""
    return f"judge {which} that only one of {run} and {other} has in its first {depth}: {why}{how}"


def _step_judge_short(run: str, other: str, count: int, most: int, command: str = "", **_: Any) -> str:
    documents = f"{counted(min(count, most), 'unjudged document')} of {run} and {other}"
    return f"{command} ({documents})" if command else f"judge {documents} (steelyard pool)"


INFO: Texts = {
    "step-faster": _step_faster,
    "step-use": "use {run}: it is significantly better than every other run on {measure}",
    "step-slice": "look at the {queries:,} {queries:query|queries} with {column} {value}, where {run} loses most to "
    "{other} ({difference:.4f} on {measure})",
    "step-judge": _step_judge,
    "step-more-queries": "add queries to decide {run} vs {other}: about {about:,.0f} are needed for a true difference "
    "of {difference:.4f}, and there are {queries:,}",
    "step-all-miss": "look at {count:the query|the {count:,} queries} on which every run scores 0 on {measure}",
}
SHORT: Texts = {
    "step-faster": "consider {run}: tied with {leader} and {ratio:.2g} times faster",
    "step-use": "use {run}: significantly better than every other run on {measure}",
    "step-slice": "look at the {queries:,} {queries:query|queries} with {column} {value}, where {run} loses most",
    "step-judge": _step_judge_short,
    "step-more-queries": "add queries: about {about:,.0f} are needed to decide {run} vs {other}",
}
declare(info=INFO, short=SHORT)
