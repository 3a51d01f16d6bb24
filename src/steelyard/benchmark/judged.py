"""Judging the result of a bench: its judgments file, the pool to judge, the verdict so far and what would decide it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from steelyard.benchmark.folder import ResultFolder, command_of, load_result
from steelyard.comparison.compare import compare
from steelyard.comparison.result import Comparison
from steelyard.datasets import Dataset
from steelyard.datasets.corpus import Corpus, Queries
from steelyard.errors import InputError, MeasureError
from steelyard.judging.candidates import Pairs, judged_grades, rank_weights
from steelyard.judging.pool import Pool, pool
from steelyard.judgments import Judgments
from steelyard.notes import Note, note, shown_otherwise
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted

DRAWS = 6
DECIDED = 5  # Simulations, and how many of them must give a verdict.

FIRST_STEP = 10
FEWEST_GRADES = 5  # Grades of documents that the same runs returned; with fewer, those of all documents are drawn from.


@dataclass(frozen=True)
class Forecast:
    """The number of judgments `needed` for a verdict in most simulations, of the documents that are `left`.

    `needed` is None if not even all of them would do; `share` is the share of simulations with a verdict then.
    """

    left: int
    needed: int | None
    share: float

    def __str__(self) -> str:
        if not self.left:
            return "Every document that could decide it is judged: only more questions can."
        if self.needed is not None:
            return (
                f"About {counted(self.needed, 'more judgment')} would decide it ({self.left:,} documents are left; "
                "simulated with the grades so far)."
            )
        return (
            f"Even all {self.left:,} documents that are left would decide it in only {self.share * DRAWS:.0f} "
            f"of {DRAWS} simulations: more questions are needed."
        )


def forecast(runs: Mapping[str, Run], qrels: Qrels, order: Pairs, measure: str, test: str) -> Forecast:
    """How many of the documents in `order` to judge until a significant difference does not depend on unjudged ones.

    An unjudged document gets the grade of a judged one that was returned by the same runs, drawn at random.
    """
    if not order:
        return Forecast(0, None, 0.0)
    random = np.random.default_rng(0)
    judged = judged_grades(qrels)
    returned = [set(run.frame.select("query_id", "doc_id").iter_rows()) for run in runs.values()]

    def returned_by(query: str, doc: str) -> tuple[bool, ...]:
        return tuple((query, doc) in pairs for pairs in returned)

    grades_by_runs: dict[tuple[bool, ...], list[float]] = {}
    for query, docs in judged.items():
        for doc, grade in docs.items():
            grades_by_runs.setdefault(returned_by(query, doc), []).append(grade)
    all_grades = [grade for grades in grades_by_runs.values() for grade in grades]

    def decided(count: int) -> int:
        """In how many simulations the first `count` documents decide; counted until it is clear whether in enough."""
        verdicts = 0
        for draw in range(DRAWS):
            grades = {query: dict(docs) for query, docs in judged.items()}
            for query, doc in order[:count]:
                peer_grades = grades_by_runs.get(returned_by(query, doc), [])
                drawn = random.choice(peer_grades if len(peer_grades) >= FEWEST_GRADES else all_grades)
                grades.setdefault(query, {})[doc] = float(drawn)
            with shown_otherwise():
                pairs = compare(grades, dict(runs), [measure], test=test).tested_pairs
            verdicts += any(pair.verdict in ("better", "worse") for pair in pairs)
            if verdicts >= DECIDED or (verdicts + DRAWS - draw - 1 < DECIDED and count < len(order)):
                break
        return verdicts

    with_all = decided(len(order))
    if with_all < DECIDED:
        return Forecast(len(order), None, with_all / DRAWS)
    # 10, 20, 40, ... and all: more judgments decide more often, apart from chance. The last step decides.
    steps = [step for step in (FIRST_STEP << n for n in range(20)) if step < len(order)] + [len(order)]
    first = bisect_left(steps, True, hi=len(steps) - 1, key=lambda count: decided(count) >= DECIDED)
    return Forecast(len(order), steps[first], with_all / DRAWS)


JUDGMENTS = "judgments.jsonl"
JUDGMENTS_USED = "judgments-used"  # The code of the note on them.
ABOUT_QUESTIONS = ("questions-moved", "questions-changed")
"""The codes of the notes on judgments of questions that changed."""


def with_judgments(dataset: Dataset, folder: Path) -> Dataset:
    """The dataset with the judgments of the folder as its qrels, if it has none and there are some."""
    file = folder / JUDGMENTS
    if len(dataset.qrels.queries) or not file.is_file():
        return dataset
    judgments = Judgments.read(file).for_questions(dataset.queries)
    qrels = judgments.qrels()
    used = sum(query in dataset.queries for query in qrels.queries)
    notes = (*dataset.notes, *(file_note for file_note in judgments.notes if file_note.code in ABOUT_QUESTIONS))
    if not used:
        return replace(dataset, notes=notes)
    used_note = note(JUDGMENTS_USED, file=str(file), judgments=len(judgments), judges=judgments.judges, queries=used)
    return replace(dataset, qrels=qrels, notes=(*notes, used_note))


BUDGET = 40  # Documents that are judged in one sitting, unless another number is given.


@dataclass(frozen=True, eq=False)
class ResultJudging:
    """The judging of a result: the pool, its texts, the judgments file; `left_out`: documents without a text."""

    result: ResultFolder
    pool: Pool
    dataset: Dataset
    file: Path
    measure: str
    left_out: int

    @property
    def next_command(self) -> str:
        """The command that uses the judgments: the bench, unless it has qrels of its own, or no file."""
        bench = _bench_file(self.result)
        if bench is None or self.own_qrels:
            return command_of("judge", self.result.path)
        return command_of("bench", bench)

    @property
    def next_step(self) -> str:
        """What uses the judgments, as a sentence."""
        if self.own_qrels:
            return f"The bench has qrels of its own and does not read {self.file}; this verdict counts both."
        what = "the leaderboard, tests and the report, with these judgments"
        if _bench_file(self.result) is None:
            return f"Next: run the bench again in Python ({what})."
        return f"Next: {self.next_command} ({what})"

    @property
    def own_qrels(self) -> bool:
        """Whether the bench has qrels of its own, so that it does not use the judgments file."""
        notes = self.result.record.get("notes", ())
        return self.result.evaluated is not None and not any(note.get("code") == JUDGMENTS_USED for note in notes)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes on judgments of questions that changed."""
        return tuple(note for note in _judgments(self.result, self.file).notes if note.code in ABOUT_QUESTIONS)

    def qrels(self) -> Qrels:
        """The qrels of the result with the judgments of the file, which replace its own."""
        return _joined(self.result, self.file)

    def comparison(self) -> Comparison | None:
        """The verdict so far: the runs compared by what is judged; None if nothing is, or there is one run."""
        qrels, settings = self.qrels(), self.result.record["settings"]
        if not len(qrels) or len(self._runs) < 2:
            return None
        chosen = {name: settings[name] for name in ("baseline", "test", "correction") if settings.get(name)}
        with shown_otherwise():
            return compare(qrels, self._runs, settings["measures"] or [self.measure], **chosen)

    def forecast(self, comparison: Comparison) -> Forecast | None:
        """How many more judgments would decide between the first two runs; None if that is decided."""
        leading = comparison.leading_pair
        if leading is None or leading.verdict in ("better", "worse"):
            return None
        runs = {name: self._runs[name] for name in (leading.run, leading.baseline)}
        qrels = self.qrels()
        pairs = pool(runs, qrels, strategy="pair", measure=self.measure).pairs
        order = [pair for pair in pairs if pair[0] in self.dataset.queries and pair[1] in self.dataset.corpus]
        return forecast(runs, qrels, order, self.measure, str(self.result.record["settings"].get("test") or "t"))

    @property
    def _runs(self) -> dict[str, Run]:
        return {name: run for name, run in self.result.runs.items() if run.queries}


def judge_result(folder: str | Path, output: Path | None = None, budget: int = BUDGET) -> ResultJudging:
    """What to judge of a result next, most useful first; documents that are judged are left out.

    With two runs, these are the documents that can decide which of them is better; with more, the first documents of
    every run until some are judged, and then those that decide between the best two. If none of these is left, they
    are again the first documents of every run.
    """
    result = load_result(folder)
    bench = _bench_file(result)
    # Beside bench.yaml, or beside the folder if the bench has no file.
    default = _tidy(result.path.parent / JUDGMENTS) if bench is None else bench.parent / JUDGMENTS
    file, ranges = default if output is None else output, result.qrels.ranges
    chunks = {} if ranges is None else {row.pop("chunk_id"): row for row in ranges.chunks.iter_rows(named=True)}
    texts = {
        doc: {"title": title, "text": text, "metadata": chunks.get(doc, {})}
        for doc, (title, text) in result.documents.items()
        if text
    }
    runs = {name: run for name, run in result.runs.items() if run.queries}
    if not runs:
        raise InputError(f"{folder}: every retriever of this bench failed; there is nothing to judge.")
    if not texts:
        raise InputError(
            f"{folder} has no texts to judge: its retrievers returned only ids. Let them return texts ({{id, text}}, "
            "or `text` with the path to it), or add `corpus:` to bench.yaml, and run the bench again."
        )
    name, queries = str(result.record["dataset"]["name"]), Queries(result.queries, result.columns)
    dataset = Dataset(name, Corpus.of(texts), queries, Qrels({}))
    qrels, measure = _joined(result, file), _measure(result.record["settings"]["measures"])
    known = pl.col("doc_id").is_in(list(texts)) & pl.col("query_id").is_in(list(dataset.queries))
    strategies: list[Any] = ["pair", "depth"] if len(runs) == 2 or (len(runs) > 2 and len(qrels)) else ["depth"]
    for strategy in strategies:
        pooled = pool(runs, qrels if len(qrels) else None, strategy=strategy, measure=measure)
        rows = pooled.frame.filter(known)
        if rows.height:
            break
    if strategy == "depth":
        # All first documents of a question together, so that a few judgments can compare the runs on it.
        place = {query: at for at, query in enumerate(dataset.queries)}
        order = pl.col("query_id").replace_strict(place, return_dtype=pl.Int64)
        rows = rows.sort(pl.col("ranks").list.min(), order, "priority")
        rows = rows.with_columns(priority=pl.int_range(1, rows.height + 1, dtype=pl.Int64))
    chosen = Pool(rows.head(budget), replace(pooled.settings, budget=budget))
    return ResultJudging(result, chosen, dataset, file, measure, len(pooled) - rows.height)


def _bench_file(result: ResultFolder) -> Path | None:
    """The bench.yaml of a result; None if there is none, or if it is that of the demo, which is in the package."""
    named = result.record["settings"].get("bench")
    if named is None:
        return None
    path = (result.path / named).resolve()
    return _tidy(path) if path.is_file() and not path.is_relative_to(Path(__file__).resolve().parents[1]) else None


def _tidy(path: Path) -> Path:
    """A path relative to the working directory if it is below it."""
    resolved = path.resolve()
    return resolved.relative_to(Path.cwd()) if resolved.is_relative_to(Path.cwd()) else resolved


def _joined(result: ResultFolder, file: Path) -> Qrels:
    """The judgments of the result and of the file, with the scale of the file, as the bench reads it."""
    judged = _judgments(result, file).qrels()
    queries: dict[str, dict[str, float]] = {}
    for qrels in (result.qrels, judged):
        for query, doc, grade, _ in qrels.frame.drop_nulls("doc_id").iter_rows():
            if query in result.queries:
                queries.setdefault(query, {})[doc] = float(grade)
    joined = Qrels(queries).on_scale_of(judged if len(judged) else result.qrels)
    joined.ranges = result.qrels.ranges
    return joined


def _judgments(result: ResultFolder, file: Path) -> Judgments:
    return Judgments.read(file).for_questions(result.queries) if file.is_file() else Judgments()


def _measure(measures: list[str]) -> str:
    """The first measure that weights ranks, by which documents are chosen; nDCG@10 if there is none."""
    for text in measures:
        with suppress(InputError, MeasureError):
            rank_weights(text, None)
            return text
    return "nDCG@10"


@dataclass(frozen=True)
class Difference:
    """A question whose first documents differ between runs: how far pairs of runs agree, and the first of each run."""

    query: str
    agreement: float
    first: Mapping[str, str]


def differences(runs: Mapping[str, Run], most: int = 3, depth: int = 10) -> list[Difference]:
    """The questions on which the runs agree least in their first `depth` documents, by average overlap."""
    near = {name: run.frame.filter(pl.col("rank") <= depth) for name, run in runs.items() if run.queries}
    lists: dict[str, dict[str, list[str]]] = {
        name: dict(frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
        for name, frame in near.items()
    }
    if len(lists) < 2:
        return []
    gaps = []
    for query in next(iter(lists.values())):
        shares = [_average_overlap(*pair) for pair in combinations([of.get(query, []) for of in lists.values()], 2)]
        first = {name: of[query][0] for name, of in lists.items() if of.get(query)}
        gaps.append(Difference(query, sum(shares) / len(shares), first))
    return [gap for gap in sorted(gaps, key=lambda gap: gap.agreement)[:most] if gap.agreement < 1]


def _average_overlap(a: Sequence[str], b: Sequence[str]) -> float:
    """The mean, over all depths, of the share of documents that both lists have down to there.

    >>> _average_overlap(["x", "y"], ["y", "x"])
    0.5
    """
    longest = max(len(a), len(b))
    shares = [len(set(a[:depth]) & set(b[:depth])) / depth for depth in range(1, longest + 1)]
    return sum(shares) / longest if longest else 1.0
