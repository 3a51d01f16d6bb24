"""Text from outside, made safe for where it goes: messages, the terminal, CSV and Markdown."""

from __future__ import annotations

import re

from steelyard.errors import SteelyardError
from steelyard.masking import masked

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # direction of text
    "\u2028\u2029\ufeff\U000e0000-\U000e007f"  # other line ends, byte order mark, invisible tags
    "\ud800-\udfff"  # half of a character
)
_UNSAFE = re.compile(f"[{_HIDDEN}]")
_UNSAFE_CELL = re.compile(f"[\t\n{_HIDDEN}]")


def has_lone_surrogate(text: str) -> bool:
    """Whether a text has half of a character, which no file can hold.

    >>> has_lone_surrogate("d\\udc80"), has_lone_surrogate("d\\u00e9")
    (True, False)
    """
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def utf8(text: str) -> bytes:
    """A text as UTF-8; a lone surrogate as an escape, which is what JSON expects.

    >>> utf8('"d\\udc80"')
    b'"d\\\\udc80"'
    """
    return text.encode("utf-8", "backslashreplace")


def terminal_text(text: str) -> str:
    """A text with control characters and those that change the direction of text as visible escapes.

    >>> terminal_text("run\\x1b[2J \\u202eabc")
    'run\\\\x1b[2J \\\\u202eabc'
    """
    return _UNSAFE.sub(_escape, text)


def cell_text(text: str) -> str:
    """The same for a cell of a table, which is one line."""
    return _UNSAFE_CELL.sub(_escape, text)


def json_text(text: str) -> str:
    """JSON with the same characters as its own escapes; it is read back unchanged."""

    def escape(match: re.Match[str]) -> str:
        units = match[0].encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))

    return _UNSAFE.sub(escape, text)


_FORMULA = re.compile(r"[=+\-@\t\r]")
_TAG = re.compile(r"(?<!\\)((?:\\\\)*)<(?=[A-Za-z/!?])")
_LINK = re.compile(r"(?<=\])(?=\()")
CSV_QUOTED = r"^'([=+\-@\t\r])"  # What `csv_text` wrote, to be read back.


def csv_text(text: str) -> str:
    """A text as a cell of CSV that no spreadsheet takes for a formula: with ' before it, unless it is a number.

    >>> [csv_text(text) for text in ("=1+1", "-5", "-v", "bm25")]
    ["'=1+1", '-5', "'-v", 'bm25']
    """
    if not _FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def markdown_text(text: str, links: bool = False) -> str:
    """A text in Markdown, on one line, without HTML and, unless `links`, without links; a code span stays one.

    >>> markdown_text("<b>[x](http://y)</b> p < 0.05")
    '\\\\<b>[x]\\\\(http://y)\\\\</b> p < 0.05'
    """
    line = cell_text(text)
    if len(line) > 1 and line[0] == line[-1] == "`" and "`" not in line[1:-1]:
        return line
    line = _TAG.sub(r"\1\\<", line)
    return line if links else _LINK.sub(r"\\", line)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def error_text(error: BaseException) -> str:
    """The text of any exception: its type, unless it is one of ours, and its message without secrets.

    >>> error_text(ValueError("no index")), error_text(SystemExit())
    ('ValueError: no index', 'SystemExit')
    """
    try:
        text = masked(utf8(str(error)).decode())
    except Exception as failure:
        text = f"(its message cannot be shown: {type(failure).__name__})"
    if isinstance(error, SteelyardError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
