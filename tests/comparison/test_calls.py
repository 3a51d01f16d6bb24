"""Several calls per question, and exports of spans: every number recomputed from the lists."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.cli import run as steelyard
from steelyard.errors import InputError
from steelyard.io.spans import Span, read_spans

DOCS = [f"d{n}" for n in range(12)]


def by_hand(qrels: dict[str, list[str]], calls: list[dict[str, list[str]]]) -> list[tuple[int, float, float, int, int]]:
    """Queries, recall so far, added, calls without a new document and without a new relevant one."""
    rows, before = [], 0.0
    seen: dict[str, set[str]] = {query: set() for query in qrels}
    for call in calls:
        new = {query: set(docs) - seen.get(query, set()) for query, docs in call.items()}
        for query, docs in call.items():
            seen.setdefault(query, set()).update(docs)
        recall = sum(len(seen[query] & set(docs)) / len(docs) for query, docs in qrels.items()) / len(qrels)
        nothing = sum(not docs for docs in new.values())
        useless = sum(not docs & set(qrels.get(query, ())) for query, docs in new.items())
        rows.append((len(call), recall, recall - before, nothing, useless))
        before = recall
    return rows


@pytest.mark.parametrize("seed", range(60))
def test_recall_by_call_and_what_each_added(seed: int) -> None:
    rng = random.Random(seed)
    queries = [f"q{n}" for n in range(rng.randint(1, 6))]
    qrels = {query: rng.sample(DOCS, rng.randint(1, 4)) for query in queries}
    calls = [
        {query: rng.sample(DOCS, rng.randint(0, 5)) for query in queries if rng.random() < 0.8 or query == "q0"}
        for _ in range(rng.randint(1, 4))
    ]
    calls[0]["q0"] = [DOCS[0], qrels["q0"][0]] if qrels["q0"][0] != DOCS[0] else [DOCS[0]]
    whole = {query: list(dict.fromkeys(doc for call in calls for doc in call.get(query, []))) for query in queries}
    rerank = {query: docs[:3] for query, docs in whole.items()}
    found = sy.stages(qrels, {"retrieve": {"calls": calls}, "rerank": rerank}, "R@2")
    assert found.table.equals(sy.stages(qrels, {"retrieve": whole, "rerank": rerank}, "R@2").table)
    assert found.calls is not None
    for row, expected in zip(found.calls.rows(), by_hand(qrels, calls), strict=True):
        assert row[2] == expected[0]
        assert row[3:5] == pytest.approx(expected[1:3], abs=1e-12)
        assert row[5:] == expected[3:]
    own = sy.stages(qrels, {"retrieve": {"calls": calls, "list": rerank}, "rerank": rerank}, "R@2")
    assert own.table.equals(sy.stages(qrels, {"retrieve": rerank, "rerank": rerank}, "R@2").table)
    assert own.to_dict()["calls"] == found.calls.to_dicts()


def test_a_query_that_is_called_calls_is_a_query() -> None:
    found = sy.stages({"calls": ["a"]}, {"retrieve": {"calls": ["a", "b"]}}, "R@1")
    assert found.calls is None
    assert found.value == 1.0


QRELS = {"q1": ["a", "b"], "q2": ["c"]}
TEXTS = {"q1": "Which balance?", "q2": "How heavy is gold?"}
TRACES = {
    "q1": [("RETRIEVER", ["a", "x"]), ("RETRIEVER", ["x", "b"]), ("RERANKER", ["b", "a"])],
    "q2": [("RETRIEVER", ["y", "c"]), ("RERANKER", ["y"])],
}
STAGES = {
    "retrieve": {"calls": [{"q1": ["a", "x"], "q2": ["y", "c"]}, {"q1": ["x", "b"]}]},
    "rerank": {"q1": ["b", "a"], "q2": ["y"]},
}
NAMES = {"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}


def spans(kind: str) -> list[dict[str, object]]:
    """The traces as an export of one kind writes them; a retriever within another is part of it."""
    lines: list[dict[str, object]] = []
    for number, (query, steps) in enumerate(TRACES.items()):
        root: dict[str, object] = {"openinference.span.kind": "CHAIN", "input.value": TEXTS[query].upper()}
        made = [("root", "", root)]
        for place, (what, docs) in enumerate(steps):
            documents = [{"document": {"id": doc, "score": 1.0, "content": "text"}} for doc in docs]
            made.append((f"s{place}", "root", {"openinference.span.kind": what, NAMES[what]: documents}))
        inner = [{"document": {"id": "inner"}}]
        made.append(("in", "s0", {"openinference.span.kind": "RETRIEVER", "retrieval.documents": inner}))
        for place, (name, parent, attributes) in enumerate(made):
            start = f"17000000{number}{place}"
            lines.append(LINES[kind](f"t{number}", name, parent, start, attributes))
    return lines


def flat(value: object, name: str = "") -> dict[str, object]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        return {name: value}
    return {k: v for key, each in items for k, v in flat(each, f"{name}.{key}" if name else str(key)).items()}


def otlp(trace: str, span: str, parent: str, start: str, attributes: dict[str, object]) -> dict[str, object]:
    kinds = {str: "stringValue", float: "doubleValue"}
    values = [{"key": key, "value": {kinds[type(value)]: value}} for key, value in flat(attributes).items()]
    made = {"traceId": trace, "spanId": span, "startTimeUnixNano": start, "attributes": values}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [made | ({"parentSpanId": parent} if parent else {})]}]}]}


def sdk(trace: str, span: str, parent: str, start: str, attributes: dict[str, object]) -> dict[str, object]:
    context = {"trace_id": trace, "span_id": span}
    return {"name": "x", "context": context, "parent_id": parent or None, "start_time": start} | {
        "attributes": flat(attributes)
    }


def phoenix(trace: str, span: str, parent: str, start: str, attributes: dict[str, object]) -> dict[str, object]:
    known = {"context.trace_id": trace, "context.span_id": span, "parent_id": parent or None, "start_time": start}
    kind = attributes["openinference.span.kind"]
    others = {f"attributes.{key}": value for key, value in attributes.items() if key != "openinference.span.kind"}
    return {**known, "span_kind": kind, **others}


LINES = {"otlp": otlp, "sdk": sdk, "phoenix": phoenix}


def written(folder: Path, lines: list[dict[str, object]]) -> Path:
    path = folder / "spans.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize("kind", LINES)
def test_spans_are_stages(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, spans(kind)[::-1])
    assert read_spans(path, set(QRELS), TEXTS) == (STAGES, [])
    found = sy.stages(QRELS, path, "R@1", queries=TEXTS)
    expected = sy.stages(QRELS, STAGES, "R@1")
    assert found.to_dict() == expected.to_dict()
    assert found.fates == {"never retrieved": 0, "lost in rerank": 1, "below the cutoff": 1, "delivered": 1}


def test_gen_ai_spans_and_ids_of_queries(tmp_path: Path) -> None:
    documents = json.dumps([{"id": "c", "score": 0.9}, {"id": "y", "score": 0.2}])
    attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": documents}
    lines = [sdk("t1", "s", "", "1", {**attributes, "metadata": json.dumps({"query_id": "q2"})})]
    lines += [sdk("t2", "s", "", "2", {**attributes, "gen_ai.retrieval.query.text": "q1"})]
    lines += [sdk("t3", "s", "", "3", {**attributes, "input.value": json.dumps({"query": "somebody else's"})})]
    stages, notes = read_spans(written(tmp_path, lines), set(QRELS), {})
    assert stages == {"retrieve": {"q2": ["c", "y"], "q1": ["c", "y"]}}
    assert [(each.code, dict(each.values)) for each in notes] == [
        ("spans-unmatched", {"count": 1, "question": "somebody else's"})
    ]


def test_the_last_trace_of_a_query_counts(tmp_path: Path) -> None:
    again = sdk("t9", "s", "", "9" * 12, {"openinference.span.kind": "RETRIEVER", "input.value": TEXTS["q1"]})
    again["attributes"]["retrieval.documents.0.document.id"] = "b"
    stages, _ = read_spans(written(tmp_path, [*spans("sdk"), again]), set(QRELS), TEXTS)
    assert stages["retrieve"] == {"q1": ["b"], "q2": ["y", "c"]}
    assert stages["rerank"] == {"q2": ["y"]}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", r"line 1 is not JSON; expected one JSON object per line"),
        ("[]", r"line 1: expected a JSON object with a span"),
        ('{"a": 1}', r"has no context\.trace_id; expected a span, or resourceSpans"),
        ('{"context": {"trace_id": "t"}}', r"has 1 span, and none is of a retriever or a reranker"),
        (
            json.dumps(sdk("t", "s", "", "1", {"openinference.span.kind": "RETRIEVER", "input.value": "who"})),
            r"no trace belongs to a query of the qrels; the first question is 'who'",
        ),
        (
            json.dumps(
                sdk(
                    "t",
                    "s9",
                    "",
                    "1",
                    {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "x"},
                )
            ),
            r"span s9: document 1 of retrieval\.documents has no document\.id",
        ),
    ],
)
def test_wrong_exports(text: str, error: str, tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(InputError, match=error):
        sy.stages(QRELS, path)


def test_a_long_chain_of_spans_takes_as_many_steps_as_it_has_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the parents form a loop."""
    looked: list[str] = []
    kind = Span.kind.fget
    monkeypatch.setattr(Span, "kind", property(lambda self: (looked.append(self.id), kind(self))[1]))
    chain = [(f"c{n}", f"c{n - 1}" if n else "c299", {"openinference.span.kind": "CHAIN"}) for n in range(300)]
    found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents": [{"document.id": "d1"}]}
    chain += [(f"r{n}", "c299", {**found, "metadata.query_id": "q1"}) for n in range(300)]
    chain += [("in", "r0", found), ("self", "self", found)]
    path = written(
        tmp_path, [sdk("t", span, parent, f"{place:05}", own) for place, (span, parent, own) in enumerate(chain)]
    )
    stages, _ = read_spans(path, {"q1"}, {})
    assert len(stages["retrieve"]["calls"]) == 301
    assert len(looked) < 10 * len(chain)


def test_command_reads_spans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, spans("otlp"))
    qrels = tmp_path / "qrels.json"
    qrels.write_text(json.dumps({query: dict.fromkeys(docs, 1) for query, docs in QRELS.items()}))
    texts = tmp_path / "queries.jsonl"
    texts.write_text("".join(json.dumps({"_id": query, "text": text}) + "\n" for query, text in TEXTS.items()))
    assert steelyard(["stages", str(qrels), str(path), "--set", f"queries={texts}", "-m", "R@1"]) == 0
    out = capsys.readouterr().out
    assert "Calls" in out
    assert "nothing relevant" in out
