"""Qrels: the judged documents of each query, their grades, and the targets they satisfy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from steelyard.alignment.hits import Floats, Ints, JudgedDocs, Remembers
from steelyard.alignment.ranges import Ranges
from steelyard.errors import InputError
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.notes import Note
from steelyard.wording import counted

Row: TypeAlias = tuple[str, str, float, "str | None"]
"""A judgment: query, document, grade, target (None: the document is its own target)."""


@dataclass(frozen=True, eq=False, repr=False)
class Targets:
    """Which judged document satisfies which target: `doc`, `target` and `grade` have one entry per pair.

    `doc` is a position in JudgedDocs.doc_ids; `query` and `name` have one entry per target.
    """

    doc: Ints
    target: Ints
    grade: Floats
    query: Ints
    name: Sequence[str]


class Qrels(Remembers):
    """Qrels from a mapping, records, a frame (polars, pandas, pyarrow) or, with `Qrels.read`, a file.

    Named tuples (ir_measures' Qrel) are records too, and ranx's Qrels are also accepted.

    >>> Qrels({"q1": {"d1": 2, "d9": -1}})            # grades; negative is a distractor
    Qrels: 1 query, 2 judgments, 1 relevant
    >>> Qrels({"q1": ["d1", "d2"]})                    # a flat list of relevant ids
    Qrels: 1 query, 2 judgments, 2 relevant
    >>> Qrels({"q1": [["a", "b"], ["c"]]})             # targets: (a or b) and c
    Qrels: 1 query, 3 judgments, 3 relevant, 2 targets
    >>> Qrels({"q1": [{"a": 3, "b": 1}, {"c": 2}]})    # targets with grades
    Qrels: 1 query, 3 judgments, 3 relevant, 2 targets
    >>> Qrels({"q1": {"targets": [["a", "b"], ["c"]], "distractors": ["x"]}})    # also relevant, not_relevant
    Qrels: 1 query, 4 judgments, 3 relevant, 2 targets
    >>> Qrels([{"query_id": "q1", "doc_id": "a", "grade": 2, "target": "t"}])
    Qrels: 1 query, 1 judgment, 1 relevant, 1 target

    The columns of a frame, and the fields of records, are found by their usual names (query_id, qid,
    doc_id, docno, grade, relevance, target, ...), or named: `Qrels(frame, doc_id="passage")`. `notes`
    reports what was merged, ignored or converted.
    """

    notes: tuple[Note, ...]
    _judged: JudgedDocs
    _grades: Floats
    _explicit: Targets | None
    ranges: Ranges | None = None
    """Where the judged spans and the chunks are in their documents, if the qrels were made from spans."""
    relevant_from: float | None = None
    """The lowest grade that answers the query, if the scale of the judgments is known."""
    from_judgments: bool = False
    """Whether they are from a judgments file: documents were judged because runs returned them."""
    judged_texts: frozenset[tuple[str, str]] = frozenset()
    """Documents with a hash of the text that was judged, as a judgments file states it."""
    labelled_by: str = ""
    """The models that gave the grades, and how far they were checked against people, as a sentence."""

    def __init__(
        self,
        source: Any,
        *,
        query_id: str | None = None,
        doc_id: str | None = None,
        grade: str | None = None,
        target: str | None = None,
    ) -> None:
        named = {"query_id": query_id, "doc_id": doc_id, "grade": grade, "target": target}
        columns = {role: str(name) for role, name in named.items() if name is not None}
        if isinstance(source, (str, Path)):
            source = Qrels.read(source, **columns)
        given = getattr(source, "qrels", source)  # those of a Dataset
        qrels = given if isinstance(given, Qrels) else looked_up("steelyard.io.objects:qrels_of")(source, columns)
        self.__dict__.update(qrels.__dict__)

    @classmethod
    def read(cls, path: str | Path, format: str | None = None, **columns: str) -> Qrels:
        """Read a file; the format is detected from the content unless `format` names one.

        The folder of a dataset, with queries.jsonl, gives its qrels, including queries without a relevant document.
        """
        if format is None and not columns and (Path(path) / "queries.jsonl").is_file():
            return cls(looked_up("steelyard.io.datasets:read_dataset")(path, None, {}))
        qrels: Qrels = looked_up("steelyard.io.reading:read_qrels")(Path(path), format, columns)
        return qrels

    @classmethod
    def from_columns(
        cls, judged: JudgedDocs, grades: Floats, targets: Targets | None = None, notes: Sequence[Note] = ()
    ) -> Qrels:
        """Qrels from their columns: the judged documents, the grade of each, and the targets, if any are named."""
        qrels = cls.__new__(cls)
        qrels.notes = tuple(notes)
        qrels._judged, qrels._grades, qrels._explicit = judged, grades, targets
        return qrels

    @classmethod
    def from_rows(cls, rows: Sequence[Row], query_ids: Sequence[str] = ()) -> Qrels:
        """Qrels from rows of query, document, grade, target (None: the document is its own target).

        `query_ids` names the queries, including those without a judgment; by default those of the rows.

        >>> Qrels.from_rows([("q1", "d1", 1, "a"), ("q1", "d2", 1, "a")])
        Qrels: 1 query, 2 judgments, 2 relevant, 1 target
        """
        return cls.from_columns(*_columns_of(rows, query_ids or list(dict.fromkeys(row[0] for row in rows))))

    @classmethod
    def of(cls, source: Any, **columns: str) -> Qrels:
        """Qrels unchanged; a path read; anything else passed to Qrels(), with columns named as there."""
        if isinstance(source, Qrels):
            return source
        if isinstance(source, (str, Path)):
            return cls.read(source, **columns)
        if hasattr(source, "judges") and hasattr(source, "qrels"):
            qrels: Qrels = source.qrels()
            return qrels
        return cls(source, **columns)

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write a file, in the format of its suffix (.trec, .tsv, .json, .parquet, ...) or `format`."""
        looked_up("steelyard.io.reading:write_qrels")(self, Path(path), format)

    def without_empty(self) -> Qrels:
        """The same without the queries that have no judged document, which a TREC file cannot hold.

        >>> Qrels({"q1": ["d1"], "q2": []}).without_empty()
        Qrels: 1 query, 1 judgment, 1 relevant
        """
        filled = np.diff(self.judged.starts) > 0
        query_ids = list(compress(self.judged.query_ids, filled.tolist()))
        judged = JudgedDocs(query_ids, self.judged.starts[np.append(True, filled)], self.judged.doc_ids)
        targets = self._explicit
        if targets is not None:
            targets = replace(targets, query=(np.cumsum(filled) - 1)[targets.query])
        return Qrels.from_columns(judged, self.grades, targets, self.notes).on_scale_of(self)

    def on_scale_of(self, other: Qrels) -> Qrels:
        """These qrels, made from others, with the scale, the ranges and the judges of those."""
        self.relevant_from, self.ranges, self.labelled_by = other.relevant_from, other.ranges, other.labelled_by
        self.from_judgments, self.judged_texts = other.from_judgments, other.judged_texts
        return self

    @property
    def judged(self) -> JudgedDocs:
        """The judged documents, query by query."""
        return self._judged

    @property
    def grades(self) -> Floats:
        """The grade of every judged document: the highest, where targets grade it differently."""
        return self._grades

    @cached_property
    def targets(self) -> Targets:
        """Which document satisfies which target. Without targets, each relevant document is its own."""
        if self._explicit is not None:
            return self._explicit
        relevant = np.flatnonzero(self.grades > 0)
        names = list(map(self.judged.doc_ids.__getitem__, relevant.tolist()))
        targets = np.arange(len(relevant), dtype=np.int64)
        return Targets(relevant, targets, self.grades[relevant], self.doc_query[relevant], names)

    @cached_property
    def doc_query(self) -> Ints:
        """The query of every judged document."""
        return np.repeat(np.arange(len(self.judged.query_ids), dtype=np.int64), np.diff(self.judged.starts))

    @property
    def has_targets(self) -> bool:
        """Whether the qrels name targets, rather than each relevant document being its own."""
        return self._explicit is not None

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order of the input."""
        return list(self.judged.query_ids)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A polars frame: query_id, doc_id, grade, target. A query without judgments is a row of nulls."""
        targets, judged = self.targets, self.judged
        bare = np.setdiff1d(np.arange(len(judged.doc_ids)), targets.doc)
        doc = np.concatenate([targets.doc, bare])
        target = np.concatenate([targets.target, np.full(len(bare), -1)])
        grade = np.concatenate([targets.grade, self.grades[bare]])
        empty = np.flatnonzero(np.diff(judged.starts) == 0)
        query = np.concatenate([self.doc_query[doc], empty])
        order = np.lexsort((np.concatenate([doc, np.full(len(empty), -1)]), query))
        blank = [None] * len(empty)
        whole = bool(np.all(grade == np.round(grade))) and bool(np.all(np.abs(grade) < 2**53))
        names = [targets.name[t] if t >= 0 else None for t in target.tolist()]
        return pl.DataFrame(
            {
                "query_id": pl.Series([judged.query_ids[q] for q in query.tolist()], dtype=pl.String),
                "doc_id": pl.Series([judged.doc_ids[d] for d in doc.tolist()] + blank, dtype=pl.String),
                "grade": pl.Series(grade.tolist() + blank, dtype=pl.Float64).cast(pl.Int64 if whole else pl.Float64),
                "target": pl.Series(names + blank, dtype=pl.String),
            }
        ).select(pl.all().gather(order.tolist()))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content, independent of the file it came from."""
        from hashlib import sha256

        scale = [] if self.relevant_from is None else [f"relevant from {self.relevant_from:g}"]
        lines = sorted([*(f"{query}\t{text}" for query, text in self._lines()), *scale])
        return sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()[:16]

    def query_fingerprints(self) -> dict[str, str]:
        """A short hash of each query's judgments, to see which changed between two qrels.

        >>> before, after = Qrels({"q1": ["a"], "q2": ["b"]}), Qrels({"q2": ["b", "c"], "q1": ["a"]})
        >>> one, other = before.query_fingerprints(), after.query_fingerprints()
        >>> [query for query in one if one[query] != other[query]]
        ['q2']
        """
        from hashlib import sha256

        lines: dict[str, list[str]] = {query: [] for query in self.judged.query_ids}
        for query, text in self._lines():
            lines[query].append(text)
        return {query: sha256("\n".join(sorted(texts)).encode()).hexdigest()[:8] for query, texts in lines.items()}

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Every judgment as (query, text): the document and its grade, then those of named targets."""
        targets, judged = self.targets, self.judged
        for q, doc, grade in zip(self.doc_query.tolist(), judged.doc_ids, self.grades.tolist(), strict=True):
            yield judged.query_ids[q], f"{doc}\t{grade!r}"
        if self.has_targets:
            for d, t, grade in zip(targets.doc.tolist(), targets.target.tolist(), targets.grade.tolist(), strict=True):
                yield judged.query_ids[targets.query[t]], f"{judged.doc_ids[d]}\t{grade!r}\t{targets.name[t]}"

    def __len__(self) -> int:
        """How many documents are judged, over all queries."""
        return len(self.judged.doc_ids)

    @property
    def summary(self) -> str:
        """How many queries, judgments, relevant documents and targets there are."""
        queries, judgments = counted(len(self.judged.query_ids), "query", "queries"), counted(len(self), "judgment")
        targets = f", {counted(len(self.targets.name), 'target')}" if self.has_targets else ""
        return f"{queries}, {judgments}, {relevant_in_words(self.grades)}{targets}"

    def __repr__(self) -> str:
        return f"Qrels: {self.summary}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Qrels) and self.fingerprint == other.fingerprint and self.queries == other.queries

    __hash__ = None  # type: ignore[assignment]


def _columns_of(rows: Sequence[Row], query_ids: Sequence[str]) -> tuple[JudgedDocs, Floats, Targets | None]:
    """The columns of rows in any order; equal rows are merged, rows that disagree are an error."""
    places: dict[str, dict[str, int]] = {query: {} for query in query_ids}
    pairs: dict[tuple[str, str, str | None], float] = {}
    disagreements: list[str] = []
    for query, doc, grade, target in rows:
        if not isfinite(grade):
            raise grade_error(query, doc, grade)
        places[query].setdefault(doc, 0)
        first = pairs.setdefault((query, doc, target), grade)
        if first != grade:
            disagreements.append(disagreement(query, doc, target, first, grade))
    if disagreements:
        raise disagreement_error(len(disagreements), disagreements)
    doc_ids: list[str] = []
    for documents in places.values():
        for doc in documents:
            documents[doc] = len(doc_ids)
            doc_ids.append(doc)
    sizes = np.fromiter((len(documents) for documents in places.values()), np.int64, len(places))
    judged = JudgedDocs(list(query_ids), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), doc_ids)
    pair_doc = np.fromiter((places[q][d] for q, d, _ in pairs), np.int64, len(pairs))
    pair_grade = np.fromiter(pairs.values(), np.float64, len(pairs))
    grades = np.full(len(doc_ids), -np.inf)
    np.maximum.at(grades, pair_doc, pair_grade)
    named = any(target is not None for _, _, target in pairs)
    return judged, grades, _targets(pairs, pair_doc, pair_grade, query_ids) if named else None


def _targets(
    pairs: Mapping[tuple[str, str, str | None], float], pair_doc: Ints, pair_grade: Floats, query_ids: Sequence[str]
) -> Targets:
    """The named targets; a relevant document without one is its own target."""
    code: dict[tuple[str, str], int] = {}
    kept: list[int] = []
    target: list[int] = []
    for number, ((query, doc, name), grade) in enumerate(pairs.items()):
        if name is not None or grade > 0:
            kept.append(number)
            target.append(code.setdefault((query, doc if name is None else name), len(code)))
    place = {query: number for number, query in enumerate(query_ids)}
    queries = np.array([place[query] for query, _ in code], dtype=np.int64)
    names = [name for _, name in code]
    return Targets(pair_doc[kept], np.array(target, dtype=np.int64), pair_grade[kept], queries, names)


def relevant_in_words(grades: Floats) -> str:
    """How many judgments are relevant, and how many are above 0 but below 1, where measures start to count.

    >>> relevant_in_words(np.array([0.0, 1.0, 2.0])), relevant_in_words(np.array([0.5, 0.2, 1.0]))
    ('2 relevant', '1 relevant, 2 graded above 0 but below 1 (relevant with rel=0.2)')
    """
    faint = grades[(grades > 0) & (grades < 1)]
    text = f"{int(np.sum(grades >= 1)):,} relevant"
    if len(faint):
        text += f", {len(faint):,} graded above 0 but below 1 (relevant with rel={float(faint.min()):g})"
    return text


def grade_error(query: str, doc: str, grade: float) -> InputError:
    """A grade that is not a finite number."""
    return InputError(f"judgment of document {doc!r} for query {query!r}: grade {grade} is not a finite number.")


def disagreement(query: str, doc: str, target: str | None, first: float, later: float) -> str:
    """One judgment that disagrees with an earlier one, for a message."""
    about = f" (target {target!r})" if target is not None else ""
    return f"query {query!r}, document {doc!r}{about}: graded {first:g} and {later:g}"


def disagreement_error(total: int, disagreements: Sequence[str]) -> InputError:
    """Judgments that disagree with earlier ones: their number, and the first of them."""
    count = counted(total, "judgment disagrees", "judgments disagree")
    headline = f"{count} with an earlier one of the same query and document:"
    advice = "Keep one grade for each, or give each its own target."
    return InputError.of_problems(headline, disagreements, advice, total=total)
