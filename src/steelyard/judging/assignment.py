"""Assignment: which documents of a pool each judge gets, and in which order.

Without names of judges, everyone gets the whole pool. With names:

- `overlap`, a share of the pool, goes to every judge, so that their agreement can be measured: the pairs of query
  and document with the lowest hashes.
- Every other pair goes to one judge: the one for whom the hash of name and pair is highest (rendezvous hashing).
  The parts are about equal, and a judge who joins later takes over documents but moves none between the others.

Hashes are SHA-256 of the seed and the ids, so that every computer makes the same assignment.

The order is a shuffle of its own for each judge: queries in random order, and the documents of one query together,
in random order. It tells nothing of runs, ranks or priorities, and where a judge stops early, whole queries are
judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from steelyard.errors import InputError, did_you_mean
from steelyard.safe_text import utf8
from steelyard.wording import listed

if TYPE_CHECKING:
    from steelyard.judging.pool import Pool

Pair = tuple[str, str]
"""Query id and document id."""

DEFAULT_OVERLAP = 0.1


def assigned(
    pool: Pool, judge: str, judges: Sequence[str] | None = None, overlap: float = DEFAULT_OVERLAP, seed: int = 0
) -> list[Pair]:
    """The pairs that a judge gets, in the judge's order.

    pool: the documents to judge.
    judge: the judge's name.
    judges: the names of all judges; without them every judge gets the whole pool.
    overlap: the share of the pool that all `judges` get.
    seed: another seed gives another assignment and other orders.
    """
    pairs: list[Pair] = list(dict.fromkeys(pool.frame.select("query_id", "doc_id").iter_rows()))
    if judges is not None:
        _check(judge, judges, overlap)
        shared = shared_pairs(pairs, overlap, seed)
        pairs = [pair for pair in pairs if pair in shared or judge_of(pair, judges, seed) == judge]
    queries = {query: _hashed(seed, "query", judge, query) for query, _ in pairs}
    return sorted(pairs, key=lambda pair: (queries[pair[0]], pair[0], _hashed(seed, "order", judge, *pair), pair[1]))


def shared_pairs(pairs: Sequence[Pair], overlap: float, seed: int = 0) -> set[Pair]:
    """The pairs that every judge gets: the share asked for, at least one unless it is 0.

    >>> pairs = [("q", str(number)) for number in range(20)]
    >>> len(shared_pairs(pairs, 0.1)), len(shared_pairs(pairs, 0.01)), len(shared_pairs(pairs, 0))
    (2, 1, 0)
    """
    count = round(overlap * len(pairs))
    if overlap > 0 and pairs:
        count = max(count, 1)
    return set(sorted(pairs, key=lambda pair: (_hashed(seed, "overlap", *pair), pair))[:count])


def judge_of(pair: Pair, judges: Sequence[str], seed: int = 0) -> str:
    """The judge of a pair that only one gets."""
    return max(judges, key=lambda name: (_hashed(seed, "judge", name, *pair), name))


def _check(judge: str, judges: Sequence[str], overlap: float) -> None:
    if not 0 <= overlap <= 1:
        raise InputError(f"overlap is {overlap}; expected a share from 0 to 1, or 0% to 100%.")
    if len(set(judges)) != len(judges) or not all(judges):
        raise InputError(f"judges are {listed(list(judges))}; expected different names.")
    if judge not in judges:
        raise InputError(f"{judge!r} is not one of the judges {listed(list(judges))}.{did_you_mean(judge, judges)}")


def _hashed(seed: int, *parts: str) -> bytes:
    """A hash of a seed and texts; their lengths are hashed too, so that no two lists of texts are the same."""
    made = sha256(str(seed).encode())
    for part in parts:
        raw = utf8(part)
        made.update(len(raw).to_bytes(8, "little") + raw)
    return made.digest()
