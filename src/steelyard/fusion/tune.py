"""The settings that tuning tries: every combination of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from steelyard.alignment.alignment import Alignment, join
from steelyard.alignment.hits import Bools, Floats, Hits, Ints
from steelyard.checks import is_whole
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.evaluation import evaluate, with_rel
from steelyard.fusion.candidates import Pool, PooledRuns, pool_runs
from steelyard.fusion.fuse import fused_name, fused_run, held_runs
from steelyard.fusion.methods import Method, Recipe, method_named, recipe
from steelyard.fusion.normalise import NORMS, normalise
from steelyard.measures.compute import summary
from steelyard.measures.compute import values as values_of_measure
from steelyard.measures.grammar import Measure, parse
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.version import __version__
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.comparison.result import Comparison


PARAMETERS: dict[str, tuple[float, ...]] = {
    "k": (1, 2, 5, 10, 20, 40, 60, 80, 100, 200, 500),
    "phi": (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
    "sigma": (0.0, 0.01, 0.1, 0.5, 1.0),
}
SCORE_NORMS = tuple(name for name in NORMS if name != "none")
SIMPLEX = "simplex"
MOST_WEIGHTS = 300


def recipes(method: str, runs: int, grid: Mapping[str, Any] | None = None) -> list[Recipe]:
    """Every setting of the grid; the one that is the method's own default, where it is among them, first.

    Without a grid: the parameters of the method (rrf: k, rbc: phi, logn-isr: sigma), every
    normalisation of a method that reads scores, and the weights of wsum, borda, isr and condorcet.
    With one, what it does not name keeps its default.

    >>> [made.settings() for made in recipes("rbc", 2, {"phi": [0.5, 0.8]})]
    [{'method': 'rbc', 'phi': 0.8}, {'method': 'rbc', 'phi': 0.5}]
    """
    chosen = method_named(method)
    axes = default_axes(chosen, runs) if grid is None else _checked(chosen, runs, grid)
    made = [
        recipe(runs, chosen.name, **dict(zip(axes, values, strict=True)))
        for values in product(*axes.values())
    ]
    own = recipe(runs, chosen.name)
    return sorted(dict.fromkeys(made), key=lambda one: not _like(one, own))


def default_axes(method: Method, runs: int) -> dict[str, Sequence[Any]]:
    """What is tried where no grid is given."""
    axes: dict[str, Sequence[Any]] = {name: PARAMETERS[name] for name in method.defaults}
    if method.norm is not None:
        axes["norm"] = SCORE_NORMS
    if method.weighted and not method.defaults:
        axes["weights"] = simplex(runs)
    return axes


def simplex(runs: int, steps: int | None = None) -> list[tuple[float, ...]]:
    """Weights that add up to 1, in steps of 1/steps: ten, or as many as keep the list below 300.

    >>> simplex(2, 4)
    [(0.0, 1.0), (0.25, 0.75), (0.5, 0.5), (0.75, 0.25), (1.0, 0.0)]
    >>> len(simplex(3)), len(simplex(5))
    (66, 210)
    """
    if steps is None:
        steps = max(s for s in range(1, 11) if s == 1 or comb(s + runs - 1, runs - 1) <= MOST_WEIGHTS)
    return [tuple(part / steps for part in parts) for parts in _parts(steps, runs)]


def _parts(total: int, count: int) -> Iterator[tuple[int, ...]]:
    if count == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _parts(total - first, count - 1):
            yield (first, *rest)


def _checked(method: Method, runs: int, grid: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    able = [*method.defaults, *(["norm"] if method.norm else []), *(["weights"] if method.weighted else [])]
    axes: dict[str, Sequence[Any]] = {}
    for name, values in grid.items():
        if name not in able:
            takes = f"there is {', '.join(able)}" if able else "there is nothing to tune"
            raise InputError(f"{method.name} has no {name!r} to tune; {takes}.{did_you_mean(name, able)}")
        if name == "weights" and values == SIMPLEX:
            values = simplex(runs)
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
            raise InputError(f"the grid's {name} is {values!r}; expected a list of values to try.")
        axes[name] = values
    return axes


def _like(one: Recipe, own: Recipe) -> bool:
    """Whether a setting is the method's default, equal weights being no weights."""
    alike = one.weights is None or len(set(one.weights)) == 1
    return alike and (one.norm, one.parameters) == (own.norm, own.parameters)


@dataclass(frozen=True)
class JudgedPool:
    """The part of a pool whose queries are judged.

    `query` is per candidate the number of its query in the judgments, `doc` the number of its document
    there, or -1; `answered` is per judged query whether a run has it.
    """

    qrels: Qrels
    pool: Pool
    query: Ints
    doc: Ints
    answered: Bools

    def alignment(self, score: Floats) -> Alignment:
        """The alignment of the run that these scores make, ranked as `evaluate` ranks it."""
        return join(self.qrels, self._hits(score))

    def _hits(self, score: Floats) -> Hits:
        order = self.pool.best_first(score)
        rank, query = self.pool.places(order), self.query[order]
        above = np.concatenate([[True], (np.diff(score[order]) != 0) | (np.diff(query) != 0)])[: len(order)]
        first = np.flatnonzero(above)
        group = np.cumsum(above) - 1
        size = np.diff(first, append=len(order))
        hit = np.flatnonzero(self.doc[order] >= 0)
        hit = hit[np.argsort(query[hit], kind="stable")]
        top = np.full(len(self.answered), np.nan)
        top[query[rank == 1]] = score[order[rank == 1]]
        nothing = np.zeros(0, dtype=np.int64)
        return Hits(
            retrieved=np.bincount(query, minlength=len(self.answered)),
            answered=self.answered,
            top_score=top,
            query=query[hit],
            doc=self.doc[order[hit]],
            rank=rank[hit],
            tie_first=rank[first][group[hit]],
            tie_size=size[group[hit]],
            repeat_query=nothing,
            repeat_rank=nothing,
        )


def judged_pool(qrels: Qrels, pooled: PooledRuns) -> JudgedPool:
    """The judged part of pooled runs."""
    judged = qrels.judged
    number = {query: place for place, query in enumerate(judged.query_ids)}
    place = np.array([number.get(query, -1) for query in pooled.queries], dtype=np.int64)
    pool, kept = pooled.pool.of_queries(place >= 0)
    query = place[place >= 0][pool.query]
    listed = pl.DataFrame({"query": query, "doc_id": pooled.documents.filter(pl.Series(kept))})
    known = pl.DataFrame(
        {
            "query": np.repeat(np.arange(len(judged.query_ids)), np.diff(judged.starts)),
            "doc_id": pl.Series(list(judged.doc_ids), dtype=pl.String),
            "doc": np.arange(len(judged.doc_ids)),
        }
    )
    doc = listed.join(known, on=["query", "doc_id"], how="left", maintain_order="left")["doc"]
    answered = np.zeros(len(judged.query_ids), dtype=np.bool_)
    answered[place[place >= 0]] = True
    answered[[number[empty] for empty in pooled.empty if empty in number]] = True
    return JudgedPool(qrels, pool, query, doc.fill_null(-1).to_numpy(), answered)


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
        from steelyard.comparison.scores import TableOptions

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


__all__ = ["Tuned", "tune"]

Progress: TypeAlias = Callable[[str, int, int], None]

SAME_DIGITS = 12
"""Settings whose scores agree to so many digits are equally good, and the first of them is chosen."""


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
    """Choose the parameters of a fusion, and score the choice on queries that had no part in it.

    The queries are dealt into `folds` by `seed`. Each fold is fused with the setting that scores best
    on the others; the held-out score is that of all folds together. Nothing is fitted but the choice,
    so the mean over the other folds' queries is what any split of them would average to. The final
    parameters are then chosen on all queries; their score there is shown only to say how much it flatters.

    `grid` names what to try: `{"k": [10, 60], "weights": [(1, 1), (2, 1)], "norm": ["z", "sum"]}`;
    `"weights": "simplex"` tries all that add up to 1 in tenths. Without it: k, phi or sigma, every
    normalisation, and the weights of wsum, borda, isr and condorcet. Edge cases are scored as `evaluate` does.

    >>> qrels = {f"q{i}": ["d1"] for i in range(10)}
    >>> good = {q: {"d1": 3, "d2": 2, "d3": 1} for q in qrels}
    >>> poor = {q: {"d3": 3, "d2": 2, "d1": 1} for q in qrels}
    >>> tuned = tune(qrels, [good, poor], "wsum", "RR", grid={"weights": [(1, 4), (1, 1), (4, 1)]})
    >>> tuned.settings["weights"], tuned.held_out, tuned.optimism, tuned.stability
    ([4.0, 1.0], 1.0, 0.0, 1.0)
    """
    held, truth = held_runs(runs), Qrels.of(qrels)
    meant = _measure(measure, rel)
    scored = all(not run.table["score"].null_count() for run in held)
    settings = recipes(method, len(held), grid)
    if grid is None and not scored:
        settings = [made for made in settings if not made.reads_scores]
    own = recipe(len(held), method)
    if own.reads_scores and not scored:
        own = recipe(len(held), method, norm="rank")
    pooled = pool_runs(held, any(made.reads_scores for made in settings))
    judged = judged_pool(truth, pooled)
    fold = _dealt(judged, folds, seed)
    trials = _tried(settings, judged, meant, grid is None, progress)
    final = trials.best(np.ones(len(fold), dtype=bool))
    chosen = [trials.best(fold != number) for number in range(folds)]
    held_out = trials.matrix[np.array(chosen)[fold], np.arange(len(fold))]
    label = name or f"tuned-{fused_name(held, trials.settings[final])}"
    values_of = {
        label: held_out,
        f"untuned-{own.method.name}": _values(own.scores(judged.pool), judged, meant),
    }
    for place, run in enumerate(held, 1):
        one = run.name if run.name not in values_of else f"{run.name} ({place})"
        values_of[one] = evaluate(truth, run, meant).values(meant)
    return Tuned(
        method=own.method.name,
        measure=str(meant),
        final=trials.settings[final],
        folds=[trials.fold(truth.queries, fold, number, choice) for number, choice in enumerate(chosen)],
        tried=len(trials.settings),
        seed=seed,
        held_out=summary(meant, held_out),
        tuned_on=summary(meant, trials.matrix[final]),
        scores={one: summary(meant, row) for one, row in values_of.items()},
        values=values_of,
        queries=truth.queries,
        run=_held_out_run(held, pooled, truth, fold, trials, [*chosen, final], label),
        better=meant.definition.better,
        notes=(*pooled.notes, *trials.notes),
    )


@dataclass(frozen=True)
class _Trials:
    """The settings that could be tried, and the value of each (row) for each judged query (column)."""

    measure: Measure
    settings: list[Recipe]
    matrix: Floats
    notes: tuple[str, ...]

    def best(self, chosen: Bools) -> int:
        """The setting that scores best over these queries; of equally good ones the first."""
        scores = np.array([summary(self.measure, row[chosen]) for row in self.matrix]).round(SAME_DIGITS)
        upward = scores if self.measure.definition.better == "more" else -scores
        return int(np.argmax(np.where(np.isnan(upward), -np.inf, upward)))

    def fold(self, queries: Sequence[str], fold: Ints, number: int, choice: int) -> Fold:
        """What was chosen for a fold, and how it fared there and where it was chosen."""
        here = fold == number
        return Fold(
            queries=tuple(query for query, inside in zip(queries, here.tolist(), strict=True) if inside),
            chosen=self.settings[choice],
            tuned_on=summary(self.measure, self.matrix[choice, ~here]),
            held_out=summary(self.measure, self.matrix[choice, here]),
        )


def _measure(measure: str | Measure, rel: float | None) -> Measure:
    meant = with_rel(parse(str(measure)), rel)
    if meant.definition.better == "neither":
        raise MeasureError(
            f"{meant} is better neither higher nor lower, so nothing can be tuned for it; use nDCG@10, say."
        )
    return meant


def _dealt(judged: JudgedPool, folds: int, seed: int) -> Ints:
    """The fold of every judged query, dealt by the seed; the order of the judgments does not matter."""
    queries = judged.qrels.queries
    if not is_whole(folds, 2):
        raise InputError(
            f"folds is {folds!r}; expected 2 or more: what is chosen on some is scored on the others."
        )
    if not is_whole(seed, 0):
        raise InputError(
            f"seed is {seed!r}; expected a whole number, 0 or more, so that the folds can be dealt again."
        )
    if len(queries) < folds:
        raise InputError(
            f"{counted(len(queries), 'judged query', 'judged queries')} cannot be dealt into {folds} folds; "
            "use fewer folds."
        )
    if not judged.answered.any():
        raise InputError("no judged query is in any of the runs; are the query ids written alike?")
    dealt = np.empty(len(queries), dtype=np.int64)
    by_id = np.array(sorted(range(len(queries)), key=queries.__getitem__))
    dealt[np.random.default_rng(seed).permutation(by_id)] = np.arange(len(queries)) % folds
    return dealt


def _tried(
    settings: Sequence[Recipe], judged: JudgedPool, measure: Measure, lenient: bool, progress: Progress | None
) -> _Trials:
    """Every setting's values. Lenient: a normalisation that these scores rule out is left out, and noted."""
    kept: list[Recipe] = []
    rows: list[Floats] = []
    notes: list[str] = []
    pools: dict[str | None, Pool | None] = {None: judged.pool}
    for number, made in enumerate(settings):
        if progress is not None:
            progress(f"{made}", number, len(settings))
        if made.norm is not None and made.norm not in pools:
            try:
                pools[made.norm] = normalise(judged.pool, made.norm)
            except InputError as error:
                if not lenient:
                    raise
                pools[made.norm] = None
                notes.append(f"norm={made.norm} was not tried: {error}")
        pool = pools[made.norm]
        if pool is not None:
            kept.append(made)
            rows.append(_values(made.scores_of(pool), judged, measure))
    return _Trials(measure, kept, np.array(rows), tuple(notes))


def _values(score: Floats, judged: JudgedPool, measure: Measure) -> Floats:
    try:
        return values_of_measure(measure, judged.alignment(score))
    except MeasureError as error:
        raise MeasureError(
            f"nothing can be tuned for {measure}: tune() knows ranks, grades and scores, not lengths, texts or times."
        ) from error


def _held_out_run(
    runs: Sequence[Run],
    pooled: PooledRuns,
    truth: Qrels,
    fold: Ints,
    trials: _Trials,
    choices: Sequence[int],
    name: str,
) -> Run:
    """Every query fused with its fold's choice; queries without judgments with the last, which is the final one."""
    fold_of = dict(zip(truth.queries, fold.tolist(), strict=True))
    setting = np.array([choices[fold_of.get(query, -1)] for query in pooled.queries], dtype=np.int64)
    score = np.full(pooled.pool.size, np.nan)
    for choice in np.unique(setting):
        part, kept = pooled.pool.of_queries(setting == choice)
        score[kept] = trials.settings[choice].scores(part)
    return fused_run(runs, pooled, score, name, pooled.notes)
