"""Pairs that could not be tested: which runs, on which measures, and why."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.comparison.pairs import Pair
from steelyard.wording import SHOWN_NAMES, listed


def untested(tested: Sequence[Pair]) -> list[str]:
    """A note for every reason that pairs have no test; measures that no pair was tested on go before single pairs."""
    reasons: dict[str, list[Pair]] = {}
    for pair in tested:
        if pair.p != pair.p:
            reasons.setdefault(pair.reason, []).append(pair)
    return [note for reason, pairs in reasons.items() for note in _notes(reason, pairs, tested)]


def _notes(reason: str, pairs: Sequence[Pair], tested: Sequence[Pair]) -> list[str]:
    measures = list(dict.fromkeys(pair.measure for pair in tested))
    whole = [m for m in measures if all(pair in pairs for pair in tested if pair.measure == m)]
    if len(whole) == len(measures):
        return [f"No test of {_couple(pairs[0]) if _one_couple(tested) else 'any two runs'}: {reason}."]
    notes = [f"No test of any two runs on {listed(whole, SHOWN_NAMES)}: {reason}."] if whole else []
    single: dict[tuple[str, ...], list[str]] = {}
    couples: dict[str, list[str]] = {}
    for pair in pairs:
        if pair.measure not in whole:
            couples.setdefault(_couple(pair), []).append(pair.measure)
    for couple, on in couples.items():
        single.setdefault(tuple(on), []).append(couple)
    notes += [
        f"No test of {listed(names, SHOWN_NAMES)} on {listed(on, SHOWN_NAMES)}: {reason}."
        for on, names in single.items()
    ]
    return notes


def _couple(pair: Pair) -> str:
    return f"{pair.run} against {pair.baseline}"


def _one_couple(tested: Sequence[Pair]) -> bool:
    return len({(pair.run, pair.baseline) for pair in tested}) == 1
