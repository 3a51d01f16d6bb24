"""Comparison: the result of compare(), with the leaderboard, the pairs, the verdict and every output format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.alignment.alignment import Alignment
from steelyard.checks import unknown_name
from steelyard.comparison.judged import (
    JudgedDocuments,
    RowJudged,
    judged_notes,
    judged_rows,
    parts_of,
    with_conventions,
)
from steelyard.comparison.leaderboard import (
    LeaderboardRow,
    Verdict,
    leaderboard_rows,
    order_of,
    unmeasured_row,
    verdict_of,
)
from steelyard.comparison.movers import Mover, RankedLists, RunMovers, movers, movers_by_run
from steelyard.comparison.pairs import Pair, disagreement_notes, every_pair, pairs_of, untested_notes
from steelyard.comparison.scores import ScoreTable, label, shared_query_notes
from steelyard.comparison.slices import Slice, reversal_notes, slices_of
from steelyard.comparison.testing import ComparisonPlan
from steelyard.coverage import Coverage
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.notes import Note, note
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.scores import known_by, settings_of, versions
from steelyard.statistics import Stability, rank_stability
from steelyard.version import __version__

if TYPE_CHECKING:
    import polars as pl
    from altair import LayerChart

    from steelyard.comparison.predicted import Predictions
    from steelyard.datasets import Dataset


CACHED = "cached"
"""What marks times that are from the cache of a bench."""


@dataclass(frozen=True)
class Source:
    """The inputs of a comparison, kept to show single queries and documents.

    `alignments` are the runs joined with the qrels. Where runs have different chunkings, `chunked` is set, each run
    is joined with the qrels of its chunking, and `qrels` are those of all chunkings together.
    """

    qrels: Qrels
    runs: Mapping[str, Any]
    alignments: Mapping[str, Alignment]
    chunked: bool = False
    _read: dict[str, Run] = field(default_factory=dict, repr=False)

    def run(self, name: str) -> Run:
        """A run; one that is a file is read the first time."""
        if name not in self._read:
            self._read[name] = Run.of(self.runs[name], name=name)
        return self._read[name]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of compare(). `leaderboard` is a frame of `leaderboard_rows`, `pairs` one of `tested_pairs`.

    There is one score table per cutoff, with the composite as its first measure where there are `weights`;
    `components` are the measures of the composite. `notes` are the `input_notes` and those of the comparison itself.
    `failed` gives, for runs that failed on some queries of a bench, on how many, as in `2 of 6`. `unmeasured` gives
    the runs whose values mean nothing, with the reason: they are shown, and neither ranked nor tested. `cached` are
    the runs whose answers and times are from the cache of a bench.
    """

    score_tables: tuple[ScoreTable, ...]
    leaderboard_rows: tuple[LeaderboardRow, ...]
    tested_pairs: tuple[Pair, ...]
    plan: ComparisonPlan
    weights: dict[str, float] | None
    components: tuple[ScoreTable | None, ...]
    slices: tuple[Slice, ...]
    coverage: dict[str, Coverage]
    input_notes: tuple[Note, ...]
    notes: tuple[Note, ...]
    dialect: str
    source: Source | None
    failed: Mapping[str, str] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    predicted_by: str = ""
    cached: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        score_tables: Sequence[ScoreTable],
        plan: ComparisonPlan,
        weights: dict[str, float] | None,
        components: Sequence[ScoreTable | None],
        sliced: tuple[str, Mapping[str, object]] | None,
        coverage: dict[str, Coverage],
        notes: tuple[Note, ...],
        dialect: str,
        source: Source | None,
        unmeasured: Mapping[str, str] | None = None,
        predictions: Predictions | None = None,
    ) -> Comparison:
        """Rank, test and slice the values. `sliced` is a column's name and its value for every query.

        With `predictions`, the tables have the human-judged queries, and ranks and tests are corrected.
        """
        first = score_tables[0]
        about_queries = shared_query_notes(score_tables)
        orders = [order_of(table) for table in score_tables] if predictions is None else predictions.orders()
        pairs = pairs_of(score_tables, plan, orders)
        judged = _judged_documents(source, coverage, plan)
        if judged is not None:
            parts = {
                (column.key, table.k): parts_of(column, inside, weights)
                for table, inside in zip(score_tables, components, strict=True)
                for column in table.columns
            }
            leader = first.runs[orders[0][0]]
            pairs = with_conventions(pairs, parts, score_tables, plan, judged, leader)
        if predictions is not None:
            pairs = predictions.pairs(pairs, plan, () if judged is None else judged.edges)
        rows = [
            leaderboard_rows(table, order, plan, pairs)
            for table, order in zip(score_tables, orders, strict=True)
        ]
        if predictions is not None:
            rows = [predictions.rows(number, each, plan, pairs) for number, each in enumerate(rows)]
        slices = slices_of(first, *sliced) if sliced is not None else []
        return cls(
            score_tables=tuple(score_tables),
            leaderboard_rows=tuple(chain.from_iterable(rows)),
            tested_pairs=tuple(pairs),
            plan=plan,
            weights=weights,
            components=tuple(components),
            slices=tuple(slices),
            coverage=coverage,
            input_notes=notes,
            notes=(
                *notes,
                *(() if predictions is None else predictions.notes()),
                *about_queries,
                *_geometric_notes(score_tables, pairs),
                *disagreement_notes(pairs, plan),
                *reversal_notes(slices, first.columns[0].key, len(first.runs)),
                *untested_notes(pairs),
                *([] if judged is None else judged_notes(pairs, judged)),
            ),
            dialect=dialect,
            source=source,
            unmeasured=unmeasured or {},
            predicted_by="" if predictions is None else predictions.judge,
        )

    @property
    def policies(self) -> dict[str, Any] | None:
        """Every policy in force, with `rel` and `depth`; None for a table of values of another tool."""
        return None if self.options is None else vars(self.options).copy()

    @property
    def settings(self) -> str:
        """The dialect and the options that are not the defaults: what the names of the measures do not state."""
        return "" if self.options is None else settings_of(self.dialect, self.options)

    @property
    def tested_by(self) -> str:
        """The test of the pairs."""
        return "prediction-powered t test" if self.predicted_by else f"paired {self.plan.test} test by query"

    @property
    def intervals_by(self) -> str:
        """The kind of the intervals of the pairs."""
        return "prediction-powered" if self.predicted_by else "bootstrap"

    @property
    def options(self) -> Options | None:
        """The options of the evaluation; None for a table of values of another tool."""
        return next((covered.policies for covered in self.coverage.values()), None)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that were measured, in the order given."""
        return self.score_tables[0].runs

    @property
    def cached_times(self) -> tuple[str, ...]:
        """The runs whose times are from the cache, if times are shown."""
        timed = any(column.timed for column in self.score_tables[0].columns)
        return self.cached if timed else ()

    @property
    def shown_rows(self) -> list[LeaderboardRow]:
        """The rows of the leaderboard; at every cutoff, those of the runs that were not measured come last."""
        return [
            row
            for table in self.score_tables
            for row in (
                *(row for row in self.leaderboard_rows if row.k == table.k),
                *(unmeasured_row(run, table) for run in self.unmeasured),
            )
        ]

    @property
    def keys(self) -> list[str]:
        """The measures shown, as they were written; the composite first where there is one."""
        return [column.key for column in self.score_tables[0].columns]

    @cached_property
    def judged(self) -> dict[tuple[str, int | None], RowJudged]:
        """The judged shares and bounds of every row, by run and cutoff.

        Empty where they say nothing: all documents above the cutoffs are judged, or the qrels have relevant documents
        only, or the lists are not known, or the values are estimates.
        """
        known = None if self.predicted_by else _judged_documents(self.source, self.coverage, self.plan)
        if known is None:
            return {}
        return judged_rows(self.score_tables, self.components, self.weights, known)

    @cached_property
    def leaderboard(self) -> pl.DataFrame:
        """One row per run (and cutoff), best first: rank, run, k, values, intervals, rank interval, group.

        A run that was not measured is last and has no rank.
        """
        import polars as pl

        rows = []
        for row in self.shown_rows:
            intervals = {
                f"{key} {end}": None if pair is None else pair[place]
                for key, pair in row.intervals.items()
                for place, end in enumerate(("low", "high"))
            }
            failed = {"failed": self.failed.get(row.run, "")} if self.failed else {}
            judge = {"predicted_by": self.predicted_by} if self.predicted_by else {}
            times = {"times": CACHED if row.run in self.cached_times else ""} if self.cached_times else {}
            reason = {"not_measured": self.unmeasured.get(row.run, "")} if self.unmeasured else {}
            group = {"group": row.group, "rank_low": row.rank_low, "rank_high": row.rank_high}
            named = {"rank": row.rank, "run": row.run, "k": row.k}
            means = row.means if row.rank is not None else dict.fromkeys(row.means)
            rows.append(
                {
                    **named,
                    **means,
                    **self._judged_columns(row),
                    **times,
                    **failed,
                    **reason,
                    **judge,
                    **group,
                    **intervals,
                }
            )
        frame = pl.DataFrame(rows, infer_schema_length=None)
        return frame if frame["k"].null_count() < frame.height else frame.drop("k")

    def _judged_columns(self, row: LeaderboardRow) -> dict[str, float | None]:
        """The judged share of every measure, and the bounds of the measure that ranks the runs."""
        if not self.judged:
            return {}
        judged = self.judged.get((row.run, row.k), RowJudged())
        ends = judged.bounds or (None, None)
        first = self.keys[0]
        known = dict.fromkeys(key for each in self.judged.values() for key in each.shares)
        return {
            **{f"{key} judged": judged.shares.get(key) for key in known},
            f"{first} lowest": ends[0],
            f"{first} highest": ends[1],
        }

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """One row per pair of runs and measure: difference, p, stars, interval, effect, wins, ties, losses, power."""
        import polars as pl

        types: dict[str, Any] = {
            "str": str,
            "float": float,
            "int": int,
            "int | None": int,
            "float | None": float,
        }
        schema = {each.name: types[str(each.type)] for each in fields(Pair)}
        rows = [[getattr(pair, name) for name in schema] for pair in self.tested_pairs]
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def slice_table(self) -> pl.DataFrame:
        """One row per slice, run and measure: column, value, queries, run, measure, mean."""
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
        """Which run leads on the first measure, by how much, and whether that is significant; one sentence or two.

        Where several cutoffs are compared, at the first of them.
        """
        table = self.score_tables[0]
        rows = [row for row in self.leaderboard_rows if row.k == table.k]
        return verdict_of(
            table, rows, self.plan, self.tested_pairs, bool(self.predicted_by), list(self.unmeasured)
        )

    @cached_property
    def every_pair(self) -> list[Pair]:
        """Every two runs on the measure that ranks them, at the first cutoff, the higher-ranked first.

        Also those that were not asked for, as in the groups; but not where values are predicted.
        """
        table = self.score_tables[0]
        if self.predicted_by:
            return [pair for pair in self.tested_pairs if (pair.measure, pair.k) == (self.keys[0], table.k)]
        order = [table.runs.index(row.run) for row in self.leaderboard_rows if row.k == table.k]
        return every_pair(table, self.plan, self.tested_pairs, order)

    @property
    def leading_pair(self) -> Pair | None:
        """The leader and the first run that differs from it, which the verdict is about; None where there is none."""
        top = self.leaderboard_rows[0].run
        pairs = [pair for pair in self.every_pair if top in (pair.run, pair.baseline)]
        return next((pair for pair in pairs if pair.verdict != "equal"), None)

    def stability(self, draws: int = 10_000) -> Stability | None:
        """How often the order changes when the composite's weights are drawn around the given ones."""
        table = self.components[0]
        if table is None or self.weights is None:
            return None
        inverted = [column.better == "less" for column in table.columns]
        return rank_stability(
            table.means(), list(self.weights.values()), inverted, draws=draws, seed=self.plan.seed
        )

    def movers(
        self, run: str, baseline: str | None = None, measure: str | None = None, most: int = 10
    ) -> list[Mover]:
        """The queries that changed most between two runs, with the judged documents that changed rank."""
        base = baseline or self.plan.baseline
        if base is None:
            raise InputError("name the run to compare with: movers(run, baseline).")
        for name in (run, base):
            if name not in self.runs:
                raise InputError(
                    f"unknown run {name!r}; expected one of {', '.join(self.runs)}.{did_you_mean(name, self.runs)}"
                )
        table = self.score_tables[0]
        places = table.runs.index(run), table.runs.index(base)
        return movers(table, measure or table.columns[0].key, *places, self.lists(run, base), most)

    def movers_by_run(self, most: int = 10) -> list[RunMovers]:
        """For every run the queries that it lost and won by most vs the baseline; without one, vs the last run."""
        base = self.plan.baseline or self.leaderboard_rows[-1].run
        return movers_by_run(self.score_tables[0], base, lambda run: self.lists(run, base), most)

    def lists(self, run: str, baseline: str) -> RankedLists | None:
        """The ranked lists of two runs; None where they are unknown, or of different chunkings."""
        if self.source is None or self.source.chunked:
            return None
        ordering = self.coverage[run].policies.ordering
        return RankedLists(self.source.run(run), self.source.run(baseline), ordering, self.source.qrels)

    def to_dict(self, movers: int = 0) -> dict[str, Any]:
        """As in the JSON of `compare`; with `movers`, that many of the queries that every run lost and won by most."""
        data: dict[str, Any] = {
            "steelyard": __version__,
            "dialect": self.dialect,
            "baseline": self.plan.baseline,
            "test": self.plan.test,
            "correction": self.plan.corrected_by,
            "alpha": self.plan.alpha,
            "permutations": self.plan.permutations,
            "seed": self.plan.seed,
            "equivalence": self.plan.equivalence,
            "versions": versions(),
            "policies": self.policies,
            "measures": {
                label(column.key, table.k): column.measure.spelled
                for table in self.score_tables
                for column in table.columns
                if column.measure is not None
            },
            "inputs": self._inputs(),
            "verdict": self.verdict,
            "weights": self.weights,
            "leaderboard": [{**row.to_dict(), **self._judged_json(row)} for row in self.shown_rows],
            "pairs": [pair.to_dict() for pair in self.tested_pairs],
            "coverage": {name: covered.counts() for name, covered in self.coverage.items()},
            "notes": [each.to_dict() for each in self.notes],
        }
        if self.failed:
            data["failed"] = dict(self.failed)
        if self.predicted_by:
            data["predicted_by"] = self.predicted_by
        if self.cached_times:
            data["cached_times"] = list(self.cached_times)
        if self.unmeasured:
            data["not_measured"] = dict(self.unmeasured)
        if self.slices:
            data["slices"] = [cut.to_dict() for cut in self.slices]
        if movers:
            data["movers"] = [each.to_dict() for each in self.movers_by_run(movers)]
        return data

    def _judged_json(self, row: LeaderboardRow) -> dict[str, Any]:
        judged = self.judged.get((row.run, row.k))
        if judged is None:
            return {}
        bounds = None if judged.bounds is None else list(judged.bounds)
        return {"judged": dict(judged.shares), "bounds": {self.keys[0]: bounds}}

    def _inputs(self) -> dict[str, Any]:
        """What identifies the qrels and each run, where that is cheap to compute."""
        if self.source is None:
            return {}
        known = {name: known_by(run) for name, run in self.source.runs.items()}
        runs = {name: each for name, each in known.items() if each is not None}
        judged = known_by(self.source.qrels)
        return {**({"judgments": judged} if judged else {}), **({"runs": runs} if runs else {})}

    def to_json(self, movers: int = 0) -> str:
        """The JSON of `compare`; p-values are unrounded."""
        return json.dumps(self.to_dict(movers), indent=1, ensure_ascii=False)

    def summary(self, width: int = 80) -> str:
        """The comparison in short, as the command line prints it: the verdict, one table and warnings."""
        from steelyard.report.summary import summary_text

        return summary_text(self, width)

    def to_text(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """The verdict, the tables and the notes as plain text; `movers` and `texts` as in `to_markdown`."""
        from steelyard.report.comparison import comparison_text

        return comparison_text(self, movers, texts)

    def to_markdown(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """The leaderboard with its composite explained, the pairs, the slices and the notes.

        With `movers`, that many of the queries that every run lost and won by most, with their `texts` by id.
        """
        from steelyard.report.comparison import comparison_markdown

        return comparison_markdown(self, movers, texts)

    def to_latex(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """Booktabs tables: the means with stars, the pairs, the slices and the `movers`; the notes as comments."""
        from steelyard.report.comparison import comparison_latex

        return comparison_latex(self, movers, texts)

    def to_csv(self) -> str:
        """One row per run (and cutoff): `leaderboard`, the differences from the baseline, and the slices' means."""
        from steelyard.report.comparison import comparison_csv

        return comparison_csv(self)

    def to_html(
        self, path: str | Path | None = None, dataset: Dataset | None = None, *, everything: bool = False
    ) -> str:
        """The tables as an HTML fragment; with a path, the report page is written there.

        The page shows the texts of the `dataset`, or ids without one. It has at most 15 MB and states what it
        leaves out; with `everything` it leaves nothing out.
        """
        from steelyard.report.comparison import comparison_html

        if path is not None:
            from steelyard.report.page import write_page
            from steelyard.report.page.subject import comparison_subject

            write_page(comparison_subject(self, dataset), path, everything=everything)
        return comparison_html(self)

    def plot(self, measure: str | None = None) -> LayerChart:
        """Every run's mean with its interval, best first, as an altair chart, which notebooks show.

        measure: one of the leaderboard, as `nDCG@10`; default the one that ranks the runs. Needs the extra `report`.
        """
        from steelyard.report.charts.data import bar_rows
        from steelyard.report.charts.plots import means_plot

        rows = bar_rows(self)
        known = list(dict.fromkeys(row["measure"] for row in rows))
        chosen = known[0] if measure is None else measure
        if chosen not in known:
            raise MeasureError(unknown_name("measure", chosen, known))
        return means_plot([row for row in rows if row["measure"] == chosen], "run", chosen)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


def _geometric_notes(tables: Sequence[ScoreTable], pairs: Sequence[Pair]) -> list[Note]:
    """A note on how geometric means are tested."""
    measures = [
        label(column.key, table.k) for table in tables for column in table.columns if column.geometric
    ]
    return [note("geometric-means-tested", measures=measures)] if measures and pairs else []


def _judged_documents(
    source: Source | None, coverage: Mapping[str, Coverage], plan: ComparisonPlan
) -> JudgedDocuments | None:
    """What unjudged documents can change; None where lists or qrels are unknown, or each run has its own qrels."""
    if source is None or source.chunked or not coverage:
        return None
    options = next(iter(coverage.values())).policies
    return JudgedDocuments(source.qrels, source, dict(source.alignments), options, plan.seed)
