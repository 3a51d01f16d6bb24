"""GraphFlow: its walks compared with the closed form, its seeds, and its edge cases."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from steelyard.datasets.corpus import Corpus
from steelyard.errors import SteelyardError
from steelyard.retrievers import Dense, GraphFlow, retriever
from steelyard.retrievers.graph import from_links
from steelyard.retrievers.walks import draw, query_draws, visits

TEXTS = {
    "fox": "the red fox sleeps in its den",
    "den": "a den is where the fox raises its young",
    "owl": "the owl hunts at night over the fields",
    "bat": "bats hunt insects at night",
    "sea": "tides rise and fall with the moon",
    "moon": "the moon is full tonight over the fields",
}
LINKS = {"fox": ["den"], "den": ["fox", "owl"], "owl": ["bat", "moon"], "moon": ["sea"]}
CORPUS = Corpus.of({doc: {"text": text, "links": LINKS.get(doc, [])} for doc, text in TEXTS.items()})


def uniform(shape, seed=0):
    return np.random.default_rng(seed).random(shape)


def test_steps_are_drawn_in_proportion_to_exp_of_temperature_times_reward():
    graph = from_links(["s", "a", "b", "c"], {"s": ["a", "b", "c"]})
    rewards = np.array([[0.0, 0.1, 0.4, 0.8]])
    temperature, walks = 3.0, 200_000
    draws = uniform((1, 2, walks, 2))
    counts = visits(graph, rewards, np.array([[0]]), draws, temperature, 0.0)[0]
    weights = np.exp(temperature * rewards[0, 1:])
    assert counts[0] == walks
    # Four standard errors of a share of 200,000 draws are below 0.005.
    assert counts[1:] / walks == pytest.approx(weights / weights.sum(), abs=0.005)


def test_starts_have_the_same_probabilities_as_steps():
    graph = from_links(["a", "b", "c"], {})
    rewards = np.array([[0.9, 0.2, 0.5]])
    counts = visits(graph, rewards, np.array([[0, 2]]), uniform((1, 1, 200_000, 2)), 2.0, 0.0)[0]
    first = math.exp(1.8) / (math.exp(1.8) + math.exp(1.0))
    assert counts / 200_000 == pytest.approx([first, 0.0, 1 - first], abs=0.005)


def test_two_steps_follow_the_transition_matrix():
    ids = ["a", "b", "c"]
    graph = from_links(ids, {"a": ["b", "c"], "b": ["a", "c"], "c": ["a"]})
    rewards, temperature = np.array([[0.3, 0.6, 0.1]]), 4.0
    transition = np.zeros((3, 3))
    for place in range(3):
        following = graph.neighbours(place)
        weights = np.exp(temperature * rewards[0, following])
        transition[place, following] = weights / weights.sum()
    start = np.array([1.0, 0.0, 0.0])
    expected = start + start @ transition + start @ transition @ transition
    counts = visits(graph, rewards, np.array([[0]]), uniform((1, 3, 200_000, 2)), temperature, 0.0)[0]
    assert counts / 200_000 == pytest.approx(expected, abs=0.007)


def test_restart_brings_walks_back_to_the_seeds():
    graph = from_links(["a", "b"], {"a": ["b"], "b": ["b"]})
    draws = uniform((1, 2, 100_000, 2))
    counts = visits(graph, np.zeros((1, 2)), np.array([[0]]), draws, 1.0, 0.3)[0]
    assert counts / 100_000 == pytest.approx([1.3, 0.7], abs=0.006)


def test_a_dead_end_starts_again():
    graph = from_links(["a", "b"], {"a": ["b"]})
    counts = visits(graph, np.zeros((1, 2)), np.array([[0]]), uniform((1, 5, 7, 2)), 1.0, 0.0)[0]
    assert counts.tolist() == [3 * 7, 2 * 7]


def test_draw_never_leaves_the_allowed_cells():
    allowed = np.array([[False, True, False], [True, False, True], [False, False, False]])
    for value in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        chosen = draw(np.zeros((3, 3)), allowed, 1.0, np.full(3, value))
        assert chosen[0] == 1
        assert chosen[1] in (0, 2)
        assert chosen[2] == -1


def test_draw_with_extreme_temperatures():
    scores = np.array([[-1.0, 1.0, 0.5]])
    every = np.ones((1, 3), dtype=bool)
    for value in (0.0, 0.3, 0.999999):
        assert draw(scores, every, 1e6, np.array([value])).tolist() == [1]
    assert [draw(scores, every, 0.0, np.array([value])).item() for value in (0.2, 0.5, 0.9)] == [0, 1, 2]


def test_draws_depend_on_seed_and_text():
    first = query_draws(0, "a question", (3, 2))
    assert np.array_equal(first, query_draws(0, "a question", (3, 2)))
    assert not np.array_equal(first, query_draws(1, "a question", (3, 2)))
    assert not np.array_equal(first, query_draws(0, "another", (3, 2)))


def test_the_same_seed_and_query_give_the_same_list_in_any_batch():
    questions = ["fox den", "night", "the moon and tides", "", "fields at night"]
    flow = GraphFlow(seed=7).index(CORPUS)
    alone = {question: flow.retrieve([question], 6)[0] for question in questions}
    shuffled = questions * 3
    random.Random(0).shuffle(shuffled)
    assert flow.retrieve(shuffled, 6) == [alone[question] for question in shuffled]
    assert GraphFlow(seed=7).index(CORPUS).retrieve(questions, 6) == [alone[question] for question in questions]


def test_blocks_do_not_change_answers(monkeypatch):
    questions = [f"fox {number} night" for number in range(20)]
    whole = GraphFlow().index(CORPUS).retrieve(questions, 6)
    monkeypatch.setattr("steelyard.retrievers.walks._BLOCK_CELLS", 1)
    assert GraphFlow().index(CORPUS).retrieve(questions, 6) == whole


def test_another_seed_gives_other_walks():
    lists = {str(GraphFlow(seed=seed, walks=5).index(CORPUS).retrieve(["night"], 6)) for seed in range(5)}
    assert len(lists) > 1


def test_scores_are_visits_and_a_similarity_below_one():
    flow = GraphFlow(walks=10, steps=3, restart=0.5).index(CORPUS)
    found = flow.retrieve(["fox den"], 6)[0]
    assert sum(math.floor(score) for _, score in found) == 10 * 4
    cosines = dict(Dense().index(CORPUS).retrieve(["fox den"], 6)[0])
    for doc, score in found:
        assert score - math.floor(score) == pytest.approx((1 + cosines[doc]) / 4, abs=1e-5)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_walks_reach_documents_without_a_shared_word():
    corpus = Corpus.of(
        {
            "a": {"text": "red fox", "links": ["b"]},
            "b": {"text": "vulpes vulpes", "links": ["a"]},
            "c": {"text": "grey stone", "links": []},
        }
    )
    found = GraphFlow(seeds=1).index(corpus).retrieve(["fox"], 3)[0]
    assert [doc for doc, _ in found] == ["a", "b", "c"]
    assert found[2][1] < 1


def test_one_document():
    assert [doc for doc, _ in GraphFlow().index({"d": "text"}).retrieve(["text"], 5)[0]] == ["d"]


def test_isolated_documents_are_found_as_seeds():
    corpus = Corpus.of({"a": {"text": "one fox", "links": ["b"]}, "b": "two owls", "c": "three foxes"})
    found = GraphFlow(seeds=3, temperature=0).index(corpus).retrieve(["fox"], 3)[0]
    assert {doc for doc, score in found if score >= 1} == {"a", "b", "c"}


@pytest.mark.parametrize("query", ["", "   ", "zzz unknown"])
def test_a_query_without_known_words_gets_a_list(query):
    found = GraphFlow().index(CORPUS).retrieve([query], 10)[0]
    assert sorted(doc for doc, _ in found) == sorted(TEXTS)


def test_k_beyond_the_corpus_gives_every_document_once():
    found = GraphFlow(seeds=50).index(CORPUS).retrieve(["night"], 100)[0]
    assert sorted(doc for doc, _ in found) == sorted(TEXTS)


def test_no_queries_give_no_lists():
    assert GraphFlow().index(CORPUS).retrieve([], 5) == []


def test_it_has_a_name_settings_and_a_size():
    flow = retriever("graph-flow", {"walks": 3, "graph": "neighbours", "name": "mine"})
    assert flow.label == "mine"
    assert flow.size_in_bytes() == 0
    assert flow.index(CORPUS).size_in_bytes() > 0
    settings = flow.settings()
    assert settings["walks"] == 3
    assert settings["graph"] == "neighbours"
    assert settings["embedding"]["model"] == "lsa"
    assert settings != GraphFlow(walks=3, graph="neighbours", seed=1).settings()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"walks": 0}, "`walks` is 0; expected a whole number, 1 or more"),
        ({"steps": -1}, "`steps` is -1"),
        ({"steps": 2.5}, "`steps` is 2.5"),
        ({"temperature": float("nan")}, "`temperature` is nan; expected a number"),
        ({"restart": 1.5}, "`restart` is 1.5; expected a number from 0 to 1"),
        ({"seeds": True}, "`seeds` is True"),
        ({"neighbours": 0}, "`neighbours` is 0"),
        ({"graph": "link"}, "unknown graph 'link'; expected one of auto, links, neighbours. Did you mean links"),
        ({"seed": -1}, "`seed` is -1"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(SteelyardError, match=message):
        GraphFlow(**wrong)


def test_it_must_be_indexed_first():
    with pytest.raises(SteelyardError, match="nothing is indexed"):
        GraphFlow().retrieve(["q"])


def test_an_empty_corpus_is_refused():
    with pytest.raises(SteelyardError, match="corpus is empty"):
        GraphFlow().index({})
