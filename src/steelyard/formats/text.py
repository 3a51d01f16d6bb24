"""Text as bytes: whole lines in bounded blocks, and what to say where the bytes are not UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from steelyard.errors import SHOWN_PROBLEMS, InputError, problem_report
from steelyard.formats.compression import open_chunks
from steelyard.wording import counted

BLOCK = 1 << 26
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def line_blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """The file in blocks of whole lines, without a byte order mark; every block is UTF-8 text."""
    pending: list[bytes] = []
    held, lines = 0, 0
    for chunk in open_chunks(path, 1 << 24):
        pending.append(chunk)
        held += len(chunk)
        cut = chunk.rfind(b"\n") + 1
        if held >= size and cut:
            block = b"".join([*pending[:-1], chunk[:cut]])
            pending, held = [chunk[cut:]], len(chunk) - cut
            yield checked(block, path, lines)
            lines += block.count(b"\n")
    block = b"".join(pending)
    if block:
        yield checked(block, path, lines)


def checked(data: bytes, path: Path, lines_before: int = 0) -> bytes:
    """The bytes without a byte order mark, once they are known to be UTF-8 text with ordinary line ends."""
    if not lines_before:
        if data.startswith(_UTF16):
            raise InputError(
                f"{path} is UTF-16 text; expected UTF-8. Re-encode it, as in: iconv -f UTF-16 -t UTF-8 {path.name}"
            )
        data = data.removeprefix(_BOM)
    if b"\0" in data:
        line = lines_before + data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(
            f"{path} is not text: a zero byte stands in line {line:,}. Expected a text, JSON, CSV or Parquet file "
            "(`steelyard validate` says what a file is)."
        )
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            _refuse_encoding(data, path, lines_before)
    if b"\r" in data and (bare := data.count(b"\r") - data.count(b"\r\n") - data.endswith(b"\r")):
        place = next(at for at in _every(data, b"\r") if data[at + 1 : at + 2] != b"\n")
        line = lines_before + data.count(b"\n", 0, place) + 1
        raise InputError(
            f"{path}: line {line:,} holds a carriage return that ends no line ({bare:,} in all); expected lines "
            "that end in LF or CR LF. Convert the file, as in: tr '\\r' '\\n'"
        )
    return data


def decode(data: bytes, path: Path) -> str:
    """The text, once it is known to be UTF-8. Carriage returns are the caller's to judge."""
    if data.startswith(_UTF16):
        checked(data, path)
    data = data.removeprefix(_BOM)
    try:
        return data.decode()
    except UnicodeDecodeError:
        _refuse_encoding(data, path, 0)
        raise


def bad_lines(path: Path, problems: Iterable[tuple[int, str]], expected: str) -> InputError:
    """The error for lines that are not as expected: the first ten, and how many more."""
    shown: list[str] = []
    total = 0
    for line, problem in problems:
        total += 1
        if total <= SHOWN_PROBLEMS:
            shown.append(f"line {line:,}: {problem}")
    lines = counted(total, "line is", "lines are")
    return InputError(problem_report(f"{path}: {lines} not as expected:", shown, expected, total=total))


def _every(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)


def _refuse_encoding(data: bytes, path: Path, lines_before: int) -> None:
    raise bad_lines(
        path,
        _undecodable(data, lines_before),
        f"Expected UTF-8. Re-encode the file, as in: iconv -f LATIN1 -t UTF-8 {path.name}",
    )


def _undecodable(data: bytes, lines_before: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(data.split(b"\n"), start=lines_before + 1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            yield number, f"byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8"
