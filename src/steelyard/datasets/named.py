"""A dataset as it is named in bench.yaml and on the command line: a name, a path, or `{path: ...}` with options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.datasets.dataset import Dataset
from steelyard.errors import InputError

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
