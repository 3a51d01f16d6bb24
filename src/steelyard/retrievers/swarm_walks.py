"""The swarm: agents that walk over a query's candidates, follow edges or leap, and leave pheromone behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.retrievers.graph import Bools, Floats, Integers
from steelyard.retrievers.graph_walks import draw

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
