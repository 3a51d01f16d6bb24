"""Functions of the kernel refuse what they cannot use with a TypeError or ValueError; no argument ends the process."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from readers import scan_text
from reference import judged_docs

from needs import needs_kernel
from steelyard.alignment.hits import Ordering
from steelyard.native import kernel
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.bm25 import BM25

pytestmark = needs_kernel

STARTS = np.array([0, 1, 2])
TEXTS = pl.Series(["a", "a text of more than twelve bytes"])
TABLE = np.arange(300, dtype="u4") << 2 | 2
ODD = [
    *(None, True, -1, 0, 3, 2**31, 2**63 - 1, 2**64, 1.5, "x", b"q1 Q0 d1 1 1 t\n", bytearray(8), [], ["q1", "q2"]),
    *((), {}, {"q1": {"d1": 1.0}}, [1, 2], ["\udc80", ""], [None], {"q1": ["d1", ("d2", 1)]}, {1: {}}, float, int),
    *(STARTS, STARTS[::-1], STARTS[:0], STARTS[:1], -STARTS, STARTS * 9, STARTS.astype("f8"), STARTS[::2]),
    *(STARTS.astype("i4"), STARTS.astype("i4") - 9, STARTS * np.nan, STARTS.astype(">i8"), STARTS.reshape(3, 1)),
    *(np.ones((2, 2)), np.ones((3, 2), "i8"), np.full((1, 2), 255, "u1"), np.ones((0, 2)), np.ones((2, 0)), np.ones(3)),
    *(np.arange(8)[::2], np.array(["a"]), np.array([np.inf, 1.0]), np.array([None])),
    *(TEXTS, TEXTS[:1], pl.Series(["a", None]), pl.Series([1, 2]), [(TEXTS, TEXTS, np.ones(2), False)] * 2),
    *([(TEXTS, TEXTS[:1], np.ones(2), False)], [(TEXTS, TEXTS, [1.0, 2.0], False)], [(TEXTS,)]),
    *([(b"\xff" * 4, bytes(4), b"", bytes(8))], [(bytes(4), b"\xff" * 4, b"d", bytes(8))], [(b"",) * 4]),
]


def good():
    """Arguments that every function takes."""
    native = kernel()
    judged = native.Judged(["q1", "q2"], STARTS, ["d1", "d2"])
    order = [0, False, False]
    docs, weights, terms = np.array([0, 1], "i4"), np.ones(2), np.array([0, 1])
    codes = np.array([0, 1], "u2")
    return {
        native.Judged: [["q1", "q2"], STARTS, ["d1", "d2"]],
        native.Stream: [judged, *order],
        native.Ahead: [0, 10, 0, 10, *order, 1, 10],
        native.scan: [0, 10, judged, *order, 1, 10],
        native.read_qrels: [b"q1 0 d1 1\n"],
        native.read_columns: [0, 10, 1, 10],
        native.trec_lines: [TEXTS, TEXTS, np.array([1, 2]), np.ones(2), b"tag"],
        native.Judged.of_columns: [TEXTS, STARTS, TEXTS],
        native.pack_rows: [TEXTS, TEXTS, np.ones(2), judged, 4],
        native.rank_rows: [TEXTS, TEXTS, np.ones(2), judged, *order],
        native.rank_packed: [[(bytes(4), b"\1\0\0\0", b"d", bytes(8))], judged, *order],
        native.JudgedStrings: [["q1", "q2"], STARTS, ["d1", "d2"]],
        native.flatten: [[{"d1": 1}, {"d2": 0.5}]],
        native.scan_mapping: [
            {"q1": {"d1": 1.0}},
            native.JudgedStrings(["q1", "q2"], STARTS, ["d1", "d2"]),
            np.floating,
            np.integer,
            *order,
        ],
        native.scan_frame: [TEXTS, TEXTS, np.ones(2), judged, False, *order],
        native.pool_frames: [
            [(TEXTS, TEXTS, np.ones(2), False)],
            np.zeros((1, 2), "i8"),
            np.zeros((1, 2)),
            np.zeros(2, "i8"),
        ],
        native.best_first: [np.array([0, 1]), np.ones(2), np.zeros(2, "i8")],
        native.Indexer: [TABLE, True, ["the"], None],
        native.Indexer(TABLE, True, ["the"], str.split).add_texts: [["a b", "c é"]],
        native.Indexer(TABLE, True, ["the"], str.split).add_tokens: [[["a", "b"], ["c"]]],
        native.Indexer(TABLE, True, ["the"], str.split).add_text: ["a b é"],
        native.add_shuffled: [np.ones((2, 2)), np.zeros((1, 4), "u4"), np.zeros((2, 3), "i8"), np.zeros((3, 2))],
        native.bm25_search: [
            *(STARTS, docs, codes, np.ones(2**16), False, weights, weights, weights, 2, STARTS, terms, 3, False, 2)
        ],
        native.bm25_largest: [STARTS, codes, weights],
        native.bm25_lists: [["d1", "d2"], terms, docs, weights],
        native.bm25_packed_lists: [b"d1d2", STARTS[1:] * 2, terms, docs, weights],
    }


def test_arguments_are_checked():
    accepted, refused, draw = 0, 0, random.Random(0)
    for function, arguments in good().items():
        choices = [[*arguments[:i], odd, *arguments[i + 1 :]] for i in range(len(arguments)) for odd in ODD]
        for i, j in itertools.combinations(range(len(arguments)), 2):
            for _ in range(12):
                choices.append(list(arguments))
                choices[-1][i], choices[-1][j] = draw.choice(ODD), draw.choice(ODD)
        for chosen in choices:
            try:
                function(*chosen)
                accepted += 1
            except (TypeError, ValueError, BufferError):
                refused += 1
    assert accepted > 50
    assert refused > 1000


@pytest.mark.parametrize(
    ("starts", "error"),
    [(STARTS.astype("f8"), TypeError), (STARTS.astype("i4"), TypeError), (np.arange(6)[::2], TypeError)]
    + [(STARTS[:2], ValueError), (STARTS[:0], ValueError), (-STARTS, ValueError), (STARTS * 2, ValueError)],
)
def test_starts_of_another_type_or_size(starts, error):
    native = kernel()
    with pytest.raises(error):
        native.Judged(["q1", "q2"], starts, ["d1", "d2"])
    with pytest.raises(error):
        native.JudgedStrings(["q1", "q2"], starts, ["d1", "d2"])


@pytest.mark.slow
def test_documents_of_postings_out_of_range():
    draw = np.random.default_rng(0)
    for documents in (1, 2, 5000, 2**29):
        for _ in range(1 if documents == 2**29 else 200):
            docs = draw.integers(-(2**31), 2**31 - 1, 2).astype("i4")
            weights = draw.choice([1.0, -1.0, np.nan, np.inf, -np.inf, 1e308], 2)
            codes = draw.integers(0, 2**16, 2).astype(draw.choice(["u2", "u4"]))
            kernel().bm25_search(
                *(STARTS, docs, codes, np.resize(weights, 2**16), False, weights, np.zeros(2), weights, documents),
                *(STARTS, np.array([1, 0]), 3, True, 2),
            )


@pytest.mark.parametrize("setting", [{"k1": 1e300}, {"k1": -1}, {"k1": float("nan")}, {"b": 2}, {"epsilon": 1e300}])
def test_constants_of_bm25_are_bounded(setting):
    with pytest.raises(RetrieverError, match="expected"):
        BM25(**setting)


def colliding_ids(count):
    """Ids of eight characters whose words, multiplied by the golden ratio, have the same highest 22 bits."""
    inverse, draw = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64)), np.random.default_rng(0)
    found = []
    while len(found) < count:
        words = draw.integers(0, 2**42, 2_000_000, np.uint64) * inverse
        letters = words.view("u1").reshape(-1, 8)
        found += [bytes(id).decode() for id in letters[((letters > 32) & (letters < 127)).all(1)]]
    return found[:count]


def test_ids_chosen_for_equal_hashes_are_counted_like_others():
    """That they take no more steps than others is counted in fuzz/kernel.cpp, where a table can be looked into."""
    ids = colliding_ids(600)
    text = "".join(f"q1 Q0 {id} 1 {-n} t\n" for n, id in enumerate(ids)).encode()
    hits = {name: scan_text(name, text, judged_docs({"q1": ids[:5]}), Ordering()) for name in ("native", "portable")}
    assert hits["native"].rank.tolist() == [1, 2, 3, 4, 5]
    assert hits["native"].retrieved.tolist() == hits["portable"].retrieved.tolist() == [600]


SEEDED = """
import steelyard as sy
run = {f"q{q}": {f"document-{d * 7919 % 1000}": d % 10 for d in range(300)} for q in range(30)}
qrels = {f"q{q}": {f"document-{d}": d % 3 for d in range(100)} for q in range(20)}
print(sy.evaluate(qrels, run, ["nDCG@10", "AP"]).to_json())
"""


def test_results_do_not_depend_on_the_hashes():
    texts = {subprocess.run([sys.executable, "-c", SEEDED], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(texts) == 1
