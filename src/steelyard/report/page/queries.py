"""The queries of a page: their values, how each run fails on them, and the ranked lists with texts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Bools, Floats, Ints, Ordering
from steelyard.comparison.columns import is_time
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.failures import MISSED, UNANSWERED, RunFailures, low_cutoff, places_of
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.scores import ScoreTable
from steelyard.comparison.slices import slice_labels
from steelyard.comparison.stages import StagesData
from steelyard.lazy import polars as pl
from steelyard.qrels import Qrels
from steelyard.report.page.embed import embedded_json, packed
from steelyard.report.page.subject import Subject
from steelyard.report.tables import long_ends
from steelyard.run import Run
from steelyard.statistics.arrays import student_quantile

DEPTH = 20  # Documents shown per list.
TEXT_LIMIT = 1_500  # Characters shown of a document's text; the others are counted.
QUERY_TEXT_LIMIT = 400  # Characters of a query shown in the table.
LABEL_LIMIT = 300  # Characters shown of an id or a title.
FIRST_READ = 2_000
"""Lists, of all runs together, that are read first; each further batch has four times as many queries."""
MISSING_SHOWN = 40  # Relevant documents listed per query that are in none of the shown lists.

Top: TypeAlias = list[tuple[str, float | None]]  # Documents and scores, best first.


def interesting_order(values: Floats, failures: Sequence[RunFailures]) -> list[int]:
    """The queries in the order in which they are kept: the largest differences, misses and a sample, in turn.

    `values` is the first measure, runs x queries.
    """
    size = values.shape[1]
    filled = np.nan_to_num(values, nan=0.0)
    spread = filled.max(axis=0) - filled.min(axis=0) if len(filled) else np.zeros(size)
    movers = np.argsort(-spread, kind="stable").tolist()
    missed = np.ones(size, dtype=bool) if failures else filled.max(axis=0, initial=0.0) <= 0
    for run_failures in failures:
        missed &= (run_failures.failures & (MISSED | UNANSWERED)) > 0
    sample = np.random.default_rng(0).permutation(size).tolist()
    turns = zip_longest(movers, np.flatnonzero(missed).tolist(), sample)
    return list(dict.fromkeys(query for turn in turns for query in turn if query is not None))


@dataclass
class DocumentTable:
    """The documents of the lists, each once: id, title, text and the number of characters left out."""

    documents: Any
    whole: bool
    rows: list[list[Any]] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def place(self, doc_id: str) -> int:
        """The row number of a document, which is added if it is new."""
        number = self.places.get(doc_id)
        if number is None:
            number = self.places[doc_id] = len(self.rows)
            row: list[Any] = [_shortened(doc_id, LABEL_LIMIT, self.whole)]
            document = self.documents.get(doc_id)
            if document is not None:
                title, text = document
                row += [_shortened(title, LABEL_LIMIT, self.whole), text if self.whole else text[:TEXT_LIMIT]]
                row += [len(text) - TEXT_LIMIT] if len(text) > TEXT_LIMIT and not self.whole else []
            self.rows.append(row)
        return number


def _shortened(text: str, limit: int, whole: bool) -> str:
    return text if whole or len(text) <= limit else f"{text[:limit]}…"


@dataclass(frozen=True)
class Lists:
    """The lists of some queries as JSON, the numbers of those queries, and the number of texts that are cut."""

    queries: tuple[int, ...]
    json: str
    cut_texts: int


def lists_of(
    subject: Subject,
    failures: Sequence[RunFailures],
    order: Sequence[int],
    numbers: Mapping[int, int],
    limit: int | None,
) -> Lists:
    """The lists of the queries in `order`, up to a limit in bytes (None: all).

    `order` has positions in the first score table of the comparison; `numbers` gives each query's number in the page.
    """
    comparison, source = subject.comparison, subject.comparison.source
    if source is None:
        return Lists((), "{}", 0)
    documents = DocumentTable(subject.documents, whole=limit is None)
    judgments = _Judgments(source.qrels, failures)
    staged = {number: stages for number, stages in _staged(subject).items() if stages.lists}
    # Each entry is kept as JSON, which is a tenth of the size of its objects.
    entries: dict[str, str] = {}
    used = shown = 0
    for query, name, listed, returned in _listed(comparison, staged, order):
        tops = {doc for rows in listed for doc, _ in rows or ()}
        tops.update(doc for lists in returned.values() for docs in lists for doc in docs[:DEPTH])
        lists = [None if rows is None else [_list_row(documents, row) for row in rows] for rows in listed]
        entry = {"lists": lists, **judgments.entry(name, documents, tops)}
        failed = {str(at): subject.errors.get(run, {}).get(name) for at, run in enumerate(comparison.runs)}
        if errors := {at: error for at, error in failed.items() if error is not None}:
            entry["errors"] = errors
        if returned:
            judged = {row[0] for row in entry["judged"]}
            entry["stages"] = {
                run: [_stage_list(documents, docs, tops, judged) for docs in lists] for run, lists in returned.items()
            }
        written = embedded_json(entry)
        if limit is not None:
            used += len(written.encode()) + len(embedded_json(documents.rows[shown:]).encode()) + 15
            if used > limit and entries:
                documents.rows = documents.rows[:shown]
                break
            shown = len(documents.rows)
        entries[str(numbers[query])] = written
    queries = ",".join(f'"{number}":{written}' for number, written in entries.items())
    embedded = f'{{"documents":{embedded_json(documents.rows)},"queries":{{{queries}}}}}'
    return Lists(tuple(map(int, entries)), embedded, sum(len(row) > 3 for row in documents.rows))


def _staged(subject: Subject) -> dict[int, StagesData]:
    """The stages of runs, by the number of the run."""
    runs = subject.comparison.runs
    return {runs.index(stages.run): stages for stages in subject.stages if stages.run in runs}


def _stage_list(
    documents: DocumentTable, docs: Sequence[str], shown: Container[str], judged: Container[int]
) -> list[Any]:
    """The first documents of a stage, and the ranks of those below that another list shows or that are judged."""
    first = [documents.place(doc) for doc in docs[:DEPTH]]
    ranks = dict(zip(reversed(docs), range(len(docs), 0, -1), strict=True))
    below = [doc for doc in ranks if ranks[doc] > DEPTH and (doc in shown or documents.places.get(doc) in judged)]
    return [first, [[documents.place(doc), ranks[doc]] for doc in below]]


def _listed(
    comparison: ComparisonData, staged: Mapping[int, StagesData], order: Sequence[int]
) -> Iterator[tuple[int, str, list[Top | None], dict[int, list[list[str]]]]]:
    """The queries with the first documents of every run, and of its stages before the last one, read in batches."""
    assert comparison.source is not None
    assert comparison.options is not None
    ordering = comparison.options.ordering
    start, size = 0, max(1, FIRST_READ // len(comparison.runs))
    while start < len(order):
        some = order[start : start + size]
        names = [comparison.score_tables[0].queries[query] for query in some]
        tops = [_tops(comparison.source.run(run), ordering, names, DEPTH) for run in comparison.runs]
        stages = {
            number: [_tops(run, ordering, names) for run in pipe.lists.values()] for number, pipe in staged.items()
        }
        for query, name in zip(some, names, strict=True):
            returned = {
                number: [[doc for doc, _ in lists.get(name, ())] for lists in steps] for number, steps in stages.items()
            }
            yield query, name, [top.get(name) for top in tops], returned
        start, size = start + size, size * 4


def _list_row(documents: DocumentTable, row: tuple[str, float | None]) -> list[Any]:
    doc, score = row
    return [documents.place(doc)] if score is None else [documents.place(doc), float(f"{score:.5g}")]


def _tops(run: Run, ordering: Ordering, queries: Sequence[str], depth: int | None = None) -> dict[str, Top]:
    """The first documents of some queries, best first; without a depth all of them."""
    rows = ranked_rows(run, ordering).filter(pl.col("query_id").is_in(list(queries)))
    rows = rows if depth is None else rows.filter(pl.col("rank") <= depth)
    tops: dict[str, Top] = {}
    for query, doc, score in rows.select("query_id", "doc_id", "score").iter_rows():
        tops.setdefault(query, []).append((doc, score))
    return tops


class _Judgments:
    """The judgments of a query with the ranks of each judged document in every run.

    A rank is 0 where the document was not retrieved, and None where it is a chunk of another chunking than the run's.
    """

    def __init__(self, qrels: Qrels, failures: Sequence[RunFailures]) -> None:
        self.starts, self.doc_ids = qrels.judged.starts.tolist(), qrels.judged.doc_ids
        self.grades = qrels.grades.tolist()
        self.place = {query: number for number, query in enumerate(qrels.judged.query_ids)}
        self.targets: dict[int, list[str]] = {}
        if qrels.has_targets:
            for doc, target in zip(qrels.targets.doc.tolist(), qrels.targets.target.tolist(), strict=True):
                self.targets.setdefault(doc, []).append(qrels.targets.name[target])
        self.ranks = [_ranks(qrels, run_failures.alignment) for run_failures in failures]
        self.level = (failures[0].level if failures else None) or 0.0

    def entry(self, query: str, documents: DocumentTable, shown: Container[str]) -> dict[str, Any]:
        """The judged documents that are in a shown list, and the relevant ones that are in none."""
        rows: list[list[Any]] = []
        relevant = absent = 0
        place = self.place[query]
        for number in range(self.starts[place], self.starts[place + 1]):
            doc, grade = self.doc_ids[number], self.grades[number]
            is_relevant = grade > 0 and grade >= self.level
            relevant += is_relevant
            if doc not in shown:
                absent += is_relevant
                if not is_relevant or absent > MISSING_SHOWN:
                    continue
            grade, ranks = int(grade) if grade == int(grade) else grade, [rank[number] for rank in self.ranks]
            rows.append([documents.place(doc), grade, self.targets.get(number, []), ranks])
        hidden = max(0, int(absent) - MISSING_SHOWN)
        return {"judged": rows, "relevant": int(relevant), "hidden": hidden, "level": self.level}


def _ranks(qrels: Qrels, a: Alignment) -> list[int | None]:
    """The rank of every judged document in a run, which may be joined with a part of the qrels."""
    ranks = np.zeros(len(a.judged.query), dtype=np.int64)
    ranks[a.doc] = a.rank
    if len(ranks) == len(qrels.judged.doc_ids):
        return list(ranks.tolist())
    names = [a.queries[query] for query in a.judged.query.tolist()]
    by_pair = dict(zip(zip(names, a.doc_ids, strict=True), ranks.tolist(), strict=True))
    queries = [qrels.judged.query_ids[query] for query in qrels.doc_query.tolist()]
    return [by_pair.get(pair) for pair in zip(queries, qrels.judged.doc_ids, strict=True)]


@dataclass(frozen=True)
class Kept:
    """The queries that fit on a page, as positions in the first score table of the comparison, in its order."""

    places: tuple[int, ...]
    everything: bool


def summary_of(subject: Subject, failures: Sequence[RunFailures], kept: Kept) -> dict[str, Any]:
    """The data of the kept queries: values, failures and slices; and the components of the composite."""
    comparison, places = subject.comparison, np.array(kept.places, dtype=np.int64)
    names = [comparison.score_tables[0].queries[place] for place in kept.places]
    measures = comparison.shown_measures
    return {
        "title": subject.title,
        "runs": list(comparison.runs),
        "order": [comparison.runs.index(run) for run in comparison.run_order],
        "shared": list(map(len, long_ends(comparison.runs))),
        "whole": subject.whole,
        "baseline": -1 if comparison.plan.baseline is None else comparison.runs.index(comparison.plan.baseline),
        "leader": comparison.runs.index(comparison.leaderboard_rows[0].run),
        "second": comparison.runs.index(comparison.leaderboard_rows[1].run) if len(comparison.runs) > 1 else -1,
        "measures": [
            {"label": measure.label, "better": measure.column.better, "unit": "s" if is_time(measure.column) else ""}
            for measure in measures
        ],
        "values": [_coded(measure.scores.of(measure.column.key)[:, places]) for measure in measures],
        "queries": names,
        "texts": [_shortened(subject.queries.get(name, ""), QUERY_TEXT_LIMIT, kept.everything) for name in names],
        "cutoff": low_cutoff(comparison),
        **_packed_failures(failures, names),
        "slices": _slices(subject, names),
        "stages": {
            number: [[stage, [list(pipe.reads).index(other) for other in read]] for stage, read in pipe.reads.items()]
            for number, pipe in _staged(subject).items()
        },
        "boards": [_weighable(board, comparison.weights or {}) for board in comparison.components if board is not None],
    }


def _coded(values: Floats) -> list[Any]:
    """Runs x queries in few bytes: codes of 1 or 2 bytes and the values they stand for, or the values."""
    distinct, codes = np.unique(values.astype("f4"), return_inverse=True)
    if len(distinct) > 1 << 16:
        return [4, packed(values, "f4")]
    width = 1 if len(distinct) <= 1 << 8 else 2
    return [width, packed(codes, f"u{width}"), packed(distinct, "f4")]


def _packed_failures(failures: Sequence[RunFailures], names: Sequence[str]) -> dict[str, Any]:
    """Each run's failures and first relevant rank by query; None where only scores are known."""
    if not failures:
        return {"failures": None, "first": None, "found": None, "relevant": None}
    chosen = places_of(failures, names)

    def stacked(what: str) -> Ints:
        return np.stack([getattr(run_failures, what)[chosen] for run_failures in failures])

    relevant = stacked("relevant")
    if (relevant == relevant[:1]).all():
        relevant = relevant[:1]
    return {
        "failures": packed(stacked("failures"), "u1"),
        "first": packed(stacked("first"), "u2"),
        "found": _narrow(stacked("found")),
        "relevant": _narrow(relevant),
    }


def _narrow(counts: Ints) -> list[Any]:
    """Counts packed in as few bytes as they need: bytes per count, and the packed counts."""
    width = 1 if counts.max(initial=0) < 256 else 2
    return [width, packed(counts, f"u{width}")]


def _slices(subject: Subject, names: Sequence[str]) -> list[dict[str, Any]]:
    """The columns that queries can be filtered by: their values, and the number of each query's value."""
    slices = []
    for column, values in subject.slice_columns.items():
        labels, codes = np.unique(np.array(slice_labels(names, values), dtype=object), return_inverse=True)
        slices.append({"column": column, "values": labels.tolist(), "codes": packed(codes, "u1")})
    return slices


def _weighable(components: ScoreTable, weights: Mapping[str, float]) -> dict[str, Any]:
    """The data to weight the components differently: their means, and their covariance over queries.

    Only queries with a value of every component count, as in the composite itself. Lower-is-better ones are inverted.
    """
    columns = components.columns
    oriented = np.stack(
        [1 - components.of(column.key) if column.better == "less" else components.of(column.key) for column in columns],
        axis=1,
    )
    whole: Bools = np.asarray(~np.isnan(oriented).any(axis=1))
    means = [
        (parts[:, there].mean(axis=1) if there.any() else np.zeros(len(parts))).tolist()
        for parts, there in zip(oriented, whole, strict=True)
    ]
    in_all_runs = whole.all(axis=0)
    size = int(in_all_runs.sum())
    flat = oriented[:, :, in_all_runs].reshape(-1, size)
    spread = np.cov(flat).reshape(len(flat), len(flat)) if size > 1 else np.zeros((len(flat), len(flat)))
    return {
        "keys": [column.key for column in columns],
        "weights": [weights[column.key] for column in columns],
        "means": means,
        "covariance": packed(spread, "f8"),
        "queries": size,
        "reach": student_quantile(0.975, size - 1) if size > 1 else 0.0,
    }
