"""What is said of judgments: how many are relevant, which came again, and which disagree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.errors import InputError, problem_report
from steelyard.wording import counted, worded


def relevant_in_words(grades: Floats) -> str:
    """How many judgments are relevant; where some are below 1, from which on measures count, that is said.

    >>> relevant_in_words(np.array([0.0, 1.0, 2.0])), relevant_in_words(np.array([0.5, 0.2, 1.0]))
    ('2 relevant', '1 relevant, 2 graded above 0 but below 1 (relevant with rel=0.2)')
    """
    faint = grades[(grades > 0) & (grades < 1)]
    told = f"{int(np.sum(grades >= 1)):,} relevant"
    if len(faint):
        told += f", {len(faint):,} graded above 0 but below 1 (relevant with rel={float(faint.min()):g})"
    return told


def grade_error(query: str, doc: str, grade: float) -> InputError:
    """A grade that is not a finite number."""
    return InputError(
        f"judgment of document {doc!r} for query {query!r}: grade {grade} is not a finite number."
    )


def merged_note(repeats: int) -> str:
    """The note on judgments that came more than once and agree."""
    merged = worded(repeats, "was merged", "were merged")
    return f"{counted(repeats, 'judgment')} came again with the same grade and {merged}"


def disagreement(query: str, doc: str, target: str | None, first: float, later: float) -> str:
    """One judgment that disagrees with an earlier one, in words."""
    about = f" (target {target!r})" if target is not None else ""
    return f"query {query!r}, document {doc!r}{about}: graded {first:g} and {later:g}"


def disagreement_error(total: int, disagreements: Sequence[str]) -> InputError:
    """Judgments that disagree with earlier ones: how many, and the first of them in words."""
    return InputError(
        problem_report(
            f"{counted(total, 'judgment disagrees', 'judgments disagree')} with an earlier one of the same "
            "query and document:",
            disagreements,
            "Keep one grade for each, or give each its own target.",
            total=total,
        )
    )
