"""The subject of a page: a comparison with the texts of its queries and documents, its costs and its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

from steelyard.comparison.data import ComparisonData
from steelyard.comparison.slices import COMPLEXITY, complexity
from steelyard.comparison.stages import StagesData
from steelyard.report.documents import Document
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets import Dataset

RANDOM = "random"  # The name of the control run in a comparison of runs whose retrievers are unknown.
SLICE_VALUES = 12  # Columns with more distinct values than this are not used as slices.


@dataclass(frozen=True)
class Subject:
    """A comparison and everything else that a page shows.

    queries: texts by id. columns: further columns of the queries. documents: title and text by id. costs: one mapping
    per run. errors: the error of a run by query. made: settings and fingerprint of each run. facts: pairs of name and
    value (dataset, machine). command: reproduces the page. whole: writes the page without a size limit. absent:
    sentences on what is missing, and why. controls: runs that show what no skill gives, such as `random`; they are in
    no chart, and never the best. approximation: what approximate search costs, one mapping per run. stages:
    where the runs that have stages lose relevant documents. check: what is wrong with the data.
    across_page: the address of the page over all datasets, if there are several.
    """

    comparison: ComparisonData
    title: str = "Comparison"
    queries: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    documents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    costs: Sequence[Mapping[str, Any]] = ()
    errors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    made: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    command: str = ""
    whole: str = ""
    controls: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    approximation: Sequence[Mapping[str, Any]] = ()
    stages: Sequence[StagesData] = ()
    check: Document | None = None
    across_page: str = ""

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The runs best first, without the controls; with them where fewer than two would be left."""
        order = self.comparison.run_order
        others = tuple(run for run in order if run not in self.controls or run == self.comparison.plan.baseline)
        return others if len(others) > 1 else tuple(order)

    @property
    def seconds(self) -> dict[str, float]:
        """The median seconds per query of each run that was timed."""
        times = {str(row["run"]): row.get("p50_seconds") or row.get("median_seconds") for row in self.costs}
        return {run: float(seconds) for run, seconds in times.items() if seconds}

    @cached_property
    def slice_columns(self) -> dict[str, Mapping[str, object]]:
        """The columns to slice by: those of the queries that have few distinct values, and complexity."""
        columns: dict[str, Mapping[str, object]] = {
            name: column
            for name, column in self.columns.items()
            if 1 < len({str(value) for value in column.values()}) <= SLICE_VALUES
        }
        source, rel = self.comparison.source, (self.comparison.policies or {}).get("rel")
        sizes = complexity(source.qrels, rel) if source is not None and not source.chunked else {}
        if COMPLEXITY not in columns and len(set(sizes.values())) > 1:
            columns[COMPLEXITY] = sizes
        return columns


def comparison_subject(comparison: ComparisonData, dataset: Dataset | None = None, command: str = "") -> Subject:
    """The subject of the page of a comparison; the texts are those of the dataset.

    command: the command line that made the comparison, where it was made by one; the page then gives advice for it.
    """
    source = comparison.source
    texts: dict[str, Any] = {}
    facts: list[tuple[str, str]] = []
    if dataset is not None:
        texts = {"title": dataset.name, "queries": dataset.queries, "columns": dataset.queries.columns}
        texts["documents"] = Documents(dataset)
        facts.append(("Dataset", f"{dataset.name}, {counted(len(dataset.corpus), 'document')}"))
        facts.append(("Fingerprint of the dataset", dataset.fingerprint))
    elif source is None:
        texts["absent"] = ("This page was made from scores alone: it has no lists, texts or judgments.",)
    else:
        shows = "`--set dataset=DIR`" if command else "`comparison.to_html(path, dataset)`"
        absent = "This page was made without a dataset: queries and documents are shown by their ids."
        texts["absent"] = (f"{absent} {shows} shows their texts.",)
    costs = []
    fingerprints: dict[str, tuple[str, str]] = {}
    if source is not None:
        runs = {name: source.run(name) for name in comparison.runs}
        facts.append(("Fingerprint of the qrels", source.qrels.fingerprint))
        fingerprints = {name: ("", run.fingerprint) for name, run in runs.items()}
        times = {name: run.seconds or {} for name, run in runs.items()}
        costs = [{"run": name, "median_seconds": median(t.values()) if t else None} for name, t in times.items()]
    plan = comparison.plan
    facts.append(("Test", f"{plan.test}, correction {plan.correction}, seed {plan.seed}"))
    return Subject(
        comparison=comparison,
        costs=costs,
        made=fingerprints,
        facts=facts,
        command=command or 'comparison.to_html("report.html")',
        whole="" if command else "comparison.to_html(path, everything=True)",
        controls=tuple(run for run in comparison.runs if run == RANDOM),
        **texts,
    )


class Documents(Mapping[str, tuple[str, str]]):
    """Title and text of the documents of a dataset, by id; read when first used."""

    def __init__(self, dataset: Dataset) -> None:
        self._corpus = dataset.corpus

    def __getitem__(self, doc_id: str) -> tuple[str, str]:
        return self._corpus.titles[doc_id], self._corpus.texts[doc_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._corpus)

    def __len__(self) -> int:
        return len(self._corpus)
