"""The hybrid-retrieval experiment: GraphFlow compared with SwarmRerank and its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from examples.hybrid_retrieval.knowledge_base import KnowledgeBase, knowledge_base
from examples.hybrid_retrieval.variants import BASELINE, VARIANTS
from steelyard.comparison.compare import compare_scores
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import TableOptions
from steelyard.comparison.slices import COMPLEXITY, complexity
from steelyard.errors import PolicyError
from steelyard.evaluation import evaluate
from steelyard.report.comparison import leaderboard_markdown
from steelyard.report.tables import Cell, Table, markdown
from steelyard.retrievers import Dense, Retriever
from steelyard.run import Run
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

DEPTH = 20
MEASURES = ("DR@20", "MRR", "Recall@20", "Diversity@20", "Hit@1", "Hit@5", "Hit@10", "Hit@20", "Latency")
TESTED = ("MRR", "DR@20")
"""The measures whose differences from the baseline are shown."""

Makers = Mapping[str, Callable[[int, Dense], Retriever]]


@dataclass(frozen=True)
class HybridRetrieval:
    """The result of the experiment.

    scores: seed, run, query_id and one column per measure. comparison: the variants over all questions, where the
    values of a question are averaged over the seeds. by_complexity: the same for simple questions (up to 3
    relevant documents), medium (4 to 6) and complex ones.
    """

    base: KnowledgeBase
    seeds: tuple[int, ...]
    scores: pl.DataFrame
    comparison: Comparison
    by_complexity: dict[str, Comparison]

    def to_markdown(self) -> str:
        """The leaderboard, and the tests against the baseline over all questions and by complexity."""
        comparison = self.comparison
        summary = (
            f"{len(self.base.texts)} documents, {len(self.base.questions)} questions, "
            f"{counted(len(self.seeds), 'seed')}; paired t-tests against "
            f"{comparison.plan.baseline} on each question's mean over the seeds "
            f"(correction: {comparison.plan.correction}). "
            "*** p < 0.001, ** p < 0.01, * p < 0.05, ns otherwise. Latency is in seconds."
        )
        parts = ["# Hybrid retrieval", summary, leaderboard_markdown(comparison)]
        parts += ["## Comparison with the baseline", markdown(_tests({"all": comparison}))]
        parts += ["## By complexity", markdown(_tests(self.by_complexity))]
        return "\n\n".join(parts) + "\n"


def hybrid_retrieval(
    seeds: Iterable[int] = range(5),
    *,
    base: KnowledgeBase | None = None,
    variants: Makers | None = None,
    correction: str = "none",
) -> HybridRetrieval:
    """Run the variants on a knowledge base, once for each seed, and compare them with GraphFlow.

    seeds: seeds of the walks; the knowledge base is the same for all.
    base: a knowledge base; `knowledge_base(seed=0)` by default.
    variants: a function from seed and embedding to a retriever, by name; the six of the experiment by default. One
        is `graph-flow`.
    correction: correction of the p-values, as for `compare`.

    The variants take turns, one question at a time, so that the latencies are comparable. The first question is
    run once more in advance, as a warm-up.
    """
    import polars as pl

    base, makers, seeds = base or knowledge_base(), variants or VARIANTS, tuple(seeds)
    if not seeds or len(set(seeds)) < len(seeds):
        raise PolicyError(f"the seeds are {list(seeds)}; expected at least one, and each once.")
    if BASELINE not in makers:
        raise PolicyError(f"there is no variant {BASELINE!r}, the baseline of the comparison; add it.")
    fitted = Dense().index(base.corpus)
    frames = []
    for seed in seeds:
        retrievers = {
            name: make(seed, Dense(model=fitted.embed, vectors=fitted.vectors)).index(base.corpus)
            for name, make in makers.items()
        }
        for run in _runs(retrievers, base.questions):
            values = evaluate(base.qrels, run, list(MEASURES)).per_query
            frames.append(values.select(pl.lit(seed).alias("seed"), pl.lit(run.name).alias("run"), pl.all()))
    scores = pl.concat(frames)
    levels = complexity(base.qrels)
    comparison = _compare(scores, correction, levels)
    by_complexity = {
        level: _compare(scores.filter(pl.col("query_id").is_in([q for q in levels if levels[q] == level])), correction)
        for level in (cut.value for cut in comparison.slices)
    }
    return HybridRetrieval(base, seeds, scores, comparison, by_complexity)


def _compare(scores: pl.DataFrame, correction: str, levels: Mapping[str, str] | None = None) -> Comparison:
    return compare_scores(
        scores,
        list(MEASURES),
        options=TableOptions(run_column="run", query_column="query_id", repeat_column="seed"),
        baseline=BASELINE,
        test="t",
        correction=correction,
        by=COMPLEXITY if levels else None,
        queries=levels,
    )


def _runs(retrievers: Mapping[str, Retriever], questions: Mapping[str, str]) -> list[Run]:
    """The run of each variant, with the latency of each question."""
    lists: dict[str, dict[str, list[tuple[str, float]]]] = {name: {} for name in retrievers}
    seconds: dict[str, dict[str, float]] = {name: {} for name in retrievers}
    for text in list(questions.values())[:1]:
        for retriever in retrievers.values():
            retriever.retrieve([text], DEPTH)
    for question, text in questions.items():
        for name, retriever in retrievers.items():
            start = perf_counter()
            lists[name][question] = retriever.retrieve([text], DEPTH)[0]
            seconds[name][question] = perf_counter() - start
    return [Run(lists[name], name, seconds=seconds[name]) for name in retrievers]


def _tests(comparisons: Mapping[str, Comparison]) -> Table:
    """One row per slice and variant: the means of the tested measures and their differences from the baseline."""
    columns = ["questions", "run"]
    for measure in TESTED:
        columns += [measure, f"{measure} difference", f"{measure} p", f"{measure} stars"]
    rows: list[list[Cell]] = []
    for name, comparison in comparisons.items():
        pairs = {(pair.run, pair.measure): pair for pair in comparison.tested_pairs}
        slice_name = f"{name} ({len(comparison.score_tables[0].queries)})"
        for standing in comparison.leaderboard_rows:
            cells: list[Cell] = [slice_name, standing.run]
            for measure in TESTED:
                pair = pairs.get((standing.run, measure))
                tested = (
                    ["", "", ""] if pair is None else [f"{pair.difference:+.4f}", f"{pair.p_adjusted:.2g}", pair.stars]
                )
                cells += [standing.means[measure], *tested]
            rows.append(cells)
    return Table(columns, rows)
