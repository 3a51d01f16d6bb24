"""Columns separated by white space, as in TREC and MS MARCO files: spaces or tabs, comments, blank lines.

Qrels are split in Python, which needs no other package; runs, which are larger, are brought to one
separator between columns by a few passes over the bytes, and read by polars. Both use the same
check of a line: batches that pass as a whole are not checked line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from steelyard.errors import InputError
from steelyard.io.text import bad_lines, line_blocks, shortened
from steelyard.notes import Note, note
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


Check: TypeAlias = "Callable[[list[bytes]], str | None]"
"""From the fields of a line to what is wrong with them; None if nothing is."""

BATCH = 1 << 10
"""Lines that are split at once."""
_LOOK = 1 << 18
_BLANK, _END = ord(" "), ord("\n")
_TABS = bytes.maketrans(b" \r\x0b\x0c", b"\t\t\t\t")


def comment_notes(comments: int) -> tuple[Note, ...]:
    """The note on comment lines, if there are any."""
    return (note("comments-skipped", count=comments),) if comments else ()


def number(text: bytes) -> float | None:
    """The number in a field, or None: digits, a point, an exponent; nan and inf are numbers.

    >>> number(b"-1.5e3"), number(b"1_000"), number(b"high")
    (-1500.0, None, None)
    """
    try:
        return None if b"_" in text else float(text)
    except ValueError:
        return None


def finite(text: bytes, what: str) -> str | None:
    """What is wrong with a field that must be a finite number; None if nothing is.

    >>> finite(b"2", "score"), finite(b"nan", "score")
    (None, "score 'nan' is not a finite number")
    """
    value = number(text)
    if value is None:
        return f"{what} {shown(text)} is not a number"
    if value - value != 0:
        return f"{what} {shown(text)} is not a finite number"
    return None


def shown(text: bytes) -> str:
    """A field in a message: quoted, and shortened where it is long."""
    return repr(shortened(text.decode(errors="replace")))


@dataclass
class Rows:
    """The fields of every line of a file: `width` of them, the last one a finite number, or an error by `check`.

    Iterating gives batches: the numbers of the lines, and the fields of each. When a line was wrong,
    the error is raised after the last batch, with all such lines.
    """

    path: Path
    width: int
    check: Check
    expected: str
    comments: int = 0

    def __iter__(self) -> Iterator[tuple[Sequence[int], list[list[bytes]]]]:
        problems: list[tuple[int, str]] = []
        finite_fields: set[bytes] = set()
        before, total = 0, 0
        for block in line_blocks(self.path):
            lines = block.removesuffix(b"\n").split(b"\n")
            hashes = b"#" in block
            for start in range(0, len(lines), BATCH):
                rows = list(map(bytes.split, lines[start : start + BATCH]))
                first = before + start + 1
                numbers: Sequence[int] = range(first, first + len(rows))
                regular = {self.width}.issuperset(map(len, rows)) and not (hashes and _has_comment(rows))
                if not (regular and _all_finite(rows, finite_fields)):
                    numbers, rows = self._checked(rows, first, problems)
                total += len(rows)
                if rows:
                    yield numbers, rows
            before += len(lines)
        if problems:
            raise bad_lines(self.path, problems, self.expected)
        _refuse_empty(self.path, total, self.comments, self.expected)

    def _checked(
        self, rows: list[list[bytes]], first: int, problems: list[tuple[int, str]]
    ) -> tuple[list[int], list[list[bytes]]]:
        """The rows that pass the check, without comments and blank lines, and their line numbers."""
        numbers: list[int] = []
        kept: list[list[bytes]] = []
        for line, fields in enumerate(rows, start=first):
            if not fields:
                continue
            if fields[0].startswith(b"#"):
                self.comments += 1
            elif (problem := self.check(fields)) is None:
                numbers.append(line)
                kept.append(fields)
            else:
                problems.append((line, problem))
        return numbers, kept

    def notes(self) -> tuple[Note, ...]:
        """The note on comment lines, once all rows are read, if there are any."""
        return comment_notes(self.comments)


def _has_comment(rows: list[list[bytes]]) -> bool:
    return any(row[0].startswith(b"#") for row in rows)


def _all_finite(rows: list[list[bytes]], known: set[bytes]) -> bool:
    """Whether the last fields are finite numbers. Those that are stay in `known`: grades are few."""
    new = {row[-1] for row in rows} - known
    if any(finite(last, "") is not None for last in new):
        return False
    known |= new
    return True


def frame_columns(
    path: Path,
    width: int,
    passes: Callable[[pl.DataFrame], bool],
    keep: Callable[[pl.DataFrame], pl.DataFrame],
    check: Check,
    expected: str,
) -> tuple[pl.DataFrame, int]:
    """What `keep` selects of the text columns c0, c1, ..., and the number of comment lines.

    A line has at least one column and null for those it lacks; further columns are dropped.
    `passes` checks a whole block at once; if it fails, `check` goes through its lines for the report.
    """
    import polars as pl

    frames: list[pl.DataFrame] = []
    problems: list[tuple[int, str]] = []
    comments, lines = 0, 0
    for block in line_blocks(path):
        body, separator = _one_separator(block)
        body, skipped = _without_comments(body)
        comments += skipped
        frame = _block_frame(body, separator, width)
        if frame.height and not passes(frame):
            problems += _wrong_lines(block, check, lines)
        elif not problems:
            frames.append(keep(frame))
        lines += block.count(b"\n")
    if problems:
        raise bad_lines(path, problems, expected)
    _refuse_empty(path, sum(frame.height for frame in frames), comments, expected)
    return pl.concat(frames), comments


def _wrong_lines(block: bytes, check: Check, lines_before: int) -> Iterator[tuple[int, str]]:
    for place, line in enumerate(block.split(b"\n"), start=lines_before + 1):
        fields = line.split()
        if fields and not fields[0].startswith(b"#"):
            problem = check(fields)
            if problem is not None:
                yield place, problem


def _one_separator(block: bytes) -> tuple[bytes, str]:
    """The block with one separator between columns, none at the ends of a line, and no blank lines."""
    spaces = not any(other in block for other in (b"\t", b"\r", b"\x0b", b"\x0c"))
    if spaces and _is_regular(block):
        return block, " "
    body, one = (block, b" ") if spaces else (block.translate(_TABS), b"\t")
    while one + one in body:
        body = body.replace(one + one, one)
    body = body.replace(one + b"\n", b"\n").replace(b"\n" + one, b"\n")
    while b"\n\n" in body:
        body = body.replace(b"\n\n", b"\n")
    return body.strip(one + b"\n"), one.decode()


def _is_regular(block: bytes) -> bool:
    """Whether there is one space between columns, none at the ends of a line, and no blank line."""
    if block[:1] in b" \n" or block[-1:] == b" ":
        return False
    for start in range(0, len(block), _LOOK):
        data = np.frombuffer(block[start : start + _LOOK + 1], dtype=np.uint8)
        gaps = (data == _BLANK) | (data == _END)
        if np.any(gaps[1:] & gaps[:-1]):
            return False
    return True


def _without_comments(body: bytes) -> tuple[bytes, int]:
    """The lines that are not comments, and the number of those that are."""
    if b"#" not in body or (not body.startswith(b"#") and b"\n#" not in body):
        return body, 0
    lines = body.split(b"\n")
    kept = [line for line in lines if not line.startswith(b"#")]
    return b"\n".join(kept), len(lines) - len(kept)


def _block_frame(body: bytes, separator: str, width: int) -> pl.DataFrame:
    import io

    import polars as pl

    header = separator.join(f"c{place}" for place in range(width)).encode() + b"\n"
    return pl.read_csv(
        io.BytesIO(header + body),
        separator=separator,
        quote_char=None,
        infer_schema=False,
        truncate_ragged_lines=True,
    )


def _refuse_empty(path: Path, rows: int, comments: int, expected: str) -> None:
    if not rows:
        what = f"only {counted(comments, 'comment line')}" if comments else "the file is empty"
        raise InputError(f"{what}. {expected}", path)
