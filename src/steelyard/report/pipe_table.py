"""Markdown pipe tables with numbers lined up at their decimal point."""

from __future__ import annotations

from collections.abc import Sequence

PADDING = 2


def pipe_table(
    columns: Sequence[str], rows: Sequence[Sequence[str | float | int]], decimals: Sequence[int] | None = None
) -> str:
    """A pipe table; numbers to six significant digits, lined up at the point.

    `decimals` reserves room for so many decimals in each column, and allows no more, so that the
    rows of two tables line up alike.

    >>> print(pipe_table(["run", "AP"], [["a", 1.0], ["b", 0.25]]))
    | run   |   AP |
    |:------|-----:|
    | a     | 1    |
    | b     | 0.25 |
    """
    room = decimals or [0] * len(columns)
    texts = [
        [
            cell if isinstance(cell, str) else _number(cell, place)
            for cell, place in zip(row, room, strict=True)
        ]
        for row in rows
    ]
    numeric = [bool(rows) and all(not isinstance(row[i], str) for row in rows) for i in range(len(columns))]
    lined = [
        _lined([t[i] for t in texts], room[i]) if numeric[i] else [t[i] for t in texts]
        for i in range(len(columns))
    ]
    widths = [
        max([len(name) + PADDING, *map(len, cells)]) for name, cells in zip(columns, lined, strict=True)
    ]
    head = [
        name.rjust(w) if n else name.ljust(w) for name, w, n in zip(columns, widths, numeric, strict=True)
    ]
    rule = ["-" * (w + 1) + ":" if n else ":" + "-" * (w + 1) for w, n in zip(widths, numeric, strict=True)]
    body = [
        [
            cells[r].rjust(w) if n else cells[r].ljust(w)
            for cells, w, n in zip(lined, widths, numeric, strict=True)
        ]
        for r in range(len(rows))
    ]
    return "\n".join([_row(head), f"|{'|'.join(rule)}|", *map(_row, body)])


def _number(value: float, most: int) -> str:
    """A number to six significant digits; with a limit, to so many decimals at most."""
    if value != value:
        return ""
    text = f"{value:g}"
    if most and ("e" in text or len(text.partition(".")[2]) > most):
        return f"{value:.{most}f}".rstrip("0").rstrip(".")
    return text


def _lined(texts: Sequence[str], room: int) -> list[str]:
    """The numbers with blanks behind, so that their points stand under each other."""
    after = [len(text) - text.index(".") - 1 if "." in text else -1 for text in texts]
    most = max([*after, room if room else -1])
    return [text + " " * (most - places) for text, places in zip(texts, after, strict=True)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
