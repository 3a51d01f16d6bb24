"""The loss of a pipeline by stage, as `stages` returns it: tables, the verdict, the difference to another pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.slices import in_order, slice_labels
from steelyard.errors import InputError
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure
from steelyard.notes import Note
from steelyard.report.documents import Document, Documented, frame_table, plain_values
from steelyard.report.tables import Table
from steelyard.run import Run
from steelyard.statistics import adjust, mean_intervals, paired_tests
from steelyard.version import __version__

NEVER, BELOW, DELIVERED = "never retrieved", "below the cutoff", "delivered"
ORDERING = "ordering"  # What the last list loses because its documents are not in ideal order.
NOTHING = 1e-9  # A loss below this is rounding.


@dataclass(frozen=True, eq=False)
class StagesData:
    """The loss of a pipeline by stage. All arrays have one column per query of `queries`.

    steps: the stages in their order; first stages that run in parallel are one step, as in 'lexical + dense'.
    ceilings, values: one row per step; a step of parallel stages has no list of its own, and its values are NaN.
    target_fates: one row per target (without targets: per relevant document) with its query, its fate, and the best
    rank of its documents in each stage. moves: per step, relevant documents that entered and left the first k.
    added: per step, relevant documents that no stage before has. below_depth: per step, the lost targets that were
    ranked deeper than the list that it returned. own: per parallel stage, its ceiling and what the joint ceiling would
    lose without it. unit: 'target' or 'relevant document'. run: the run of a bench, if it is one; others: the other
    runs of that bench that have stages. lists: what its stages before the last one returned, and with a budget all of
    them. reads: what each stage read. calls: for stages with several calls per question, see `calls_table`.
    """

    measure: Measure
    steps: tuple[str, ...]
    queries: Sequence[str]
    best: Floats
    ceilings: Floats
    values: Floats
    fates: Mapping[str, int]
    target_fates: pl.DataFrame
    moves: Sequence[tuple[int, int] | None]
    added: Sequence[int | None]
    below_depth: Sequence[int | None]
    own: Mapping[str, tuple[float, float]]
    sliced: tuple[str, Mapping[str, object]] | None
    notes: Sequence[Note]
    alpha: float
    unit: str
    run: str = ""
    others: tuple[str, ...] = ()
    lists: Mapping[str, Run] = field(default_factory=dict)
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)
    calls: pl.DataFrame | None = None

    @cached_property
    def losses(self) -> Floats:
        """One row per step and one for the ordering: what each query loses there."""
        states = np.vstack([self.best, self.ceilings, self.values[-1]])
        return np.asarray(states[:-1] - states[1:])

    @property
    def parts(self) -> tuple[str, ...]:
        """The steps and the ordering: the names of the rows of `losses`."""
        return (*self.steps, ORDERING)

    @property
    def value(self) -> float:
        """The mean of the pipeline: of the last list as it is."""
        return float(self.values[-1].mean())

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One mapping per step and one for the ordering: ceiling, value, lost, intervals over queries, targets lost."""
        low, high = self.measure.range
        lost_intervals = np.clip(mean_intervals(self.losses), low - high, high - low).tolist()
        intervals = np.clip(mean_intervals(self.ceilings), low, high).tolist()
        targets = [self.fates[NEVER], *(self.fates[f"lost in {step}"] for step in self.steps[1:]), self.fates[BELOW]]
        rows: list[dict[str, Any]] = []
        for place, (part, (low, high), lost) in enumerate(zip(self.parts, lost_intervals, targets, strict=True)):
            row: dict[str, Any] = {"stage": part, "lost": float(self.losses[place].mean()), "targets_lost": lost}
            row |= {"low": low, "high": high}
            if place < len(self.steps):
                row["ceiling_low"], row["ceiling_high"] = intervals[place]
                row["lifted"], row["pushed"] = self.moves[place] or (None, None)
                row |= {"ceiling": float(self.ceilings[place].mean()), "value": float(self.values[place].mean())}
                row |= {"below_depth": self.below_depth[place], "added": self.added[place]}
            rows.append(plain_values(row))
        return rows

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per stage: ceiling, value, lost with its interval, and targets; `ordering` has the rest of the loss.

        lifted, pushed: relevant documents that entered or left the first k; added: those that no stage before has.
        below_depth: lost targets that were ranked deeper than the number of documents that this stage returned.
        """
        return pl.DataFrame([{name: row[name] for name in _SCHEMA} for row in self.rows[:-1]], schema=_SCHEMA)

    @property
    def ordering(self) -> dict[str, Any]:
        """What the last list loses because its documents are not in ideal order: lost, low, high."""
        return {name: self.rows[-1][name] for name in ("lost", "low", "high")}

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """One row per query: the best value, the ceiling after each stage, what each one lost, and the value."""
        columns: dict[str, Any] = {"query_id": pl.Series(list(self.queries), dtype=pl.String), "best": self.best}
        columns |= {f"ceiling {step}": row for step, row in zip(self.steps, self.ceilings, strict=True)}
        columns |= {f"lost {part}": row for part, row in zip(self.parts, self.losses, strict=True)}
        return pl.DataFrame({**columns, "value": self.values[-1]})

    @cached_property
    def slices(self) -> pl.DataFrame | None:
        """One row per value of the column of `by`: the queries, the best value, what each part lost, and the value."""
        if self.sliced is None:
            return None
        labels = slice_labels(self.queries, self.sliced[1])
        rows = []
        for value in in_order(labels):
            chosen = np.array([label == value for label in labels])
            row = {self.sliced[0]: value, "queries": int(chosen.sum()), "best": float(self.best[chosen].mean())}
            lost = self.losses[:, chosen].mean(axis=1).tolist()
            row |= {f"lost {part}": loss for part, loss in zip(self.parts, lost, strict=True)}
            rows.append({**row, "value": float(self.values[-1][chosen].mean())})
        return pl.DataFrame(rows)

    @cached_property
    def verdict(self) -> str:
        """The part that loses most, if it loses significantly more than every other (paired t tests over queries)."""
        means = self.losses.mean(axis=1)
        order = np.argsort(-means, kind="stable")
        if not means[order[0]] > NOTHING:
            return f"Nothing to gain: {self.measure} is {self.value:.4f}, and {self.best.mean():.4f} is the best value."
        gained = -means[means < -NOTHING].sum()
        of = f"of the {means[means > 0].sum():.2f} lost{f'; {gained:.2f} gained back' if gained else ''}"
        (top, most), (second, less) = ((self.parts[place], means[place]) for place in order[:2])
        if all(test.p < self.alpha for test in paired_tests(self.losses[order[0]] - self.losses[order[1:]])):
            return f"Work on: {top} ({most:.2f} {of})"
        return f"No stage loses significantly more than the others: {top} ({most:.2f}) and {second} ({less:.2f} {of})"

    def difference(self, other: StagesData) -> pl.DataFrame:
        """Which stage explains the difference to another pipeline with the same stages: one row per part of the loss.

        gained: what this pipeline loses less there, with its interval and the p-value of a paired t test over the
        queries of both, corrected (Holm) for the number of parts. The gains add up to the difference of the values.
        """
        if self.steps != other.steps or self.measure.spelled != other.measure.spelled:
            raise InputError(
                f"the pipelines differ in their stages or their measure: {', '.join(self.steps)} by {self.measure}, "
                f"and {', '.join(other.steps)} by {other.measure}."
            )
        places = {query: place for place, query in enumerate(other.queries)}
        shared = [(place, places[query]) for place, query in enumerate(self.queries) if query in places]
        if not shared:
            raise InputError("the two pipelines share no query.")
        mine, theirs = map(list, zip(*shared, strict=True))
        gains = np.vstack([other.losses[:, theirs] - self.losses[:, mine], self.best[mine] - other.best[theirs]])
        gains = gains if np.abs(gains[-1]).max() > NOTHING else gains[:-1]
        p_values = adjust([test.p for test in paired_tests(gains)]).tolist()
        schema = {"stage": pl.String, **dict.fromkeys(("gained", "low", "high", "p_adjusted"), pl.Float64)}
        names = (*self.parts, "best")[: len(gains)]
        most = 2 * (self.measure.range[1] - self.measure.range[0])
        intervals = np.clip(mean_intervals(gains), -most, most).tolist()
        rows = zip(names, gains.mean(axis=1).tolist(), intervals, p_values, strict=True)
        return pl.DataFrame([(name, gain, *end, p) for name, gain, end, p in rows], schema=schema, orient="row")


class Stages(Documented, StagesData):
    """The result of `stages`: its data, and the output formats."""

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `stages`."""
        data = {
            "steelyard": __version__,
            **({"run": self.run} if self.run else {}),
            "measure": str(self.measure),
            "queries": len(self.queries),
            "best": float(self.best.mean()),
            "value": self.value,
            "verdict": self.verdict,
            "targets": self.target_fates.height,
            "fates": dict(self.fates),
            "stages": self.table.to_dicts(),
            "ordering": self.ordering,
        }
        if self.own:
            data["parallel"] = [{"stage": name, "ceiling": pair[0], "adds": pair[1]} for name, pair in self.own.items()]
        frames = {"calls": self.calls, "slices": self.slices}
        data |= {name: frame.to_dicts() for name, frame in frames.items() if frame is not None}
        return {**plain_values(data), "notes": [note.to_dict() for note in self.notes]}

    def data_table(self) -> Table:
        """One row per stage, as in `table`."""
        return frame_table(self.table)

    def document(self) -> Document:
        """The verdict, the stages and the slices."""
        return cast(Document, looked_up("steelyard.report.stages:stages_document")(self))

    def _page(self, folder: Path | None) -> str:
        """The flow of the targets from stage to stage, the table, and the queries of every fate."""
        return cast(str, looked_up("steelyard.report.stages:stages_page")(self))


_SCHEMA: dict[str, Any] = {"stage": str}
_SCHEMA |= dict.fromkeys(("ceiling", "value", "lost", "low", "high", "ceiling_low", "ceiling_high"), float)
_SCHEMA |= dict.fromkeys(("targets_lost", "below_depth", "lifted", "pushed", "added"), int)
