"""The six variants of the hybrid-retrieval experiment: the baseline, and SwarmRerank with five settings."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.retrievers import Dense, GraphFlow, Retriever, SwarmRerank

BASELINE = "graph-flow"
SWARM = "swarm-rerank"

# From plain semantic search to the full reranker: agents, edges with reasons to leap, then node quality.
_SETTINGS: dict[str, dict[str, object]] = {
    "semantic": {"agents": 0, "quality": 0},
    "leaping": {"leap_when": "always", "quality": 0},
    "router-relevance": {"leap_when": ["irrelevant", "dead-end"], "quality": 0},
    "router-visits": {"leap_when": ["over-visited", "dead-end"], "quality": 0},
    SWARM: {},
}


def _swarm(name: str) -> Callable[[int, Dense], Retriever]:
    def make(seed: int, embedding: Dense) -> Retriever:
        return SwarmRerank(**_SETTINGS[name], embedding=embedding, seed=seed, name=name)  # type: ignore[arg-type]

    return make


VARIANTS: dict[str, Callable[[int, Dense], Retriever]] = {
    BASELINE: lambda seed, embedding: GraphFlow(embedding=embedding, seed=seed, name=BASELINE),
    **{name: _swarm(name) for name in _SETTINGS},
}
"""A function from a seed and an embedding to a retriever, by name."""
