"""Text files: blocks of whole lines, UTF-8 and line ends checked, JSON and tables parsed, wrong lines reported.

Columns separated by white space, as in TREC and MS MARCO files (spaces or tabs, comments, blank lines), are brought to
one separator by a few passes over the bytes, and read by polars. Blocks that pass a check as a whole are not checked
line by line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

from steelyard.errors import InputError
from steelyard.io.files import open_chunks, read_bytes, read_head
from steelyard.io.unpacking import damaged_parquet, read_parquet
from steelyard.lazy import json
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.wording import counted

BLOCK = 1 << 26
HEAD = 1 << 18
FIRST_LINES = 100
_BOM = b"\xef\xbb\xbf"
_NAME_ENDS = re.compile(rb'"\s*:')
_ROUNDED = 2.0**63  # Whole numbers from here on may be floats in the result of orjson.
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Source:
    """One file to read, compressed or not. What is read is kept, so that several readers can look at it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def head(self) -> bytes:
        """The first 256 KB, decompressed."""
        return read_head(self.path, HEAD)

    @property
    def whole_head(self) -> bool:
        """Whether the head is the whole file."""
        return len(self.head) < HEAD

    @cached_property
    def start(self) -> bytes:
        """The head without a byte order mark and leading white space: the format shows there."""
        return self.head.removeprefix(_BOM).lstrip()

    @property
    def first_line(self) -> str:
        """The first line that is not blank, as far as the head has it."""
        return self.start.split(b"\n", 1)[0].decode(errors="replace")

    @property
    def first_object(self) -> dict[str, Any]:
        """The JSON object in the first line; an empty one if there is none."""
        try:
            first = json.loads(self.first_line)
        except (ValueError, RecursionError):
            return {}
        return first if isinstance(first, dict) else {}

    @cached_property
    def head_lines(self) -> list[bytes]:
        """The complete lines of the head, without a byte order mark."""
        head = self.head if self.whole_head else self.head[: self.head.rfind(b"\n") + 1]
        return checked(head, self.path).split(b"\n")

    @cached_property
    def data(self) -> bytes:
        """Every byte, decompressed."""
        return self.head if self.whole_head else read_bytes(self.path)

    @cached_property
    def text(self) -> str:
        """The whole file as text."""
        return decode(self.data, self.path)

    @cached_property
    def json(self) -> Any:
        """The whole file as JSON. orjson reads most files, and `parse_json` all, with the same result."""
        value = quick_json(self.data)
        return parse_json(self.text, self.path) if value is None else value

    @cached_property
    def jsonl(self) -> list[dict[str, Any]]:
        """The objects of a file with one JSON object per line."""
        records: list[dict[str, Any]] = []
        problems: list[tuple[int, str]] = []
        for number, line in enumerate(self.text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                record = parse_json(line)
            except InputError as error:
                problems.append((number, error.message))
                continue
            if isinstance(record, dict):
                records.append(record)
            else:
                problems.append((number, f"a {type(record).__name__}, not an object"))
        if problems:
            raise bad_lines(self.path, problems, "Expected one JSON object per line.")
        return records

    @cached_property
    def first_objects(self) -> list[dict[str, Any]]:
        """The first objects of a file with one JSON object per line, read from its head where that has any."""
        try:
            objects = [parse_json(line.decode()) for line in self.head_lines[:FIRST_LINES] if line.strip()]
        except InputError:
            objects = []
        return objects if objects and all(isinstance(record, dict) for record in objects) else self.jsonl[:FIRST_LINES]

    @cached_property
    def records(self) -> list[Any]:
        """The records of a JSON list, or of JSON lines."""
        return list(self.json) if self.start.startswith(b"[") else self.jsonl

    @cached_property
    def parquet(self) -> pl.DataFrame:
        """The whole file as a Parquet table."""
        try:
            return read_parquet(self.data, self.path)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise damaged_parquet(str(error).partition("\n")[0], self.path) from None


def line_blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """The file in blocks of whole lines, without a byte order mark; every block is UTF-8 text."""
    pending: list[bytes] = []
    size_read = lines = 0
    for chunk in open_chunks(path, 1 << 24):
        pending.append(chunk)
        size_read += len(chunk)
        cut = chunk.rfind(b"\n") + 1
        if size_read >= size and cut:
            block = b"".join([*pending[:-1], chunk[:cut]])
            pending, size_read = [chunk[cut:]], len(chunk) - cut
            yield checked(block, path, lines)
            lines += block.count(b"\n")
    if block := b"".join(pending):
        yield checked(block, path, lines)


def checked(data: bytes, path: Path, lines_before: int = 0) -> bytes:
    """The bytes without a byte order mark; an error if they are not UTF-8 text with LF or CR LF line ends."""
    if not lines_before:
        if data.startswith(_UTF16):
            raise InputError(f"UTF-16 text. {_to_utf_8(path, 'UTF-16')}", path)
        data = data.removeprefix(_BOM)
    if b"\0" in data:
        line = lines_before + data.count(b"\n", 0, data.index(b"\0")) + 1
        problem = f"not text: line {line:,} has a zero byte"
        expected = "Expected a text, JSON, CSV or Parquet file (`steelyard validate` shows what a file is)"
        raise InputError(f"{problem}. {expected}. If it is UTF-16: {_to_utf_8(path, 'UTF-16')}", path)
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            raise bad_lines(path, _undecodable(data, lines_before), _to_utf_8(path)) from None
    if b"\r" in data and (bare := data.count(b"\r") - data.count(b"\r\n") - data.endswith(b"\r")):
        place = next(re.finditer(rb"\r(?!\n)", data)).start()
        line = lines_before + data.count(b"\n", 0, place) + 1
        problem = f"line {line:,} has a carriage return that does not end a line ({bare:,} in the file)"
        advice = "expected lines that end in LF or CR LF. Convert the file, as in: tr '\\r' '\\n'"
        raise InputError(f"{problem}; {advice}", path)
    return data


def decode(data: bytes, path: Path) -> str:
    """The text; an error if it is not UTF-8. Carriage returns are left to the caller."""
    data = data.removeprefix(_BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    # UTF-16 without a mark can be valid UTF-8: its first character, of a header or of JSON, is ASCII and a zero byte.
    return text if text and "\0" not in text[:2] else checked(data, path).decode()


def parse_json(text: str, path: Path | None = None) -> Any:
    """The JSON value. A name that occurs twice in one object is an error: neither value wins silently."""
    try:
        return json.loads(text, object_pairs_hook=unique_names)
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno:,}, column {error.colno:,}: not JSON ({error.msg}). The file may be truncated"
        raise InputError(f"{problem}, or have one object per line (format 'jsonl').", path) from None
    except RecursionError:
        raise InputError("the JSON is nested too deep for qrels or a run.", path) from None
    except InputError as error:
        error.path = path
        raise


def quick_json(data: bytes) -> Any:
    """The JSON value as `parse_json` would return it, read by orjson; None if `parse_json` has to read it.

    orjson does not report a name that occurs twice in one object, where it keeps the last value, nor a whole number
    that has more than 64 bits, which it rounds to a float. Both can be told from the result.
    """
    import orjson

    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    names = 0
    level = [value]  # level by level, which keeps the loops over millions of values out of Python's bytecode
    while level:
        kinds = set(map(type, level))
        if float in kinds:
            floats = level if kinds <= {float, int} else [item for item in level if type(item) is float]
            if max(floats) >= _ROUNDED or min(floats) <= -_ROUNDED:
                return None
        objects = [item for item in level if type(item) is dict] if dict in kinds else []
        lists = [item for item in level if type(item) is list] if list in kinds else []
        names += sum(map(len, objects))
        level = list(chain(chain.from_iterable(map(dict.values, objects)), chain.from_iterable(lists)))
    # Every name is followed by a colon. If no text has one, there are as many colons as names, unless names are missing
    # because they occurred twice. Texts with colons are common (URLs), texts with a quote before a colon are not.
    once = names == data.count(b":") or names == len(_NAME_ENDS.findall(data))
    return value if once else None


def quick_json_lines(lines: list[bytes]) -> list[Any] | None:
    """The JSON value of every line, read by orjson at once; None if a line has none, or `parse_json` has to read it.

    Every line becomes a list of one value. The line end before the comma cannot be within a text, and a list, an
    object or a comma that a line leaves open makes the whole invalid or a list longer, so that wrong lines do not
    become right by being joined.
    """
    lists = quick_json(b"[[" + b"]\n,[".join(lines) + b"]]")
    whole = lists is not None and len(lists) == len(lines) and set(map(len, lists)) == {1}
    return list(chain.from_iterable(lists)) if whole else None


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are all different, as `object_pairs_hook` of json."""
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the name {twice!r} occurs twice in one JSON object; keep one of them.")
    return by_name


def bad_lines(path: Path, problems: Iterable[tuple[int, str]], expected: str) -> InputError:
    """The error for lines that are not as expected: the first ten, and the number of the others."""
    shown = [f"line {line:,}: {problem}" for line, problem in problems]
    lines = counted(len(shown), "line is", "lines are")
    return InputError.of_problems(f"{lines} not as expected:", shown, expected, path)


def shortened(text: str, width: int = 60) -> str:
    """The start of a text, for a message."""
    return text if len(text) <= width else text[: width - 3] + "..."


def _to_utf_8(path: Path, encoding: str = "ENCODING") -> str:
    return f"Expected UTF-8; convert the file first: iconv -f {encoding} -t UTF-8 {path.name}"


def _undecodable(data: bytes, lines_before: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(data.split(b"\n"), start=lines_before + 1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            yield number, f"byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8"


def read_table(source: Source, separator: str) -> pl.DataFrame:
    """Every column as text, so that an id like 007 is kept; every row as wide as the header."""
    text = source.text
    if not text.strip():
        raise InputError("the file is empty. Expected a header line and one row per document.", source.path)
    try:
        frame = pl.read_csv(io.BytesIO(text.encode()), separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        _check_widths(source, separator)
        raise InputError(f"cannot be read as a table: {str(error).partition(chr(10))[0]}", source.path) from None
    if frame[frame.columns[-1]].null_count():
        # A truncated row ends in null, and so does a row whose last field is empty: only the widths differ.
        _check_widths(source, separator)
    if not frame.height:
        raise InputError("there is a header line and nothing else.", source.path)
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def _check_widths(source: Source, separator: str) -> None:
    import csv

    problems: list[tuple[int, str]] = []
    reader = csv.reader(io.StringIO(source.text, newline=""), delimiter=separator, strict=True)
    try:
        width = len(next(reader))
        for row in reader:
            if row and len(row) != width:
                problems.append((reader.line_num, f"{counted(len(row), 'column')}, and the header has {width}"))
    except csv.Error as error:
        problems.append((reader.line_num, str(error)))
    if problems:
        expected = "Expected as many columns as in the header, with quotes around text that holds the separator."
        raise bad_lines(source.path, problems, expected)


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
    import numpy as np

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
