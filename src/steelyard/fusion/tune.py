"""tune(): chooses the parameters of a fusion by cross-validation and scores them on queries held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, compress, pairwise, product
from math import comb
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.checks import whole_number
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.evaluation import evaluate, on_scale, prepare
from steelyard.fusion.candidates import CandidatePool, JudgedPool, judged_pool, pool_runs
from steelyard.fusion.fuse import (
    NORMS,
    Method,
    Recipe,
    fused_name,
    fused_run,
    method_named,
    normalise,
    read_runs,
    recipe,
)
from steelyard.measures.compute import summary
from steelyard.measures.compute import values as values_of_measure
from steelyard.measures.grammar import Measure
from steelyard.notes import Note, note, shown_otherwise
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.version import __version__
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison

Progress: TypeAlias = Callable[[str, int, int], None]

PARAMETERS: dict[str, tuple[float, ...]] = {
    "k": (1, 2, 5, 10, 20, 40, 60, 80, 100, 200, 500),
    "phi": (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
    "sigma": (0.0, 0.01, 0.1, 0.5, 1.0),
}
SCORE_NORMS = tuple(name for name in NORMS if name != "none")
SIMPLEX = "simplex"
MOST_WEIGHTS = 300
SAME_DIGITS = 12  # Scores that agree to this many decimals are equally good.


@dataclass(frozen=True)
class Fold:
    """One fold: the parameters chosen on the other folds, their score there, and their score on this fold."""

    queries: tuple[str, ...]
    chosen: Recipe
    tuned_on: float
    held_out: float


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """The result of `tune`.

    `held_out` is the score to report: every query is scored with parameters chosen without it. `tuned_on` is the score
    of the final parameters on the queries that they were chosen on, and `optimism` is the difference. `run` has the
    lists behind `held_out`; queries that are not in the qrels are fused with the final parameters. `settings` are the
    final parameters, chosen on all queries, as keyword arguments of `fuse`. `values` has the value of every query for
    the held-out fused run, the method with its defaults, and each run that was fused.
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
    notes: tuple[Note, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The final parameters: `fuse(runs, **tuned.settings)`."""
        return self.final.settings()

    @property
    def optimism(self) -> float:
        """By how much the tuned-on score is better than the held-out score."""
        gap = self.tuned_on - self.held_out
        return gap if self.better == "more" else -gap

    @property
    def stability(self) -> float:
        """The share of folds for which the final parameters were chosen."""
        return sum(fold.chosen == self.final for fold in self.folds) / len(self.folds)

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """The value of every query for every run: run, query_id and the measure, as for `compare_scores`."""
        queries = pl.Series("query_id", list(self.queries), dtype=pl.String).to_frame()
        return pl.concat(
            queries.select(run=pl.lit(name), query_id="query_id").with_columns(pl.Series(self.measure, row))
            for name, row in self.values.items()
        )

    @cached_property
    def comparison(self) -> Comparison:
        """A comparison of the held-out fused run, the method with its defaults and the runs that were fused."""
        from steelyard.comparison.compare import compare_scores
        from steelyard.comparison.scores import TableOptions

        return compare_scores(self.per_query, [self.measure], options=TableOptions("run", "query_id"))

    def to_dict(self) -> dict[str, Any]:
        """Everything except the lists, in JSON types."""
        return {
            "steelyard": __version__,
            "method": self.method,
            "measure": self.measure,
            "queries": len(self.queries),
            **{name: getattr(self, name) for name in ("tried", "seed", "held_out", "tuned_on", "optimism")},
            "settings": self.settings,
            "stability": self.stability,
            "folds": [
                {"queries": len(fold.queries), "settings": fold.chosen.settings()}
                | {"tuned_on": fold.tuned_on, "held_out": fold.held_out}
                for fold in self.folds
            ],
            "scores": dict(self.scores),
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        rows = [
            ("held out", self.held_out, "each query with parameters chosen without it: the score to report"),
            ("tuned on", self.tuned_on, "the final parameters on the queries they were chosen on: optimistic"),
            ("optimism", self.optimism, "the difference"),
            *((name, score, "") for name, score in self.scores.items() if name != self.run.name),
        ]  # fmt: skip
        width = max(len(label) for label, _, _ in rows)
        agreed = sum(fold.chosen == self.final for fold in self.folds)
        return "\n".join(
            [
                f"{self.measure} of {self.method} over {counted(len(self.queries), 'query', 'queries')} in "
                f"{len(self.folds)} folds, {counted(self.tried, 'setting')} tried",
                *(f"  {label:<{width}}  {score:.4f}  {about}".rstrip() for label, score, about in rows),
                f"  final parameters: {self.final} (also chosen for {agreed} of {len(self.folds)} folds)",
                *(
                    f"  fold {number}: {fold.chosen}; tuned on {fold.tuned_on:.4f}, held out {fold.held_out:.4f}"
                    for number, fold in enumerate(self.folds, 1)
                ),
                *(f"  {note}." for note in self.notes),
            ]
        )


def tune(
    qrels: Any,
    runs: Sequence[Any] | Mapping[str, Any],
    method: str = "rrf",
    measure: str | Measure = "nDCG@10",
    *,
    grid: Mapping[str, Any] | None = None,
    folds: int = 5,
    seed: int = 0,
    rel: float | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Choose the parameters of a fusion by cross-validation, and score them on queries held out.

    The queries are split into `folds` at random, by `seed`. Each fold is fused with the setting that scores
    best on the other folds; the held-out score is that of all folds together. The final parameters are chosen
    on all queries; their score there is shown only to give the optimism.

    `grid` has the values to try: `{"k": [10, 60], "weights": [(1, 1), (2, 1)], "norm": ["z", "sum"]}`;
    `"weights": "simplex"` tries all weights that sum to 1 in steps of 0.1. The default grid has k, phi or sigma,
    every normalisation, and the weights of wsum, borda, isr and condorcet. Edge cases are scored as in `evaluate`.

    >>> qrels = {f"q{i}": ["d1"] for i in range(10)}
    >>> good = {q: {"d1": 3, "d2": 2, "d3": 1} for q in qrels}
    >>> poor = {q: {"d3": 3, "d2": 2, "d1": 1} for q in qrels}
    >>> tuned = tune(qrels, [good, poor], "wsum", "RR", grid={"weights": [(1, 4), (1, 1), (4, 1)]})
    >>> tuned.settings["weights"], tuned.held_out, tuned.optimism, tuned.stability
    ([4.0, 1.0], 1.0, 0.0, 1.0)
    """
    runs, qrels, (dialect, _, named) = read_runs(runs), Qrels.of(qrels), prepare([measure], "steelyard", {"rel": rel})
    measure = next(iter(on_scale(named, qrels, dialect).values()))
    if measure.definition.better == "neither":
        problem = f"{measure} is better neither higher nor lower, so it cannot be tuned for"
        raise MeasureError(f"{problem}; use another, such as nDCG@10.")
    settings, default = recipes(method, len(runs), grid), recipe(len(runs), method)
    if any(run.table["score"].null_count() for run in runs):
        # Without scores, those of the default grid that need none.
        settings = settings if grid is not None else [setting for setting in settings if not setting.reads_scores]
        default = recipe(len(runs), method, norm="rank") if default.reads_scores else default
    pooled = pool_runs(runs, any(setting.reads_scores for setting in settings))
    judged = judged_pool(qrels, pooled)
    fold = _folds(judged, folds, seed)
    tried, matrix, notes = _try(settings, judged, measure, grid is None, progress)

    def best(among: Bools) -> int:
        """The setting that scores best over these queries; the first of equally good ones."""
        scores = np.array([summary(measure, row[among]) for row in matrix]).round(SAME_DIGITS)
        upward = scores if measure.definition.better == "more" else -scores
        return int(np.argmax(np.where(np.isnan(upward), -np.inf, upward)))

    final = best(np.ones(len(fold), dtype=bool))
    chosen = [best(fold != number) for number in range(folds)]
    by_fold = []
    for number, choice in enumerate(chosen):
        here = fold == number
        scores = (summary(measure, matrix[choice, inside]) for inside in (~here, here))
        by_fold.append(Fold(tuple(compress(qrels.queries, here.tolist())), tried[choice], *scores))
    held_out = matrix[np.array(chosen)[fold], np.arange(len(fold))]
    label = name or f"tuned-{fused_name(runs, tried[final])}"
    values = {label: held_out, f"untuned-{default.method.name}": _values(default.scores(judged.pool), judged, measure)}
    for number, run in enumerate(runs, 1):
        unique = run.name if run.name not in values else f"{run.name} ({number})"
        with shown_otherwise():
            values[unique] = evaluate(qrels, run, measure).values(measure)
    # Every query is fused with the choice for its fold; queries that are not in the qrels with the final choice.
    choice_of = dict(zip(qrels.queries, np.array(chosen)[fold].tolist(), strict=True))
    choices = np.array([choice_of.get(query, final) for query in pooled.queries], dtype=np.int64)
    score = np.full(pooled.pool.size, np.nan)
    for choice in np.unique(choices):
        kept = np.repeat(choices == choice, pooled.pool.candidates)
        score[kept] = tried[choice].scores(pooled.pool.part(kept))
    return Tuned(
        method=default.method.name,
        measure=str(measure),
        final=tried[final],
        folds=by_fold,
        tried=len(tried),
        seed=int(seed),
        held_out=summary(measure, held_out),
        tuned_on=summary(measure, matrix[final]),
        scores={run_name: summary(measure, row) for run_name, row in values.items()},
        values=values,
        queries=qrels.queries,
        run=fused_run(runs, pooled, score, label, pooled.notes),
        better=measure.definition.better,
        notes=(*pooled.notes, *notes),
    )


def _folds(judged: JudgedPool, folds: int, seed: int) -> Ints:
    """The fold of every query of the qrels, by the seed; the order of the queries does not matter."""
    queries = judged.qrels.queries
    whole_number("folds", folds, 2)
    whole_number("seed", seed)
    if len(queries) < folds:
        number = counted(len(queries), "query", "queries")
        raise InputError(f"{number} cannot be split into {folds} folds; use fewer folds.")
    if not judged.answered.any():
        raise InputError("no query of the qrels is in any of the runs; check that the query ids agree.")
    fold = np.empty(len(queries), dtype=np.int64)
    by_id = np.array(sorted(range(len(queries)), key=queries.__getitem__))
    fold[np.random.default_rng(seed).permutation(by_id)] = np.arange(len(queries)) % folds
    return fold


def _try(
    settings: Sequence[Recipe], judged: JudgedPool, measure: Measure, lenient: bool, progress: Progress | None
) -> tuple[list[Recipe], Floats, list[Note]]:
    """The settings, their values (settings x queries), and notes on norms that are errors, left out if lenient."""
    tried, rows, notes = [], [], []
    pools: dict[str | None, CandidatePool | None] = {None: judged.pool}
    for number, setting in enumerate(settings):
        if progress is not None:
            progress(f"{setting}", number, len(settings))
        if setting.norm is not None and setting.norm not in pools:
            try:
                pools[setting.norm] = normalise(judged.pool, setting.norm)
            except InputError as error:
                if not lenient:
                    raise
                pools[setting.norm] = None
                notes.append(note("fusion-norm-not-tried", norm=setting.norm, reason=str(error).rstrip(".")))
        pool = pools[setting.norm]
        if pool is not None:
            tried.append(setting)
            rows.append(_values(setting.scores_of(pool), judged, measure))
    return tried, np.array(rows), notes


def _values(score: Floats, judged: JudgedPool, measure: Measure) -> Floats:
    try:
        return values_of_measure(measure, judged.alignment(score))
    except MeasureError as error:
        raise MeasureError(
            f"{measure} cannot be tuned for: tune() has ranks, grades and scores, but not lengths, texts or times."
        ) from error


def recipes(method: str, runs: int, grid: Mapping[str, Any] | None = None) -> list[Recipe]:
    """Every combination of the grid (default: that of `tune`); the method's default first, if it is one of them.

    >>> [setting.settings() for setting in recipes("rbc", 2, {"phi": [0.5, 0.8]})]
    [{'method': 'rbc', 'phi': 0.8}, {'method': 'rbc', 'phi': 0.5}]
    """
    chosen = method_named(method)
    axes: dict[str, Sequence[Any]] = {name: PARAMETERS[name] for name in chosen.defaults}
    if grid is not None:
        axes = _checked_grid(chosen, runs, grid)
    elif chosen.norm is not None:
        axes["norm"] = SCORE_NORMS
    if grid is None and chosen.weighted and not chosen.defaults:
        axes["weights"] = simplex(runs)
    settings = [recipe(runs, chosen.name, **dict(zip(axes, values, strict=True))) for values in product(*axes.values())]
    default = recipe(runs, chosen.name)

    def is_other(setting: Recipe) -> bool:
        """Whether a setting is not the method's default; equal weights are the same as none."""
        equal = setting.weights is None or len(set(setting.weights)) == 1
        return not equal or (setting.norm, setting.parameters) != (default.norm, default.parameters)

    return sorted(dict.fromkeys(settings), key=is_other)


def simplex(runs: int) -> list[tuple[float, ...]]:
    """Weights that sum to 1, in steps of 1/steps: ten steps, or fewer to keep the list within 300.

    >>> simplex(2)[:3], len(simplex(3)), len(simplex(5))
    ([(0.0, 1.0), (0.1, 0.9), (0.2, 0.8)], 66, 210)
    """
    steps = max(s for s in range(1, 11) if s == 1 or comb(s + runs - 1, runs - 1) <= MOST_WEIGHTS)
    last = steps + runs - 1
    # Every choice of bars among steps and bars divides the steps into one part per run.
    divided = (pairwise([-1, *bars, last]) for bars in combinations(range(last), runs - 1))
    return [tuple((bar - before - 1) / steps for before, bar in parts) for parts in divided]


def _checked_grid(method: Method, runs: int, grid: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    tunable = [*method.defaults, *(["norm"] if method.norm else []), *(["weights"] if method.weighted else [])]
    axes: dict[str, Sequence[Any]] = {}
    for name, values in grid.items():
        if name not in tunable:
            expected = f"expected one of {', '.join(tunable)}" if tunable else "it has nothing to tune"
            raise InputError(f"{method.name} has no {name!r} to tune; {expected}.{did_you_mean(name, tunable)}")
        if name == "weights" and values == SIMPLEX:
            values = simplex(runs)
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
            raise InputError(f"the grid's {name} is {values!r}; expected a list of values to try.")
        axes[name] = values
    return axes
