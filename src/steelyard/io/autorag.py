"""AutoRAG: a qa table (`qid`, `query`, `retrieval_gt`), a corpus table (`doc_id`, `contents`) and result tables
(`retrieved_ids`, `retrieve_scores`), as Parquet.

`retrieval_gt` is a list of lists: each inner list is a target, satisfied by any of its documents.
One list is one target, and one id is one target of one document, as in AutoRAG itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.datasets.corpus import CorpusBuilder, QueriesBuilder
from steelyard.datasets.dataset import Dataset, assemble
from steelyard.errors import InputError, did_you_mean
from steelyard.evidence.evidence import Evidence
from steelyard.ids import kind_of
from steelyard.io.files import bare_name, listing, required_file
from steelyard.io.formats import Detected, EvidenceReader, Format, Layout, Shape, run_or_qrels
from steelyard.io.frames import NamedColumns, listed_rows, listed_run, rows_of_file
from steelyard.io.lists import list_of, qrels_of_lists, qrels_of_mapping
from steelyard.io.text import Source
from steelyard.lazy import polars as pl
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.wording import counted


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The qrels of a qa table."""
    name, holds = "retrieval_gt", "the ids that answer each question"
    table, queries, notes = listed_rows(source, columns, name, holds, "an AutoRAG qa table")
    lists = table.column(name)
    if any(isinstance(value, list) and value and not isinstance(value[0], list) for value in map(list_of, lists)):
        notes += (note("list-is-one-target"),)
    return qrels_of_lists(queries, [targets(value) for value in lists], notes)


def targets(value: Any) -> list[list[Any]]:
    """A retrieval_gt as a list of lists; empty lists name no document and are dropped.

    >>> targets("a"), targets(["a", "b"]), targets([["a", "b"], ["c"]]), targets([[]])
    ([['a']], [['a', 'b']], [['a', 'b'], ['c']], [])
    """
    groups = list_of(value)
    if isinstance(groups, list) and any(isinstance(item, list) for item in groups):
        return [group for group in groups if group != []]
    return [groups] if groups else []


def read_dataset(path: Path, *, qa: str | None = None, corpus: str | None = None, unjudged: str = "keep") -> Dataset:
    """Read a folder that holds both tables, or the qa file; `corpus` names the other one in its folder."""
    folder = path if path.is_dir() else path.parent
    qa_file = path if path.is_file() else _only(folder, qa, "qa")
    corpus_file = _only(folder, corpus, "corpus")
    queries, judged = _read_queries(qa_file)
    documents = CorpusBuilder()
    for record in _table(corpus_file, {"doc_id": True, "contents": True}).iter_rows(named=True):
        doc_id, text, inner = record.pop("doc_id"), record.pop("contents"), record.pop("metadata", None)
        extra = {**inner, **record} if isinstance(inner, dict) else record
        documents.add(doc_id, text or "", metadata={name: value for name, value in extra.items() if value is not None})
    name = folder.resolve().name if path.is_dir() else path.stem
    return assemble(name, documents, queries, qrels_of_mapping(judged), unjudged)


def _only(folder: Path, named: str | None, kind: str) -> Path:
    """The file named, or the only Parquet file whose name starts with its kind."""
    if named is not None:
        return required_file(folder, named)
    files = sorted(path for path in folder.glob("*.parquet") if path.name.lower().startswith(kind))
    if len(files) == 1:
        return files[0]
    names = ", ".join(path.name for path in files)
    several = f"{len(files)} {kind} files, {names}; select one ({kind}=...)."
    none = f"there is no {kind}.parquet; name the file ({kind}=...). The folder holds {listing(folder)}."
    raise InputError(several if files else none, folder)


def _read_queries(path: Path) -> tuple[QueriesBuilder, dict[str, Any]]:
    frame = _table(path, {"qid": True, "query": True, "retrieval_gt": False})
    builder = QueriesBuilder()
    judged: dict[str, Any] = {}
    problems: list[str] = []
    for row, record in enumerate(frame.iter_rows(named=True), start=1):
        query_id, text, given = record.pop("qid"), record.pop("query"), record.pop("retrieval_gt")
        needed = _named_targets(given)
        wrong = next((doc for group in needed for doc in group if not isinstance(doc, str)), None)
        if wrong is not None:
            problems.append(f"row {row:,}: {kind_of(wrong)} among the ids")
        elif builder.add(query_id, text or "", record):
            judged[query_id] = needed
    if problems:
        headline = f"retrieval_gt is not as expected in {counted(len(problems), 'row')}:"
        expected = "Expected a list of lists of document ids, as [['d1', 'd2'], ['d3']]."
        raise InputError.of_problems(headline, problems, expected, path)
    return builder, judged


def _named_targets(value: Any) -> list[list[Any]]:
    """The targets of a retrieval_gt that name a document: empty lists and empty ids are dropped."""
    groups = [group if isinstance(group, list) else [group] for group in targets(value)]
    named = [[doc for doc in group if doc not in (None, "")] for group in groups]
    return [group for group in named if group]


def _table(path: Path, columns: dict[str, bool]) -> pl.DataFrame:
    """The table, checked for these columns; those marked True hold text. The first one must not be empty."""
    frame = Source(path).parquet
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        problem = f"no column {missing[0]!r}; expected {', '.join(columns)}. The columns are {', '.join(frame.columns)}"
        raise InputError(f"{problem}.{did_you_mean(missing[0], frame.columns)}", path)
    if not frame.height:
        raise InputError("the table has no rows.", path)
    key = next(iter(columns))
    empty = frame[key].is_null().arg_true().to_list()
    if empty:
        headline = f"{key} is empty in {counted(len(empty), 'row')}:"
        raise InputError.of_problems(headline, [f"row {row + 1:,}" for row in empty], "Fill them in.", path)
    texts = [name for name, text in columns.items() if text]
    for name in texts:
        if frame[name].dtype != pl.String and not frame[name].dtype.is_integer():
            raise InputError(f"column {name!r} holds {frame[name].dtype}; expected text.", path)
    return frame.with_columns(pl.col(texts).cast(pl.String))


def read_evidence(records: Sequence[Mapping[str, Any]], corpus: str | Path | None = None) -> Evidence:
    """The targets of a qa table.

    With `corpus`, the corpus table, a document with a place in its source (path and start_end_idx)
    is evidence by that span, so that it survives re-chunking; without it, by its id.
    """
    queries, notes = NamedColumns(records).query_ids()
    places: dict[str, dict[str, Any]] = {}
    if corpus is not None:
        for row in corpus_chunks(NamedColumns(rows_of_file(Source(Path(corpus)))).as_frame()).iter_rows(named=True):
            named = str(row.get("chunk_id") or row["doc_id"])
            span = {"doc_id": str(row["doc_id"]), "start": row.get("start"), "end": row.get("end")}
            places[named] = span if span["start"] is not None else {"doc_id": named}
    evidence: dict[str, Any] = {}
    for query, record in zip(queries, records, strict=True):
        groups = _named_targets(record.get("retrieval_gt"))
        lost = [doc for group in groups for doc in group if corpus is not None and doc not in places]
        if lost:
            raise InputError(f"query {query!r} names the document {lost[0]!r}, which is not in {corpus}.")
        evidence[query] = [[places.get(doc, {"doc_id": doc}) for doc in group] for group in groups] or None
    return Evidence(evidence, notes=notes)


def corpus_chunks(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of a corpus table (doc_id, contents, path, start_end_idx) as chunks of the documents at their paths.

    A table without start_end_idx is unchanged. start_end_idx holds the index of the last character, so the end is one
    more; equal indices mean that the place is unknown. The file's name, which AutoRAG puts before a text, is removed.
    """
    if "start_end_idx" not in frame.columns:
        return frame
    first, last = (pl.col("start_end_idx").list.get(at, null_on_oob=True) for at in (0, 1))
    placed_rows = last > first
    placed = frame.with_columns(start=pl.when(placed_rows).then(first), end=pl.when(placed_rows).then(last + 1))
    length = pl.col("end") - pl.col("start")
    own_text = pl.col("contents").str.slice(pl.col("contents").str.len_chars().cast(pl.Int64) - length)
    text = pl.when(pl.col("end") > pl.col("start")).then(own_text).otherwise(pl.col("contents"))
    document = pl.coalesce(pl.col("path"), pl.col("doc_id")) if "path" in frame.columns else pl.col("doc_id")
    return placed.select(chunk_id="doc_id", doc_id=document, start="start", end="end", text=text)


def _detect(shape: Shape) -> Detected | None:
    names = set(shape.names)
    if shape.form in ("json", "jsonl") and not {"retrieval_gt", "retrieve_scores"} & names:
        # retrieved_ids alone is a name that any tool may use.
        return None
    return run_or_qrels("autorag", "retrieved_ids" in names, "retrieval_gt" in names)


def _is_dataset(path: Path) -> bool:
    if path.is_dir():
        return any(entry.name.lower().endswith(".parquet") for entry in path.iterdir())
    return bare_name(path).suffix.lower() == ".parquet"


_read_run = partial(listed_run, name="retrieved_ids", called="an AutoRAG result table", scores="retrieve_scores")

FORMATS = (
    Format(
        name="autorag",
        description="AutoRAG's qa table (retrieval_gt) and result table (retrieved_ids)",
        detect=_detect,
        reads={"run": _read_run, "qrels": read_qrels},
        dataset=Layout(read_dataset, _is_dataset, "qa.parquet and corpus.parquet"),
        evidence=EvidenceReader(read_evidence, ("retrieval_gt",)),
    ),
)
