"""The swarm: agents that walk over a query's candidates, follow edges or leap, and leave pheromone behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.retrievers.base import (
    Ranked,
    RetrieverError,
    best,
    checked_index,
    checked_queries,
    number,
    top_k,
    unknown,
    whole,
)
from steelyard.retrievers.dense import Dense, Embedder
from steelyard.retrievers.graph import Bools, Floats, GraphIndex, GraphPlan, Integers, draw, query_draws

if TYPE_CHECKING:
    from typing_extensions import Self


IRRELEVANT, DEAD_END, OVER_VISITED = "irrelevant", "dead-end", "over-visited"
REASONS = (IRRELEVANT, DEAD_END, OVER_VISITED)
ALWAYS = "always"


@dataclass(frozen=True)
class SwarmRules:
    """How agents move.

    temperature: the next document is drawn in proportion to exp(temperature x the move's score).
    reward, similarity, diversity: the weights of what that score is made of: how the document fits the query,
        its similarity to where the agent stands, and 1 / (1 + its pheromone).
    leap_when: the router's reasons to leap, any of REASONS; (ALWAYS,) never follows an edge, () never leaps.
    relevance: a path is irrelevant when its fit is below this.
    crowding: a document is over-visited when it has more pheromone than this.
    decay: the share of pheromone that is left after each step.
    """

    temperature: float = 20.0
    reward: float = 1.0
    similarity: float = 0.5
    diversity: float = 0.5
    leap_when: tuple[str, ...] = REASONS
    relevance: float = 0.4
    crowding: float = 2.0
    decay: float = 0.5


def votes(edges: Bools, similarity: Floats, fit: Floats, draws: Floats, rules: SwarmRules) -> Floats:
    """What the agents say of each candidate, from 0 to 1 for the best: queries x candidates.

    `edges` and `similarity` are queries x candidates x candidates; `fit` queries x candidates, from 0 to 1,
    best first; `draws` a number from 0 to 1 for every step and agent: queries x steps x agents.
    Agents start at the best candidates, one at each; more agents than candidates go round again. All step at
    once. An agent that arrives at a document votes for it with the fit of the path that led there: half of it
    the document's own, a quarter that of the one before, and so on.
    """
    queries, steps, agents = draws.shape
    candidates = fit.shape[1]
    query = np.arange(queries)[:, None]
    elsewhere = ~np.eye(candidates, dtype=bool)
    at = np.broadcast_to(np.arange(agents) % candidates, (queries, agents))
    path = fit[query, at]
    pheromone = laid(np.zeros(fit.shape), at, rules.decay)
    cast = np.zeros(fit.shape)
    for step in range(steps):
        onward = edges[query, at]
        leap = leaps(path, onward.any(axis=-1), pheromone[query, at], rules)
        allowed = np.where(leap[..., None], elsewhere[at], onward)
        worth = rules.reward * fit + rules.diversity / (1 + pheromone)
        scores = worth[:, None, :] + rules.similarity * similarity[query, at]
        chosen = draw(scores, allowed, rules.temperature, draws[:, step])
        at = np.where(chosen >= 0, chosen, at)
        path = (path + fit[query, at]) / 2
        cast += _gathered(at, path, candidates)
        pheromone = laid(pheromone, at, rules.decay)
    most = cast.max(axis=1, keepdims=True, initial=0.0)
    return cast / np.where(most > 0, most, 1.0)


def leaps(path: Floats, has_edge: Bools, pheromone: Floats, rules: SwarmRules) -> Bools:
    """The router: which agents leap to any candidate rather than follow an edge.

    `path` is the fit of an agent's path, `has_edge` whether an edge leads on from where it stands, `pheromone`
    how much lies there.
    """
    if ALWAYS in rules.leap_when:
        return np.ones(path.shape, dtype=bool)
    said = {
        IRRELEVANT: path < rules.relevance,
        DEAD_END: ~has_edge,
        OVER_VISITED: pheromone > rules.crowding,
    }
    leap = np.zeros(path.shape, dtype=bool)
    for reason in rules.leap_when:
        leap |= said[reason]
    return leap


def laid(pheromone: Floats, at: Integers, decay: float) -> Floats:
    """Pheromone after a step: what is left of the old, and 1 from each agent where it stands.

    >>> laid(np.array([[4.0, 0.0]]), np.array([[0, 1, 1]]), 0.5).tolist()
    [[3.0, 2.0]]
    """
    return decay * pheromone + _gathered(at, np.ones(at.shape), pheromone.shape[1])


def company(edges: Bools, fit: Floats) -> Floats:
    """A candidate's quality: the mean fit of itself and the candidates it is linked with, either way.

    >>> company(np.array([[[False, True], [False, False]]]), np.array([[1.0, 0.5]])).tolist()
    [[0.75, 0.75]]
    """
    linked = edges | edges.transpose(0, 2, 1) | np.eye(fit.shape[1], dtype=bool)
    mean: Floats = (linked * fit[:, None, :]).sum(axis=-1) / linked.sum(axis=-1)
    return mean


def _gathered(at: Integers, amounts: Floats, candidates: int) -> Floats:
    """Each query's amounts, added up where its agents stand."""
    queries = len(at)
    cells = (np.arange(queries)[:, None] * candidates + at).ravel()
    sums: Floats = np.bincount(cells, amounts.ravel(), minlength=queries * candidates).astype(np.float64)
    return sums.reshape(queries, candidates)


class SwarmRerank:
    """The documents nearest to the query, reranked by agents that walk the graph between them.

    At each step an agent follows an edge or, when a router says so, leaps to any candidate; either way the
    next document is drawn in proportion to exp(temperature x score), the score being reward x its fit to the
    query + similarity x its similarity to where the agent stands + diversity / (1 + its pheromone). Each agent
    lays pheromone where it arrives, and half of all pheromone decays at each step, so that the swarm spreads.
    In the end a candidate scores votes x the agents' votes + quality x the mean fit of itself and the
    candidates it is linked with + dense x its own fit. Fit is similarity to the query, from 0 for the last
    candidate to 1 for the first.

    candidates, agents, steps: how many; 0 agents do not vote.
    leap_when: reasons to leap, any of `irrelevant` (the path's fit is below `relevance`), `dead-end` (no edge
        leads to another candidate) and `over-visited` (more pheromone than `crowding`); `always`; or none.
    votes, quality, dense: the weights of the final score.
    graph, neighbours, both_ways, embedding, seed, name: as GraphFlow has them.

    Plain semantic search is agents=0, quality=0; leaping alone is leap_when="always", quality=0. Documents that
    are no candidates follow by similarity, with scores of 0 or less. A query's walk depends on the seed and its
    text, not on what else is asked.

    >>> corpus = {"d1": "the red fox", "d2": "a fox and its den", "d3": "dens of badgers", "d4": "the owl"}
    >>> swarm = SwarmRerank(candidates=3, agents=5, graph="neighbours", neighbours=1).index(corpus)
    >>> [doc for doc, score in swarm.retrieve(["fox"], k=2)[0]]
    ['d1', 'd2']
    """

    def __init__(
        self,
        candidates: int = 50,
        agents: int = 20,
        steps: int = 10,
        temperature: float = 20.0,
        reward: float = 1.0,
        similarity: float = 0.5,
        diversity: float = 0.5,
        leap_when: str | Sequence[str] = REASONS,
        relevance: float = 0.4,
        crowding: float = 2.0,
        decay: float = 0.5,
        votes: float = 0.25,
        quality: float = 0.5,
        dense: float = 0.25,
        graph: str = "auto",
        neighbours: int = 10,
        both_ways: bool = False,
        embedding: str | Embedder | Dense = "lsa",
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        who = self.label = name or "swarm-rerank"
        self.candidates = whole(who, "candidates", candidates, 1)
        self.agents = whole(who, "agents", agents)
        self.steps = whole(who, "steps", steps)
        self.rules = SwarmRules(
            temperature=number(who, "temperature", temperature),
            reward=number(who, "reward", reward),
            similarity=number(who, "similarity", similarity),
            diversity=number(who, "diversity", diversity),
            leap_when=_reasons(leap_when, who),
            relevance=number(who, "relevance", relevance),
            crowding=number(who, "crowding", crowding),
            decay=number(who, "decay", decay, 0.0, 1.0),
        )
        self.weights = {
            "votes": number(who, "votes", votes),
            "quality": number(who, "quality", quality),
            "dense": number(who, "dense", dense),
        }
        if not any(self.weights.values()):
            raise RetrieverError(f"{who}: votes, quality and dense are all 0; give one of them a weight.")
        self.seed = whole(who, "seed", seed)
        self._plan = GraphPlan(embedding, graph, neighbours, both_ways, who)
        self._index: GraphIndex | None = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Embeds a corpus and makes its graph; a second call forgets the first."""
        self._index = self._plan.index(corpus)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs."""
        index = checked_index(self._index, self.label)
        listed = checked_queries(queries, k, self.label)
        answers: list[Ranked] = []
        among = min(self.candidates, len(index))
        for block in index.blocks(listed, among * max(3 * among, 3 * self.agents, self.steps)):
            answers += [best(index.documents.ids, row, k) for row in self._scores(index, block)]
        return answers

    def settings(self) -> dict[str, Any]:
        """Everything that decides its answers."""
        return {
            "retriever": "swarm-rerank",
            "candidates": self.candidates,
            "agents": self.agents,
            "steps": self.steps,
            **{key: value for key, value in vars(self.rules).items() if key != "leap_when"},
            "leap_when": list(self.rules.leap_when),
            **self.weights,
            **self._plan.settings(),
            "seed": self.seed,
        }

    def size_in_bytes(self) -> int:
        """The embeddings and the graph."""
        return 0 if self._index is None else self._index.size_in_bytes()

    def _scores(self, index: GraphIndex, queries: list[str]) -> Floats:
        """Every document's final score: queries x documents."""
        similarities = index.similarities(queries)
        chosen = np.stack([top_k(row, self.candidates) for row in similarities])
        nearest = np.take_along_axis(similarities, chosen, axis=1)
        span = nearest[:, :1] - nearest[:, -1:]
        fit = (similarities - nearest[:, -1:]) / np.where(span > 0, span, 1.0)
        among = np.take_along_axis(fit, chosen, axis=1)
        scores = self.weights["dense"] * fit
        if self.agents or self.weights["quality"]:
            edges = np.stack([index.graph.among(places) for places in chosen])
            added = self.weights["quality"] * company(edges, among)
            if self.agents:
                added += self.weights["votes"] * self._votes(index, queries, chosen, edges, among)
            np.put_along_axis(scores, chosen, np.take_along_axis(scores, chosen, axis=1) + added, axis=1)
        return scores

    def _votes(self, index: GraphIndex, queries: list[str], chosen: Any, edges: Any, fit: Floats) -> Floats:
        vectors = index.dense.vectors[chosen].astype(np.float64)
        similarity = vectors @ vectors.transpose(0, 2, 1)
        draws = np.stack([query_draws(self.seed, query, (self.steps, self.agents)) for query in queries])
        return votes(edges, similarity, fit, draws, self.rules)


def _reasons(leap_when: str | Sequence[str], who: str) -> tuple[str, ...]:
    listed = (leap_when,) if isinstance(leap_when, str) else tuple(leap_when)
    for reason in listed:
        if reason not in (*REASONS, ALWAYS):
            raise unknown(who, "reason to leap", reason, (*REASONS, ALWAYS))
    return listed
