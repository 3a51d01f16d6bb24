"""fuse(): combines several runs into one; the methods with their formulas, normalisations, parameters and weights.

In the formulas, r is a document's rank in a list, s its normalised score there, w the list's weight and N the number
of lists that contain the document. Sums are over the lists that contain it, unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard.alignment.hits import Floats
from steelyard.checks import is_number, unknown_name, whole_number
from steelyard.errors import InputError, did_you_mean
from steelyard.fusion.candidates import CandidatePool, PooledRuns, label, pool_of_lists, pool_runs
from steelyard.ids import kind_of
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.run import Run
from steelyard.wording import counted, in_words


@dataclass(frozen=True)
class Norm:
    """A normalisation: its name, its formula, whether it uses scores, and the function."""

    name: str
    about: str
    reads_scores: bool
    function: Callable[[CandidatePool], Floats]


def normalise(pool: CandidatePool, norm: str) -> CandidatePool:
    """The pool with normalised values. Every list of every query is normalised separately.

    >>> _, pool = pool_of_lists([[("c", 9.0), ("b", 6.0), ("a", 5.0)]])
    >>> normalise(pool, "min-max").value.tolist(), normalise(pool, "max").value.round(2).tolist()
    ([[1.0, 0.25, 0.0]], [[1.0, 0.67, 0.56]])
    """
    return replace(pool, value=norm_named(norm).function(pool))


def norm_named(name: str) -> Norm:
    """The normalisation of that name; an unknown name is an error."""
    plain = str(name).lower().replace("_", "-")
    norm = NORMS.get(_NORM_ALIASES.get(plain, plain))
    if norm is None:
        raise InputError(unknown_name("normalisation", name, NORMS, _NORM_ALIASES))
    return norm


def none(pool: CandidatePool) -> Floats:
    """The scores unchanged."""
    return pool.value


def min_max(pool: CandidatePool) -> Floats:
    """(s - lowest) / (highest - lowest): 1 for the best, 0 for the last. If all are equal: 1."""
    low, high = _over_lists(np.fmin, pool), _over_lists(np.fmax, pool)
    width = _spread(pool, high - low)
    return np.where(width > 0, _divided(pool.value - _spread(pool, low), width), pool.value * 0 + 1)


def highest(pool: CandidatePool) -> Floats:
    """s / highest. The highest must be positive; if all scores are 0, they stay 0."""
    high = _over_lists(np.fmax, pool)
    bad = (high < 0) | ((high == 0) & (_over_lists(np.fmin, pool) < 0))
    if bad.any():
        column, query = np.argwhere(bad)[0]
        raise InputError(
            f"norm=max divides by the best score of a list, which is {high[column, query]:g} in a list of run "
            f"{column + 1} ({counted(int(bad.sum()), 'such list')}); it must be positive. Use min-max, z or rank."
        )
    return _divided(pool.value, _spread(pool, np.where(high == 0, 1.0, high)))


def total(pool: CandidatePool) -> Floats:
    """(s - lowest) / sum of (s - lowest): the list sums to 1. If all are equal: 1/n."""
    above = pool.value - _spread(pool, _over_lists(np.fmin, pool))
    sums = _spread(pool, _sums(pool, above))
    return np.where(sums > 0, _divided(above, sums), pool.value * 0 + 1 / _spread(pool, np.maximum(pool.lengths, 1)))


def z_score(pool: CandidatePool) -> Floats:
    """(s - mean) / standard deviation (dividing by n, not n - 1). If all are equal: 0."""
    count = np.maximum(pool.lengths, 1)
    centred = pool.value - _spread(pool, _sums(pool, pool.value) / count)
    deviation = np.sqrt(_sums(pool, centred**2) / count)
    flat = _spread(pool, _over_lists(np.fmax, pool) == _over_lists(np.fmin, pool))
    return np.where(flat, pool.value * 0, _divided(centred, _spread(pool, deviation)))


def by_rank(pool: CandidatePool) -> Floats:
    """1 - (rank - 1) / n: 1 for the first of n, 1/n for the last. Scores are not used."""
    return np.where(pool.found, 1 - (pool.rank - 1) / _spread(pool, np.maximum(pool.lengths, 1)), np.nan)


NORMS = {
    norm.name: norm
    for norm in (
        Norm("min-max", "(s - lowest) / (highest - lowest); all equal: 1", True, min_max),
        Norm("max", "s / highest, which must be positive", True, highest),
        Norm("sum", "(s - lowest) / sum of (s - lowest); all equal: 1/n", True, total),
        Norm("z", "(s - mean) / standard deviation; all equal: 0", True, z_score),
        Norm("rank", "1 - (rank - 1) / n; scores are not used", False, by_rank),
        Norm("none", "the scores unchanged", True, none),
    )
}

_NORM_ALIASES = {"minmax": "min-max", "zmuv": "z", "z-score": "z", "zscore": "z"}


def _over_lists(take: np.ufunc, pool: CandidatePool) -> Floats:
    """The lowest or the highest score of every list."""
    return np.asarray(take.reduceat(pool.value, pool.starts, axis=1))


def _sums(pool: CandidatePool, values: Floats) -> Floats:
    return np.add.reduceat(np.where(pool.found, values, 0.0), pool.starts, axis=1)


def _spread(pool: CandidatePool, per_query: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A number per query, repeated for each of its candidates."""
    return np.repeat(per_query, pool.candidates, axis=1)


def _divided(above: Floats, below: Floats) -> Floats:
    """above / below; NaN where below is not positive."""
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))


def rrf(pool: CandidatePool, weights: Floats, *, k: float = 60) -> Floats:
    """Sum of w / (k + r)."""
    return _summed(weights, _of_ranks(pool, lambda r: 1 / (k + r)))


def combsum(pool: CandidatePool, weights: Floats) -> Floats:
    """Sum of w s."""
    return _summed(weights, np.where(pool.found, pool.value, 0.0))


def combmnz(pool: CandidatePool, weights: Floats) -> Floats:
    """N times the sum of s."""
    return _lists_with(pool) * combsum(pool, weights)


def combanz(pool: CandidatePool, weights: Floats) -> Floats:
    """The mean of s over the N lists that contain the document."""
    return combsum(pool, weights) / _lists_with(pool)


def combmax(pool: CandidatePool, weights: Floats) -> Floats:
    """The highest s."""
    return np.asarray(np.fmax.reduce(pool.value, axis=0))


def combmin(pool: CandidatePool, weights: Floats) -> Floats:
    """The lowest s."""
    return np.asarray(np.fmin.reduce(pool.value, axis=0))


def combmed(pool: CandidatePool, weights: Floats) -> Floats:
    """The median of s: the middle one, or the mean of the middle two."""
    ascending = np.sort(pool.value, axis=0)
    count = pool.found.sum(axis=0)
    every = np.arange(pool.size)
    return np.asarray((ascending[(count - 1) // 2, every] + ascending[count // 2, every]) / 2)


def borda(pool: CandidatePool, weights: Floats) -> Floats:
    """Sum of w (c - r + 1), where c is the number of different documents in all lists.

    A list of n documents divides its remaining points equally among the documents that it does not contain:
    (c - n + 1) / 2 each.
    """
    candidates = np.repeat(pool.candidates, pool.candidates)
    shared = np.repeat((pool.candidates - pool.lengths + 1) / 2, pool.candidates, axis=1)
    return _summed(weights, np.where(pool.found, candidates - pool.rank + 1, shared))


def isr(pool: CandidatePool, weights: Floats) -> Floats:
    """N times the sum of w / r²."""
    return _lists_with(pool) * _summed(weights, _of_ranks(pool, lambda r: 1 / r**2))


def logn_isr(pool: CandidatePool, weights: Floats, *, sigma: float = 0.01) -> Floats:
    """log(N + sigma) times the sum of w / r²."""
    return np.log(_lists_with(pool) + sigma) * _summed(weights, _of_ranks(pool, lambda r: 1 / r**2))


def rbc(pool: CandidatePool, weights: Floats, *, phi: float = 0.8) -> Floats:
    """Sum of w (1 - phi) phi^(r - 1)."""
    return _summed(weights, _of_ranks(pool, lambda r: (1 - phi) * np.power(phi, r - 1)))


def condorcet(pool: CandidatePool, weights: Floats) -> Floats:
    """The number of candidates that the document beats (more lists rank it higher); a tie counts one half."""
    position = np.where(pool.found, pool.rank, np.iinfo(np.int32).max).astype(np.int32)
    equal = bool(np.all(weights == weights[0]))
    kind: Any = np.int32 if equal else np.float64
    strength = [kind(1)] * pool.lists if equal else list(weights)
    slack = 0.0 if equal else 1e-9 * float(weights.sum())
    points = np.empty(pool.size)
    for start, count in zip(pool.starts.tolist(), pool.candidates.tolist(), strict=True):
        here = position[:, start : start + count]
        votes = np.zeros((count, count), dtype=kind)
        for ranks, weight in zip(here, strength, strict=True):
            votes += weight * (ranks[:, None] < ranks[None, :])
        lead = votes - votes.T
        wins = np.count_nonzero(lead > slack, axis=1)
        losses = np.count_nonzero(lead < -slack, axis=1)
        points[start : start + count] = (wins - losses + count - 1) / 2
    return points


def _lists_with(pool: CandidatePool) -> Floats:
    return np.asarray(np.sum(pool.found, axis=0, dtype=np.float64))


def _of_ranks(pool: CandidatePool, worth: Callable[[Floats], Floats]) -> Floats:
    """The value of each candidate's rank in each list; 0 if the list does not contain it."""
    return np.concatenate([[0.0], worth(np.arange(1.0, int(pool.rank.max(initial=0)) + 1))])[pool.rank]


def _summed(weights: Floats, parts: Floats) -> Floats:
    """The weighted sum over lists, smallest part first, so that the order of the runs does not change the result."""
    weighted = weights[:, None] * parts
    total: Floats = np.zeros(parts.shape[1])
    for part in np.sort(weighted, axis=0) if len(parts) > 2 else weighted:
        total += part
    return total


LIMITS = {"k": (math.inf, "a number, 0 or more"), "sigma": (1.0, "a number from 0 to 1")}
LIMITS["phi"] = (math.nextafter(1.0, 0.0), "a number from 0 to below 1")
# The highest value of each parameter, and its range in words; the lowest is 0.


@dataclass(frozen=True)
class Method:
    """A fusion method: `formula` gives one score per candidate from a pool and one weight per list; `reads` is "scores"
    (then it takes a norm) or "ranks"."""

    name: str
    formula: Callable[..., Floats]
    reads: str
    about: str
    weighted: bool = False

    @property
    def defaults(self) -> dict[str, float]:
        """Its parameters with their defaults."""
        arguments = signature(self.formula).parameters.values()
        return {p.name: p.default for p in arguments if p.kind is Parameter.KEYWORD_ONLY}

    @property
    def norm(self) -> str | None:
        """Its default normalisation; None for a method on ranks."""
        return "min-max" if self.reads == "scores" else None


@dataclass(frozen=True)
class Recipe:
    """A method with its norm, weights (None: all equal) and parameters, checked."""

    method: Method
    norm: str | None
    weights: tuple[float, ...] | None
    parameters: tuple[tuple[str, float], ...]

    @property
    def reads_scores(self) -> bool:
        """Whether the lists need scores."""
        return self.norm is not None and norm_named(self.norm).reads_scores

    def settings(self) -> dict[str, Any]:
        """As keyword arguments of `fuse`."""
        weights = None if self.weights is None else list(self.weights)
        chosen = {"method": self.method.name, "norm": self.norm, "weights": weights, **dict(self.parameters)}
        return {name: value for name, value in chosen.items() if value is not None}

    def __str__(self) -> str:
        parts = [f"{name}={value:g}" for name, value in self.parameters]
        if self.norm is not None:
            parts.append(f"norm={self.norm}")
        if self.weights is not None:
            parts.append(f"weights={':'.join(f'{weight:g}' for weight in self.weights)}")
        return ", ".join(parts) or "equal weights"

    def fused(self, lists: Sequence[Sequence[tuple[str, float]]]) -> list[tuple[str, float]]:
        """The fused list of the lists of one query; see `fuse_lists`."""
        documents, pool = pool_of_lists(lists)
        fused = self.scores(pool) if documents else np.zeros(0)
        return [(documents[position], float(fused[position])) for position in pool.best_first(fused).tolist()]

    def scores(self, pool: CandidatePool) -> Floats:
        """The fused score of every candidate; NaN for one that is only in lists of weight 0."""
        return self.scores_of(pool if self.norm is None else normalise(pool, self.norm))

    def scores_of(self, normalised: CandidatePool) -> Floats:
        """The same for a pool that is already normalised."""
        weights = np.ones(normalised.lists) if self.weights is None else np.array(self.weights)
        active = weights > 0
        if active.all():
            return self.method.formula(normalised, weights, **dict(self.parameters))
        kept = np.any(normalised.found[active], axis=0)
        part = normalised.part(kept, active)
        fused = np.full(normalised.size, np.nan)
        if part.size:
            fused[kept] = self.method.formula(part, weights[active], **dict(self.parameters))
        return fused


def fuse_lists(
    lists: Sequence[Sequence[tuple[str, float]]],
    method: str = "rrf",
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    **parameters: float,
) -> list[tuple[str, float]]:
    """Fuse the lists of one query: lists of (document id, score), best first, into one such list.

    Equal fused scores are in descending order of document id, as in `evaluate`.

    >>> fuse_lists([[("a", 9.0), ("b", 7.0)], [("b", 0.8), ("c", 0.1)]], "wsum", weights=[0.5, 0.5])
    [('b', 0.5), ('a', 0.5), ('c', 0.0)]
    >>> [doc for doc, _ in fuse_lists([[("a", 9.0), ("b", 7.0)], [("b", 0.8), ("c", 0.1)]], "rrf", k=60)]
    ['b', 'a', 'c']
    """
    return recipe(len(lists), method, norm, weights, **parameters).fused(lists)


def recipe(
    lists: int,
    method: str = "rrf",
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    **parameters: float,
) -> Recipe:
    """A method, norm, weights and parameters, checked for a number of lists. A norm of None is the method's default."""
    chosen = method_named(method)
    if norm is not None and chosen.norm is None:
        given = in_words(f"norm={norm!r}", f"--norm {norm}")
        raise InputError(f"{chosen.name} uses ranks, not scores, so {given} has no effect; leave it out.")
    used = norm_named(norm).name if norm is not None else chosen.norm
    checked, defaults = _weights(chosen, weights, lists), chosen.defaults
    for name, value in parameters.items():
        if name not in defaults:
            takes = f"it takes {', '.join(defaults)}" if defaults else "it takes none"
            raise InputError(f"{chosen.name} has no parameter {name!r}; {takes}.{did_you_mean(name, defaults)}")
        most, expected = LIMITS[name]
        if not is_number(value) or not 0 <= float(value) <= most:
            raise InputError(f"{chosen.name}: {name} is {value!r}; expected {expected}.")
    return Recipe(chosen, used, checked, tuple({**defaults, **parameters}.items()))


def method_named(name: str) -> Method:
    """The method of that name; an unknown name is an error.

    >>> method_named("CombSUM").name, method_named("logn_isr").name
    ('combsum', 'logn-isr')
    """
    plain = str(name).lower().replace("_", "-")
    plain = plain if plain in METHODS else _ALIASES.get(plain.replace("-", ""), plain)
    if plain not in METHODS:
        raise InputError(unknown_name("fusion method", name, METHODS))
    return METHODS[plain]


def _weights(method: Method, weights: Sequence[float] | None, lists: int) -> tuple[float, ...] | None:
    if weights is None:
        return None
    if not method.weighted:
        able = ", ".join(other.name for other in METHODS.values() if other.weighted)
        raise InputError(f"{method.name} takes no weights; these do: {able}.")
    try:
        given = tuple(float(weight) for weight in weights)
    except (TypeError, ValueError):
        raise InputError(f"weights are {weights!r}; expected one number per run, as in [0.7, 0.3].") from None
    if len(given) != lists:
        counts = f"{counted(len(given), 'weight')} for {counted(lists, 'run')}"
        raise InputError(f"{counts}; expected one per run, in the order of the runs.")
    if not all(0 <= weight < float("inf") for weight in given):
        raise InputError(f"weights are {list(given)}; expected finite numbers, none below 0.")
    if not any(given):
        raise InputError("all weights are 0; at least one must be positive.")
    return given


METHODS = {
    method.name: method
    for method in (
        Method("rrf", rrf, "ranks", "sum of w / (k + r)", True),
        Method("combsum", combsum, "scores", "sum of s"),
        Method("wsum", combsum, "scores", "sum of w s", True),
        Method("combmnz", combmnz, "scores", "N times the sum of s"),
        Method("combanz", combanz, "scores", "mean of s"),
        Method("combmax", combmax, "scores", "highest s"),
        Method("combmin", combmin, "scores", "lowest s"),
        Method("combmed", combmed, "scores", "median of s"),
        Method("borda", borda, "ranks", "sum of w (c - r + 1)", True),
        Method("isr", isr, "ranks", "N times the sum of w / r²", True),
        Method("logn-isr", logn_isr, "ranks", "log(N + sigma) times the sum of w / r²", True),
        Method("rbc", rbc, "ranks", "sum of w (1 - phi) phi^(r - 1)", True),
        Method("condorcet", condorcet, "ranks", "candidates beaten, ties count one half", True),
    )
}

_ALIASES = {
    "sum": "combsum", "mnz": "combmnz", "anz": "combanz", "max": "combmax", "min": "combmin", "med": "combmed",
    "bordafuse": "borda", "weightedsum": "wsum", "rankbiasedcentroid": "rbc", "reciprocalrank": "rrf",
    "lognisr": "logn-isr",
}  # fmt: skip


def fuse(
    runs: Sequence[Any] | Mapping[str, Any],
    method: str = "rrf",
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    name: str | None = None,
    depth: int | None = None,
    **parameters: float,
) -> Run:
    """Fuse runs: one list per query, from the lists of all runs.

    `runs` are two or more Runs, paths, mappings or frames. `method` is one of rrf (k=60), combsum, wsum, combmnz,
    combanz, combmax, combmin, combmed, borda, isr, logn-isr (sigma=0.01), rbc (phi=0.8) and condorcet. Methods on
    scores normalise each list first: `norm` is min-max (the default), max, sum, z, rank or none. `weights` (rrf, wsum,
    borda, isr, logn-isr, rbc, condorcet) are one per run; a run of weight 0 is not used. `depth` cuts the fused lists.

    The fused run has scores; equal ones are ordered by the tie policy of `evaluate`. A query that is missing from
    some runs is fused from the others, and `notes` has the number of such queries.

    >>> a, b = Run({"q": {"x": 3, "y": 2, "z": 1}}, "a"), Run({"q": ["y", "w"]}, "b")
    >>> fused = fuse([a, b], method="rrf", k=60)
    >>> fused.name, fused.frame["doc_id"].to_list()
    ('rrf(a,b)', ['y', 'x', 'w', 'z'])
    >>> round(1 / 62 + 1 / 61, 6) == fused.frame["score"].round(6)[0]
    True
    """
    read = read_runs(runs)
    chosen = recipe(len(read), method, norm, weights, **parameters)
    cut = None if depth is None else whole_number("depth", depth, 1, unit="documents")
    pooled = pool_runs(read, chosen.reads_scores)
    score = chosen.scores(pooled.pool) if pooled.queries else np.zeros(0)
    unused = [column for column, weight in enumerate(chosen.weights or ()) if weight == 0]
    notes = (*pooled.notes, *(note("fused-weight-0", run=label(read, column)) for column in unused))
    return fused_run(read, pooled, score, name or fused_name(read, chosen), notes, cut)


def read_runs(runs: Sequence[Any] | Mapping[str, Any]) -> list[Run]:
    """The runs to fuse; fewer than two are an error."""
    if isinstance(runs, Mapping):
        read = [Run.of(run, name=str(name)) for name, run in runs.items()]
    elif isinstance(runs, Sequence) and not isinstance(runs, (str, bytes)):
        read = [Run.of(run) for run in runs]
    else:
        raise InputError(f"the runs to fuse are {kind_of(runs)}; expected a list of runs, as in fuse([a, b]).")
    if len(read) < 2:
        raise InputError(f"expected two or more runs to fuse, got {'one' if read else 'none'}.")
    return read


def fused_run(
    runs: Sequence[Run], pooled: PooledRuns, score: Floats, name: str, notes: tuple[Note, ...], depth: int | None = None
) -> Run:
    """The run of the fused scores; candidates with a score of NaN are left out."""
    order = pooled.pool.best_first(score)
    rank = pooled.pool.ranks(order)
    if depth is not None:
        order, rank = order[rank <= depth], rank[rank <= depth]
    counts = pooled.pool.counts(order)
    empty = [*pooled.empty, *(q for q, count in zip(pooled.queries, counts.tolist(), strict=True) if not count)]
    queries = pl.Series(pooled.queries, dtype=pl.String).gather(np.repeat(np.arange(len(counts)), counts))
    rows = pl.DataFrame({"query_id": queries, "doc_id": pooled.documents(order), "score": score[order]})
    unanswered = pl.DataFrame({"query_id": empty}, schema={"query_id": pl.String})
    tokens, texts = _merged([run.tokens for run in runs]), _merged([run.texts for run in runs])
    fused = Run(pl.concat([rows, unanswered], how="diagonal"), name=name, tokens=tokens, texts=texts)
    # The rows are in the order of `frame` already.
    fused.__dict__["frame"] = rows.select("query_id", "doc_id", pl.Series("rank", rank), "score")
    fused.notes = notes
    return fused


def fused_name(runs: Sequence[Run], chosen: Recipe) -> str:
    """The method and the names of the runs."""
    of = ",".join(run.name for run in runs) if len(runs) <= 4 else f"{len(runs)} runs"
    return f"{chosen.method.name}({of})"


def _merged(values: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Values by document (lengths or texts) of all runs; where they differ, the first run's."""
    available = [by_doc for by_doc in values if by_doc is not None]
    return {doc: value for by_doc in reversed(available) for doc, value in by_doc.items()} if available else None
