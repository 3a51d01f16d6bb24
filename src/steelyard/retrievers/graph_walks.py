"""Walks over a document graph: draws that are seeded by the query's own text, and steps drawn by reward."""

from __future__ import annotations

import hashlib

import numpy as np

from steelyard.retrievers.graph import Bools, DocumentGraph, Floats, Integers


def query_draws(seed: int, query: str, shape: tuple[int, ...]) -> Floats:
    """Numbers from 0 to 1 that depend on the seed and the query's text alone, whatever is asked beside it."""
    digest = hashlib.sha256(f"{seed}\0{query}".encode("utf-8", "surrogatepass")).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little"))).random(shape)


def draw(scores: Floats, allowed: Bools, temperature: float, draws: Floats) -> Integers:
    """One choice a row, drawn in proportion to exp(temperature x score) among the allowed; -1 where none is.

    `draws` has a number from 0 to 1 for each row. Rows do not influence each other.

    >>> scores = np.log([[1.0, 2.0, 1.0]] * 4)
    >>> draw(scores, np.ones((4, 3), dtype=bool), 1.0, np.array([0.2, 0.3, 0.7, 0.8])).tolist()
    [0, 1, 1, 2]
    """
    masked = np.where(allowed, temperature * scores, -np.inf)
    best = masked.max(axis=-1, keepdims=True)
    weights = np.exp(masked - np.where(np.isfinite(best), best, 0.0))
    reached = np.cumsum(weights, axis=-1)
    total = reached[..., -1]
    # A draw that rounds up to the whole must not run past the last cell that has weight.
    goal = np.minimum(draws * total, np.nextafter(total, 0.0))
    passed = np.count_nonzero(reached <= goal[..., None], axis=-1)
    return np.where(total > 0, passed, -1)


def visits(
    graph: DocumentGraph,
    rewards: Floats,
    seeds: Integers,
    draws: Floats,
    temperature: float,
    restart: float,
) -> Integers:
    """How often walks pass each document: queries x documents.

    `rewards` is queries x documents, `seeds` queries x start documents, and `draws` two numbers for every
    query, position of a walk and walk: queries x (steps + 1) x walks x 2. A walk starts at a seed, then goes
    on to a neighbour; with chance `restart`, and at a document that leads nowhere, it starts again. Starts
    and steps alike are drawn in proportion to exp(temperature x reward).
    """
    queries, positions, walks, _ = draws.shape
    documents = rewards.shape[1]
    asked = np.repeat(np.arange(queries), walks)
    seed_rewards = np.take_along_axis(rewards, seeds, axis=1)[asked]
    every_seed = np.ones(seed_rewards.shape, dtype=bool)
    counts = np.zeros(queries * documents, dtype=np.int64)
    at = np.full(queries * walks, -1, dtype=np.int64)
    for position in range(positions):
        stop, choice = draws[:, position, :, 0].ravel(), draws[:, position, :, 1].ravel()
        going = np.flatnonzero((at >= 0) & (stop >= restart))
        rows, real = graph.table(at[going])
        step = draw(rewards[asked[going][:, None], rows], real, temperature, choice[going])
        at[:] = -1
        at[going] = np.where(step >= 0, rows[np.arange(len(going)), step], -1)
        fresh = np.flatnonzero(at < 0)
        start = draw(seed_rewards[fresh], every_seed[fresh], temperature, choice[fresh])
        at[fresh] = seeds[asked[fresh], start]
        counts += np.bincount(asked * documents + at, minlength=len(counts))
    return counts.reshape(queries, documents)
