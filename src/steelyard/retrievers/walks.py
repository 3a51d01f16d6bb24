"""Retrievers that walk over a document graph: GraphFlow counts visits, and SwarmRerank lets agents vote."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from steelyard.retrievers import base
from steelyard.retrievers.base import CheckedCorpus, Floats, Integers, Ranked, Staged, best, top_k
from steelyard.retrievers.dense import Dense
from steelyard.retrievers.embeddings import Embedder
from steelyard.retrievers.graph import Bools, DocumentGraph, from_links, from_neighbours
from steelyard.retrievers.settings import Indexed, setting

GraphSource: TypeAlias = Literal["auto", "links", "neighbours"]
IRRELEVANT, DEAD_END, OVER_VISITED = "irrelevant", "dead-end", "over-visited"
REASONS = (IRRELEVANT, DEAD_END, OVER_VISITED)
ALWAYS = "always"
_BLOCK_CELLS = 2_000_000  # Cells of a block of queries.


class GraphRetriever(Indexed):
    """The common part of retrievers on a document graph. A subclass has the scores in `_scores`."""

    stage: ClassVar[str]
    """The name of what it does to the documents that are most similar to the query."""
    candidates = 0
    """The number of most similar documents that it starts from, if that is fixed."""

    graph: GraphSource = setting(
        "links of the corpus, nearest neighbours by embedding, or `auto`: links if the corpus has any", default="auto"
    )
    neighbours: int = setting(
        "neighbours per document in a graph of nearest neighbours, which is approximate above 20,000 documents",
        default=10,
        low=1,
    )
    both_ways: bool = setting("a link is an edge in both directions", default=False)
    embedding: str | Embedder | Dense = setting(
        "the embedding for similarity: a model name or a callable as for Dense, or a Dense", default="lsa", key=None
    )
    seed: int = setting(
        "seed of the walks; those of a query depend only on the seed and its text, not on other queries", default=0
    )

    def _set_up(self) -> None:
        self._dense = self.embedding if isinstance(self.embedding, Dense) else Dense(model=self.embedding)
        self._graph: DocumentGraph | None = None

    def _build(self, documents: CheckedCorpus, corpus: Mapping[str, str]) -> None:
        vectors = self._dense.index(corpus).vectors
        links = getattr(corpus, "links", None)
        if self.graph == "links" and not links:
            raise self._error("the corpus has no links; use one that has, or set graph to 'neighbours'.")
        if self.graph == "neighbours" or not links:
            self._graph = from_neighbours(vectors, self.neighbours)
        else:
            self._graph = from_links(documents.ids, links, self.both_ways)

    def _lists(self, documents: CheckedCorpus, queries: list[str], k: int) -> list[Ranked]:
        graph = base.checked_index(self._graph, self.label)
        size = max(1, _BLOCK_CELLS // max(self._cells(graph), len(documents)))
        lists: list[Ranked] = []
        for first in range(0, len(queries), size):
            block = queries[first : first + size]
            # Each query is multiplied separately, since a matrix product rounds differently with its size, and a walk
            # must not depend on the other queries. The cosines are rounded as in Dense.
            rows = [self._dense.vectors @ vector for vector in self._dense.embed(block)]
            similarities = np.round(np.array(rows, dtype=np.float64), 6) + 0.0
            for similar, row in zip(similarities, self._scores(graph, block, similarities), strict=True):
                received = best(documents.ids, similar, max(k, self.candidates))
                lists.append(Staged(best(documents.ids, row, k), self.stage, [("retrieve", received)]))
        return lists

    def size_in_bytes(self) -> int:
        """The embeddings and the graph."""
        graph = self._graph
        return 0 if graph is None else self._dense.size_in_bytes() + graph.starts.nbytes + graph.targets.nbytes

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"embedding": self._dense.settings()}

    def _cells(self, graph: DocumentGraph) -> int:
        """The numbers that a query needs in memory besides its cosines, for the size of a block of queries."""
        raise NotImplementedError

    def _scores(self, graph: DocumentGraph, queries: list[str], similarities: Floats) -> Floats:
        """The score of every document, and so are the similarities: queries x documents."""
        raise NotImplementedError


def query_draws(seed: int, query: str, shape: tuple[int, ...]) -> Floats:
    """Random numbers from 0 to 1 that depend only on the seed and the text of the query."""
    digest = hashlib.sha256(f"{seed}\0{query}".encode("utf-8", "surrogatepass")).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little"))).random(shape)


def draw(scores: Floats, allowed: Bools, temperature: float, draws: Floats) -> Integers:
    """One choice per row, with probability proportional to exp(temperature x score) among the allowed; -1 if none is.

    `draws` has a number from 0 to 1 for each row. Rows are independent.

    >>> scores = np.log([[1.0, 2.0, 1.0]] * 4)
    >>> draw(scores, np.ones((4, 3), dtype=bool), 1.0, np.array([0.2, 0.3, 0.7, 0.8])).tolist()
    [0, 1, 1, 2]
    """
    masked = np.where(allowed, temperature * scores, -np.inf)
    best = masked.max(axis=-1, keepdims=True)
    reached = np.cumsum(np.exp(masked - np.where(np.isfinite(best), best, 0.0)), axis=-1)
    total = reached[..., -1]
    # A draw that rounds up to the total must not pass the last cell with a weight.
    goal = np.minimum(draws * total, np.nextafter(total, 0.0))
    return np.where(total > 0, np.count_nonzero(reached <= goal[..., None], axis=-1), -1)


def visits(
    graph: DocumentGraph, rewards: Floats, seeds: Integers, draws: Floats, temperature: float, restart: float
) -> Integers:
    """The number of visits of each document by random walks: queries x documents.

    `rewards` is queries x documents, `seeds` queries x start documents, and `draws` has two numbers for every
    query, position of a walk and walk: queries x (steps + 1) x walks x 2. A walk starts at a seed and continues
    to a neighbour; with probability `restart`, and at a document without neighbours, it starts again. Starts and
    steps have probabilities proportional to exp(temperature x reward).
    """
    queries, positions, walks, _ = draws.shape
    documents = rewards.shape[1]
    query = np.repeat(np.arange(queries), walks)
    seed_rewards = np.take_along_axis(rewards, seeds, axis=1)[query]
    every_seed = np.ones(seed_rewards.shape, dtype=bool)
    counts = np.zeros(queries * documents, dtype=np.int64)
    at = np.full(queries * walks, -1, dtype=np.int64)
    for position in range(positions):
        stop, choice = draws[:, position, :, 0].ravel(), draws[:, position, :, 1].ravel()
        going = np.flatnonzero((at >= 0) & (stop >= restart))
        rows, real = graph.table(at[going])
        step = draw(rewards[query[going][:, None], rows], real, temperature, choice[going])
        at[:] = -1
        at[going] = np.where(step >= 0, rows[np.arange(len(going)), step], -1)
        fresh = np.flatnonzero(at < 0)
        at[fresh] = seeds[query[fresh], draw(seed_rewards[fresh], every_seed[fresh], temperature, choice[fresh])]
        counts += np.bincount(query * documents + at, minlength=len(counts))
    return counts.reshape(queries, documents)


class GraphFlow(GraphRetriever):
    """Random walks over a document graph, guided by similarity to the query.

    Walks start at the documents most similar to the query. The next document is one of the neighbours, with
    probability proportional to exp(temperature x reward), where the reward is the similarity to the query.
    Documents are ranked by number of visits.

    A document's score is its number of visits plus (1 + similarity) / 4, which is below 1: equal visits are ranked by
    similarity, and so are documents without a visit. An empty query, or one of unknown words, is equally similar to
    all documents: its walks start at the first documents and choose neighbours with equal probability.

    >>> meanings = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1]}
    >>> flow = GraphFlow(embedding=Dense(model=meanings), neighbours=1, seeds=1, walks=10, steps=4, restart=0)
    >>> [doc for doc, score in flow.index({"d1": "a", "d2": "b", "d3": "c"}).retrieve(["a"], k=3)[0]]
    ['d2', 'd3', 'd1']
    """

    retriever = "graph-flow"
    stage = "walk"

    walks: int = setting("walks per query", default=100, low=1)
    steps: int = setting("steps per walk", default=10)
    temperature: float = setting(
        "0 makes all neighbours equally likely; a higher value prefers the best one", default=10.0
    )
    seeds: int = setting("the number of documents that walks may start at", default=10, low=1)
    restart: float = setting(
        "the probability of starting again at each step; a document without neighbours always restarts",
        default=0.15,
        high=1.0,
    )

    def _cells(self, graph: DocumentGraph) -> int:
        return self.walks * max(int(graph.degrees.max(initial=1)), self.seeds, 2 * (self.steps + 1))

    def _scores(self, graph: DocumentGraph, queries: list[str], rewards: Floats) -> Floats:
        draws = np.stack([query_draws(self.seed, query, (self.steps + 1, self.walks, 2)) for query in queries])
        seeds = np.stack([top_k(row, self.seeds) for row in rewards])
        scores: Floats = visits(graph, rewards, seeds, draws, self.temperature, self.restart) + (1 + rewards) / 4
        return scores


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
                raise base.unknown(self.label, "reason to leap", reason, (*REASONS, ALWAYS))
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
