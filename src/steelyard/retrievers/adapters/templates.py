"""Templates: what is sent for a query, with {query}, {k} and ${VARIABLE} filled in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from steelyard.retrievers.base import RetrieverError

_MARK = re.compile(r"\{(query|k)\}")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def filled(template: Any, query: str, k: int) -> Any:
    """The template with its query and k: `{k}` alone becomes the number, within a text its digits.

    >>> filled({"text": "{query}", "size": "{k}", "note": "first {k}"}, "a fox", 10)
    {'text': 'a fox', 'size': 10, 'note': 'first 10'}
    """
    if isinstance(template, Mapping):
        return {key: filled(value, query, k) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [filled(value, query, k) for value in template]
    if not isinstance(template, str):
        return template
    if template == "{k}":
        return k
    return filled_text(template, query, k)


def filled_text(template: str, query: str, k: int) -> str:
    """The text with its query and k; marks within the query stay as they are.

    >>> filled_text("?q={query}&k={k}", "{k}", 5)
    '?q={k}&k=5'
    """
    return _MARK.sub(lambda found: query if found[1] == "query" else str(k), template)


def from_environment(text: str, who: str) -> str:
    """The text with every ${VARIABLE} from the environment, so that secrets stay out of files.

    >>> import os; os.environ["STEELYARD_DOCTEST"] = "word"
    >>> from_environment("Bearer ${STEELYARD_DOCTEST}", "http")
    'Bearer word'
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise RetrieverError(
                f"{who}: the environment has no {found[1]}, which ${{{found[1]}}} stands for."
            )
        return os.environ[found[1]]

    return _VARIABLE.sub(value, text)
