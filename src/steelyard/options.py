"""Policies: what is done in each edge case. One choice each, and every result says which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from steelyard.alignment.hits import DuplicateRule, Ordering, TieRule
from steelyard.errors import PolicyError, did_you_mean

if TYPE_CHECKING:
    from steelyard.alignment.alignment import Alignment


@dataclass(frozen=True)
class Policies:
    """`missing`: a query judged but not in the run. `no_relevant`: one without a relevant document.

    `ties`: the order of equal scores. `duplicates`: a document twice in a list. `single`: whether
    scores are compared as 32-bit floats. `unjudged`: documents of a list that its query did not judge.
    """

    missing: Literal["zero", "skip", "error"] = "zero"
    no_relevant: Literal["zero", "skip"] = "zero"
    ties: TieRule = "docid-desc"
    duplicates: DuplicateRule = "hold"
    single: bool = False
    unjudged: Literal["keep", "remove"] = "keep"

    @property
    def ordering(self) -> Ordering:
        """The policies that put a list in order."""
        return Ordering(self.ties, self.duplicates, self.single)

    def lists(self, a: Alignment, depth: int | None) -> Alignment:
        """An alignment made under `ordering`, as it is measured: without unjudged documents if so asked, cut."""
        if self.unjudged == "remove":
            return a.without_unjudged().cut(depth)
        if self.duplicates == "collapse" and len(a.repeats.rank):
            a = replace(a, repeats=replace(a.repeats, held=False))
        return a.cut(depth)

    def said(self, rel: float | None = None, depth: int | None = None) -> str:
        """The policies that are not the default ones, with the relevance level and the depth where given.

        >>> Policies(missing="skip").said(rel=2, depth=1_000_000)
        'missing=skip, rel=2, depth=1000000'
        """
        standard = Policies()
        chosen = {name: value for name, value in vars(self).items() if value != getattr(standard, name)}
        levels = {"rel": None if rel is None else f"{rel:g}", "depth": depth}
        chosen |= {name: value for name, value in levels.items() if value is not None}
        return ", ".join(f"{name}={value}" for name, value in chosen.items())


def policies(defaults: Mapping[str, Any], **chosen: Any) -> Policies:
    """Policies from a dialect's defaults and what the user chose (None: not chosen).

    >>> policies({"missing": "skip"}, ties="stable", missing=None).missing
    'skip'
    """
    values = {**defaults, **{name: value for name, value in chosen.items() if value is not None}}
    for name, allowed in _choices().items():
        if values.get(name, allowed[0]) not in allowed:
            value = values[name]
            raise PolicyError(
                f"{name}={value!r} is not a policy; expected {', '.join(allowed)}.{did_you_mean(str(value), allowed)}"
            )
    return Policies(**values)


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """What each policy may be, but for `single`, which is a flag."""
    return {name: get_args(hint) for name, hint in get_type_hints(Policies).items() if get_args(hint)}
