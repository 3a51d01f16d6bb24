"""An answer key from a mapping of queries: what each needs and what misleads it, all problems said at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.errors import InputError, problem_report
from steelyard.evidence.alternatives import Alternative, alternative_of
from steelyard.ids import kind_of, text_ids
from steelyard.wording import counted

Targets = tuple[tuple[Alternative, ...], ...]

PARTS = ("targets", "distractors")
_EXPECTED = (
    "Expected targets, each one thing or a list of things that satisfy it: "
    "{'doc_id': ..}, {'doc_id': .., 'start': .., 'end': ..}, {'fact': ..}, {'parent': ..}, "
    "{'page': ..}, {'hash': ..}; conditions in one dict must all hold. "
    "Beside targets there may be distractors: {'targets': [..], 'distractors': [..]}, or a grade below 0."
)


@dataclass(frozen=True)
class Answer:
    """One query's part of the key: its targets (none: nothing answers it), and what is known to mislead."""

    targets: Targets = ()
    distractors: tuple[Alternative, ...] = ()


def answers_of(source: Mapping[Any, Any], null: Iterable[str]) -> dict[str, Answer]:
    """Every query's targets and distractors, checked; a query marked null (or given None) has no targets."""
    queries = text_ids(source, "query id", "the evidence", unique=True)
    without = set(text_ids(null, "query id", "null"))
    problems = [
        f"query {query!r} is marked null and has no entry" for query in sorted(without - set(queries))
    ]
    found: dict[str, Answer] = {}
    for query, value in zip(queries, source.values(), strict=True):
        answer = _answer(query, value, query in without, problems)
        if answer.targets and query in without:
            problems.append(f"query {query!r} is marked null and has evidence")
        found[query] = answer
    if problems:
        heading = f"the evidence has {counted(len(problems), 'problem')}:"
        raise InputError(problem_report(heading, problems, _EXPECTED))
    return found


def _answer(query: str, value: Any, null: bool, problems: list[str]) -> Answer:
    """The answer of one query; what is wrong with it goes into `problems`."""
    in_parts = isinstance(value, Mapping) and value and set(value) <= set(PARTS)
    wanted = value.get("targets") if in_parts else value
    misleading = (value.get("distractors") or ()) if in_parts else ()
    null, wanted = null or wanted is None, () if wanted is None else wanted
    if not _is_list(wanted):
        problems.append(f"query {query!r}: {kind_of(wanted)}, not a list of targets")
        return Answer()
    if not _is_list(misleading):
        problems.append(f"query {query!r}: its distractors are {kind_of(misleading)}, not a list of dicts")
        return Answer()
    if not wanted and not misleading and not null:
        problems.append(
            f"query {query!r}: no evidence, and not marked null (null=[...], or None for its list)"
        )
    targets: list[tuple[Alternative, ...]] = []
    distractors: list[Alternative] = []
    for number, target in enumerate(wanted, start=1):
        where = f"query {query!r}, target {number}"
        ways = _ways(target, where, problems)
        mislead = [way for way in ways if way.misleads]
        if mislead and len(mislead) < len(ways):
            problems.append(f"{where}: a distractor among what satisfies it ({mislead[0]}); list it apart")
        elif mislead:
            distractors += mislead
        else:
            targets.append(ways)
    for number, way in enumerate(misleading, start=1):
        distractors += _ways(way, f"query {query!r}, distractor {number}", problems, distractor=True)
    return Answer(tuple(targets), tuple(distractors))


def _ways(given: Any, where: str, problems: list[str], distractor: bool = False) -> tuple[Alternative, ...]:
    """One dict or several, as alternatives."""
    listed = [given] if isinstance(given, (Mapping, Alternative)) else given
    if not _is_list(listed) or not listed:
        said = repr(listed)[:60] if isinstance(listed, (str, bytes, list, tuple)) else kind_of(listed)
        problems.append(f"{where}: {said} is not a dict or a list of dicts")
        return ()
    made = []
    for way in listed:
        try:
            made.append(alternative_of(way, distractor))
        except InputError as error:
            problems.append(f"{where}: {error}")
    return tuple(made)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
