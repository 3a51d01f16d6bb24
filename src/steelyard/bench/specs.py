"""The retrievers of a bench: what was written, spread into a grid, each with its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.bench.grids import Point, points_of
from steelyard.errors import SteelyardError, did_you_mean
from steelyard.formats.frames import RUN_ROLES
from steelyard.retrievers.base import Retriever
from steelyard.retrievers.registry import RUN, from_object, is_target, retriever, retriever_settings

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
