"""Tables: one type, and one writer per format (text, Markdown, LaTeX, CSV, HTML)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import isnan
from typing import TypeAlias

from steelyard.safe_text import cell_text, csv_text, markdown_text, terminal_text
from steelyard.wording import shortened_name

Cell: TypeAlias = str | int | float | None

SHORTEST_SHARED = 8
"""Prefixes and suffixes that all names share are left out if they have at least this many characters."""
LONG_NAME = 24  # Names with more characters than this are shortened where space is limited.
PROSE = 30  # A cell longer than this is prose, which may be wrapped.
WIDTH = 80  # Columns of a terminal whose width is not known.
PADDING = 2  # Characters by which a column of a padded Markdown table is at least wider than its name.


@dataclass(frozen=True)
class Table:
    """Columns and rows, with a title and a note below where there are any.

    Columns of numbers are aligned right; a missing number is left blank. Numbers have `digits` decimals or, where
    that is None, six significant digits with their decimal points aligned. `decimals`, one number per column, then
    limits the decimals of a column and reserves space for them, so that the columns of two tables have the same
    layout. The first columns, as many as `keys`, identify a row: where a table is too wide for a screen, they are
    repeated before the columns that are printed below. `shade`: `row` or `column`, by whose share a page shades them.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    digits: int | None = 4
    title: str = ""
    keys: int = 1
    note: str = ""
    decimals: Sequence[int] = ()
    shade: str = ""

    def shown(self) -> list[list[str]]:
        """The cells as text, numbers rounded."""
        texts = [[self._text(cell, place) for place, cell in enumerate(row)] for row in self.rows]
        if self.digits is not None:
            return texts
        columns = [
            _aligned([row[place] for row in texts], self._limit(place)) if number else [row[place] for row in texts]
            for place, number in enumerate(self.numeric())
        ]
        return [list(row) for row in zip(*columns, strict=True)]

    def heads(self) -> list[str]:
        """The names of the columns as text."""
        return list(map(cell_text, self.columns))

    def numeric(self) -> list[bool]:
        """Which columns have numbers."""
        return [
            any(isinstance(row[i], (int, float)) for row in self.rows)
            and not any(isinstance(row[i], str) for row in self.rows)
            for i in range(len(self.columns))
        ]

    def prose(self) -> bool:
        """Whether a cell that is not a key is so long that it should be wrapped."""
        return any(len(cell) > PROSE for row in self.shown() for cell in row[self.keys :])

    def _limit(self, place: int) -> int:
        return self.decimals[place] if self.decimals else 0

    def _text(self, cell: Cell, place: int) -> str:
        if cell is None or (isinstance(cell, float) and isnan(cell)):
            return ""
        if isinstance(cell, str):
            return cell_text(cell)
        if self.digits is not None:
            return f"{cell:.{self.digits}f}" if isinstance(cell, float) else str(cell)
        text, most = f"{cell:g}", self._limit(place)
        if most and ("e" in text or len(text.partition(".")[2]) > most):
            return f"{cell:.{most}f}".rstrip("0").rstrip(".")
        return text


def _aligned(texts: Sequence[str], decimals: int) -> list[str]:
    """Numbers with blanks after them, so that their decimal points are below each other."""
    after = [len(text) - text.index(".") - 1 if "." in text else -1 for text in texts]
    most = max([*after, decimals or -1])
    return [text + " " * (most - places) for text, places in zip(texts, after, strict=True)]


def fitted(table: Table, width: int, gap: int = 2) -> list[Table]:
    """The table as several tables to be printed one below the other, none wider than the screen if possible.

    In a table that is too wide, the prefix and suffix that all names share are left out. A table with prose is not
    split, and at most half of the screen is reserved for the keys: longer cells are to be wrapped when printed.

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
    available = width + gap - min(sum(widths[: table.keys]), width // 2)
    parts: list[list[int]] = [[]]
    for place in range(table.keys, len(table.columns)):
        if parts[-1] and sum(widths[i] for i in [*parts[-1], place]) > available:
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
    lines = [table.heads(), *table.shown()]
    return [max(len(line[i]) for line in lines) + gap for i in range(len(table.columns))]


def shortened(table: Table) -> Table:
    """The table without the prefix and suffix that all names in its keys share, which its note then gives.

    >>> runs = [["bm25-stemmed-and-lowercase", 0.5], ["dense-stemmed-and-lowercase", 0.4]]
    >>> short = shortened(Table(["run", "AP"], runs))
    >>> [row[0] for row in short.rows], short.note
    (['bm25…', 'dense…'], 'run: … is -stemmed-and-lowercase at the end.')
    """
    places = [i for i in range(table.keys) if table.rows and all(isinstance(row[i], str) for row in table.rows)]
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
    """The prefix and the suffix that all names share; empty where they are short.

    >>> shared_ends(["bm25-stemmed-and-lowercase", "dense-stemmed-and-lowercase"]), shared_ends(["bm25-a", "bm25-b"])
    (('', '-stemmed-and-lowercase'), ('', ''))
    """
    if len(set(names)) < 2:
        return "", ""
    head = _shared_prefix(names)
    return head, _shared_prefix({name[len(head) :][::-1] for name in names})[::-1]


def long_ends(names: Collection[str]) -> tuple[str, str]:
    """The prefix and the suffix that all long names share; none if a shorter name has one, or ends like a long one.

    >>> long_ends(["bm25-okapi on fixed-150/30", "bm25-okapi on sentence-100", "dense on sentence-100"])
    ('', '')
    """
    long = [name for name in names if len(name) > LONG_NAME]
    head, tail = shared_ends(long)
    rests = tuple(name[len(head) :] for name in long) if head else ()
    starts = tuple(name[: -len(tail)] for name in long) if tail else ()
    for name in set(names).difference(long):
        if (head and name.startswith(head)) or name.endswith(rests):
            head, rests = "", ()
        if (tail and name.endswith(tail)) or name.startswith(starts):
            tail, starts = "", ()
    return head, tail


def short_names(names: Collection[str], most: int = 32) -> dict[str, str]:
    """Long names without the prefix and suffix that they share, and without their middles.

    >>> list(short_names(["lab/2024/runs/bm25-stemmed", "lab/2024/runs/dense-stemmed", "random"]).values())
    ['…bm25…', '…dense…', 'random']
    """
    head, tail = long_ends(names)
    before, after = "…" if head else "", "…" if tail else ""
    parts = {name: name[len(head) : len(name) - len(tail)] for name in names if len(name) > LONG_NAME}
    short = {name: f"{before}{shortened_name(part, most)}{after}" for name, part in parts.items()}
    return {name: short.get(name, name) for name in names}


def _shared_prefix(names: Collection[str]) -> str:
    """The prefix that all names share, up to a hyphen or similar; empty where it is short."""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    ends = [place + 1 for place, sign in enumerate(first[:same]) if not sign.isalnum()]
    kept = first[: ends[-1]] if ends else ""
    return kept if len(kept) >= SHORTEST_SHARED and all(len(name) > len(kept) for name in names) else ""


def plain(table: Table) -> str:
    """Aligned text, the title above it.

    >>> print(plain(Table(["run", "nDCG@10"], [["bm25", 0.5], ["dense", 0.25]])))
    run    nDCG@10
    bm25    0.5000
    dense   0.2500
    """
    lines = [table.heads(), *table.shown()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    right = table.numeric()
    text = [
        "  ".join(_justified(c, w, r) for c, w, r in zip(line, widths, right, strict=True)).rstrip() for line in lines
    ]
    note = ["", terminal_text(table.note)] if table.note else []
    return "\n".join([*([terminal_text(table.title)] if table.title else []), *text, *note])


def markdown(table: Table, padded: bool = False, links: bool = False) -> str:
    """A pipe table, the title in bold above it; `padded` with blanks so that the columns are also aligned as text.

    Names in cells cannot become HTML or, without `links`, links.

    >>> print(markdown(Table(["run", "AP"], [["a|b", 0.5]])))
    | run | AP |
    |:---|---:|
    | a\\|b | 0.5000 |
    >>> print(markdown(Table(["run", "AP"], [["a", 1.0], ["b", 0.25]], digits=None), padded=True))
    | run   |   AP |
    |:------|-----:|
    | a     | 1    |
    | b     | 0.25 |
    """
    lines = [
        [markdown_text(cell, links).replace("|", "\\|") for cell in line] for line in [table.heads(), *table.shown()]
    ]
    right = table.numeric()
    widths = [0] * len(table.columns)
    if padded:
        widths = [max(len(lines[0][i]) + PADDING, *(len(line[i]) for line in lines)) for i in range(len(widths))]
    rule = [
        "-" * (max(w, 2) + 1) + ":" if r else ":" + "-" * (max(w, 2) + 1) for w, r in zip(widths, right, strict=True)
    ]
    head, *body = (
        f"| {' | '.join(_justified(c, w, r) for c, w, r in zip(line, widths, right, strict=True))} |" for line in lines
    )
    title = [f"**{markdown_text(table.title)}**", ""] if table.title else []
    note = ["", markdown_text(table.note)] if table.note else []
    return "\n".join([*title, head, f"|{'|'.join(rule)}|", *body, *note])


def _justified(cell: str, width: int, right: bool) -> str:
    return cell.rjust(width) if right else cell.ljust(width)


def code(text: str, longest: int | None = None) -> str:
    """A text as a code span of Markdown, on one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).replace("`", "'")
    if longest is not None and len(line) > longest:
        line = line[: longest - 3] + "..."
    return f"`{line}`" if line else ""


def latex(table: Table) -> str:
    """A booktabs tabular, the title as a comment before it, the note in small print below."""
    shown = table.shown()
    prose = [i > 0 and any(len(row[i]) > PROSE for row in shown) for i in range(len(table.columns))]
    alignment = "".join(
        "r" if right else _PARAGRAPH if wrapped else "l" for right, wrapped in zip(table.numeric(), prose, strict=True)
    )
    cells = [list(map(_latex_cell, row)) for row in shown]
    tabular = booktabs(alignment, list(map(escaped_latex, table.heads())), cells)
    title = [latex_comment(table.title)] if table.title else []
    note = ["", rf"{{\footnotesize {escaped_latex(table.note)}}}"] if table.note else []
    return "\n".join([*title, tabular, *note])


def booktabs(alignment: str, head: Sequence[str], rows: Sequence[Sequence[str]], spaced: Collection[int] = ()) -> str:
    """A tabular of cells that are LaTeX already, with space before the rows whose numbers are in `spaced`."""
    body: list[str] = []
    for number, row in enumerate(rows):
        if number in spaced:
            body.append(r"\addlinespace")
        body.append(_latex_line(row))
    begin = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", _latex_line(head), r"\midrule"]
    return "\n".join([*begin, *body, r"\bottomrule", r"\end{tabular}"])


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def comma_separated(table: Table) -> str:
    """CSV, numbers unrounded; a text that a spreadsheet would take for a formula has ' before it."""
    import csv
    import io

    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(csv_text, table.columns))
    writer.writerows([map(_csv_cell, row) for row in table.rows])
    return written.getvalue().rstrip("\n")


def _csv_cell(cell: Cell) -> Cell:
    if isinstance(cell, str):
        return csv_text(cell)
    return "" if cell is None or isnan(cell) else cell


_LATEX_NAMES = {
    "~": "textasciitilde", "^": "textasciicircum", "\\": "textbackslash", "<": "textless", ">": "textgreater",
    "|": "textbar",
}  # fmt: skip
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"} | {sign: f"\\{name}{{}}" for sign, name in _LATEX_NAMES.items()}
)
_PARAGRAPH = r"p{0.3\linewidth}"
_STARRED = re.compile(r"(?<=\d) (\*{1,3})$")
_SIGNED = re.compile(r"(?<![\w.$])[+-]\d+(?:\.\d+)?(?![\w.])")


def escaped_latex(text: str) -> str:
    """Text with the special characters of LaTeX escaped."""
    return terminal_text(text).translate(_LATEX)


def latex_comment(text: str) -> str:
    """A comment on one line.

    >>> latex_comment("one\\ntwo")
    '% one two'
    """
    return f"% {terminal_text(' '.join(text.split()))}"


def _latex_cell(text: str) -> str:
    """A cell as LaTeX; signed numbers, arrows and stars in math mode."""
    signed = _SIGNED.sub(r"$\g<0>$", escaped_latex(text))
    return _STARRED.sub(r"$^{\1}$", signed.replace(r"-\textgreater{}", r"$\to$"))


def table_html(table: Table) -> str:
    """An HTML table, everything escaped, the title as its caption; the shade is added by the script of a page."""
    kinds = [' class="number"' if right else "" for right in table.numeric()]

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}{k}>{escape(c)}</{tag}>" for c, k in zip(cells, kinds, strict=True))

    title = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    shade = f' data-shade="{table.shade}"' if table.shade else ""
    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in table.shown())
    return f"<table{shade}>{title}<thead><tr>{line(table.heads(), 'th')}</tr></thead><tbody>{body}</tbody></table>"


def fragment(parts: Sequence[str]) -> str:
    """Parts of HTML in the style of notebooks."""
    from importlib.resources import files  # Every command prints tables, and few of them this; it is slow to import.

    style = (files("steelyard.report") / "notebook.css").read_text("utf-8")
    return f'<div class="steelyard"><style>\n{style}</style>{"".join(parts)}</div>'
