"""The settings that tuning tries: every combination of a grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import comb
from typing import Any

from steelyard.errors import InputError, did_you_mean
from steelyard.fusion.methods import Method, Recipe, method_named, recipe
from steelyard.fusion.normalise import NORMS

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
