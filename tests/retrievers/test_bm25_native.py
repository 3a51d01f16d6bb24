"""The kernel's tokenizers and its search that skips documents, compared with the portable code."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needs import needs_kernel
from steelyard.native import kernel
from steelyard.retrievers import BM25
from steelyard.retrievers.postings import Postings, finished, text_postings
from steelyard.retrievers.tokenizers import Tokenizer, default, ngrams, plain_characters, whitespace, words

pytestmark = needs_kernel

VARIANTS = ("okapi", "plus", "l", "lucene", "robertson", "atire")
PLAIN = (default, words, whitespace)
PIECES = (
    "a e i o u y b c d ll tt s ed ing eed ly li ation ational ness ful ive ous al ic able ment ent ion st t er past "
    "gener inter ie ies succ proc exc out inn yy ogist ogi ative izer bl iz at é ï ß 9 _ the of skis dying early news"
)


def counts(found: Postings) -> list[dict[str, int]]:
    """The counts of terms in each document."""
    documents: list[dict[str, int]] = [{} for _ in range(found.documents)]
    starts, docs, counted = found.starts.tolist(), found.docs.tolist(), found.counts.tolist()
    for term, number in found.vocabulary.items():
        for place in range(starts[number], starts[number + 1]):
            documents[docs[place]][term] = counted[place]
    return documents


def check(texts: list[str], tokenize: Tokenizer) -> None:
    """The kernel finds the tokens that the tokenizer finds, and numbers them in the same order."""
    found, tokens = text_postings(texts, tokenize), [tokenize(text) for text in texts]
    assert counts(found) == [dict(Counter(each)) for each in tokens]
    assert list(found.vocabulary) == list(dict.fromkeys(token for each in tokens for token in each))
    assert found.tokens == sum(map(len, tokens))


made_up = st.lists(st.sampled_from(PIECES.split()), min_size=1, max_size=6).map("".join)
scripts = st.sampled_from(
    [(0x20, 0x7F), (0x80, 0x250), (0x370, 0x530), (0x1E00, 0x2200), (0x3000, 0x3100), (0x4E00, 0x4F00)]
    + [(0xAC00, 0xAD00), (0x1100, 0x1200), (0x0E00, 0x0F00), (0x0900, 0x0A00), (0xFF00, 0xFFF0)]
)
of_a_script = scripts.flatmap(
    lambda bounds: st.text(st.characters(min_codepoint=bounds[0], max_codepoint=bounds[1] - 1))
)


@pytest.mark.slow
@pytest.mark.parametrize("tokenize", PLAIN)
@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.text(), of_a_script, st.lists(made_up).map(" ".join)), max_size=5))
def test_tokens_are_those_of_the_tokenizer(tokenize: Tokenizer, texts: list[str]) -> None:
    check(texts, tokenize)


@pytest.mark.slow
@pytest.mark.parametrize("tokenize", PLAIN)
def test_many_made_up_words_have_the_same_tokens(tokenize: Tokenizer) -> None:
    draw = random.Random(5)
    check(
        [" ".join("".join(draw.choices(PIECES.split(), k=draw.randint(1, 6))) for _ in range(20)) for _ in range(2000)],
        tokenize,
    )


@pytest.mark.parametrize("tokenize", PLAIN)
def test_every_plain_character_is_what_the_tokenizer_makes_of_it(tokenize: Tokenizer) -> None:
    """Also between letters and next to another character of its script."""
    known = plain_characters(tokenize)
    assert known is not None
    points = np.flatnonzero(known.characters)
    assert len(points) > 3000
    texts = [
        f"{chr(point)} x{chr(point)}y {chr(point)}{chr(other)}"
        for point, other in zip(points, np.roll(points, 1), strict=True)
    ]
    check(texts, tokenize)


def test_texts_that_are_not_plain_are_left_to_the_tokenizer() -> None:
    asked: list[str] = []

    def tokenize(text: str) -> list[str]:
        asked.append(text)
        return default(text)

    known = plain_characters(default)
    assert known is not None
    indexer = kernel().Indexer(known.characters, known.stems, list(known.stop_words), tokenize)  # type: ignore[union-attr]
    plain = ["Plain text", "naïve – “quoted”", "東京都 ＡＢＣ", "\u00a0non-breaking"]
    others = ["½ a cup", "ΟΔΟΣ", "e\u0301", "lone \ud800", "ﬁne", "𝒳", "ราคา", "İstanbul"]
    indexer.add_texts(plain + others)
    assert asked == others
    assert counts(finished(indexer)) == [dict(Counter(default(text))) for text in plain + others]


def test_other_tokenizers_are_called() -> None:
    assert plain_characters(ngrams(2)) is None
    assert counts(text_postings(["Ab Ab"], ngrams(2))) == [dict(Counter(ngrams(2)("ab ab")))]
    assert counts(text_postings(["ab ab"], lambda text: [text])) == [{"ab ab": 1}]


@pytest.mark.parametrize("large", [False, True])
def test_postings_are_those_of_numpy(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    size = 700 if large else 40
    documents = [[f"w{n}" for n in draw.zipf(1.2, draw.integers(0, size)) if n < 10**6] for _ in range(900)]
    documents[5] = ["w1"] * 300 + ["w2"] * 255 + ["w3"] * 254  # counts that need more than a byte
    found = text_postings(map(" ".join, documents), str.split)
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    expected = text_postings(map(" ".join, documents), str.split)
    for name in ("starts", "docs", "codes", "pair_counts", "pair_lengths"):
        assert getattr(found, name).dtype == getattr(expected, name).dtype
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert (found.vocabulary, found.documents, found.tokens) == (expected.vocabulary, 900, expected.tokens)


@pytest.mark.slow
def test_many_pairs_of_count_and_length_have_codes_of_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    # Document n has n tokens, and the term t n // t times: more than 65,535 pairs.
    documents = [[f"t{t}" for t in range(1, 61) for _ in range(n // t)] for n in range(1, 1800)]
    found = text_postings(map(" ".join, documents), str.split)
    assert found.codes.dtype == np.uint32
    bm25 = BM25("l", tokenizer=str.split).index({str(n): " ".join(each) for n, each in enumerate(documents)})
    answers = bm25.retrieve(["t3 t59 t3", "t60 t1"], k=5)
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    assert bm25.retrieve(["t3 t59 t3", "t60 t1"], k=5) == answers


def corpus_of(seed: int, size: int, exponent: float, longest: int) -> tuple[dict[str, str], Any]:
    """Documents of words by Zipf's law, of different lengths, and the generator."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(0, longest, size)
    drawn = np.minimum(draw.zipf(exponent, lengths.sum()), 20_000)
    parts = np.split(drawn, np.cumsum(lengths)[:-1])
    return {f"d{i}": " ".join(f"w{n}" for n in part) for i, part in enumerate(parts)}, draw


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("seed", "exponent", "longest"), [(0, 1.1, 12), (1, 1.5, 40), (2, 2.5, 5)])
def test_the_search_that_skips_documents_misses_none(
    variant: Any, seed: int, exponent: float, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores and order equal those of a search of all documents, also for repeated, rare and very common terms."""
    corpus, draw = corpus_of(seed, 14_000, exponent, longest)
    queries = [" ".join(f"w{n}" for n in draw.zipf(exponent, draw.integers(1, 9))) for _ in range(12)]
    # Few postings: read document by document.
    queries += [" ".join(f"w{n}" for n in draw.integers(1000, 20_000, 5)) for _ in range(8)]
    queries += [
        "w9000 w500 w9000 w12000",
        "w1",
        "w1 w1 w1",
        "w2 w1 w2 w300 w2",
        "w19 w500 w7000",
        "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10",
        "none",
        "",
    ]
    fill = seed != 1
    bm25 = BM25(variant, tokenizer="whitespace", fill=fill, k1=0.0 if seed == 2 else 1.2).index(corpus)
    ks = (1, 3, 10, 100, 1000)
    answers = {k: bm25.retrieve(queries, k) for k in ks}
    singles = [bm25.retrieve([query], 10)[0] for query in queries]
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    assert singles == answers[10]
    for k in ks:
        assert bm25.retrieve(queries, k) == answers[k]


@pytest.mark.parametrize("epsilon", [0.0, -3.0])
def test_terms_with_an_idf_of_0_or_below_are_found(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = {f"d{i}": "common" + (" rare" if i % 997 == 0 else "") + " more" * (i % 3) for i in range(9000)}
    bm25 = BM25(epsilon=epsilon, fill=False, tokenizer="whitespace").index(corpus)
    queries = ["common", "rare common", "more common rare"]
    answers = [bm25.retrieve(queries, k) for k in (3, 20)]
    assert all(len(found) == 3 for found in answers[0])
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    assert [bm25.retrieve(queries, k) for k in (3, 20)] == answers


def test_threads_change_nothing() -> None:
    corpus, draw = corpus_of(7, 6000, 1.2, 30)
    bm25 = BM25("lucene", tokenizer="whitespace").index(corpus)
    queries = [" ".join(f"w{n}" for n in draw.zipf(1.2, 6)) for _ in range(300)]
    many = bm25.retrieve(queries, 20)
    assert many == [bm25.retrieve([query], 20)[0] for query in queries]
