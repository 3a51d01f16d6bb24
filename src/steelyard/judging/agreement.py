"""agreement(): how far judges agree, on grades and on which run is better."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any, overload

import numpy as np

from steelyard.checks import whole_number
from steelyard.comparison.scores import column_named
from steelyard.errors import InputError, did_you_mean
from steelyard.evaluation import evaluate
from steelyard.io.files import streams_read_once
from steelyard.io.judgments import is_judgments_file
from steelyard.io.reading import runs_by_name
from steelyard.judging.candidates import judged_grades
from steelyard.judging.query_sets import Measures, QuerySets, mean_measures, query_sets
from steelyard.judging.report import interval_text, scatter, typed, with_intervals
from steelyard.judgments import Judgments
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure
from steelyard.notes import shown_otherwise
from steelyard.qrels import Qrels
from steelyard.report.documents import Document, Documented, frame_table, plain_values
from steelyard.report.tables import Table
from steelyard.run import Run
from steelyard.statistics import adjust, shown_p
from steelyard.statistics import agreement as statistics
from steelyard.statistics.agreement import FEWEST_RUNS
from steelyard.statistics.arrays import Array
from steelyard.statistics.paired import t_tests
from steelyard.version import __version__
from steelyard.wording import counted


@overload
def agreement(
    judges: Any, runs: Any = None, measures: Measures = ..., *,
    resolve: str = ..., rbo_p: float = ..., draws: int = ..., seed: int = ...,
) -> Agreement: ...  # fmt: skip
@overload
def agreement(
    *, scores: Any, queries: Any = None, by: str = ..., reference: str | None = None,
    measures: Measures = ..., draws: int = ..., seed: int = ...,
) -> QuerySets: ...  # fmt: skip
def agreement(
    judges: Any = None,
    runs: Any = None,
    measures: Measures = ("nDCG@10",),
    *,
    scores: Any = None,
    queries: Any = None,
    by: str = "kind",
    reference: str | None = None,
    resolve: str = "majority",
    rbo_p: float = statistics.RBO_P,
    draws: int = 1000,
    seed: int = 0,
) -> Agreement | QuerySets:
    """How far judges agree on the grades of documents and, with `runs`, on the ranking of the runs; with `scores`,
    how far sets of queries agree on the ranking of the runs.

    `judges` maps a name to judgments: Judgments, Qrels, a path, or anything that Qrels takes. The first is the
    reference of the verdict. Judgments of several judges under one name are resolved by the rule `resolve`.
    Judgments, or the path of a judgments file, in place of the mapping: each judge in it is one.

    Grades are compared over the documents that both judges graded. The runs are scored with each judge's own
    grades, over the queries that both judged; a document that a judge did not grade is not relevant. The
    intervals are bootstrap intervals over queries, the same for the same `seed`.

    `scores` is a table of values per run and query (a file or a frame), and `by` a column of `queries` (a file, a frame
    or a mapping; without them, of the table itself): its values name the sets, which are compared with `reference`.

    >>> human = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 0, "b": 2}}
    >>> model = {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 0, "b": 2}}
    >>> agreement({"human": human, "model": model}).pairs.select("a", "b", "n").rows()
    [('human', 'model', 5)]
    """
    if scores is not None:
        if judges is not None or runs is not None:
            raise InputError("scores compares sets of queries, judges compares judges; give one of the two.")
        return query_sets(scores, queries, by, reference, measures, draws=draws, seed=seed)
    whole_number("seed", seed)
    given, notes = _labels(judges, resolve)
    if len(given) < 2:
        problem = f"Agreement needs at least two judges, found {', '.join(given) or 'none'}."
        raise InputError(f"{problem} Name one file or object per judge, as in human=qrels.txt gpt=judgments.jsonl.")
    wanted = mean_measures(measures)
    read = runs_by_name(runs)
    scored = {name: _scored(qrels, read, wanted) for name, qrels in given.items()}
    return Agreement(tuple(given), *_grades(given), tuple(read), wanted, scored, rbo_p, draws, seed, tuple(notes))


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Documented):
    """The agreement of judges: `pairs`, `systems`, `confusion`, `verdict`, and what it was computed from.

    The first of the judges is the reference of the verdict. `grades` is judges x documents, NaN where a judge gave no
    grade, and `query_ids` has the query of each document. `scored` has, for every judge, the queries, and an array
    measures x runs x queries.
    """

    judges: tuple[str, ...]
    query_ids: tuple[str, ...]
    grades: Array
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    scored: Mapping[str, tuple[Sequence[str], Array]]
    rbo_p: float
    draws: int
    seed: int
    notes: tuple[str, ...] = ()

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """Agreement of grades: one row per pair of judges, b compared with a.

        a, b, n (documents both graded), kappa, kappa_linear, kappa_quadratic (Cohen), alpha (Krippendorff,
        ordinal), ac1 (Gwet), bias (mean grade of b - of a), then alpha_nominal, alpha_interval, only_a and only_b
        (documents graded by one of the two), kappa_low and kappa_high (a 95% interval over queries).
        """
        rows = []
        for a, b, one, other in self._graded():
            matrix, gaps = statistics.confusion_matrix(one, other), np.isnan([one, other])
            low, high = statistics.kappa_interval(one, other, self.query_ids)
            row = {
                "a": a,
                "b": b,
                "n": matrix.n,
                "kappa": statistics.kappa_of(matrix),
                "kappa_linear": statistics.kappa_of(matrix, "linear"),
                "kappa_quadratic": statistics.kappa_of(matrix, "quadratic"),
                "alpha": statistics.krippendorff_alpha([one, other], "ordinal"),
                "ac1": statistics.ac1_of(matrix),
                "bias": statistics.grade_bias(one, other),
                "alpha_nominal": statistics.krippendorff_alpha([one, other], "nominal"),
                "alpha_interval": statistics.krippendorff_alpha([one, other], "interval"),
                "only_a": int((~gaps[0] & gaps[1]).sum()),
                "only_b": int((gaps[0] & ~gaps[1]).sum()),
                "kappa_low": low,
                "kappa_high": high,
            }
            rows.append(row)
        return pl.DataFrame(rows)

    def _graded(self) -> Iterator[tuple[str, str, Array, Array]]:
        """Every pair of judges, with the grades by both."""
        for (a, one), (b, other) in combinations(zip(self.judges, self.grades, strict=True), 2):
            yield a, b, one, other

    @cached_property
    def alpha(self) -> dict[str, float]:
        """Krippendorff's alpha of all judges together: nominal, ordinal and interval."""
        return {level: statistics.krippendorff_alpha(self.grades, level) for level in statistics.LEVELS}

    def confusion(self, a: str, b: str) -> pl.DataFrame:
        """How often a gave one grade and b another: one row per grade of a, one column per grade of b."""
        for name in (a, b):
            if name not in self.judges:
                choices = ", ".join(self.judges)
                raise InputError(f"there is no judge {name!r}; there are {choices}.{did_you_mean(name, self.judges)}")
        matrix = statistics.confusion_matrix(*(self.grades[self.judges.index(name)] for name in (a, b)))
        names = [f"{grade:g}" for grade in matrix.grades]
        columns = dict(zip(names, matrix.counts.T.tolist(), strict=True))
        return pl.DataFrame({a: names, **{f"{b}={name}": column for name, column in columns.items()}})

    @cached_property
    def systems(self) -> pl.DataFrame:
        """Agreement of the rankings of the runs: one row per pair of judges and measure, b compared with a.

        tau (Kendall's tau-b), tau_ap (a is the reference), rbo, drop (the largest drop of a run, in places;
        `dropped` names it) and bias (mean score of b - of a), with their bootstrap intervals over queries;
        significant_a, significant_b and significant_both count the pairs of runs with a significant difference
        (paired t test, p < 0.05, not corrected) by a, by b and by both; reversed counts those of both where a
        and b prefer different runs. Without runs, or with one, there are no rows.
        """
        rows: list[list[Any]] = []
        for a, b, measure, one, other in self._rankings():
            row = [a, b, measure, len(self.runs), one.shape[1]]
            if one.size:
                less = column_named(measure).better == "less"
                stats = statistics.rank_agreement(one, other, self.rbo_p, self.draws, self.seed, less_is_better=less)
                tested = statistics.significant_pairs(one, other)
                row += (part for figure in (stats.tau, stats.tau_ap, stats.rbo, stats.drop) for part in astuple(figure))
                row += [self.runs[stats.dropped] if stats.drop.value > 0 else None, *astuple(stats.bias)]
                row += [tested.pairs, tested.both, tested.a, tested.b, tested.reversed]
            rows.append(row + [None] * (len(_SYSTEMS) - len(row)))
        return pl.DataFrame(rows, schema=_SYSTEMS, orient="row")

    def _rankings(self) -> Iterator[tuple[str, str, str, Array, Array]]:
        """Every pair of judges and measure, with the `scores` by both; none with fewer than two runs."""
        for (a, b), measure in product(combinations(self.judges, 2), self.measures if len(self.runs) > 1 else ()):
            one, other, _ = self.scores(a, b, measure)
            yield a, b, measure, one, other

    def scores(self, a: str, b: str, measure: str | Measure) -> tuple[Array, Array, list[str]]:
        """The scores of the runs by both judges, runs x queries, over the queries that both judged."""
        place = self.measures.index(str(measure))
        both = [self.scored[name] for name in (a, b)]
        positions = [{q: i for i, q in enumerate(queries)} for queries, _ in both]
        shared = [query for query in positions[0] if query in positions[1]]
        places = [[held[q] for q in shared] for held in positions]
        one, other = (scores[place][:, columns] for (_, scores), columns in zip(both, places, strict=True))
        whole = ~(np.isnan(one).any(axis=0) | np.isnan(other).any(axis=0))
        return one[:, whole], other[:, whole], [q for q, kept in zip(shared, whole, strict=True) if kept]

    @cached_property
    def by_grade(self) -> pl.DataFrame:
        """Bias by grade: for each pair of judges and grade of a, the mean grade that b gave."""
        rows = []
        for a, b, *both in self._graded():
            one, other = statistics.paired_grades(*both)
            for grade in np.unique(one).tolist():
                given = other[one == grade]
                mean = float(given.mean())
                rows.append([a, b, grade, len(given), mean, mean - grade])
        return pl.DataFrame(rows, schema=_BY_GRADE, orient="row")

    @cached_property
    def by_query(self) -> pl.DataFrame:
        """Bias by query: for each pair of judges and query, the mean grade of b minus that of a."""
        frames = []
        for a, b, one, other in self._graded():
            columns = {"query_id": list(self.query_ids), "bias": other - one}
            frame = pl.DataFrame(columns, schema={"query_id": pl.String, "bias": pl.Float64})
            by_query = frame.filter(pl.col("bias").is_not_nan()).group_by("query_id", maintain_order=True)
            means = by_query.agg(n=pl.len().cast(pl.Int64), bias=pl.col("bias").mean())
            frames.append(means.select(pl.lit(a).alias("a"), pl.lit(b).alias("b"), "query_id", "n", "bias"))
        return pl.concat(frames)

    @cached_property
    def favours(self) -> pl.DataFrame:
        """Whether b favours some runs: each run's bias against the mean bias of all runs.

        bias is the run's mean score by b minus that by a, favour the bias minus the mean bias of all runs.
        p is that of a paired t test over queries of favour being 0, p_adjusted by Holm over the runs of
        one pair of judges and measure.
        """
        rows: list[list[Any]] = []
        for a, b, measure, one, other in self._rankings():
            if one.size:
                bias = other - one
                favour = bias - bias.mean(axis=0)
                p = t_tests(favour)[1]
                means = [matrix.mean(axis=1).tolist() for matrix in (one, other, bias, favour)]
                per_run = zip(self.runs, *means, p.tolist(), adjust(p).tolist(), strict=True)
                rows += ([a, b, measure, *row] for row in per_run)
        return pl.DataFrame(rows, schema=_FAVOURS, orient="row")

    @property
    def verdict(self) -> str:
        """What to make of it: one sentence for each judge, compared with the first one."""
        a, parts = self.judges[0], []
        for b in self.judges[1:]:
            row, *_ = self.systems.filter(pl.col("a") == a, pl.col("b") == b).to_dicts() or [{"tau": None}]
            if row["tau"] is not None and not math.isnan(row["tau"]):
                parts.append(ranking_verdict(a, b, row))
            parts.append(grades_verdict(a, b, self.pairs.filter(pl.col("a") == a, pl.col("b") == b).row(0, named=True)))
        return " ".join(parts)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Whether each judge favours some runs, compared with the first judge; then the notes on the input."""
        sentences = []
        for b in self.judges[1:] if self.favours.height else ():
            rows = self.favours.filter(pl.col("a") == self.judges[0], pl.col("b") == b)
            sentences += [favour_remark(b, rows.filter(pl.col("measure") == m), m) for m in self.measures]
        return (*sentences, *self.notes)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `agreement`, with the confusion matrices, alpha of all judges and notes."""
        first = self.judges[0]
        data = {
            "steelyard": __version__,
            "verdict": self.verdict,
            "pairs": self.pairs.to_dicts(),
            "systems": self.systems.to_dicts(),
            "alpha": self.alpha,
            "confusion": [{"a": first, "b": b, "table": self.confusion(first, b).to_dicts()} for b in self.judges[1:]],
            "by_grade": self.by_grade.to_dicts(),
            "favours": self.favours.to_dicts(),
            "rbo_p": self.rbo_p,
            "draws": self.draws,
            "seed": self.seed,
            "notes": list(self.remarks),
        }
        return {name: plain_values(value) for name, value in data.items()}

    def data_table(self) -> Table:
        """The agreement of grades, as in `pairs`."""
        return frame_table(self.pairs)

    def document(self) -> Document:
        """The tables of grades and rankings, and drawings of the scores by two judges."""
        kappas = [f"kappa{part}" for part in ("", "_low", "_high", "_linear", "_quadratic")]
        pairs = self.pairs.select("a", "b", "n", *kappas, "alpha", "ac1", "bias").rows()
        titles = ["a", "b", "documents", "kappa", "low", "high", "linear", "quadratic", "alpha", "AC1", "bias"]
        note = "alpha is Krippendorff's, ordinal; bias is the mean grade of b minus that of a."
        tables = [
            Table(titles, pairs, title="Agreement of grades", keys=2, note=note),
            *(_systems_tables(self) if self.systems.height else []),
            *(_confusion_table(self, self.judges[0], b) for b in self.judges[1:]),
            *_favours_tables(self),
        ]
        title = f"Agreement of {' and '.join(self.judges)}"
        return Document(title, self.verdict, tables, self.remarks, _drawings(self))


def _systems_tables(agreement: Agreement) -> list[Table]:
    """The agreement of the rankings of runs, and the pairs of runs with a significant difference."""
    rows = []
    for row in agreement.systems.iter_rows(named=True):
        figures = [interval_text(row, name) for name in ("tau", "tau_ap", "rbo")]
        drop = f"{row['drop']:g} ({row['dropped']})" if row["dropped"] else "0"
        rows.append([row["a"], row["b"], row["measure"], *figures, drop, interval_text(row, "bias", "+.4f")])
    count, queries = len(agreement.runs), max(agreement.systems["queries"].to_list())
    note = (
        f"{count:,} runs; 95% bootstrap intervals over at most {queries:,} queries; tau is tau-b; a is the "
        f"reference of tau_AP; RBO with p = {agreement.rbo_p:g}; bias is the mean score by b minus that by a."
    )
    titles = ["a", "b", "measure", "tau", "tau_AP", "RBO", "largest drop", "bias"]
    ranked = Table(titles, rows, title="Agreement of the rankings of runs", keys=3, note=note)
    names = ["a", "b", "measure", "run_pairs", "significant_a", "significant_b", "significant_both", "reversed"]
    titles = ["a", "b", "measure", "pairs", "by a", "by b", "by both", "reversed"]
    note = "Paired t test over queries, p < 0.05, not corrected; reversed: a and b prefer different runs."
    tested = agreement.systems.select(names).rows()
    return [ranked, Table(titles, tested, title="Pairs of runs with a significant difference", keys=3, note=note)]


def _confusion_table(agreement: Agreement, a: str, b: str) -> Table:
    frame = agreement.confusion(a, b)
    grades = [name.rpartition("=")[2] for name in frame.columns[1:]]
    rows = []
    for grade, *counts in frame.rows():
        given = sum(float(other) * count for other, count in zip(grades, counts, strict=True))
        rows.append([grade, *counts, f"{given / sum(counts) - float(grade):+.4f}" if any(counts) else ""])
    title, note = f"Grades by {a} (rows) and {b} (columns)", f"bias: the mean grade by {b} minus the grade by {a}."
    return Table(["grade", *grades, "bias"], rows, title=title, note=note, shade="row")


def _favours_tables(agreement: Agreement) -> list[Table]:
    """The runs whose bias differs significantly from the mean bias, by the judges compared with the first."""
    chosen = agreement.favours.filter((pl.col("a") == agreement.judges[0]) & (pl.col("p_adjusted") < 0.05))
    if not chosen.height:
        return []
    columns = ["b", "measure", "run", "score_a", "score_b", "bias", "favour", "p_adjusted"]
    selected = chosen.select(columns).sort("b", "measure", "favour", descending=[False, False, True]).rows()
    rows = [[*row[:-1], shown_p(row[-1])] for row in selected]
    note = "favour: the bias of the run minus the mean bias of all runs. Holm's correction over the runs."
    title = f"Runs with a bias different from the others, compared with {agreement.judges[0]}"
    titles = ["judge", *columns[1:3], "score by a", "score by b", "bias", "favour", "p"]
    return [Table(titles, rows, title=title, keys=3, note=note)]


def _drawings(agreement: Agreement) -> list[str]:
    """For every judge compared with the first, and every measure: the runs' scores by both, as SVG.

    A run above the diagonal is scored higher by the judge than the reference; runs in another order rank differently.
    """
    reference = agreement.judges[0]
    drawings = []
    for judge in agreement.judges[1:] if len(agreement.runs) > 1 else ():
        for measure in agreement.measures:
            *scores, queries = agreement.scores(reference, judge, measure)
            if queries:
                across, up = f"{measure} by {reference}", f"{measure} by {judge}"
                drawings.append(scatter(agreement.runs, scores, across, up))
    return drawings


SAME_RANKING = 0.8
OTHER_RANKING = 0.6  # tau from which the verdict calls two rankings alike, and below which it calls them different.
FEWEST_DOCUMENTS = 20
"""With fewer documents graded by both, the verdict says nothing of kappa but that they are too few."""


def ranking_verdict(a: str, b: str, row: Mapping[str, Any]) -> str:
    """One sentence on the ranking of the runs and on the absolute scores.

    >>> row = {"tau": 0.9, "tau_low": 0.84, "tau_high": 0.94, "bias": 0.09, "bias_low": 0.07, "bias_high": 0.11}
    >>> several = {**row, "runs": 12, "reversed": 0, "significant_a": 40}
    >>> print(*ranking_verdict("human", "gpt", several).split(": "), sep="\\n")
    gpt ranks the runs like human (tau 0.90 [0.84, 0.94]) but its absolute scores are 0.09 too high
    do not compare them with human ones.
    >>> print(ranking_verdict("human", "gpt", {**several, "runs": 3}).split("; ")[0])
    Whether gpt ranks runs like human cannot be judged from 3 runs
    """
    if row["runs"] < FEWEST_RUNS or not row["significant_a"]:
        lacking = "" if row["significant_a"] else " that do not differ significantly"
        return (
            f"Whether {b} ranks runs like {a} cannot be judged from {row['runs']:,} runs{lacking}; about "
            f"{FEWEST_RUNS} are needed, some of them significantly different."
        )
    tau = row["tau"]
    how = "like" if tau >= SAME_RANKING else "only roughly like" if tau >= OTHER_RANKING else "differently from"
    first = f"{b} ranks the runs {how} {a} (tau {tau:.2f} [{row['tau_low']:.2f}, {row['tau_high']:.2f}])"
    if tau >= SAME_RANKING and row["tau_low"] < OTHER_RANKING:
        first += ", which so few runs and queries do not show reliably,"
    biased = not row["bias_low"] <= 0.0 <= row["bias_high"]
    if biased and abs(row["bias"]) >= 0.005:
        link = "but" if tau >= SAME_RANKING else "and"
        size = f"{abs(row['bias']):.2f} too {'high' if row['bias'] > 0 else 'low'}"
        second = f"{link} its absolute scores are {size}: do not compare them with {a} ones"
    else:
        second = f"and its absolute scores are not significantly different from {a} ones"
    turned = row["reversed"]
    reversed_ = f"; it reverses {turned:,} of the {row['significant_a']:,} significant differences" if turned else ""
    return f"{first} {second}{reversed_}."


def grades_verdict(a: str, b: str, row: Mapping[str, Any]) -> str:
    """One sentence on the grades alone.

    >>> row = {"kappa": 0.5, "kappa_low": 0.41, "kappa_high": 0.58, "bias": -0.25}
    >>> grades_verdict("human", "gpt", {**row, "n": 200})
    'gpt and human agree with kappa 0.50 [0.41, 0.58] on 200 documents, and gpt grades 0.25 lower on average.'
    >>> grades_verdict("human", "gpt", {**row, "n": 2})
    'gpt and human both graded 2 documents, too few to see how far they agree.'
    """
    if row["n"] == 0:
        return f"{b} and {a} have no graded document in common."
    if row["n"] < FEWEST_DOCUMENTS or math.isnan(row["kappa_low"]):
        return f"{b} and {a} both graded {counted(row['n'], 'document')}, too few to see how far they agree."
    if row["kappa"] is None or math.isnan(row["kappa"]):
        return f"{b} and {a} gave one and the same grade to all {row['n']:,} documents: kappa is undefined."
    lean = f"{abs(row['bias']):.2f} {'higher' if row['bias'] > 0 else 'lower'}"
    level = f"{b} grades {lean}" if abs(row["bias"]) >= 0.005 else "neither grades higher"
    kappa = f"kappa {row['kappa']:.2f} [{row['kappa_low']:.2f}, {row['kappa_high']:.2f}]"
    return f"{b} and {a} agree with {kappa} on {row['n']:,} documents, and {level} on average."


def favour_remark(judge: str, rows: pl.DataFrame, measure: str) -> str:
    """One sentence on whether the bias of a judge differs between runs."""
    significant = rows.filter(pl.col("p_adjusted") < 0.05).sort("favour")
    if not significant.height:
        return f"{judge}: no run has a bias in {measure} significantly different from the mean of all runs."
    low, high = significant.row(0, named=True), significant.row(-1, named=True)
    ends = dict.fromkeys(f"{row['run']} ({row['favour']:+.2f})" for row in (high, low))
    count = f"{significant.height} of {rows.height} runs {'has' if significant.height == 1 else 'have'}"
    return f"{judge}: {count} a bias in {measure} significantly different from the mean of all runs: {', '.join(ends)}."


@streams_read_once()
def _labels(judges: Any, resolve: str) -> tuple[dict[str, Qrels], list[str]]:
    """The qrels of every judge, and notes on how they were read."""
    if isinstance(judges, Judgments) or (isinstance(judges, (str, Path)) and is_judgments_file(judges)):
        labels = Judgments.of(judges)
        return {name: labels.qrels(name) for name in labels.judges}, list(map(str, labels.notes))
    if not isinstance(judges, Mapping):
        file = f", and {judges} is none (JSON lines with query_id, doc_id, grade and judge)"
        raise InputError(
            "agreement compares judges: expected two or more by name, or one judgments file of several"
            f"{file if isinstance(judges, (str, Path)) else ''}."
        )
    qrels: dict[str, Qrels] = {}
    notes: list[str] = []
    for name, source in judges.items():
        if isinstance(source, Judgments) or (isinstance(source, (str, Path)) and is_judgments_file(source)):
            labels = Judgments.of(source)
            qrels[str(name)] = labels.qrels(resolve)
            several = [labels.resolution(resolve)] if len(labels.judges) > 1 else []
            notes += [f"{name}: {note}" for note in (*labels.notes, *several)]
        else:
            qrels[str(name)] = Qrels.of(source)
    return qrels, notes


def _grades(judges: Mapping[str, Qrels]) -> tuple[tuple[str, ...], Array]:
    """The query of every document that anyone graded, and the grades, judges x documents."""
    by_judge = list(map(judged_grades, judges.values()))
    pairs = dict.fromkeys((query, doc) for graded in by_judge for query, docs in graded.items() for doc in docs)
    grades = [[graded.get(query, {}).get(doc, math.nan) for query, doc in pairs] for graded in by_judge]
    return tuple(query for query, _ in pairs), np.array(grades, dtype=np.float64)


def _scored(qrels: Qrels, runs: Mapping[str, Run], measures: tuple[str, ...]) -> tuple[Sequence[str], Array]:
    """The queries of the qrels, and every run's scores: measures x runs x queries."""
    queries: list[str] = []
    rows: list[Array] = []
    for run in runs.values():
        with shown_otherwise():
            frame = evaluate(qrels, run, list(measures)).per_query
        if not queries:
            queries = frame["query_id"].to_list()
        elif queries != frame["query_id"].to_list():
            place = {query: i for i, query in enumerate(frame["query_id"].to_list())}
            frame = frame[[place[query] for query in queries]]
        rows.append(frame.select(measures).to_numpy().T)
    scores = np.stack(rows, axis=1) if rows else np.empty((len(measures), 0, 0))
    return queries, np.asarray(scores, dtype=np.float64)


_SYSTEMS: dict[str, type] = {
    **typed("a b measure", str),
    **typed("runs queries", int),
    **with_intervals("tau tau_ap rbo drop"),
    "dropped": str,
    **with_intervals("bias"),
    **typed("run_pairs significant_both significant_a significant_b reversed", int),
}
_BY_GRADE = {**typed("a b", str), "grade": float, "n": int, **typed("mean bias", float)}
_FAVOURS = {**typed("a b measure run", str), **typed("score_a score_b bias favour p p_adjusted", float)}
