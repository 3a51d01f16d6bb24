"""A file to be read: its beginning, its bytes, its text and its JSON, each fetched once and only when asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError
from steelyard.formats.compression import read_bytes, read_head
from steelyard.formats.text import checked, decode

if TYPE_CHECKING:
    import polars as pl

HEAD = 1 << 18


class Source:
    """One file, compressed or not."""

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
    def head_lines(self) -> list[bytes]:
        """The whole lines of the head, without a byte order mark."""
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
        """The whole file as JSON."""
        return parse_json(self.text, self.path)

    @cached_property
    def jsonl(self) -> list[dict[str, Any]]:
        """The objects of a file that holds one JSON object a line."""
        from steelyard.formats.text import bad_lines

        records: list[dict[str, Any]] = []
        problems: list[tuple[int, str]] = []
        for number, line in enumerate(self.text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                record = parse_json(line, self.path)
            except InputError as error:
                problems.append((number, str(error).removeprefix(f"{self.path}: ")))
                continue
            if isinstance(record, dict):
                records.append(record)
            else:
                problems.append((number, f"a {type(record).__name__}, not an object"))
        if problems:
            raise bad_lines(self.path, problems, "Expected one JSON object a line.")
        return records

    @cached_property
    def parquet(self) -> pl.DataFrame:
        """The whole file as a Parquet table."""
        import io

        import polars as pl

        try:
            return pl.read_parquet(io.BytesIO(self.data))
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{self.path} begins as a Parquet file and cannot be read as one ({reason}); "
                "it may be cut short: get a whole copy."
            ) from None


def parse_json(text: str, path: Path) -> Any:
    """The JSON value; a name that comes twice in one object is an error, not the last one's win."""
    import json

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{path}: the name {twice!r} comes twice in one JSON object; keep one of them.")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}: line {error.lineno:,}, column {error.colno:,}: not JSON ({error.msg}). "
            "The file may be cut short, or hold one object a line (format 'jsonl')."
        ) from None
    except RecursionError:
        raise InputError(f"{path}: the JSON is nested too deep to be judgments or a run.") from None
