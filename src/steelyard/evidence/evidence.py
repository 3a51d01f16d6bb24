"""Evidence: what the chunks that answer each query must contain, so that qrels survive re-chunking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.errors import InputError
from steelyard.evidence.conditions import ALTERNATIVE, Alternative, QueryEvidence, Targets, evidence_by_query
from steelyard.evidence.facts import Matching
from steelyard.ids import kind_of
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.chunking import Tokenizer
    from steelyard.evidence.chunks import Parent
    from steelyard.evidence.projection import Overlap, Projection, Unit


def _conditions(corpus: Any, judged: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What a chunk must contain, for every document of a corpus: its text, or its place; its id without a corpus."""
    if corpus is None:
        return {doc: {"doc_id": doc} for doc in judged}
    if isinstance(corpus, Mapping) and all(isinstance(text, str) for text in corpus.values()):
        return {str(doc): {"fact": text} for doc, text in corpus.items()}
    from steelyard.evidence.chunks import chunk_table

    table = chunk_table(corpus)
    without = table.filter(table["start"].is_null())["chunk_id"].to_list()
    if without:
        count = counted(len(without), "judged chunk has", "judged chunks have")
        expected = "expected chunk_id, doc_id, start and end, in characters of the document, end exclusive"
        raise InputError(f"{count} no start and end ({without[0]!r}); {expected}.")
    rows = table.select("chunk_id", "doc_id", "start", "end").iter_rows(named=True)
    return {str(row.pop("chunk_id")): row for row in rows}


class Evidence:
    """Each query's targets, each with the alternatives that satisfy it, independent of the chunking.

    A mapping of query id to targets; a target is a dict, or a list of dicts of which any one is enough. The conditions
    of one dict must all hold: `doc_id`, `parent`, `page`, `start` and `end` (characters of `doc_id`), `fact` (with a
    `share` of its words), `hash`, `chunk_id`; `grade` is the grade for satisfying it, 1 by default. A query without
    evidence is named in `null`, or has None. With a grade below 0, or under `distractors` beside `targets`, a dict is a
    distractor: a chunk that meets it and satisfies no target of the query is known to mislead.

    >>> span, fact = {"doc_id": "book", "start": 4, "end": 11}, {"fact": "weighs  gold"}
    >>> evidence = Evidence({"q1": [[span], [fact, {"doc_id": "d7"}]]})
    >>> evidence
    Evidence: 1 query, 2 targets (1 span, 1 fact, 1 document)
    >>> text = "The balance weighs gold."
    >>> halves = [{"chunk_id": "c1", "start": 0, "end": 12}, {"chunk_id": "c2", "start": 12, "end": 24}]
    >>> evidence.judge([{**half, "doc_id": "book", "text": text[half["start"] : half["end"]]} for half in halves])
    Qrels: 1 query, 2 judgments, 2 relevant, 2 targets
    >>> Evidence({"q1": {"targets": [{"fact": "weighs gold"}], "distractors": [{"fact": "weighs lead"}]}})
    Evidence: 1 query, 1 target (1 fact), 1 distractor
    """

    def __init__(
        self, source: Mapping[Any, Any] | Evidence, null: Iterable[str] = (), *, notes: Iterable[Note] = ()
    ) -> None:
        self.notes: tuple[Note, ...] = tuple(notes)
        self._facts_are_documents = False
        if isinstance(source, Evidence):
            self.__dict__.update(source.__dict__)
            return
        if not isinstance(source, Mapping):
            problem = f"the evidence is {kind_of(source)}; expected a mapping of query id to targets"
            raise InputError(f"{problem}. Evidence.read(path) reads a file.")
        self._by_query: dict[str, QueryEvidence] = evidence_by_query(source, null)

    @classmethod
    def read(cls, path: str | Path, format: str | None = None, **options: Any) -> Evidence:
        """Read a file; the format is detected from the content unless `format` names one.

        'multihop-rag' (questions with evidence_list[].fact), 'spans' (CSV or JSON lines with
        references of start_index and end_index), 'rows' (CSV or JSON lines, one row per span, fact,
        page ...), 'autorag' (qa parquet; `corpus=path` names the corpus, with start_end_idx), 'ragas'
        (reference_contexts), 'json' (the mapping that `Evidence` takes, in JSON).
        """
        evidence: Evidence = looked_up("steelyard.io.evidence:read_evidence")(Path(path), format, options)
        return evidence

    @classmethod
    def of(cls, source: Any) -> Evidence:
        """Evidence unchanged; a path read; a mapping passed to Evidence()."""
        if isinstance(source, Evidence):
            return source
        return cls.read(source) if isinstance(source, (str, Path)) else cls(source)

    @classmethod
    def from_qrels(cls, qrels: Any, corpus: Any = None) -> Evidence:
        """Existing qrels as evidence: every relevant document is a target, by id, or (with `corpus`) by its text.

        `corpus` is a mapping of id to text; or, if the judged documents are chunks, these chunks as `judge` takes
        them, with doc_id, start and end: then each is a span of its document, which chunks of any size can share.
        A text is found only in chunks that contain all of it.

        Targets of the qrels stay targets, satisfied by any of their documents; documents with a grade
        below 0 stay distractors; a query without relevant documents is null. Documents of grade 0
        (judged, not relevant) are not evidence: they are dropped, and counted in `notes`.

        >>> Evidence.from_qrels({"q1": {"a": 2, "b": 1, "c": -1}, "q2": []})
        Evidence: 2 queries, 2 targets (2 documents), 1 distractor, 1 null query
        >>> Evidence.from_qrels({"q1": ["c2"]}, [{"chunk_id": "c2", "doc_id": "book", "start": 18, "end": 40}])
        Evidence: 1 query, 1 target (1 span)
        """
        judged = Qrels.of(qrels)
        names, pairs = judged.judged.doc_ids, judged.targets
        conditions = _conditions(corpus, names)

        def condition(doc: int, grade: float) -> dict[str, Any]:
            if names[doc] not in conditions:
                name = names[doc]
                raise InputError(f"document {name!r} is judged and is not in the corpus; its text cannot be a fact.")
            return {**conditions[names[doc]], "grade": grade}

        targets: dict[str, dict[int, list[dict[str, Any]]]] = {query: {} for query in judged.queries}
        distractors: dict[str, list[dict[str, Any]]] = {query: [] for query in judged.queries}
        for doc, target, grade in zip(pairs.doc.tolist(), pairs.target.tolist(), pairs.grade.tolist(), strict=True):
            if grade > 0:
                targets[judged.queries[pairs.query[target]]].setdefault(target, []).append(condition(doc, grade))
        for doc in np.flatnonzero(judged.grades < 0).tolist():
            distractors[judged.queries[judged.doc_query[doc]]].append(condition(doc, float(judged.grades[doc])))
        zeros = int(np.sum(judged.grades == 0))
        both = {
            query: {"targets": list(query_targets.values()) or None, "distractors": distractors[query]}
            for query, query_targets in targets.items()
        }
        evidence = cls(both, notes=[note("grade-0-dropped", count=zeros)] if zeros else [])
        evidence._facts_are_documents = evidence.alternatives["fact"].count() > 0
        return evidence

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
        unit: Unit = "character",
        tokenizer: str | Tokenizer = "whitespace",
    ) -> Qrels:
        """The evidence as qrels for these chunks.

        `chunks` are dicts, a frame or a file with chunk_id, doc_id, start, end, text (and page, parent), as far as the
        evidence needs them, or a mapping of id to text. `overlap` decides when a span that is split by a chunk boundary
        counts: any character of it, a majority, or the whole. `share` is how much of a fact's words must be there, in
        order; 1 requires the whole fact. White space and Unicode forms do not matter; `case` decides whether case does,
        and spaces='removed' removes white space altogether. `parent` is a column, a function of the chunk id, or a
        pattern whose first group is the parent. With `documents` spans and chunks are checked against their texts.

        Qrels made from spans keep the ranges of spans and chunks, for `SpanR`, `SpanP` and `SpanIoU`, which need
        no rule. These count characters; with unit='token' tokens of the `documents`, of a `tokenizer` as in
        `token_counts`.

        What was split, not found or overlapping is in the `notes` of the qrels; `project` gives tables.
        """
        rules: dict[str, Any] = {"overlap": overlap, "share": share, "case": case, "spaces": spaces, "parent": parent}
        return self.project(chunks, documents=documents, unit=unit, tokenizer=tokenizer, **rules).qrels

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
        unit: Unit = "character",
        tokenizer: str | Tokenizer = "whitespace",
    ) -> Projection:
        """As `judge`, with a report: the qrels, split spans, and facts and targets that are in no chunk."""
        from steelyard.evidence.chunks import chunk_table
        from steelyard.evidence.projection import project, ranges_of

        matching = Matching(share, case, spaces)
        table = chunk_table(chunks, parent, documents)
        projection = project(self.queries, self.alternatives, table, overlap, matching, documents, self.notes)
        lost, facts = projection.lost_facts.height, self.alternatives["fact"].count()
        if self._facts_are_documents and 2 * lost > facts:
            raise InputError(
                f"{lost:,} of {facts:,} facts are whole texts of judged documents, and no chunk contains them: the "
                "chunks are smaller. Give Evidence.from_qrels the judged documents as chunks with doc_id, start and "
                "end (dicts or a frame), so that they become spans of their documents."
            )
        projection.qrels.ranges = ranges_of(self.spans, table, unit, tokenizer, documents)
        return projection

    def write(self, path: str | Path) -> None:
        """Write a file for `read`: .json (a mapping), .jsonl (a line per query), .csv or .tsv (a row per condition)."""
        looked_up("steelyard.io.evidence:write_evidence")(self, Path(path))

    @cached_property
    def targets(self) -> Mapping[str, Targets]:
        """Every query's targets, each with the alternatives that satisfy it."""
        return {query: targets for query, (targets, _) in self._by_query.items()}

    @cached_property
    def distractors(self) -> Mapping[str, tuple[Alternative, ...]]:
        """Every query's distractors."""
        return {query: distractors for query, (_, distractors) in self._by_query.items()}

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order of the input, including null queries."""
        return list(self._by_query)

    @property
    def null_queries(self) -> list[str]:
        """The queries without targets: nothing answers them."""
        return [query for query, targets in self.targets.items() if not targets]

    @cached_property
    def alternatives(self) -> pl.DataFrame:
        """Every alternative as a row of query_id, target, conditions and grade; a distractor is one of target 0."""
        rows = [
            (query, number, *vars(alternative).values())
            for query, (targets, distractors) in self._by_query.items()
            for number, target in enumerate((distractors, *targets))
            for alternative in target
        ]
        kinds = {**dict.fromkeys(("target", "start", "end"), pl.Int64), "share": pl.Float64, "grade": pl.Float64}
        schema = {name: kinds.get(name, pl.String) for name in ("query_id", "target", *ALTERNATIVE)}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def spans(self) -> pl.DataFrame:
        """The character spans of the targets: query_id, target, doc_id, start, end."""
        spans = self.alternatives.filter(pl.col("start").is_not_null(), pl.col("grade") > 0)
        return spans.select("query_id", "target", "doc_id", "start", "end")

    def __len__(self) -> int:
        """How many targets there are, over all queries."""
        return sum(map(len, self.targets.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evidence) and self._by_query == other._by_query

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = Counter(one.kind for targets in self.targets.values() for target in targets for one in target)
        kinds = ("span", "fact", "hash", "page", "parent", "document", "chunk")
        by_kind = [counted(counts[kind], kind, "hashes" if kind == "hash" else "") for kind in kinds if counts[kind]]
        null, distractors = len(self.null_queries), sum(map(len, self.distractors.values()))
        targets = counted(len(self), "target") + (f" ({', '.join(by_kind)})" if by_kind else "")
        parts = [counted(len(self._by_query), "query", "queries"), targets]
        if distractors:
            parts.append(counted(distractors, "distractor"))
        if null:
            parts.append(counted(null, "null query", "null queries"))
        return f"Evidence: {', '.join(parts)}"
