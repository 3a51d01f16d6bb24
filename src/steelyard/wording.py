"""Numbers and names in sentences: "1 query", "2 queries"; "a, b and c"."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Entry = TypeVar("Entry", bound=Hashable)

SHOWN_NAMES = 6  # Names that a sentence lists; of more names it lists the first ones and counts the others.


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun, and with its verb where the text includes one.

    >>> counted(1, "query", "queries"), counted(2000, "document"), counted(1, "row has", "rows have")
    ('1 query', '2,000 documents', '1 row has')
    """
    return f"{count:,} {worded(count, one, many)}"


def worded(count: int, one: str, many: str = "") -> str:
    """The word that goes with a number, without the number; `many` is `one` with an s by default.

    >>> worded(1, "was", "were"), worded(3, "target")
    ('was', 'targets')
    """
    return one if count == 1 else many or f"{one}s"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Names in a sentence; of more than `most`, the first ones and how many others.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d", "e"], 4)
    ('a, b and c', 'a, b, c and 2 others')
    """
    if len(names) == 1:
        return names[0]
    if most is not None and len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1:,} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def shortened_name(name: str, most: int) -> str:
    """A name without its middle where it is long.

    >>> shortened_name("bm25-stemmed-with-title", 12)
    'bm25-s…title'
    """
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[len(name) - tail :]}"


def notes_by_names(notes: Mapping[str, Iterable[Entry]]) -> dict[tuple[str, ...], list[Entry]]:
    """The notes of each name, grouped by the names that have them.

    >>> notes_by_names({"a": ["is late", "is long"], "b": ["is late", "is long"], "c": ["is late"]})
    {('a', 'b', 'c'): ['is late'], ('a', 'b'): ['is long']}
    """
    names: dict[Entry, list[str]] = {}
    for name, entries in notes.items():
        for note in entries:
            names.setdefault(note, []).append(name)
    grouped: dict[tuple[str, ...], list[Entry]] = {}
    for note, having in names.items():
        grouped.setdefault(tuple(having), []).append(note)
    return grouped


_commands: ContextVar[bool] = ContextVar("_commands", default=False)


@contextmanager
def for_the_command_line() -> Iterator[None]:
    """In this context messages name the options of the command line."""
    before = _commands.set(True)
    try:
        yield
    finally:
        _commands.reset(before)


def in_words(python: str, command: str) -> str:
    """How a message names an option: for a program, or for the command line.

    >>> in_words("format=...", "--from FORMAT")
    'format=...'
    """
    return command if _commands.get() else python
