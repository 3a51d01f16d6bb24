"""Datasets by path or name: which layout it is, which module reads it, and the options of each."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from steelyard.checks import unknown_name
from steelyard.datasets.corpus import CorpusBuilder, QueriesBuilder
from steelyard.datasets.dataset import Dataset, assemble, qrels_of_rows
from steelyard.errors import InputError, did_you_mean
from steelyard.io.files import bare_name, find_file, listing, no_such_file, reading, streams_read_once
from steelyard.io.text import Source
from steelyard.io.unpacking import load_yaml
from steelyard.qrels import Row

IR_DATASETS = "ir_datasets:"
_READERS = {
    "beir": "steelyard.io.beir:read_dataset",
    "autorag": "steelyard.io.autorag:read_dataset",
    "multihop-rag": "steelyard.io.multihop_rag:read_dataset",
    "llama-index": "steelyard.io.llama_index:read_dataset",
    "msmarco": "steelyard.io.msmarco:read_dataset",
    "csv": "steelyard.datasets.table:read_table_dataset",
    "ir_datasets": "steelyard.datasets.reading:read_ir_datasets",
}
_LAYOUTS = (
    "corpus.jsonl, queries.jsonl and qrels.tsv (beir); qa.parquet and corpus.parquet (autorag); MultiHopRAG.json "
    "(multihop-rag); collection.tsv, queries.tsv and qrels.tsv (msmarco)"
)
FORMS = "demo, ir_datasets:ID, a path, or a path with options, as in {path: data, qrels: judged.tsv}"
"""How a dataset is named in bench.yaml and on the command line."""


@streams_read_once()
def read_dataset(
    source: str | Path, format: str | None, options: Mapping[str, Any], judged: bool = True
) -> Dataset:
    """Read a dataset with the reader of its format; with `judged=False`, without qrels in files of their own."""
    if format is not None and format not in _READERS:
        raise InputError(unknown_name("dataset format", format, _READERS))
    if isinstance(source, str) and source == "demo" and format is None:
        return _read_demo(options)
    if isinstance(source, str) and (source.startswith(IR_DATASETS) or format == "ir_datasets"):
        return _reader("ir_datasets", options)(source.removeprefix(IR_DATASETS), **options)
    path = Path(source)
    if not os.path.exists(path):
        error = no_such_file(path, "folder or file")
        forms = f"A dataset is a folder, a file, the name demo, or {IR_DATASETS} and an id."
        raise InputError(f"{error.message} {forms}", path)
    found = format or (_folder_format(path) if path.is_dir() else _file_format(path))
    reader = _reader(found, options)
    if not judged and "judged" in inspect.signature(reader).parameters:
        options = {**options, "judged": False}
    with reading(path):
        return reader(path, **options)


def _read_demo(options: Mapping[str, Any]) -> Dataset:
    from importlib.resources import as_file, files

    with as_file(files("steelyard.demo") / "data") as folder:
        return replace(_reader("beir", options)(folder, **options), name="demo")


def _reader(format: str, options: Mapping[str, Any]) -> Callable[..., Dataset]:
    """The reader of a format; an error if it does not have one of the options."""
    module, _, name = _READERS[format].partition(":")
    reader: Callable[..., Dataset] = getattr(import_module(module), name)
    known = list(inspect.signature(reader).parameters)[1:]
    for option in options:
        if option not in known:
            raise InputError(
                f"a {format} dataset has no option {option!r}; its options are {', '.join(known)}."
                f"{did_you_mean(option, known)}"
            )
    return reader


def _folder_format(folder: Path) -> str:
    if find_file(folder, "corpus.jsonl") or find_file(folder, "queries.jsonl"):
        return "beir"
    names = [path.name.lower() for path in folder.iterdir()]
    if any(name.endswith(".parquet") for name in names):
        return "autorag"
    if any(name.startswith("multihoprag") and ".json" in name for name in names):
        return "multihop-rag"
    if any(name.startswith(("collection.tsv", "msmarco-docs.tsv")) for name in names):
        return "msmarco"
    raise InputError(
        f"unknown layout: expected {_LAYOUTS}. The folder holds {listing(folder)}. "
        "Name the file to read, or the format (format=...).",
        folder,
    )


def _file_format(path: Path) -> str:
    suffix = bare_name(path).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return "csv"
    if suffix == ".parquet":
        return "autorag"
    if suffix == ".json":
        return "multihop-rag" if Source(path).start.startswith(b"[") else "llama-index"
    if suffix == ".jsonl":
        raise InputError(f"one file of a dataset in BEIR's layout; name its folder, {path.parent}.", path)
    raise InputError(f"unknown suffix {suffix!r}; name the format (format=...): {', '.join(_READERS)}.", path)


def queries_beside(qrels: Path) -> Path | None:
    """The queries.jsonl of the dataset that a qrels file belongs to: in its folder, or above a folder `qrels`.

    The folder of the dataset may be given instead of the file.
    """
    beside = qrels.parent.parent if qrels.parent.name == "qrels" else qrels.parent
    path = (qrels if qrels.is_dir() else beside) / "queries.jsonl"
    return path if path.is_file() else None


# Datasets as bench.yaml and the command line name them


def dataset_named(named: Any, folder: Path = Path(), judged: bool = True) -> Dataset:
    """The dataset named; paths are relative to `folder`, and `judged` is as in Dataset.read.

    A text that starts with { is a mapping in YAML, as in bench.yaml. A qrels file (`qrels`) is
    searched in the dataset first, as the files of other options, then in `folder`.

    >>> dataset_named("{path: demo, unjudged: drop}")
    Dataset 'demo': 267 documents, 115 queries, 572 judgments, 152 targets
    """
    if isinstance(named, Dataset):
        return named
    path, options = path_and_options(named)
    place = path if path == "demo" or not os.path.exists(folder / path) else folder / path
    qrels = options.get("qrels")
    if isinstance(qrels, str) and not os.path.exists(Path(place) / qrels) and os.path.exists(folder / qrels):
        options["qrels"] = str((folder / qrels).resolve())
    return Dataset.read(place, **{"judged": judged, **options})


def path_and_options(named: Any) -> tuple[str | Path, dict[str, Any]]:
    """The path or name of a dataset, and its options."""
    if isinstance(named, str) and named.lstrip().startswith("{"):
        named = _mapping(named)
    if isinstance(named, (str, Path)):
        return named, {}
    options = {str(key): value for key, value in named.items()} if isinstance(named, Mapping) else {}
    path = options.pop("path", None)
    if not isinstance(path, (str, Path)):
        raise InputError(f"the dataset is {named!r}; expected {FORMS}.")
    return path, options


def _mapping(text: str) -> Any:
    import yaml

    try:
        return load_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the dataset {text!r} is not YAML ({reason}); expected {FORMS}.") from None


# ir_datasets

_DOCUMENT_TEXTS = ("text", "body", "abstract", "contents")
_QUERY_TEXTS = ("text", "title", "query")


def read_ir_datasets(name: str, *, unjudged: str = "drop") -> Dataset:
    """Documents, queries and qrels of one id of ir_datasets, as `beir/scifact/test`."""
    try:
        ir_datasets = import_module("ir_datasets")
    except ImportError:
        raise InputError(
            f"ir_datasets:{name} needs the package ir_datasets: pip install ir_datasets, or read a folder."
        ) from None
    try:
        source = ir_datasets.load(name)
    except KeyError:
        known = list(getattr(ir_datasets, "registry", []))
        raise InputError(f"ir_datasets has no dataset {name!r}.{did_you_mean(name, known)}") from None
    lacking = [part for part in ("docs", "queries", "qrels") if not getattr(source, f"has_{part}")()]
    if lacking:
        raise InputError(
            f"ir_datasets:{name} has no {' and no '.join(lacking)}; name a subset that has them, as {name}/test."
        )
    documents, queries = CorpusBuilder(), QueriesBuilder()
    for doc in source.docs_iter():
        title = getattr(doc, "title", "") or ""
        documents.add(doc.doc_id, _text(doc, _DOCUMENT_TEXTS), title)
    for query in source.queries_iter():
        queries.add(query.query_id, _text(query, _QUERY_TEXTS))
    qrels, findings = qrels_of_rows([_row(judgment) for judgment in source.qrels_iter()])
    return assemble(name, documents, queries, qrels, unjudged, (), findings)


def _text(record: Any, names: tuple[str, ...]) -> str:
    """The first of these fields that is a text, or the default text of the package."""
    for name in names:
        value = getattr(record, name, None)
        if isinstance(value, str):
            return value
    return str(record.default_text())


def _row(judgment: Any) -> Row:
    subtopic = getattr(judgment, "subtopic_id", None)
    return (
        judgment.query_id,
        judgment.doc_id,
        float(judgment.relevance),
        None if subtopic is None else str(subtopic),
    )
