"""How a gate tests."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.comparison.testing import Testing
from steelyard.errors import InputError, PolicyError, did_you_mean, problem_report
from steelyard.gate.inputs import Measured, measured
from steelyard.io.files import write_file
from steelyard.statistics.paired import PAIRED_TESTS
from steelyard.version import __version__
from steelyard.wording import counted, worded


@dataclass(frozen=True)
class Plan(Testing):
    """One-sided and paired by query; the correction is over all tests of the gate."""

    def checked(self) -> Plan:
        """The plan, if it can be carried out."""
        self.check(PAIRED_TESTS, "a gate cannot test by")
        if not 0.0 < self.alpha < 0.5:
            raise PolicyError(f"alpha is {self.alpha:g}; expected a share above 0 and below 0.5, as in 0.05.")
        return self

    def sentence(self, tests: int) -> str:
        """How it was tested, in a sentence; nothing where nothing was."""
        if not tests:
            return ""
        corrected = (
            f"{self.correction} correction over {tests} tests"
            if self.correction != "none" and tests > 1
            else "no correction"
        )
        return f"Tested by the paired {self.test} test over queries, one-sided, alpha {self.alpha:g}, {corrected}."


_FLAGS = ContextVar("flags", default=False)


@contextmanager
def as_flags() -> Iterator[None]:
    """Within it, advice names the options of the command line."""
    token = _FLAGS.set(True)
    try:
        yield
    finally:
        _FLAGS.reset(token)


def option(name: str, value: str | int) -> str:
    """An argument of `check` with its value, as it is written where the advice is read.

    >>> option("allow", "queries"), option("rules", "RR >= 0.4")
    ("allow='queries'", "rules=['RR >= 0.4']")
    >>> with as_flags():
    ...     option("allow_failed", 2), option("rules", "RR >= 0.4")
    ('--allow-failed 2', "--rule 'RR >= 0.4'")
    """
    if not _FLAGS.get():
        return f"{name}={[value]!r}" if name == "rules" else f"{name}={value!r}"
    flag = "rule" if name == "rules" else name.replace("_", "-")
    return f"--{flag} {shlex.quote(str(value))}"


def save_baseline(result: Any, path: str | Path, run: str | Sequence[str] | None = None) -> None:
    """Write the values per query of a result (anything `check` takes) for gates to be held against.

    `run` names the runs to keep; left out, all. The same result gives the same bytes.
    """
    source = measured(result)
    names = [run] if isinstance(run, str) else list(run or source.board.runs)
    write_file(Path(path), (baseline_json(source, names) + "\n").encode())


def baseline_json(source: Measured, runs: Sequence[str]) -> str:
    """The text of a baseline: JSON shaped like that of `evaluate`, values listed in the order of `measures`."""
    head: dict[str, Any] = {
        "steelyard": source.version if source.version != "unknown" else __version__,
        "dialect": source.dialect,
        "policies": source.policies,
        "dataset": source.dataset,
        "at": list(source.cutoffs) or None,
        "measures": {key: source.definitions.get(key, key) for key in source.keys},
    }
    parts = [f'"{name}": {_dumped(value)}' for name, value in head.items() if value is not None]
    if source.judgments is not None:
        parts.append(f'"judgments": {_lines(source.judgments)}')
    told = ",\n".join(_run_json(source, run) for run in runs)
    return "{" + ",\n ".join([*parts, f'"runs": [\n{told}\n]']) + "}"


def _run_json(source: Measured, run: str) -> str:
    place = source.run(run)
    means = source.board.means()[place].tolist()
    values = source.board.values[place].T.tolist()
    asked = zip(source.board.queries, values, source.answered(run).tolist(), strict=True)
    rows = {query: [_plain(value) for value in row] for query, row, known in asked if known}
    summed = {key: _plain(mean) for key, mean in zip(source.keys, means, strict=True)}
    return f'{{"name": {_dumped(run)},\n "means": {_dumped(summed)},\n "per_query": {_lines(rows)}}}'


def _lines(mapping: Mapping[str, Any]) -> str:
    """A mapping, one line an entry: what changes shows in a diff."""
    return (
        "{\n" + ",\n".join(f"  {_dumped(key)}: {_dumped(value)}" for key, value in mapping.items()) + "\n }"
    )


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


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
