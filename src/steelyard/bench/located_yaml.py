"""YAML with the line of every value, so that a message can say where."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from steelyard.errors import InputError, problem_report

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
