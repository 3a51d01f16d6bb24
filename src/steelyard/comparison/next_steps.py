"""What to do next: consider a faster run, look at a slice, judge documents, ask more queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.failures import low_cutoff
from steelyard.comparison.leaderboard import LeaderboardRow
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.scores import label
from steelyard.comparison.slices import slice_labels
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note, sentence

MOST = 4  # Steps that are given.
FASTER = 1.5  # A run that is tied with the leader is worth naming if it is at least this many times faster.
BUDGET = 40  # Documents that a step suggests to judge.
MOST_TIMES = 10  # More queries are suggested if at most this many times the present number are needed.
FEWEST = 5  # A slice with fewer queries than this is not suggested.


@dataclass(frozen=True)
class NextStep:
    """One thing to do: the text, as a note, and the queries to look at, as the page selects them: `view` has some of
    run, against, filter, slice, and `pool` with the number of documents to judge."""

    note: Note
    view: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return sentence(self.note)


def next_steps(
    comparison: ComparisonData,
    seconds: Mapping[str, float] | None = None,
    columns: Mapping[str, Mapping[str, object]] | None = None,
    controls: tuple[str, ...] = (),
    most: int = MOST,
) -> list[NextStep]:
    """The first steps, the most useful first.

    seconds: the median time per query of each run; default, that of a measure of time. columns: columns of the queries
    to slice by, where the comparison has no slices. controls: runs that are no candidates, such as `random`.
    """
    table = comparison.score_tables[0]
    rows = [row for row in comparison.leaderboard_rows if row.k == table.k and row.run not in controls]
    if not rows:
        return []
    timed = [place for place, column in enumerate(table.columns) if column.timed and column.measure]
    how = "median " if seconds else ""
    if not seconds and timed:
        seconds = dict(zip(table.runs, table.means()[:, timed[0]].tolist(), strict=True))
    finders: tuple[Callable[[], NextStep | None], ...] = (
        partial(_leader, comparison, rows, seconds or {}, how),
        partial(_slice, comparison, rows, columns or {}),
        partial(_judge, comparison, rows),
        partial(_more_queries, comparison, rows),
        partial(_all_miss, comparison),
    )
    return list(islice((step for find in finders if (step := find()) is not None), most))


def _leader(
    comparison: ComparisonData, rows: list[LeaderboardRow], seconds: Mapping[str, float], how: str
) -> NextStep | None:
    """A run that is tied with the leader and faster; or the leader, if it is better than every other run."""
    top, measure = rows[0].run, comparison.keys[0]
    tied = [row.run for row in rows if row.run in comparison.verdict.tied and row.run != top]
    sessions = comparison.score_tables[0].sessions
    rivals = [run for run in tied if seconds.get(run) and seconds.get(top) and sessions.get(run) == sessions.get(top)]
    if rivals:
        run = min(rivals, key=lambda rival: seconds[rival])
        ratio = seconds[top] / seconds[run]
        if ratio >= FASTER:
            values = {"run": run, "leader": top, "ratio": ratio, "seconds": (seconds[run], seconds[top]), "how": how}
            return NextStep(note("step-faster", measure=measure, **values), {"run": run, "against": top})
    if not tied and len(rows) > 1 and rows[0] is comparison.leaderboard_rows[0]:
        decided = [pair for pair in comparison.tested_pairs if top in (pair.run, pair.baseline)]
        if not any(pair.verdict == "undecided" and pair.measure == measure for pair in decided):
            return NextStep(note("step-use", run=top, measure=measure))
    return None


def _slice(
    comparison: ComparisonData, rows: list[LeaderboardRow], columns: Mapping[str, Mapping[str, object]]
) -> NextStep | None:
    """The slice where the baseline, or the leader if there is no other, loses most to the leader or to any run."""
    base, top = comparison.plan.baseline, rows[0].run
    names = [row.run for row in rows]
    loser = base if base is not None and base != top and base in names else top
    rivals = [top] if loser != top else names[1:]
    losses = [
        (means[rival] - means[loser], column, value, rival, queries)
        for column, value, queries, means in _slices(comparison, columns)
        for rival in rivals
        if queries >= FEWEST and means[rival] > means[loser]
    ]
    if not losses:
        return None
    lost, column, value, rival, queries = max(losses, key=lambda loss: loss[0])
    values = {"run": loser, "other": rival, "column": column, "value": value, "queries": queries}
    view = {"run": loser, "against": rival, "slice": f"{column}:{value}"}
    return NextStep(note("step-slice", **values, difference=lost, measure=comparison.keys[0]), view)


def _slices(
    comparison: ComparisonData, columns: Mapping[str, Mapping[str, object]]
) -> Iterator[tuple[str, str, int, dict[str, float]]]:
    """Column, value, number of queries, and how good every run is there on the measure that ranks the runs."""
    table = comparison.score_tables[0]
    first = table.columns[0]
    sign = -1.0 if first.better == "less" else 1.0
    for cut in comparison.slices:
        yield cut.column, cut.value, cut.queries, {run: sign * scores[first.key] for run, scores in cut.means.items()}
    if comparison.slices:
        return
    values: Floats = table.compared(first.key)
    for name, column in columns.items():
        labels = np.array(slice_labels(table.queries, column), dtype=object)
        for value in sorted(set(labels.tolist())):
            inside = labels == value
            means = {run: sign * first.mean(row[inside]) for run, row in zip(table.runs, values, strict=True)}
            yield name, value, int(inside.sum()), means


def _judge(comparison: ComparisonData, rows: list[LeaderboardRow]) -> NextStep | None:
    """The unjudged documents that an undecided difference depends on, or that the first two runs differ in."""
    first, runs = (comparison.keys[0], rows[0].k), {row.run for row in rows}
    pairs = [pair for pair in comparison.tested_pairs if (pair.measure, pair.k) == first and pair.names <= runs]
    undecided = [pair for pair in pairs if pair.verdict == "undecided" and pair.unjudged]
    if undecided:
        run, other = undecided[0].run, undecided[0].baseline
    elif len(rows) > 1 and rows[1].run in comparison.verdict.tied:
        run, other = rows[0].run, rows[1].run
    else:
        return None
    source, options, depth = comparison.source, comparison.options, low_cutoff(comparison)
    if source is None or source.chunked or options is None:
        return None
    ids = ("query_id", "doc_id")
    both = (ranked_rows(source.run(name), options.ordering) for name in (run, other))
    tops = [ranked.filter(pl.col("rank") <= depth).select(ids).unique() for ranked in both]
    judged = source.qrels.frame.select(ids).unique()
    once = pl.concat(tops).group_by(ids).len().filter(pl.col("len") == 1)
    count = once.join(judged, on="query_id", how="semi").join(judged, on=ids, how="anti").height
    if not count:
        return None
    values = {"run": run, "other": other, "count": count, "most": BUDGET, "depth": depth}
    return NextStep(
        note("step-judge", **values, undecided=bool(undecided), command=comparison.judge_command),
        {"run": run, "against": other, "pool": str(min(count, BUDGET))},
    )


def _more_queries(comparison: ComparisonData, rows: list[LeaderboardRow]) -> NextStep | None:
    """How many queries the first two runs would need."""
    pair = comparison.leading_pair if len(rows) > 1 else None
    if pair is None or pair.verdict != "not significant" or pair.needed is None:
        return None
    if not pair.queries < pair.needed <= MOST_TIMES * pair.queries:
        return None
    rounded = float(f"{pair.needed:.2g}")
    about = rounded if rounded > pair.queries else pair.needed
    values = {"run": pair.run, "other": pair.baseline, "queries": pair.queries, "needed": pair.needed, "about": about}
    return NextStep(note("step-more-queries", **values, difference=abs(pair.difference)))


def _all_miss(comparison: ComparisonData) -> NextStep | None:
    """The queries with a relevant document on which every run scores 0."""
    table = comparison.score_tables[0]
    key = next((column.key for column in table.columns if column.better == "more" and column.measure), None)
    if key is None:
        return None
    missed = np.all(table.of(key) == 0, axis=0)
    if comparison.source is not None:
        a = next(iter(comparison.source.alignments.values()))
        counts = dict(zip(a.queries, a.judged_per_query(a.judged.grade > 0).tolist(), strict=True))
        missed &= np.array([counts.get(query, 0) > 0 for query in table.queries], dtype=bool)
    if not missed.any():
        return None
    view = {"filter": "nobody", "measure": label(key, table.k)}
    return NextStep(note("step-all-miss", count=int(missed.sum()), measure=key), view)
