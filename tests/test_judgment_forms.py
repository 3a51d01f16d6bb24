"""The forms in which judgments are written by hand: parts of a query, and records; in Python and in JSON."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from steelyard.errors import InputError

ROWS = [
    ("q1", "a", 1.0, "1"), ("q1", "b", 1.0, "1"), ("q1", "c", 1.0, "2"), ("q1", "x", -1.0, None),
    ("q2", "d", 1.0, None), ("q2", "y", 0.0, None), ("q2", "x", -1.0, None),
]  # fmt: skip
EXPECTED = sy.Qrels.from_rows(ROWS)
PARTS = {
    "q1": {"targets": [["a", "b"], ["c"]], "distractors": ["x"]},
    "q2": {"relevant": ["d"], "not_relevant": ["y"], "distractors": ["x"]},
}
RECORDS = [
    {"query_id": query, "doc_id": doc, "grade": grade, **({} if target is None else {"target": target})}
    for query, doc, grade, target in ROWS
]
PER_QUERY = [{"query_id": query, **parts} for query, parts in PARTS.items()]


@pytest.mark.parametrize("given", [PARTS, RECORDS, tuple(RECORDS), PER_QUERY])
def test_in_python(given):
    assert sy.Qrels(given) == EXPECTED


@pytest.mark.parametrize("given", [PARTS, RECORDS, PER_QUERY])
def test_in_a_json_file(given, tmp_path):
    path = tmp_path / "judgments"
    path.write_text(json.dumps(given))
    assert sy.Qrels.read(path) == EXPECTED


@pytest.mark.parametrize("given", [RECORDS, PER_QUERY])
def test_in_json_lines(given, tmp_path):
    path = tmp_path / "judgments"
    path.write_text("\n".join(map(json.dumps, given)))
    assert sy.Qrels.read(path) == EXPECTED


def test_forms_can_be_mixed():
    mixed = {"q1": PARTS["q1"], "q2": {"d": 1, "y": 0, "x": -1}, "q3": ["e"], "q4": {"targets": []}}
    qrels = sy.Qrels(mixed)
    assert qrels.queries == ["q1", "q2", "q3", "q4"]
    assert sy.Qrels({query: mixed[query] for query in ("q1", "q2")}) == EXPECTED


def test_a_target_of_one_document_needs_no_list_of_its_own():
    assert sy.Qrels({"q": {"targets": ["a", ["b", "c"]]}}) == sy.Qrels({"q": [["a"], ["b", "c"]]})


GRADED = {"q1": [{"a": 3, "b": 1}, {"c": 2, "a": 1}], "q2": [["d"], {"e": 2.5}]}
GRADED_ROWS = [
    ("q1", "a", 3.0, "1"), ("q1", "b", 1.0, "1"), ("q1", "c", 2.0, "2"), ("q1", "a", 1.0, "2"),
    ("q2", "d", 1.0, "1"), ("q2", "e", 2.5, "2"),
]  # fmt: skip


def test_targets_with_grades():
    assert sy.Qrels(GRADED) == sy.Qrels.from_rows(GRADED_ROWS)
    parts = {query: {"targets": targets} for query, targets in GRADED.items()}
    assert sy.Qrels(parts) == sy.Qrels.from_rows(GRADED_ROWS)
    assert sy.evaluate(GRADED, {"q1": ["b", "c"]}, ["R(per=target, rel=2)@2"])["R(per=target, rel=2)@2"] == 0.25


@pytest.mark.parametrize("given", [GRADED, {"q1": GRADED["q1"]}])
def test_targets_with_grades_in_a_json_file(given, tmp_path):
    path = tmp_path / "judgments"
    path.write_text(json.dumps(given))
    assert sy.Qrels.read(path) == sy.Qrels(given)


def test_documents_called_as_the_parts_are_keep_their_grades():
    assert len(sy.Qrels({"q": {"targets": 2, "distractors": -1}})) == 2


def test_evaluating_them():
    scores = sy.evaluate(PARTS, {"q1": ["x", "b", "c"], "q2": ["d"]}, ["R(per=target)@2", "Confusion@2"])
    assert scores.means == {"R(per=target)@2": 0.75, "Confusion@2": 0.25}


def test_records_with_names_of_their_own():
    given = [{"frage": 7, "stelle": "a", "note": 2}]
    qrels = sy.Qrels(given, query_id="frage", doc_id="stelle", grade="note")
    assert qrels == sy.Qrels({"7": {"a": 2}})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q1": {"targets": [["a"]], "distractor": ["x"]}}, "unknown part 'distractor'.*Did you mean distractors"),
        ({"q1": [{"a": 3}, {}]}, "target 2 is a dict; expected a non-empty list"),
        ({"q1": [{"a": 3}, {"c": -1}]}, "'c' has a grade below 0, and a distractor satisfies no target"),
        ({"q1": [{"a": "high"}]}, "document 'a': grade 'high' is not a finite number"),
        ({"q1": {"a": 1 + 2j}}, "document 'a': grade .* is not a finite number"),
        ({"q1": {"a": 10**400}}, "document 'a': grade .* is not a finite number"),
        ({"q1": [{"a": 10**400}]}, "document 'a': grade .* is not a finite number"),
        ({"q1": [{"doc_id": "a", "grade": 3}]}, "target 1 has the names of a record"),
        ({"q1": [{"doc": 7, "grade": 3}]}, "target 1 has the names of a record"),
        ({"q1": {"targets": [["a"]], "distractors": "x"}}, "distractors is a str; expected a list"),
        ({"q1": {"targets": [["a"]], "distractors": ["a"]}}, "'a' is listed under targets and under distractors"),
        ({"q1": {"targets": [[]], "distractors": []}}, "target 1 is a list; expected a non-empty list"),
        ({"q1": {"relevant": [{"doc": "a"}]}}, "is a dict; expected text"),
        ([], "there are no records"),
        ([{"qid": "q1", "targets": [["a"]]}, {"qid": "q2", "doc_id": "z"}], "record 2: 'doc_id'"),
        ([{"qid": "q1", "relevant": ["a"]}, {"qid": "q2", "doc_id": "z"}], "record 2: 'doc_id'"),
        ([{"qid": "q1", "targets": [["a"]], "distractor": ["x"]}], "'distractor' Did you mean distractors"),
        ([{"qid": "q1", "relevent": ["a"], "distractors": ["x"]}], "'relevent' Did you mean relevant"),
        ([{"qid": "q1", "targets": [["a"]]}, {"qid": "q2", "judgments": []}], "record 2: 'judgments'"),
        ([("q1", "a", 1)], 'record 1 is a tuple.*"grade": 1'),
        ([{"query_id": "q1", "title": "a"}], "no column holds the doc_id"),
        ([{"query_id": "q1", "doc_id": "a", "grade": "high"}], "'grade'.*holds 'high'; expected numbers"),
    ],
)
def test_wrong_forms_are_reported_with_what_is_expected(given, message):
    with pytest.raises(InputError, match=message):
        sy.Qrels(given)


@pytest.mark.parametrize("score", [10**400, 1 + 2j, "high", None, float("nan"), [1.0]])
def test_scores_that_are_not_finite_numbers(score):
    with pytest.raises(InputError, match="score .* is not a finite number; score the document, or remove it"):
        sy.Run({"q1": {"a": 1.0, "b": score}})


def test_a_run_from_records():
    records = [{"qid": 7, "docno": "a", "score": 1}, {"qid": 7, "docno": "b", "score": 2.5}]
    assert sy.Run(records).frame.select("query_id", "doc_id", "rank").rows() == [("7", "b", 1), ("7", "a", 2)]


PAIRS = {"q1": [["d1", 1], ["d2", 0], ["x", -1.0]], "q2": [("d1", 2.0)]}


def test_pairs_of_an_id_and_a_number_are_grades(tmp_path):
    expected = sy.Qrels({"q1": {"d1": 1, "d2": 0, "x": -1}, "q2": {"d1": 2}})
    assert sy.Qrels(PAIRS) == expected
    records = [{"query_id": query, "relevant": pairs} for query, pairs in PAIRS.items()]
    for name, text in {
        "q.json": json.dumps(PAIRS),
        "records.json": json.dumps(records),
        "q.jsonl": "\n".join(map(json.dumps, records)),
        "q.csv": "query_id,relevant\nq1,\"[['d1', 1], ['d2', 0], ['x', -1]]\"\nq2,\"[['d1', 2]]\"\n",
    }.items():
        (tmp_path / name).write_text(text)
        assert sy.Qrels.read(tmp_path / name) == expected, name


def test_pairs_of_numbers_and_of_texts_are_targets():
    assert sy.Qrels({"q1": [[1, 2], [3]]}) == sy.Qrels({"q1": [["1", "2"], ["3"]]})
    assert sy.Qrels({"q1": [["1", "2"], ["3", "4"]]}).has_targets
    assert sy.Qrels({"q1": [["d1", 1], ["d2"]]}).has_targets


def test_wrong_pairs_of_an_id_and_a_number_are_refused():
    with pytest.raises(InputError, match="document 'd1': grade nan is not a finite number"):
        sy.Qrels({"q1": [("d1", float("nan"))]})
    with pytest.raises(InputError, match="'d1'"):
        sy.Qrels({"q1": [("d1", 1), ("d1", 2)]})


def test_targets_of_nested_judgments_are_text(tmp_path):
    judgments = [{"doc_id": "a", "grade": 1, "target": 1}, {"doc_id": "b", "target": "1"}, {"doc_id": "c", "target": 0}]
    qrels = sy.Qrels([{"query_id": "q1", "judgments": [*judgments, {"doc_id": "d", "target": None}]}])
    assert qrels.frame["target"].to_list() == ["1", "1", "0", "d"]
    qrels.write(tmp_path / "q.jsonl")
    assert sy.Qrels.read(tmp_path / "q.jsonl") == qrels
    with pytest.raises(InputError, match="the judgments of query 'q1': target 1.5 is a float"):
        sy.Qrels([{"query_id": "q1", "judgments": [{"doc_id": "a", "target": 1.5}]}])
