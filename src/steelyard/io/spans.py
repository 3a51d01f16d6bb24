"""OpenTelemetry: exports of spans, one JSON object per line, with the retrievers and rerankers of every question.

Lines may be OTLP (the file exporter of the collector), spans as the Python SDK writes them, or rows of Phoenix. The
attributes are those of OpenInference (`openinference.span.kind`, `retrieval.documents`, `reranker.output_documents`)
or of OpenTelemetry's conventions for generative AI (`gen_ai.retrieval.documents`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.errors import InputError
from steelyard.io.files import read_bytes, reading
from steelyard.notes import Note, note
from steelyard.wording import counted

RETRIEVER, RERANKER = "RETRIEVER", "RERANKER"
_STAGES = {RETRIEVER: "retrieve", RERANKER: "rerank"}
_DOCUMENTS = {
    RETRIEVER: ("retrieval.documents", "gen_ai.retrieval.documents"),
    RERANKER: ("reranker.output_documents",),
}
_OPERATIONS = {"retrieval": RETRIEVER, "rerank": RERANKER}
_QUERY_IDS = ("query_id", "query.id", "metadata.query_id", "metadata.query.id")
_QUESTIONS = ("input.value", "gen_ai.retrieval.query.text", "reranker.query")
_INNER = ("query", "question", "input")


@dataclass(frozen=True)
class Span:
    """A span: its trace, itself, its parent, when it started, and its attributes with dots in their names."""

    trace: str
    id: str
    parent: str
    start: str
    attributes: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """RETRIEVER, RERANKER or another kind."""
        span_kind = self.attributes.get("openinference.span.kind") or self.attributes.get("span_kind")
        return str(span_kind or _OPERATIONS.get(str(self.attributes.get("gen_ai.operation.name")), "")).upper()


def read_spans(path: Path, known: Collection[str], texts: Mapping[str, str]) -> tuple[dict[str, Any], list[Note]]:
    """The stages of an export of spans, as `stages` takes them, and notes: retriever spans are calls of `retrieve`.

    known: the query ids. texts: the questions by id. A trace belongs to the query whose id is in the attribute
    `query_id` or `metadata.query_id` of a span, or whose text is the input of its first span. Of several, the last.
    """
    spans: list[Span] = []
    with reading(path):
        for number, line in enumerate(read_bytes(path).split(b"\n"), start=1):
            if line.strip():
                try:
                    content = json.loads(line)
                except (ValueError, RecursionError):
                    raise InputError(f"line {number} is not JSON; expected one JSON object per line.", path) from None
                spans += _spans(content, f"{path}, line {number}")
    traces: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda node: (len(node.start), node.start)):
        traces.setdefault(span.trace, []).append(span)
    by_text = {_plain(text): query for query, text in texts.items()}
    last: dict[str, dict[str, list[list[str]]]] = {}
    unmatched = []
    for trace in traces.values():
        steps = _steps(trace)
        query = _query_of(trace, known, by_text) if any(steps.values()) else None
        if query is not None:
            last[query] = steps
        elif any(steps.values()):
            unmatched.append(_question(trace))
    if not last and unmatched:
        problem = f"no trace belongs to a query of the qrels; the first question is {unmatched[0]!r}"
        advice = "Set the attribute metadata.query_id of a span, or give the texts of the queries (--set queries=FILE)"
        raise InputError(f"{problem}. {advice}.", path)
    if not last:
        problem = f"has {counted(len(spans), 'span')}, and none is of a retriever or a reranker with documents"
        names = "openinference.span.kind and retrieval.documents, or gen_ai.retrieval.documents"
        raise InputError(f"{problem}; expected the attributes {names}.", path)
    lists: dict[str, list[dict[str, list[str]]]] = {stage: [] for stage in _STAGES.values()}
    for query, steps in last.items():
        for stage, calls in steps.items():
            lists[stage] += [{} for _ in calls[len(lists[stage]) :]]
            for number, call in enumerate(calls):
                lists[stage][number][query] = call
    stages: dict[str, Any] = {
        stage: {"calls": calls} if len(calls) > 1 else calls[0] for stage, calls in lists.items() if calls
    }
    return stages, [note("spans-unmatched", count=len(unmatched), question=unmatched[0])] if unmatched else []


def _spans(line: Any, where: str) -> Iterator[Span]:
    if not isinstance(line, Mapping):
        raise InputError(f"{where}: expected a JSON object with a span.")
    if "resourceSpans" in line:
        scopes = [group for one in _dicts(line["resourceSpans"]) for group in _dicts(one.get("scopeSpans"))]
        names = ("traceId", "spanId", "parentSpanId", "startTimeUnixNano")
        for given in (record for scope in scopes for record in _dicts(scope.get("spans"))):
            pairs = _dicts(given.get("attributes"))
            span_attributes = _flat({str(pair.get("key")): _otlp_value(pair.get("value")) for pair in pairs})
            trace, span, parent, start = (str(given.get(name) or "") for name in names)
            yield Span(trace, span, parent, start, span_attributes)
        return
    flat = _flat({key: value for key, value in line.items() if key != "attributes"})
    nested = line.get("attributes")
    attributes = _flat(nested if isinstance(nested, Mapping) else {})
    attributes |= {key.removeprefix("attributes."): value for key, value in flat.items()}
    ids = [flat.get(f"context.{name}") or flat.get(name) for name in ("trace_id", "span_id")]
    if ids[0] is None:
        raise InputError(f"{where}: the object has no context.trace_id; expected a span, or resourceSpans (OTLP).")
    ids += [flat.get("parent_id"), flat.get("start_time")]
    trace, span, parent, start = (str(field or "") for field in ids)
    yield Span(trace, span, parent, start, attributes)


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [mapping for mapping in value if isinstance(mapping, Mapping)] if isinstance(value, list) else []


def _otlp_value(value: Any) -> Any:
    """The value of an attribute in OTLP: {"stringValue": ...} and so on."""
    if not isinstance(value, Mapping):
        return value
    kind, inner = next(iter(value.items()), ("", None))
    if kind == "arrayValue" and isinstance(inner, Mapping):
        values = inner.get("values")
        return [_otlp_value(element) for element in values] if isinstance(values, list) else []
    if kind == "kvlistValue" and isinstance(inner, Mapping):
        return {str(pair.get("key")): _otlp_value(pair.get("value")) for pair in _dicts(inner.get("values"))}
    return inner


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Nested mappings and lists with dots in their names; a text of JSON in `documents` or `metadata` is read."""
    if isinstance(value, str) and name.endswith(("documents", "metadata")):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    if parts is None:
        return {name: value}
    flat: dict[str, Any] = {}
    for key, part in parts:
        flat |= _flat(part, f"{name}.{key}" if name else str(key))
    return flat


def _steps(spans: list[Span]) -> dict[str, list[list[str]]]:
    """The documents of every call of retrievers and rerankers in a trace, without those within another of its kind."""
    by_id = {span.id: span for span in spans}
    kinds: dict[str, frozenset[str]] = {}

    def kinds_from(id: str) -> frozenset[str]:
        """The kinds of a span and of those above it; each is looked at once, also if parents form a loop."""
        path: list[Span] = []
        while id in by_id and id not in kinds:
            kinds[id] = frozenset()
            path.append(by_id[id])
            id = by_id[id].parent
        union = kinds.get(id, frozenset())
        for span in reversed(path):
            union = kinds[span.id] = union | ({span.kind} & _STAGES.keys())
        return union

    def within(span: Span) -> bool:
        return span.parent != span.id and span.kind in kinds_from(span.parent)

    return {
        stage: [_documents(span) for span in spans if span.kind == kind and not within(span)]
        for kind, stage in _STAGES.items()
    }


def _documents(span: Span) -> list[str]:
    """The ids of the documents of a span, in their order."""
    for prefix in _DOCUMENTS[span.kind]:
        pattern = re.compile(rf"{re.escape(prefix)}\.(\d{{1,9}})\.(.+)")
        ids: dict[int, str | None] = {}
        for key, value in span.attributes.items():
            match = pattern.fullmatch(key)
            if match is not None:
                ids.setdefault(int(match[1]), None)
                if match[2] in ("document.id", "id") and value is not None:
                    ids[int(match[1])] = str(value)
        unnamed = min((place for place, doc in ids.items() if doc is None), default=None)
        if unnamed is not None:
            problem = f"span {span.id}: document {unnamed + 1} of {prefix} has no document.id"
            raise InputError(f"{problem}; give the documents of the retriever the ids of the qrels.")
        if ids:
            return [str(ids[place]) for place in sorted(ids)]
    return []


def _query_of(spans: list[Span], query_ids: Collection[str], by_text: Mapping[str, str]) -> str | None:
    for span in spans:
        for name in _QUERY_IDS:
            if name in span.attributes and str(span.attributes[name]) in query_ids:
                return str(span.attributes[name])
    question = _question(spans)
    return by_text.get(_plain(question), question if question in query_ids else None)


def _question(spans: list[Span]) -> str:
    """The input of the first span that has one, the root first; of JSON, its query or question."""
    for span in sorted(spans, key=lambda node: bool(node.parent)):
        for name in _QUESTIONS:
            text = span.attributes.get(name)
            if isinstance(text, str):
                with suppress(ValueError, RecursionError):
                    inner = json.loads(text)
                    if isinstance(inner, Mapping):
                        text = next((str(inner[key]) for key in _INNER if isinstance(inner.get(key), str)), text)
                return text
    return ""


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
