"""SwarmRerank: agents walk over the candidates of a query, follow edges or leap, and vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.retrievers.base import Floats, Integers, top_k, unknown
from steelyard.retrievers.graph import Bools, DocumentGraph, GraphRetriever, draw, query_draws
from steelyard.retrievers.settings import setting

IRRELEVANT, DEAD_END, OVER_VISITED = "irrelevant", "dead-end", "over-visited"
REASONS = (IRRELEVANT, DEAD_END, OVER_VISITED)
ALWAYS = "always"


def votes(edges: Bools, similarity: Floats, fit: Floats, draws: Floats, swarm: SwarmRerank) -> Floats:
    """The votes of the agents for each candidate, scaled so that the best has 1: queries x candidates.

    `edges` and `similarity` are queries x candidates x candidates; `fit` is queries x candidates, from 0 to 1,
    best first; `draws` has a number from 0 to 1 for every step and agent: queries x steps x agents.
    Agents start at the best candidates, one at each; if there are more agents than candidates, several start at
    the same one. All move at the same time. An agent that arrives at a document votes for it with the fit of its
    path: one half is the document's own fit, a quarter that of the previous document, and so on.
    """
    queries, steps, agents = draws.shape
    candidates = fit.shape[1]
    query = np.arange(queries)[:, None]
    other = ~np.eye(candidates, dtype=bool)
    at = np.broadcast_to(np.arange(agents) % candidates, (queries, agents))
    path = fit[query, at]
    pheromone = updated(np.zeros(fit.shape), at, swarm.decay)
    cast = np.zeros(fit.shape)
    for step in range(steps):
        neighbours = edges[query, at]
        leap = leaps(path, neighbours.any(axis=-1), pheromone[query, at], swarm)
        worth = swarm.reward * fit + swarm.diversity / (1 + pheromone)
        scores = worth[:, None, :] + swarm.similarity * similarity[query, at]
        chosen = draw(scores, np.where(leap[..., None], other[at], neighbours), swarm.temperature, draws[:, step])
        at = np.where(chosen >= 0, chosen, at)
        path = (path + fit[query, at]) / 2
        cast += _summed(at, path, candidates)
        pheromone = updated(pheromone, at, swarm.decay)
    most = cast.max(axis=1, keepdims=True, initial=0.0)
    return cast / np.where(most > 0, most, 1.0)


def leaps(path: Floats, has_edge: Bools, pheromone: Floats, swarm: SwarmRerank) -> Bools:
    """The router: which agents leap to any candidate instead of following an edge.

    `path` is the fit of an agent's path; `has_edge` and `pheromone` are those of its current document.
    """
    if ALWAYS in swarm.leap_when:
        return np.ones(path.shape, dtype=bool)
    reasons = {IRRELEVANT: path < swarm.relevance, DEAD_END: ~has_edge, OVER_VISITED: pheromone > swarm.crowding}
    leap = np.zeros(path.shape, dtype=bool)
    for reason in swarm.leap_when:
        leap |= reasons[reason]
    return leap


def updated(pheromone: Floats, at: Integers, decay: float) -> Floats:
    """The pheromone after a step: the old pheromone decayed, plus 1 for each agent at a document.

    >>> updated(np.array([[4.0, 0.0]]), np.array([[0, 1, 1]]), 0.5).tolist()
    [[3.0, 2.0]]
    """
    return decay * pheromone + _summed(at, np.ones(at.shape), pheromone.shape[1])


def quality(edges: Bools, fit: Floats) -> Floats:
    """The quality of each candidate: the mean fit of itself and the candidates linked with it, in either direction.

    >>> quality(np.array([[[False, True], [False, False]]]), np.array([[1.0, 0.5]])).tolist()
    [[0.75, 0.75]]
    """
    linked = edges | edges.transpose(0, 2, 1) | np.eye(fit.shape[1], dtype=bool)
    mean: Floats = (linked * fit[:, None, :]).sum(axis=-1) / linked.sum(axis=-1)
    return mean


def _summed(at: Integers, amounts: Floats, candidates: int) -> Floats:
    queries = len(at)
    cells = (np.arange(queries)[:, None] * candidates + at).ravel()
    sums: Floats = np.bincount(cells, amounts.ravel(), minlength=queries * candidates).astype(np.float64)
    return sums.reshape(queries, candidates)


class SwarmRerank(GraphRetriever):
    """The documents most similar to the query, reranked by agents that walk the graph between them.

    At each step an agent follows an edge or, for one of the reasons in `leap_when`, leaps to any candidate. The
    probability of a move is proportional to exp(temperature x score), where the score is reward x the document's fit to
    the query + similarity x its similarity to the current document + diversity / (1 + its pheromone). Each agent adds
    pheromone where it arrives, and at each step only the share `decay` of the pheromone remains. The final score of a
    candidate is votes x the agents' votes + quality x the mean fit of itself and the candidates linked with it + dense
    x its own fit. Fit is the similarity to the query, scaled from 0 for the last candidate to 1 for the first.

    Plain semantic search is agents=0, quality=0; only leaping is leap_when="always", quality=0. Documents that are
    not candidates follow by similarity, with scores of 0 or less. The walks of a query depend only on the seed and
    its text, not on other queries.

    >>> corpus = {"d1": "the red fox", "d2": "a fox and its den", "d3": "dens of badgers", "d4": "the owl"}
    >>> swarm = SwarmRerank(candidates=3, agents=5, graph="neighbours", neighbours=1).index(corpus)
    >>> [doc for doc, score in swarm.retrieve(["fox"], k=2)[0]]
    ['d1', 'd2']
    """

    retriever = "swarm-rerank"
    stage = "rerank"

    candidates: int = setting("the number of candidates", default=50, low=1)
    agents: int = setting("the number of agents; with 0 there are no votes", default=20)
    steps: int = setting("steps per agent", default=10)
    temperature: float = setting("0 makes all moves equally likely; a higher value prefers the best", default=20.0)
    reward: float = setting("the weight of the fit of a document, in the score of a move", default=1.0)
    similarity: float = setting("the weight of its similarity to the current document", default=0.5)
    diversity: float = setting("the weight of 1 / (1 + its pheromone)", default=0.5)
    leap_when: str | Sequence[str] = setting(
        "reasons to leap, any of `irrelevant` (the fit of the path is below `relevance`), `dead-end` (no edge to "
        "another candidate) and `over-visited` (more pheromone than `crowding`); `always`; or none",
        default=REASONS,
        key=None,
    )
    relevance: float = setting("the fit below which a path is irrelevant", default=0.4)
    crowding: float = setting("the pheromone above which a document is over-visited", default=2.0)
    decay: float = setting("the share of pheromone that remains after each step", default=0.5, high=1.0)
    votes: float = setting("the weight of the votes, in the final score", default=0.25)
    quality: float = setting("the weight of the mean fit of a candidate and those linked with it", default=0.5)
    dense: float = setting("the weight of the fit of a candidate", default=0.25)

    def _set_up(self) -> None:
        super()._set_up()
        self.leap_when = (self.leap_when,) if isinstance(self.leap_when, str) else tuple(self.leap_when)
        for reason in self.leap_when:
            if reason not in (*REASONS, ALWAYS):
                raise unknown(self.label, "reason to leap", reason, (*REASONS, ALWAYS))
        if not (self.votes or self.quality or self.dense):
            raise self._error("votes, quality and dense are all 0; give one of them a weight.")

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"leap_when": list(self.leap_when)}

    def _cells(self, graph: DocumentGraph) -> int:
        candidates = min(self.candidates, len(graph))
        return candidates * max(3 * candidates, 3 * self.agents, self.steps)

    def _scores(self, graph: DocumentGraph, queries: list[str], similarities: Floats) -> Floats:
        chosen = np.stack([top_k(row, self.candidates) for row in similarities])
        nearest = np.take_along_axis(similarities, chosen, axis=1)
        span = nearest[:, :1] - nearest[:, -1:]
        fit = (similarities - nearest[:, -1:]) / np.where(span > 0, span, 1.0)
        candidate_fit = np.take_along_axis(fit, chosen, axis=1)
        scores = self.dense * fit
        if self.agents or self.quality:
            edges = np.stack([graph.among(positions) for positions in chosen])
            added = self.quality * quality(edges, candidate_fit)
            if self.agents:
                vectors = self._dense.vectors[chosen].astype(np.float64)
                draws = np.stack([query_draws(self.seed, query, (self.steps, self.agents)) for query in queries])
                likeness = vectors @ vectors.transpose(0, 2, 1)
                added += self.votes * votes(edges, likeness, candidate_fit, draws, self)
            np.put_along_axis(scores, chosen, np.take_along_axis(scores, chosen, axis=1) + added, axis=1)
        return scores
