"""evaluate(): judgments and a run in, Scores out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from steelyard.alignment.alignment import Aligned, Alignment, align
from steelyard.alignment.hits import Floats
from steelyard.coverage import (
    Levels,
    coverage_of,
    faintest_grade,
    level_of,
    with_unknown_documents,
    without_relevant,
)
from steelyard.dialects import Dialect, listed_measures
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import MeasureError, PolicyError, problem_report
from steelyard.measures.compute import Held, values
from steelyard.measures.grammar import Measure, build
from steelyard.options import Policies, policies
from steelyard.qrels import Qrels
from steelyard.run import Run, readable_again
from steelyard.scores import Inputs, Scores
from steelyard.wording import counted

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR@10", "R@100", "P@10")


def evaluate(
    qrels: Any,
    run: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    dialect: str | Dialect = "steelyard",
    missing: str | None = None,
    ties: str | None = None,
    duplicates: str | None = None,
    no_relevant: str | None = None,
    unjudged: str | None = None,
    rel: float | None = None,
    depth: int | None = None,
    name: str | None = None,
    roll_up: Any = None,
) -> Scores:
    """Measure a run against judgments.

    `qrels` and `run` may be Qrels and Run, paths, mappings, frames, records or named tuples, or ranx's
    own. `measures` are texts or measures, Steelyard's or those of ir_measures (left out: nDCG@10, AP, RR@10,
    R@100 and P@10); with a `dialect` they are that tool's names.
    `rel` is the lowest grade that counts as relevant where a measure does not say; `depth` cuts every list.
    The policies `missing`, `ties`, `duplicates`, `no_relevant` and `unjudged` are the dialect's unless
    given; `unjudged="remove"` measures condensed lists, of judged documents alone. `roll_up` measures a run
    of chunks at the level of their documents: a mapping of chunk to document, a function, the chunks, or a
    RollUp.

    >>> evaluate({"q1": ["a", "b"]}, {"q1": ["x", "a"]}, ["RR", "R@2"]).means
    {'RR': 0.5, 'R@2': 0.5}
    """
    spoken, rules, wanted = understood(
        measures,
        dialect,
        rel,
        depth,
        missing=missing,
        ties=ties,
        duplicates=duplicates,
        no_relevant=no_relevant,
        unjudged=unjudged,
    )
    if roll_up is not None:
        from steelyard.evidence.chunks import RollUp

        rolled = roll_up if isinstance(roll_up, RollUp) else RollUp(roll_up)
        run = rolled(Run.of(run, name))
    truth = Qrels.of(qrels)
    run = readable_again(run)
    aligned = with_unknown_documents(align(truth, run, rules.ordering, name), truth, run)
    return scores_of(aligned, wanted, spoken, rules, rel, depth, Inputs.of(qrels, truth, run))


def understood(
    measures: str | Measure | Sequence[str | Measure] | None,
    dialect: str | Dialect,
    rel: float | None,
    depth: int | None,
    **chosen: str | None,
) -> tuple[Dialect, Policies, dict[str, Measure]]:
    """What an evaluation is asked for: the dialect, the policies chosen in it, and the measures as written."""
    spoken = dialect_of(dialect)
    rules = policies(spoken.policies, **chosen)
    asked = (spoken.measures or DEFAULT_MEASURES) if measures is None else measures
    wanted = named_measures(asked, spoken, rel)
    check_depth(depth, rules)
    return spoken, rules, wanted


def check_depth(depth: int | None, rules: Policies) -> None:
    """Refuse a depth that cannot be kept: below 1, or one that would cut through tied documents."""
    if depth is not None and depth < 1:
        raise PolicyError(f"depth is {depth}; expected 1 or more.")
    if depth is not None and rules.ties == "expected":
        raise PolicyError(
            "depth cuts through tied documents, whose order ties=expected leaves open; use cutoffs instead."
        )


def named_measures(
    measures: str | Measure | Sequence[str | Measure], spoken: Dialect, rel: float | None = None
) -> dict[str, Measure]:
    """The measures asked for, keyed as they were written, each with those that go with it."""
    listed = spoken.expand(listed_measures(measures))
    if not listed:
        raise MeasureError("no measure was asked for; name at least one, as in nDCG@10.")
    named: dict[str, Measure] = {}
    for text in listed:
        meant = with_rel(spoken.measure(text), rel)
        named[str(text)] = meant
        if meant.definition.companion and str(text) == str(meant):
            named[f"{text} residual"] = _companion(meant)
    return named


def with_rel(meant: Measure, rel: float | None) -> Measure:
    """The measure at another relevance level, where it has one and does not say which."""
    parameter = meant.definition.parameter("rel")
    if rel is None or parameter is None or parameter.default is None or "rel" in dict(meant.given):
        return meant
    return meant(rel=rel)


def _companion(meant: Measure) -> Measure:
    from steelyard.measures.registry import definitions

    other = definitions()[str(meant.definition.companion)]
    shared = {key: value for key, value in meant.given if other.parameter(key) is not None}
    return build(other, shared, None if other.cutoff == "none" else meant.cutoff)


def scores_of(
    aligned: Aligned,
    wanted: dict[str, Measure],
    spoken: Dialect,
    rules: Policies,
    rel: float | None,
    depth: int | None,
    inputs: Inputs | None = None,
) -> Scores:
    """The scores of an alignment under the policies."""
    a = rules.lists(aligned.alignment, depth)
    levels = Levels.of(wanted, rel)
    coverage = coverage_of(aligned, a, rules, levels, deepest_cutoff(wanted))
    faint = levels.note(coverage.below_rel, faintest_grade(a))
    reach = (
        *out_of_reach(int(a.retrieved.max(initial=0)), wanted),
        *Held.of(a, wanted).unmet(wanted),
    )
    coverage = replace(coverage, notes=(*coverage.notes, *([faint] if faint else []), *reach))
    if rules.missing == "error" and coverage.missing:
        absent = list(compress(a.queries, (~a.answered).tolist()))
        raise missing_error(absent, coverage.missing, a.size, aligned.name)
    queries, matrix = query_values(a, wanted, rules, rel)
    return Scores(
        name=aligned.name,
        dialect=spoken.name,
        measures=wanted,
        queries=queries,
        matrix=matrix,
        coverage=coverage,
        rel=rel,
        depth=depth,
        inputs=inputs,
    )


def query_values(
    a: Alignment, wanted: Mapping[str, Measure], rules: Policies, rel: float | None
) -> tuple[list[str], Floats]:
    """The queries that the policies keep, and a row of their values for each measure."""
    kept = a.answered if rules.missing == "skip" else np.ones(a.size, dtype=bool)
    matrix = np.empty((len(wanted), int(kept.sum())))
    for row, meant in enumerate(wanted.values()):
        found: Floats = values(meant, a, expected=rules.ties == "expected")
        if rules.no_relevant == "skip" and meant.definition.needs_relevant:
            found = np.where(without_relevant(a, level_of(meant, rel)), np.nan, found)
        matrix[row] = found[kept]
    return list(a.queries if kept.all() else compress(a.queries, kept.tolist())), matrix


def deepest_cutoff(wanted: Mapping[str, Measure]) -> float:
    """The deepest rank that any of the measures looks at; infinite where one looks at all."""
    ranks = (
        m.cutoff if m.cutoff is not None and m.definition.cutoff_kind == "rank" else np.inf
        for m in wanted.values()
    )
    return max(ranks, default=np.inf)


def out_of_reach(longest: int, wanted: Mapping[str, Measure]) -> tuple[str, ...]:
    """A note on precision at a cutoff that the longest list is too short for."""
    beyond = {
        key: m.cutoff
        for key, m in wanted.items()
        if m.name == "P"
        and m.parameters["denominator"] == "k"
        and m.cutoff is not None
        and m.cutoff > longest > 0
    }
    return tuple(
        f"no list holds more than {counted(longest, 'document')}, so {key} cannot pass {longest / k:.2g}"
        for key, k in beyond.items()
    )


def missing_error(absent: Sequence[str], missing: int, queries: int, name: str) -> PolicyError:
    """What `missing="error"` raises; `absent` are the first of the `missing` queries, or all of them."""
    return PolicyError(
        problem_report(
            f"run {name!r} has no list for {missing:,} of "
            f"{counted(queries, 'judged query', 'judged queries')} (missing=error):",
            [f"query {query!r}" for query in absent],
            "Run those queries, or choose missing=zero or missing=skip.",
            total=missing,
        )
    )
