"""Examples of docstrings are shown as code: lines that start with >>> would be quotations in Markdown."""

from __future__ import annotations

from typing import Any

import griffe


def fenced(text: str) -> str:
    """A docstring with its examples between fences."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        starts = line.lstrip().startswith(">>>")
        if starts and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines += ["```"]
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class Examples(griffe.Extension):
    """Puts the examples of every docstring between fences."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object after it was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
