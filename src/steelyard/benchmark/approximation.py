"""What approximate search costs: neighbours missed, effectiveness lost and time gained, compared with exact search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.benchmark.chunkings import Chunking
from steelyard.benchmark.retrieval import CostRow
from steelyard.comparison.compare import compare
from steelyard.comparison.result import Comparison
from steelyard.lazy import polars as pl
from steelyard.qrels import Qrels
from steelyard.report.tables import Cell, Table
from steelyard.retrievers.dense import passing
from steelyard.run import Run
from steelyard.statistics.effect import shown_p, stars
from steelyard.wording import listed

NEIGHBOURS = 10  # The cutoff of the neighbours found, if the measure has none.


@dataclass(frozen=True)
class Approximation:
    """A run of approximate search, compared with exact search over the same vectors and with the same filter.

    series: the engine with its kind of index and its filter, without the parameters that a sweep changes.
    neighbours: the mean share of the first k documents of the exact search that are among its first k; documents with
    the score of the last of them count too. lost: the mean of the measure of the exact search minus its own, with the
    interval of the corrected test; with a filter, only documents that pass it are relevant. speedup: the median time
    of the exact search divided by its own; None if they were not measured together.
    """

    run: str
    exact: str
    series: str
    filter: Any
    k: int
    neighbours: float
    measure: str
    queries: int
    lost: float
    low: float
    high: float
    p: float
    p_adjusted: float
    verdict: str
    seconds: float | None
    exact_seconds: float | None
    speedup: float | None


def approximations(
    rows: Sequence[CostRow],
    runs: Mapping[str, Run],
    comparison: Comparison,
    chunkings: Sequence[Chunking],
    options: Mapping[str, Any],
) -> tuple[Approximation, ...]:
    """Every run over the vectors of a dense row of the same chunking, compared with that row: one family of tests."""
    columns = comparison.score_tables[0].columns
    measures = [(c.measure, c.key) for c in columns if c.measure is not None and not c.timed]
    if not measures:
        return ()
    measure, key = min(measures, key=lambda candidate: candidate[0].name != "nDCG")  # nDCG, or else the first.
    k = int(measure.cutoff or NEIGHBOURS)
    searches: list[Approximation] = []
    of_chunking = {chunking.label: chunking for chunking in chunkings}
    for exact, others in _by_exact_row(rows):
        judged = _passing_qrels(of_chunking[exact.chunker], exact)
        if judged is None:
            continue
        group = {row.run: runs[row.run] for row in (exact, *others)}
        compared = compare(judged, group, [measure], baseline=exact.run, unmatched="note", **options)
        pairs = {pair.run: pair for pair in compared.tested_pairs}
        for row, pair in ((row, pairs[row.run]) for row in others if row.run in pairs):
            together = row.session is not None and row.session == exact.session
            times = (row.p50_seconds, exact.p50_seconds) if together else (None, None)
            searches.append(
                Approximation(
                    run=row.run,
                    exact=exact.run,
                    series=_series(row.settings),
                    filter=exact.settings.get("filter"),
                    k=k,
                    neighbours=neighbours_found(runs[exact.run], runs[row.run], k),
                    measure=key,
                    queries=pair.queries,
                    lost=-pair.difference + 0.0,
                    low=-pair.high + 0.0,
                    high=-pair.low + 0.0,
                    p=pair.p,
                    p_adjusted=pair.p_adjusted,
                    verdict=pair.verdict,
                    seconds=times[0],
                    exact_seconds=times[1],
                    speedup=times[1] / times[0] if times[0] and times[1] else None,
                )
            )
    order = [row.run for row in rows]
    return tuple(sorted(searches, key=lambda search: order.index(search.run)))


def neighbours_found(exact: Run, other: Run, k: int) -> float:
    """The mean share of the first k documents of an exact search that another search has among its first k.

    A document with the score of the k-th counts too, whatever its place. Queries without a result are left out.

    >>> exact = Run({"q1": {"a": 3, "b": 2, "c": 2, "d": 1}})
    >>> neighbours_found(exact, Run({"q1": ["a", "c"]}), 2), neighbours_found(exact, Run({"q1": ["a", "d"]}), 2)
    (1.0, 0.5)
    """
    groups = [run.frame.sort("rank").group_by("query_id").agg("doc_id", "score") for run in (exact, other)]
    lists, others = (
        {query: list(zip(docs, scores, strict=True)) for query, docs, scores in group.sort("query_id").iter_rows()}
        for group in groups
    )
    shares = []
    for query, ranked in lists.items():
        first = ranked[:k]
        last = first[-1][1]
        right = {doc for doc, score in ranked if score is not None and score >= last} | {doc for doc, _ in first}
        hits = sum(doc in right for doc, _ in others.get(query, [])[:k])
        shares.append(min(hits, len(first)) / len(first))
    return float(np.mean(shares)) if shares else float("nan")


def approximation_table(found: Sequence[Approximation]) -> Table | None:
    """The table of a bench; None if no run is compared with exact search."""
    if not found:
        return None
    rows: list[list[Cell]] = [
        [
            search.run,
            search.neighbours,
            search.lost,
            f"{search.low:+.4f} to {search.high:+.4f}",
            f"{shown_p(search.p_adjusted)} {stars(search.p_adjusted)}".removesuffix(" ns").rstrip(),
            *(None if seconds is None else seconds * 1e3 for seconds in (search.seconds, search.exact_seconds)),
        ]
        for search in found
    ]
    head = ["run", f"neighbours@{found[0].k}", f"{found[0].measure} lost", "corrected interval", "corrected p"]
    exact = listed(list(dict.fromkeys(search.exact for search in found)))
    title = f"What approximate search costs: compared with {exact}"
    return Table([*head, "p50 ms", "exact p50 ms"], rows, digits=4, title=title)


def _series(settings: Mapping[str, Any]) -> str:
    """The engine, its kind of index and its filter.

    >>> _series({"retriever": "faiss", "kind": "hnsw", "m": 4, "filter": 0.1})
    'faiss hnsw, filter 0.1'
    """
    parts = [settings.get(name) for name in ("retriever", "search", "kind")]
    name = " ".join(str(part) for part in parts if part is not None and part != "vector")
    given = settings.get("filter")
    if isinstance(given, Mapping):
        given = " ".join(f"{field}={value}" for field, value in given.items())
    return name if given is None else f"{name}, filter {given}"


def _by_exact_row(rows: Sequence[CostRow]) -> list[tuple[CostRow, list[CostRow]]]:
    """The dense rows, each with the rows of engines that search the same vectors with the same filter."""
    exact = {_vectors_key(row.settings, row): row for row in rows if row.settings.get("retriever") == "dense"}
    groups: dict[str, tuple[CostRow, list[CostRow]]] = {}
    for row in rows:
        of = row.settings.get("of")
        if not isinstance(of, Mapping) or row.broken:
            continue
        base = exact.get(_vectors_key({**of, "filter": row.settings.get("filter")}, row))
        if base is not None and not base.broken:
            groups.setdefault(base.run, (base, []))[1].append(row)
    return list(groups.values())


def _vectors_key(settings: Mapping[str, Any], row: CostRow) -> str:
    kept = {key: value for key, value in settings.items() if value is not None}
    return repr((sorted(kept.items(), key=lambda pair: pair[0]), row.chunker))


def _passing_qrels(chunking: Chunking, row: CostRow) -> Qrels | None:
    """The judgments of the documents that pass the filter of a row; None if none is left."""
    ids = list(chunking.corpus)
    kept = passing(chunking.corpus, ids, row.settings.get("filter"), row.run)
    if kept is None:
        return chunking.qrels
    passed = [doc for doc, keep in zip(ids, kept.tolist(), strict=True) if keep]
    frame = chunking.qrels.frame.filter(pl.col("doc_id").is_in(passed))
    relevant = frame.filter(pl.col("grade") > 0)["query_id"].unique()
    frame = frame.filter(pl.col("query_id").is_in(relevant.to_list()))
    return Qrels(frame) if len(frame) else None
