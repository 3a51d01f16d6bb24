"""The hybrid-retrieval experiment: GraphFlow against SwarmRerank and its parts, on a generated knowledge base."""

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
"""The measures whose differences from the baseline the experiment is about."""

Makers = Mapping[str, Callable[[int, Dense], Retriever]]


@dataclass(frozen=True)
class HybridRetrieval:
    """What the experiment found.

    scores: seed, run, query_id and one column per measure. comparison: the variants over all questions, each
    question's values averaged over the seeds first. by_complexity: the same for the simple (up to 3 right
    answers), medium (4 to 6) and complex ones.
    """

    base: KnowledgeBase
    seeds: tuple[int, ...]
    scores: pl.DataFrame
    comparison: Comparison
    by_complexity: dict[str, Comparison]

    def to_markdown(self) -> str:
        """The leaderboard, the tests against the baseline, and both by complexity."""
        held = self.comparison
        said = (
            f"{len(self.base.texts)} documents, {len(self.base.questions)} questions, "
            f"{counted(len(self.seeds), 'seed')}; paired t-tests against "
            f"{held.plan.baseline} on each question's mean over the seeds (correction: {held.plan.correction}). "
            "*** p < 0.001, ** p < 0.01, * p < 0.05, ns otherwise. Latency is in seconds."
        )
        parts = ["# Hybrid retrieval", said, leaderboard_markdown(held)]
        parts += ["## Against the baseline", markdown(_tests({"all": held}))]
        parts += ["## By complexity", markdown(_tests(self.by_complexity))]
        return "\n\n".join(parts) + "\n"


def hybrid_retrieval(
    seeds: Iterable[int] = range(5),
    *,
    base: KnowledgeBase | None = None,
    variants: Makers | None = None,
    correction: str = "none",
) -> HybridRetrieval:
    """Run the variants over a knowledge base, once for each seed, and compare them with GraphFlow.

    seeds: of the walks; the knowledge base stays the same, so that a question's values can be averaged.
    base: a knowledge base; `knowledge_base(seed=0)` by default.
    variants: name to a maker from seed and embedding; the experiment's six by default. One is `graph-flow`.
    correction: of the p-values for the number of tests, as `compare` has them.

    Every variant answers every question alone, in turn with the others, so that the machine's noise falls on
    all alike; the first question is asked once more than it counts, to warm up.
    """
    import polars as pl

    held, makers, chosen = base or knowledge_base(), variants or VARIANTS, tuple(seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise PolicyError(f"the seeds are {list(chosen)}; expected at least one, and each once.")
    if BASELINE not in makers:
        raise PolicyError(f"no variant is called {BASELINE!r}, which the others are held against; add it.")
    fitted = Dense().index(held.corpus)
    frames = []
    for seed in chosen:
        ready = {
            name: make(seed, Dense(model=fitted.embed, vectors=fitted.vectors)).index(held.corpus)
            for name, make in makers.items()
        }
        for run in _answers(ready, held.questions):
            values = evaluate(held.qrels, run, list(MEASURES)).per_query
            frames.append(values.select(pl.lit(seed).alias("seed"), pl.lit(run.name).alias("run"), pl.all()))
    scores = pl.concat(frames)
    levels = complexity(held.qrels)
    compared = _compared(scores, correction, levels)
    parts = {
        level: _compared(
            scores.filter(pl.col("query_id").is_in([q for q in levels if levels[q] == level])), correction
        )
        for level in (cut.value for cut in compared.slices)
    }
    return HybridRetrieval(held, chosen, scores, compared, parts)


def _compared(scores: pl.DataFrame, correction: str, levels: Mapping[str, str] | None = None) -> Comparison:
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


def _answers(ready: Mapping[str, Retriever], questions: Mapping[str, str]) -> list[Run]:
    """Each variant's run with each question's seconds."""
    lists: dict[str, dict[str, list[tuple[str, float]]]] = {name: {} for name in ready}
    seconds: dict[str, dict[str, float]] = {name: {} for name in ready}
    for text in list(questions.values())[:1]:
        for retriever in ready.values():
            retriever.retrieve([text], DEPTH)
    for question, text in questions.items():
        for name, retriever in ready.items():
            began = perf_counter()
            lists[name][question] = retriever.retrieve([text], DEPTH)[0]
            seconds[name][question] = perf_counter() - began
    return [Run(lists[name], name, seconds=seconds[name]) for name in ready]


def _tests(comparisons: Mapping[str, Comparison]) -> Table:
    """A row a slice and variant: the means of the tested measures, and how each differs from the baseline."""
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
                    ["", "", ""]
                    if pair is None
                    else [f"{pair.difference:+.4f}", f"{pair.p_adjusted:.2g}", pair.stars]
                )
                cells += [standing.means[measure], *tested]
            rows.append(cells)
    return Table(columns, rows)
