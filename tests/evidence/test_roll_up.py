"""A run of chunks as a run of documents and pages."""

from __future__ import annotations

import pytest

import steelyard as sy
from steelyard.errors import InputError
from steelyard.evidence import RollUp, roll_up

CHUNKS = [
    {"chunk_id": "a1", "doc_id": "a", "page": 1},
    {"chunk_id": "a2", "doc_id": "a", "page": 2},
    {"chunk_id": "b1", "doc_id": "b", "page": 1},
    {"chunk_id": "b2", "doc_id": "b", "page": 1},
]
RUN = sy.Run({"q": [("a1", 5.0), ("b1", 4.0), ("b2", 3.0), ("a2", 1.0)], "empty": []}, name="r", seconds={"q": 0.5})


@pytest.mark.parametrize(
    ("how", "wanted"),
    [("best", [("a", 5.0), ("b", 4.0)]), ("sum", [("b", 7.0), ("a", 6.0)]), ("first", [("a", 5.0), ("b", 4.0)])],
)
def test_documents_by_their_chunks(how: str, wanted: list[tuple[str, float]]) -> None:
    rolled = roll_up(RUN, CHUNKS, how)  # type: ignore[arg-type]
    assert rolled.frame.select("doc_id", "score").rows() == wanted
    assert rolled.queries == ["q", "empty"]
    assert (rolled.name, rolled.seconds) == ("r", {"q": 0.5})


def test_pages_mappings_and_functions() -> None:
    assert roll_up(RUN, CHUNKS, level="page").frame["doc_id"].to_list() == ["a#1", "b#1", "a#2"]
    mapping = {chunk["chunk_id"]: chunk["doc_id"] for chunk in CHUNKS}
    assert roll_up(RUN, mapping) == roll_up(RUN, CHUNKS) == roll_up(RUN, lambda chunk: chunk[0])


def test_first_keeps_an_order_that_scores_do_not_have() -> None:
    run = sy.Run({"q": [("b1", 1.0), ("a1", 9.0), ("b2", 10.0)]})
    assert roll_up(run, CHUNKS, "first").frame["doc_id"].to_list() == ["b", "a"]
    assert roll_up(run, CHUNKS, "best").frame["doc_id"].to_list() == ["b", "a"]
    assert roll_up(run, CHUNKS, "best").frame["score"].to_list() == [1.0, 9.0]


def test_distances_keep_their_order() -> None:
    run = sy.Run({"q": [("b2", 0.1), ("a1", 0.5), ("b1", 0.9)], "p": [("a2", 0.2), ("b1", 0.3)]}, "dist")
    assert roll_up(run, CHUNKS).frame.select("doc_id", "score").rows() == [
        ("b", 0.1),
        ("a", 0.5),
        ("a", 0.2),
        ("b", 0.3),
    ]
    with pytest.raises(
        InputError, match="run 'dist' has distances, which are not summed up; use how='best' or 'first'"
    ):
        roll_up(run, CHUNKS, "sum")
    mixed = sy.Run({"q": [("b2", 0.1), ("a1", 0.5), ("b1", 0.4)]})
    assert roll_up(mixed, CHUNKS, "sum").frame.select("doc_id", "score").rows() == [("b", 0.5), ("a", 0.5)]


def test_ranked_ids_without_scores() -> None:
    run = sy.Run({"q": ["b2", "a1", "b1"]})
    assert roll_up(run, CHUNKS).frame["doc_id"].to_list() == ["b", "a"]
    with pytest.raises(InputError, match="no scores to sum up"):
        roll_up(run, CHUNKS, "sum")


def test_the_same_judgments_at_both_levels() -> None:
    key = sy.Evidence({"q": [{"doc_id": "b"}]})
    by_chunk = sy.evaluate(key.judge(CHUNKS), RUN, ["RR"])
    by_document = sy.evaluate(key.judge({"a": "", "b": ""}), roll_up(RUN, CHUNKS), ["RR", "R(per=target)"])
    assert by_chunk["RR"] == by_document["RR"] == 0.5
    assert by_document["R(per=target)"] == 1.0


def test_chunks_without_a_parent() -> None:
    with pytest.raises(InputError, match="1 of 4 chunks of the run has no parent"):
        roll_up(RUN, CHUNKS[:3])
    with pytest.raises(InputError, match="have no parent"):
        roll_up(RUN, lambda chunk: "")
    with pytest.raises(InputError, match="how is 'mean'"):
        roll_up(RUN, CHUNKS, "mean")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="level is 'shelf'"):
        roll_up(RUN, CHUNKS, level="shelf")


def test_roll_up_is_one_option_of_evaluate() -> None:
    truth = {"q": ["b"]}
    assert sy.evaluate(truth, RUN, ["RR"], roll_up=CHUNKS)["RR"] == 0.5
    assert sy.evaluate(truth, RUN, ["RR"], roll_up=RollUp(CHUNKS, "sum"))["RR"] == 1.0
    pages = sy.evaluate({"q": ["a#2"]}, RUN, ["RR"], roll_up=RollUp(CHUNKS, level="page"), name="named")
    assert (pages["RR"], pages.name) == (1 / 3, "named")


@pytest.mark.parametrize(
    ("ties", "value"), [("docid-desc", 0.5), ("docid-asc", 1.0), ("stable", 1.0), ("expected", 0.75)]
)
def test_documents_with_equal_scores_are_tied(ties: str, value: float) -> None:
    """As in a run of the documents themselves: the order of the chunks' ids is no rule for the documents."""
    parents = {"c1": "A", "c2": "B"}
    scores = sy.evaluate({"q": {"A": 1}}, {"q": {"c1": 1.0, "c2": 1.0}}, ["RR"], roll_up=parents, ties=ties)
    assert scores["RR"] == value
    assert scores.coverage.counts()["tie_sensitive"] == 1
    assert scores.means == sy.evaluate({"q": {"A": 1}}, {"q": {"A": 1.0, "B": 1.0}}, ["RR"], ties=ties).means


def test_the_expected_value_counts_every_order_of_tied_documents() -> None:
    chunks = {f"c{place}": 1.0 for place in range(3)}
    parents = dict(zip(chunks, "ABC", strict=True))
    rolled = sy.evaluate({"q": {"A": 1, "C": 1}}, {"q": chunks}, ["AP"], roll_up=RollUp(parents), ties="expected")
    # Of the three pairs of places, first and second: 1; first and third: 5/6; second and third: 7/12.
    assert rolled["AP"] == pytest.approx((1 + 5 / 6 + 7 / 12) / 3)
