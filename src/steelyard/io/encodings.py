"""The encoding that text which is not UTF-8 is likely in, so that an error can name it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

LOOKED_AT = 1 << 18
"""Bytes of a text that are looked at."""
_LIKELY = 0.85
"""The share of frequent characters from which an encoding is likely."""


class Encoding(NamedTuple):
    """An encoding: the name people use, and that of iconv."""

    name: str
    iconv: str


UTF_16 = Encoding("UTF-16", "UTF-16")
LATIN_1 = Encoding("Latin-1", "LATIN1")
WINDOWS_1252 = Encoding("Windows-1252", "CP1252")

_Leads = Callable[[int], bool]
_TWO_BYTES: tuple[tuple[str, Encoding, _Leads, bool], ...] = (
    ("euc_kr", Encoding("EUC-KR (Korean)", "EUC-KR"), lambda lead: 0xB0 <= lead <= 0xC8, False),
    ("euc_jp", Encoding("EUC-JP (Japanese)", "EUC-JP"), lambda lead: 0xB0 <= lead <= 0xCF, True),
    ("cp932", Encoding("Shift-JIS (Japanese)", "CP932"), lambda lead: 0x88 <= lead <= 0x97, True),
    ("gb18030", Encoding("GBK (Chinese)", "GB18030"), lambda lead: 0xB0 <= lead <= 0xD7, False),
    ("big5", Encoding("Big5 (Chinese)", "BIG5"), lambda lead: 0xA4 <= lead <= 0xC6, False),
)
"""Encodings of two bytes: the codec, the first bytes of its frequent characters, and whether it is Japanese."""


_ZEROS = 0.15
"""The share of zeros in every second byte of UTF-16: tables have many ASCII characters in any language."""


def likely_encoding(data: bytes) -> Encoding | None:
    """The likely encoding of bytes that are not UTF-8; None where none is.

    >>> likely_encoding("検索の質問と文書の一覧".encode("cp932")).name, likely_encoding("café, naïve".encode("latin-1")).name
    ('Shift-JIS (Japanese)', 'Latin-1')
    """
    data = data[:LOOKED_AT]
    if _is_utf_16(data):
        return UTF_16
    lines = data.split(b"\n")[: -1 if len(data) == LOOKED_AT else None]
    data = b"\n".join(line for line in lines if not _decodes(line, "utf-8"))
    shares = {
        encoding: _frequent_share(data, codec, leads, japanese)
        for codec, encoding, leads, japanese in _TWO_BYTES
    }
    best = max(shares, key=lambda encoding: shares[encoding])
    if shares[best] >= _LIKELY:
        return best
    return _western(data)


def _decodes(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _is_utf_16(data: bytes) -> bool:
    """Whether there is a byte order mark of UTF-16, or every second byte is often zero, also beside line ends."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    zeros = [data[start::2].count(0) for start in (0, 1)]
    newline, codec = (b"\0\n", "utf-16-be") if zeros[0] > zeros[1] else (b"\n\0", "utf-16-le")
    often = max(zeros) >= _ZEROS * len(data) / 2 and max(zeros) > 4 * min(zeros)
    return (
        often and 2 * data.count(newline) >= data.count(b"\n") and _decodes(data[: len(data) // 2 * 2], codec)
    )


def _frequent_share(data: bytes, codec: str, leads: _Leads, japanese: bool) -> float:
    """The share of the characters beyond ASCII that are frequent in a language; 0 where the text cannot be decoded."""
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return 0.0
    foreign = [letter for letter in text if letter > "\x7f"]
    kana = sum("\u3040" <= letter <= "\u30ff" for letter in foreign)
    if japanese and kana < len(foreign) / 20:
        return 0.0
    frequent = kana if japanese else 0
    for letter in foreign:
        if "\u3000" <= letter <= "\u303f" or "\uff01" <= letter <= "\uff5e":
            frequent += 1
        elif not "\u3040" <= letter <= "\u30ff":
            packed = letter.encode(codec)
            frequent += len(packed) == 2 and leads(packed[0]) and (codec != "gb18030" or packed[1] > 0xA0)
    return frequent / max(1, len(foreign))


def _western(data: bytes) -> Encoding | None:
    """The encoding of text in which bytes beyond ASCII are single letters and signs among ASCII characters."""
    runs = re.findall(rb"[\x80-\xff]+", data)
    if not runs or sum(map(len, runs)) > 1.5 * len(runs):
        return None
    if re.search(rb"[\x80-\x9f]", data) is None:
        return LATIN_1
    return WINDOWS_1252 if _decodes(data, "cp1252") else None
