"""Baselines: writing one, taking one from a history, and checking that a result can be compared with it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.benchmark.folder import version_of
from steelyard.benchmark.history import digest, read_history
from steelyard.comparison.history import Point
from steelyard.comparison.rules import parse_rules
from steelyard.comparison.scores import COMPOSITE
from steelyard.errors import InputError, did_you_mean, problem_report
from steelyard.gating.decisions import stored_lists
from steelyard.gating.inputs import GateInput, gate_input, with_ceilings
from steelyard.gating.notes import JUDGMENTS_CHANGED, QUERIES_MISSING
from steelyard.gating.result import option
from steelyard.io.files import write_file
from steelyard.notes import Note, fill, note
from steelyard.options import Options
from steelyard.report.documents import plain_values
from steelyard.scores import settings_of
from steelyard.version import __version__

CHANGES = ("queries", "judgments")  # That may be allowed: missing queries, and other judgments of the same queries.
EXAMPLES = 4  # Example queries that a note keeps; it shows three, and "..." if there are more.


def save_baseline(result: Any, path: str | Path, run: str | Sequence[str] | None = None) -> None:
    """Write the values per query of a result (anything `gate` accepts), for gates to compare with.

    `run` names the runs to keep; default: all that were measured. The same result gives the same bytes.
    """
    source = gate_input(result)
    source = with_ceilings(source, parse_rules(source.rules))
    measured = [name for name in source.scores.runs if name not in source.unmeasured]
    names = [run] if isinstance(run, str) else list(run or measured or source.scores.runs)
    for name in names:
        source.check_measured(name)
    write_file(Path(path), (_baseline_json(source, names) + "\n").encode())


def _baseline_json(source: GateInput, runs: Sequence[str]) -> str:
    """JSON like that of `evaluate`; values in the order of `measures`, `lists` has the first documents, if known."""
    head = _head(source, source.version if source.version != "unknown" else __version__)
    parts = [f'"{name}": {_dumped(value)}' for name, value in head.items() if value is not None]
    if source.judgments is not None:
        parts.append(f'"judgments": {_lines(source.judgments)}')
    lists = {run: stored_lists(source, run) for run in runs}
    depth = max((stored[0] for stored in lists.values() if stored is not None), default=0)
    parts += [f'"list_depth": {depth}'] if depth else []
    by_rule = {rule: replace(source, scores=table) for rule, table in source.overlaps.items()}
    overlaps = [f'"{rule}": {_runs_json(variant, dict.fromkeys(runs))}' for rule, variant in by_rule.items()]
    parts += [f'"overlaps": {{{", ".join(overlaps)}}}'] if overlaps else []
    return "{" + ",\n ".join([*parts, f'"runs": {_runs_json(source, lists)}']) + "}"


def _head(source: GateInput, version: str) -> dict[str, Any]:
    """What a baseline says of how its values were measured."""
    return {
        "steelyard": version,
        "dialect": source.dialect,
        "policies": source.policies,
        "dataset": source.dataset,
        "at": list(source.cutoffs) or None,
        "measures": {key: source.definitions.get(key, key) for key in source.keys},
    }


def _runs_json(source: GateInput, lists: Mapping[str, tuple[int, dict[str, list[str]]] | None]) -> str:
    parts = []
    for run, depth_and_lists in lists.items():
        place = source.run(run)
        answered = zip(source.scores.queries, source.scores.values[place].T.tolist(), source.answered(run), strict=True)
        rows = {query: plain_values(row) for query, row, has_value in answered if has_value}
        means = dict(zip(source.keys, plain_values(source.scores.means()[place].tolist()), strict=True))
        stored = "" if depth_and_lists is None else f',\n "lists": {_lines(depth_and_lists[1])}'
        named = f'{{"name": {_dumped(run)},\n "means": {_dumped(means)}'
        parts.append(f'{named},\n "per_query": {_lines(rows)}{stored}}}')
    return "[\n" + ",\n".join(parts) + "\n]"


def _lines(mapping: Mapping[str, Any]) -> str:
    """A mapping with one line per entry, so that a diff shows what changed."""
    if not mapping:
        return "{}"
    return "{\n" + ",\n".join(f"  {_dumped(key)}: {_dumped(value)}" for key, value in mapping.items()) + "\n }"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def definition_notes(result: GateInput, baseline: GateInput, keys: Iterable[str]) -> list[Note]:
    """Raise if measures or policies differ from those of the baseline; notes on other differences."""
    policies, others = result.policies or {}, baseline.policies or {}
    compared = [(key, result.definitions[key], baseline.definitions[key]) for key in keys]
    compared += [(name, value, others[name]) for name, value in policies.items() if name in others]
    problems = [
        f"{name} is {value} in {result.name} and {other} in {baseline.name}"
        for name, value, other in compared
        if value != other
    ]
    if problems:
        headline = "the result and the baseline were measured differently, so their numbers cannot be compared:"
        advice = "write the baseline again from the old runs, or undo the change of settings."
        raise InputError(problem_report(headline, problems, f"Measure both in the same way: {advice}"))
    notes = []
    for code, name in (("gate-dialects-differ", "dialect"), ("gate-versions-differ", "version")):
        values = {name: getattr(result, name), f"baseline_{name}": getattr(baseline, name)}
        if len(set(values.values())) > 1:
            notes.append(note(code, result=result.name, baseline=baseline.name, **values))
    data, other = result.dataset or {}, baseline.dataset or {}
    if data and other and data.get("fingerprint") != other.get("fingerprint"):
        of_both = {"": data, "baseline_": other}
        named = {f"{of}{key}": str(facts.get(key)) for of, facts in of_both.items() for key in ("name", "fingerprint")}
        notes.append(note("gate-datasets-differ", **named))
    unknown = [source.name for source in (result, baseline) if source.judgments is None]
    return notes + [note("gate-qrels-unknown", source=name) for name in unknown[:1]]


def query_notes(
    result: GateInput, baseline: GateInput, run: str, baseline_run: str, allow: Collection[str]
) -> list[Note]:
    """Raise if queries are missing or have other judgments than in the baseline, unless allowed; notes."""
    queries, other = result.queries_of(run), baseline.queries_of(baseline_run)
    measured = set(queries)
    shared = [query for query in other if query in measured]
    if not shared:
        first, second = (", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "") for ids in (queries, other))
        raise InputError(
            f"run {run!r} of {result.name} and run {baseline_run!r} of {baseline.name} have no query in common "
            f"({first} and {second}); they belong to different sets of queries."
        )
    notes = []
    missing = [query for query in other if query not in measured]
    if missing:
        values = {**_counts(missing, other), "run": run}
        if "queries" not in allow:
            raise InputError(
                f"{fill(QUERIES_MISSING, values)}; a run must not pass by leaving queries out. Run them, write the "
                f"baseline again, or allow it: {option('allow', 'queries')}."
            )
        notes.append(note("gate-queries-missing", **values))
    common = set(shared)
    new = [query for query in queries if query not in common]
    if new:
        counts = {"count": len(new), "queries": len(queries), "shared": len(shared)}
        notes.append(note("gate-queries-new", run=run, examples=new[:EXAMPLES], **counts))
    if result.judgments is None or baseline.judgments is None:
        return notes
    changed = [query for query in shared if result.judgments.get(query) != baseline.judgments.get(query)]
    if changed:
        values = _counts(changed, shared)
        if "judgments" not in allow:
            raise InputError(
                f"{fill(JUDGMENTS_CHANGED, values)}: a change of the qrels would look like a change of the retriever. "
                f"Write the baseline again with these qrels, or allow it: {option('allow', 'judgments')}."
            )
        notes.append(note("gate-judgments-changed", **values))
    return notes


def _counts(some: Sequence[str], queries: Sequence[str]) -> dict[str, Any]:
    """Some of the queries, as values of a note."""
    return {"count": len(some), "queries": len(queries), "examples": tuple(some[:EXAMPLES])}


# A baseline from the history of a bench: the best, the last, or a commit

PREFIX = "history:"  # Of a baseline that is one of a history.


def history_baseline(baseline: str, result: GateInput) -> GateInput:
    """The values of a comparable point of the history, or for `best` of the best of every run by the first measure."""
    name = baseline.removeprefix(PREFIX)
    if result.history is None:
        advice = "`history: FILE` in bench.yaml keeps one"
        raise InputError(f"{result.name} has no history, so there is no {baseline}; {advice}.")
    points = _comparable([Point(record) for record in read_history(result.history)], result)
    # Runs that the result does not have are kept, too: a run that was renamed has no baseline, and the gate says so.
    if name == "best":
        names = dict.fromkeys(run for point in points for run in point.record["runs"])
        runs = {run: _best(points, run, result) for run in names}
    else:
        chosen_point = points[-1] if name == "last" else _at(points, name)
        runs = dict.fromkeys(chosen_point.record["runs"], chosen_point)
    run_records: list[dict[str, Any]] = []
    for run, chosen in runs.items():
        if chosen is not None and chosen.record["runs"].get(run):
            rows: dict[str, dict[str, float]] = {}
            for key in result.keys:
                for query, value in chosen.values(run, key).items():
                    rows.setdefault(query, {})[key] = value
            run_records.append({"name": run, "per_query": rows})
    shown = ", ".join(dict.fromkeys(point.label for point in runs.values() if point is not None))
    content = _head(result, max((point.record for point in points), key=version_of).get("steelyard", ""))
    content |= {"judgments": result.judgments, "runs": run_records}
    source = gate_input(content, f"{baseline} ({shown})")
    if name != "best":
        return source
    candidates = {
        run: [{key: point.values(run, key) for key in result.keys} for point in points if point.record["runs"].get(run)]
        for run in runs
    }
    return replace(source, chosen_from=candidates)


def _comparable(points: Sequence[Point], result: GateInput) -> list[Point]:
    """The points of the same dataset that do not break the line of the result, without its own, just added."""
    fingerprint = (result.dataset or {}).get("fingerprint")
    settings = settings_of(result.dialect, Options(**(result.policies or {})))
    defined = {key: result.definitions[key] for key in result.keys if result.column(key).measure is not None}
    defined |= {key: digest(result.weights) for key in result.keys if key.partition(" at ")[0] == COMPOSITE}
    comparable = []
    for point in points:
        measures = point.record["measures"]
        line = Point({**point.record, "measures": {**measures, **defined}, "settings": settings})
        same = set(result.keys) <= measures.keys() and not any(line.breaks(point, key) for key in result.keys)
        if same and point.record["fingerprints"].get("dataset") == fingerprint:
            comparable.append(point)
    if comparable and _is_result(comparable[-1], result):
        comparable = comparable[:-1]
    if not comparable:
        raise InputError(
            f"no earlier line of {result.history} has the dataset and the definitions of {result.name}, so there is "
            "nothing to compare with. Lines with other data, measures, weights or settings were measured differently."
        )
    return comparable


def _is_result(point: Point, result: GateInput) -> bool:
    """Whether a point has the values of the result."""
    queries = result.scores.queries
    return all(
        {query: value for query, value in zip(queries, row.tolist(), strict=True) if not math.isnan(value)}
        == point.values(run, key)
        for run in result.scores.runs
        for key, row in zip(result.keys, result.scores.values[result.run(run)], strict=True)
    )


def _best(points: Sequence[Point], run: str, result: GateInput) -> Point | None:
    key = result.keys[0]
    sign = -1.0 if result.column(key).better == "less" else 1.0
    measured = [(sign * recorded[0], point) for point in points if (recorded := point.recorded(run, key))]
    return max(measured, key=lambda pair: pair[0], default=(0.0, None))[1]


def _at(points: Sequence[Point], commit: str) -> Point:
    matching = [point for point in points if commit and str(point.record.get("commit") or "").startswith(commit)]
    if not matching:
        labels = [*dict.fromkeys(point.label for point in points)][-6:]
        expected = f"expected best, last or one of {', '.join(labels)}.{did_you_mean(commit, ['best', 'last'])}"
        raise InputError(f"the history has no comparable line of the commit {commit!r}; {expected}")
    return matching[-1]
