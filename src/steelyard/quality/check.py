"""check(): is the data any good? Findings with a number and their effect on the leaderboard, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.datasets import Dataset
from steelyard.evaluation import on_scale, prepare
from steelyard.io.datasets import dataset_named
from steelyard.io.reading import runs_by_name
from steelyard.measures.grammar import Measure
from steelyard.notes import SEVERITIES
from steelyard.quality import judged
from steelyard.quality.effects import Board, CheckFinding
from steelyard.quality.texts import question_findings, text_findings
from steelyard.report.documents import Document, Documented, plain_values
from steelyard.report.tables import Cell, Table
from steelyard.run import Run
from steelyard.version import __version__
from steelyard.wording import counted

MEASURES = ("nDCG@10", "RR@10", "R@100")
"""The measures of a check unless others are given; effects are of the first one."""


@dataclass(frozen=True, eq=False, repr=False)
class Check(Documented):
    """The result of `check`: `findings`, and by measure the best value (`ceilings`) and `smallest_difference`."""

    name: str
    findings: tuple[CheckFinding, ...]
    ceilings: Mapping[str, float]
    smallest_difference: Mapping[str, float]

    @property
    def problems(self) -> int:
        """The findings that are errors or warnings."""
        return sum(finding.severity != "info" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """How many findings there are, and the largest effect."""
        summary = f"{self.name}: {counted(len(self.findings), 'finding') if self.findings else 'no finding'}"
        worst = max(self.findings, key=lambda finding: finding.largest, default=None)
        if worst is None or not worst.effect:
            return summary
        return f"{summary}; the largest effect on {worst.effect['measure']} is {worst.largest:.4f} ({worst.code})"

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `check`."""
        return {
            "steelyard": __version__,
            "dataset": self.name,
            "findings": [plain_values({**vars(issue), "examples": list(issue.examples)}) for issue in self.findings],
            "ceilings": plain_values(dict(self.ceilings)),
            "smallest_difference": plain_values(dict(self.smallest_difference)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Check:
        """The result of `to_dict`."""
        findings = tuple(CheckFinding(**{**entry, "examples": tuple(entry["examples"])}) for entry in data["findings"])
        return cls(data["dataset"], findings, data["ceilings"], data["smallest_difference"])

    def data_table(self) -> Table:
        """One row per finding."""
        rows: list[list[Cell]] = [
            [one.code, one.severity, one.count, one.largest if one.effect else None, one.text, "; ".join(one.examples)]
            for one in self.findings
        ]
        return Table(["code", "severity", "count", "effect", "text", "examples"], rows)

    def document(self) -> Document:
        """The findings, worst first, with their effect; then ceilings and smallest differences."""
        rows: list[list[Cell]] = []
        for issue in self.findings:
            shown = f" ({'; '.join(issue.examples[:2])})" if issue.examples else ""
            rows.append([issue.severity, issue.count, effect_text(issue), f"{issue.text}{shown}"])
        tables = [Table(["severity", "count", "effect", "finding"], rows, keys=3)] if rows else []
        smallest, headers = self.smallest_difference, ["measure", "best possible", "smallest difference shown"]
        measures: list[list[Cell]] = [[key, value, smallest.get(key)] for key, value in self.ceilings.items()]
        width = 3 if smallest else 2
        tables += [Table(headers[:width], [row[:width] for row in measures])] if measures else []
        return Document("Check", self.verdict, tables)


def effect_text(finding: CheckFinding) -> str:
    """The run that changes most: its value now and then."""
    if finding.effect is None:
        return ""

    def then(row: Mapping[str, float]) -> float:
        return row.get("fixed", row.get("others", row["now"]))

    name, row = max(finding.effect["runs"].items(), key=lambda pair: abs(then(pair[1]) - pair[1]["now"]))
    if "affected" in row:
        return f"{name}: {row['affected']:.4f} there, {row['others']:.4f} elsewhere"
    return f"{name}: {row['now']:.4f} -> {then(row):.4f}" if "fixed" in row else ""


def check(
    dataset: Dataset | str | Path,
    runs: Mapping[str, Any] | Iterable[Any] | Run | None = None,
    measures: str | Measure | Sequence[str | Measure] | None = None,
) -> Check:
    """Is the data any good? Findings on qrels, corpus, questions and runs, each with its effect on the leaderboard.

    dataset: a Dataset, or what `Dataset.read` reads. runs: a mapping of name to run, or a list of runs or files;
    without one, effects are those on a perfect ranking. measures: default nDCG@10, RR@10 and R@100; effects are
    computed for the first one, by evaluating all runs again with the problem fixed.

    >>> corpus = {f"d{number}": f"A balance with {number} arms." for number in range(9)}
    >>> data = Dataset.of(corpus, {"q1": "weighing"}, {"q1": ["d1", "d9"]})
    >>> for finding in check(data, {"mine": {"q1": ["d1", "d2"]}}, "R@1").findings:
    ...     print(finding.code, finding.count, finding.effect["runs"])
    relevant-not-in-corpus 1 {'mine': {'now': 0.5, 'fixed': 1.0}}
    """
    loaded = dataset if isinstance(dataset, Dataset) else dataset_named(str(dataset))
    board = _board(loaded, runs_by_name(runs), list(MEASURES) if measures is None else measures)
    findings = [*text_findings(board)]
    if not len(loaded.qrels):
        return Check(loaded.name, _worst_first(findings), {}, {})
    best = judged.ceilings(board)
    findings += [*judged.qrels_findings(board), *judged.measure_findings(board, best, measures is not None)]
    findings += [*judged.missing_judgments(board), *judged.run_findings(board)]
    return Check(loaded.name, _worst_first(findings), best, judged.smallest_differences(board))


def quick_check(dataset: Dataset, runs: Mapping[str, Run], measure: str) -> Check:
    """The checks that take no pass over the corpus: of the qrels, the questions and the runs."""
    board = _board(dataset, runs, measure)
    findings = [*question_findings(board), *judged.qrels_findings(board)]
    if runs:
        findings += [*judged.missing_judgments(board), *judged.run_findings(board)]
    return Check(dataset.name, _worst_first(findings), {}, {})


def _board(dataset: Dataset, runs: Mapping[str, Run], measures: Any) -> Board:
    dialect, options, named = prepare(measures, "steelyard", {})
    return Board(dataset, runs, on_scale(named, dataset.qrels, dialect), options)


def _worst_first(findings: Iterable[CheckFinding]) -> tuple[CheckFinding, ...]:
    return tuple(sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), -f.largest, -f.count, f.code)))
