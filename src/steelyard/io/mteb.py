"""MTEB: predictions, `{query: {document: score}}`, alone or under a task's subset and split; and published results.

A file of results is of one model and one task: `{"task_name", "scores": {split: [{"hf_subset", "main_score", metric:
value}]}}`, in a folder per model and revision with model_meta.json beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.checks import is_number
from steelyard.errors import InputError, did_you_mean
from steelyard.io.columns import check_roles
from steelyard.io.files import errors_name, read_bytes, reading, run_name
from steelyard.io.formats import Detected, Format, Shape
from steelyard.io.lists import run_of_lists
from steelyard.io.published import Published
from steelyard.io.text import Source
from steelyard.notes import note
from steelyard.run import Run

META = "mteb_model_meta"
_LEVELS = {1: ("split",), 2: ("subset", "split"), 3: ("task", "subset", "split")}


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The predictions; where there are several, `subset=...` and `split=...` (and `task=...`) select."""
    check_roles(columns, _LEVELS[3], "a file of MTEB predictions")
    content = source.json
    if not isinstance(content, dict):
        raise InputError("not a JSON object; expected MTEB predictions.")
    meta = content.get(META)
    predictions: Any = {name: value for name, value in content.items() if name != META}
    chosen: dict[str, str] = {}
    for level in _LEVELS.get(depth(predictions) - 2, ()):
        chosen[level] = _choose(list(predictions), level, columns.get(level))
        predictions = predictions[chosen[level]]
    if depth(predictions) != 2:
        expected = "{query: {document: score}}, alone or under subset and split"
        raise InputError(f"not a file of MTEB predictions; expected {expected}.")
    model = meta.get("model_name") if isinstance(meta, dict) else None
    name = model if isinstance(model, str) and model else run_name(source.path)
    run = run_of_lists(list(predictions), list(predictions.values()), None, name)
    if chosen:
        run.notes += (note("mteb-selected", **chosen),)
    return run


def depth(content: Any) -> int:
    """How many objects deep the numbers are: 2 for query and document; 0 where there are none.

    >>> depth({"q1": {"d1": 0.5}}), depth({"default": {"test": {"q1": {"d1": 0.5}}}}), depth({"q1": ["d1"]})
    (2, 4, 0)
    """
    if not isinstance(content, dict) or not content:
        return 0
    if set(map(type, content.values())) <= {int, float}:
        return 1
    below = max(map(depth, content.values()))
    return below + 1 if below else 0


def _choose(names: list[str], level: str, named: str | None) -> str:
    chosen = names[0] if named is None and len(names) == 1 else named
    if chosen is not None and chosen in names:
        return chosen
    problem = f"{len(names)} {level}s in one file" if named is None else f"no {level} {named!r}"
    near = did_you_mean(named, names) if named is not None else ""
    raise InputError(f"{problem}; name one of {', '.join(names)} ({level}=...).{near}")


def _detect(shape: Shape) -> Detected | None:
    content = shape.source.json if shape.form == "object" else {}
    nested = all(isinstance(value, (dict, list)) for value in content.values()) and depth(content) > 2
    return Detected("run", "mteb", "run") if META in content or nested else None


FORMATS = (
    Format("mteb", "MTEB predictions, alone or under subset and split", detect=_detect, reads={"run": read_run}),
)


MODEL_META = "model_meta.json"


def read_results(path: Path) -> list[Published]:
    """The results in a file, or in all files of a folder. A model with several revisions is one run per revision."""
    files = [path] if path.is_file() else sorted(path.rglob("*.json"))
    results = [result for file in files if file.name != MODEL_META for result in _results_of(file, path.is_file())]
    if not results:
        problem = f"{path} has no MTEB results; expected JSON files with `task_name` and `scores`"
        raise InputError(f"{problem}, as MTEB writes them to results/MODEL/REVISION/TASK.json.")
    revisions: dict[str, set[str]] = {}
    for result, revision in results:
        revisions.setdefault(result.run, set()).add(revision)
    return [
        replace(result, run=f"{result.run} ({revision[:7]})") if len(revisions[result.run]) > 1 else result
        for result, revision in results
    ]


def _results_of(file: Path, required: bool) -> list[tuple[Published, str]]:
    """The results of a file, with the revision of the model: by model_meta.json, or by the folders MODEL/REVISION."""
    with errors_name(file), reading(file):
        content = json.loads(read_bytes(file))
        if not isinstance(content, dict) or "task_name" not in content or not isinstance(content.get("scores"), dict):
            if required:
                raise InputError("not MTEB results; expected an object with `task_name` and `scores`.")
            return []
        lists = [entries for entries in content["scores"].values() if isinstance(entries, list)]
        parts = [entry for entries in lists for entry in entries if isinstance(entry, dict)]
        if not parts:
            raise InputError("no scores; expected `scores: {split: [{metric: value}]}`.")
        names = [name for name in parts[0] if all(is_number(entry.get(name)) for entry in parts)]
        if not names:
            raise InputError("no metric is a number in every split and subset.")
        scores = {name: sum(float(entry[name]) for entry in parts) / len(parts) for name in names}
        meta = file.parent / MODEL_META
        named = json.loads(read_bytes(meta)) if meta.is_file() else None
        if isinstance(named, dict) and named.get("name"):
            model, revision = str(named["name"]), str(named.get("revision") or file.parent.name)
        else:
            folders = file.resolve().parent
            model, revision = folders.parent.name.replace("__", "/"), folders.name
        return [(Published(model, str(content["task_name"]), scores, len(parts), str(file)), revision)]
