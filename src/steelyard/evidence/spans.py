"""The ranges of spans and chunks in their documents, which the span measures compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import polars as pl

from steelyard.alignment.ranges import Ranges
from steelyard.chunking import Tokenizer, token_starts
from steelyard.errors import InputError
from steelyard.evidence.conditions import Alternatives

Unit = Literal["character", "token"]


def ranges_of(
    every: Alternatives,
    chunks: pl.DataFrame,
    unit: Unit = "character",
    tokenizer: str | Tokenizer = "whitespace",
    documents: Mapping[str, str] | None = None,
) -> Ranges | None:
    """The spans of the targets and the chunks as ranges of their documents; None without spans.

    unit='token' counts tokens of the documents; a token belongs to the place of its first character.
    """
    if unit not in ("character", "token"):
        raise InputError(f"unit is {unit!r}; expected 'character' or 'token'.")
    if unit == "token" and documents is None:
        raise InputError("unit='token' needs the documents (documents=...), to know where their tokens are.")
    spans = [
        (query, one)
        for query, one in zip(every.query, every.alternative, strict=True)
        if one.is_span and not one.is_distractor
    ]
    if not spans:
        return None
    gold = pl.DataFrame(
        [(query, one.doc_id, one.start, one.end) for query, one in spans],
        schema={"query_id": pl.String, "doc_id": pl.String, "start": pl.Int64, "end": pl.Int64},
        orient="row",
    )
    placed = chunks.filter(pl.col("start").is_not_null()).select("chunk_id", "doc_id", "start", "end")
    if unit == "token":
        assert documents is not None
        gold, placed = (_in_tokens(frame, tokenizer, documents) for frame in (gold, placed))
    return Ranges(gold, placed)


def _in_tokens(frame: pl.DataFrame, tokenizer: str | Tokenizer, documents: Mapping[str, str]) -> pl.DataFrame:
    """Ranges of characters as ranges of tokens."""
    parts = []
    for (name,), part in frame.group_by("doc_id", maintain_order=True):
        if name not in documents:
            raise InputError(f"document {name!r} is not among the documents.")
        starts = token_starts(documents[str(name)], tokenizer)
        parts.append(
            part.with_columns(start=np.searchsorted(starts, part["start"]), end=np.searchsorted(starts, part["end"]))
        )
    return pl.concat(parts)
