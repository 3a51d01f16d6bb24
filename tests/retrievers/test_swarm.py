"""SwarmRerank: its router, its pheromone, its votes compared with a plain walk, and its edge cases."""

from __future__ import annotations

import random

import numpy as np
import pytest

from steelyard.datasets.corpus import Corpus
from steelyard.errors import SteelyardError
from steelyard.retrievers import Dense, SwarmRerank, retriever
from steelyard.retrievers.walks import REASONS, leaps, quality, updated, votes

WORDS = ["fox", "den", "owl", "bat", "moon", "tide", "field", "night", "river", "stone"]
TEXTS = {f"d{n}": " ".join(WORDS[(n * step) % 10] for step in (1, 2, 3, 5)) + f" w{n}" for n in range(30)}
LINKS = {f"d{n}": [f"d{(n * 7 + 1) % 30}", f"d{(n + 3) % 30}"] for n in range(0, 30, 2)}
CORPUS = Corpus.of({doc: {"text": text, "links": LINKS.get(doc, [])} for doc, text in TEXTS.items()})
QUESTIONS = ["fox at night", "river stone", "", "moon tide field", "owl"]


def leaps_once(path=1.0, has_edge=True, pheromone=0.0, **moves):
    found = leaps(np.array([path]), np.array([has_edge]), np.array([pheromone]), SwarmRerank(**moves))
    return bool(found[0])


def test_no_leap_without_a_reason():
    assert not leaps_once()


@pytest.mark.parametrize(
    ("reason", "state"),
    [("irrelevant", {"path": 0.1}), ("dead-end", {"has_edge": False}), ("over-visited", {"pheromone": 2.5})],
)
def test_a_reason_leads_to_a_leap_only_if_the_router_has_it(reason, state):
    assert leaps_once(**state)
    assert leaps_once(**state, leap_when=(reason,))
    assert not leaps_once(**state, leap_when=tuple(other for other in REASONS if other != reason))
    assert not leaps_once(**state, leap_when=())


def test_thresholds_are_strict():
    assert not leaps_once(path=0.4, relevance=0.4)
    assert leaps_once(path=0.39, relevance=0.4)
    assert not leaps_once(pheromone=2.0, crowding=2.0)
    assert leaps_once(pheromone=2.01, crowding=2.0)


def test_always_leaps_whatever_the_state():
    assert leaps_once(leap_when=("always",))


def test_pheromone_halves_and_each_agent_adds_one():
    pheromone = updated(np.zeros((2, 3)), np.array([[0, 0], [1, 2]]), 0.5)
    assert pheromone.tolist() == [[2, 0, 0], [0, 1, 1]]
    pheromone = updated(pheromone, np.array([[1, 2], [1, 1]]), 0.5)
    assert pheromone.tolist() == [[1, 1, 1], [0, 2.5, 0.5]]
    for _ in range(3):
        before = pheromone
        pheromone = updated(pheromone, np.zeros((2, 0), dtype=np.int64), 0.5)
        assert np.array_equal(pheromone, before / 2)


def test_quality_is_the_mean_fit_of_a_document_and_those_linked_with_it():
    edges = np.zeros((1, 4, 4), dtype=bool)
    edges[0, 0, 1] = edges[0, 2, 0] = edges[0, 0, 2] = True
    fit = np.array([[1.0, 0.6, 0.2, 0.5]])
    assert quality(edges, fit)[0] == pytest.approx([(1 + 0.6 + 0.2) / 3, 0.8, 0.6, 0.5])


def line_of_four():
    """Candidates in a line, each linked to the next, the last to none."""
    edges = np.zeros((1, 4, 4), dtype=bool)
    for place in range(3):
        edges[0, place, place + 1] = True
    return edges, np.zeros((1, 4, 4)), np.array([[1.0, 0.8, 0.5, 0.0]])


def test_without_leaps_an_agent_follows_the_only_edge_and_stays_at_the_end():
    edges, similarity, fit = line_of_four()
    found = votes(edges, similarity, fit, np.full((1, 4, 1), 0.5), SwarmRerank(leap_when=()))
    path = [1.0]
    for at in (1, 2, 3, 3):
        path.append((path[-1] + fit[0, at]) / 2)
    cast = np.array([0.0, path[1], path[2], path[3] + path[4]])
    assert found[0] == pytest.approx(cast / cast.max())


def test_a_dead_end_leaps_to_another_candidate():
    edges, similarity, fit = line_of_four()
    moves = SwarmRerank(leap_when=("dead-end",), temperature=1e6, diversity=0.0)
    found = votes(edges, similarity, fit, np.full((1, 4, 1), 0.5), moves)
    # Down the line in three steps, then the leap to the best candidate.
    assert found[0, 0] > 0
    assert found[0, 3] > 0


def test_an_irrelevant_path_leaps():
    edges, similarity, fit = line_of_four()
    moves = SwarmRerank(leap_when=("irrelevant",), relevance=0.95, temperature=1e6, diversity=0.0)
    found = votes(edges, similarity, fit, np.full((1, 2, 1), 0.5), moves)
    # The first step follows the edge (a fit of 1); the path's fit is then 0.9, and the second step leaps back.
    assert found[0].tolist() == pytest.approx([1.0, 0.9 / 0.95, 0.0, 0.0])


def test_an_over_visited_document_is_left_by_a_leap():
    edges = np.zeros((1, 3, 3), dtype=bool)
    edges[0, 0, 1] = True
    similarity = np.zeros((1, 3, 3))
    similarity[0, 0, 2] = 5.0
    fit = np.array([[1.0, 0.9, 0.8]])
    for crowding, arrived in ((1.0, 1), (0.5, 2)):
        moves = SwarmRerank(leap_when=("over-visited",), temperature=1e6, crowding=crowding)
        found = votes(edges, similarity, fit, np.full((1, 1, 1), 0.5), moves)
        assert np.flatnonzero(found[0]).tolist() == [arrived]


def test_moves_are_drawn_in_proportion_to_exp_of_their_score():
    edges = np.zeros((1, 3, 3), dtype=bool)
    edges[0, 0, 1:] = True
    fit, similarity = np.array([[1.0, 0.6, 0.2]]), np.zeros((1, 3, 3))
    similarity[0, 0] = [1.0, 0.3, 0.9]
    moves = SwarmRerank(temperature=3.0, reward=1.0, similarity=0.5, diversity=0.7, leap_when=())
    queries = 100_000
    draws = np.random.default_rng(0).random((queries, 1, 1))
    spread = [np.repeat(array, queries, axis=0) for array in (edges, similarity, fit)]
    went = (votes(*spread, draws, moves) > 0).mean(axis=0)
    # No agent has been at 1 or 2, so diversity adds the same to both.
    weights = np.exp(3.0 * np.array([0.6 + 0.15 + 0.7, 0.2 + 0.45 + 0.7]))
    assert went == pytest.approx([0.0, *(weights / weights.sum())], abs=0.006)


def test_diversity_falls_with_pheromone():
    edges = np.ones((1, 3, 3), dtype=bool) & ~np.eye(3, dtype=bool)
    # Two agents at 0 and 1: of the two others, 2 has no pheromone, so with equal rewards both go there.
    found = votes(
        edges, np.zeros((1, 3, 3)), np.full((1, 3), 0.5), np.full((1, 1, 2), 0.5), SwarmRerank(temperature=1e6)
    )
    assert found[0].tolist() == [0.0, 0.0, 1.0]


def naive_votes(edges, similarity, fit, draws, moves):
    """One query, one agent and one step at a time."""
    steps, agents = draws.shape
    count = len(fit)
    at = [agent % count for agent in range(agents)]
    path = [fit[place] for place in at]
    pheromone = [0.0] * count
    for place in at:
        pheromone[place] += 1
    cast = [0.0] * count
    for step in range(steps):
        moved = []
        for agent in range(agents):
            here = at[agent]
            onward = [place for place in range(count) if edges[here][place]]
            leap = "always" in moves.leap_when or (
                ("irrelevant" in moves.leap_when and path[agent] < moves.relevance)
                or ("dead-end" in moves.leap_when and not onward)
                or ("over-visited" in moves.leap_when and pheromone[here] > moves.crowding)
            )
            options = [place for place in range(count) if place != here] if leap else onward
            weights = [
                np.exp(
                    moves.temperature
                    * (
                        moves.reward * fit[place]
                        + moves.similarity * similarity[here][place]
                        + moves.diversity / (1 + pheromone[place])
                    )
                )
                for place in options
            ]
            reached, goal, there = 0.0, draws[step][agent] * sum(weights), here
            for place, weight in zip(options, weights, strict=True):
                reached += weight
                there = place
                if reached > goal:
                    break
            moved.append(there)
        at = moved
        pheromone = [moves.decay * amount for amount in pheromone]
        for agent, place in enumerate(at):
            path[agent] = (path[agent] + fit[place]) / 2
            cast[place] += path[agent]
            pheromone[place] += 1
    most = max(cast)
    return [vote / most if most else 0.0 for vote in cast]


@pytest.mark.parametrize("leap_when", [REASONS, ("always",), (), ("over-visited",)])
def test_votes_equal_a_plain_walk_agent_by_agent(leap_when):
    rng = np.random.default_rng(1)
    queries, candidates, agents, steps = 5, 12, 7, 6
    edges = (rng.random((queries, candidates, candidates)) < 0.15) & ~np.eye(candidates, dtype=bool)
    similarity = rng.random((queries, candidates, candidates))
    fit = np.sort(rng.random((queries, candidates)))[:, ::-1]
    draws = rng.random((queries, steps, agents))
    moves = SwarmRerank(leap_when=leap_when, temperature=4.0, crowding=1.2)
    found = votes(edges, similarity, fit, draws, moves)
    for query in range(queries):
        expected = naive_votes(edges[query], similarity[query], fit[query], draws[query], moves)
        assert found[query] == pytest.approx(expected)


def test_the_same_seed_and_query_give_the_same_list_in_any_batch():
    swarm = SwarmRerank(seed=3, candidates=12).index(CORPUS)
    alone = {question: swarm.retrieve([question], 20)[0] for question in QUESTIONS}
    shuffled = QUESTIONS * 3
    random.Random(0).shuffle(shuffled)
    assert swarm.retrieve(shuffled, 20) == [alone[question] for question in shuffled]
    again = SwarmRerank(seed=3, candidates=12).index(CORPUS)
    assert again.retrieve(QUESTIONS, 20) == list(alone.values())


def test_blocks_do_not_change_answers(monkeypatch):
    whole = SwarmRerank(candidates=12).index(CORPUS).retrieve(QUESTIONS, 20)
    monkeypatch.setattr("steelyard.retrievers.walks._BLOCK_CELLS", 1)
    assert SwarmRerank(candidates=12).index(CORPUS).retrieve(QUESTIONS, 20) == whole


def test_another_seed_gives_other_votes():
    lists = {str(SwarmRerank(seed=seed).index(CORPUS).retrieve(["fox at night"], 10)) for seed in range(4)}
    assert len(lists) > 1


def test_plain_semantic_search_is_dense():
    semantic = SwarmRerank(agents=0, quality=0).index(CORPUS)
    dense = Dense().index(CORPUS)
    for question in QUESTIONS:
        found, expected = (each.retrieve([question], 30)[0] for each in (semantic, dense))
        assert [doc for doc, _ in found] == [doc for doc, _ in expected]


def test_documents_that_are_not_candidates_follow_by_similarity():
    question = "fox at night"
    dense = [doc for doc, _ in Dense().index(CORPUS).retrieve([question], 30)[0]]
    found = SwarmRerank(candidates=8).index(CORPUS).retrieve([question], 30)[0]
    assert {doc for doc, _ in found[:8]} == set(dense[:8])
    assert [doc for doc, _ in found[8:]] == dense[8:]
    assert all(score <= 0 for _, score in found[8:])


def test_the_final_score_is_the_weighted_sum_of_votes_quality_and_fit():
    question, k = "fox at night", 30
    parts = {
        name: dict(
            SwarmRerank(**{"votes": 0, "quality": 0, "dense": 0, name: 1}).index(CORPUS).retrieve([question], k)[0]
        )
        for name in ("votes", "quality", "dense")
    }
    for doc, score in SwarmRerank(votes=0.2, quality=0.3, dense=0.5).index(CORPUS).retrieve([question], k)[0]:
        joined = 0.2 * parts["votes"][doc] + 0.3 * parts["quality"][doc] + 0.5 * parts["dense"][doc]
        assert score == pytest.approx(joined)
    assert max(parts["votes"].values()) == 1.0
    assert max(parts["dense"].values()) == 1.0


@pytest.mark.parametrize("agents", [0, 1, 100])
@pytest.mark.parametrize("candidates", [1, 500])
@pytest.mark.parametrize("steps", [0, 3])
def test_any_number_of_agents_candidates_and_steps(agents, candidates, steps):
    swarm = SwarmRerank(agents=agents, candidates=candidates, steps=steps).index(CORPUS)
    for found in swarm.retrieve(QUESTIONS, 50):
        assert sorted(doc for doc, _ in found) == sorted(TEXTS)


def test_one_document():
    assert [doc for doc, _ in SwarmRerank().index({"d": "text"}).retrieve(["text", ""], 5)[0]] == ["d"]


def test_no_links_between_candidates():
    corpus = Corpus.of({"a": {"text": "fox", "links": ["z"]}, "b": "red fox", "z": "stone"})
    found = SwarmRerank(candidates=2).index(corpus).retrieve(["fox"], 3)[0]
    assert {doc for doc, _ in found[:2]} == {"a", "b"}


def test_no_queries_give_no_lists():
    assert SwarmRerank().index(CORPUS).retrieve([], 5) == []


def test_it_has_a_name_settings_and_a_size():
    swarm = retriever("swarm-rerank", {"candidates": 50, "agents": 20, "leap_when": "always", "name": "mine"})
    assert swarm.label == "mine"
    assert swarm.size_in_bytes() == 0
    assert swarm.index(CORPUS).size_in_bytes() > 0
    assert swarm.settings()["leap_when"] == ["always"]
    assert swarm.settings() != SwarmRerank().settings()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"candidates": 0}, "`candidates` is 0; expected a whole number, 1 or more"),
        ({"agents": -1}, "`agents` is -1"),
        ({"decay": 2}, "`decay` is 2; expected a number from 0 to 1"),
        ({"leap_when": "deadend"}, "unknown reason to leap 'deadend'; expected one of .* Did you mean dead-end"),
        ({"leap_when": ["irrelevant", "bored"]}, "unknown reason to leap 'bored'"),
        ({"votes": 0, "quality": 0, "dense": 0}, "all 0; give one of them a weight"),
        ({"temperature": "hot"}, "`temperature` is 'hot'; expected a number"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(SteelyardError, match=message):
        SwarmRerank(**wrong)


def test_it_must_be_indexed_first():
    with pytest.raises(SteelyardError, match="nothing is indexed"):
        SwarmRerank().retrieve(["q"])
