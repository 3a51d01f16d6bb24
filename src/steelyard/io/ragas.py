"""ragas rows: `retrieved_context_ids` is the run, `reference_context_ids` the qrels, `reference_contexts` evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from steelyard.evidence.evidence import Evidence
from steelyard.io.formats import EvidenceReader, Format, run_or_qrels
from steelyard.io.frames import NamedColumns, json_list, listed_rows, listed_run
from steelyard.io.lists import qrels_of_lists
from steelyard.io.text import Source
from steelyard.qrels import Qrels


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The contexts that answer each question."""
    name, holds = "reference_context_ids", "the ids that answer each question"
    table, queries, notes = listed_rows(source, columns, name, holds, "a ragas table")
    return qrels_of_lists(queries, table.column(name), notes)


def read_evidence(records: Sequence[Mapping[str, Any]]) -> Evidence:
    """The reference contexts of every sample, each a fact."""
    queries, notes = NamedColumns(records).query_ids()
    evidence = {
        query: [{"fact": text} for text in json_list(record.get("reference_contexts"), query)]
        for query, record in zip(queries, records, strict=True)
    }
    return Evidence(evidence, notes=notes)


FORMATS = (
    Format(
        name="ragas",
        description="ragas rows: retrieved_context_ids, reference_context_ids",
        detect=lambda shape: run_or_qrels(
            "ragas", "retrieved_context_ids" in shape.names, "reference_context_ids" in shape.names
        ),
        reads={"run": partial(listed_run, name="retrieved_context_ids", called="a ragas table"), "qrels": read_qrels},
        evidence=EvidenceReader(read_evidence, ("reference_contexts",)),
    ),
)
