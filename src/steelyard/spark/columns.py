"""Frames of the caller as qrels and runs: Spark frames by the names of their columns, or qrels on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.errors import InputError
from steelyard.io.columns import RUN_NAMES
from steelyard.qrels import Qrels
from steelyard.spark.rows import SparkTable, is_spark_frame, table_of

QRELS_ROLES = ("query_id", "doc_id", "grade", "target")
RUN_ROLES = ("query_id", "doc_id", "score", "rank", "own_rank", "tokens")


@dataclass(frozen=True)
class Columns:
    """The names of columns that the caller gave; a name applies to the frames that have the column."""

    query_id: str | None = None
    doc_id: str | None = None
    grade: str | None = None
    target: str | None = None
    score: str | None = None
    rank: str | None = None

    def check(self, qrels: Any, run: Any) -> None:
        """Raise for a column that neither frame has."""
        judged = list(QRELS_ROLES) if not is_spark_frame(qrels) else qrels.columns
        for role, column in vars(self).items():
            if column is not None and column not in (*judged, *run.columns):
                known = f"the qrels have {', '.join(judged)}; the run has {', '.join(run.columns)}"
                raise InputError(f"no column {column!r} for {role}: {known}.")

    def qrels_table(self, frame: Any) -> SparkTable:
        """A Spark frame as qrels."""
        return table_of(frame, self._of(frame, QRELS_ROLES), "the qrels")

    def run_table(self, frame: Any, run: str | None = None) -> SparkTable:
        """A Spark frame as a run, or as several; `run` is the column that names the run of each row."""
        roles = self._of(run_frame(frame), RUN_ROLES)
        return table_of(frame, roles if run is None else {**roles, "run": run}, "the run")

    def _of(self, frame: Any, roles: Sequence[str]) -> dict[str, str | None]:
        given = {role: getattr(self, role, None) for role in roles}
        return {role: column if column in frame.columns else None for role, column in given.items()}


def qrels_source(qrels: Any, columns: Columns) -> SparkTable | Qrels:
    """A Spark frame with its columns, or Qrels on the driver."""
    return columns.qrels_table(qrels) if is_spark_frame(qrels) else Qrels.of(qrels)


def run_frame(run: Any) -> Any:
    """A run that is a Spark frame; anything else is an error."""
    if is_spark_frame(run):
        return run
    raise InputError(
        f"the run is a {type(run).__name__}; expected a Spark frame. "
        "To evaluate data on this machine, use steelyard.evaluate(qrels, run, measures)."
    )


def run_column(frame: Any, named: str | None) -> str:
    """The column of a Spark frame that names the run of each row."""
    names = {str(name).lower().strip(): str(name) for name in frame.columns}
    column = named or next((names[name] for name in RUN_NAMES if name in names), None)
    if column is None or column not in frame.columns:
        raise InputError(
            f"no column of the frame names the run of each row: it has {', '.join(frame.columns)}. Name one with "
            "run=..., or give a mapping of name to frame."
        )
    return column
