"""Datasets by path or name: which layout it is, which module reads it, and the options of each."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.checks import unknown_name
from steelyard.datasets.dataset import Dataset
from steelyard.errors import InputError, did_you_mean
from steelyard.io.dataset_files import dataset_of_parts, read_folder, read_judged
from steelyard.io.files import bare_name, listing, no_such_file, reading, streams_read_once
from steelyard.io.formats import Layout, every_format
from steelyard.io.unpacking import load_yaml
from steelyard.wording import in_words

IR_DATASETS = "ir_datasets:"
FORMS = (
    "demo, ir_datasets:ID, a path, a path with options, as in {path: data, qrels: judged.tsv}, or the parts of one, as "
    "in {queries: questions.csv, corpus: docs/}"
)
"""How a dataset is named in bench.yaml and on the command line."""


@streams_read_once()
def read_dataset(source: str | Path, format: str | None, options: Mapping[str, Any], judged: bool = True) -> Dataset:
    """Read a dataset with the reader of its format; with `judged=False`, without qrels in files of their own."""
    layouts = _layouts()
    if format is not None and format not in layouts:
        raise InputError(unknown_name("dataset format", format, layouts))
    if isinstance(source, str) and source == "demo" and format is None:
        from importlib.resources import as_file, files

        with as_file(files("steelyard.demo") / "data") as folder:
            return replace(_reader("beir", options)(folder, **options), name="demo")
    if isinstance(source, str) and (source.startswith(IR_DATASETS) or format == "ir_datasets"):
        return _reader("ir_datasets", options)(source.removeprefix(IR_DATASETS), **options)
    path = Path(source)
    if not os.path.exists(path):
        forms = f"A dataset is a folder, a file, the name demo, or {IR_DATASETS} and an id."
        raise InputError(f"{no_such_file(path, 'folder or file').message} {forms}", path)
    # Whether `corpus` or `queries` of a folder is something else than the name of a JSON lines file.
    named = [options[part] for part in ("corpus", "queries") if options.get(part) is not None]
    other_form = any(not isinstance(spec, str) or bare_name(Path(spec)).suffix.lower() != ".jsonl" for spec in named)
    if path.is_dir() and format in (None, "beir") and other_form:
        _reader("beir", options)
        return read_folder(path, options, judged)
    reader = _reader(format or _format_of(path), options)
    if not judged and "judged" in inspect.signature(reader).parameters:
        options = {**options, "judged": False}
    with reading(path):
        return reader(path, **options)


def _layouts() -> dict[str, Layout]:
    """Every format that has datasets, in the order in which they are asked whether a path is their own."""
    return {fmt.name: fmt.dataset for fmt in every_format() if fmt.dataset is not None}


def _reader(format: str, options: Mapping[str, Any]) -> Callable[..., Dataset]:
    """The reader of a format; an error if it does not have one of the options."""
    reader = _layouts()[format].read
    allowed = list(inspect.signature(reader).parameters)[1:]
    for option in options:
        if option not in allowed:
            listed = f"{', '.join(allowed)}.{did_you_mean(option, allowed)}"
            raise InputError(f"a {format} dataset has no option {option!r}; its options are {listed}")
    return reader


def _format_of(path: Path) -> str:
    layouts = _layouts()
    for name, layout in layouts.items():
        if layout.detect(path):
            return name
    how = in_words("format=...", "'{path: PATH, format: FORMAT}'")
    if path.is_dir():
        files = "; ".join(f"{layout.files} ({name})" for name, layout in layouts.items() if layout.files)
        problem = f"unknown layout: expected {files}. The folder holds {listing(path)}"
        raise InputError(f"{problem}. Name the file to read, or the format ({how}).", path)
    suffix = bare_name(path).suffix.lower()
    if suffix == ".jsonl":
        raise InputError(f"one file of a dataset in BEIR's layout; name its folder, {path.parent}.", path)
    raise InputError(f"unknown suffix {suffix!r}; name the format ({how}): {', '.join(layouts)}.", path)


def queries_beside(qrels: Path) -> Path | None:
    """The queries.jsonl of the dataset that a qrels file belongs to: in its folder, or above a folder `qrels`.

    The folder of the dataset may be given instead of the file.
    """
    beside = qrels.parent.parent if qrels.parent.name == "qrels" else qrels.parent
    path = (qrels if qrels.is_dir() else beside) / "queries.jsonl"
    return path if path.is_file() else None


def dataset_named(named: Any, folder: Path = Path(), judged: bool = True) -> Dataset:
    """The dataset named; paths are relative to `folder`, and `judged` is as in Dataset.read.

    A text that starts with { is a mapping in YAML, as in bench.yaml. A qrels file (`qrels`) is searched in the dataset
    first, as the files of other options, then in `folder`; qrels that are no path replace those of the dataset.

    >>> dataset_named("{path: demo, unjudged: drop}")
    Dataset 'demo': 267 documents, 115 queries, 572 judgments, 152 targets
    """
    if isinstance(named, Dataset):
        return named
    path, options = path_and_options(named)
    if path is None:
        return dataset_of_parts(options, folder, judged)
    place = path if path == "demo" or not os.path.exists(folder / path) else folder / path
    qrels = options.get("qrels")
    if isinstance(qrels, str) and not os.path.exists(Path(place) / qrels) and os.path.exists(folder / qrels):
        options["qrels"] = str((folder / qrels).resolve())
    if qrels is not None and not isinstance(qrels, (str, Path)):
        others = {name: value for name, value in options.items() if name != "qrels"}
        dataset = Dataset.read(place, **{**others, "judged": False})
        inside = isinstance(qrels, Mapping) and os.path.exists(Path(place) / str(qrels.get("path")))
        judgments = read_judged(qrels, Path(place) if inside else folder, dataset.queries)
        return replace(dataset, qrels=judgments, notes=(*dataset.notes, *judgments.notes))
    return Dataset.read(place, **{"judged": judged, **options})


def path_and_options(named: Any) -> tuple[str | Path | None, dict[str, Any]]:
    """The path or name of a dataset, and its options; no path for a dataset of parts, as in {queries: FILE}."""
    if isinstance(named, str) and named.lstrip().startswith("{"):
        import yaml

        try:
            named = load_yaml(named)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"the dataset {named!r} is not YAML ({reason}); expected {FORMS}.") from None
    if isinstance(named, (str, Path)):
        return named, {}
    options = {str(key): value for key, value in named.items()} if isinstance(named, Mapping) else {}
    if "queries" in options and "path" not in options:
        return None, options
    path = options.pop("path", None)
    if not isinstance(path, (str, Path)):
        raise InputError(f"the dataset is {named!r}; expected {FORMS}.")
    return path, options
