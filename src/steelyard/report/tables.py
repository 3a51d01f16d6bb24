"""One table, written for a terminal, Markdown, CSV or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

Cell: TypeAlias = str | int | float | None

SHORTEST_ALIKE = 8
"""Beginnings and ends that names share are left out from this many characters on."""

PROSE = 30
"""A cell longer than this is prose, which can be folded."""


@dataclass(frozen=True)
class Table:
    """Columns and rows, and a title and a note below where it needs them. Numbers stand to the right; a missing
    one is left blank.

    The first columns, as many as `keys`, say what a row is: where a table is too wide for a screen, they
    stand again before the columns that go below.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    digits: int = 4
    title: str = ""
    keys: int = 1
    note: str = ""

    def shown(self) -> list[list[str]]:
        """The cells as text, numbers rounded."""
        return [[self._text(cell) for cell in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [
            any(isinstance(row[i], (int, float)) for row in self.rows)
            and not any(isinstance(row[i], str) for row in self.rows)
            for i in range(len(self.columns))
        ]

    def prose(self) -> bool:
        """Whether a cell beside the keys is so long that it is to be folded, not kept on one line."""
        return any(len(cell) > PROSE for row in self.shown() for cell in row[self.keys :])

    def _text(self, cell: Cell) -> str:
        if cell is None or (isinstance(cell, float) and cell != cell):
            return ""
        return f"{cell:.{self.digits}f}" if isinstance(cell, float) else str(cell)


def fitted(table: Table, width: int, gap: int = 2) -> list[Table]:
    """The table as several, one below the other, so that none is wider than a screen, if that can be done.

    What all names of a table that is too wide begin or end with is left out. A table with prose in it stays
    one, and no more than half of the screen is reckoned for the keys: whoever prints it folds what is too long.

    >>> wide = Table(["run", "nDCG@10", "AP", "RR"], [["bm25", 0.5, 0.25, 0.75]])
    >>> [part.columns for part in fitted(wide, 22)]
    [['run', 'nDCG@10', 'AP'], ['run', 'RR']]
    """
    if sum(_widths(table, gap)) - gap <= width:
        return [table]
    table = shortened(table)
    widths = _widths(table, gap)
    if table.prose() or sum(widths) - gap <= width:
        return [table]
    room = width + gap - min(sum(widths[: table.keys]), width // 2)
    parts: list[list[int]] = [[]]
    for place in range(table.keys, len(table.columns)):
        if parts[-1] and sum(widths[i] for i in [*parts[-1], place]) > room:
            parts.append([])
        parts[-1].append(place)
    return [
        replace(
            table,
            columns=[table.columns[i] for i in kept],
            rows=[[row[i] for i in kept] for row in table.rows],
            title=table.title if number == 0 else "",
            note=table.note if number == len(parts) - 1 else "",
        )
        for number, part in enumerate(parts)
        for kept in [[*range(table.keys), *part]]
    ]


def _widths(table: Table, gap: int) -> list[int]:
    lines = [list(table.columns), *table.shown()]
    return [max(len(line[i]) for line in lines) + gap for i in range(len(table.columns))]


def shortened(table: Table) -> Table:
    """The table with what all names in its keys begin or end with left out, and said in its note.

    >>> runs = [["bm25-stemmed-and-lowercase", 0.5], ["dense-stemmed-and-lowercase", 0.4]]
    >>> short = shortened(Table(["run", "AP"], runs))
    >>> [row[0] for row in short.rows], short.note
    (['bm25…', 'dense…'], 'run: … is -stemmed-and-lowercase at the end.')
    """
    places = [
        i for i in range(table.keys) if table.rows and all(isinstance(row[i], str) for row in table.rows)
    ]
    names = {str(row[i]) for row in table.rows for i in places}
    head, tail = shared_ends(names)
    if not head and not tail:
        return table
    end = -len(tail) if tail else None

    def short(name: str) -> str:
        return f"{'…' if head else ''}{name[len(head) : end]}{'…' if tail else ''}"

    rows = [[short(str(c)) if i in places else c for i, c in enumerate(row)] for row in table.rows]
    where = [*([f"{head} at the beginning"] if head else []), *([f"{tail} at the end"] if tail else [])]
    left_out = f"{table.columns[places[0]]}: … is {' and '.join(where)}."
    return replace(table, rows=rows, note=f"{table.note} {left_out}".lstrip())


def shared_ends(names: Collection[str]) -> tuple[str, str]:
    """What all names begin and end with, if leaving it out is worth it.

    >>> shared_ends(["bm25-stemmed-and-lowercase", "dense-stemmed-and-lowercase"]), shared_ends(["bm25-a", "bm25-b"])
    (('', '-stemmed-and-lowercase'), ('', ''))
    """
    if len(set(names)) < 2:
        return "", ""
    head = _alike(names)
    return head, _alike({name[len(head) :][::-1] for name in names})[::-1]


def _alike(names: Collection[str]) -> str:
    """What all names begin with, up to a hyphen or the like; empty where leaving it out gains little."""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    ends = [place + 1 for place, sign in enumerate(first[:same]) if not sign.isalnum()]
    kept = first[: ends[-1]] if ends else ""
    return kept if len(kept) >= SHORTEST_ALIKE and all(len(name) > len(kept) for name in names) else ""


def plain(table: Table) -> str:
    """Aligned text, the title above it.

    >>> print(plain(Table(["run", "nDCG@10"], [["bm25", 0.5], ["dense", 0.25]])))
    run    nDCG@10
    bm25    0.5000
    dense   0.2500
    """
    lines = [list(table.columns), *table.shown()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    right = table.numeric()
    text = [
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    note = ["", table.note] if table.note else []
    return "\n".join([*([table.title] if table.title else []), *text, *note])


def markdown(table: Table) -> str:
    """A pipe table, the title in bold above it.

    >>> print(markdown(Table(["run", "AP"], [["a|b", 0.5]])))
    | run | AP |
    |:---|---:|
    | a\\|b | 0.5000 |
    """
    rule = "|".join("---:" if right else ":---" for right in table.numeric())
    body = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in table.shown()]
    head = " | ".join(column.replace("|", "\\|") for column in table.columns)
    title = [f"**{table.title}**", ""] if table.title else []
    note = ["", table.note] if table.note else []
    return "\n".join([*title, f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in body), *note])


def code(text: str, longest: int | None = None) -> str:
    """A text as a code span of Markdown, on one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).replace("`", "'")
    if longest is not None and len(line) > longest:
        line = line[: longest - 3] + "..."
    return f"`{line}`" if line else ""


def latex(table: Table) -> str:
    """A booktabs tabular, the title as a comment before it, the note in small print below."""
    shown = table.shown()
    long = [any(len(row[i]) > PROSE for row in shown) for i in range(1, len(table.columns))]
    prose = [False, *long] if table.columns else []
    shape = "".join(
        "r" if right else _PARAGRAPH if fold else "l"
        for right, fold in zip(table.numeric(), prose, strict=True)
    )
    rows = [" & ".join(map(_latex_cell, row)) + r" \\" for row in shown]
    head = " & ".join(map(escaped_latex, table.columns)) + r" \\"
    return "\n".join(
        [
            *([latex_comment(table.title)] if table.title else []),
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *(["", rf"{{\footnotesize {escaped_latex(table.note)}}}"] if table.note else []),
        ]
    )


def comma_separated(table: Table) -> str:
    """CSV, numbers unrounded."""
    import csv
    import io

    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([["" if cell is None or cell != cell else cell for cell in row] for row in table.rows])
    return written.getvalue().rstrip("\n")


_LATEX = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)
_PARAGRAPH = r"p{0.3\linewidth}"
_STARRED = re.compile(r"(?<=\d) (\*{1,3})$")
_SIGNED = re.compile(r"(?<![\w.$])[+-]\d+(?:\.\d+)?(?![\w.])")


def escaped_latex(text: str) -> str:
    """Text with LaTeX's own characters made plain."""
    return text.translate(_LATEX)


def latex_comment(text: str) -> str:
    """A line that LaTeX does not read, whatever is in it.

    >>> latex_comment("one\\ntwo")
    '% one two'
    """
    return f"% {' '.join(text.split())}"


def _latex_cell(text: str) -> str:
    """A cell; signed numbers, arrows and stars are set as such."""
    signed = _SIGNED.sub(r"$\g<0>$", escaped_latex(text))
    return _STARRED.sub(r"$^{\1}$", signed.replace(r"-\textgreater{}", r"$\to$"))


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
