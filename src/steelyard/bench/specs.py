"""YAML with the line of every value, so that a message can say where."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from steelyard.errors import InputError, SteelyardError, did_you_mean, problem_report
from steelyard.io.columns import RUN_ROLES
from steelyard.retrievers.base import Retriever
from steelyard.retrievers.registry import RUN, from_object, is_target, retriever, retriever_settings

Place = tuple[Hashable, ...]


@dataclass(frozen=True)
class Located:
    """A document's value and the line of each of its parts."""

    value: Any
    lines: dict[Place, int]

    def line(self, place: Place) -> int | None:
        """The line of a part, or of the nearest part around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)


def read_located(path: Path) -> Located:
    """Read a YAML file; keys given twice are an error, as they hide what was meant."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}).") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not YAML: {error}") from None
    lines: dict[Place, int] = {}
    twice: list[str] = []
    loader = yaml.SafeLoader("")
    value = _built(node, (), lines, twice, loader) if node is not None else None
    if twice:
        raise InputError(problem_report(f"{path}: keys given twice:", twice, "Keep one of each."))
    return Located(value, lines)


def _built(node: Any, place: Place, lines: dict[Place, int], twice: list[str], loader: Any) -> Any:
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        built: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if key in built:
                twice.append(f"line {key_node.start_mark.line + 1}: {key}")
            built[key] = _built(value_node, (*place, key), lines, twice, loader)
            lines[place + (key,)] = key_node.start_mark.line + 1
        return built
    if isinstance(node, yaml.SequenceNode):
        return [
            _built(item, (*place, number), lines, twice, loader) for number, item in enumerate(node.value)
        ]
    return loader.construct_object(node, deep=True)


NAME = "name"


@dataclass(frozen=True)
class Point:
    """One combination: the settings it stands for, and what tells it from the others; "" where it is the only one."""

    settings: dict[str, Any]
    said: str

    def label(self, given: str) -> str:
        """A label with what tells this point from the others.

        >>> Point({"k1": 0.9}, "k1=0.9").label("bm25-okapi")
        'bm25-okapi k1=0.9'
        """
        return f"{given} {self.said}".rstrip()


def points_of(settings: Mapping[str, Any], whole: Collection[str] = ()) -> list[Point]:
    """Every combination of the settings that were given as lists; those in `whole` are lists by nature.

    Of mappings in a list, what differs between them is said.

    >>> [point.said for point in points_of({"k1": [0.9, 1.2], "b": 0.4})]
    ['k1=0.9', 'k1=1.2']
    >>> [point.said for point in points_of({"arguments": [{"n": 3, "at": "x"}, {"n": 4, "at": "x"}]})]
    ['n=3', 'n=4']
    """
    lists = {key: value for key, value in settings.items() if isinstance(value, list) and key not in whole}
    for key, values in lists.items():
        if not values:
            raise InputError(f"`{key}` is an empty list; expected a value, or a list of values to try.")
    combinations = [dict(zip(lists, chosen, strict=True)) for chosen in product(*lists.values())]
    alone = len(combinations) == 1 and NAME in settings
    return [Point({**settings, **chosen}, "" if alone else _said(chosen, lists)) for chosen in combinations]


def _said(chosen: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> str:
    parts = []
    for key, value in chosen.items():
        if isinstance(value, Mapping):
            parts += [f"{inner}={held}" for inner, held in value.items() if _differs(inner, lists[key])]
        elif key != NAME:
            parts.append(f"{key}={value}")
    return " ".join(parts)


def _differs(key: Any, among: Sequence[Any]) -> bool:
    """Whether the mappings of a list have other values under a key."""
    held = [repr(each.get(key)) if isinstance(each, Mapping) else "" for each in among]
    return len(among) == 1 or len(set(held)) > 1


LISTS = frozenset({"of", "weights"})
"""Settings that are lists by nature: they do not spread into a grid."""

RUN_SETTINGS = ("path", "name", "format", *RUN_ROLES)
"""What may be said of a finished run: where it is, the row's label, and how it is read."""


@dataclass(frozen=True)
class Spec:
    """One retriever to run: its name, its settings, the label of its row, and where it was written."""

    name: str
    settings: dict[str, Any]
    label: str
    place: int
    retriever: Retriever | None = field(default=None, compare=False)

    @property
    def run(self) -> Path | None:
        """The finished run that joins the table, where it is one."""
        return Path(self.settings["path"]) if self.name == RUN else None

    @property
    def reading(self) -> dict[str, str]:
        """How the finished run is read, as `Run.read` takes it: its format, and columns by role."""
        return {key: str(value) for key, value in self.settings.items() if key not in ("path", "name")}


def specs_of(entries: Sequence[Any], folder: Path) -> tuple[list[Spec], list[tuple[tuple[Any, ...], str]]]:
    """Every retriever that was asked for, and every problem as (place, what)."""
    specs: list[Spec] = []
    problems: list[tuple[tuple[Any, ...], str]] = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, (str, Mapping)):
            try:
                specs.append(_spec_of_object(entry, place))
            except SteelyardError as error:
                problems.append(((place,), str(error)))
            continue
        parsed = _entry(entry)
        if isinstance(parsed, str):
            problems.append(((place,), parsed))
            continue
        name, settings = parsed
        try:
            points = points_of(settings, LISTS)
        except SteelyardError as error:
            problems.append(((place, name), f"{name}: {error}"))
            continue
        for point in points:
            try:
                specs.append(_spec(name, point, place, folder, entries))
            except SteelyardError as error:
                problems.append(((place, name), str(error)))
    seen: dict[str, int] = {}
    for spec in specs:
        if spec.label in seen:
            problems.append(
                (
                    (spec.place,),
                    f"two retrievers are called {spec.label!r}; give one a name of its own (name: ...)",
                )
            )
        seen[spec.label] = spec.place
    return specs, problems


def _spec_of_object(given: Any, place: int) -> Spec:
    built = from_object(given)
    return Spec(built.label if built is given else "python", built.settings(), built.label, place, built)


def _entry(entry: str | Mapping[Any, Any]) -> tuple[str, dict[str, Any]] | str:
    """The name and settings of an entry, or what is wrong with it."""
    if isinstance(entry, str):
        return entry, {}
    if not entry:
        return f"{entry!r} is not a retriever; expected a name, or `name: {{setting: value}}`"
    name, settings = next(iter(entry.items()))
    extra = {key: value for key, value in entry.items() if key != name}
    if is_target(settings):
        settings = {"path" if name == RUN else "target": settings}
    if settings is None:
        settings = {}
    if not isinstance(settings, Mapping):
        return f"the settings of {name} are {settings!r}; expected `setting: value` pairs"
    if set(extra) - {"name"} and not set(settings) <= {"path", "target"}:
        return f"one entry holds {', '.join(map(str, entry))}; a retriever is one name with its settings"
    return str(name), {**settings, **extra}


def _spec(name: str, point: Point, place: int, folder: Path, entries: Sequence[Any]) -> Spec:
    settings = point.settings
    if name == RUN:
        path = Path(str(settings.get("path", "")))
        settings = {**settings, "path": str(path if path.is_absolute() else folder / path)}
        if not Path(settings["path"]).is_file():
            raise SteelyardError(f"there is no run file {settings['path']}")
        for key in settings:
            if key not in RUN_SETTINGS:
                raise SteelyardError(
                    f"a finished run has no setting {key!r}; it has {', '.join(RUN_SETTINGS)}."
                    f"{did_you_mean(key, RUN_SETTINGS)}"
                )
        label = point.label(str(settings["name"])) if "name" in settings else path.stem
        return Spec(name, settings, label, place)
    given = dict(settings)
    if "of" in given:
        given["of"] = [_referred(part, entries) for part in given["of"]]
    if "first" in given:
        given["first"] = _referred(given["first"], entries)
    if "folder" in retriever_settings(name):
        given.setdefault("folder", str(folder))
    built = retriever(name, given)
    return Spec(name, built.settings(), point.label(built.label), place, built)


def _referred(part: Any, entries: Sequence[Any]) -> Any:
    """A retriever that another is made of: one of the bench's own, with the settings it has there."""
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(part, str):
            continue
        name, settings = next(iter(entry.items()))
        if not isinstance(settings, Mapping):
            continue
        points = points_of(settings, LISTS)
        labels = [point.label(str(settings.get("name", name))) for point in points]
        if part in (name, settings.get("name")) and len(points) > 1:
            raise SteelyardError(f"{part!r} stands for {', '.join(map(repr, labels))} here; name one of them")
        for point, label in zip(points, labels, strict=True):
            if part in (label, name, settings.get("name")):
                return {name: {key: value for key, value in point.settings.items() if key != "name"}}
    return part
