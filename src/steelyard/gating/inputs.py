"""The inputs of a gate: the value of every run, measure and query, read from a result, a baseline or Scores."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.comparison.compare import measure_at
from steelyard.comparison.judged import Part
from steelyard.comparison.rules import Rule
from steelyard.comparison.scores import COMPOSITE, Column, ScoreTable, column_named
from steelyard.coverage import none_judged
from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.evaluation import named_measures
from steelyard.io.files import is_stream, read_bytes, reading
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure, with_rel
from steelyard.options import POLICIES, resolve
from steelyard.run import Run
from steelyard.scores import Scores
from steelyard.version import __version__
from steelyard.wording import counted

RESIDUAL = " residual"

EXPECTED = (
    "expected a result folder of `steelyard bench`, or JSON with values per query, as "
    "`steelyard gate RESULT --save-baseline baseline.json` or "
    "`steelyard evaluate QRELS RUN --per-query --format json -o result.json` writes it"
)

HIGHEST_VALUE = 1e150  # No measure has values beyond this, and the squares of larger ones cannot be summed.


@dataclass(frozen=True)
class QueryFailures:
    """The number of queries that a run failed on, the number of all its queries, and the first error."""

    failed: int
    queries: int
    first: str

    def __str__(self) -> str:
        return f"it failed on {self.failed:,} of {counted(self.queries, 'query', 'queries')} (the first, {self.first})"


@dataclass(frozen=True, eq=False)
class GateInput:
    """Values per query, and how they were measured.

    name: what messages call it. policies, judgments (a short hash per query), dataset: None where they are not known.
    texts, columns: of the queries. rules, allow_failed: from `gate:` in bench.yaml. unknown_documents: per run, the
    number of documents that are not in the corpus. unmeasured: why the values of a run mean nothing. sessions: when the
    times of each run were measured. files: the run files of a folder. lists: the first `list_depth` documents of every
    query of a run, in a baseline; empty if no rule needs them. chunked: the bench has chunkers, each with its own
    judgments. overlaps: the values by each overlap rule, if the evidence has spans. history: the file that the bench
    adds a line to. chosen_from: the values of all that a run is the best of.
    """

    name: str
    scores: ScoreTable
    dialect: str = "steelyard"
    version: str = __version__
    definitions: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, Any] | None = None
    judgments: Mapping[str, str] | None = None
    dataset: Mapping[str, Any] | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cutoffs: tuple[int, ...] = ()
    folder: Path | None = None
    rules: tuple[str, ...] = ()
    unknown_documents: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, QueryFailures] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    sessions: Mapping[str, str] = field(default_factory=dict)
    allow_failed: int = 0
    weights: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    lists: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    list_depth: int | None = None
    chunked: bool = False
    overlaps: Mapping[str, ScoreTable] = field(default_factory=dict)
    history: Path | None = None
    chosen_from: Mapping[str, Sequence[Mapping[str, Mapping[str, float]]]] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """The measures, as they were written."""
        return [column.key for column in self.scores.columns]

    def column(self, key: str) -> Column:
        return self.scores.columns[self.scores.column(key)]

    def key(self, text: str) -> str:
        """The measure that a rule names: as it was written, or another spelling of it."""
        if text in self.keys:
            return text
        definition = ""
        with suppress(MeasureError):
            definition = dialect_of(self.dialect).measure(text).spelled
        for key, recorded in self.definitions.items():
            if (definition and recorded == definition) or key.lower() == text.lower():
                return key
        has = f"{', '.join(self.keys)}.{did_you_mean(text, self.keys)}"
        raise MeasureError(f"{text!r} is not measured in {self.name}, which has {has}")

    def run(self, name: str) -> int:
        """The position of a run."""
        runs = self.scores.runs
        if name not in runs:
            expected = f"expected one of {', '.join(runs)}.{did_you_mean(name, runs)}"
            raise InputError(f"there is no run {name!r} in {self.name}; {expected}")
        return runs.index(name)

    def check_measured(self, run: str) -> None:
        if run in self.unmeasured:
            raise InputError(f"run {run!r} of {self.name} was not measured: {self.unmeasured[run]}.")

    def run_lists(self, run: str) -> Run | None:
        """The lists of a run, if they are known."""
        if run in self.files:
            return Run.read(self.files[run], format="parquet", name=run)
        return Run(self.lists[run], name=run) if self.lists.get(run) else None

    def parts(self, key: str) -> list[Part]:
        """The measures that a column is made of: its own, or those of the composite; none if they are not known."""
        column = self.column(key)
        if column.measure is not None:
            return [Part(column.measure)]
        at = {COMPOSITE: None, **{f"{COMPOSITE} at {k}": k for k in self.cutoffs}}
        if key not in at:
            return []
        weights = [(measure_at(name, at[key], dialect_of(self.dialect), False), w) for name, w in self.weights.items()]
        return [Part(measure, weight, measure.definition.better == "less") for measure, weight in weights]

    def values(self, run: str, key: str) -> Floats:
        """The values of a run and measure, one per query; NaN where there is none."""
        return np.asarray(self.scores.of(key)[self.run(run)])

    def answered(self, run: str) -> Bools:
        """Whether a run has any value for each query."""
        return np.asarray(~np.isnan(self.scores.values[self.run(run)]).all(axis=0))

    def queries_of(self, run: str) -> list[str]:
        """The queries that a run has any value for."""
        return list(compress(self.scores.queries, self.answered(run).tolist()))


def gate_input(source: Any, name: str = "the result") -> GateInput:
    """Read values per query from a path, Scores, a bench result, or a mapping like the JSON of `evaluate`."""
    if isinstance(source, GateInput):
        return source
    if isinstance(source, Scores):
        columns = _columns(list(source.measures), source.dialect)
        table = ScoreTable((source.name,), columns, tuple(source.queries), source.matrix[None, :, :])
        definitions = {key: measure.spelled for key, measure in source.measures.items()}
        return GateInput(name, table, source.dialect, definitions=definitions, policies=source.policies)
    if isinstance(source, Mapping):
        return _from_json(source, name)
    if not isinstance(source, (str, Path)):
        from steelyard.benchmark.folder import folder_of

        if isinstance(folder := folder_of(source), Path):
            return _from_folder(folder, str(folder))
        raise InputError(f"a gate cannot check a {type(source).__name__}; {EXPECTED}, or Scores.")
    path = Path(source)
    with reading(path):
        if path.is_dir():
            return _from_folder(path, str(source))
        if not path.is_file() and not is_stream(path):
            raise InputError(f"{source} does not exist; {EXPECTED}.")
        content = _read_json(path)
        if "comparison" in content and "settings" in content:
            return _from_folder(path.parent, str(source))
        return _from_json(content, str(source))


def _columns(
    keys: Sequence[str], dialect: str, cutoffs: Sequence[int] = (), rel: float | None = None
) -> tuple[Column, ...]:
    """The columns of keys in a dialect; `rel` is the lowest relevant grade for measures that do not state one."""
    columns, chosen = [], dialect_of(dialect)
    for key in keys:
        base, k = next(((key.removesuffix(f" at {k}"), k) for k in cutoffs if key.endswith(f" at {k}")), (key, None))
        try:
            measure = None if base == COMPOSITE else with_rel(_measure(base, k, chosen), rel)
        except MeasureError:
            columns.append(column_named(key))
        else:
            columns.append(Column(key) if measure is None else Column(key, measure.definition.better, measure))
    return tuple(columns)


def _definitions(columns: Iterable[Column]) -> dict[str, str]:
    return {column.key: column.key if column.measure is None else column.measure.spelled for column in columns}


def _measure(text: str, k: int | None, dialect: Dialect) -> Measure:
    if k is not None:
        with suppress(MeasureError):
            return dialect.measure(f"{text}@{k}")
    if k is None and text.endswith(RESIDUAL):
        return named_measures(text.removesuffix(RESIDUAL), dialect)[text]
    return dialect.measure(text)


# JSON of `evaluate --per-query`, or of a baseline


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        data = read_bytes(path)
        content = json.loads(data) if data.strip() else None
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}); {EXPECTED}.") from None
    if not data.strip():
        raise InputError(f"{path} is empty; {EXPECTED}.")
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a JSON object; {EXPECTED}.")
    return content


def _from_json(content: Mapping[str, Any], name: str) -> GateInput:
    runs = content.get("runs")
    if not isinstance(runs, list) or not runs or not all(isinstance(run, Mapping) for run in runs):
        raise InputError(f"{name} has no runs; {EXPECTED}.")
    names = [_text(run.get("name")) for run in runs]
    repeated = next((run_name for run_name in names if names.count(run_name) > 1), None)
    if repeated is not None:
        raise InputError(f"{name}: two runs are called {repeated!r}; give them different names.")
    definitions = _mapping(content.get("measures")) or {}
    rows = {run_name: _rows(run, run_name, list(definitions), name) for run_name, run in zip(names, runs, strict=True)}
    per_query = [(run, query, values) for run, row in rows.items() for query, values in row.items()]
    keys = list(dict.fromkeys([*definitions, *(key for *_, values in per_query for key in values)]))
    queries = list(dict.fromkeys(query for _, query, _ in per_query))
    if not keys or not queries:
        raise InputError(f"{name} has no value for any query; {EXPECTED}.")
    cells = ((run, key, query, value) for run, query, values in per_query for key, value in values.items())
    values = _cube((names, keys, queries), cells)
    dialect, cutoffs = _text(content.get("dialect", "steelyard")), content.get("at")
    at = tuple(k for k in cutoffs if isinstance(k, int)) if isinstance(cutoffs, list) else ()
    columns = _columns(keys, dialect, at)
    scores = ScoreTable(tuple(names), columns, tuple(queries), values)
    overlaps = _mapping(content.get("overlaps")) or {}
    by_rule = {rule: _from_json({**content, "runs": runs, "overlaps": None}, name) for rule, runs in overlaps.items()}
    return GateInput(
        name=name,
        scores=scores,
        dialect=dialect,
        version=_text(content.get("steelyard", "unknown")),
        definitions=_definitions(columns) | {key: str(text) for key, text in definitions.items()},
        policies=_mapping(content.get("policies")),
        judgments=_mapping(content.get("judgments")),
        dataset=_mapping(content.get("dataset")),
        cutoffs=at,
        lists={
            run_name: _lists(run["lists"], run_name, name)
            for run_name, run in zip(names, runs, strict=True)
            if run.get("lists") is not None
        },
        list_depth=content.get("list_depth") if isinstance(content.get("list_depth"), int) else None,
        overlaps=_same_cases(scores, {rule: variant.scores for rule, variant in by_rule.items()}),
    )


def _same_cases(scores: ScoreTable, overlaps: Mapping[str, ScoreTable]) -> Mapping[str, ScoreTable]:
    """The values by each overlap rule, if they are of the same runs, measures and queries."""
    cases = {(table.runs, table.columns, table.queries) for table in (scores, *overlaps.values())}
    return overlaps if len(cases) == 1 else {}


def _mapping(value: Any) -> dict[str, Any] | None:
    """A mapping of names to names, numbers or flags; None if it is not a mapping."""
    if not isinstance(value, Mapping):
        return None
    return {_text(key): _text(entry) if isinstance(entry, str) else entry for key, entry in value.items()}


def _rows(run: Mapping[str, Any], name: str, keys: list[str], where: str) -> dict[str, dict[str, float]]:
    """The values of a run by query and measure, checked."""
    per_query = run.get("per_query")
    if not isinstance(per_query, Mapping):
        raise InputError(f"{where}: run {name!r} has no values per query, which a gate needs; {EXPECTED}.")
    rows = {}
    for query, values in per_query.items():
        if isinstance(values, list) and len(values) == len(keys):
            values = dict(zip(keys, values, strict=True))
        if not isinstance(values, Mapping):
            raise InputError(f"{where}: run {name!r}, query {query!r}: {values!r} is not one value per measure.")
        rows[_text(query)] = {_text(key): _value(value, where, name, query) for key, value in values.items()}
    return rows


def _lists(lists: Any, run: str, where: str) -> dict[str, list[str]]:
    """The first documents of a run by query, checked."""
    if not isinstance(lists, Mapping) or not all(isinstance(docs, list) for docs in lists.values()):
        raise InputError(f"{where}: the lists of run {run!r} are not one list of documents per query.")
    return {_text(query): [_text(doc) for doc in documents] for query, documents in lists.items()}


def _text(name: Any) -> str:
    """A name; half of a surrogate pair, which JSON allows and a file does not, is shown as its code."""
    return str(name).encode("utf-8", "backslashreplace").decode()


def _value(value: Any, where: str, run: str, query: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > HIGHEST_VALUE:
        raise InputError(f"{where}: run {run!r}, query {query!r}: {value!r}; expected a number or null.")
    return float(value)


# Result folders


def _from_folder(path: Path, name: str) -> GateInput:
    """The recorded values of a result folder; nothing is evaluated again."""
    from steelyard.benchmark import folder as files

    record = files.read_record(path)
    settings, rows = record["settings"], record["runs"]
    if record["comparison"] is None:
        raise InputError(
            f"{path}: the dataset of this bench has no qrels, so there are no values to check. Add qrels "
            f"(`{files.command_of('judge', path)}` judges what came back) and run the bench again."
        )
    frame = files.read_frame(path / "scores.parquet")
    if frame is None or not {"run", "query_id", "measure", "value"} <= set(frame.columns):
        raise InputError(f"{path} has no readable scores.parquet: the folder is incomplete. Run the bench again.")
    dialect = str(settings.get("dialect", "steelyard"))
    cutoffs = tuple(settings.get("at") or ())
    scale = settings.get("relevant_from") if dialect == "steelyard" else None
    rel = scale if settings.get("rel") is None else settings["rel"]
    table = _score_table(frame, record, dialect, cutoffs, rel)
    _check_consistent(table, record, path)
    texts, columns = files.read_queries(path)
    chunked = bool(settings.get("chunkers"))
    chosen = {name: settings.get(name) for name in POLICIES}
    weights = record["comparison"].get("weights") or {}
    mixed = ", ".join(f"{name}: {weight:g}" for name, weight in weights.items())
    named = {COMPOSITE, *(f"{COMPOSITE} at {k}" for k in cutoffs)} if weights else set()
    composites = {column.key: f"{column.key} of {mixed}" for column in table.columns if column.key in named}
    by_rule = files.read_by_rule(path / files.OVERLAP_SCORES)
    overlaps = {rule: _score_table(rule_frame, record, dialect, cutoffs, rel) for rule, rule_frame in by_rule.items()}
    lists = {row["run"]: path / "runs" / row["file"] for row in rows if not chunked}
    failures = {}
    for row in rows:
        if errors := row["errors"]:
            query, error = next(iter(errors.items()))
            failures[row["run"]] = QueryFailures(len(errors), len(errors) + row["queries"], f"{query}: {error}")
    policies = asdict(resolve(dialect_of(dialect).policies, chosen))
    qrels = None if chunked else files.read_qrels(path, settings)
    found = {run: file for run, file in lists.items() if os.path.isfile(file)}
    unmeasured = dict(record["comparison"].get("not_measured", {}))
    for run, counts in record["comparison"].get("coverage", {}).items():
        distinct = counts.get("documents", 0) - (counts.get("repeated", 0) if policies["duplicates"] == "hold" else 0)
        if qrels is not None and len(qrels) and run in found and distinct and counts.get("unjudged") == distinct:
            returned = Run.read(found[run], format="parquet").table["doc_id"][0]
            advice = f"If so, use the old ids; otherwise `{files.command_of('judge', path)}` judges what came back"
            unmeasured[run] = f"{none_judged(returned, qrels.judged.doc_ids[0])}. {advice}"
    return GateInput(
        name=name,
        scores=table,
        dialect=dialect,
        version=str(record["steelyard"]),
        definitions=_definitions(table.columns) | composites,
        policies=policies,
        judgments=None if qrels is None else qrels.query_fingerprints(),
        dataset={key: record["dataset"].get(key) for key in ("name", "fingerprint")},
        texts=texts,
        columns=columns,
        cutoffs=cutoffs,
        folder=None if chunked else path,
        chunked=chunked,
        overlaps=_same_cases(table, overlaps),
        history=path / str(settings["history"]) if settings.get("history") else None,
        rules=tuple(map(str, settings.get("gate") or ())),
        unknown_documents={row["run"]: row["unknown_documents"] for row in rows if row.get("unknown_documents")},
        failures=failures,
        weights=weights,
        files=found,
        sessions={row["run"]: row["session"] for row in rows if row.get("session")},
        unmeasured=unmeasured,
        allow_failed=settings.get("allow_failed", 0),
    )


def _score_table(
    frame: pl.DataFrame, record: Mapping[str, Any], dialect: str, cutoffs: Sequence[int], rel: float | None
) -> ScoreTable:
    """The values of scores.parquet: runs in the order of the bench, queries and measures as written."""
    runs = [row["run"] for row in record["runs"]]
    keys = frame["measure"].unique(maintain_order=True).to_list()
    queries = frame["query_id"].unique(maintain_order=True).to_list()
    cells = frame.drop_nulls("value").select("run", "measure", "query_id", "value").iter_rows()
    values = _cube((runs, keys, queries), (cell for cell in cells if cell[0] in runs))
    columns = _columns(keys, dialect, cutoffs, rel)
    return ScoreTable(tuple(runs), columns, tuple(queries), values)


def _cube(names: Sequence[Sequence[str]], cells: Iterable[tuple[str, str, str, float]]) -> Floats:
    """The values of cells (run, measure, query, value), by the names of the runs, measures and queries."""
    values = np.full([len(axis) for axis in names], np.nan)
    runs, keys, queries = ({name: place for place, name in enumerate(axis)} for axis in names)
    for run, key, query, value in cells:
        values[runs[run], keys[key], queries[query]] = value
    return values


def _check_consistent(table: ScoreTable, record: Mapping[str, Any], path: Path) -> None:
    """Raise if result.json and scores.parquet come from different benches (a crash, or a change by hand)."""
    means = table.means()
    for row in record["comparison"]["leaderboard"]:
        label = "" if row["k"] is None else f" at {row['k']}"
        for place, column in enumerate(table.columns):
            recorded = row.get(column.key.removesuffix(label)) if column.key.endswith(label) else None
            run = str(row["run"])
            mean = float(means[table.runs.index(run), place]) if run in table.runs else math.nan
            if recorded is not None and not abs(mean - float(recorded)) <= 1e-9 * max(1.0, abs(mean)):
                raise InputError(
                    f"{path}: {column.key} of {run!r} is {float(recorded):.6g} in result.json and {mean:.6g} in "
                    "scores.parquet: the folder is incomplete or was changed. Run the bench again."
                )


# Ceilings of stages, as measures: `ceiling(retrieve) nDCG@10`


def with_ceilings(source: GateInput, rules: Sequence[Rule], needed: bool = True) -> GateInput:
    """The input with a column for the ceiling that each rule names, from the stages of a result folder.

    Runs without that stage have no values; no run with it is an error, if `needed`. A baseline file has its own.
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
        stages: list[str] = []
        for run in runs:
            try:
                split = stages_of(source.folder, run, measure)
            except MeasureError as error:
                raise InputError(f"{key}: {error}") from None
            stages += split.steps
            if stage in split.steps:
                chosen = [places[query] for query in split.queries]
                values[source.run(run), chosen] = split.ceilings[split.steps.index(stage)]
                definitions[key] = f"ceiling({stage}) {split.measure.spelled}"
        if stage not in stages and needed:
            has = f"the stages are {', '.join(dict.fromkeys(stages))}" if stages else "no run has stages"
            raise InputError(f"{key}: {source.name} has no stage {stage!r}; {has}.{did_you_mean(stage, stages)}")
        if stage in stages:
            columns.append(Column(key))
            added.append(values)
    if not added:
        return source
    values = np.concatenate([source.scores.values, np.stack(added, axis=1)], axis=1)
    scores = replace(source.scores, columns=(*source.scores.columns, *columns), values=values)
    return replace(source, scores=scores, definitions=definitions)
