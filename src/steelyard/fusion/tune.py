"""tune(): the parameters of a fusion chosen by nested cross-validation, and their honest score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.errors import InputError, MeasureError
from steelyard.evaluation import evaluate, with_rel
from steelyard.fusion.fuse import fused_name, fused_run, held_runs
from steelyard.fusion.grid import recipes
from steelyard.fusion.judged_pool import JudgedPool, judged_pool
from steelyard.fusion.methods import Recipe, recipe
from steelyard.fusion.normalise import normalise
from steelyard.fusion.pool import Pool
from steelyard.fusion.pooled import PooledRuns, pool_runs
from steelyard.fusion.tuned import Fold, Tuned
from steelyard.judgments import Qrels
from steelyard.measures.compute import summary, values
from steelyard.measures.grammar import Measure, parse
from steelyard.runs import Run
from steelyard.whole_numbers import is_whole
from steelyard.wording import counted

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
        return values(measure, judged.alignment(score))
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
