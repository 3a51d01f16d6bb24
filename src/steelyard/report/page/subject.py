"""What a page is about: a comparison, and what is known of its queries, documents and making."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.comparison.result import Comparison
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets import Dataset


@dataclass(frozen=True)
class Subject:
    """A comparison with the texts to show, the costs, and how it was made.

    `queries` are texts by id and `columns` what else is known of them; `documents` are title and
    text by id; `costs` one mapping a run; `made` each run's settings and fingerprint; `facts` pairs of
    what and which (dataset, machine); `errors` a run's failures by query; `command` makes the page again; `absent`
    says what is not there and why.
    """

    comparison: Comparison
    title: str = "Comparison"
    queries: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    documents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    costs: Sequence[Mapping[str, Any]] = ()
    errors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    made: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    command: str = ""
    absent: tuple[str, ...] = ()

    @property
    def seconds(self) -> dict[str, float]:
        """The mean seconds a query of each run that was timed."""
        return {str(row["run"]): float(row["mean_seconds"]) for row in self.costs if row.get("mean_seconds")}


def comparison_subject(comparison: Comparison, dataset: Dataset | None = None) -> Subject:
    """What the page of a comparison alone is about; the texts are the dataset's, or those the runs carry."""
    source = comparison.source
    queries: Mapping[str, str] = {}
    columns: Mapping[str, Mapping[str, Any]] = {}
    documents: Mapping[str, tuple[str, str]] = {}
    facts: list[tuple[str, str]] = []
    absent: list[str] = []
    if dataset is not None:
        queries, columns = dataset.queries, dataset.queries.columns
        documents = Documents(dataset)
        facts.append(("Dataset", f"{dataset.name}, {counted(len(dataset.corpus), 'document')}"))
        facts.append(("Fingerprint of the dataset", dataset.fingerprint))
    elif source is None:
        absent.append("This page was made from scores alone: there are no lists, texts or judgments to show.")
    else:
        absent.append(
            "This page was made without a dataset: queries and documents are shown by their ids. "
            "`comparison.to_html(path, dataset)` shows their texts."
        )
    costs = []
    made: dict[str, tuple[str, str]] = {}
    if source is not None:
        held = {name: source.run(name) for name in comparison.runs}
        facts.append(("Fingerprint of the judgments", source.qrels.fingerprint))
        made = {name: ("", run.fingerprint) for name, run in held.items()}
        for name, run in held.items():
            taken = list((run.seconds or {}).values())
            costs.append({"run": name, "mean_seconds": sum(taken) / len(taken) if taken else None})
    plan = comparison.plan
    facts.append(("Test", f"{plan.test}, correction {plan.correction}, seed {plan.seed}"))
    return Subject(
        comparison=comparison,
        title=dataset.name if dataset is not None else "Comparison",
        queries=queries,
        columns=columns,
        documents=documents,
        costs=costs,
        made=made,
        facts=facts,
        command='comparison.to_html("report.html")',
        absent=tuple(absent),
    )


class Documents(Mapping[str, tuple[str, str]]):
    """Title and text by id, of a dataset's documents, read only when asked for."""

    def __init__(self, dataset: Dataset) -> None:
        self._corpus = dataset.corpus

    def __getitem__(self, doc_id: str) -> tuple[str, str]:
        return self._corpus.titles[doc_id], self._corpus.texts[doc_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._corpus)

    def __len__(self) -> int:
        return len(self._corpus)
