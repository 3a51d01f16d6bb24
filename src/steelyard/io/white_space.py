"""Columns separated by white space, as in TREC and MS MARCO files: spaces or tabs, comments, blank lines.

Qrels are split in Python, which needs no other package; runs, which are larger, are brought to one
separator between columns by a few passes over the bytes, and read by polars. Both use the same
check of a line: batches that pass as a whole are not checked line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
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

BATCH = 1 << 14
"""Lines that are split at once."""
_LOOK = 1 << 18
_BLANK, _END = ord(" "), ord("\n")
_TABS = bytes.maketrans(b" \r\x0b\x0c", b"\t\t\t\t")


@dataclass
class Columns:
    """The fields of a file: one list per column. `skipped` are the lines without a row, `comments` their number."""

    columns: Sequence[list[bytes]]
    skipped: list[int] = field(default_factory=list)
    comments: int = 0

    def __len__(self) -> int:
        return len(self.columns[0])

    def line(self, row: int) -> int:
        """The number of a row's line."""
        line = row + 1
        for skipped in self.skipped:
            if skipped > line:
                break
            line += 1
        return line

    def notes(self) -> tuple[Note, ...]:
        """The note on comment lines, if there are any."""
        return comment_notes(self.comments)


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


def split_columns(path: Path, width: int, check: Check, expected: str) -> Columns:
    """The fields of every line: `width` of them, the last one a finite number, or an error by `check`."""
    found = Columns([[] for _ in range(width)])
    problems: list[tuple[int, str]] = []
    finite_fields: set[bytes] = set()
    before = 0
    for block in line_blocks(path):
        lines = block.removesuffix(b"\n").split(b"\n")
        plain = b"#" not in block
        for start in range(0, len(lines), BATCH):
            rows = list(map(bytes.split, lines[start : start + BATCH]))
            if not (plain and {width}.issuperset(map(len, rows)) and _all_finite(rows, finite_fields)):
                rows = _checked_rows(rows, before + start, check, found, problems)
            for column, values in zip(found.columns, zip(*rows, strict=True), strict=False):
                column.extend(values)
        before += len(lines)
    if problems:
        raise bad_lines(path, problems, expected)
    _refuse_empty(path, len(found), found.comments, expected)
    return found


def _all_finite(rows: list[list[bytes]], known: set[bytes]) -> bool:
    """Whether the last fields are finite numbers. Those that are stay in `known`: grades are few."""
    new = {row[-1] for row in rows} - known
    if any(finite(last, "") is not None for last in new):
        return False
    known |= new
    return True


def _checked_rows(
    rows: list[list[bytes]], before: int, check: Check, found: Columns, problems: list[tuple[int, str]]
) -> list[list[bytes]]:
    """The rows that pass the check. Lines without a row are counted, lines with a problem reported."""
    kept: list[list[bytes]] = []
    for line, fields in enumerate(rows, start=before + 1):
        comment = bool(fields) and fields[0].startswith(b"#")
        if not fields or comment:
            found.skipped.append(line)
            found.comments += comment
        elif (problem := check(fields)) is None:
            kept.append(fields)
        else:
            problems.append((line, problem))
    return kept


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
