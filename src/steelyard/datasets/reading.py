"""Files of a dataset's folder, found by name, compressed or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.dataset import Dataset, Row, assemble, qrels_of_rows
from steelyard.datasets.queries import QueriesBuilder
from steelyard.errors import InputError, did_you_mean
from steelyard.io.files import bare_name

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset


_ENDINGS = ("", ".gz", ".gzip", ".zst", ".zstd", ".lz4")


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name, or its compressed form."""
    candidates = (folder / f"{name}{ending}" for ending in _ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def required_file(folder: Path, name: str) -> Path:
    """The file of that name, or its compressed form; an error that shows what is there where it is not."""
    found = find_file(folder, name)
    if found is None:
        raise InputError(f"{folder} has no {name}; it holds {listing(folder)}.")
    return found


def queries_beside(qrels: Path) -> Path | None:
    """The queries of the dataset that judgments belong to: beside their file, above a folder `qrels`, or in the
    dataset's folder where that is what was given."""
    beside = qrels.parent.parent if qrels.parent.name == "qrels" else qrels.parent
    path = (qrels if qrels.is_dir() else beside) / "queries.jsonl"
    return path if path.is_file() else None


def listing(folder: Path) -> str:
    """The names in a folder, the first ten of them, for a message."""
    if not folder.is_dir():
        return "nothing: it is not a folder"
    names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
    more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more if names else "nothing"


IR_DATASETS = "ir_datasets:"
_READERS = {
    "beir": ("trio", "read_trio"),
    "autorag": ("autorag", "read_autorag"),
    "multihop-rag": ("multihop", "read_multihop"),
    "llama-index": ("llama_index", "read_llama_index"),
    "msmarco": ("msmarco", "read_msmarco"),
    "csv": ("table", "read_table_dataset"),
    "ir_datasets": ("reading", "read_ir_datasets"),
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
    from steelyard.io.files import Source

    head = Source(path).head.lstrip()
    if head.startswith(b"\xef\xbb\xbf"):
        head = head[3:].lstrip()
    return "multihop-rag" if head.startswith(b"[") else "llama-index"


FORMS = "demo, ir_datasets:ID, a path, or a path with options, as in {path: data, qrels: judged.tsv}"


def dataset_named(named: Any, folder: Path = Path(), judged: bool = True) -> Dataset:
    """The dataset that is meant; paths are taken from `folder`, and `judged` is as in Dataset.read.

    A text that begins with { is a mapping in YAML, written as bench.yaml has it. A file of judgments
    (`qrels`) is looked for in the dataset first, as other files of its options, then in `folder`.

    >>> dataset_named("{path: demo, unjudged: drop}")
    Dataset 'demo': 267 documents, 115 queries, 572 judgments, 152 targets
    """
    if isinstance(named, Dataset):
        return named
    path, options = path_and_options(named)
    place = path if path == "demo" or not (folder / path).exists() else folder / path
    qrels = options.get("qrels")
    if isinstance(qrels, str) and not (Path(place) / qrels).exists() and (folder / qrels).exists():
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
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the dataset {text!r} is not YAML ({reason}); expected {FORMS}.") from None


_DOCUMENT_TEXTS = ("text", "body", "abstract", "contents")
_QUERY_TEXTS = ("text", "title", "query")


def read_ir_datasets(name: str, *, unjudged: str = "drop") -> Dataset:
    """Documents, queries and judgments of one id, as `beir/scifact/test`."""
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
    documents, asked = CorpusBuilder(), QueriesBuilder()
    for doc in source.docs_iter():
        title = getattr(doc, "title", "") or ""
        documents.add(doc.doc_id, _text(doc, _DOCUMENT_TEXTS), title)
    for query in source.queries_iter():
        asked.add(query.query_id, _text(query, _QUERY_TEXTS))
    qrels, found = qrels_of_rows([_row(judgment) for judgment in source.qrels_iter()])
    return assemble(name, documents, asked, qrels, unjudged, (), found)


def _text(record: Any, names: tuple[str, ...]) -> str:
    """The text under the first of these names that is there, or what the package takes for it."""
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
