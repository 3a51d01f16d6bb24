"""Chunks of one's own in a bench: a function that cuts texts, or a file of finished chunks.

In bench.yaml, `chunkers: [{python: my_module:chunk}, {chunks: chunks.jsonl}]`; both take a `name`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.chunking import Chunk, Span
from steelyard.errors import InputError
from steelyard.evidence.chunks import chunk_table
from steelyard.ids import kind_of
from steelyard.io.evidence import read_chunks
from steelyard.retrievers.adapters.targets import load_target


@dataclass(frozen=True)
class OwnChunker:
    """A function from a text to its chunks: (start, end) pairs, or the chunks' texts in their order.

    >>> OwnChunker(str.split).spans("two  words")
    [(0, 3), (5, 10)]
    """

    function: Callable[[str], Any] = field(compare=False)
    name: str = ""

    @property
    def label(self) -> str:
        """Its name, or that of the function."""
        return self.name or str(getattr(self.function, "__name__", type(self.function).__name__))

    def spans(self, text: str) -> list[Span]:
        """Where its chunks are; an error if they are not parts of the text."""
        found: list[Span] = []
        for number, piece in enumerate(self.function(text), start=1):
            span = _found(text, piece, found[-1] if found else (0, 0)) if isinstance(piece, str) else _pair(piece)
            if span is None or not 0 <= span[0] <= span[1] <= len(text):
                raise InputError(
                    f"chunker {self.label}: chunk {number} is {piece!r:.60}, which is not a part of the text. Return "
                    "the chunks' texts as they are in it, in their order, or (start, end) pairs of characters."
                )
            found.append(span)
        return found


def _found(text: str, piece: str, before: Span) -> Span | None:
    """Where a chunk's text is: right after the chunk before it, or else overlapping it or further on."""
    start = text.find(piece, before[1])
    if start < 0 or text[before[1] : start].strip():
        start = text.find(piece, before[0] + (before[1] > 0))
    return None if start < 0 else (start, start + len(piece))


def _pair(piece: Any) -> Span | None:
    try:
        start, end = piece
    except (TypeError, ValueError):
        raise InputError(f"a chunk is {kind_of(piece)}; expected its text, or a (start, end) pair.") from None
    return (start, end) if type(start) is type(end) is int else None


@dataclass(frozen=True)
class ChunkFile:
    """Finished chunks: a file with chunk_id, doc_id, start and end, and text, which is compared with the documents."""

    path: Path
    name: str = ""

    @property
    def label(self) -> str:
        """Its name, or that of the file."""
        return self.name or self.path.name.partition(".")[0]

    def chunks(self, documents: Mapping[str, str]) -> list[Chunk]:
        """The chunks of the file, with their own ids."""
        frame = read_chunks(self.path)
        table = chunk_table(frame, documents=documents)
        if table["start"].null_count():
            raise InputError(
                f"{self.path}: {table['start'].null_count():,} of {table.height:,} chunks have no start and end; "
                "expected chunk_id, doc_id, start, end and text, in characters of the document, end exclusive."
            )
        return [
            Chunk(chunk, doc, start, end, documents[doc][start:end])
            for chunk, doc, start, end in table.select("chunk_id", "doc_id", "start", "end").iter_rows()
        ]


def own_chunks(entry: Any, folder: Path) -> OwnChunker | ChunkFile | None:
    """The chunker of an entry `python: ...` or `chunks: ...`, or of a function; None for any other entry."""
    if callable(entry) and not hasattr(entry, "spans"):
        return OwnChunker(entry)
    if not isinstance(entry, Mapping) or not {"python", "chunks"} & set(entry):
        return None
    kind = "python" if "python" in entry else "chunks"
    key = "target" if kind == "python" else "path"
    given = entry[kind] if isinstance(entry[kind], Mapping) else {key: entry[kind]}
    settings = {**given, **{name: value for name, value in entry.items() if name != kind}}
    unknown = [str(name) for name in settings if name not in (key, "name")]
    if unknown or key not in settings:
        raise InputError(f"{kind}: expected `{key}` and `name`, got {', '.join(map(str, settings)) or 'nothing'}.")
    name = str(settings.get("name") or "")
    if kind == "python":
        function = load_target(settings[key], "a chunker", folder)
        if not callable(function):
            raise InputError(f"the chunker {settings[key]!r} is {kind_of(function)}; expected a function of a text.")
        return OwnChunker(function, name)
    path = folder / str(settings[key])
    if not path.is_file():
        raise InputError(f"there is no file of chunks {path}.")
    return ChunkFile(path, name)
