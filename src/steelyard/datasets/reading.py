"""Which layout a dataset is in, and the reader for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.datasets.files import find_file, listing
from steelyard.errors import InputError, did_you_mean
from steelyard.formats.names import bare_name

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset

IR_DATASETS = "ir_datasets:"
_READERS = {
    "beir": ("trio", "read_trio"),
    "autorag": ("autorag", "read_autorag"),
    "multihop-rag": ("multihop", "read_multihop"),
    "llama-index": ("llama_index", "read_llama_index"),
    "msmarco": ("msmarco", "read_msmarco"),
    "csv": ("table", "read_table_dataset"),
    "ir_datasets": ("ir_datasets_ids", "read_ir_datasets"),
}
_LAYOUTS = (
    "corpus.jsonl, queries.jsonl and qrels.tsv (beir); qa.parquet and corpus.parquet (autorag); MultiHopRAG.json "
    "(multihop-rag); collection.tsv, queries.tsv and qrels.tsv (msmarco)"
)


def read_dataset(
    source: str | Path, format: str | None, options: Mapping[str, Any], judged: bool = True
) -> Dataset:
    """Read the dataset with the reader of its format; not `judged`, without judgments that are files of their own."""
    if format is not None and format not in _READERS:
        raise InputError(
            f"there is no dataset format {format!r}; there are {', '.join(_READERS)}.{did_you_mean(format, _READERS)}"
        )
    if isinstance(source, str) and source == "demo" and format is None:
        return _read_demo(options)
    if isinstance(source, str) and (source.startswith(IR_DATASETS) or format == "ir_datasets"):
        return _reader("ir_datasets", options)(source.removeprefix(IR_DATASETS), **options)
    path = Path(source)
    if not path.exists():
        near = (
            did_you_mean(path.name, (entry.name for entry in path.parent.iterdir()))
            if path.parent.is_dir()
            else ""
        )
        raise InputError(
            f"{path}: there is no such folder or file.{near} A dataset is a folder, a file, the name demo, "
            f"or {IR_DATASETS} and an id."
        )
    found = format or (_folder_format(path) if path.is_dir() else _file_format(path))
    reader = _reader(found, options)
    if not judged and "judged" in inspect.signature(reader).parameters:
        options = {**options, "judged": False}
    return reader(path, **options)


def _read_demo(options: Mapping[str, Any]) -> Dataset:
    from importlib.resources import as_file, files

    from steelyard.datasets.dataset import Dataset

    with as_file(files("steelyard.demo") / "data") as folder:
        read = _reader("beir", options)(folder, **options)
    return Dataset("demo", read.corpus, read.queries, read.qrels, read.notes, read.findings)


def _reader(format: str, options: Mapping[str, Any]) -> Callable[..., Dataset]:
    """The reader of a format, once the options are known to be its own."""
    module, name = _READERS[format]
    reader: Callable[..., Dataset] = getattr(import_module(f"steelyard.datasets.{module}"), name)
    known = list(inspect.signature(reader).parameters)[1:]
    for option in options:
        if option not in known:
            raise InputError(
                f"a {format} dataset has no option {option!r}; it has {', '.join(known)}.{did_you_mean(option, known)}"
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
        f"{folder} is in no layout that is known: expected {_LAYOUTS}. It holds {listing(folder)}. "
        "Name the file to read, or the format (format=...)."
    )


def _file_format(path: Path) -> str:
    suffix = bare_name(path).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return "csv"
    if suffix == ".parquet":
        return "autorag"
    if suffix == ".json":
        return _json_format(path)
    if suffix == ".jsonl":
        raise InputError(f"{path} is one file of a JSONL trio: name its folder, {path.parent}.")
    raise InputError(
        f"{path}: its name does not say what it is; name the format (format=...): {', '.join(_READERS)}."
    )


def _json_format(path: Path) -> str:
    from steelyard.formats.source import Source

    head = Source(path).head.lstrip()
    if head.startswith(b"\xef\xbb\xbf"):
        head = head[3:].lstrip()
    return "multihop-rag" if head.startswith(b"[") else "llama-index"
