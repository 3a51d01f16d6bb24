"""Tokenizers and the stemmer."""

from __future__ import annotations

import random

import pytest

from needs import import_peer
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.tokenizers import default, describe_tokenizer, ngrams, stem, tokenizer_of, words

PIECES = (
    "a e i o u y b c d ll tt s ed ing eed ly li ation ational ness ful ive ous al ic able ment ent ion st t er past "
    "gener inter 's ' ie ies succ out yy ogist ogi ative izer bl iz at"
)


def test_stems_equal_those_of_snowball() -> None:
    peer = import_peer("snowballstemmer").stemmer("english")
    draw = random.Random(3)
    made = ["".join(draw.choices(PIECES.split(), k=draw.randint(1, 6))) for _ in range(20_000)]
    known = "skis skies dying news inning proceed exceeding singly evening consistency generously university happy says"
    for word in [*made, *known.split()]:
        assert stem(word) == peer.stemWord(word)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("The running FOXES", ["run", "fox"]),
        ("東京都に行く", ["東京", "京都", "都に", "に行", "行く"]),
        ("私", ["私"]),
        ("ＡＢＣ　カタカナ", ["abc", "カタ", "タカ", "カナ"]),
        ("ｶﾞｲﾄﾞ", ["ガイ", "イド"]),
        ("Python言語", ["python", "言語"]),
        ("한국어 검색", ["한국", "국어", "검색"]),
        ("Überprüfung, naïve!", ["überprüfung", "naïv"]),
        ("ราคา", ["รา", "าค", "คา"]),
        ("well-known e-mail_address 3.5", ["well", "known", "e", "mail_address", "3", "5"]),
    ],
)
def test_default(text: str, expected: list[str]) -> None:
    assert default(text) == expected


def test_words_keep_unspaced_scripts_whole() -> None:
    assert words("東京都 の wolves") == ["東京都", "の", "wolv"]


def test_ngrams_cross_single_spaces() -> None:
    assert ngrams(2)("A  b\nC") == ["a ", " b", "b ", " c"]
    assert ngrams(3)("ab") == ["ab"]
    assert ngrams(3)("  ") == []
    assert tokenizer_of("ngrams:3", "bm25")("abcd") == ["abc", "bcd"]


@pytest.mark.parametrize("name", ["ngrams:0", "ngrams:", "wordz", ""])
def test_unknown_tokenizers_are_refused(name: str) -> None:
    with pytest.raises(RetrieverError, match="unknown tokenizer"):
        tokenizer_of(name, "bm25")


def test_a_callable_is_described_by_its_source() -> None:
    def one(text: str) -> list[str]:
        return text.split()

    def other(text: str) -> list[str]:
        return text.split("|")

    assert describe_tokenizer(one) != describe_tokenizer(other)
    assert describe_tokenizer(one) == describe_tokenizer(one)
    assert describe_tokenizer("words") == "words"
