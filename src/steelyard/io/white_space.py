"""Columns parted by white space, as TREC files have them: any number of spaces or tabs, comments, blank lines.

Small files are split line by line. Large ones are brought to one tab between columns by a few
passes over the bytes, and read by polars. Either way a wrong line is found by the same check,
which a second, careful pass runs only when something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from steelyard.errors import InputError
from steelyard.io.files import bad_lines, line_blocks
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


Check: TypeAlias = "Callable[[list[bytes]], str | None]"
_LOOK = 1 << 18
_BLANK, _END = ord(" "), ord("\n")
_TABS = bytes.maketrans(b" \r\x0b\x0c", b"\t\t\t\t")


@dataclass(frozen=True)
class Columns:
    """The rows of a file as lists of fields, their line numbers, and how many comment lines were passed over."""

    rows: list[list[bytes]]
    lines: Sequence[int]
    comments: int


def number(field: bytes) -> float | None:
    """The number a field holds, or None: digits, a point, an exponent; nan and inf are numbers here.

    >>> number(b"-1.5e3"), number(b"1_000"), number(b"high")
    (-1500.0, None, None)
    """
    try:
        return None if b"_" in field else float(field)
    except ValueError:
        return None


def finite(field: bytes, what: str) -> str | None:
    """What is wrong with a field that should be a finite number, if anything.

    >>> finite(b"0.5", "score"), finite(b"nan", "score")
    (None, "score 'nan' is not a finite number")
    """
    value = number(field)
    if value is None:
        return f"{what} {shown(field)} is not a number"
    if value - value != 0:
        return f"{what} {shown(field)} is not a finite number"
    return None


def shown(field: bytes) -> str:
    """A field as a message shows it: quoted, and cut where it is long."""
    text = field.decode(errors="replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")


def split_columns(path: Path, width: int, check: Check, expected: str) -> Columns:
    """Every line's fields, each line passed by `check`: `width` fields, the last one a number."""
    data = b"".join(line_blocks(path))
    rows = list(map(bytes.split, data.split(b"\n")))
    while rows and not rows[-1]:
        rows.pop()
    # The common file has no line that needs a look of its own: one pass over widths, one over distinct numbers.
    plain = b"#" not in data and {width}.issuperset(map(len, rows))
    if rows and plain and all(finite(last, "") is None for last in {row[-1] for row in rows}):
        return Columns(rows, range(1, len(rows) + 1), 0)
    kept: list[list[bytes]] = []
    lines: list[int] = []
    problems: list[tuple[int, str]] = []
    comments = 0
    for line, fields in enumerate(rows, start=1):
        if not fields:
            continue
        if fields[0].startswith(b"#"):
            comments += 1
        elif (problem := check(fields)) is None:
            kept.append(fields)
            lines.append(line)
        else:
            problems.append((line, problem))
    if problems:
        raise bad_lines(path, problems, expected)
    _refuse_empty(path, len(kept), comments, expected)
    return Columns(kept, lines, comments)


def frame_columns(
    path: Path,
    width: int,
    passes: Callable[[pl.DataFrame], bool],
    keep: Callable[[pl.DataFrame], pl.DataFrame],
    check: Check,
    expected: str,
) -> tuple[pl.DataFrame, int]:
    """What `keep` keeps of the text columns c0, c1, ..., and the number of comment lines passed over.

    A line has at least one column and null for those it lacks; what stands beyond `width` columns
    is left out. `passes` looks at a whole block at once; where it does not pass, `check` goes
    through its lines one by one for the report.
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
            problems += _wrong(block, check, lines)
        elif not problems:
            frames.append(keep(frame))
        lines += block.count(b"\n")
    if problems:
        raise bad_lines(path, problems, expected)
    _refuse_empty(path, sum(frame.height for frame in frames), comments, expected)
    return pl.concat(frames), comments


def comment_note(comments: int) -> tuple[str, ...]:
    """The note on comment lines, where there are any."""
    return (f"{counted(comments, 'comment line')} (#) passed over",) if comments else ()


def _wrong(block: bytes, check: Check, lines_before: int) -> Iterator[tuple[int, str]]:
    for place, line in enumerate(block.split(b"\n"), start=lines_before + 1):
        fields = line.split()
        if fields and not fields[0].startswith(b"#"):
            problem = check(fields)
            if problem is not None:
                yield place, problem


def _one_separator(block: bytes) -> tuple[bytes, str]:
    """One separator between columns, none at the ends of a line, no blank lines."""
    spaces = not any(other in block for other in (b"\t", b"\r", b"\x0b", b"\x0c"))
    if spaces and _is_even(block):
        return block, " "
    body, one = (block, b" ") if spaces else (block.translate(_TABS), b"\t")
    while one + one in body:
        body = body.replace(one + one, one)
    body = body.replace(one + b"\n", b"\n").replace(b"\n" + one, b"\n")
    while b"\n\n" in body:
        body = body.replace(b"\n\n", b"\n")
    return body.strip(one + b"\n"), one.decode()


def _is_even(block: bytes) -> bool:
    """Whether no blank or line end stands beside another, and no blank at the ends: nothing is to be mended."""
    if block[:1] in b" \n" or block[-1:] == b" ":
        return False
    for begin in range(0, len(block), _LOOK):
        data = np.frombuffer(block[begin : begin + _LOOK + 1], dtype=np.uint8)
        gaps = (data == _BLANK) | (data == _END)
        if np.any(gaps[1:] & gaps[:-1]):
            return False
    return True


def _without_comments(body: bytes) -> tuple[bytes, int]:
    """The lines that are no comments, and how many are."""
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
        what = f"holds only {counted(comments, 'comment line')}" if comments else "is empty"
        raise InputError(f"{path} {what}. {expected}")
