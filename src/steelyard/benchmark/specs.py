"""The retrievers of a bench: names with settings, one retriever per combination of settings that are lists."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from steelyard.checks import unknown_name
from steelyard.errors import InputError, SteelyardError, did_you_mean
from steelyard.io.columns import RUN_ROLES
from steelyard.masking import is_secret_name, masked_settings, remember_settings
from steelyard.retrievers import registry
from steelyard.retrievers.base import Retriever, needs_corpus
from steelyard.retrievers.registry import RUN, is_target, retriever_names
from steelyard.safe_text import has_lone_surrogate
from steelyard.user_code import run_user_code

Place: TypeAlias = tuple[Hashable, ...]  # Where something is in bench.yaml: keys and positions, from the outside in.

Problem: TypeAlias = tuple[Place, str]  # A problem of a bench: where it is, and what is wrong.

NAME = "name"

CHUNKER = "chunker"  # The setting of a retriever that names the chunkings that it is run on; without it, all.
LISTS = frozenset({"of", "weights"})  # Settings whose value is a list: they are not swept over.

RUN_SETTINGS = ("path", NAME, "format", *RUN_ROLES)
"""The settings of a finished run: its file, its label, and how it is read."""


@dataclass(frozen=True)
class GridPoint:
    """One combination of settings, and the part of its label that differs; "" if it is the only one."""

    settings: dict[str, Any]
    suffix: str

    def label(self, name: str) -> str:
        """The label of this point, as in `bm25-okapi k1=0.9`."""
        return f"{name} {self.suffix}".rstrip()


def grid_points(settings: Mapping[str, Any], lists: Collection[str] = ()) -> list[GridPoint]:
    """Every combination of the settings that are lists; a setting in `lists` is a list by itself.

    For a list of mappings, the label has the keys whose values differ.

    >>> [point.suffix for point in grid_points({"k1": [0.9, 1.2], "b": 0.4})]
    ['k1=0.9', 'k1=1.2']
    >>> [point.suffix for point in grid_points({"arguments": [{"n": 3, "at": "x"}, {"n": 4, "at": "x"}]})]
    ['n=3', 'n=4']
    """
    swept = {key: value for key, value in settings.items() if isinstance(value, list) and key not in lists}
    for key, values in swept.items():
        if not values:
            raise InputError(f"`{key}` is an empty list; expected a value, or a list of values to try.")
    combinations = [dict(zip(swept, chosen, strict=True)) for chosen in product(*swept.values())]
    only = len(combinations) == 1 and NAME in settings
    return [GridPoint({**settings, **chosen}, "" if only else _suffix(chosen, swept)) for chosen in combinations]


def _suffix(chosen: Mapping[str, Any], swept: Mapping[str, Sequence[Any]]) -> str:
    parts = []
    for key, value in chosen.items():
        number = swept[key].index(value) + 1
        if isinstance(value, Mapping):
            for inner, inner_value in value.items():
                values = {repr(other.get(inner)) if isinstance(other, Mapping) else "" for other in swept[key]}
                if len(swept[key]) == 1 or len(values) > 1:
                    parts.append(_labelled(inner, inner_value, number))
        elif key != NAME:
            parts.append(_labelled(key, value, number))
    return " ".join(parts)


def _labelled(name: Any, value: Any, number: int) -> str:
    """A setting in a label; of a secret, the number of its value.

    >>> _labelled("k1", 0.9, 1), _labelled("api_key", "abc", 2)
    ('k1=0.9', 'api_key=#2')
    """
    return f"{name}=#{number}" if is_secret_name(name) else f"{name}={value}"


@dataclass(frozen=True)
class Spec:
    """One retriever of a bench; `entry`: its number in bench.yaml, `chunkers`: those that it is run on (empty: all)."""

    name: str
    settings: dict[str, Any]
    label: str
    entry: int
    retriever: Retriever | None = field(default=None, compare=False)
    chunkers: tuple[str, ...] = ()

    @property
    def run(self) -> Path | None:
        """The file of a finished run; None for a retriever."""
        return Path(self.settings["path"]) if self.name == RUN else None

    @property
    def needs_corpus(self) -> bool:
        """Whether it indexes a corpus; a finished run and a retriever with an index of its own do not."""
        return self.retriever is not None and needs_corpus(self.retriever)

    @property
    def reading(self) -> dict[str, str]:
        """How a finished run is read, as arguments of `Run.read`: its format, and columns by role."""
        return {key: str(value) for key, value in self.settings.items() if key not in ("path", NAME)}


def without_corpus(spec: Spec) -> str:
    """The problem of a retriever that needs a corpus where there is none."""
    return f"{spec.label} indexes a corpus: add `corpus:` (init --corpus), a file or a folder of documents"


def named_entry(label: str, entry: Any) -> Any:
    """The entry of a bench for a retriever under its label; a name of a retriever has its settings instead.

    >>> named_entry("mine", "my_app:search"), named_entry("bm25-okapi", {"k1": 1.2})
    ({'python': {'target': 'my_app:search', 'name': 'mine'}}, {'bm25-okapi': {'k1': 1.2}})
    """
    if label in retriever_names() and (entry is None or isinstance(entry, Mapping)):
        return {label: entry}
    if isinstance(entry, str) and entry in retriever_names():
        return {entry: {NAME: label}}
    if isinstance(entry, Mapping) and len(entry) == 1:
        ((name, settings),) = entry.items()
        target = {"path" if name == RUN else "target": settings} if is_target(settings) else settings or {}
        return {name: {**target, NAME: label}}
    if isinstance(entry, Retriever) and not isinstance(entry, type):
        return {"python": {"target": entry, NAME: label}}
    return {registry.adapter_of(entry): {"target": entry, NAME: label}}


def specs_of(entries: Sequence[Any], folder: Path) -> tuple[list[Spec], list[Problem]]:
    """All retrievers of the entries of a bench, and all problems."""
    specs: list[Spec] = []
    problems: list[Problem] = []
    for number, entry in enumerate(entries):
        remember_settings(entry)
        try:
            if not isinstance(entry, (str, Mapping)):
                specs.append(run_user_code(partial(_object_spec, entry, number), "a retriever"))
                continue
            name, settings = _name_and_settings(entry)
        except SteelyardError as error:
            problems.append(((number,), str(error)))
            continue
        raw = settings.pop(CHUNKER, None)
        chunkers = tuple(map(str, raw)) if isinstance(raw, (list, tuple)) else () if raw is None else (str(raw),)
        unknown = _unknown_settings(name, settings)
        problems += [((number, name, key), text) for key, text in unknown.items()]
        settings = {key: value for key, value in settings.items() if key not in unknown}
        try:
            points = grid_points(settings, LISTS)
        except SteelyardError as error:
            problems.append(((number, name), f"{name}: {error}"))
            continue
        for point in points:
            try:
                spec = run_user_code(partial(_spec, name, point, number, folder, entries), name)
                specs.append(replace(spec, chunkers=chunkers))
            except SteelyardError as error:
                problems.append(((number, name), str(error)))
    return specs, [*problems, *_repeated_labels(specs)]


def _object_spec(entry: Any, number: int) -> Spec:
    built = registry.from_object(entry)
    name = built.label if built is entry else registry.adapter_of(entry)
    return Spec(name, built.settings(), built.label, number, built)


def _unknown_settings(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings that a retriever does not have, each with its problem; none where there is no such retriever."""
    if name == RUN:
        text = f"a finished run has no setting {{0!r}}; expected one of {', '.join(RUN_SETTINGS)}."
        unknown = [key for key in settings if key not in RUN_SETTINGS]
        return {key: text.format(key) + did_you_mean(key, RUN_SETTINGS) for key in unknown}
    try:
        allowed = registry.retriever_settings(name)
    except SteelyardError:
        return {}
    return {key: f"{name}: {unknown_name('setting', key, allowed)}" for key in settings if key not in allowed}


def _repeated_labels(specs: Sequence[Spec]) -> Iterator[Problem]:
    seen: set[str] = set()
    for spec in specs:
        if has_lone_surrogate(spec.label):
            yield (spec.entry,), f"{spec.label!r} is not a name: it has half of a character"
        if spec.label in seen:
            yield (spec.entry,), f"two retrievers are called {spec.label!r}; give one of them another name (name: ...)"
        seen.add(spec.label)


def _name_and_settings(entry: str | Mapping[Any, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(entry, str):
        return entry, {}
    if not entry:
        raise InputError(f"{entry!r} is not a retriever; expected a name, or `name: {{setting: value}}`")
    name, settings = next(iter(entry.items()))
    others = {key: value for key, value in entry.items() if key != name}
    settings = {"path" if name == RUN else "target": settings} if is_target(settings) else settings
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping):
        raise InputError(f"the settings of {name} are {masked_settings(settings)!r}; expected `setting: value` pairs")
    if isinstance(settings.get(NAME), Mapping):
        raise InputError(f"the name of {name} is {settings[NAME]!r}; expected text")
    if set(others) - {NAME, CHUNKER} and not set(settings) <= {"path", "target"}:
        raise InputError(f"one entry has {', '.join(map(str, entry))}; expected one name with its settings per entry")
    return str(name), {**settings, **others}


def _spec(name: str, point: GridPoint, entry: int, folder: Path, entries: Sequence[Any]) -> Spec:
    settings = dict(point.settings)
    if name == RUN:
        # An absolute path stays as it is.
        path = folder / str(settings.get("path", ""))
        if not os.path.isfile(path):
            raise InputError(f"there is no run file {path}")
        label = point.label(str(settings[NAME])) if NAME in settings else path.stem
        return Spec(RUN, {**settings, "path": str(path)}, label, entry)
    if isinstance(settings.get("of"), list):
        settings["of"] = [_referenced(part, entries) for part in settings["of"]]
    for key in ("of", "first"):
        if key in settings:
            settings[key] = _referenced(settings[key], entries)
    if "folder" in registry.retriever_settings(name):
        settings.setdefault("folder", str(folder))
    built = registry.retriever(name, settings)
    return Spec(name, built.settings(), point.label(built.label), entry, built)


def _referenced(part: Any, entries: Sequence[Any]) -> Any:
    """A part of another retriever: the entry of the bench that it names, by its label or by its retriever."""
    if not isinstance(part, str):
        return part
    by_label: dict[str, Any] = {}
    by_retriever: dict[str, list[str]] = {}
    for entry in entries:
        name, settings = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
        if not isinstance(settings, Mapping) or not isinstance(name, str):
            continue
        label = str(settings.get(NAME, name))
        for point in grid_points(settings, LISTS):
            point_settings = {key: value for key, value in point.settings.items() if key not in (NAME, CHUNKER)}
            by_label.setdefault(point.label(label), {name: point_settings} if point_settings else name)
            by_retriever.setdefault(name, []).append(point.label(label))
            if point.suffix and NAME in settings:
                by_retriever.setdefault(label, []).append(point.label(label))
    if part in by_label:
        return by_label[part]
    labels = by_retriever.get(part, [])
    if len(labels) > 1:
        raise InputError(f"{part!r} may be any of {', '.join(map(repr, labels))}; name one of them")
    if labels:
        return by_label[labels[0]]
    if part in retriever_names():
        return part
    raise InputError(
        f"{part!r} is neither a retriever of this bench ({', '.join(by_label)}) nor the name of one."
        f"{did_you_mean(part, [*by_label, *retriever_names()])}"
    )
