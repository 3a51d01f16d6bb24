"""The chunkings of a bench: every chunker cuts the documents, and evidence or qrels define which chunks are relevant.

Chunk ids are `label:document#number`, so that the chunkings can be in one result folder. Chunks of one's own are a
function that cuts texts, or a file of finished chunks: `chunkers: [{python: my_module:chunk}, {chunks: chunks.jsonl}]`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from steelyard.alignment.ranges import Ranges
from steelyard.benchmark.specs import NAME, Problem, Spec, grid_points
from steelyard.checks import unknown_name
from steelyard.chunking import Chunk, Chunker, Span, chunk_documents, chunker
from steelyard.comparison.slices import COMPLEXITY
from steelyard.datasets import Dataset
from steelyard.datasets.corpus import Corpus
from steelyard.errors import InputError, SteelyardError
from steelyard.evidence.chunks import chunk_table
from steelyard.evidence.evidence import Evidence
from steelyard.ids import kind_of
from steelyard.qrels import Qrels
from steelyard.retrievers.targets import load_target
from steelyard.user_code import run_user_code


@dataclass(frozen=True)
class OwnChunker:
    """A function from a text to its chunks: (start, end) pairs, or the chunks' texts in their order.

    >>> OwnChunker(str.split).spans("two  words")
    [(0, 3), (5, 10)]
    """

    function: Callable[[str], Any] = field(compare=False)
    name: str = ""

    @property
    def label(self) -> str:
        """Its name, or that of the function."""
        return self.name or str(getattr(self.function, "__name__", type(self.function).__name__))

    def spans(self, text: str) -> list[Span]:
        """Where its chunks are; an error if they are not parts of the text."""
        pairs: list[Span] = []
        for number, piece in enumerate(self.function(text), start=1):
            span = _found(text, piece, pairs[-1] if pairs else (0, 0)) if isinstance(piece, str) else _pair(piece)
            if span is None or not 0 <= span[0] <= span[1] <= len(text):
                raise InputError(
                    f"chunker {self.label}: chunk {number} is {piece!r:.60}, which is not a part of the text. Return "
                    "the chunks' texts as they are in it, in their order, or (start, end) pairs of characters."
                )
            pairs.append(span)
        return pairs


def _found(text: str, piece: str, before: Span) -> Span | None:
    """Where a chunk's text is: right after the chunk before it, or else overlapping it or further on."""
    start = text.find(piece, before[1])
    if start < 0 or text[before[1] : start].strip():
        start = text.find(piece, before[0] + (before[1] > 0))
    return None if start < 0 else (start, start + len(piece))


def _pair(piece: Any) -> Span | None:
    try:
        start, end = piece
    except (TypeError, ValueError):
        raise InputError(f"a chunk is {kind_of(piece)}; expected its text, or a (start, end) pair.") from None
    return (start, end) if type(start) is type(end) is int else None


@dataclass(frozen=True)
class ChunkFile:
    """Finished chunks: a file with chunk_id, doc_id, start and end, and text, which is compared with the documents."""

    path: Path
    name: str = ""

    @property
    def label(self) -> str:
        """Its name, or that of the file."""
        return self.name or self.path.name.partition(".")[0]

    def chunks(self, documents: Mapping[str, str]) -> list[Chunk]:
        """The chunks of the file, with their own ids."""
        table = chunk_table(self.path, documents=documents)
        if table["start"].null_count():
            raise InputError(
                f"{self.path}: {table['start'].null_count():,} of {table.height:,} chunks have no start and end; "
                "expected chunk_id, doc_id, start, end and text, in characters of the document, end exclusive."
            )
        return [
            Chunk(chunk, doc, start, end, documents[doc][start:end])
            for chunk, doc, start, end in table.select("chunk_id", "doc_id", "start", "end").iter_rows()
        ]


def own_chunks(entry: Any, folder: Path) -> OwnChunker | ChunkFile | None:
    """The chunker of an entry `python: ...` or `chunks: ...`, or of a function; None for any other entry."""
    if callable(entry) and not hasattr(entry, "spans"):
        return OwnChunker(entry)
    if not isinstance(entry, Mapping) or not {"python", "chunks"} & set(entry):
        return None
    kind, key = ("python", "target") if "python" in entry else ("chunks", "path")
    given = entry[kind] if isinstance(entry[kind], Mapping) else {key: entry[kind]}
    settings = {**given, **{name: value for name, value in entry.items() if name != kind}}
    if not {key} <= set(settings) <= {key, "name"}:
        raise InputError(f"{kind}: expected `{key}` and `name`, got {', '.join(map(str, settings)) or 'nothing'}.")
    name = str(settings.get("name") or "")
    if kind == "python":
        function = load_target(settings[key], "a chunker", folder)
        if not callable(function):
            raise InputError(f"the chunker {settings[key]!r} is {kind_of(function)}; expected a function of a text.")
        return OwnChunker(function, name)
    path = folder / str(settings[key])
    if not path.is_file():
        raise InputError(f"there is no file of chunks {path}.")
    return ChunkFile(path, name)


OVERLAPS = ("any", "majority", "whole")  # How much of a span a chunk must contain to be relevant.


@dataclass(frozen=True)
class Chunking:
    """One chunking of a dataset: its chunks by id, their qrels, and their mean number of tokens.

    `rules`: the qrels by each of OVERLAPS, if the evidence has spans. Without chunkers, the one chunking has no label.
    """

    label: str | None
    corpus: Mapping[str, str]
    qrels: Qrels
    fingerprint: str
    mean_tokens: float | None = None
    rules: Mapping[str, Qrels] = field(default_factory=dict)

    def specs(self, specs: Sequence[Spec]) -> list[Spec]:
        """The retrievers for this chunking, each with its own index and label."""
        if self.label is None:
            return list(specs)
        chunking_specs = []
        for spec in specs:
            if _runs_on(spec, self.label):
                copy = run_user_code(partial(deepcopy, spec.retriever), spec.label)
                chunking_specs.append(replace(spec, label=f"{spec.label} on {self.label}", retriever=copy))
        return chunking_specs

    def chunk_id(self, doc: str) -> str:
        """The id of a chunk that a retriever returned: with the label of the chunking, if it has its own ids."""
        if self.label is None or doc in self.corpus:
            return doc
        prefixed = f"{self.label}:{doc}"
        return prefixed if prefixed in self.corpus else doc


def _runs_on(spec: Spec, label: str) -> bool:
    """Whether a retriever is run on a chunking: on all of them, unless it names its own."""
    return not spec.chunkers or label in spec.chunkers


def checked_rows(
    chunkers: Sequence[Any], specs: Sequence[Spec], by: str | None, folder: Path
) -> tuple[tuple[str, ...], list[Problem]]:
    """The labels of all rows, every retriever on every chunking or on those that it names; the problems of chunkers."""
    problems: list[Problem] = []
    seen: dict[str, None] = {}
    for number, entry in enumerate(chunkers):
        try:
            labels = [chunker.label for chunker in _entry_chunkers(entry, folder)]
        except SteelyardError as error:
            problems.append((("chunkers", number), str(error)))
            continue
        for label in labels:
            if label in seen:
                text = f"two chunkers are called {label!r}; give one of them another name (name: ...)"
                problems.append((("chunkers", number), text))
            seen[label] = None
    spec_problems = [(spec.entry, _spec_problem(spec, None if problems else seen)) for spec in specs]
    problems += [(("retrievers", entry), problem) for entry, problem in spec_problems if problem]
    if chunkers and by == COMPLEXITY:
        text = "complexity counts relevant documents, which differ by chunking; name a column of the queries"
        problems.append((("by",), text))
    if not chunkers:
        return tuple(spec.label for spec in specs), problems
    return tuple(f"{spec.label} on {label}" for label in seen for spec in specs if _runs_on(spec, label)), problems


def _spec_problem(spec: Spec, labels: Collection[str] | None) -> str:
    """What is wrong with the chunkings of a retriever; `labels` are theirs, None if they are not all known."""
    if labels and spec.run is not None and not spec.chunkers:
        return (
            f"{spec.label}: a finished run has chunks of its own; name their chunking (`chunker: LABEL`), which may be "
            "`chunks: FILE` among the chunkers"
        )
    unknown = [label for label in spec.chunkers if labels is not None and label not in labels]
    if unknown and labels:
        return f"{spec.label}: {unknown_name('chunker', unknown[0], list(labels))}"
    return f"{spec.label}: `chunker` names a chunking, and there are no chunkers" if unknown else ""


def _entry_chunkers(entry: Any, folder: Path) -> Sequence[Chunker | ChunkFile]:
    """The chunkers of an entry: one, or one per combination of settings that are lists."""
    own_chunker = own_chunks(entry, folder)
    if own_chunker is not None:
        return [own_chunker]
    if not isinstance(entry, Mapping) or len(entry) != 1 or not isinstance(next(iter(entry.values())), Mapping):
        return [chunker(entry)]
    ((name, settings),) = entry.items()
    try:
        points = grid_points(settings)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    chunkers = [chunker({name: point.settings}) for point in points]
    if NAME not in settings and len({cutter.label for cutter in chunkers}) == len(chunkers):
        return chunkers
    return [
        chunker({name: {**point.settings, NAME: point.label(cutter.label)}})
        for cutter, point in zip(chunkers, points, strict=True)
    ]


def chunkings_of(
    dataset: Dataset, chunkers: Sequence[Any], evidence: Any, overlap: str, folder: Path
) -> list[Chunking]:
    """The chunkings of a dataset with their qrels, by evidence or by document; without chunkers, the documents."""
    # What retrieved lists depend on: the documents and the queries. The qrels are not part of it.
    content = f"{dataset.corpus.fingerprint}\n{dataset.queries.fingerprint}"
    fingerprint = hashlib.sha256(content.encode()).hexdigest()[:16]
    if not chunkers:
        return [Chunking(None, dataset.corpus, dataset.qrels, fingerprint)]
    resolved_evidence = Evidence.from_qrels(dataset.qrels) if evidence is None else _evidence(evidence, folder)
    cut_by = [chunker for entry in chunkers for chunker in _entry_chunkers(entry, folder)]
    return [_chunking(dataset, chunker, resolved_evidence, overlap, fingerprint) for chunker in cut_by]


def _evidence(source: Any, folder: Path) -> Evidence:
    """The evidence of a bench: a file next to it, a `path` with options, or Evidence itself."""
    if isinstance(source, str):
        return Evidence.read(folder / source)
    if isinstance(source, Mapping) and isinstance(source.get("path"), str):
        options = {str(name): value for name, value in source.items() if name != "path"}
        if isinstance(options.get("corpus"), str):
            options["corpus"] = folder / options["corpus"]
        return Evidence.read(folder / source["path"], **options)
    return Evidence.of(source)


def _chunking(
    dataset: Dataset, chunker: Chunker | ChunkFile, evidence: Evidence, overlap: str, fingerprint: str
) -> Chunking:
    texts = dataset.corpus.texts
    if isinstance(chunker, ChunkFile):
        chunks = chunker.chunks(texts)
    else:
        chunks = run_user_code(lambda: chunk_documents(texts, chunker), f"chunker {chunker.label}")
    if not chunks:
        raise InputError(
            f"chunker {chunker.label}: there are no chunks, because the documents of {dataset.name!r} are empty."
        )
    prefix = f"{chunker.label}:"
    chunks = [replace(chunk, chunk_id=f"{prefix}{chunk.chunk_id}") for chunk in chunks]
    used = OVERLAPS if evidence.spans.height else (overlap,)
    by_rule = {rule: _judged(evidence, chunks, rule, dataset, prefix) for rule in used}
    digest = hashlib.sha256(fingerprint.encode())
    for chunk in chunks:
        digest.update(f"{chunk.chunk_id}\0{chunk.start}\0{chunk.end}\n".encode())
    tokens = sum(len(chunk.text.split()) for chunk in chunks) / len(chunks)
    corpus = {chunk.chunk_id: chunk.text for chunk in chunks}
    rules = by_rule if evidence.spans.height else {}
    return Chunking(chunker.label, corpus, by_rule[overlap], digest.hexdigest()[:16], tokens, rules)


def _judged(evidence: Evidence, chunks: Sequence[Chunk], overlap: str, dataset: Dataset, prefix: str) -> Qrels:
    """The qrels of the chunks by one overlap rule; placeholders for targets in no chunk have the prefix, too."""
    judged = evidence.judge(chunks, overlap=overlap, documents=dataset.corpus.texts)  # type: ignore[arg-type]
    judged_rows = judged.frame.drop_nulls("doc_id").iter_rows()
    rows = [(query, prefix + doc.removeprefix(prefix), grade, target) for query, doc, grade, target in judged_rows]
    qrels = Qrels.from_rows(rows, judged.queries).on_scale_of(judged)
    qrels.notes = judged.notes
    return qrels


def all_chunks(dataset: Dataset, chunkings: Sequence[Chunking]) -> Dataset:
    """The chunks of all chunkings as one dataset, for the result folder; without chunkers, the dataset."""
    if chunkings[0].label is None:
        return dataset
    corpus = {chunk: text for chunking in chunkings for chunk, text in chunking.corpus.items()}
    return replace(dataset, corpus=Corpus.of(corpus), qrels=merged_qrels([chunking.qrels for chunking in chunkings]))


def merged_qrels(parts: Sequence[Qrels]) -> Qrels:
    """The qrels of all chunkings in one."""
    rows = [row for part in parts for row in part.frame.drop_nulls("doc_id").iter_rows()]
    qrels = Qrels.from_rows(rows, parts[0].queries).on_scale_of(parts[0])
    ranges = [part.ranges for part in parts if part.ranges is not None]
    if ranges:
        qrels.ranges = Ranges(ranges[0].spans, pl.concat(part_ranges.chunks for part_ranges in ranges))
    return qrels


def chunking_qrels(qrels: Qrels, label: str) -> Qrels:
    """The qrels of one chunking, out of those of all."""
    rows = qrels.frame.filter(pl.col("doc_id").str.starts_with(f"{label}:")).rows()
    return Qrels.from_rows(rows, qrels.queries).on_scale_of(qrels)
