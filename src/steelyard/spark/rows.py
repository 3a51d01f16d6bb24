"""Rows of qrels and runs on the cluster. Faulty rows are marked and counted there, and reported once.

The messages are those of frames in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property, reduce
from typing import Any, TypedDict

from pyspark.sql import functions as sf

from steelyard.errors import SHOWN_PROBLEMS, InputError
from steelyard.io import frames
from steelyard.io.columns import QRELS_ROLES, RUN_NAMES, find_name, first_named, rank_column
from steelyard.io.frames import not_ids_error
from steelyard.notes import Note, note
from steelyard.qrels import Qrels, disagreement_error, grade_error


class Kind(IntEnum):
    """What a row is: a judgment, a retrieved document, or a fault. Faults are reported in this order."""

    JUDGMENT = 0
    RETRIEVED = 1
    JUDGED_NO_QUERY = 2
    GRADE_IS_TEXT = 3
    NO_GRADE = 4
    GRADE_NOT_FINITE = 5
    DISAGREES = 6
    RETRIEVED_NO_QUERY = 7
    SCORE_IS_TEXT = 8
    RANK_IS_TEXT = 9
    NO_DOCUMENT = 10
    SCORE_NOT_FINITE = 11
    RANK_NOT_FINITE = 12


@dataclass(frozen=True)
class Fault:
    """The number of rows with a fault, and the first of them as text."""

    count: int
    examples: Sequence[str]

    @classmethod
    def of(cls, count: int, examples: Iterable[str]) -> Fault:
        """The examples are sorted, so that they do not depend on the partitions."""
        return cls(count, sorted(examples)[:SHOWN_PROBLEMS])

    def __add__(self, other: Fault) -> Fault:
        return Fault.of(self.count + other.count, [*self.examples, *other.examples])


def fault_text(kind: Kind, query: str | None, doc: str | None, value: float | None, text: str | None) -> str:
    """A faulty row, as messages show it. `text` is what the row has in place of a number.

    >>> fault_text(Kind.SCORE_IS_TEXT, "q1", "d1", None, "high")
    "query 'q1', document 'd1': 'high'"
    """
    if kind in (Kind.JUDGED_NO_QUERY, Kind.RETRIEVED_NO_QUERY):
        return f"document {doc!r}"
    if kind is Kind.GRADE_NOT_FINITE:
        return str(grade_error(str(query), str(doc), float("nan") if value is None else value))
    row = f"query {query!r}, document {doc!r}"
    if kind in (Kind.GRADE_IS_TEXT, Kind.SCORE_IS_TEXT, Kind.RANK_IS_TEXT):
        return f"{row}: {text!r}"
    return row if kind is Kind.NO_GRADE else f"{row}, score {value}"


def check_faults(faults: Mapping[Kind, Fault], qrels: Mapping[str, str], run: Mapping[str, str]) -> None:
    """Raise the error for the first kind of fault; `qrels` and `run` are the names of their columns by role."""
    if not faults:
        return
    kind = min(faults)
    count, rows = faults[kind].count, faults[kind].examples
    names = qrels if kind < Kind.RETRIEVED_NO_QUERY else run
    errors: dict[Kind, Callable[[], InputError]] = {
        Kind.GRADE_IS_TEXT: lambda: frames.not_numbers_error(names["grade"], "grade", count, rows),
        Kind.NO_GRADE: lambda: frames.ungraded_error(count, rows),
        Kind.GRADE_NOT_FINITE: lambda: InputError(rows[0]),
        Kind.DISAGREES: lambda: disagreement_error(count, rows),
        Kind.SCORE_IS_TEXT: lambda: frames.not_numbers_error(names["score"], "score", count, rows),
        Kind.RANK_IS_TEXT: lambda: frames.not_numbers_error(names["rank"], "rank", count, rows),
        Kind.NO_DOCUMENT: lambda: frames.bad_rows_error(frames.NO_DOCUMENT, count, rows),
        Kind.SCORE_NOT_FINITE: lambda: frames.bad_rows_error(frames.NO_SCORE, count, rows),
        Kind.RANK_NOT_FINITE: lambda: frames.bad_rows_error(frames.NO_RANK, count, rows),
    }
    raise errors[kind]() if kind in errors else frames.empty_ids_error(names["query_id"], "query_id", count, rows)


_WHOLE = ("byte", "short", "integer", "long", "tinyint", "smallint", "int", "bigint")
_TEXT = ("string", "char", "varchar")
_NUMBERS = (*_WHOLE, "float", "double", "decimal", "boolean", "void")


@dataclass(frozen=True)
class SparkTable:
    """A Spark frame, and the name of its column for each role.

    rank_named: whether the caller named the rank column of the run; then ranks order it, not scores.
    """

    frame: Any
    names: Mapping[str, str]
    notes: tuple[Note, ...]
    rank_named: bool = False

    def column(self, role: str) -> Any:
        """The column of a role, unchanged."""
        return sf.col(_quoted(self.names[role]))

    def is_text(self, role: str) -> bool:
        """Whether the column of a role is of type text."""
        return role in self.names and _kind(self.frame, self.names[role]) in _TEXT

    def number(self, role: str) -> Any:
        """The column of a role as floats; null where a value is not a number, or where the frame has no such column."""
        if role not in self.names:
            return sf.lit(None).cast("double")
        if self.is_text(role):
            return sf.expr(f"try_cast({_quoted(self.names[role])} as double)")
        return self.column(role).cast("double")

    @cached_property
    def scored(self) -> bool:
        """Whether any row has a score. Usually the first row decides it."""
        score = self.column("score") if "score" in self.names else None
        return score is not None and not self.frame.select(score).filter(score.isNotNull()).isEmpty()

    @cached_property
    def ranked(self) -> SparkTable:
        """The table with the rank column that orders the lists, if one does, and no other."""
        column = rank_column(self.names, self.scored, self.rank_named)
        names = {role: name for role, name in self.names.items() if role not in ("rank", "own_rank")}
        return replace(self, names=names if column is None else {**names, "rank": column})

    @property
    def ordered(self) -> bool:
        """Whether the lists have an order of their own, whatever their scores."""
        return "rank" in self.ranked.names or not self.scored

    def not_a_number(self, role: str) -> Any:
        """Whether a row has text that is not a number."""
        return self.column(role).isNotNull() & self.number(role).isNull() if self.is_text(role) else sf.lit(False)


def is_spark_frame(frame: Any) -> bool:
    """Whether it is a frame of Spark or of Spark Connect, which share no base class in some versions."""
    return type(frame).__module__.startswith("pyspark.sql.") and hasattr(frame, "mapInArrow")


def table_of(frame: Any, roles: Mapping[str, str | None], what: str) -> SparkTable:
    """The frame, with its columns found by their usual names or as `roles` names them."""
    names: dict[str, str] = {}
    notes: list[Note] = []
    for role, named in roles.items():
        column = find_name(frame.columns, role, named, required=role in ("query_id", "doc_id"))
        if column is None:
            continue
        names[role] = column
        kind = _kind(frame, column)
        if role in ("query_id", "doc_id", "target", "run"):
            if kind not in (*_WHOLE, *_TEXT, "void"):
                raise not_ids_error(column, role, kind)
            if kind in _WHOLE and role in ("query_id", "doc_id"):
                notes.append(note("ids-are-numbers", role=role))
        elif kind not in (*_NUMBERS, *_TEXT):
            raise InputError(f"{what}: column {column!r} ({role}) has the type {kind}; expected numbers.")
    return SparkTable(frame, names, tuple(notes))


def qrels_rows(table: SparkTable) -> Any:
    """query_id, kind, doc_id, value (the grade), label (the target), row (the position in the frame)."""
    query, doc = table.column("query_id"), table.column("doc_id")
    grade = table.number("grade") if "grade" in table.names else sf.lit(1.0)
    kind = _first(
        (query.isNull(), Kind.JUDGED_NO_QUERY),
        (table.not_a_number("grade"), Kind.GRADE_IS_TEXT),
        (doc.isNotNull() & grade.isNull(), Kind.NO_GRADE),
        (doc.isNotNull() & ~_finite(grade), Kind.GRADE_NOT_FINITE),
        otherwise=Kind.JUDGMENT,
    )
    target = table.column("target").cast("string") if "target" in table.names else sf.lit(None).cast("string")
    if table.is_text("grade"):
        target = sf.when(table.not_a_number("grade"), table.column("grade")).otherwise(target)
    return table.frame.select(
        query.cast("string").alias("query_id"),
        kind.alias("kind"),
        doc.cast("string").alias("doc_id"),
        grade.alias("value"),
        target.alias("label"),
        sf.monotonically_increasing_id().alias("row"),
    )


def run_rows(run: SparkTable, in_order: bool) -> Any:
    """query_id, kind, doc_id, value (the score), label, row; and run, rank and tokens, if the table has them.

    in_order: whether the position of a row in the frame matters.
    """
    table = run.ranked
    query, doc = table.column("query_id"), table.column("doc_id")
    score, rank = table.number("score"), table.number("rank")
    named = doc.isNotNull()
    faults = [
        (query.isNull(), Kind.RETRIEVED_NO_QUERY),
        (table.not_a_number("score"), Kind.SCORE_IS_TEXT),
        (table.not_a_number("rank"), Kind.RANK_IS_TEXT),
        (~named & (score.isNotNull() | rank.isNotNull()), Kind.NO_DOCUMENT),
    ]
    faults += [(named & ~_finite(score), Kind.SCORE_NOT_FINITE)] if run.scored else []
    faults += [(named & ~_finite(rank), Kind.RANK_NOT_FINITE)] if "rank" in table.names else []
    label = sf.lit(None).cast("string")
    for role in ("score", "rank"):
        if table.is_text(role):
            label = sf.when(table.not_a_number(role), table.column(role)).otherwise(label)
    columns = [
        query.cast("string").alias("query_id"),
        _first(*faults, otherwise=Kind.RETRIEVED).alias("kind"),
        doc.cast("string").alias("doc_id"),
        score.alias("value"),
        label.alias("label"),
        (sf.monotonically_increasing_id() if in_order else sf.lit(None).cast("long")).alias("row"),
    ]
    columns += [rank.alias("rank")] if "rank" in table.names else []
    columns += [table.column("run").cast("string").alias("run")] if "run" in table.names else []
    columns += [table.number("tokens").cast("long").alias("tokens")] if "tokens" in table.names else []
    return table.frame.select(*columns)


def by_query(*frames: Any) -> Any:
    """All rows; those of a query are in one partition, one after another."""
    united = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    return united.repartition("query_id").sortWithinPartitions("query_id")


def _first(*cases: tuple[Any, Kind], otherwise: Kind) -> Any:
    """The kind of the first condition that is true."""
    chosen = [sf.when(condition, sf.lit(int(kind))) for condition, kind in cases]
    return sf.coalesce(*chosen, sf.lit(int(otherwise))).cast("byte")


def _finite(number: Any) -> Any:
    # Spark orders NaN above infinity.
    return sf.coalesce(sf.abs(number) < sf.lit(float("inf")), sf.lit(False))


def _kind(frame: Any, column: str) -> str:
    return str(frame.schema[column].dataType.typeName())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


RUN_ROLES = ("query_id", "doc_id", "score", "rank", "own_rank", "tokens")


class ColumnNames(TypedDict, total=False):
    """Keywords for columns that do not have a usual name."""

    query_id: str | None
    doc_id: str | None
    grade: str | None
    target: str | None
    score: str | None
    rank: str | None


@dataclass(frozen=True)
class Columns:
    """The names of columns that the caller gave, by role; a name applies to the frames that have the column."""

    given: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def taken(cls, keywords: Mapping[str, Any]) -> tuple[Columns, dict[str, Any]]:
        """The names of columns among keywords, and the other keywords."""
        given = {role: keywords.get(role) for role in ColumnNames.__annotations__}
        return cls(given), {name: value for name, value in keywords.items() if name not in given}

    def check(self, qrels: Any, run: Any) -> None:
        """Raise for a column that neither frame has."""
        run_columns = run_frame(run).columns
        judged = list(QRELS_ROLES) if not is_spark_frame(qrels) else qrels.columns
        for role, column in self.given.items():
            if column is not None and column not in (*judged, *run_columns):
                available = f"the qrels have {', '.join(judged)}; the run has {', '.join(run_columns)}"
                raise InputError(f"no column {column!r} for {role}: {available}.")

    def qrels_table(self, frame: Any) -> SparkTable:
        """A Spark frame as qrels."""
        return table_of(frame, self._of(frame, QRELS_ROLES), "the qrels")

    def qrels_source(self, qrels: Any) -> SparkTable | Qrels:
        """A Spark frame with its columns, or Qrels on the driver."""
        return self.qrels_table(qrels) if is_spark_frame(qrels) else Qrels.of(qrels)

    def run_table(self, frame: Any, run: str | None = None) -> SparkTable:
        """A Spark frame as a run, or as several; `run` is the column that names the run of each row."""
        roles = self._of(run_frame(frame), RUN_ROLES)
        table = table_of(frame, roles if run is None else {**roles, "run": run}, "the run")
        return replace(table, rank_named=self.given.get("rank") is not None)

    def _of(self, frame: Any, roles: Sequence[str]) -> dict[str, str | None]:
        return {role: self.given.get(role) if self.given.get(role) in frame.columns else None for role in roles}


def run_frame(run: Any) -> Any:
    """A run that is a Spark frame; anything else is an error."""
    if is_spark_frame(run):
        return run
    problem = f"the run is a {type(run).__name__}; expected a Spark frame."
    raise InputError(f"{problem} To evaluate data on this machine, use steelyard.evaluate(qrels, run, measures).")


def run_column(frame: Any, named: str | None) -> str:
    """The column of a Spark frame that names the run of each row."""
    column = named or first_named(frame.columns, RUN_NAMES)
    if column is None or column not in frame.columns:
        problem = f"no column of the frame names the run of each row: it has {', '.join(frame.columns)}."
        raise InputError(f"{problem} Name one with run=..., or give a mapping of name to frame.")
    return column
