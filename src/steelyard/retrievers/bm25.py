"""BM25: the formulas of its variants, and the retriever.

Notation: N documents, df of them with the term; tf is the count of the term in the document; `length` is the
document's length divided by the mean length. `okapi`, `plus` and `l` are those of rank_bm25 0.2.2, with the same
order of operations, so that the float64 scores are equal to the last bit; `lucene`, `robertson` and `atire` are
those of Kamphuis et al. (2020), as in bm25s.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.datasets.packed import PackedTexts
from steelyard.errors import InputError
from steelyard.io.files import required_file
from steelyard.retrievers.base import Ranked, Self, checked_corpus, checked_index, checked_queries
from steelyard.retrievers.index_file import IndexFile, SavedIndex, write_index
from steelyard.retrievers.postings import Floats, Postings, SparseIndex, file_postings, search, text_postings
from steelyard.retrievers.settings import Declared, setting
from steelyard.retrievers.tokenizers import describe_tokenizer, tokenizer_of
from steelyard.wording import counted

Integers = npt.NDArray[np.int32]
_LARGEST = 1e6  # of a constant: scores stay far from what a float can hold
VariantName: TypeAlias = Literal["okapi", "plus", "l", "lucene", "robertson", "atire"]


@dataclass(frozen=True)
class Variant:
    """A formula: a term's IDF from (df, N), and the factors of its weight from (tf, 1 - b + b x length, k1, delta).

    The weight is IDF x the factor; of four factors, IDF x the first x the second x the third / the fourth. delta: the
    default of delta. floored: a negative IDF becomes epsilon x the mean IDF. everywhere: a document without the term
    also gets delta x IDF.
    """

    idf: Callable[[int, int], float]
    factors: Callable[[Integers, Floats, float, float], tuple[Floats, ...]]
    delta: float = 0.0
    floored: bool = False
    everywhere: bool = False


def _saturated(tf: Integers, norm: Floats, k1: float, delta: float) -> tuple[Floats, ...]:
    return (delta + tf * (k1 + 1) / (tf + k1 * norm),)


def _unscaled(tf: Integers, norm: Floats, k1: float, delta: float) -> tuple[Floats, ...]:
    return (tf / (k1 * norm + tf),)


def _l(tf: Integers, norm: Floats, k1: float, delta: float) -> tuple[Floats, ...]:
    normed = tf / norm
    return (tf.astype(np.float64), np.full(len(tf), k1 + 1), normed + delta, k1 + normed + delta)


VARIANTS: dict[str, Variant] = {
    "okapi": Variant(lambda df, n: math.log(n - df + 0.5) - math.log(df + 0.5), _saturated, floored=True),
    "plus": Variant(lambda df, n: math.log((n + 1) / df), _saturated, delta=1.0, everywhere=True),
    "l": Variant(lambda df, n: math.log(n + 1) - math.log(df + 0.5), _l, delta=0.5),
    "lucene": Variant(lambda df, n: math.log(1 + (n - df + 0.5) / (df + 0.5)), _unscaled),
    "robertson": Variant(lambda df, n: math.log(max(1.0, (n - df + 0.5) / (df + 0.5))), _unscaled),
    "atire": Variant(lambda df, n: math.log(n / df), _saturated),
}


def idfs(variant: Variant, frequencies: npt.NDArray[np.int64], documents: int, epsilon: float) -> Floats:
    """The IDF of every term, in the order of the vocabulary.

    Okapi's IDF is negative for a term in more than half of the documents; it is then epsilon times the mean
    IDF of all terms, including the negative ones.
    """
    distinct, position = np.unique(frequencies, return_inverse=True)
    values: Floats = np.array([variant.idf(int(df), documents) for df in distinct], dtype=np.float64)[position]
    if variant.floored and len(values):
        # accumulate adds one by one, as rank_bm25 does; sum adds in pairs and rounds differently.
        values[values < 0] = epsilon * (float(np.add.accumulate(values)[-1]) / len(values))
    # Never -0.0: the search tells a document without any term by it.
    return values + 0.0


class BM25(Declared):
    """BM25: the terms that a document shares with the query, weighted by rarity.

    The score is the sum over the query's terms of IDF(term) x the term's weight in the document.

    `index` also takes the path of a corpus.jsonl, or of a folder with one: its texts are not held. `save` writes the
    index to a file, and `load` opens it.

    Equal scores are in document order. For an empty query, or one of unknown terms, all documents have equal scores.

    >>> bm25 = BM25(variant="okapi", k1=1.5, b=0.75, tokenizer="whitespace")
    >>> corpus = {"d1": "a red fox", "d2": "a grey wolf", "d3": "a red deer", "d4": "an owl"}
    >>> [(doc, round(score, 4)) for doc, score in bm25.index(corpus).retrieve(["grey fox"], k=3)[0]]
    [('d1', 0.814), ('d2', 0.814), ('d3', 0.0)]
    """

    retriever = "bm25"

    variant: VariantName = setting(
        "`okapi`, `plus` and `l` give the scores of rank_bm25 0.2.2, the others those of bm25s",
        default="okapi",
        kw_only=False,
    )
    k1: float = setting(
        "term frequency saturation, up to 1,000,000; 0 uses only the presence of a term", default=1.5, high=_LARGEST
    )
    b: float = setting("length normalisation, from 0 (none) to 1", default=0.75, high=1.0)
    delta: float | None = setting(
        "what plus and l add to a term's weight (1 and 0.5 by default); not for the other variants",
        default=None,
        high=_LARGEST,
    )
    epsilon: float = setting(
        "in okapi, the IDF of a term in more than half of the documents is epsilon x the mean IDF",
        default=0.25,
        low=-_LARGEST,
        high=_LARGEST,
    )
    tokenizer: str | Callable[[str], Sequence[str]] = setting(
        "`default`, `words`, `whitespace`, `ngrams`, `ngrams:3`, or a callable str -> list of tokens",
        default="default",
        key=None,
    )
    fill: bool = setting(
        "if fewer than k documents share a term with the query, documents without a shared term follow in document "
        "order, as in a sort of all scores; False leaves them out",
        default=True,
    )

    def _label(self) -> str:
        return self.name or (f"bm25-{self.variant}" if self.variant in VARIANTS else self.retriever)

    def _set_up(self) -> None:
        self._formula = VARIANTS[self.variant]
        if self.delta is not None and not self._formula.delta:
            raise self._error("only the variants plus and l have delta; leave it out.")
        self._delta = self._formula.delta if self.delta is None else self.delta
        self._tokenize = tokenizer_of(self.tokenizer, self.label)
        self._index: tuple[SparseIndex, Sequence[str]] | None = None
        self._file: IndexFile | None = None

    def index(self, corpus: Mapping[str, str] | str | Path) -> Self:
        """Index a corpus, or the file of one (corpus.jsonl, or its folder); a second call replaces the first index."""
        ids: Sequence[str]
        if isinstance(corpus, (str, Path)):
            path = required_file(Path(corpus), "corpus.jsonl") if Path(corpus).is_dir() else Path(corpus)
            postings, packed = self._with_token_errors(lambda: file_postings(path, self._tokenize))
            if repeats := packed.repeats():
                raise InputError(
                    f"{counted(len(repeats), 'document id occurs', 'document ids occur')} again, the first is "
                    f"{packed[repeats[0][0]]!r}; remove the documents that repeat an id.",
                    path,
                )
            ids = packed
        else:
            documents = checked_corpus(corpus, self.label)
            postings = self._with_token_errors(lambda: text_postings(documents.texts, self._tokenize))
            ids = documents.ids
        self._index, self._file = (self._weighted(postings), ids), None
        return self

    def save(self, path: str | Path) -> None:
        """Write the index to a file, with the settings. A file at the path is replaced."""
        index, ids = checked_index(self._index, self.label)
        packed = ids if isinstance(ids, PackedTexts) else PackedTexts.of(ids, "surrogatepass")
        settings = {**self.settings(), "name": self.label}
        write_index(Path(path), SavedIndex(settings, index.postings, index.largest, packed))

    @classmethod
    def load(cls, path: str | Path, tokenizer: Callable[[str], Sequence[str]] | None = None) -> Self:
        """A retriever with a saved index and its settings. The postings are mapped from the file, not read.

        tokenizer: the callable that the index was made with, if it was one; named tokenizers are in the file.

        A file that is damaged, or no saved index, is an InputError.
        """
        file = IndexFile(Path(path))
        saved = file.read()
        with file.reading():
            settings = {key: value for key, value in saved.settings.items() if key != "retriever"}
            if not VARIANTS[settings["variant"]].delta:
                settings.pop("delta")
            if tokenizer is not None:
                settings["tokenizer"] = tokenizer
            loaded = cls(**settings)
        return loaded._opened(file, saved)

    def restore(self, path: str | Path) -> Self:
        """Open a saved index of the same settings; an error if its settings are others."""
        file = IndexFile(Path(path))
        return self._opened(file, file.read())

    def _opened(self, file: IndexFile, saved: SavedIndex) -> Self:
        theirs = {key: value for key, value in saved.settings.items() if key != "name"}
        if theirs != self.settings():
            names = [key for key, value in self.settings().items() if theirs.get(key) != value]
            raise self._error(f"{file.path} was saved with other settings ({', '.join(names)}); index the corpus.")
        with file.reading():
            index = self._weighted(saved.postings, saved.largest)
        self._index, self._file = (index, saved.ids), file
        return self

    def _weighted(self, postings: Postings, largest: Floats | None = None) -> SparseIndex:
        """The postings with the weights of the formula."""
        idf = idfs(self._formula, np.diff(postings.starts), postings.documents, self.epsilon)
        mean_length = np.int64(postings.tokens) / postings.documents or 1.0
        norm = 1 - self.b + self.b * postings.pair_lengths / mean_length
        factors = np.stack(self._formula.factors(postings.pair_counts, norm, self.k1, self._delta), axis=1)
        bases = idf * self._delta if self._formula.everywhere else np.zeros(len(idf))
        return SparseIndex.of(postings, factors, idf, bases, largest)

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs."""
        index, ids = checked_index(self._index, self.label)
        listed = checked_queries(queries, k, self.label)
        tokens = self._with_token_errors(lambda: list(map(self._tokenize, listed)))
        with self._file.searching() if self._file is not None else nullcontext():
            lists: list[Ranked] = self._with_token_errors(lambda: search(index, ids, tokens, k, not self.fill))
        return lists

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"delta": self._delta, "tokenizer": describe_tokenizer(self.tokenizer)}

    def size_in_bytes(self) -> int:
        """The postings with weights, and the vocabulary."""
        if self._index is None:
            return 0
        index, _ = self._index
        vocabulary = index.postings.vocabulary
        return index.nbytes + sys.getsizeof(vocabulary) + sum(map(sys.getsizeof, vocabulary))

    def _with_token_errors(self, work: Callable[[], Any]) -> Any:
        """The result of the work; a TypeError of the user's tokenizer becomes an error about it."""
        try:
            return work()
        except TypeError as error:
            if not callable(self.tokenizer):
                raise
            raise self._error(
                f"the tokenizer {describe_tokenizer(self.tokenizer)} failed or did not "
                f"return a list of tokens ({error}); expected a callable from a text to a list of texts."
            ) from error
