"""Scores: the values of every measure for every query, their means, intervals and coverage, and the inputs."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.coverage import Coverage
from steelyard.errors import MeasureError, did_you_mean
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.measures.compute import averaged, geometric, logarithms, summary
from steelyard.measures.grammar import Measure
from steelyard.notes import Note, by_severity
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.report.documents import Document, Documented, plain_values
from steelyard.report.tables import Cell, Table
from steelyard.run import Run
from steelyard.version import __version__
from steelyard.wording import counted

if TYPE_CHECKING:
    from altair import LayerChart


MOST_HASHED = 1_000_000
"""Runs and qrels with more rows than this have no fingerprint in a result: hashing them takes seconds."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What identifies the qrels and the run of an evaluation: themselves, or the name and the size of a file."""

    judgments: Qrels | dict[str, Any]
    run: Run | dict[str, Any] | None = None

    @classmethod
    def of(cls, source: Any, qrels: Qrels, run: Any) -> Inputs:
        """From qrels and run as they were passed, and the qrels read; a mapping or frame of a run is not kept."""
        return cls(_file(source) or qrels, run if isinstance(run, Run) else _file(run))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """`judgments` and `run`, each with its `fingerprint`, or `file` and `bytes`; without what is unknown."""
        parts = {"judgments": self.judgments, "run": self.run}
        identities = {name: part if isinstance(part, dict) else known_by(part) for name, part in parts.items()}
        return {name: identity for name, identity in identities.items() if identity is not None}


def known_by(source: Any) -> dict[str, Any] | None:
    """What identifies qrels, a run or a file; None where that is unknown or expensive to compute."""
    if isinstance(source, (Qrels, Run)):
        cheap = "fingerprint" in vars(source) or len(source) <= MOST_HASHED
        return {"fingerprint": source.fingerprint} if cheap else None
    return _file(source)


def _file(source: Any) -> dict[str, Any] | None:
    """A file by its name and its size: hashing it would take longer than evaluating it."""
    if not isinstance(source, (str, Path)) or (path := Path(source)).is_dir():
        return None
    return {"file": path.name, "bytes": path.stat().st_size if path.is_file() else None}


def versions() -> dict[str, str]:
    """The versions of Steelyard, numpy and, where it was loaded, polars."""
    data = {"steelyard": __version__}
    for name in ("numpy", "polars"):
        if name in sys.modules:
            data[name] = str(sys.modules[name].__version__)
    return data


@dataclass(frozen=True, eq=False)
class Scores(Documented):
    """The result of evaluate(). Measures are keyed as the caller wrote them.

    >>> import steelyard as sy
    >>> scores = sy.evaluate({"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["x", "b"]}, ["RR", "Hit@1"])
    >>> scores["RR"], scores.means
    (0.75, {'RR': 0.75, 'Hit@1': 0.5})
    """

    name: str
    dialect: str
    measures: Mapping[str, Measure]
    queries: Sequence[str]
    matrix: Floats
    coverage: Coverage
    inputs: Inputs | None = None
    lists: Alignment | None = None

    def __getitem__(self, measure: str | Measure) -> float:
        return self.means[key_of(measure, self.measures)]

    @property
    def policies(self) -> dict[str, Any]:
        """Every option in force: the policies, `rel` (for measures that do not state a level) and `depth`.

        >>> import steelyard as sy
        >>> policies = sy.evaluate({"q1": ["a"]}, {"q1": ["a"]}, "AP", missing="skip", depth=5).policies
        >>> policies["missing"], policies["ties"], policies["rel"], policies["depth"]
        ('skip', 'docid-desc', None, 5)
        """
        return vars(self.coverage.policies).copy()

    @property
    def settings(self) -> str:
        """The dialect and the options that are not the defaults: what the names of the measures do not state."""
        return settings_of(self.dialect, self.coverage.policies)

    @property
    def labels(self) -> dict[str, str]:
        """The name that reproduces each measure's number: with the `rel` of the call."""
        rel = self.coverage.policies.rel
        parts = ((key, part) for key, m in self.measures.items() if rel is not None for part, _ in m.parts)
        stated = {key for key, part in parts if dict(part.given).get("rel") == rel and "rel=" not in key}
        return {key: str(m) if key in stated else key for key, m in self.measures.items()}

    @property
    def notes(self) -> list[Note]:
        """What a reader should know, the most serious first."""
        return by_severity(self.coverage.all_notes())

    @cached_property
    def means(self) -> dict[str, float]:
        """Each measure over all queries: the mean, or the sum of a count."""
        return {key: summary(m, row) for (key, m), row in zip(self.measures.items(), self.matrix, strict=True)}

    def values(self, measure: str | Measure) -> Floats:
        """One measure's value for every query, in the order of `queries`; NaN where it does not apply."""
        row: Floats = self.matrix[list(self.measures).index(key_of(measure, self.measures))]
        return np.array(row)

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A polars frame: query_id, then one column per measure."""
        columns = {key: pl.Series(row) for key, row in zip(self.measures, self.matrix, strict=True)}
        return pl.DataFrame({"query_id": pl.Series(list(self.queries), dtype=pl.String), **columns})

    def judged(self, measure: str | Measure) -> float:
        """The share of judged documents among those above the measure's cutoff, averaged over queries.

        >>> import steelyard as sy
        >>> sy.evaluate({"q": {"a": 1}}, {"q": ["a", "b"]}, ["P@2"]).judged("P@2")
        0.5
        """
        from steelyard.measures.bounds import judged_share

        a = self._known_lists()
        shares = judged_share(self.measures[key_of(measure, self.measures)], a)[a.answered & (a.retrieved > 0)]
        return float(shares.mean()) if len(shares) else float("nan")

    def bounds(self, measure: str | Measure) -> tuple[float, float]:
        """The lowest and the highest mean that any grading of the unjudged documents in the lists could give.

        >>> import steelyard as sy
        >>> sy.evaluate({"q": {"a": 1}}, {"q": ["a", "b"]}, ["P@2"]).bounds("P@2")
        (0.5, 1.0)
        """
        from steelyard.measures.bounds import bounds
        from steelyard.measures.gradings import unjudged

        a, parsed = self._known_lists(), self.measures[key_of(measure, self.measures)]
        queries = set(self.queries)
        kept = np.array([query in queries for query in a.queries], dtype=bool)
        found = bounds(parsed, a).where(kept)
        return found.of_values(self.values(measure), unjudged(a).counts[kept]).summary(parsed)

    def _known_lists(self) -> Alignment:
        if self.lists is None:
            raise MeasureError("the lists of this run are not known: its scores were not computed by evaluate() here.")
        return self.lists

    def interval(
        self, measure: str | Measure, level: float = 0.95, draws: int | None = None, seed: int = 0
    ) -> tuple[float, float]:
        """An interval of the mean over queries: low and high, by bootstrap, the same for the same seed.

        For a geometric mean it is that of the mean of the logarithms. Sums and percentiles have none: an error.
        """
        from steelyard.statistics.intervals import mean_interval

        key, values = key_of(measure, self.measures), self.values(measure)
        parsed = self.measures[key]
        if geometric(parsed):
            low, high = mean_interval(logarithms(values), level=level, draws=draws, seed=seed)
            return _within(parsed, (math.exp(low), math.exp(high)))
        if not averaged(parsed):
            raise no_interval(key)
        return _within(parsed, mean_interval(values, level=level, draws=draws, seed=seed))

    def intervals(self, level: float = 0.95, seed: int = 0) -> dict[str, tuple[float, float] | None]:
        """The interval of every measure that is a mean or a geometric mean; None for the ones that are not."""
        from steelyard.statistics.intervals import mean_intervals

        means = [key for key, m in self.measures.items() if averaged(m)]
        rows = [list(self.measures).index(key) for key in means]
        ends = mean_intervals(self.matrix[rows], level=level, seed=seed) if rows else []
        limits = {key: _within(self.measures[key], both) for key, both in zip(means, ends, strict=True)}
        limits |= {key: self.interval(key, level, seed=seed) for key, m in self.measures.items() if geometric(m)}
        return {key: limits.get(key) for key in self.measures}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the result: every value of every measure, spelled out, the dialect, the policies, the version.

        The same runs, qrels and settings give the same fingerprint; so do other runs with the same values. `inputs`
        identifies the data.
        """
        import hashlib

        digest = hashlib.sha256(f"{__version__} {self.dialect} {self.policies}".encode())
        digest.update("\n".join([*self.queries, *(m.spelled for m in self.measures.values())]).encode())
        digest.update(self.matrix.astype("<f8").tobytes())
        return digest.hexdigest()[:16]

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """As in the JSON of `evaluate`, one run's part."""
        data: dict[str, Any] = {
            "name": self.name,
            "means": plain_values(self.means),
            "intervals": {key: plain_values(ends and list(ends)) for key, ends in self.intervals().items()},
            "coverage": self.coverage.counts(),
            "fingerprint": self.fingerprint,
            "policies": self.policies,
            "measures": {key: measure.spelled for key, measure in self.measures.items()},
        }
        if self.inputs is not None:
            data["inputs"] = self.inputs.to_dict()
        if per_query:
            rows = self.matrix.T.tolist()
            data["per_query"] = {
                query: dict(zip(self.measures, plain_values(row), strict=True))
                for query, row in zip(self.queries, rows, strict=True)
            }
        return data

    def to_json(self, per_query: bool = False) -> str:
        """The JSON of `evaluate` for this run alone."""
        import json

        data = {"steelyard": __version__, "versions": versions(), "dialect": self.dialect}
        return json.dumps({**data, "runs": [self.to_dict(per_query)]}, indent=1)

    def plot(self) -> LayerChart:
        """Every measure's mean with its interval, as an altair chart for notebooks; needs the extra `report`."""
        intervals = self.intervals()
        rows = []
        for key, mean in self.means.items():
            low, high = intervals[key] or (math.nan, math.nan)
            rows.append(plain_values({"measure": key, "value": mean, "low": low, "high": high}))
        title = f"{self.name}, {counted(len(self.queries), 'query', 'queries')}"
        chart: LayerChart = looked_up("steelyard.report.charts.plots:means_plot")(rows, "measure", title)
        return chart

    def __repr__(self) -> str:
        labels = self.labels
        width = max(map(len, labels.values()), default=0)
        lines = [f"  {labels[key]:<{width}}  {value:.4f}" for key, value in self.means.items()]
        settings = [f"  Measured with {self.settings}."] if self.settings else []
        head = f"Scores of {self.name!r} over {counted(len(self.queries), 'query', 'queries')}"
        return "\n".join([head, *lines, *settings, f"  {self.coverage}"])

    def document(self) -> Document:
        """Every measure with its interval and its definition, the settings and the coverage."""
        title = f"Scores of {self.name} over {counted(len(self.queries), 'query', 'queries')}"
        rows: list[list[Cell]] = []
        for key, ends in self.intervals().items():
            interval = "" if ends is None or math.isnan(ends[0]) else f"{ends[0]:.4f} to {ends[1]:.4f}"
            rows.append([key, self.means[key], interval, self.measures[key].spelled])
        table = Table(["measure", "value", "95% interval", "definition"], rows)
        settings = [f"Measured with {self.settings}."] if self.settings else []
        return Document(title, title, [table], [*settings, str(self.coverage)])

    def data_table(self) -> Table:
        """One row per query: its id, and the value of every measure."""
        return Table(["query_id", *self.measures], list(zip(self.queries, *self.matrix.tolist(), strict=True)))


def settings_of(dialect: str, options: Options) -> str:
    """The dialect and the options that are not the defaults; empty where all are."""
    return ", ".join(filter(None, ["" if dialect in ("", "steelyard") else f"dialect={dialect}", options.summary()]))


def no_interval(key: str) -> MeasureError:
    """The error for the interval of a sum or a percentile."""
    return MeasureError(f"{key} is not a mean over queries, so it has no interval; `intervals()` has None for it.")


def _within(measure: Measure, ends: tuple[float, float]) -> tuple[float, float]:
    """The ends of an interval, within the range of the measure."""
    low, high = np.clip(ends, *measure.range).tolist()
    return low, high


def key_of(measure: str | Measure, measures: Mapping[str, Measure]) -> str:
    """The key of a measure among those that were measured, however it is written."""
    text = str(measure)
    if text in measures:
        return text
    for key, measured in measures.items():
        if str(measured) == text:
            return key
    known_ones = f"{', '.join(measures)}.{did_you_mean(text, measures)}"
    raise MeasureError(f"{text!r} was not measured; expected one of {known_ones}")
