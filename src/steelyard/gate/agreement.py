"""Whether a result and a baseline may be held against each other: an error where the verdict would mean nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from steelyard.errors import InputError, did_you_mean, problem_report
from steelyard.gate.advice import option
from steelyard.gate.measured import Measured
from steelyard.wording import counted, worded

CHANGES = ("queries", "judgments")
"""What may be allowed to differ: queries that are gone, and judgments of the same queries."""

SHOWN = 3


def check_allowed(allow: Collection[str]) -> None:
    """Refuse a change that is none of those that can be allowed."""
    for change in allow:
        if change not in CHANGES:
            raise InputError(
                f"{change!r} cannot be allowed to differ; expected {' or '.join(CHANGES)}.{did_you_mean(change, CHANGES)}"
            )


def check_measuring(now: Measured, base: Measured, keys: Iterable[str]) -> list[str]:
    """Refuse measures that mean something else in the baseline; warnings for what is worth knowing."""
    problems = [
        f"{key} is {now.definitions[key]} in {now.name} and {base.definitions[key]} in {base.name}"
        for key in keys
        if now.definitions[key] != base.definitions[key]
    ]
    if now.policies is not None and base.policies is not None:
        problems += [
            f"{name} is {value} in {now.name} and {base.policies[name]} in {base.name}"
            for name, value in now.policies.items()
            if name in base.policies and base.policies[name] != value
        ]
    if problems:
        raise InputError(
            problem_report(
                "the result and the baseline were measured differently, so their numbers cannot be held against each other:",
                problems,
                "Measure both alike: make the baseline again from the old runs, or change the result's settings back.",
            )
        )
    said = []
    if now.dialect != base.dialect:
        said.append(
            f"The dialect is {now.dialect} in {now.name} and {base.dialect} in {base.name}; the measures held against each other mean the same."
        )
    if now.version != base.version:
        said.append(
            f"{now.name} was measured by Steelyard {now.version}, {base.name} by {base.version}; make the baseline again if values moved that should not."
        )
    if now.dataset and base.dataset and now.dataset.get("fingerprint") != base.dataset.get("fingerprint"):
        said.append(
            f"The dataset is not the one of the baseline ({now.dataset.get('name')} {now.dataset.get('fingerprint')}, "
            f"{base.dataset.get('name')} {base.dataset.get('fingerprint')}): documents, queries or judgments changed."
        )
    if now.judgments is None or base.judgments is None:
        which = now.name if now.judgments is None else base.name
        said.append(
            f"{which} does not say which judgments it was measured by; that they are the same is taken on trust."
        )
    return said


def check_queries(now: Measured, base: Measured, run: str, other: str, allow: Collection[str]) -> list[str]:
    """Refuse queries that are gone or judged anew since the baseline, unless allowed; warnings."""
    mine = _known(now, run)
    theirs = _known(base, other)
    held = set(mine)
    common = [query for query in theirs if query in held]
    if not common:
        raise InputError(
            f"run {run!r} of {now.name} and run {other!r} of {base.name} have no query in common "
            f"({_some(mine)} and {_some(theirs)}); they are of two question sets."
        )
    said = []
    gone = [query for query in theirs if query not in held]
    if gone:
        lacking = worded(len(gone), "has", "have")
        told = (
            f"{len(gone):,} of the baseline's {counted(len(theirs), 'query', 'queries')} {lacking} no value "
            f"in run {run!r} ({_some(gone)})"
        )
        if "queries" not in allow:
            raise InputError(
                f"{told}; a run must not pass by leaving queries out. Run them, make the baseline again, "
                f"or allow it: {option('allow', 'queries')}."
            )
        said.append(f"{told} and {worded(len(gone), 'is', 'are')} left out.")
    shared = set(common)
    new = [query for query in mine if query not in shared]
    if new:
        said.append(
            f"{len(new):,} of the {counted(len(mine), 'query', 'queries')} of run {run!r} "
            f"{worded(len(new), 'is', 'are')} not in the baseline ({_some(new)}); "
            f"it is held against the baseline on the {len(common):,} that both have."
        )
    if now.judgments is not None and base.judgments is not None:
        changed = [query for query in common if now.judgments.get(query) != base.judgments.get(query)]
        if changed:
            told = (
                f"{len(changed):,} of {counted(len(common), 'query', 'queries')} "
                f"{worded(len(changed), 'is', 'are')} "
                f"judged otherwise than in the baseline ({_some(changed)})"
            )
            if "judgments" not in allow:
                raise InputError(
                    f"{told}: a change of the answer key would be taken for a change of the retriever. "
                    f"Make the baseline again with these judgments, or allow it: {option('allow', 'judgments')}."
                )
            said.append(f"{told}: part of the change may be the answer key's.")
    return said


def _known(source: Measured, run: str) -> list[str]:
    answered = source.answered(run).tolist()
    return [query for query, known in zip(source.board.queries, answered, strict=True) if known]


def _some(queries: Sequence[str]) -> str:
    return ", ".join(queries[:SHOWN]) + (", ..." if len(queries) > SHOWN else "")
