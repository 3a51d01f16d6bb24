"""Columns separated by white space, as in TREC and MS MARCO files: spaces or tabs, comments, blank lines.

Columns are brought to one separator by a few passes over the bytes, and read by polars. Blocks that pass a check as a
whole are not checked line by line.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import TypeAlias

import numpy as np

from steelyard.errors import InputError
from steelyard.io.text import bad_lines, line_blocks, shortened
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.wording import counted

Check: TypeAlias = "Callable[[list[bytes]], str | None]"
"""From the fields of a line to what is wrong with them; None if nothing is."""
_LOOK = 1 << 18
_BLANK, _END = ord(" "), ord("\n")
_TABS = bytes.maketrans(b" \r\x0b\x0c", b"\t\t\t\t")


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
    (None, "score 'nan' is not a finite number; write another score, or remove the line")
    """
    value = number(text)
    if value is not None and isfinite(value):
        return None
    if value is None:
        return f"{what} {shown(text)} is not a number"
    return f"{what} {shown(text)} is not a finite number; write another {what}, or remove the line"


def shown(text: bytes) -> str:
    """A field in a message: quoted, and shortened where it is long."""
    return repr(shortened(text.decode(errors="replace")))


def judgment_columns(
    path: Path, names: Sequence[str], check: Check, expected: str
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """The columns of a file with one judgment per line, of which the last is the grade; and a note on comment lines."""
    width = len(names)

    def passes(frame: pl.DataFrame) -> bool:
        grade = frame[f"c{width - 1}"].cast(pl.Float64, strict=False)
        exact = frame[f"c{width}"].null_count() == frame.height
        return exact and not grade.null_count() and bool(grade.is_finite().all())

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        columns = {name: pl.col(f"c{place}") for place, name in enumerate(names)}
        return frame.select(**{**columns, "grade": columns["grade"].cast(pl.Float64)})

    return frame_columns(path, width + 1, passes, keep, check, expected)


def frame_columns(
    path: Path,
    width: int,
    passes: Callable[[pl.DataFrame], bool],
    keep: Callable[[pl.DataFrame], pl.DataFrame],
    check: Check,
    expected: str,
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """What `keep` selects of the text columns c0, c1, ..., and a note on comment lines, if there are any.

    A line has at least one column and null for those it lacks; further columns are dropped.
    `passes` checks a whole block at once; if it fails, `check` goes through its lines for the report.
    """
    frames: list[pl.DataFrame] = []
    problems: list[tuple[int, str]] = []
    comments, lines = 0, 0
    for block in line_blocks(path):
        body, separator = _one_separator(block)
        body, skipped = _without_comments(body)
        comments += skipped
        frame = _block_frame(body, separator, width)
        if frame.height and not passes(frame):
            for place, line in enumerate(block.split(b"\n"), start=lines + 1):
                fields = line.split()
                if fields and not fields[0].startswith(b"#") and (problem := check(fields)) is not None:
                    problems.append((place, problem))
        elif not problems:
            frames.append(keep(frame))
        lines += block.count(b"\n")
    if problems:
        raise bad_lines(path, problems, expected)
    if not any(frame.height for frame in frames):
        what = f"only {counted(comments, 'comment line')}" if comments else "the file is empty"
        raise InputError(f"{what}. {expected}", path)
    return pl.concat(frames), (note("comments-skipped", count=comments),) if comments else ()


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
    table = io.BytesIO(separator.join(f"c{place}" for place in range(width)).encode() + b"\n" + body)
    return pl.read_csv(table, separator=separator, quote_char=None, infer_schema=False, truncate_ragged_lines=True)
