"""Comparison: the result of compare(), with the leaderboard, the pairs, the verdict and every output format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from steelyard.alignment.scans import ScannedRun
from steelyard.comparison.columns import board_rows
from steelyard.comparison.data import Claims, ComparedRuns, ComparisonData, EvaluatedRuns, judged_documents
from steelyard.comparison.judged import judged_notes, parts_of
from steelyard.comparison.leaderboard import leaderboard_rows, order_of
from steelyard.comparison.pairs import (
    Pair,
    PairTest,
    assumption_notes,
    disagreement_notes,
    overlap_notes,
    tested_pairs,
    untested_notes,
)
from steelyard.comparison.scores import ScoreTable, label, shared_query_notes
from steelyard.comparison.slices import reversal_notes, slices_of
from steelyard.comparison.testing import ComparisonPlan
from steelyard.evaluation import measure_values
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure, with_rel
from steelyard.notes import Note, note
from steelyard.options import Options
from steelyard.report.documents import Document, Documented, document_html
from steelyard.report.tables import Table
from steelyard.scores import known_by, versions
from steelyard.version import __version__

if TYPE_CHECKING:
    from altair import LayerChart

    from steelyard.comparison.predicted import Predictions
    from steelyard.datasets import Dataset


class Comparison(Documented, ComparisonData):
    """The result of compare(), with its frames and output formats.

    `leaderboard` is a frame of `leaderboard_rows`, `pairs` one of `tested_pairs`.
    """

    @classmethod
    def of(
        cls,
        runs: EvaluatedRuns,
        plan: ComparisonPlan,
        sliced: tuple[str, Mapping[str, object]] | None,
        notes: tuple[Note, ...] = (),
        predictions: Predictions | None = None,
    ) -> Comparison:
        """Rank, test and slice the values. `sliced` is a column's name and its value for every query."""
        score_tables, source = runs.tables, runs.source
        first, notes = score_tables[0], (*notes, *runs.notes)
        about_queries = shared_query_notes(score_tables)
        orders = [order_of(table) for table in score_tables] if predictions is None else predictions.orders()
        judged = judged_documents(runs, plan)
        parts = {
            (column.key, table.k): parts_of(column, inside, runs.weights)
            for table, inside in zip(score_tables, runs.components, strict=True)
            for column in table.columns
        }
        claims = Claims(score_tables, orders, plan, judged, parts, predictions, runs.rules)
        pairs = claims.asked
        rows = [
            leaderboard_rows(table, order, plan, claims.every(table.columns[0].key, table.k))
            for table, order in zip(score_tables, orders, strict=True)
        ]
        if predictions is not None:
            rows = [predictions.rows(number, table_rows) for number, table_rows in enumerate(rows)]
        scaled = predictions is None and runs.dialect == "steelyard"
        options = next((covered.policies for covered in runs.coverage.values()), None)
        geometric = [label(col.key, table.k) for table in score_tables for col in table.columns if col.geometric]
        slices = slices_of(first, *sliced) if sliced is not None else []
        scanned = any(isinstance(run, ScannedRun) for run in source.runs.values())  # Without documents to show.
        return cls(
            score_tables=score_tables,
            leaderboard_rows=tuple(chain.from_iterable(rows)),
            tested_pairs=tuple(pairs),
            claims=claims,
            plan=plan,
            weights=runs.weights,
            components=runs.components,
            slices=tuple(slices),
            coverage=runs.coverage,
            input_notes=notes,
            notes=(
                *notes,
                *(() if predictions is None else predictions.notes(judged, parts)),
                *about_queries,
                *([note("geometric-means-tested", measures=geometric)] if geometric and pairs else []),
                *overlap_notes(pairs),
                *disagreement_notes(pairs, plan),
                *assumption_notes(pairs, plan),
                *reversal_notes(slices, first.columns[0].key, len(first.runs)),
                *untested_notes(pairs),
                *([] if judged is None else judged_notes(pairs, judged)),
                *(_scale_notes(source, first, pairs, plan, options) if scaled else []),
            ),
            dialect=runs.dialect,
            source=None if scanned or not source.runs else source,
            unmeasured=runs.unmeasured,
            predicted_by="" if predictions is None else predictions.judge,
        )

    @cached_property
    def leaderboard(self) -> pl.DataFrame:
        """One row per run (and cutoff), best first: rank, run, k, values, intervals, rank interval, group.

        A run that was not measured is last and has no rank.
        """
        return pl.DataFrame(board_rows(self, "frame"), infer_schema_length=None)

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """One row per pair of runs and measure: difference, p, stars, interval, effect, wins, ties, losses, power."""
        types: dict[str, Any] = {"str": str, "float": float, "int": int}
        schema = {field.name: types[str(field.type).removesuffix(" | None")] for field in fields(Pair)}
        rows = [[getattr(pair, name) for name in schema] for pair in self.tested_pairs]
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def slice_table(self) -> pl.DataFrame:
        """One row per slice, run and measure: column, value, queries, run, measure, mean."""
        rows = [
            (cut.column, cut.value, cut.queries, run, key, mean)
            for cut in self.slices
            for run, means in cut.means.items()
            for key, mean in means.items()
        ]
        schema = {"column": str, "value": str, "queries": int, "run": str, "measure": str, "mean": float}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_dict(self, movers: int = 0) -> dict[str, Any]:
        """As in the JSON of `compare`; with `movers`, that many of the queries that every run lost and won by most."""
        only_some = {
            "failed": dict(self.failed),
            "predicted_by": self.predicted_by,
            "cached_times": list(self.cached_times),
            "not_measured": dict(self.unmeasured),
            "slices": [cut.to_dict() for cut in self.slices],
            "movers": [asdict(mover) for mover in self.movers_by_run(movers)] if movers else [],
        }
        return {
            "steelyard": __version__,
            "dialect": self.dialect,
            "baseline": self.plan.baseline,
            "test": self.plan.test,
            "correction": self.plan.corrected_by,
            "alpha": self.plan.alpha,
            "permutations": self.plan.permutations_used,
            "seed": self.plan.seed,
            "equivalence": self.plan.equivalence,
            "interval": self.interval_heading,
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
            "leaderboard": board_rows(self, "json"),
            "pairs": [pair.to_dict() for pair in self.tested_pairs],
            "coverage": {name: covered.counts() for name, covered in self.coverage.items()},
            "notes": [note.to_dict() for note in self.notes],
            **{name: value for name, value in only_some.items() if value},
        }

    def _inputs(self) -> dict[str, Any]:
        """What identifies the qrels and each run, where that is cheap to compute."""
        if self.source is None:
            return {}
        runs = {name: known for name, run in self.source.runs.items() if (known := known_by(run)) is not None}
        inputs = {"judgments": known_by(self.source.qrels), "runs": runs}
        return {name: value for name, value in inputs.items() if value}

    def to_json(self, movers: int = 0) -> str:
        """The JSON of `compare`; p-values are unrounded."""
        return json.dumps(self.to_dict(movers), indent=1, ensure_ascii=False)

    def summary(self, width: int = 80) -> str:
        """The comparison in short, as the command line prints it: the verdict, one table and warnings."""
        return cast(str, looked_up("steelyard.report.summary:summary_text")(self, width))

    def to_text(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """The verdict, the tables and the notes as plain text; `movers` and `texts` as in `to_markdown`."""
        return cast(str, looked_up("steelyard.report.comparison:comparison_text")(self, movers, texts))

    def to_markdown(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """The leaderboard with its composite explained, the pairs, the slices and the notes.

        With `movers`, that many of the queries that every run lost and won by most, with their `texts` by id.
        """
        return cast(str, looked_up("steelyard.report.comparison:comparison_markdown")(self, movers, texts))

    def to_latex(self, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
        """Booktabs tables: the means with stars, the pairs, the slices and the `movers`; the notes as comments."""
        return cast(str, looked_up("steelyard.report.comparison:comparison_latex")(self, movers, texts))

    def document(self) -> Document:
        """The verdict, every table and the remarks, as notebooks show them."""
        return cast(Document, looked_up("steelyard.report.comparison:comparison_document")(self))

    def data_table(self) -> Table:
        """One row per run (and cutoff): `leaderboard`, the differences from the baseline, and the slices' means."""
        return cast(Table, looked_up("steelyard.report.comparison:comparison_values")(self))

    def to_html(
        self, path: str | Path | None = None, dataset: Dataset | None = None, *, everything: bool = False
    ) -> str:
        """The tables as an HTML fragment; with a path, the report page is written there.

        The page shows the texts of the `dataset`, or ids without one. It has at most 15 MB and states what it
        leaves out; with `everything` it leaves nothing out.
        """
        if path is not None:
            subject = looked_up("steelyard.report.page.subject:comparison_subject")(self, dataset)
            looked_up("steelyard.report.page.page:write_page")(subject, path, everything=everything)
        return document_html(self.document())

    def plot(self, measure: str | Measure | None = None) -> LayerChart:
        """Every run's mean with its interval, best first, as an altair chart, which notebooks show.

        measure: one of the leaderboard, as `nDCG@10`; default the one that ranks the runs. Needs the extra `report`.
        """
        return cast("LayerChart", looked_up("steelyard.report.charts.plots:comparison_plot")(self, measure))


STRICTER = 2.0  # The lowest relevant grade of TREC's Deep Learning tracks, in which grade 1 is 'related'.


def _scale_notes(
    source: ComparedRuns, table: ScoreTable, pairs: Sequence[Pair], plan: ComparisonPlan, options: Options | None
) -> list[Note]:
    """A note on the pairs of the first measure whose verdict would be another one with rel=2, unless rel is known."""
    column = table.columns[0]
    if source.chunked or options is None or options.rel is not None or column.measure is None:
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
        by_query = dict(zip(lists.queries, measure_values(stricter, lists, options).tolist(), strict=True))
        measured = ~np.isnan(table.of(column.key)[number])
        values[number, 0] = np.where(measured, [by_query.get(query, np.nan) for query in table.queries], np.nan)
    other = replace(table, columns=(replace(column, measure=stricter),), values=values)
    tests = [PairTest(other, other.columns[0], *map(table.runs.index, (pair.run, pair.baseline))) for pair in asked]
    same = {"equal", "not significant"}
    changed = [
        (now, then)
        for now, then in zip(asked, tested_pairs(tests, plan), strict=True)
        if now.verdict not in ("undecided", then.verdict) and not {now.verdict, then.verdict} <= same
    ]
    if not changed:
        return []
    now, then = changed[0]
    highest, after = float(grades.max()), {"then": then.verdict, "difference": then.difference}
    return [note("relevance-level-decides", pairs=len(changed), highest=highest, **after, **now.named, now=now.verdict)]
