"""Grades above 1 on a scale that nobody stated: what the verdict would be if relevance started at 2.

Measures count from grade 1 unless the qrels or the call say otherwise. In TREC's Deep Learning tracks grade 1 is
'related', and relevance starts at 2. Where that changes a verdict, a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.comparison.data import Source
from steelyard.comparison.pairs import Pair, PairTest, tested_pairs
from steelyard.comparison.scores import ScoreTable
from steelyard.comparison.testing import ComparisonPlan
from steelyard.evaluation import measure_values
from steelyard.measures.grammar import with_rel
from steelyard.notes import Note, note
from steelyard.options import Options

STRICTER = 2.0
"""The lowest relevant grade of TREC's Deep Learning tracks."""


def scale_notes(
    source: Source | None, table: ScoreTable, pairs: Sequence[Pair], plan: ComparisonPlan, options: Options | None
) -> list[Note]:
    """A note on the pairs of the first measure whose verdict would be another one with rel=2; it names the first.

    Undecided pairs are not compared. There is no note if the scale is known, or no grade is above 1.
    """
    column = table.columns[0]
    if source is None or source.chunked or options is None or options.rel is not None or column.measure is None:
        return []
    grades, stricter = source.qrels.grades, with_rel(column.measure, STRICTER)
    if source.qrels.relevant_from is not None or stricter == column.measure or not np.any(grades > 1):
        return []
    asked = [pair for pair in pairs if (pair.measure, pair.k) == (column.key, table.k)]
    if not asked or not set(table.runs) <= set(source.alignments):
        return []
    values = np.full((len(table.runs), 1, len(table.queries)), np.nan)
    for number, run in enumerate(table.runs):
        lists = source.alignments[run]
        found = dict(zip(lists.queries, measure_values(stricter, lists, options).tolist(), strict=True))
        known = ~np.isnan(table.of(column.key)[number])
        values[number, 0] = np.where(known, [found.get(query, np.nan) for query in table.queries], np.nan)
    other = replace(table, columns=(replace(column, measure=stricter),), values=values)
    tests = [PairTest(other, other.columns[0], *map(table.runs.index, (pair.run, pair.baseline))) for pair in asked]
    changed = [
        (now, then)
        for now, then in zip(asked, tested_pairs(tests, plan), strict=True)
        if now.verdict != "undecided" and _outcome(now) != _outcome(then)
    ]
    if not changed:
        return []
    now, then = changed[0]
    highest, after = float(grades.max()), {"then": then.verdict, "difference": then.difference}
    return [note("relevance-level-decides", pairs=len(changed), highest=highest, **after, **now.named, now=now.verdict)]


def _outcome(pair: Pair) -> str:
    return "not significant" if pair.verdict == "equal" else pair.verdict
