"""Qrels in memory are the same with and without the kernel, whatever is in them."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest

from needs import needs_kernel
from steelyard import Qrels, Run
from steelyard.errors import InputError


class Text(str):
    """A subclass of text."""


LONG = [f"d{n}" for n in range(30)]
JUDGED = [
    {"d1": 1, "d2": 0.5, "d3": -2},
    {},
    {"d1": 2**70},
    {"d1": 10**400},
    {"d1": math.nan},
    {"d1": -math.inf},
    {"d1": True},
    {"d1": np.int64(2), "d2": np.float32(0.5)},
    {"d1": "1"},
    {"d1": None},
    {7: 1},
    {Text("d1"): 1},
    {"d\ud800": 1},
    {"dé": 1, "d漢": 1, "d😀": 2},
    {"d1": ["a"]},
    OrderedDict(d2=1, d1=0),
    [],
    ["d1", "d2"],
    ("d1", "d2"),
    ["d1", "d1"],
    LONG,
    [*LONG, "d3"],
    ["d1", 7],
    ["d1", None],
    ["é", "e\u0301"],
    ["漢", "😀", "\ud800"],
    [["d1", "d2"], ["d3"]],
    [Text("d1"), "d1"],
    "d1",
    None,
    {"d1"},
    np.array(["d1", "d2"]),
]


def described(mapping):
    try:
        qrels = Qrels(mapping)
    except InputError as error:
        return str(error)
    return qrels.frame.rows(), qrels.has_targets, [note.code for note in qrels.notes]


@needs_kernel
@pytest.mark.parametrize("other", [{"d9": 1}, ["d9"], []], ids=str)
@pytest.mark.parametrize("place", range(len(JUDGED)))
def test_the_kernel_reads_qrels_in_memory_as_python_does(place, other, monkeypatch):
    shapes = [{"q1": JUDGED[place]}, {"q1": JUDGED[place], "q2": other}, {"q1": other, "q2": JUDGED[place]}]
    with_kernel = [described(shape) for shape in shapes]
    monkeypatch.setattr("steelyard.io.lists.kernel", lambda: None)
    assert with_kernel == [described(shape) for shape in shapes]


def test_qrels_that_the_kernel_reads_are_those_of_the_mapping():
    draw = np.random.default_rng(5)
    mapping = {
        f"q{q}": {f"d{d}": float(draw.integers(-1, 4)) for d in draw.permutation(50)[: draw.integers(0, 20)].tolist()}
        for q in range(200)
    }
    rows = Qrels(mapping).frame.drop_nulls("doc_id").select("query_id", "doc_id", "grade").rows()
    assert rows == [(q, d, grade) for q, judged in mapping.items() for d, grade in judged.items()]


def test_what_qrels_and_runs_are_made_of_cannot_be_replaced():
    # What was computed from it is kept.
    qrels, run = Qrels({"q1": {"a": 1}}), Run({"q1": ["a"]})
    for owner, name in ((qrels, "judged"), (qrels, "grades"), (run, "mapping")):
        with pytest.raises(AttributeError, match="no setter"):
            setattr(owner, name, None)
