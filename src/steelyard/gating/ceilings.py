"""Ceilings of stages as measures of a gate: `ceiling(retrieve) nDCG@10`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.comparison.rules import Rule
from steelyard.comparison.scores import Column
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.gating.inputs import GateInput


def with_ceilings(source: GateInput, rules: Sequence[Rule], needed: bool = True) -> GateInput:
    """The input with a column for the ceiling that each rule names; runs without that stage have no values.

    Ceilings are computed from the stages of a result folder. A baseline file has those of the rules in bench.yaml. If
    they are `needed`, a stage that no run has is an error.
    """
    wanted = {rule.measure: rule.ceiling for rule in rules if rule.ceiling and rule.measure not in source.keys}
    if not wanted or source.folder is None:
        return source
    from steelyard.benchmark.comparison import staged_runs
    from steelyard.benchmark.folder import read_record, stages_of

    runs = [run for run in staged_runs(read_record(source.folder)) if run in source.scores.runs]
    places = {query: place for place, query in enumerate(source.scores.queries)}
    columns, definitions, added = [], dict(source.definitions), []
    for key, (stage, measure) in wanted.items():
        values = np.full((len(source.scores.runs), len(places)), np.nan)
        known: list[str] = []
        for run in runs:
            try:
                split = stages_of(source.folder, run, measure)
            except MeasureError as error:
                raise InputError(f"{key}: {error}") from None
            known += split.steps
            if stage in split.steps:
                chosen = [places[query] for query in split.queries]
                values[source.run(run), chosen] = split.ceilings[split.steps.index(stage)]
                definitions[key] = f"ceiling({stage}) {split.measure.spelled}"
        if stage not in known and needed:
            has = f"the stages are {', '.join(dict.fromkeys(known))}" if known else "no run has stages"
            raise InputError(f"{key}: {source.name} has no stage {stage!r}; {has}.{did_you_mean(stage, known)}")
        if stage in known:
            columns.append(Column(key))
            added.append(values)
    if not added:
        return source
    scores = replace(
        source.scores,
        columns=(*source.scores.columns, *columns),
        values=np.concatenate([source.scores.values, np.stack(added, axis=1)], axis=1),
    )
    return replace(source, scores=scores, definitions=definitions)


def has_stage(source: GateInput, run: str, rule: Rule, key: str) -> bool:
    """Whether a rule is about a run: one on the ceiling of a stage is only about the runs that have that stage."""
    return rule.ceiling is None or not np.isnan(source.values(run, key)).all()
