"""A pool joined with judgments once, so that each of many fused scores is measured without another join."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from steelyard.alignment.alignment import Alignment, join
from steelyard.alignment.hits import Bools, Floats, Hits, Ints
from steelyard.fusion.pool import Pool
from steelyard.fusion.pooled import PooledRuns
from steelyard.judgments import Qrels


@dataclass(frozen=True)
class JudgedPool:
    """The part of a pool whose queries are judged.

    `query` is per candidate the number of its query in the judgments, `doc` the number of its document
    there, or -1; `answered` is per judged query whether a run has it.
    """

    qrels: Qrels
    pool: Pool
    query: Ints
    doc: Ints
    answered: Bools

    def alignment(self, score: Floats) -> Alignment:
        """The alignment of the run that these scores make, ranked as `evaluate` ranks it."""
        return join(self.qrels, self._hits(score))

    def _hits(self, score: Floats) -> Hits:
        order = self.pool.best_first(score)
        rank, query = self.pool.places(order), self.query[order]
        above = np.concatenate([[True], (np.diff(score[order]) != 0) | (np.diff(query) != 0)])[: len(order)]
        first = np.flatnonzero(above)
        group = np.cumsum(above) - 1
        size = np.diff(first, append=len(order))
        hit = np.flatnonzero(self.doc[order] >= 0)
        hit = hit[np.argsort(query[hit], kind="stable")]
        top = np.full(len(self.answered), np.nan)
        top[query[rank == 1]] = score[order[rank == 1]]
        nothing = np.zeros(0, dtype=np.int64)
        return Hits(
            retrieved=np.bincount(query, minlength=len(self.answered)),
            answered=self.answered,
            top_score=top,
            query=query[hit],
            doc=self.doc[order[hit]],
            rank=rank[hit],
            tie_first=rank[first][group[hit]],
            tie_size=size[group[hit]],
            repeat_query=nothing,
            repeat_rank=nothing,
        )


def judged_pool(qrels: Qrels, pooled: PooledRuns) -> JudgedPool:
    """The judged part of pooled runs."""
    judged = qrels.judged
    number = {query: place for place, query in enumerate(judged.query_ids)}
    place = np.array([number.get(query, -1) for query in pooled.queries], dtype=np.int64)
    pool, kept = pooled.pool.of_queries(place >= 0)
    query = place[place >= 0][pool.query]
    listed = pl.DataFrame({"query": query, "doc_id": pooled.documents.filter(pl.Series(kept))})
    known = pl.DataFrame(
        {
            "query": np.repeat(np.arange(len(judged.query_ids)), np.diff(judged.starts)),
            "doc_id": pl.Series(list(judged.doc_ids), dtype=pl.String),
            "doc": np.arange(len(judged.doc_ids)),
        }
    )
    doc = listed.join(known, on=["query", "doc_id"], how="left", maintain_order="left")["doc"]
    answered = np.zeros(len(judged.query_ids), dtype=np.bool_)
    answered[place[place >= 0]] = True
    answered[[number[empty] for empty in pooled.empty if empty in number]] = True
    return JudgedPool(qrels, pool, query, doc.fill_null(-1).to_numpy(), answered)
