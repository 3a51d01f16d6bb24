"""Docstrings as Markdown: examples become blocks of code, and lines `name: text` become lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

_PARAMETERS = re.compile(r"(\w+(?:, \w+)*): (\S.*)")


def as_markdown(text: str) -> str:
    """A docstring with its examples between fences and its parameters as a list."""
    lines: list[str] = []
    inside = listed = False
    for line in text.splitlines():
        starts = line.lstrip().startswith(">>>")
        if starts and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines += ["```"]
            inside = False
        found = _PARAMETERS.fullmatch(line)
        if found and not inside and found[1].islower():
            lines += [] if listed else [""]
            names = ", ".join(f"`{name}`" for name in found[1].split(", "))
            line = f"- {names}: {found[2]}"
            listed = True
        elif not line.startswith(" "):
            listed = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class Docstrings(griffe.Extension):
    """Writes every docstring as Markdown."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object after it was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
