"""Chunkers: every chunk is a slice of its text, nothing but white space is lost, and sizes are kept."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.chunking import Fixed, Recursive, Sentence, Whole, chunk_documents, chunker, token_counts, token_starts
from steelyard.errors import InputError

texts = st.lists(
    st.sampled_from(
        ["word", "a", "longer", " ", "  ", "\n", "\n\n", ". ", "! ", "? ", ", ", "; ", "終わり。", "\u00a0"]
    ),
    max_size=60,
).map("".join)
chunkers = st.one_of(
    st.tuples(st.integers(1, 9), st.integers(0, 8)).filter(lambda p: p[1] < p[0]).map(lambda p: Fixed(*p)),
    st.integers(1, 9).map(Sentence),
    st.integers(1, 9).map(Recursive),
)


@pytest.mark.slow
@given(texts, chunkers)
@settings(deadline=None, max_examples=200)
def test_chunks_are_slices_that_cover_the_text(text: str, cutter: Any) -> None:
    chunks = chunk_documents({"d": text}, cutter)
    covered = [False] * len(text)
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        covered[chunk.start : chunk.end] = [True] * len(chunk.text)
    assert all(seen or character.isspace() for seen, character in zip(covered, text, strict=True))
    assert [chunk.start for chunk in chunks] == sorted({chunk.start for chunk in chunks})
    if not isinstance(cutter, Sentence):
        assert all(len(chunk.text.split()) <= cutter.tokens or " " not in chunk.text for chunk in chunks)


@given(texts, st.integers(2, 9), st.integers(0, 8))
@settings(deadline=None)
def test_fixed_windows_overlap(text: str, tokens: int, overlap: int) -> None:
    overlap = min(overlap, tokens - 1)
    words = text.split()
    made = [chunk.text.split() for chunk in chunk_documents({"d": text}, Fixed(tokens, overlap))]
    step = tokens - overlap
    last = max(0, -(-(len(words) - tokens) // step)) if words else -1
    assert made == [words[at * step : at * step + tokens] for at in range(last + 1)]


def test_sentences_are_not_cut() -> None:
    text = 'He asked: "Why?" Nobody knew. 終わり。 次。\n\nA heading\n\nThe end!'
    made = [text[a:b] for a, b in Sentence(tokens=1).spans(text)]
    assert made == ['He asked: "Why?"', "Nobody knew.", "終わり。", "次。", "A heading", "The end!"]


def test_whole_and_empty_documents() -> None:
    chunks = chunk_documents({"a": " all \n", "b": ""}, Whole())
    assert [(chunk.chunk_id, chunk.text) for chunk in chunks] == [("a#1", " all \n")]


def test_a_custom_tokenizer() -> None:
    def pieces(text: str) -> list[str]:
        return re.findall(r"\w{1,3}", text)

    assert token_starts("abcdef gh", pieces).tolist() == [0, 3, 7]
    assert token_counts({"d": "abcdef gh"}, pieces) == {"d": 3}
    assert [c.text for c in chunk_documents({"d": "abcdef gh"}, Fixed(2, tokenizer=pieces))] == ["abcdef", "gh"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("fixt", "unknown chunker 'fixt'; expected one of fixed, sentence, recursive, whole. Did you mean fixed"),
        (
            {"fixed": {"token": 5}},
            "unknown setting 'token'; expected one of tokens, overlap, tokenizer, name. Did you mean token",
        ),
        ({"fixed": {"tokens": 0}}, "tokens is 0"),
        ({"fixed": {"tokens": 5, "overlap": 5}}, "overlap is 5; expected 0 to 4"),
        ({"sentence": {"tokens": 0}}, "sentence: tokens is 0"),
        ({"recursive": {"tokens": 1.5}}, "recursive: tokens is 1.5"),
        ({"fixed": 200}, "the settings of fixed are 200"),
        ({"fixed": {}, "sentence": {}}, "one name with its settings"),
        (7, "7 is not a chunker"),
    ],
)
def test_unknown_chunkers_and_settings(spec: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        chunker(spec)


def test_unknown_tokenizers() -> None:
    with pytest.raises(InputError, match="unknown tokenizer 'bpe'"):
        token_counts({"d": "x"}, "bpe")
    with pytest.raises(InputError, match="the tokenizer returns a int"):
        token_starts("x", lambda text: [1])
