"""Tuned: what tuning found, the honest score of it, and how far the tuned-on score would have flattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from steelyard.alignment.hits import Floats
from steelyard.fusion.methods import Recipe
from steelyard.runs import Run
from steelyard.version import __version__
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.comparison.result import Comparison


@dataclass(frozen=True)
class Fold:
    """One fold: what the other folds chose, their score of it, and its score here, on queries they never saw."""

    queries: tuple[str, ...]
    chosen: Recipe
    tuned_on: float
    held_out: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """What `tune` gives.

    `held_out` is the score to report: every query is scored with parameters chosen without it.
    `tuned_on` is the score of the final parameters on the queries that chose them, and `optimism` how
    much better that looks. `run` holds the lists behind `held_out` (queries without judgments are fused
    with the final parameters). `settings` are the final parameters, chosen on all queries, as keyword
    arguments of `fuse`. `values` has every run's value of every query: the fused run held out, the
    method with its defaults, and the runs that were fused.
    """

    method: str
    measure: str
    final: Recipe
    folds: Sequence[Fold]
    tried: int
    seed: int
    held_out: float
    tuned_on: float
    scores: Mapping[str, float]
    values: Mapping[str, Floats]
    queries: Sequence[str]
    run: Run
    better: str = "more"
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The final parameters: `fuse(runs, **tuned.settings)`."""
        return self.final.settings()

    @property
    def optimism(self) -> float:
        """How much better the tuned-on score is than the held-out one."""
        gap = self.tuned_on - self.held_out
        return gap if self.better == "more" else -gap

    @property
    def stability(self) -> float:
        """The share of folds that chose the final parameters by themselves."""
        return sum(fold.chosen == self.final for fold in self.folds) / len(self.folds)

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """Every run's value of every query: run, query_id and the measure, as `compare_scores` takes it."""
        import polars as pl

        return pl.concat(
            pl.DataFrame(
                {"query_id": pl.Series(list(self.queries), dtype=pl.String), self.measure: row}
            ).select(pl.lit(name).alias("run"), "query_id", self.measure)
            for name, row in self.values.items()
        )

    @cached_property
    def comparison(self) -> Comparison:
        """The held-out fused run, the method with its defaults and the runs that were fused, compared."""
        from steelyard.comparison.compare import compare_scores
        from steelyard.comparison.score_table import TableOptions

        return compare_scores(self.per_query, [self.measure], options=TableOptions("run", "query_id"))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the lists, in types that JSON has."""
        return {
            "steelyard": __version__,
            "method": self.method,
            "measure": self.measure,
            "queries": len(self.queries),
            "tried": self.tried,
            "seed": self.seed,
            "held_out": self.held_out,
            "tuned_on": self.tuned_on,
            "optimism": self.optimism,
            "settings": self.settings,
            "stability": self.stability,
            "folds": [
                {
                    "queries": len(fold.queries),
                    "settings": fold.chosen.settings(),
                    "tuned_on": fold.tuned_on,
                    "held_out": fold.held_out,
                }
                for fold in self.folds
            ],
            "scores": dict(self.scores),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        rows = [
            ("held out", self.held_out, "every query fused with parameters chosen without it: the score to report"),
            ("tuned on", self.tuned_on, "the final parameters, on the queries that chose them: flattered"),
            ("optimism", self.optimism, "by so much"),
            *((name, score, "") for name, score in self.scores.items() if name != self.run.name),
        ]  # fmt: skip
        width = max(len(label) for label, _, _ in rows)
        agreed = sum(fold.chosen == self.final for fold in self.folds)
        return "\n".join(
            [
                f"{self.measure} of {self.method} over {counted(len(self.queries), 'query', 'queries')} in "
                f"{len(self.folds)} folds, "
                f"{counted(self.tried, 'setting')} tried",
                *(f"  {label:<{width}}  {score:.4f}  {said}".rstrip() for label, score, said in rows),
                f"  final parameters: {self.final} (chosen by {agreed} of {len(self.folds)} folds alone)",
                *(
                    f"  fold {number}: {fold.chosen}; tuned on {fold.tuned_on:.4f}, held out {fold.held_out:.4f}"
                    for number, fold in enumerate(self.folds, 1)
                ),
                *(f"  {note}." for note in self.notes),
            ]
        )
