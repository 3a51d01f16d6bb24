"""Chunkers: texts split into chunks by tokens, sentences or separators, and the tokenizers that count."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np

from steelyard.alignment.hits import Ints
from steelyard.checks import is_whole, unknown_name, whole_number
from steelyard.errors import InputError
from steelyard.ids import kind_of
from steelyard.io.files import optional

Tokenizer = Callable[[str], Sequence[Any]]  # From a text to its tokens: strings, or numbers that are only starts.
_WORD = re.compile(r"\S+")


def tokenizer_of(tokenizer: str | Tokenizer) -> Tokenizer:
    """'whitespace', 'tiktoken' (or 'tiktoken:' and an encoding), or a callable unchanged.

    >>> list(tokenizer_of("whitespace")("two words"))
    ['two', 'words']
    """
    if callable(tokenizer):
        return tokenizer
    if tokenizer == "whitespace":
        return str.split
    name, _, encoding = str(tokenizer).partition(":")
    if name != "tiktoken":
        raise InputError(
            f"unknown tokenizer {tokenizer!r}; expected 'whitespace', 'tiktoken', 'tiktoken:ENCODING' or a callable."
        )
    tiktoken = optional("tiktoken", "tokenizer 'tiktoken' needs", "pip install tiktoken.")
    try:
        encoder = tiktoken.get_encoding(encoding or "cl100k_base")
    except (OSError, ValueError) as error:
        raise InputError(f"tokenizer {tokenizer!r}: the encoding cannot be loaded ({error!s:.80}).") from None

    def tokenize(text: str) -> list[str]:
        return [encoder.decode([token]) for token in encoder.encode_ordinary(text)]

    return tokenize


def token_counts(texts: Mapping[str, str], tokenizer: str | Tokenizer = "whitespace") -> dict[str, int]:
    """How many tokens every text has, as `Run(..., tokens=...)` takes it for measures with a budget.

    >>> token_counts({"c1": "two words"})
    {'c1': 2}
    """
    tokenize = tokenizer_of(tokenizer)
    return {doc: len(tokenize(text)) for doc, text in texts.items()}


def token_starts(text: str, tokenizer: str | Tokenizer = "whitespace") -> Ints:
    """Where every token starts. The tokens of a callable must be pieces of the text, in its order.

    >>> token_starts("two  words").tolist()
    [0, 5]
    """
    if tokenizer == "whitespace":
        return np.array([match.start() for match in _WORD.finditer(text)], dtype=np.int64)
    starts: list[int] = []
    place = 0
    for token in tokenizer_of(tokenizer)(text):
        if not isinstance(token, str):
            raise InputError(
                f"the tokenizer returns {kind_of(token)}; expected pieces of the text, to know where they are."
            )
        start = text.find(token, place)
        # A tokenizer that splits a character returns a piece that is not in the text: it starts at the last end.
        starts.append(start if start >= 0 else min(place, max(0, len(text) - 1)))
        place = place if start < 0 else start + len(token)
    return np.array(starts, dtype=np.int64)


Span: TypeAlias = tuple[int, int]  # Where a chunk starts and ends in its text, end exclusive.
_SENTENCE_END = re.compile(r"""[.!?]+["'”’)\]]*\s+|[。！？]+["'”’）」』]*|\n\s*\n\s*""")
_SEPARATORS = [re.compile(re.escape(text)) for text in ("\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " ")]


@dataclass(frozen=True)
class Chunk:
    """A part of a document: `documents[doc_id][start:end] == text`."""

    chunk_id: str
    doc_id: str
    start: int
    end: int
    text: str


class Chunker(Protocol):
    """Anything that splits a text into spans."""

    @property
    def label(self) -> str:
        """Its name in tables."""

    def spans(self, text: str) -> list[Span]:
        """Where its chunks start and end, in the order of the text."""


@dataclass(frozen=True)
class Fixed:
    """Windows of `tokens` tokens; each starts `overlap` tokens before the end of the last one.

    >>> text = "one two three four five"
    >>> [text[a:b] for a, b in Fixed(tokens=2, overlap=1).spans(text)]
    ['one two', 'two three', 'three four', 'four five']
    """

    tokens: int = 200
    overlap: int = 0
    tokenizer: str | Tokenizer = "whitespace"
    name: str | None = None

    def __post_init__(self) -> None:
        whole_number("fixed: tokens", self.tokens, 1)
        if not is_whole(self.overlap, 0) or self.overlap >= self.tokens:
            raise InputError(f"fixed: overlap is {self.overlap!r}; expected 0 to {self.tokens - 1}, below tokens.")

    @property
    def label(self) -> str:
        """`fixed-200`, or `fixed-200/20` with an overlap of 20."""
        return self.name or f"fixed-{self.tokens}" + (f"/{self.overlap}" if self.overlap else "")

    def spans(self, text: str) -> list[Span]:
        """The windows; the last one may be shorter, and none only repeats the one before."""
        starts = token_starts(text, self.tokenizer)
        cuts: list[Span] = []
        for first in range(0, len(starts), self.tokens - self.overlap):
            last = first + self.tokens
            end = int(starts[last]) if last < len(starts) else len(text)
            cuts.append(_trimmed(text, int(starts[first]), end))
            if last >= len(starts):
                break
        return cuts


@dataclass(frozen=True)
class _Joined:
    """A chunker that joins pieces of a text as long as they fit into `tokens`."""

    tokens: int = 200
    tokenizer: str | Tokenizer = "whitespace"
    name: str | None = None

    def __post_init__(self) -> None:
        whole_number(f"{type(self).__name__.lower()}: tokens", self.tokens, 1)

    @property
    def label(self) -> str:
        """`sentence-100`, `recursive-200`."""
        return self.name or f"{type(self).__name__.lower()}-{self.tokens}"

    def _joined(self, pieces: Iterable[Span], starts: Ints) -> list[Span]:
        """The pieces, each joined to the one before as long as they fit."""
        joined: list[Span] = []
        for start, end in pieces:
            if joined and _count(starts, joined[-1][0], end) <= self.tokens:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
        return joined


@dataclass(frozen=True)
class Sentence(_Joined):
    """Whole sentences, as many as fit into `tokens`; a longer sentence is a chunk of its own.

    A sentence ends at . ! or ? before white space, at their full-width forms, and at an empty line.

    >>> text = "One is short. Two is short. Three is the last one."
    >>> [text[a:b] for a, b in Sentence(tokens=6).spans(text)]
    ['One is short. Two is short.', 'Three is the last one.']
    """

    tokens: int = 100

    def spans(self, text: str) -> list[Span]:
        """Sentences, joined as long as they fit."""
        bounds = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
        sentences = [(start, end) for start, end in pairwise(bounds) if text[start:end].strip()]
        return [_trimmed(text, *span) for span in self._joined(sentences, token_starts(text, self.tokenizer))]


@dataclass(frozen=True)
class Recursive(_Joined):
    """Split at the coarsest separator; pieces longer than `tokens` at the next one; then joined as long as they fit.

    Separators: an empty line, a line end, sentence ends, semicolon, comma, space. A word is never split.

    >>> text = "One line here.\\n\\nAnother, which is longer.\\nEnd."
    >>> [text[a:b] for a, b in Recursive(tokens=4).spans(text)]
    ['One line here.', 'Another, which is longer.', 'End.']
    """

    def spans(self, text: str) -> list[Span]:
        """The pieces that fit, coarse before fine."""
        starts = token_starts(text, self.tokenizer)
        return [_trimmed(text, a, b) for a, b in self._split(text, 0, len(text), starts, 0) if text[a:b].strip()]

    def _split(self, text: str, start: int, end: int, starts: Ints, level: int) -> Iterator[Span]:
        if _count(starts, start, end) <= self.tokens or level == len(_SEPARATORS):
            yield start, end
            return
        cuts = [start, *(match.end() for match in _SEPARATORS[level].finditer(text, start, end)), end]
        for piece in self._joined([(a, b) for a, b in pairwise(cuts) if a < b], starts):
            yield from self._split(text, *piece, starts, level + 1)


@dataclass(frozen=True)
class Whole:
    """Every document is one chunk.

    >>> Whole().spans("All of it.")
    [(0, 10)]
    """

    name: str | None = None

    @property
    def label(self) -> str:
        """`whole`."""
        return self.name or "whole"

    def spans(self, text: str) -> list[Span]:
        """The whole text."""
        return [(0, len(text))] if text else []


def chunk_documents(documents: Mapping[str, str], chunker: Chunker) -> list[Chunk]:
    """The chunks of every document, with ids document#number; an empty document has none.

    >>> chunk_documents({"d": "one two three"}, Fixed(tokens=2))[1]
    Chunk(chunk_id='d#2', doc_id='d', start=8, end=13, text='three')
    """
    return [
        Chunk(f"{doc}#{number}", doc, start, end, text[start:end])
        for doc, text in documents.items()
        for number, (start, end) in enumerate(chunker.spans(text), start=1)
    ]


def _trimmed(text: str, start: int, end: int) -> Span:
    """The span without white space at its ends."""
    inside = text[start:end]
    left = len(inside) - len(inside.lstrip())
    return start + left, end - (len(inside) - len(inside.rstrip()))


def _count(starts: Ints, start: int, end: int) -> int:
    """How many tokens start in a span."""
    first, last = np.searchsorted(starts, [start, end])
    return int(last - first)


_KNOWN: dict[str, type[Any]] = {"fixed": Fixed, "sentence": Sentence, "recursive": Recursive, "whole": Whole}


def chunker(spec: str | Mapping[str, Any] | Chunker) -> Chunker:
    """A chunker by name, from {name: settings} as in YAML, or unchanged.

    >>> chunker({"fixed": {"tokens": 200, "overlap": 20}}).label
    'fixed-200/20'
    """
    if not isinstance(spec, (str, Mapping)):
        if not hasattr(spec, "spans") or not hasattr(spec, "label"):
            raise InputError(
                f"{spec!r} is not a chunker; expected a name ({', '.join(_KNOWN)}), or {{name: settings}}."
            )
        return spec
    if isinstance(spec, Mapping) and len(spec) != 1:
        raise InputError(f"a chunker is one name with its settings; got {sorted(map(str, spec))}.")
    name, settings = (spec, {}) if isinstance(spec, str) else next(iter(spec.items()))
    if name not in _KNOWN:
        raise InputError(unknown_name("chunker", name, _KNOWN))
    if not isinstance(settings or {}, Mapping):
        raise InputError(f"the settings of {name} are {settings!r}; expected `setting: value` pairs.")
    allowed = list(inspect.signature(_KNOWN[name]).parameters)
    for key in settings or {}:
        if key not in allowed:
            raise InputError(f"{name}: {unknown_name('setting', key, allowed)}")
    instance: Chunker = _KNOWN[name](**(settings or {}))
    return instance
