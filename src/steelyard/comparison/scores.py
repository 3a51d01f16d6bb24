"""Per-query scores: the values of every run, measure and query; the weights of a composite; tables of other tools."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.errors import SHOWN_PROBLEMS, InputError, MeasureError, PolicyError, did_you_mean, problem_report
from steelyard.frames import as_polars, check_single
from steelyard.io.beir import read_objects
from steelyard.io.columns import NAMES, RUN_NAMES
from steelyard.io.files import bare_name, errors_name, read_bytes, reading
from steelyard.io.frames import empty_ids_error
from steelyard.io.published import DATASET_NAMES
from steelyard.io.unpacking import load_yaml, read_parquet
from steelyard.lazy import polars as pl
from steelyard.measures.compute import averaged, geometric, logarithms, summary
from steelyard.measures.grammar import LARGEST, Measure, parse, range_of_composite
from steelyard.notes import Note, note
from steelyard.options import resolve
from steelyard.safe_text import CSV_QUOTED, utf8
from steelyard.wording import counted, in_words

COMPOSITE = "composite"
UNLIMITED = (-math.inf, math.inf)
_LARGEST_EXPONENT = 700.0  # exp of a larger number is not finite.


def label(key: str, k: int | None) -> str:
    """A measure's name with the cutoff of its row, where there are rows for several cutoffs."""
    return key if k is None else f"{key} at {k}"


@dataclass(frozen=True)
class Column:
    """One measure of a score table: its key, whether more or less is better, and its definition if it has one.

    `limits` are the lowest and highest value if not the definition's; UNLIMITED for values of an unknown scale or unit.
    """

    key: str
    better: str = "more"
    measure: Measure | None = None
    of_times: bool = False
    limits: tuple[float, float] | None = None

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value; infinite where they are not known."""
        return self.limits or (UNLIMITED if self.measure is None else self.measure.range)

    @property
    def timed(self) -> bool:
        """Whether the values are times, or a composite with times in it."""
        return self.of_times or (self.limits is None and self.measure is not None and self.measure.name == "Latency")

    def mean(self, values: Floats) -> float:
        """The summary of the values over queries; NaN where there are none."""
        if self.measure is not None:
            return summary(self.measure, values)
        kept = values[~np.isnan(values)]
        return float(kept.mean()) if len(kept) else float("nan")

    @property
    def averaged(self) -> bool:
        """Whether `mean` follows from the mean of the `tested` values, so that it has an interval."""
        return self.measure is None or averaged(self.measure) or self.geometric

    @property
    def geometric(self) -> bool:
        """Whether `mean` is a geometric mean."""
        return self.measure is not None and geometric(self.measure)

    def tested(self, values: Floats) -> Floats:
        """The values whose mean is tested: the values themselves, or the logarithms of a geometric mean."""
        return logarithms(values) if self.geometric else values

    def mean_of(self, tested: float) -> float:
        """`mean` from the mean of the tested values, or an end of its interval, within the range of the measure."""
        return float(np.clip(math.exp(tested) if self.geometric else tested, *self.range))

    def change(self, tested: float, reference: float) -> float:
        """The difference from a reference for a mean difference of tested values: geometric means differ by a ratio."""
        if not self.geometric:
            return tested
        return reference * math.expm1(tested) if tested < _LARGEST_EXPONENT else math.inf

    def within_range(self, difference: float) -> float:
        """A difference within the range that differences of this measure have; unchanged where that is not known."""
        if self.measure is not None and not averaged(self.measure) and not self.geometric:
            return difference
        most = self.range[1] - self.range[0]
        return float(np.clip(difference, -most, most))

    def worth(self, values: Floats) -> Floats:
        """The values, negated where lower is better."""
        return -values if self.better == "less" else values


@dataclass(frozen=True)
class ScoreTable:
    """Values by run, measure and query; NaN where a measure does not apply. `k` is the cutoff of its rows, if any.

    `sessions` says when the times of a run were measured. Times of different sessions are not tested against each
    other, because the load of the machine differs.
    """

    runs: tuple[str, ...]
    columns: tuple[Column, ...]
    queries: tuple[str, ...]
    values: Floats
    k: int | None = None
    sessions: Mapping[str, str] = field(default_factory=dict)

    def comparable(self, column: Column, run: int, other: int) -> bool:
        """Whether two runs may be tested on a measure: times only if they were measured together."""
        sessions = [self.sessions.get(self.runs[place]) for place in (run, other)]
        return not column.timed or (sessions[0] is not None and sessions[0] == sessions[1])

    def column(self, key: str) -> int:
        """The position of a measure."""
        keys = [column.key for column in self.columns]
        if key not in keys:
            raise MeasureError(f"{key!r} was not measured; expected one of {', '.join(keys)}.{did_you_mean(key, keys)}")
        return keys.index(key)

    def of(self, key: str) -> Floats:
        """One measure's values, runs x queries, on all queries."""
        return self.values[:, self.column(key), :]

    def compared(self, key: str) -> Floats:
        """One measure's values on the queries that every run has (runs without any do not count); NaN on the others.

        Means, ranks, tests and intervals of a comparison all use these values, so they are over the same queries.
        """
        return self._compared[:, self.column(key), :]

    @cached_property
    def _compared(self) -> Floats:
        absent = np.isnan(self.values)
        if not absent.any():
            return self.values
        measured = ~absent.all(axis=2, keepdims=True)
        return np.where((absent & measured).any(axis=0), np.nan, self.values)

    def lacking(self, key: str) -> dict[str, tuple[str, ...]]:
        """The queries that a run has no value for and another run has, for runs that have any value of the measure."""
        absent = np.isnan(self.of(key))
        some = ~absent.all(axis=0)
        return {
            run: tuple(compress(self.queries, (gone & some).tolist()))
            for run, gone in zip(self.runs, absent, strict=True)
            if not gone.all() and (gone & some).any()
        }

    def means(self) -> Floats:
        """Every run's summary of every measure over the compared queries, runs x measures."""
        return np.array(
            [[column.mean(row) for column, row in zip(self.columns, run, strict=True)] for run in self._compared]
        ).reshape(len(self.runs), len(self.columns))

    def where(self, chosen: Bools) -> ScoreTable:
        """The table of some of the queries."""
        return replace(self, queries=tuple(compress(self.queries, chosen.tolist())), values=self.values[:, :, chosen])

    def with_composite(
        self, keys: Sequence[str], weights: Mapping[str, float] | None
    ) -> tuple[ScoreTable, ScoreTable | None]:
        """The table of some measures, the composite first where there are weights; and that of its components."""
        if not weights:
            return self.only(keys), None
        if COMPOSITE in keys:
            raise InputError("a column of the table is called composite, as the weighted score would be; rename it.")
        parts, total = self.only(list(weights)), sum(weights.values())
        composite = np.zeros((len(self.runs), len(self.queries)))
        for column, weight in zip(parts.columns, weights.values(), strict=True):
            scores = self.of(column.key)
            composite += weight * (1 - scores if column.better == "less" else scores) / total
        pairs = zip(parts.columns, weights.values(), strict=True)
        limits = range_of_composite((column.better, column.range, weight) for column, weight in pairs)
        timed = any(column.timed for column in parts.columns)
        columns = (Column(COMPOSITE, of_times=timed, limits=limits), *self.columns)
        values = np.concatenate([composite[:, None, :], self.values], axis=1)
        return replace(self, columns=columns, values=values).only([COMPOSITE, *keys]), parts

    def only(self, keys: Sequence[str]) -> ScoreTable:
        """The table of some of the measures, in the order given."""
        places = [self.column(key) for key in keys]
        return replace(self, columns=tuple(self.columns[p] for p in places), values=self.values[:, places, :])


def shared_query_notes(tables: Sequence[ScoreTable]) -> list[Note]:
    """Notes on queries that some runs have no value for; an error if no query is left on the first measure."""
    groups: dict[tuple[tuple[str, tuple[str, ...]], ...], list[tuple[ScoreTable, str]]] = {}
    every = [(table, column.key) for table in tables for column in table.columns]
    for table, key in every:
        if lacking := table.lacking(key):
            groups.setdefault(tuple(lacking.items()), []).append((table, key))
    notes = []
    for lacks, where in groups.items():
        table, key = where[0]
        shared, queries = (int((~np.isnan(rows)).any(axis=0).sum()) for rows in (table.compared(key), table.of(key)))
        counts = [(run, len(gone), gone[:4]) for run, gone in lacks]
        if not shared and where[0] == every[0]:
            missing = ", ".join(f"{run} has none for {gone:,}" for run, gone, _ in counts)
            raise InputError(
                f"no query has a value of {key} in every run, so the runs cannot be compared: of "
                f"{counted(queries, 'query', 'queries')} {missing}. Leave a run out, or choose "
                f"{in_words('missing=zero (--missing zero)', '--missing zero')}, which counts a missing query as 0."
            )
        measures = [label(key, table.k) for table, key in where] if len(where) < len(every) else []
        notes.append(note("compared-on-shared-queries", measures=measures, shared=shared, queries=queries, runs=counts))
    return notes


_LOWER = frozenset(
    ["latency", "time", "times", "second", "seconds", "ms", "cost", "costs", "loss", "error", "errors"]
    + ["wer", "cer", "mse", "rmse", "mae", "perplexity", "distance", "regret", "failures"]
)
"""Words in the name of a column whose lower values are better."""


def column_named(key: str) -> Column:
    """A column by name alone: of any scale, with the direction and summary of the measure of that name, if any."""
    measure = _measure_named(key)
    if measure is None:
        return Column(key, "less" if _LOWER.intersection(re.split(r"[^a-z]+", key.lower())) else "more")
    better = "less" if measure.definition.better == "less" else "more"
    return Column(key, better, None if averaged(measure) else measure, limits=UNLIMITED)


def _measure_named(key: str) -> Measure | None:
    """The measure that a `label`, which may have the cutoff of its row, names."""
    with suppress(MeasureError):
        return parse(key.partition(" at ")[0])
    return None


DEFAULT_WEIGHTS = {"recall": 0.05, "precision": 0.05, "f1": 0.4, "mrr": 0.05, "hit_rate": 0.3, "ndcg": 0.05}
DEFAULT_WEIGHTS["confusion"] = 0.1
"""The weights of the default composite: mostly F1 and hit rate; a tenth for not returning distractors."""

DEFAULT_CUTOFF = 10  # The cutoff of the components where the comparison has no cutoffs.


def read_weights(source: Mapping[str, float] | str | Path) -> dict[str, float]:
    """The weights of a composite from a mapping, a file or "default"; none may be below 0, and not all 0."""
    if isinstance(source, Mapping):
        return _checked(source, "the composite")
    if str(source) == "default":
        return dict(DEFAULT_WEIGHTS)
    path = Path(source)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        expected = "expected a YAML or JSON file of measure: weight"
        raise InputError(f"{path}: the weights cannot be read ({error}); {expected}.") from None
    with reading(path):
        weights = json.loads(text) if path.suffix == ".json" else load_yaml(text)
    if isinstance(weights, Mapping) and isinstance(weights.get("weights"), Mapping):
        weights = weights["weights"]
    if not isinstance(weights, Mapping):
        raise InputError(f"{path}: expected a table of measure and weight, as in `nDCG@10: 0.5`.")
    return _checked(weights, str(source))


def _checked(weights: Mapping[str, Any], where: str) -> dict[str, float]:
    checked: dict[str, float] = {}
    for name, weight in weights.items():
        try:
            value = float(weight)
        except (TypeError, ValueError):
            raise MeasureError(f"{where}: the weight of {name} is {weight!r}; expected a number.") from None
        if not 0 <= value <= LARGEST:
            raise MeasureError(
                f"{where}: the weight of {name} is {weight}; expected 0 or more, a number up to {LARGEST:g}. A measure "
                "where lower is better is inverted automatically."
            )
        checked[str(name)] = value
    if not checked or sum(checked.values()) == 0:
        raise MeasureError(f"{where}: the weights are all 0; give at least one measure a weight above 0.")
    return checked


BLOCK = "query and repetition"  # The column of the blocks: a query in one repetition.
_REPEATS = ("seed", "repetition", "repeat", "trial", "fold", "iteration")
_QUERIES = ("query_id", "qid", "query", "query-id", "q_id", "topic")
_UNREADABLE = (OSError, ValueError, TypeError, RecursionError)
_IDS = {*RUN_NAMES, *NAMES["query_id"], "_id", "id"}


@dataclass(frozen=True)
class TableOptions:
    """The columns of a score table: run, query, repetition and, in the long form, measure and value.

    `lower`: measures whose lower values are better, beside those whose names say so, such as latency and error_rate.
    `repeats`: "average" takes the mean of each run's repetitions of a query; "blocks" pairs the runs by query and
    repetition first, so that a repetition that one run lacks counts for none (missing="skip") or as 0. Repetitions of
    a query are not independent, so in both cases the query is what is tested.
    """

    run_column: str | None = None
    query_column: str | None = None
    measure_column: str | None = None
    value_column: str | None = None
    repeat_column: str | None = None
    repeats: Literal["average", "blocks"] = "average"
    lower: Sequence[str] = ()


def read_score_table(
    source: Any, measures: Sequence[str] | None, options: TableOptions, missing: str = "zero"
) -> tuple[ScoreTable, list[Note]]:
    """The values per query that another tool computed, and notes on repetitions and missing values."""
    if isinstance(source, (str, Path)):
        with errors_name(Path(source)), reading(Path(source)):
            return read_score_table(_table(source, options), measures, options, missing)
    missing = resolve({}, {"missing": missing}).missing
    frame = as_polars(source)
    run = _column(frame, options.run_column, RUN_NAMES, "run", "--run-column")
    query = _column(frame, options.query_column, _QUERIES, "query", "--query-column")
    repeat = options.repeat_column or next((c for c in frame.columns if c.lower() in _REPEATS), None)
    notes = _merged_datasets(frame, query, (run, query, repeat))
    frame = frame.with_columns(pl.col(run).cast(pl.String), pl.col(query).cast(pl.String))
    for column, role in ((run, "run"), (query, "query_id")):
        if empty := (frame[column].fill_null("") == "").arg_true().to_list():
            raise empty_ids_error(column, role, len(empty), [f"row {row + 1}" for row in empty[:SHOWN_PROBLEMS]])
    frame, keys = _wide(frame, [run, query, *([repeat] if repeat else [])], measures, options)
    check_single(frame.columns, run, query, *keys)
    if repeat:
        averaged = options.repeats == "average"
        notes.append(note("repetitions", count=frame[repeat].n_unique(), column=repeat, averaged=averaged))
        if averaged:
            frame = frame.group_by([run, query], maintain_order=True).agg(pl.col(keys).fill_nan(None).mean())
        else:
            block = pl.concat_str([pl.col(query), pl.lit(" #"), pl.col(repeat).cast(pl.String)])
            frame = frame.with_columns(block.alias(BLOCK))
            _refuse_repeats(frame, [run, BLOCK])
            blocks = _filled(frame, run, BLOCK, keys, missing, notes)
            query_of = dict(frame.select(BLOCK, query).iter_rows())
            return _by_query(blocks, [query_of[block] for block in blocks.queries]), notes
    _refuse_repeats(frame, [run, query])
    return _filled(frame, run, query, keys, missing, notes), notes


def directed(table: ScoreTable, lower: Sequence[str], notes: list[Note]) -> ScoreTable:
    """The table with `lower` as measures whose lower values are better, and a note on what names are taken to mean."""
    places = [table.column(key) for key in lower]
    columns = [replace(c, better="less") if at in places else c for at, c in enumerate(table.columns)]
    unknown = [c for at, c in enumerate(columns) if at not in places and _measure_named(c.key) is None]
    if unknown:
        directions = ([c.key for c in unknown if c.better == better] for better in ("more", "less"))
        notes.append(note("directions-by-name", **dict(zip(("more", "less"), directions, strict=True))))
    return replace(table, columns=tuple(columns))


def query_column(source: Any, column: str, options: TableOptions) -> dict[str, object]:
    """Each query's value in another column of a score table; two values for one query are an error."""
    frame = _table(source, options)
    query = _column(frame, options.query_column, _QUERIES, "query", "--query-column")
    if column not in frame.columns:
        how = f"or the queries' columns ({in_words('queries=...', '--set queries=FILE')})"
        raise InputError(
            f"slicing by {column!r} needs a column of that name in the score table, which has "
            f"{', '.join(frame.columns)}, {how}.{did_you_mean(column, frame.columns)}"
        )
    values = frame.select(query=pl.col(query).cast(pl.String), value=column).unique(maintain_order=True)
    repeated = values.filter(pl.col("query").is_duplicated())
    if repeated.height:
        name = repeated["query"][0]
        several = ", ".join(map(repr, repeated.filter(pl.col("query") == name)["value"].to_list()))
        problem = f"query {name!r} has more than one value in column {column!r} of the score table ({several});"
        raise InputError(f"{problem} expected one value per query, the same for every run.")
    return dict(values.rows())


def _filled(frame: pl.DataFrame, run: str, query: str, keys: list[str], missing: str, notes: list[Note]) -> ScoreTable:
    """The score table of a frame with one row per run and query; missing values as the policy has it."""
    runs = frame[run].unique(maintain_order=True).to_list()
    queries = frame[query].unique(maintain_order=True).to_list()
    values = np.full((len(runs), len(keys), len(queries)), np.nan)
    place = frame.select(
        pl.col(run).replace_strict(runs, range(len(runs)), return_dtype=pl.Int64),
        pl.col(query).replace_strict(queries, range(len(queries)), return_dtype=pl.Int64),
    )
    at_run, at_query = place[run].to_numpy(), place[query].to_numpy()
    for number, key in enumerate(keys):
        values[at_run, number, at_query] = frame[key].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    holes = np.argwhere(np.isnan(values))
    if len(holes):
        shown = [f"run {runs[r]!r}, query {queries[q]!r}, {keys[m]}" for r, m, q in holes[:10].tolist()]
        if missing == "error":
            what = f"{counted(len(holes), 'value is', 'values are')} missing from the score table (missing=error):"
            advice = "Fill them in, or choose missing=zero or missing=skip."
            raise PolicyError(problem_report(what, shown, advice, total=len(holes)))
        notes.append(note("missing-values", count=len(holes), policy=missing, first=shown[0]))
        if missing == "zero":
            values = np.nan_to_num(values, nan=0.0)
    return ScoreTable(tuple(runs), tuple(column_named(key) for key in keys), tuple(queries), values)


def read_frame(path: Path, what: str, ids: Collection[str | None] = ()) -> pl.DataFrame:
    """A file of values by run or query. Columns of ids, by name or in `ids`, are text: an id like 007 is kept."""
    suffix = bare_name(path).suffix.lower()
    try:
        if suffix in (".jsonl", ".ndjson"):
            # Not by polars: nested lines of a few kilobytes end the process of its older versions.
            rows: list[dict[str, Any]] = []
            read_objects(path, rows.append, "Expected one JSON object per line.")
            flat = [{name: _cell(value) for name, value in row.items()} for row in rows]
            return pl.DataFrame(flat, infer_schema_length=None, strict=False)
        data = read_bytes(path)
        if data.startswith(b"PAR1") or suffix == ".parquet":
            return read_parquet(data, path)
        separator = "\t" if b"\t" in data.split(b"\n", 1)[0] else ","
        names = pl.read_csv(io.BytesIO(data), separator=separator, n_rows=0).columns
        texts = {name: pl.String for name in names if name in ids or name.lower() in _IDS}
        frame = pl.read_csv(io.BytesIO(data), separator=separator, infer_schema_length=None, schema_overrides=texts)
        return frame.with_columns(pl.col(pl.String).str.replace(CSV_QUOTED, "$1"))
    except (*_UNREADABLE, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"{what} cannot be read ({error}); expected JSONL, CSV, TSV or Parquet.", path) from None


def _cell(value: Any) -> Any:
    """A value of a JSON line for polars: nested values as JSON, half of a character as an escape."""
    if isinstance(value, str):
        return utf8(value).decode()
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _table(source: Any, options: TableOptions) -> pl.DataFrame:
    ids = (options.run_column, options.query_column)
    return read_frame(Path(source), "the score table", ids) if isinstance(source, (str, Path)) else as_polars(source)


def _column(frame: pl.DataFrame, named: str | None, usual: Sequence[str], what: str, option: str) -> str:
    columns = ", ".join(frame.columns)
    if named is not None and named not in frame.columns:
        advice = did_you_mean(named, frame.columns)
        raise InputError(f"the score table has no column {named!r}; expected one of {columns}.{advice}")
    lower = {column.lower(): column for column in frame.columns}
    column = named if named is not None else next((lower[name] for name in usual if name in lower), None)
    if column is None:
        problem = f"no column of the score table is known to name the {what}; its columns are {columns}."
        raise InputError(f"{problem} Name it with {option}.")
    return column


def _wide(
    frame: pl.DataFrame, ids: list[str], measures: Sequence[str] | None, options: TableOptions
) -> tuple[pl.DataFrame, list[str]]:
    """The frame with one column per measure, and the measures."""
    lower = {column.lower(): column for column in frame.columns}
    measure = options.measure_column or lower.get("measure") or lower.get("metric")
    value = options.value_column or lower.get("value")
    if measure and value:
        _refuse_repeats(frame, [*ids, measure])
        frame = frame.pivot(on=measure, index=ids, values=value)
    numeric = [c for c in frame.columns if c not in ids and frame[c].dtype.is_numeric()]
    keys = list(measures) if measures else numeric
    for key in keys:
        if key not in frame.columns:
            expected = f"expected one of {', '.join(numeric)}.{did_you_mean(key, numeric)}"
            raise InputError(f"the score table has no measure {key!r}; {expected}")
        if not frame[key].dtype.is_numeric():
            raise InputError(f"column {key!r} of the score table has {frame[key].dtype}; expected numbers.")
    if not keys:
        expected = "expected one column per measure, or measure and value"
        raise InputError(f"the score table has no column of numbers; {expected}.")
    return frame, keys


def _by_query(blocks: ScoreTable, query_of: Sequence[str]) -> ScoreTable:
    """The mean of every query over the repetitions that are compared: the repetitions of a query are one cluster."""
    place: dict[str, int] = {}
    places = np.array([place.setdefault(query, len(place)) for query in query_of])
    queries = tuple(place)
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], np.arange(len(queries)))
    values = blocks._compared[:, :, order]
    present = ~np.isnan(values)
    counts = np.add.reduceat(present, starts, axis=2, dtype=np.int64)
    sums = np.add.reduceat(np.where(present, values, 0.0), starts, axis=2)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return replace(blocks, queries=queries, values=means)


def _merged_datasets(frame: pl.DataFrame, query: str, used: Sequence[str | None]) -> list[Note]:
    """A note on a table with the queries of several datasets; an error where a query id occurs in two of them."""
    column = next((c for c in frame.columns if c.lower() in DATASET_NAMES and c not in used), None)
    if column is None or frame[column].n_unique() < 2:
        return []
    several = frame.select(column, query).unique(maintain_order=True).filter(pl.col(query).is_duplicated())
    if several.height:
        first = several[query][0]
        where = several.filter(pl.col(query) == first)[column].to_list()
        raise InputError(
            f"query {first!r} occurs in {len(where)} datasets of the score table (column {column!r}: "
            f"{', '.join(map(str, where[:3]))}), so queries of different datasets would be compared with each other. "
            "Compare each dataset by itself, and all of them with sy.across({name: comparison, ...})."
        )
    return [note("datasets-merged", column=column, datasets=frame[column].n_unique())]


def _refuse_repeats(frame: pl.DataFrame, ids: list[str]) -> None:
    """Raise where two rows are of the same run and query (and measure)."""
    repeated = frame.group_by(ids, maintain_order=True).len().filter(pl.col("len") > 1)
    if repeated.height:
        what = f"{counted(repeated.height, 'query occurs', 'queries occur')} more than once for one run"
        first = [f"run {row[0]!r}, query {row[1]!r}" for row in repeated.head(10).rows()]
        advice = "Keep one row each, or name the column that numbers the repetitions (--set columns=repeat=NAME)."
        raise InputError(problem_report(f"{what} in the score table:", first, advice, total=repeated.height))
