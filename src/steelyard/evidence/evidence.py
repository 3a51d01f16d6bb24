"""Evidence: what a chunk must contain to answer a query, whatever the chunks are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import InputError
from steelyard.evidence.alternatives import Targets, targets_of
from steelyard.evidence.normalise import Matching
from steelyard.ids import kind_of
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.evidence.chunk_table import Parent
    from steelyard.evidence.projection import Overlap, Projection, Ways
    from steelyard.judgments import Qrels


class Evidence:
    """An answer key that survives re-chunking: each query's targets, each satisfied by any of several things.

    A mapping of query id to targets; a target is a dict, or a list of dicts of which any one is
    enough. The conditions of one dict must all hold: `doc_id`, `parent`, `page`, `start` and `end`
    (characters of `doc_id`), `fact` (with a `share` of its words), `hash`, `chunk_id`; `grade` is what
    satisfying it is worth, 1 unless said. A query without evidence is named in `null`, or has None.

    >>> key = Evidence({"q1": [[{"doc_id": "book", "start": 4, "end": 11}], [{"fact": "weighs  gold"}, {"doc_id": "d7"}]]})
    >>> key
    Evidence: 1 query, 2 targets (1 span, 1 fact, 1 document)
    >>> text = "The balance weighs gold."
    >>> halves = [("c1", 0, 12), ("c2", 12, 24)]
    >>> key.judge([{"chunk_id": c, "doc_id": "book", "start": a, "end": b, "text": text[a:b]} for c, a, b in halves])
    Qrels: 1 query, 2 judgments, 2 relevant, 2 targets
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
        self._targets: dict[str, Targets] = targets_of(source, null)

    @classmethod
    def read(cls, path: str | Path, format: str | None = None, **options: Any) -> Evidence:
        """Read a file; what it is, is found from its content unless `format` insists.

        'multihop-rag' (questions with evidence_list[].fact), 'spans' (CSV or JSON lines with
        references of start_index and end_index, or a row a span), 'autorag' (qa parquet; the corpus,
        with start_end_idx, is `corpus=path`), 'ragas' (reference_contexts), 'json' (the mapping
        that `Evidence` takes, in JSON).
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

        Targets of the judgments stay targets, any of whose documents is enough; a query with nothing
        relevant is null. Grades of 0 and below (distractors) are no evidence and are left out.

        >>> Evidence.from_qrels({"q1": [["a", "b"], ["c"]], "q2": []})
        Evidence: 2 queries, 2 targets (3 documents), 1 null query
        """
        from steelyard.judgments import Qrels

        judged = Qrels.of(qrels)
        pairs = judged.targets
        wanted: dict[str, dict[int, list[dict[str, Any]]]] = {query: {} for query in judged.queries}
        for doc, target, grade in zip(
            pairs.doc.tolist(), pairs.target.tolist(), pairs.grade.tolist(), strict=True
        ):
            if grade <= 0:
                continue
            name = judged.judged.doc_ids[doc]
            if corpus is not None and name not in corpus:
                raise InputError(
                    f"document {name!r} is judged and is not in the corpus; its text cannot be a fact."
                )
            way = {"doc_id": name} if corpus is None else {"fact": corpus[name]}
            wanted[judged.queries[pairs.query[target]]].setdefault(target, []).append({**way, "grade": grade})
        return cls({query: list(targets.values()) or None for query, targets in wanted.items()})

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
        return project(self.queries, self.ways, table, overlap, matching, documents)

    @property
    def targets(self) -> Mapping[str, Targets]:
        """Every query's targets, each the alternatives that satisfy it."""
        return self._targets

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order they came, null queries too."""
        return list(self._targets)

    @property
    def null_queries(self) -> list[str]:
        """The queries that have no evidence: nothing answers them."""
        return [query for query, targets in self._targets.items() if not targets]

    @cached_property
    def ways(self) -> Ways:
        """Every alternative, in one list."""
        from steelyard.evidence.projection import Ways

        rows = [
            (query, number, way)
            for query, targets in self._targets.items()
            for number, target in enumerate(targets, start=1)
            for way in target
        ]
        return Ways([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])

    @cached_property
    def spans(self) -> pl.DataFrame:
        """The character spans: query_id, target, doc_id, start, end."""
        import polars as pl

        listed = zip(self.ways.query, self.ways.target, self.ways.way, strict=True)
        rows = [
            (query, target, way.doc_id, way.start, way.end) for query, target, way in listed if way.is_span
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
        return sum(map(len, self._targets.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evidence) and self._targets == other._targets

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kinds = {"span": 0, "fact": 0, "hash": 0, "page": 0, "parent": 0, "document": 0, "chunk": 0}
        for way in self.ways.way:
            kinds[_kind(way)] += 1
        plural = {"hash": "hashes"}
        held = [counted(n, kind, plural.get(kind, "")) for kind, n in kinds.items() if n]
        null = len(self.null_queries)
        parts = [
            counted(len(self._targets), "query", "queries"),
            counted(len(self), "target") + (f" ({', '.join(held)})" if held else ""),
        ]
        if null:
            parts.append(counted(null, "null query", "null queries"))
        return f"Evidence: {', '.join(parts)}"


def _kind(way: Any) -> str:
    if way.is_span:
        return "span"
    given = (
        ("fact", way.fact),
        ("hash", way.hash),
        ("page", way.page),
        ("parent", way.parent),
        ("document", way.doc_id),
    )
    return next((name for name, value in given if value is not None), "chunk")
