"""JSON and JSON lines: every form of a run and of judgments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import InputError
from steelyard.io import sniff
from steelyard.qrels import Qrels
from steelyard.run import Run

SCORED = Run({"q1": {"a": 2.5, "b": 1.5}, "q2": {"a": 1.0}})
RANKED = Run({"q1": [("b", 1.5), ("a", 2.5)], "q2": [("a", 1.0)]})
JUDGED = Qrels({"q1": {"a": 2, "b": -1}, "q2": {"a": 0}})


def dump(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def dump_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


ROWS = [
    {"query_id": "q1", "doc_id": "a", "score": 2.5},
    {"query_id": "q1", "doc_id": "b", "score": 1.5},
    {"query_id": "q2", "doc_id": "a", "score": 1},
]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"q1": {"a": 2.5, "b": 1.5}, "q2": {"a": 1}}, SCORED),
        ({"q1": ["b", "a"], "q2": ["a"]}, Run({"q1": ["b", "a"], "q2": ["a"]})),
        ({"q1": [["b", 1.5], ["a", 2.5]], "q2": [["a", 1]]}, RANKED),
        (
            {"q1": [{"doc_id": "b", "score": 1.5}, {"doc_id": "a", "score": 2.5}], "q2": [{"docid": "a", "score": 1}]},
            RANKED,
        ),
        ({"q1": [{"id": "b"}, {"id": "a"}], "q2": [{"id": "a"}]}, Run({"q1": ["b", "a"], "q2": ["a"]})),
        ({"q1": [], "q2": {"a": 1.0}}, Run({"q2": {"a": 1.0}, "q1": {}})),
        ({"q1": {}, "q2": ["a"]}, Run({"q2": ["a"], "q1": []})),
        (ROWS, SCORED),
        ([{"query_id": "q1", "results": {"a": 2.5, "b": 1.5}}, {"query_id": "q2", "results": {"a": 1}}], SCORED),
        (
            [{"qid": "q1", "hits": ["b", "a"], "scores": [1.5, 2.5]}, {"qid": "q2", "hits": ["a"], "scores": [1]}],
            RANKED,
        ),
    ],
)
def test_runs(file: Path, content: Any, expected: Run) -> None:
    run = Run.read(dump(file, content))
    assert run == expected
    assert run.ordered == expected.ordered


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"q1": {"a": 2, "b": -1}, "q2": {"a": 0}}, JUDGED),
        ({"q1": {"a": 0.5}}, Qrels({"q1": {"a": 0.5}})),
        ({"q1": ["a", "b"], "q2": []}, Qrels({"q1": ["a", "b"], "q2": []})),
        ({"q1": [["a", "b"], ["c"]], "q2": []}, Qrels({"q1": [["a", "b"], ["c"]], "q2": []})),
        ([{"query_id": "q1", "doc_id": "a", "grade": 2}, {"query_id": "q2"}], Qrels({"q1": {"a": 2}, "q2": {}})),
        ([{"qid": 1, "relevant_docs": [7, 8]}, {"qid": 2, "relevant_docs": []}], Qrels({"1": ["7", "8"], "2": []})),
        (
            [{"query_id": "q1", "judgments": [{"doc_id": "a", "grade": 2, "target": "t"}]}],
            Qrels.from_rows([("q1", "a", 2, "t")]),
        ),
    ],
)
def test_judgments(file: Path, content: Any, expected: Qrels) -> None:
    assert Qrels.read(dump(file, content)) == expected


@pytest.mark.parametrize(
    "records", [ROWS, [{"query_id": "q1", "results": {"a": 2.5, "b": 1.5}}, {"query_id": "q2", "results": {"a": 1.0}}]]
)
def test_lines(file: Path, records: list[Any]) -> None:
    assert Run.read(dump_lines(file, records)) == SCORED
    assert sniff(file).format == "jsonl"


def test_one_line_is_a_record_or_an_object(file: Path) -> None:
    dump_lines(file, [{"query_id": "q1", "results": [{"doc_id": "a", "score": 1.0}]}])
    assert sniff(file).format == "jsonl"
    assert Run.read(file) == Run({"q1": [("a", 1.0)]})
    dump_lines(file, [{"query_id": {"a": 1.0}, "results": {"b": 2.0}}])
    assert sniff(file).format == "json"
    assert Run.read(file) == Run({"query_id": {"a": 1.0}, "results": {"b": 2.0}})


def test_long_lines(file: Path) -> None:
    long = {f"document-{number}": number / 7 for number in range(20_000)}
    dump_lines(file, [{"query_id": "q1", "results": long}, {"query_id": "q2", "results": long}])
    assert sniff(file).format == "jsonl"
    assert len(Run.read(file)) == 40_000
    dump(file, {"q1": long})
    assert sniff(file).format == "json"
    assert len(Run.read(file)) == 20_000


def test_fields_by_name(file: Path) -> None:
    dump_lines(file, [{"frage": "q1", "treffer": ["a"]}, {"frage": "q2", "treffer": ["b"]}])
    assert Run.read(file, query_id="frage", doc_id="treffer") == Run({"q1": ["a"], "q2": ["b"]})


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ({"q1": {"a": 2}}, "qrels"),
        ({"q1": {"a": 2.5}}, "run"),
        ({"q1": [["a"], ["b"]]}, "qrels"),
        ({"q1": [["a", 0.5]]}, "run"),
    ],
)
def test_likely_kind_of_an_object(file: Path, content: Any, format: str) -> None:
    assert sniff(dump(file, content)).likely == format


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"q1": {"a": 1}, "q1": {"b": 2}}', "the name 'q1' occurs twice"),
        ('{"q1": {"a": 1.5, "a": 2}}', "the name 'a' occurs twice"),
        ('{"q1": {"a": 1},\n "q2": {"a" 2}}', "line 2, column 13: not JSON"),
        ('{"q1": {"a": NaN}}', "score nan is not a finite number"),
        ('{"q1": {"a": "high"}}', "score 'high' is not a finite number"),
        ('{"q1": 3, "q2": {"a": 1.5}}', "1 of 2 queries has neither an object nor a list"),
        ("{}", "empty JSON object"),
        ("[]", "the records hold no query and documents"),
        ("[1, 2]", "the records hold no query and documents"),
        ('[{"query_id": "q1", "doc_id": "a", "score": "9"}]', "expected numbers"),
        ('[{"query_id": "q1", "doc_id": true, "score": 9}]', "expected text"),
        ('[{"qid": "q1", "hits": ["a"]}, {"qid": "q1", "hits": ["b"]}]', "row 2: 'q1', as row 1"),
        ('[{"qid": "q1", "hits": ["a", "b"], "scores": [1]}]', "has 2 documents and 1 score"),
        ("[" * 5000, "nested too deep"),
    ],
)
def test_wrong_json(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        Run.read(file)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_wrong_lines_are_listed(file: Path) -> None:
    file.write_text('{"query_id": "q1", "results": ["a"]}\n{"query_id": "q2"\n[1]\n{"query_id": "q4", "results": []}\n')
    with pytest.raises(InputError) as caught:
        Run.read(file, format="jsonl")
    assert "2 lines are not as expected" in str(caught.value)
    assert "line 2:" in str(caught.value)
    assert "line 3: a list, not an object" in str(caught.value)


def test_a_repeated_document_cannot_be_written_as_an_object(file: Path) -> None:
    import polars as pl

    run = Run(pl.DataFrame({"qid": ["q", "q"], "docid": ["a", "a"], "score": [1.0, 2.0]}))
    with pytest.raises(InputError, match="occurs twice, and a JSON object holds one score"):
        run.write(file, "json")


def nested(*results):
    return [{"query_id": "q1", "results": [dict(zip(("doc_id", "rank", "score"), r, strict=False)) for r in results]}]


@pytest.mark.parametrize(
    ("results", "order"),
    [
        ([("d1", 2), ("d2", 1)], ["d2", "d1"]),
        ([("d1", 2, 1.0), ("d2", 1, 2.0)], ["d2", "d1"]),  # The list has another order than its scores and ranks.
        ([("d1", 1, 1.0), ("d2", 2, 2.0)], ["d1", "d2"]),  # Reranked, with the scores from before.
        ([("d1", 1, 2.0), ("d2", 2, 1.0)], ["d1", "d2"]),
    ],
)
def test_ranks_order_nested_records(tmp_path, results, order):
    (tmp_path / "r.jsonl").write_text(json.dumps(nested(*results)[0]))
    for run in (Run(nested(*results)), Run.read(tmp_path / "r.jsonl")):
        assert run.frame["doc_id"].to_list() == order
        assert not [note for note in run.notes if note.code == "ranks-ignored"]


def test_ranks_do_not_move_records_away_from_their_list_of_scores():
    (record,) = nested(("d1", 2), ("d2", 1))
    assert Run([record | {"scores": [1.0, 2.0]}]) == Run({"q1": [("d1", 1.0), ("d2", 2.0)]})


def test_ranks_that_contradict_the_scores_of_nested_records_are_noted():
    records = nested(("d1", 2, 2.0), ("d2", 1, 1.0))
    run = Run(records)
    assert run.frame["doc_id"].to_list() == ["d1", "d2"]
    (ignored,) = (note for note in run.notes if note.code == "ranks-ignored")
    assert "the column 'rank' gives another order than the scores in 1 query" in str(ignored)
    for record in records[0]["results"]:
        record["own_rank"] = record.pop("rank")
    run = Run(records)
    assert run.frame["doc_id"].to_list() == ["d2", "d1"]
    assert not run.notes


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([("d1", 2), ("d2",)], "query 'q1': some of its documents have a rank and some have none"),
        ([("d1", 2), ("d2", "b")], r"query 'q1': its ranks are \[2, 'b'\]; expected numbers"),
    ],
)
def test_wrong_ranks_of_nested_records_are_refused(results, message):
    with pytest.raises(InputError, match=message):
        Run(nested(*results))
