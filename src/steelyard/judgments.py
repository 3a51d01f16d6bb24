"""Qrels: what is known of which documents answer which queries.

One table holds every kind of ground truth: query_id, doc_id, grade, target. A grade above 0 is
relevant (to measures that count documents, from 1 on, unless their `rel` says otherwise), 0 is judged and
not relevant, below 0 a distractor. A target is one thing the query
needs; several documents may satisfy it, and a document may satisfy several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.alignment.hits import Floats, Ints, JudgedDocs
from steelyard.alignment.native import kernel
from steelyard.ids import text_ids
from steelyard.judgment_forms import Row, flatten, rows_of
from steelyard.judgment_words import disagreement, disagreement_error, grade_error, relevant_in_words
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class Targets:
    """Which judged document satisfies which target: one entry of `doc`, `target`, `grade` a pair.

    `doc` counts in JudgedDocs.doc_ids; `query` and `name` are one entry a target.
    """

    doc: Ints
    target: Ints
    grade: Floats
    query: Ints
    name: Sequence[str]


class Qrels:
    """Judgments: from a mapping, records, a frame (polars, pandas, pyarrow) or, with `Qrels.read`, a file.

    Named tuples with such fields (ir_measures' Qrel) are records too, and ranx's Qrels are taken as they are.

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
    doc_id, docno, grade, relevance, target, ...); name them to insist: `Qrels(frame, doc_id="passage")`.
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
        self.notes: tuple[str, ...] = ()
        if isinstance(source, Qrels):
            self.__dict__.update(source.__dict__)
            return
        columns = {"query_id": query_id, "doc_id": doc_id, "grade": grade, "target": target}
        if not isinstance(source, Mapping):
            from steelyard.formats.library_objects import plain_form

            source = plain_form(source)
        if isinstance(source, Mapping):
            self._from_mapping(source)
        elif isinstance(source, (list, tuple)):
            from steelyard.formats.records import qrels_of_records

            named = {role: name for role, name in columns.items() if name is not None}
            self.__dict__.update(qrels_of_records(source, "the list of judgments", named).__dict__)
        else:
            from steelyard.formats.columns import judgment_frame

            frame, self.notes = judgment_frame(source, columns)
            self._from_frame(frame)

    @classmethod
    def read(cls, path: str | Path, format: str | None = None, **columns: str) -> Qrels:
        """Read a file; the format is found from its content unless `format` insists on one."""
        if format is None and not columns:
            from steelyard.formats.clean_qrels import read_clean_qrels

            if (found := read_clean_qrels(Path(path))) is not None:
                qrels = cls({})
                qrels._judged, qrels._grades = found
                return qrels
        from steelyard.formats import read_qrels

        return read_qrels(Path(path), format, columns)

    @classmethod
    def from_rows(cls, rows: Sequence[Row], query_ids: Sequence[str] = ()) -> Qrels:
        """Judgments from rows of query, document, grade, target (None: the document is its own).

        `query_ids` names the queries, those without a judgment too; by default those of the rows.

        >>> Qrels.from_rows([("q1", "d1", 1, "a"), ("q1", "d2", 1, "a")])
        Qrels: 1 query, 2 judgments, 2 relevant, 1 target
        """
        qrels = cls({})
        qrels._from_rows(rows, query_ids or list(dict.fromkeys(row[0] for row in rows)))
        return qrels

    @classmethod
    def of(cls, source: Any, **columns: str) -> Qrels:
        """A Qrels as it is; a path read; anything else made into one, its columns named as in Qrels()."""
        if isinstance(source, Qrels):
            return source
        if isinstance(source, (str, Path)):
            return cls.read(source, **columns)
        return cls(source, **columns)

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write a file, in the format its name asks for (.trec, .tsv, .json, .parquet, ...) or `format`."""
        from steelyard.formats import write_qrels

        write_qrels(self, Path(path), format)

    def without_empty(self) -> Qrels:
        """The same without the queries that no document is judged for, which a TREC file cannot hold.

        >>> Qrels({"q1": ["d1"], "q2": []}).without_empty()
        Qrels: 1 query, 1 judgment, 1 relevant
        """
        kept, held = Qrels({}), np.diff(self._judged.starts) > 0
        query_ids = list(compress(self._judged.query_ids, held.tolist()))
        starts = self._judged.starts[np.append(True, held)]
        kept._judged = JudgedDocs(query_ids, starts, self._judged.doc_ids)
        kept._grades, kept.notes = self._grades, self.notes
        if self._explicit is not None:
            place = np.cumsum(held) - 1
            kept._explicit = replace(self._explicit, query=place[self._explicit.query])
        return kept

    # Three ways in, one set of columns.

    def _from_mapping(self, source: Mapping[Any, Any]) -> None:
        query_ids = text_ids(source, "query id", "the judgments", unique=True)
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

    # What evaluation reads.

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
        """Which document satisfies which target. Flat judgments: each relevant document is its own."""
        if self._explicit is not None:
            return self._explicit
        relevant = np.flatnonzero(self._grades > 0)
        names = self._judged.doc_ids
        return Targets(
            doc=relevant,
            target=np.arange(len(relevant), dtype=np.int64),
            grade=self._grades[relevant],
            query=self.doc_query[relevant],
            name=names if len(relevant) == len(names) else list(compress(names, (self._grades > 0).tolist())),
        )

    @cached_property
    def doc_query(self) -> Ints:
        """The query of every judged document."""
        return np.repeat(np.arange(len(self._judged.query_ids), dtype=np.int64), np.diff(self._judged.starts))

    @property
    def has_targets(self) -> bool:
        """Whether the judgments name targets, beyond each relevant document being its own."""
        return self._explicit is not None

    # What users read.

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order they came."""
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
        """A hash of the content: the same judgments, whatever file they came from, have the same one."""
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
        """A short hash of each query's judgments: which of them changed between two sets.

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
            query: hashlib.sha256("\n".join(sorted(held)).encode()).hexdigest()[:8]
            for query, held in lines.items()
        }

    def __len__(self) -> int:
        """How many documents are judged, over all queries."""
        return len(self._judged.doc_ids)

    def __repr__(self) -> str:
        parts = [
            counted(len(self._judged.query_ids), "query", "queries"),
            counted(len(self), "judgment"),
            relevant_in_words(self._grades),
        ]
        if self.has_targets:
            parts.append(counted(len(self.targets.name), "target"))
        return f"Qrels: {', '.join(parts)}"

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
    """The named targets; a relevant document without one is its own."""
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
