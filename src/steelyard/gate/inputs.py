"""What a gate holds against each other: every run's value of every measure on every query, and how it was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.comparison.scores import COMPOSITE, Column, ScoreTable, column_named
from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.evaluation import named_measures
from steelyard.measures.grammar import Measure
from steelyard.options import POLICIES, resolve
from steelyard.scores import Scores
from steelyard.version import __version__
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


RESIDUAL = " residual"


@dataclass(frozen=True)
class Failed:
    """On how many of the queries it was asked a run failed, and the first error."""

    failed: int
    asked: int
    first: str

    def __str__(self) -> str:
        return f"it failed on {self.failed:,} of {counted(self.asked, 'query', 'queries')} (the first, {self.first})"


@dataclass(frozen=True, eq=False)
class Measured:
    """Values per query, wherever they were kept.

    `definitions` says of each measure how it was spelled out; `policies`, `judgments` (a short hash
    a query) and `dataset` are None where they are not known. `rules` are those the result brings
    along, `failed` the runs that failed on queries and `allow_failed` how many may, `remarks` what else a
    reader should know of its runs, `cutoffs` those of a comparison at several.
    """

    name: str
    board: ScoreTable
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
    remarks: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, Failed] = field(default_factory=dict)
    allow_failed: int = 0

    @property
    def keys(self) -> list[str]:
        """The measures, as they were written."""
        return [column.key for column in self.board.columns]

    def column(self, key: str) -> Column:
        """A measure's column."""
        return self.board.columns[self.board.column(key)]

    def key(self, text: str) -> str:
        """The measure that a rule names: as it was written, or another spelling of the same."""
        if text in self.keys:
            return text
        try:
            meant = dialect_of(self.dialect).measure(text).spelled
        except MeasureError:
            meant = ""
        for key, spelled in self.definitions.items():
            if (meant and spelled == meant) or key.lower() == text.lower():
                return key
        raise MeasureError(
            f"{text!r} is not measured in {self.name}; there are {', '.join(self.keys)}."
            f"{did_you_mean(text, self.keys)}"
        )

    def run(self, name: str) -> int:
        """The place of a run."""
        if name not in self.board.runs:
            raise InputError(
                f"there is no run {name!r} in {self.name}; there are {', '.join(self.board.runs)}."
                f"{did_you_mean(name, self.board.runs)}"
            )
        return self.board.runs.index(name)

    def values(self, run: str, key: str) -> Floats:
        """A run's values of a measure, query by query; NaN where there is none."""
        found: Floats = self.board.of(key)[self.run(run)]
        return found

    def answered(self, run: str) -> Bools:
        """The queries that a run has any value of."""
        known: Bools = ~np.isnan(self.board.values[self.run(run)]).all(axis=0)
        return known


def columns_of(
    keys: Sequence[str],
    dialect: str,
    weights: Mapping[str, float] | None = None,
    cutoffs: Sequence[int] = (),
    known: Mapping[str, str] | None = None,
) -> tuple[tuple[Column, ...], dict[str, str]]:
    """The columns that keys stand for in a dialect, and how each is spelled out; `known` spellings win."""
    spoken = dialect_of(dialect)
    columns, definitions = [], {}
    for key in keys:
        column, spelled = _column(key, spoken, weights, cutoffs)
        columns.append(column)
        definitions[key] = (known or {}).get(key, spelled)
    return tuple(columns), definitions


def _column(
    key: str, spoken: Dialect, weights: Mapping[str, float] | None, cutoffs: Sequence[int]
) -> tuple[Column, str]:
    base, k = next(
        ((key.removesuffix(f" at {k}"), k) for k in cutoffs if key.endswith(f" at {k}")), (key, None)
    )
    if base == COMPOSITE:
        mixed = ", ".join(f"{name}: {weight:g}" for name, weight in (weights or {}).items())
        return Column(key), f"{key} of {mixed}" if mixed else key
    try:
        measure = _measure(base, k, spoken)
    except MeasureError:
        return column_named(key), key
    return Column(key, measure.definition.better, measure), measure.spelled


def _measure(text: str, k: int | None, spoken: Dialect) -> Measure:
    if k is not None:
        try:
            return spoken.measure(f"{text}@{k}")
        except MeasureError:
            return spoken.measure(text)
    if text.endswith(RESIDUAL):
        return named_measures(text.removesuffix(RESIDUAL), spoken)[text]
    return spoken.measure(text)


HOW = (
    "expected a result folder of `steelyard bench`, or JSON with values per query, as "
    "`steelyard gate RESULT --save-baseline baseline.json` or "
    "`steelyard evaluate QRELS RUN --per-query --format json -o result.json` writes it"
)

MOST = 1e150
"""No measure gives values beyond this, and the squares of larger ones cannot be summed."""


def measured(source: Any, name: str = "the result") -> Measured:
    """Values per query from a path, Scores, a bench's result, or a mapping shaped like the JSON of `evaluate`.

    `name` is what messages call a source that is no file.
    """
    if isinstance(source, Measured):
        return source
    if isinstance(source, Scores):
        return _scored(source, name)
    if isinstance(source, Mapping):
        return _told(source, name)
    folder = getattr(source, "folder", None) or getattr(source, "path", None)
    if not isinstance(source, (str, Path)) and isinstance(folder, Path):
        return _folder(folder, str(folder))
    if not isinstance(source, (str, Path)):
        raise InputError(f"a {type(source).__name__} cannot be gated; {HOW}, or Scores.")
    path = Path(source)
    if path.is_dir():
        return _folder(path, str(source))
    if not path.is_file():
        raise InputError(f"{source} does not exist; {HOW}.")
    found = _json(path)
    if "comparison" in found and "settings" in found:
        return _folder(path.parent, str(source))
    return _told(found, str(source))


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}); {HOW}.") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} holds no JSON object; {HOW}.")
    return found


def _scored(scores: Scores, name: str) -> Measured:
    keys = list(scores.measures)
    columns, _ = columns_of(keys, scores.dialect)
    board = ScoreTable((scores.name,), columns, tuple(scores.queries), scores.matrix[None, :, :])
    return Measured(
        name=name,
        board=board,
        dialect=scores.dialect,
        definitions={key: meant.spelled for key, meant in scores.measures.items()},
        policies=scores.policies,
    )


def _told(found: Mapping[str, Any], name: str) -> Measured:
    """The JSON of `evaluate`, or a baseline's."""
    runs = found.get("runs")
    if not isinstance(runs, list) or not runs or not all(isinstance(run, Mapping) for run in runs):
        raise InputError(f"{name} has no runs; {HOW}.")
    names = [_text(run.get("name")) for run in runs]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise InputError(f"{name}: two runs are called {twice!r}; give them names of their own.")
    said = _mapping(found.get("measures")) or {}
    listed = list(said)
    rows = {each: _rows(run, each, listed, name) for each, run in zip(names, runs, strict=True)}
    keys = list(
        dict.fromkeys([*listed, *(key for row in rows.values() for held in row.values() for key in held)])
    )
    queries = list(dict.fromkeys(query for row in rows.values() for query in row))
    if not keys or not queries:
        raise InputError(f"{name} holds no value of any query; {HOW}.")
    values = np.full((len(names), len(keys), len(queries)), np.nan)
    places = {key: place for place, key in enumerate(keys)}
    for number, row in enumerate(rows.values()):
        for place, query in enumerate(queries):
            for key, value in row.get(query, {}).items():
                values[number, places[key], place] = value
    dialect = _text(found.get("dialect", "steelyard"))
    at = tuple(k for k in _list(found.get("at")) if isinstance(k, int))
    columns, definitions = columns_of(
        keys, dialect, cutoffs=at, known={key: str(text) for key, text in said.items()}
    )
    return Measured(
        name=name,
        board=ScoreTable(tuple(names), columns, tuple(queries), values),
        dialect=dialect,
        version=_text(found.get("steelyard", "unknown")),
        definitions=definitions,
        policies=_mapping(found.get("policies")),
        judgments=_mapping(found.get("judgments")),
        dataset=_mapping(found.get("dataset")),
        cutoffs=at,
    )


def _mapping(found: Any) -> dict[str, Any] | None:
    """A mapping of names to names, numbers or flags; None where it is none."""
    if not isinstance(found, Mapping):
        return None
    return {_text(key): _text(value) if isinstance(value, str) else value for key, value in found.items()}


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _rows(run: Mapping[str, Any], name: str, listed: list[str], where: str) -> dict[str, dict[str, float]]:
    """A run's values by query and measure, checked."""
    held = run.get("per_query")
    if not isinstance(held, Mapping):
        raise InputError(f"{where}: run {name!r} has no values per query, and a gate needs them; {HOW}.")
    rows = {}
    for query, given in held.items():
        if isinstance(given, list) and len(given) == len(listed):
            given = dict(zip(listed, given, strict=True))
        if not isinstance(given, Mapping):
            raise InputError(
                f"{where}: run {name!r}, query {query!r}: {given!r} is not a value for each measure."
            )
        rows[_text(query)] = {_text(key): _value(value, where, name, query) for key, value in given.items()}
    return rows


def _text(name: Any) -> str:
    """A name; halves of a surrogate pair, which JSON can hold and no file can, are shown as their code."""
    return str(name).encode("utf-8", "backslashreplace").decode()


def _value(value: Any, where: str, run: str, query: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > MOST:
        raise InputError(f"{where}: run {run!r}, query {query!r} holds {value!r}; expected a number or null.")
    return float(value)


def _folder(path: Path, name: str) -> Measured:
    """A result folder, from what was written down: the values are those of the bench, not measured again."""
    from steelyard.bench.folder import read_frame, read_judgments, read_queries, read_record
    from steelyard.dialects import dialect as dialect_of

    record = read_record(path)
    settings = record["settings"]
    frame = read_frame(path / "scores.parquet")
    if frame is None or not {"run", "query_id", "measure", "value"} <= set(frame.columns):
        raise InputError(
            f"{path} has no readable scores.parquet; the folder is half written. Run the bench again."
        )
    dialect = str(settings.get("dialect", "steelyard"))
    board = _board(frame, record, dialect)
    _refuse_mixture(board, record, path)
    texts, columns = read_queries(path, [])
    chunked = bool(settings.get("chunkers"))
    chosen = {name: settings.get(name) for name in POLICIES}
    keys = [column.key for column in board.columns]
    return Measured(
        name=name,
        board=board,
        dialect=dialect,
        version=str(record["steelyard"]),
        definitions=columns_of(keys, dialect, record["comparison"].get("weights"), settings.get("at") or ())[
            1
        ],
        policies=asdict(resolve(dialect_of(dialect).policies, chosen)),
        judgments=None if chunked else read_judgments(path).query_fingerprints(),
        dataset={key: record["dataset"].get(key) for key in ("name", "fingerprint")},
        texts=texts,
        columns=columns,
        cutoffs=tuple(settings.get("at") or ()),
        folder=None if chunked else path,
        rules=tuple(map(str, settings.get("gate") or ())),
        remarks=_remarks(record),
        failed=_failed(record),
        allow_failed=int(settings.get("allow_failed") or 0),
    )


def _board(frame: pl.DataFrame, record: Mapping[str, Any], dialect: str) -> ScoreTable:
    """The values of scores.parquet: runs in the order of the bench, queries and measures as written."""
    runs = [str(row["run"]) for row in record["runs"]]
    keys = frame["measure"].unique(maintain_order=True).to_list()
    queries = frame["query_id"].unique(maintain_order=True).to_list()
    values = np.full((len(runs), len(keys), len(queries)), np.nan)
    places = [{name: place for place, name in enumerate(names)} for names in (runs, keys, queries)]
    for run, query, key, value in frame.select("run", "query_id", "measure", "value").iter_rows():
        if value is not None and run in places[0]:
            values[places[0][run], places[1][key], places[2][query]] = value
    columns, _ = columns_of(keys, dialect, cutoffs=record["settings"].get("at") or ())
    return ScoreTable(tuple(runs), columns, tuple(queries), values)


def _refuse_mixture(board: ScoreTable, record: Mapping[str, Any], path: Path) -> None:
    """An error where result.json and scores.parquet are of two benches: a crash between them, or a change by hand."""
    means = board.means()
    for row in record["comparison"]["leaderboard"]:
        label = "" if row["k"] is None else f" at {row['k']}"
        for place, column in enumerate(board.columns):
            kept = row.get(column.key.removesuffix(label)) if column.key.endswith(label) else None
            run = str(row["run"])
            found = float(means[board.runs.index(run), place]) if run in board.runs else math.nan
            if kept is not None and not abs(found - float(kept)) <= 1e-9 * max(1.0, abs(found)):
                raise InputError(
                    f"{path}: {column.key} of {run!r} is {float(kept):.6g} in result.json and {found:.6g} in "
                    "scores.parquet; the folder is half written or was changed. Run the bench again."
                )


def _remarks(record: Mapping[str, Any]) -> dict[str, str]:
    """What was odd about a run while it was made."""
    return {
        str(
            row["run"]
        ): f"it returned {counted(row['unknown_documents'], 'document that is', 'documents that are')} "
        "not in the corpus"
        for row in record["runs"]
        if row.get("unknown_documents")
    }


def _failed(record: Mapping[str, Any]) -> dict[str, Failed]:
    """The runs that failed on queries while they were made."""
    found = {}
    for row in record["runs"]:
        errors = row.get("errors") or {}
        if errors:
            query, error = next(iter(errors.items()))
            found[str(row["run"])] = Failed(
                len(errors), len(errors) + int(row.get("queries") or 0), f"{query}: {error}"
            )
    return found
