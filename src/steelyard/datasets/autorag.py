"""AutoRAG's pair of Parquet files: qa (qid, query, retrieval_gt) and corpus (doc_id, contents).

`retrieval_gt` is a list of lists: each inner list is one target, satisfied by any document in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.dataset import assemble
from steelyard.datasets.queries import QueriesBuilder
from steelyard.datasets.reading import listing, required_file
from steelyard.errors import InputError, did_you_mean, problem_report
from steelyard.ids import kind_of
from steelyard.io.autorag import targets
from steelyard.io.files import Source
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.datasets.dataset import Dataset


def read_autorag(
    path: Path, *, qa: str | None = None, corpus: str | None = None, unjudged: str = "keep"
) -> Dataset:
    """Read a folder that holds both files, or the qa file, with `corpus` naming the other beside it."""
    folder = path if path.is_dir() else path.parent
    questions = path if path.is_file() else _only(folder, qa, "qa")
    contents = _only(folder, corpus, "corpus")
    asked, judged = _read_queries(questions)
    documents = _read_corpus(contents)
    name = folder.resolve().name if path.is_dir() else path.stem
    return assemble(name, documents, asked, Qrels(judged), unjudged)


def _only(folder: Path, named: str | None, kind: str) -> Path:
    """The file named, or the only Parquet file whose name begins with its kind."""
    if named is not None:
        return required_file(folder, named)
    found = sorted(path for path in folder.glob("*.parquet") if path.name.lower().startswith(kind))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found)
        raise InputError(f"{folder} has {len(found)} {kind} files, {names}: say which ({kind}=...).")
    raise InputError(
        f"{folder} has no {kind}.parquet: name the file ({kind}=...). It holds {listing(folder)}."
    )


def _read_queries(path: Path) -> tuple[QueriesBuilder, dict[str, Any]]:
    frame = _table(path, {"qid": True, "query": True, "retrieval_gt": False})
    builder = QueriesBuilder()
    judged: dict[str, Any] = {}
    problems: list[str] = []
    for row, record in enumerate(frame.iter_rows(named=True), start=1):
        query_id, text, truth = record.pop("qid"), record.pop("query"), record.pop("retrieval_gt")
        try:
            needed = _targets(truth)
        except InputError as error:
            problems.append(f"row {row:,}: {error}")
            continue
        if builder.add(query_id, text or "", record):
            judged[query_id] = needed
    if problems:
        raise InputError(
            problem_report(
                f"{path}: retrieval_gt is not as expected in {counted(len(problems), 'row')}:",
                problems,
                "Expected a list of lists of document ids, as [['d1', 'd2'], ['d3']].",
            )
        )
    return builder, judged


def _targets(truth: Any) -> list[list[str]]:
    """The targets that name a document: an empty list, or an empty id, stands for none."""
    groups = [group if isinstance(group, list) else [group] for group in targets(truth)]
    wrong = [doc for group in groups for doc in group if doc is not None and not isinstance(doc, str)]
    if wrong:
        raise InputError(f"{kind_of(wrong[0])} among the ids")
    named = [[doc for doc in group if doc] for group in groups]
    return [group for group in named if group]


def _read_corpus(path: Path) -> CorpusBuilder:
    frame = _table(path, {"doc_id": True, "contents": True})
    builder = CorpusBuilder()
    for record in frame.iter_rows(named=True):
        doc_id, text, inner = record.pop("doc_id"), record.pop("contents"), record.pop("metadata", None)
        extra = {**inner, **record} if isinstance(inner, dict) else record
        builder.add(
            doc_id, text or "", metadata={name: value for name, value in extra.items() if value is not None}
        )
    return builder


def _table(path: Path, wanted: dict[str, bool]) -> pl.DataFrame:
    """The table, with the columns that are wanted, the marked ones as text."""
    import polars as pl

    frame = Source(path).parquet
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        near = did_you_mean(missing[0], frame.columns)
        raise InputError(
            f"{path} has no column {missing[0]!r}; expected {', '.join(wanted)}. Its columns are {', '.join(frame.columns)}.{near}"
        )
    if not frame.height:
        raise InputError(f"{path} holds no rows.")
    key = next(iter(wanted))
    empty = frame[key].is_null().arg_true().to_list()
    if empty:
        rows = [f"row {row + 1:,}" for row in empty]
        raise InputError(
            problem_report(f"{path}: {key} is empty in {counted(len(rows), 'row')}:", rows, "Fill them in.")
        )
    texts = [name for name, text in wanted.items() if text]
    for name in texts:
        if frame[name].dtype != pl.String and not frame[name].dtype.is_integer():
            raise InputError(f"{path}: column {name!r} holds {frame[name].dtype}; expected text.")
    return frame.with_columns(pl.col(texts).cast(pl.String))
