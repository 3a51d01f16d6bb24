"""Runs in memory give the hits of the reference with and without the kernel."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import AVAILABLE, DUPLICATES, READERS, TIES, scan_dict
from reference import judged_docs, reference_hits

from needs import needs_kernel
from same_hits import same_hits
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.errors import PolicyError

JUDGED = judged_docs({"q1": ["a", "d1", "é", "\ud800"], "q2": ["x", "d2"], "q3": [], "q4": ["d1"], "q5": ["a"]})
ids = st.sampled_from(["a", "d1", "d2", "é", "x", "𝄞", "zz", "0", "long" * 30])
queries = st.sampled_from(["q1", "q2", "q3", "q4", "n1", "n2"])
numbers = st.sampled_from([1.5, 0.0, -0.0, 2, -3, 0.1, 0.10000000149, np.float64(0.1), True, 1e300, -1e300, 2**60])
numbers = numbers.filter(lambda value: value is not True)


def reference(run: dict[str, list[tuple[str, float]]], ordering: Ordering, **kwargs: Any) -> Hits:
    rows = [(query, doc, float(score)) for query, docs in run.items() for doc, score in docs]
    hits = reference_hits(rows, JUDGED, ordering)
    # Rows cannot show a query with an empty list.
    answered = np.array([query in run for query in JUDGED.query_ids])
    only = [query for query in run if query not in JUDGED.query_ids]
    return Hits(
        **{
            **hits.__dict__,
            "answered": answered,
            "run_only_queries": len(only),
            "run_only_examples": tuple(only[:3]),
            **kwargs,
        }
    )


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    run=st.dictionaries(queries, st.dictionaries(ids, numbers, max_size=8)),
    ties=st.sampled_from(TIES),
    duplicates=st.sampled_from(DUPLICATES),
    single=st.booleans(),
)
def test_dicts_of_scores(run, ties, duplicates, single):
    ordering = Ordering(ties, duplicates, single)
    expected = reference({query: list(docs.items()) for query, docs in run.items()}, ordering)
    for reader in AVAILABLE:
        found = scan_dict(reader, run, JUDGED, ordering)
        assert found is not None
        assert same_hits(found, expected)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    run=st.dictionaries(queries, st.lists(st.tuples(ids, numbers), max_size=12)),
    ties=st.sampled_from(TIES),
    duplicates=st.sampled_from(["hold", "collapse"]),
    single=st.booleans(),
    as_pairs=st.booleans(),
)
def test_ranked_lists_keep_their_order(run, ties, duplicates, single, as_pairs):
    falling = {q: [(doc, float(-i)) for i, (doc, _) in enumerate(docs)] for q, docs in run.items()}
    tops = [
        max((float(s) for _, s in run.get(q, [])), default=np.nan) if as_pairs else np.nan for q in JUDGED.query_ids
    ]
    expected = reference(falling, Ordering("stable", duplicates), top_score=np.array(tops, dtype=np.float64))
    given_run = run if as_pairs else {query: [doc for doc, _ in docs] for query, docs in run.items()}
    for reader in AVAILABLE:
        found = scan_dict(reader, given_run, JUDGED, Ordering(ties, duplicates, single))
        assert found is not None
        assert same_hits(found, expected)


UNUSUAL: dict[str, Any] = {
    "query id is a number": {1: {"a": 1.0}},
    "document id is a number": {"q1": {"a": 1.0, 2: 0.5}},
    "document id is a number, query without judgments": {"n": {2: 0.5}},
    "document id has half of a character": {"q1": {"\ud800": 1.0}},
    "query id has half of a character": {"\ud800": {"a": 1.0}},
    "an id has half of a character": {"q1": ["a", "\ud800"]},
    "ids are numbers": {"q1": ["a", 2]},
    "ids are bytes": {"q1": [b"a"]},
    "score is None": {"q1": {"a": None}},
    "score is nan": {"q1": {"a": 1.0, "b": float("nan")}},
    "score is nan in a pair": {"q1": [("a", float("nan"))]},
    "score is infinite": {"q1": {"a": float("inf"), "b": 1.0}},
    "both infinities": {"q1": {"a": float("inf"), "b": float("-inf")}},
    "score is text": {"q1": {"a": "1.0"}},
    "score is text in a pair": {"q1": [("a", "1.0")]},
    "score is complex": {"q1": {"a": 1j}},
    "score is a decimal": {"q1": {"a": Decimal("1")}},
    "score is too large": {"q1": {"a": 10**400}},
    "list is text": {"q1": "abc"},
    "list is nothing": {"q1": None},
    "list is a set": {"q1": {"a", "b"}},
    "pairs of three": {"q1": [("a", 1.0, 2)]},
    "pairs beside ids": {"q1": [("a", 1.0), "b"]},
    "ids beside pairs": {"q1": ["b", ("a", 1.0)]},
    "dicts beside lists": {"q1": {"a": 1.0}, "q2": ["x"]},
    "an array": {"q1": np.array(["a", "b"])},
}


@needs_kernel
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_runs_are_left_to_the_constructor_of_run(name: str) -> None:
    assert scan_dict("native", UNUSUAL[name], JUDGED, Ordering()) is None
    assert scan_dict("native", {"q4": {"d1": 2.0}, **UNUSUAL[name]}, JUDGED, Ordering()) is None


@pytest.mark.parametrize("reader", READERS)
def test_other_mappings(reader: str) -> None:
    ordered = OrderedDict([("a", 1.0), ("d1", 1.0)])
    ordered.move_to_end("a")
    counted = Counter({"x": 3, "d2": 5})
    default = defaultdict(float, {"d1": 0.5})
    rows = {"q1": list(ordered.items()), "q2": list(counted.items()), "q4": list(default.items())}
    run = MappingProxyType({"q1": ordered, "q2": counted, "q4": default})
    found = scan_dict(reader, run, JUDGED, Ordering("stable"))
    assert found is not None
    assert same_hits(found, reference(rows, Ordering("stable")))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.uint8])
def test_numpy_numbers(reader: str, kind: Any) -> None:
    rows = {"q1": [("a", kind(3)), ("b", kind(7)), ("d1", kind(3))]}
    found = scan_dict(reader, {"q1": dict(rows["q1"])}, JUDGED, Ordering())
    assert found is not None
    assert same_hits(found, reference(rows, Ordering()))


@pytest.mark.parametrize("reader", READERS)
def test_repeat_error_names_the_first_repeat(reader: str) -> None:
    run = {"q4": ["z", "y", "z"], "q2": ["x", "b", "b"]}
    with pytest.raises(PolicyError, match=r"(?s)2 documents are repeated .*:\n  query 'q2': document 'b'\n"):
        scan_dict(reader, run, JUDGED, Ordering(duplicates="error"))


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_long_lists_with_many_ties_and_hits(reader: str) -> None:
    rng = np.random.default_rng(5)
    docs = [f"d{i}" for i in rng.permutation(2000)]
    for levels in (1, 7, 100000):
        scores = rng.integers(0, levels, 2000).astype(float).tolist()
        for row in (scores, sorted(scores, reverse=True)):
            judged = judged_docs({"q": docs[::9]})
            for ties in TIES:
                found = scan_dict(reader, {"q": dict(zip(docs, row, strict=True))}, judged, Ordering(ties))
                rows = [("q", doc, score) for doc, score in zip(docs, row, strict=True)]
                assert found is not None
                assert same_hits(found, reference_hits(rows, judged, Ordering(ties)))


@pytest.mark.parametrize("reader", READERS)
def test_empty_runs_and_qrels(reader: str) -> None:
    empty = JudgedDocs([], np.zeros(1, dtype=np.int64), [])
    for run, judged in (({}, JUDGED), ({}, empty), ({"q1": {}}, empty), ({"q1": []}, JUDGED)):
        found = scan_dict(reader, run, judged, Ordering())
        assert found is not None
        assert found.retrieved.tolist() == [0] * len(judged.query_ids)
        assert found.answered.tolist() == [query in run for query in judged.query_ids]


@pytest.mark.parametrize("reader", READERS)
def test_many_runs_with_the_same_judged_documents(reader: str) -> None:
    """What the first scan keeps of the judged documents serves the next ones, also for queries in another order."""
    rng = np.random.default_rng(3)
    docs = [f"d{i}" for i in range(1500)]
    judged = judged_docs(
        {f"q{n}": rng.choice(docs, size, replace=False).tolist() for n, size in enumerate((3, 64, 700, 0))}
    )
    for _ in range(4):
        rows = [
            (str(query), str(doc), float(score))
            for query in rng.permutation([*judged.query_ids, "n1"])
            for doc, score in zip(rng.choice(docs, 900, replace=False), rng.integers(0, 50, 900), strict=True)
        ]
        run: dict[str, dict[str, float]] = {}
        for query, doc, score in rows:
            run.setdefault(query, {})[doc] = score
        found = scan_dict(reader, run, judged, Ordering())
        assert found is not None
        assert same_hits(found, reference_hits(rows, judged, Ordering()))


@pytest.mark.parametrize("reader", READERS)
def test_so_many_documents_that_some_have_the_same_hash(reader: str) -> None:
    """Of 150,000 judged and as many other documents about five share a hash of 32 bits."""
    size = 150_000
    judged = judged_docs({"q": [f"judged-{i}" for i in range(size)]})
    run = {f"other-{i}": float(-i) for i in range(size)} | {f"judged-{i}": 1.0 + i for i in range(0, size, 1000)}
    found = scan_dict(reader, {"q": run}, judged, Ordering())
    assert found is not None
    assert found.doc.tolist() == list(range(0, size, 1000))[::-1]
    assert found.rank.tolist() == list(range(1, size // 1000 + 1))


def test_judged_documents_are_copied_and_pickled_after_a_scan() -> None:
    import copy
    import pickle

    judged = judged_docs({"q": ["a", "b"]})
    before = scan_dict(AVAILABLE[0], {"q": {"b": 1.0}}, judged, Ordering())
    for other in (pickle.loads(pickle.dumps(judged)), copy.deepcopy(judged)):
        after = scan_dict(AVAILABLE[0], {"q": {"b": 1.0}}, other, Ordering())
        assert before is not None
        assert after is not None
        assert same_hits(after, before)
