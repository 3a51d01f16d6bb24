"""Document graphs, from links and from nearest neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.datasets.corpus import Corpus
from steelyard.errors import SteelyardError
from steelyard.retrievers.dense import Dense
from steelyard.retrievers.graph import from_links, from_neighbours
from steelyard.retrievers.walks import GraphFlow

LINKS = {"a": ["b", "c", "b", "a", "gone"], "b": ["d"], "d": ["a"]}


def as_sets(graph):
    return [set(graph.neighbours(place).tolist()) for place in range(len(graph))]


def test_links_are_edges_without_repeats_self_links_and_unknown_documents():
    graph = from_links(["a", "b", "c", "d"], LINKS)
    assert [graph.neighbours(place).tolist() for place in range(4)] == [[1, 2], [3], [], [0]]
    assert graph.degrees.tolist() == [2, 1, 0, 1]


def test_links_both_ways_are_edges_in_both_directions():
    graph = from_links(["a", "b", "c", "d"], LINKS, both_ways=True)
    assert as_sets(graph) == [{1, 2, 3}, {0, 3}, {0}, {0, 1}]


def test_no_links_at_all():
    graph = from_links(["a", "b"], {})
    assert len(graph) == 2
    assert len(graph.targets) == 0
    rows, real = graph.table(np.array([0, 1]))
    assert not real.any()
    assert rows.shape == real.shape
    assert not graph.among(np.array([1, 0])).any()


def test_nearest_neighbours_of_a_hand_made_set():
    angles = np.array([0.0, 0.1, 0.3, 2.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert as_sets(from_neighbours(vectors, 1)) == [{1}, {0}, {1}, {2}]
    assert as_sets(from_neighbours(vectors, 2)) == [{1, 2}, {0, 2}, {0, 1}, {1, 2}]


def test_nearest_neighbours_never_include_the_document_itself_even_among_equal_ones():
    graph = from_neighbours(np.ones((4, 1)), 2)
    assert as_sets(graph) == [{1, 2}, {0, 2}, {0, 1}, {0, 1}]


@pytest.mark.parametrize(("documents", "k", "degree"), [(1, 5, 0), (3, 5, 2), (3, 2, 2)])
def test_there_are_no_more_neighbours_than_other_documents(documents, k, degree):
    graph = from_neighbours(np.eye(documents), k)
    assert graph.degrees.tolist() == [degree] * documents


def test_the_table_pads_short_rows():
    graph = from_links(["a", "b", "c", "d"], LINKS)
    rows, real = graph.table(np.array([1, 0, 2]))
    assert real.tolist() == [[True, False], [True, True], [False, False]]
    assert rows[real].tolist() == [3, 1, 2]


@given(st.data())
def test_the_subgraph_is_every_edge_between_its_documents(data):
    size = data.draw(st.integers(1, 12))
    ids = [str(number) for number in range(size)]
    links = data.draw(st.dictionaries(st.sampled_from(ids), st.lists(st.sampled_from(ids), max_size=8)))
    places = data.draw(st.permutations(range(size)))[: data.draw(st.integers(1, size))]
    edges = from_links(ids, links).among(np.array(places))
    for row, one in enumerate(places):
        for column, other in enumerate(places):
            assert edges[row, column] == (one != other and str(other) in links.get(str(one), []))


def test_auto_uses_links_if_the_corpus_has_any():
    embedding = Dense(model={"x": [1.0, 0.0], "y": [0.0, 1.0], "z": [0.6, 0.8]})
    linked = Corpus.of({"a": {"text": "x", "links": ["b"]}, "b": "y", "c": "z"})
    bare = {"a": "x", "b": "y", "c": "z"}

    def graph(source, corpus):
        return as_sets(GraphFlow(graph=source, embedding=embedding, neighbours=1).index(corpus)._graph)

    assert graph("auto", linked) == [{1}, set(), set()]
    assert graph("auto", bare) == [{2}, {2}, {1}]
    assert graph("neighbours", linked) == [{2}, {2}, {1}]


def test_links_of_a_corpus_without_links_are_an_error():
    with pytest.raises(SteelyardError, match="no links.*set graph to 'neighbours'"):
        GraphFlow(graph="links").index({"a": "x"})


def test_an_unknown_graph_suggests_the_nearest_name():
    with pytest.raises(
        SteelyardError,
        match="unknown graph 'neighbors'; expected one of auto, links, neighbours. Did you mean neighbours",
    ):
        GraphFlow(graph="neighbors")


def test_blocks_do_not_change_the_neighbours(monkeypatch):
    vectors = np.random.default_rng(0).standard_normal((40, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = from_neighbours(vectors, 6)
    monkeypatch.setattr("steelyard.retrievers.graph._CELLS", 100)
    assert as_sets(from_neighbours(vectors, 6)) == as_sets(whole)
    for place, row in enumerate(vectors @ vectors.T):
        others = sorted((other for other in range(40) if other != place), key=lambda other: -row[other])
        assert set(whole.neighbours(place).tolist()) == set(others[:6])
