"""One table, written for a terminal, Markdown, CSV or LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Columns and rows. Numbers stand to the right; a missing one is left blank."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    digits: int = 4

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

    def _text(self, cell: Cell) -> str:
        if cell is None or (isinstance(cell, float) and cell != cell):
            return ""
        return f"{cell:.{self.digits}f}" if isinstance(cell, float) else str(cell)


def plain(table: Table) -> str:
    """Aligned text.

    >>> print(plain(Table(["run", "nDCG@10"], [["bm25", 0.5], ["dense", 0.25]])))
    run    nDCG@10
    bm25    0.5000
    dense   0.2500
    """
    lines = [list(table.columns), *table.shown()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    right = table.numeric()
    return "\n".join(
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def markdown(table: Table) -> str:
    """A pipe table.

    >>> print(markdown(Table(["run", "AP"], [["a|b", 0.5]])))
    | run | AP |
    |:---|---:|
    | a\\|b | 0.5000 |
    """
    rule = "|".join("---:" if right else ":---" for right in table.numeric())
    body = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in table.shown()]
    head = " | ".join(column.replace("|", "\\|") for column in table.columns)
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in body)])


def latex(table: Table) -> str:
    """A booktabs tabular."""
    shape = "".join("r" if right else "l" for right in table.numeric())
    rows = [" & ".join(map(escaped_latex, row)) + r" \\" for row in table.shown()]
    head = " & ".join(map(escaped_latex, table.columns)) + r" \\"
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
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
    }
)


def escaped_latex(text: str) -> str:
    """Text with LaTeX's own characters made plain."""
    return text.translate(_LATEX)
