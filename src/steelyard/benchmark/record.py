"""The shape of result.json: what is read from it has these types, whoever wrote the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from steelyard.errors import InputError

_SHOWN = 3


def _file_name(name: str) -> str:
    if name in ("", ".", "..") or Path(name).name != name or "\\" in name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file in the folder")
    return name


class _Section(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Settings(_Section):
    measures: list[str]
    depth: int
    dialect: str | None = None
    at: list[int] | None = None
    by: str | None = None
    rel: float | None = None
    relevant_from: float | None = None
    labelled_by: str = ""
    from_judgments: bool = False
    chunkers: list[str] = []
    gate: list[str] = []
    allow_failed: int = 0


class _Dataset(_Section):
    name: str
    fingerprint: str
    documents: int


class _Run(_Section):
    run: str
    file: Annotated[str, AfterValidator(_file_name)]
    fingerprint: str
    settings: dict[str, Any]
    queries: int
    errors: dict[str, str]
    unknown_documents: int = 0
    cached: bool = False
    chunker: str | None = None
    session: str | None = None
    mean_seconds: float | None = None
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    queries_per_second: float | None = None
    index_seconds: float | None = None
    index_bytes: int | None = None
    peak_bytes: int | None = None
    stages: dict[str, list[str]] = {}


class _Place(_Section):
    run: str
    k: int | None = None


class _Comparison(_Section):
    leaderboard: list[_Place]
    weights: dict[str, float] | None = None
    not_measured: dict[str, str] = {}
    coverage: dict[str, dict[str, int]] = {}


class _Approximation(_Section):
    run: str
    exact: str
    k: int
    neighbours: float | None
    measure: str
    lost: float
    low: float
    high: float
    p_adjusted: float
    seconds: float | None
    exact_seconds: float | None


class _Effect(_Section):
    measure: str
    runs: dict[str, dict[str, float | None]]
    largest: float


class _Finding(_Section):
    model_config = ConfigDict(extra="forbid", strict=True)

    code: str
    severity: str
    count: int
    text: str
    examples: list[str]
    effect: _Effect | None


class _Check(_Section):
    dataset: str
    findings: list[_Finding]
    ceilings: dict[str, float]
    smallest_difference: dict[str, float]


class _Record(_Section):
    steelyard: str = Field(pattern=r"^\d{1,4}(\.\d{1,4}){0,2}")
    settings: _Settings
    dataset: _Dataset
    machine: dict[str, str]
    runs: list[_Run]
    comparison: _Comparison | None
    chunk_notes: list[dict[str, Any] | str] = []
    approximation: list[_Approximation] = []
    check: _Check | None = None


def checked_record(record: Any, file: Path) -> dict[str, Any]:
    """The content of result.json, or an error that names what is wrong in it."""
    try:
        _Record.model_validate(record)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"
            for detail in error.errors(include_input=False, include_url=False)[:_SHOWN]
        ]
        raise InputError(
            f"is not the result of a bench, or was changed ({'; '.join(wrong)}). Run the bench again to write it.", file
        ) from None
    return dict(record)
