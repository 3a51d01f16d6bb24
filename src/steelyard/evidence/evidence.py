"""Evidence: what a chunk must contain to answer a query, whatever the chunks are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.errors import InputError
from steelyard.evidence.answer_key import Answer, Targets, answers_of
from steelyard.evidence.normalise import Matching
from steelyard.ids import kind_of
from steelyard.wording import counted, worded

if TYPE_CHECKING:
    import polars as pl

    from steelyard.evidence.alternatives import Alternative, Ways
    from steelyard.evidence.chunk_table import Parent
    from steelyard.evidence.projection import Overlap, Projection
    from steelyard.judgments import Qrels


class Evidence:
    """An answer key that survives re-chunking: each query's targets, each satisfied by any of several things.

    A mapping of query id to targets; a target is a dict, or a list of dicts of which any one is
    enough. The conditions of one dict must all hold: `doc_id`, `parent`, `page`, `start` and `end`
    (characters of `doc_id`), `fact` (with a `share` of its words), `hash`, `chunk_id`; `grade` is what
    satisfying it is worth, 1 unless said. A query without evidence is named in `null`, or has None.
    With a grade below 0, or under `distractors` beside `targets`, a dict is a distractor: a chunk that
    meets it and satisfies no target of the query is known to mislead.

    >>> key = Evidence({"q1": [[{"doc_id": "book", "start": 4, "end": 11}], [{"fact": "weighs  gold"}, {"doc_id": "d7"}]]})
    >>> key
    Evidence: 1 query, 2 targets (1 span, 1 fact, 1 document)
    >>> text = "The balance weighs gold."
    >>> halves = [("c1", 0, 12), ("c2", 12, 24)]
    >>> key.judge([{"chunk_id": c, "doc_id": "book", "start": a, "end": b, "text": text[a:b]} for c, a, b in halves])
    Qrels: 1 query, 2 judgments, 2 relevant, 2 targets
    >>> Evidence({"q1": {"targets": [{"fact": "weighs gold"}], "distractors": [{"fact": "weighs lead"}]}})
    Evidence: 1 query, 1 target (1 fact), 1 distractor
    """

    def __init__(self, source: Mapping[Any, Any] | Evidence, null: Iterable[str] = ()) -> None:
        self.notes: tuple[str, ...] = ()
        if isinstance(source, Evidence):
            self.__dict__.update(source.__dict__)
            return
        if not isinstance(source, Mapping):
            raise InputError(
                f"the evidence is {kind_of(source)}; expected a mapping of query id to targets. "
                "Evidence.read(path) reads a file."
            )
        self._answers: dict[str, Answer] = answers_of(source, null)

    @classmethod
    def read(cls, path: str | Path, format: str | None = None, **options: Any) -> Evidence:
        """Read a file; what it is, is found from its content unless `format` insists.

        'multihop-rag' (questions with evidence_list[].fact), 'spans' (CSV or JSON lines with
        references of start_index and end_index), 'rows' (CSV or JSON lines, a row a span, a fact, a page
        ...), 'autorag' (qa parquet; the corpus, with start_end_idx, is `corpus=path`), 'ragas'
        (reference_contexts), 'json' (the mapping that `Evidence` takes, in JSON).
        """
        from steelyard.evidence.readers import read_evidence

        return read_evidence(Path(path), format, options)

    @classmethod
    def of(cls, source: Any) -> Evidence:
        """Evidence as it is; a path read; a mapping made into it."""
        if isinstance(source, Evidence):
            return source
        return cls.read(source) if isinstance(source, (str, Path)) else cls(source)

    @classmethod
    def from_qrels(cls, qrels: Any, corpus: Mapping[str, str] | None = None) -> Evidence:
        """Old judgments as evidence: each relevant document a target, by its id, or (with `corpus`) its text as a fact.

        Targets of the judgments stay targets, any of whose documents is enough; documents graded below 0
        stay distractors; a query with nothing relevant is null. Documents of grade 0 (judged, not relevant)
        are no evidence: they are left out, and counted in `notes`.

        >>> Evidence.from_qrels({"q1": {"a": 2, "b": 1, "c": -1}, "q2": []})
        Evidence: 2 queries, 2 targets (2 documents), 1 distractor, 1 null query
        """
        from steelyard.judgments import Qrels

        judged = Qrels.of(qrels)
        names, pairs = judged.judged.doc_ids, judged.targets

        def way(doc: int, grade: float) -> dict[str, Any]:
            if corpus is not None and names[doc] not in corpus:
                raise InputError(
                    f"document {names[doc]!r} is judged and is not in the corpus; its text cannot be a fact."
                )
            told = {"doc_id": names[doc]} if corpus is None else {"fact": corpus[names[doc]]}
            return {**told, "grade": grade}

        wanted: dict[str, dict[int, list[dict[str, Any]]]] = {query: {} for query in judged.queries}
        misleading: dict[str, list[dict[str, Any]]] = {query: [] for query in judged.queries}
        listed = zip(pairs.doc.tolist(), pairs.target.tolist(), pairs.grade.tolist(), strict=True)
        for doc, target, grade in listed:
            if grade > 0:
                query = judged.queries[pairs.query[target]]
                wanted[query].setdefault(target, []).append(way(doc, grade))
        for doc in np.flatnonzero(judged.grades < 0).tolist():
            query = judged.queries[judged.doc_query[doc]]
            misleading[query].append(way(doc, float(judged.grades[doc])))
        made = cls(
            {
                query: {"targets": list(targets.values()) or None, "distractors": misleading[query]}
                for query, targets in wanted.items()
            }
        )
        blank = int(np.sum(judged.grades == 0))
        if blank:
            made.notes = (
                f"{counted(blank, 'judgment')} of grade 0 (judged, not relevant) "
                f"{worded(blank, 'is', 'are')} no evidence and left out",
            )
        return made

    def judge(
        self,
        chunks: Any,
        *,
        overlap: Overlap = "any",
        share: float = 1.0,
        case: bool = True,
        spaces: Literal["single", "removed"] = "single",
        parent: Parent | None = None,
        documents: Mapping[str, str] | None = None,
    ) -> Qrels:
        """The evidence as judgments of these chunks.

        `chunks` are dicts or a frame with chunk_id, doc_id, start, end, text (and page, parent), as far
        as the evidence needs them, or a mapping of id to text. `overlap` says when a span that a chunk
        border cuts counts: any character of it, a majority, or the whole. `share` is how much of a
        fact's words must be there, in order; 1 asks for the fact as it is. White space and Unicode forms
        do not matter; `case` says whether case does, and spaces='removed' takes white space out
        altogether. `parent` is a column, a function of the chunk id, or a pattern whose first group is
        the parent. With `documents` spans and chunks are held against the texts they come from.

        What was split, not found or overlapping is in the judgments' `notes`; `project` gives it as tables.
        """
        return self.project(
            chunks, overlap=overlap, share=share, case=case, spaces=spaces, parent=parent, documents=documents
        ).qrels

    def project(
        self,
        chunks: Any,
        *,
        overlap: Overlap = "any",
        share: float = 1.0,
        case: bool = True,
        spaces: Literal["single", "removed"] = "single",
        parent: Parent | None = None,
        documents: Mapping[str, str] | None = None,
    ) -> Projection:
        """As `judge`, with the report: judgments, split spans, facts and targets that are in no chunk."""
        from steelyard.evidence.chunk_table import chunk_table
        from steelyard.evidence.projection import project

        matching = Matching(share, case, spaces)
        table = chunk_table(chunks, parent, documents)
        return project(self.queries, self.ways, table, overlap, matching, documents, self.notes)

    def write(self, path: str | Path) -> None:
        """Write a file that `read` reads back: .json (a mapping), .jsonl (a line a query), .csv or .tsv (a row a thing)."""
        from steelyard.evidence.writers import write_evidence

        write_evidence(self, Path(path))

    @cached_property
    def targets(self) -> Mapping[str, Targets]:
        """Every query's targets, each the alternatives that satisfy it."""
        return {query: answer.targets for query, answer in self._answers.items()}

    @cached_property
    def distractors(self) -> Mapping[str, tuple[Alternative, ...]]:
        """Every query's distractors: what is known to mislead."""
        return {query: answer.distractors for query, answer in self._answers.items()}

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order they came, null queries too."""
        return list(self._answers)

    @property
    def null_queries(self) -> list[str]:
        """The queries that have no targets: nothing answers them."""
        return [query for query, targets in self.targets.items() if not targets]

    @cached_property
    def ways(self) -> Ways:
        """Every alternative, and every distractor as one of target 0, in one list."""
        from steelyard.evidence.alternatives import Ways

        rows = [
            (query, number, way)
            for query, answer in self._answers.items()
            for number, target in enumerate((answer.distractors, *answer.targets))
            for way in target
        ]
        return Ways([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])

    @cached_property
    def spans(self) -> pl.DataFrame:
        """The character spans of the targets: query_id, target, doc_id, start, end."""
        import polars as pl

        listed = zip(self.ways.query, self.ways.target, self.ways.way, strict=True)
        rows = [
            (query, target, way.doc_id, way.start, way.end)
            for query, target, way in listed
            if way.is_span and not way.misleads
        ]
        schema = {
            "query_id": pl.String,
            "target": pl.Int64,
            "doc_id": pl.String,
            "start": pl.Int64,
            "end": pl.Int64,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def __len__(self) -> int:
        """How many targets there are, over all queries."""
        return sum(map(len, self.targets.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evidence) and self._answers == other._answers

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kinds = {"span": 0, "fact": 0, "hash": 0, "page": 0, "parent": 0, "document": 0, "chunk": 0}
        for way in self.ways.way:
            kinds[way.kind] += not way.misleads
        plural = {"hash": "hashes"}
        held = [counted(n, kind, plural.get(kind, "")) for kind, n in kinds.items() if n]
        null, misleading = len(self.null_queries), sum(map(len, self.distractors.values()))
        parts = [
            counted(len(self._answers), "query", "queries"),
            counted(len(self), "target") + (f" ({', '.join(held)})" if held else ""),
        ]
        if misleading:
            parts.append(counted(misleading, "distractor"))
        if null:
            parts.append(counted(null, "null query", "null queries"))
        return f"Evidence: {', '.join(parts)}"
