"""Qrels: the judged documents of each query, their grades, and the targets they satisfy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from steelyard.alignment.hits import Floats, Ints, JudgedDocs
from steelyard.errors import InputError, problem_report
from steelyard.ids import text_ids
from steelyard.io.files import streams_read_once
from steelyard.io.objects import flatten, plain_form, rows_of
from steelyard.native import kernel
from steelyard.notes import Note
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


_T = TypeVar("_T")

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


class Qrels:
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

    def __init__(
        self,
        source: Any,
        *,
        query_id: str | None = None,
        doc_id: str | None = None,
        grade: str | None = None,
        target: str | None = None,
    ) -> None:
        self.notes: tuple[Note, ...] = ()
        if isinstance(source, Qrels):
            self.__dict__.update(source.__dict__)
            return
        columns = {"query_id": query_id, "doc_id": doc_id, "grade": grade, "target": target}
        if not isinstance(source, Mapping):
            source = plain_form(source, "Qrels")
        if isinstance(source, Mapping):
            self._from_mapping(source)
        elif isinstance(source, (list, tuple)):
            from steelyard.io.records import qrels_of_records

            named = {role: name for role, name in columns.items() if name is not None}
            self.__dict__.update(qrels_of_records(source, named).__dict__)
        else:
            from steelyard.io.frames import qrels_frame

            frame, self.notes = qrels_frame(source, columns)
            self._from_frame(frame)

    @classmethod
    @streams_read_once()
    def read(cls, path: str | Path, format: str | None = None, **columns: str) -> Qrels:
        """Read a file; the format is detected from the content unless `format` names one."""
        if format is None and not columns:
            from steelyard.io.trec import read_regular_qrels

            if (found := read_regular_qrels(Path(path))) is not None:
                qrels = cls({})
                qrels._judged, qrels._grades = found
                return qrels
        from steelyard.io import read_qrels

        return read_qrels(Path(path), format, columns)

    @classmethod
    def from_rows(cls, rows: Sequence[Row], query_ids: Sequence[str] = ()) -> Qrels:
        """Qrels from rows of query, document, grade, target (None: the document is its own target).

        `query_ids` names the queries, including those without a judgment; by default those of the rows.

        >>> Qrels.from_rows([("q1", "d1", 1, "a"), ("q1", "d2", 1, "a")])
        Qrels: 1 query, 2 judgments, 2 relevant, 1 target
        """
        qrels = cls({})
        qrels._from_rows(rows, query_ids or list(dict.fromkeys(row[0] for row in rows)))
        return qrels

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
        from steelyard.io import write_qrels

        write_qrels(self, Path(path), format)

    def without_empty(self) -> Qrels:
        """The same without the queries that have no judged document, which a TREC file cannot hold.

        >>> Qrels({"q1": ["d1"], "q2": []}).without_empty()
        Qrels: 1 query, 1 judgment, 1 relevant
        """
        kept, filled = Qrels({}), np.diff(self._judged.starts) > 0
        query_ids = list(compress(self._judged.query_ids, filled.tolist()))
        starts = self._judged.starts[np.append(True, filled)]
        kept._judged = JudgedDocs(query_ids, starts, self._judged.doc_ids)
        kept._grades, kept.notes = self._grades, self.notes
        if self._explicit is not None:
            place = np.cumsum(filled) - 1
            kept._explicit = replace(self._explicit, query=place[self._explicit.query])
        return kept

    # From a mapping, a frame or rows to one set of columns

    def _from_mapping(self, source: Mapping[Any, Any]) -> None:
        query_ids = text_ids(source, "query id", "the qrels", unique=True)
        values = list(source.values())
        native = kernel()
        flat = flatten(values) if native is None else native.flatten(values)
        if flat is None:
            self._from_rows(rows_of(query_ids, values), query_ids)
            return
        doc_ids, starts, grades = flat
        self._judged = JudgedDocs(query_ids, np.frombuffer(starts, np.int64), doc_ids)
        self._grades = np.ones(len(doc_ids)) if grades is None else np.frombuffer(grades, np.float64)
        self._explicit: Targets | None = None

    def _from_frame(self, frame: pl.DataFrame) -> None:
        import polars as pl

        query_ids = frame["query_id"].unique(maintain_order=True).to_list()
        judged = frame.drop_nulls("doc_id")
        flat = judged["target"].null_count() == judged.height and bool(judged["grade"].is_finite().all())
        if flat and not judged.select("query_id", "doc_id").is_duplicated().any():
            place = pl.DataFrame(
                {"query_id": query_ids, "place": range(len(query_ids))},
                schema={"query_id": pl.String, "place": pl.Int64},
            )
            judged = judged.join(place, on="query_id", how="left", maintain_order="left").sort(
                "place", maintain_order=True
            )
            sizes = np.bincount(judged["place"].to_numpy(), minlength=len(query_ids))
            starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            self._judged = JudgedDocs(query_ids, starts, judged["doc_id"].to_list())
            self._grades = judged["grade"].cast(pl.Float64).to_numpy().copy()
            self._explicit = None
            return
        columns = (judged[name].to_list() for name in ("query_id", "doc_id", "grade", "target"))
        self._from_rows(list(zip(*columns, strict=True)), query_ids)

    def _from_rows(self, rows: Sequence[Row], query_ids: Sequence[str]) -> None:
        """Rows in any order; equal rows are merged, rows that disagree are an error."""
        places: dict[str, dict[str, int]] = {query: {} for query in query_ids}
        pairs: dict[tuple[str, str, str | None], float] = {}
        disagree: list[str] = []
        for query, doc, grade, target in rows:
            if grade != grade or grade in (float("inf"), float("-inf")):
                raise grade_error(query, doc, grade)
            places[query].setdefault(doc, 0)
            known = pairs.setdefault((query, doc, target), grade)
            if known != grade:
                disagree.append(disagreement(query, doc, target, known, grade))
        if disagree:
            raise disagreement_error(len(disagree), disagree)
        doc_ids: list[str] = []
        for documents in places.values():
            for doc in documents:
                documents[doc] = len(doc_ids)
                doc_ids.append(doc)
        sizes = np.fromiter((len(documents) for documents in places.values()), np.int64, len(places))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._judged = JudgedDocs(list(query_ids), starts, doc_ids)
        pair_doc = np.fromiter((places[q][d] for q, d, _ in pairs), np.int64, len(pairs))
        pair_grade = np.fromiter(pairs.values(), np.float64, len(pairs))
        self._grades = np.full(len(doc_ids), -np.inf)
        np.maximum.at(self._grades, pair_doc, pair_grade)
        explicit = any(target is not None for _, _, target in pairs)
        self._explicit = _targets(pairs, pair_doc, pair_grade, query_ids) if explicit else None

    # For evaluation

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
        relevant = np.flatnonzero(self._grades > 0)
        names = self._judged.doc_ids
        return Targets(
            doc=relevant,
            target=np.arange(len(relevant), dtype=np.int64),
            grade=self._grades[relevant],
            query=self.doc_query[relevant],
            name=list(map(names.__getitem__, relevant.tolist())),
        )

    @cached_property
    def doc_query(self) -> Ints:
        """The query of every judged document."""
        return np.repeat(np.arange(len(self._judged.query_ids), dtype=np.int64), np.diff(self._judged.starts))

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}

    def once(self, key: str, compute: Callable[[], _T]) -> _T:
        """What `compute` makes of the qrels alone, made once and shared by all runs that are measured by them."""
        if key not in self._known:
            self._known[key] = compute()
        return cast("_T", self._known[key])

    @property
    def has_targets(self) -> bool:
        """Whether the qrels name targets, rather than each relevant document being its own."""
        return self._explicit is not None

    # For users

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order of the input."""
        return list(self._judged.query_ids)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A polars frame: query_id, doc_id, grade, target. A query without judgments is a row of nulls."""
        import polars as pl

        targets, judged = self.targets, self._judged
        bare = np.setdiff1d(np.arange(len(judged.doc_ids)), targets.doc)
        doc = np.concatenate([targets.doc, bare])
        target = np.concatenate([targets.target, np.full(len(bare), -1)])
        grade = np.concatenate([targets.grade, self._grades[bare]])
        empty = np.flatnonzero(np.diff(judged.starts) == 0)
        query = np.concatenate([self.doc_query[doc], empty])
        order = np.lexsort((np.concatenate([doc, np.full(len(empty), -1)]), query))
        blank = [None] * len(empty)
        whole = bool(np.all(grade == np.round(grade))) and bool(np.all(np.abs(grade) < 2**53))
        return pl.DataFrame(
            {
                "query_id": pl.Series([judged.query_ids[q] for q in query.tolist()], dtype=pl.String),
                "doc_id": pl.Series([judged.doc_ids[d] for d in doc.tolist()] + blank, dtype=pl.String),
                "grade": pl.Series(grade.tolist() + blank, dtype=pl.Float64).cast(
                    pl.Int64 if whole else pl.Float64
                ),
                "target": pl.Series(
                    [targets.name[t] if t >= 0 else None for t in target.tolist()] + blank, dtype=pl.String
                ),
            }
        ).select(pl.all().gather(order.tolist()))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content, independent of the file it came from."""
        import hashlib

        digest = hashlib.sha256()
        targets, judged = self.targets, self._judged
        lines = [
            f"{judged.query_ids[q]}\t{judged.doc_ids[d]}\t{g!r}"
            for q, d, g in zip(
                self.doc_query.tolist(), range(len(judged.doc_ids)), self._grades.tolist(), strict=True
            )
        ]
        if self.has_targets:
            docs = zip(targets.doc.tolist(), targets.target.tolist(), targets.grade.tolist(), strict=True)
            lines += [
                f"{judged.query_ids[targets.query[t]]}\t{judged.doc_ids[d]}\t{g!r}\t{targets.name[t]}"
                for d, t, g in docs
            ]
        for line in sorted(lines):
            digest.update(line.encode() + b"\n")
        return digest.hexdigest()[:16]

    def query_fingerprints(self) -> dict[str, str]:
        """A short hash of each query's judgments, to see which changed between two qrels.

        >>> before, after = Qrels({"q1": ["a"], "q2": ["b"]}), Qrels({"q2": ["b", "c"], "q1": ["a"]})
        >>> one, other = before.query_fingerprints(), after.query_fingerprints()
        >>> [query for query in one if one[query] != other[query]]
        ['q2']
        """
        import hashlib

        targets, judged = self.targets, self._judged
        lines: dict[str, list[str]] = {query: [] for query in judged.query_ids}
        for q, doc, grade in zip(self.doc_query.tolist(), judged.doc_ids, self._grades.tolist(), strict=True):
            lines[judged.query_ids[q]].append(f"{doc}\t{grade!r}")
        if self.has_targets:
            for d, t, grade in zip(
                targets.doc.tolist(), targets.target.tolist(), targets.grade.tolist(), strict=True
            ):
                name = f"{judged.doc_ids[d]}\t{grade!r}\t{targets.name[t]}"
                lines[judged.query_ids[targets.query[t]]].append(name)
        return {
            query: hashlib.sha256("\n".join(sorted(own)).encode()).hexdigest()[:8]
            for query, own in lines.items()
        }

    def __len__(self) -> int:
        """How many documents are judged, over all queries."""
        return len(self._judged.doc_ids)

    @property
    def summary(self) -> str:
        """How many queries, judgments, relevant documents and targets there are."""
        parts = [
            counted(len(self._judged.query_ids), "query", "queries"),
            counted(len(self), "judgment"),
            relevant_in_words(self._grades),
        ]
        if self.has_targets:
            parts.append(counted(len(self.targets.name), "target"))
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"Qrels: {self.summary}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Qrels)
            and self.fingerprint == other.fingerprint
            and self.queries == other.queries
        )

    __hash__ = None  # type: ignore[assignment]


def _targets(
    pairs: Mapping[tuple[str, str, str | None], float],
    pair_doc: Ints,
    pair_grade: Floats,
    query_ids: Sequence[str],
) -> Targets:
    """The named targets; a relevant document without one is its own target."""
    code: dict[tuple[str, str], int] = {}
    kept: list[int] = []
    target: list[int] = []
    for number, ((query, doc, name), grade) in enumerate(pairs.items()):
        if name is None and grade <= 0:
            continue
        kept.append(number)
        target.append(code.setdefault((query, doc if name is None else name), len(code)))
    place = {query: number for number, query in enumerate(query_ids)}
    return Targets(
        doc=pair_doc[kept],
        target=np.array(target, dtype=np.int64),
        grade=pair_grade[kept],
        query=np.array([place[query] for query, _ in code], dtype=np.int64),
        name=[name for _, name in code],
    )


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
    return InputError(
        f"judgment of document {doc!r} for query {query!r}: grade {grade} is not a finite number."
    )


def disagreement(query: str, doc: str, target: str | None, first: float, later: float) -> str:
    """One judgment that disagrees with an earlier one, for a message."""
    about = f" (target {target!r})" if target is not None else ""
    return f"query {query!r}, document {doc!r}{about}: graded {first:g} and {later:g}"


def disagreement_error(total: int, disagreements: Sequence[str]) -> InputError:
    """Judgments that disagree with earlier ones: their number, and the first of them."""
    return InputError(
        problem_report(
            f"{counted(total, 'judgment disagrees', 'judgments disagree')} with an earlier one of the same "
            "query and document:",
            disagreements,
            "Keep one grade for each, or give each its own target.",
            total=total,
        )
    )
