"""A terminal, as far as the output of a command needs one: what is on the screen after it ran, with its colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.color import Color

_SEQUENCE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b[\]()][^\x07\x1b]*(?:\x07|\x1b\\)?|[\r\n]|[^\x1b\r\n]+|\x1b.")
NAMED = ("#6e7781", "#ff7b72", "#7ee0b0", "#f2cc60", "#79b8ff", "#d2a8ff", "#76e3ea", "#d8dee4")
"""The eight colours of a terminal on a dark background."""


@dataclass(frozen=True)
class Style:
    """How a character looks."""

    bold: bool = False
    dim: bool = False
    colour: str = ""

    @property
    def css(self) -> str:
        """The classes of a style."""
        return " ".join(name for name in ("bold", "dim") if getattr(self, name))


@dataclass(frozen=True)
class Line:
    """A line of the screen: characters with their styles."""

    cells: tuple[tuple[str, Style], ...]

    @property
    def text(self) -> str:
        """The line without styles."""
        return "".join(character for character, _ in self.cells).rstrip()

    def spans(self) -> Iterator[tuple[int, str, str, str]]:
        """The pieces of the line in one style, as column, text, classes and colour; blanks are left out."""
        for found in re.finditer(r"\S+(?: \S+)*", self.text):
            start = found.start()
            while start < found.end():
                style, end = self.cells[start][1], start
                while end < found.end() and self.cells[end][1] == style:
                    end += 1
                text = self.text[start:end]
                yield start, text.rstrip(), style.css, style.colour
                start = end


class Screen:
    """A screen that is written to from top to bottom; a progress bar may go back up and erase lines."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._rows: list[list[tuple[str, Style]]] = [[]]
        self._row = self._column = 0
        self._style = Style()

    def write(self, text: str) -> None:
        """Write text with control sequences."""
        for found in _SEQUENCE.finditer(text):
            if found[0] == "\n":
                self._down()
            elif found[0] == "\r":
                self._column = 0
            elif found[2]:
                self._control(found[1], found[2])
            elif not found[0].startswith("\x1b"):
                for character in found[0]:
                    self._put(character)

    def lines(self) -> list[Line]:
        """The lines, without empty ones at both ends."""
        made = [Line(tuple(row)) for row in self._rows]
        full = [number for number, line in enumerate(made) if line.text]
        return made[full[0] : full[-1] + 1] if full else []

    def text(self) -> str:
        """The lines as text."""
        return "\n".join(line.text for line in self.lines())

    def _put(self, character: str) -> None:
        if self._column == self.columns:
            self._down()
            self._column = 0
        row = self._rows[self._row]
        row += [(" ", Style())] * (self._column + 1 - len(row))
        row[self._column] = (character, self._style)
        self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append([])

    def _control(self, arguments: str, letter: str) -> None:
        numbers = [int(part) for part in arguments.split(";") if part.isdecimal()]
        count = numbers[0] if numbers else 1
        if letter == "A":
            self._row = max(0, self._row - count)
        elif letter == "B":
            self._row = min(len(self._rows) - 1, self._row + count)
        elif letter == "C":
            self._column = min(self.columns - 1, self._column + count)
        elif letter == "G":
            self._column = count - 1
        elif letter == "K":
            erased = slice(0 if numbers == [2] else self._column, None)
            del self._rows[self._row][erased]
        elif letter == "J":
            del self._rows[self._row][self._column :]
            del self._rows[self._row + 1 :]
        elif letter == "m":
            self._style = _styled(self._style, numbers)


def _styled(style: Style, numbers: list[int]) -> Style:
    """A style after a sequence that changes it."""
    rest = list(numbers) or [0]
    while rest:
        number = rest.pop(0)
        if number == 0:
            style = Style()
        elif number in (1, 2):
            style = replace(style, bold=style.bold or number == 1, dim=style.dim or number == 2)
        elif number == 22:
            style = replace(style, bold=False, dim=False)
        elif number == 39:
            style = replace(style, colour="")
        elif 30 <= number <= 37 or 90 <= number <= 97:
            style = replace(style, colour=NAMED[number % 10])
        elif number == 38 and rest[:1] == [5]:
            style = replace(style, colour=Color.from_ansi(rest[1]).get_truecolor().hex)
            del rest[:2]
        elif number == 38 and rest[:1] == [2]:
            style = replace(style, colour="#" + "".join(f"{part:02x}" for part in rest[1:4]))
            del rest[:4]
    return style
