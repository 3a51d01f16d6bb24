"""Comparison: the leaderboard, the pairs, what they mean, and how to write them down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.comparison.leaderboard import Standing, order_of, standings
from steelyard.comparison.movers import Lists, Moved, Mover, moved, movers
from steelyard.comparison.pairs import Pair, apart, disagreement, pairs_of, untested
from steelyard.comparison.scores import COMPOSITE, Board, label
from steelyard.comparison.slices import Slice, reversals, slices_of
from steelyard.comparison.tests import Plan
from steelyard.coverage import Coverage
from steelyard.errors import InputError, did_you_mean
from steelyard.notes import Note
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.scores import known_by, settings_of, versions
from steelyard.statistics import Stability, power_analysis, rank_stability
from steelyard.version import __version__
from steelyard.wording import SHOWN_NAMES, listed

if TYPE_CHECKING:
    import polars as pl

    from steelyard.datasets import Dataset


@dataclass(frozen=True)
class Source:
    """What a comparison was made from: kept to look at single queries and documents.

    `alignments` are the runs joined with the judgments; `held` the runs that were looked at before.
    Where runs are on chunkings of their own, each is joined with its chunking's judgments, `qrels`
    are those of all together, and `chunked` is set.
    """

    qrels: Qrels
    runs: Mapping[str, Any]
    alignments: Mapping[str, Alignment]
    chunked: bool = False
    held: dict[str, Run] = field(default_factory=dict)

    def run(self, name: str) -> Run:
        """A run, read the first time if it is still a file."""
        if name not in self.held:
            self.held[name] = Run.of(self.runs[name], name=name)
        return self.held[name]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What compare() gives. `standings` and `tested` are rows; `leaderboard` and `pairs` are frames of them.

    `notes` are those it was `given` and what was found while comparing. `failed` says of runs that a bench
    saw failing on how many queries they did, as in `2 of 6`.
    """

    boards: tuple[Board, ...]
    standings: tuple[Standing, ...]
    tested: tuple[Pair, ...]
    plan: Plan
    weights: dict[str, float] | None
    components: tuple[Board | None, ...]
    slices: tuple[Slice, ...]
    coverage: dict[str, Coverage]
    given: tuple[Note, ...]
    notes: tuple[Note, ...]
    dialect: str
    source: Source | None
    failed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        boards: Sequence[Board],
        plan: Plan,
        weights: dict[str, float] | None,
        components: Sequence[Board | None],
        sliced: tuple[str, Mapping[str, object]] | None,
        coverage: dict[str, Coverage],
        notes: tuple[Note, ...],
        dialect: str,
        source: Source | None,
    ) -> Comparison:
        """Rank, test and slice the boards."""
        orders = [order_of(board) for board in boards]
        cut = slices_of(boards[0], *sliced) if sliced is not None else []
        tested = pairs_of(boards, plan, orders)
        said = [
            *notes,
            *disagreement(tested, plan),
            *reversals(cut, boards[0].columns[0].key, len(boards[0].runs)),
            *untested(tested),
        ]
        rows = [
            row
            for board, order in zip(boards, orders, strict=True)
            for row in standings(board, order, plan, tested)
        ]
        return cls(
            boards=tuple(boards),
            standings=tuple(rows),
            tested=tuple(tested),
            plan=plan,
            weights=weights,
            components=tuple(components),
            slices=tuple(cut),
            coverage=coverage,
            given=notes,
            notes=tuple(said),
            dialect=dialect,
            source=source,
        )

    @property
    def policies(self) -> dict[str, Any] | None:
        """Every policy in force, with `rel` and `depth`; None for a table of values that another tool made."""
        return None if self.options is None else vars(self.options).copy()

    @property
    def settings(self) -> str:
        """What the measures' names do not say: the dialect, policies and levels that are not the default ones."""
        return "" if self.options is None else settings_of(self.dialect, self.options)

    @property
    def options(self) -> Options | None:
        """The options of the evaluation; None where values were given and nothing was evaluated."""
        return next((covered.policies for covered in self.coverage.values()), None)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs, in the order given."""
        return self.boards[0].runs

    @property
    def keys(self) -> list[str]:
        """The measures shown, as they were written; the composite first where there is one."""
        return [column.key for column in self.boards[0].columns]

    @cached_property
    def leaderboard(self) -> pl.DataFrame:
        """One row a run (and cutoff), best first: rank, run, k, values, intervals, rank interval, group."""
        import polars as pl

        rows = []
        for row in self.standings:
            intervals = {
                f"{key} {end}": None if pair is None else pair[place]
                for key, pair in row.intervals.items()
                for place, end in enumerate(("low", "high"))
            }
            made = {"rank": row.rank, "run": row.run, "k": row.k, **row.means}
            if self.failed:
                made["failed"] = self.failed.get(row.run, "")
            rows.append(
                {
                    **made,
                    "group": row.group,
                    "rank_low": row.rank_low,
                    "rank_high": row.rank_high,
                    **intervals,
                }
            )
        frame = pl.DataFrame(rows, infer_schema_length=None)
        return frame if frame["k"].null_count() < frame.height else frame.drop("k")

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """One row a pair of runs and measure: difference, p, stars, interval, effect, wins, ties, losses, power."""
        import polars as pl

        names = list(Pair.__dataclass_fields__)
        return pl.DataFrame(
            [[getattr(pair, name) for name in names] for pair in self.tested],
            schema=_PAIR_SCHEMA,
            orient="row",
        )

    @cached_property
    def slice_table(self) -> pl.DataFrame:
        """One row a slice, run and measure: column, value, queries, run, measure, mean."""
        import polars as pl

        rows = [
            (cut.column, cut.value, cut.queries, run, key, mean)
            for cut in self.slices
            for run, means in cut.means.items()
            for key, mean in means.items()
        ]
        schema = {"column": str, "value": str, "queries": int, "run": str, "measure": str, "mean": float}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def verdict(self) -> Verdict:
        """Which run leads, on what, by how much, and whether that is significant; one sentence or two."""
        return verdict_of(self)

    def stability(self, draws: int = 10_000) -> Stability | None:
        """How often the order changes when the composite's weights are drawn around the given ones."""
        board = self.components[0]
        if board is None or self.weights is None:
            return None
        inverted = [column.better == "less" for column in board.columns]
        return rank_stability(
            board.means(), list(self.weights.values()), inverted, draws=draws, seed=self.plan.seed
        )

    def movers(
        self, run: str, baseline: str | None = None, measure: str | None = None, most: int = 10
    ) -> list[Mover]:
        """The queries that moved most between two runs, with the judged documents that moved."""
        base = baseline or self.plan.baseline
        if base is None:
            raise InputError("name the run to compare with: movers(run, baseline).")
        for name in (run, base):
            if name not in self.runs:
                raise InputError(
                    f"there is no run {name!r}; there are {', '.join(self.runs)}.{did_you_mean(name, self.runs)}"
                )
        board = self.boards[0]
        places = board.runs.index(run), board.runs.index(base)
        return movers(board, measure or board.columns[0].key, *places, self.lists(run, base), most)

    def moved(self, most: int = 10) -> list[Moved]:
        """For every run the queries it lost and won most against the baseline; without one, the last run."""
        return moved(self, most)

    def lists(self, run: str, baseline: str) -> Lists | None:
        """The ranked lists of two runs; None where they are not known, or are of different chunks."""
        if self.source is None or self.source.chunked:
            return None
        ordering = self.coverage[run].policies.ordering
        return Lists(self.source.run(run), self.source.run(baseline), ordering, self.source.qrels)

    def to_dict(self, movers: int = 0) -> dict[str, Any]:
        """As in the JSON of `compare`; with so many `movers` of every run, the queries lost and won most."""
        made: dict[str, Any] = {
            "steelyard": __version__,
            "dialect": self.dialect,
            "baseline": self.plan.baseline,
            "test": self.plan.test,
            "correction": self.plan.corrected_by,
            "alpha": self.plan.alpha,
            "permutations": self.plan.permutations,
            "seed": self.plan.seed,
            "versions": versions(),
            "policies": self.policies,
            "measures": {
                label(column.key, board.k): column.measure.spelled
                for board in self.boards
                for column in board.columns
                if column.measure is not None
            },
            "inputs": self._inputs(),
            "verdict": self.verdict,
            "weights": self.weights,
            "leaderboard": [row.to_dict() for row in self.standings],
            "pairs": [pair.to_dict() for pair in self.tested],
            "coverage": {name: covered.counts() for name, covered in self.coverage.items()},
            "notes": [found.to_dict() for found in self.notes],
        }
        if self.failed:
            made["failed"] = dict(self.failed)
        if self.slices:
            made["slices"] = [cut.to_dict() for cut in self.slices]
        if movers:
            made["movers"] = [each.to_dict() for each in self.moved(movers)]
        return made

    def _inputs(self) -> dict[str, Any]:
        """What the judgments and each run can be told by, where that is cheap to have."""
        if self.source is None:
            return {}
        known = {name: known_by(run) for name, run in self.source.runs.items()}
        runs = {name: each for name, each in known.items() if each is not None}
        judged = known_by(self.source.qrels)
        return {**({"judgments": judged} if judged else {}), **({"runs": runs} if runs else {})}

    def to_json(self, movers: int = 0) -> str:
        """The JSON of `compare`; p-values are unrounded."""
        return json.dumps(self.to_dict(movers), indent=1, ensure_ascii=False)

    def to_text(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """The verdict, the tables and the notes as plain text; `movers` and `texts` as in `to_markdown`."""
        from steelyard.report.comparison import comparison_text

        return comparison_text(self, movers, texts)

    def to_markdown(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """The leaderboard with its composite explained, the pairs, the slices and the notes.

        With `movers`, so many queries that every run lost and won most, with their `texts` by id.
        """
        from steelyard.report.comparison import comparison_markdown

        return comparison_markdown(self, movers, texts)

    def to_latex(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """Booktabs tables: the means with stars, the pairs, the slices and the `movers`; the notes as comments."""
        from steelyard.report.comparison import comparison_latex

        return comparison_latex(self, movers, texts)

    def to_csv(self) -> str:
        """One row a run (and cutoff): `leaderboard`, the differences from the baseline, and the slices' means."""
        from steelyard.report.comparison import comparison_csv

        return comparison_csv(self)

    def to_html(
        self, path: str | Path | None = None, dataset: Dataset | None = None, *, everything: bool = False
    ) -> str:
        """The tables as an HTML fragment; with a path, the report page is written there.

        The page shows the texts of the `dataset`, where it is given, and ids where it is not. It
        keeps within 15 MB and says what it leaves out; `everything` lifts that.
        """
        from steelyard.report.comparison import comparison_html

        if path is not None:
            from steelyard.report.page import write_page
            from steelyard.report.page.subject import comparison_subject

            write_page(comparison_subject(self, dataset), path, everything=everything)
        return comparison_html(self)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


_PAIR_SCHEMA: dict[str, Any] = {
    "run": str,
    "baseline": str,
    "measure": str,
    "k": int,
    "difference": float,
    "relative": float,
    "p": float,
    "p_adjusted": float,
    "stars": str,
    "low": float,
    "high": float,
    "effect": float,
    "wins": int,
    "ties": int,
    "losses": int,
    "queries": int,
    "smallest": float,
    "needed": int,
    "sentence": str,
    "reason": str,
    "verdict": str,
}


class Verdict(str):
    """The verdict of a comparison: which run leads, on what, by how much, and whether that is significant.

    `headline` is the first sentence, `tied` the runs that are tied with the leader, the leader first.
    """

    headline: str
    tied: tuple[str, ...]

    def __new__(cls, headline: str, detail: str = "", tied: Sequence[str] = ()) -> Verdict:
        made = super().__new__(cls, f"{headline} {detail}".rstrip())
        made.headline, made.tied = headline, tuple(tied)
        return made

    @property
    def detail(self) -> str:
        """What follows the first sentence."""
        return self[len(self.headline) :].lstrip()


def verdict_of(comparison: Comparison) -> Verdict:
    """The verdict on the first measure; where several cutoffs were compared, at the first of them."""
    board = comparison.boards[0]
    rows = [row for row in comparison.standings if row.k == board.k]
    column = board.columns[0]
    what = label("the composite score" if column.key == COMPOSITE else column.key, board.k)
    top = rows[0]
    score = f"{top.means[column.key]:.4f}"
    if len(rows) == 1:
        return Verdict(f"{top.run} scores {score} on {what}; no other run to compare with.", "", [top.run])
    values = board.of(column.key)
    place = {run: number for number, run in enumerate(board.runs)}
    mine = values[place[top.run]]
    equal = [row.run for row in rows if np.array_equal(values[place[row.run]], mine, equal_nan=True)]
    rest = [row for row in rows if row.run not in equal]
    if not rest:
        both = "both score" if len(equal) == 2 else "all score"
        return Verdict(f"{listed(equal)} {both} {score} on {what}: no difference on any query.", "", equal)
    second = rest[0]
    lead = abs(top.means[column.key] - second.means[column.key])
    p_values = apart(board, comparison.plan, comparison.tested)[place[top.run]]
    alpha = comparison.plan.alpha
    tied = [row.run for row in rest if not p_values[place[row.run]] < alpha]
    headline = f"{top.run} leads {second.run} on {what} by {lead:.4f} ({score})"
    if len(equal) > 1:
        headline = f"{listed(equal)} (no difference on any query) lead {second.run} on {what} by {lead:.4f} ({score})"
    if not tied:
        others = "" if len(rest) == 1 else ", and so are its differences from every other run"
        return Verdict(f"{headline}: the difference is significant{others}.", "", equal)
    if p_values[place[second.run]] < alpha:
        outcome = "the difference is significant"
    else:
        power = power_analysis(mine - values[place[second.run]], alpha=alpha, separated=False)
        outcome = power.sentence.rstrip(".")
    return Verdict(
        f"{headline}: {outcome}.", f"Tied for first: {listed([*equal, *tied], SHOWN_NAMES)}.", [*equal, *tied]
    )
