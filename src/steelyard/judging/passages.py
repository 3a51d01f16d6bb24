"""Passages drawn from a corpus at random, with known probabilities: windows of whole sentences."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from steelyard.chunking import Sentence
from steelyard.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from steelyard.datasets import Corpus

WINDOW = 1000
"""Characters from which a window is complete; it ends with the sentence that reaches them."""
LONGEST = 6000
"""Characters of a window at most; a text without sentence ends has longer ones."""
FEWEST_WORDS = 25
MOST_MISSES = 1000
"""Draws in a row without a new passage that has content, after which the drawing stops."""

_LEGAL = re.compile(
    r"all rights reserved|permission is hereby granted|without warrant(?:y|ies) of any kind|licensed under the"
    r"|terms and conditions of this licen[sc]e|redistribution and use in source",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Passage:
    """A window of whole sentences, `corpus.texts[doc_id][start:end]`, and the probability of each draw to give it."""

    doc_id: str
    start: int
    end: int
    text: str
    probability: float


@dataclass(frozen=True)
class Drawn:
    """The passages in the order drawn, and how many draws were passed over, by reason."""

    passages: list[Passage]
    passed_over: Counter[str] = field(default_factory=Counter)


class Sampler:
    """Draws passages: a stratum, a document of it and a window of that, each uniformly at random.

    Long documents are therefore as likely as short ones. `by` names a field of the documents' metadata; its values are
    the strata, each as likely as the others; without it all documents are one stratum. Documents without text are
    left out. The probability of a window is 1 / (strata x documents of the stratum x windows of the document).
    """

    def __init__(self, corpus: Corpus, by: str | None = None, size: int = WINDOW) -> None:
        self.texts: Mapping[str, str] = corpus.texts
        strata: dict[str, list[str]] = {}
        for doc_id, text in self.texts.items():
            if text.strip():
                value = "" if by is None else corpus.metadata[doc_id].get(by)
                strata.setdefault("not given" if value is None else str(value), []).append(doc_id)
        if not strata:
            raise InputError("the corpus has no document with a text; expected at least one.")
        if by is not None and set(strata) == {"not given"}:
            known = sorted({name for doc_id in self.texts for name in corpus.metadata[doc_id]})
            raise InputError(
                f"no document has a field {by!r}; the fields are {', '.join(known) or 'none'}.{did_you_mean(by, known)}"
            )
        self.strata = list(strata.values())
        self.size = size
        self.windows: Callable[[str], list[tuple[int, int]]] = lru_cache(maxsize=4096)(self._windows)

    def _windows(self, doc_id: str) -> list[tuple[int, int]]:
        return windows(self.texts[doc_id], self.size)

    def draw(self, generator: np.random.Generator) -> Passage:
        """One passage, whatever its content."""
        stratum = self.strata[int(generator.integers(len(self.strata)))]
        doc_id = stratum[int(generator.integers(len(stratum)))]
        found = self.windows(doc_id)
        start, end = found[int(generator.integers(len(found)))]
        share = 1.0 / (len(self.strata) * len(stratum) * len(found))
        return Passage(doc_id, start, end, self.texts[doc_id][start:end], share)

    def passages(self, n: int, generator: np.random.Generator) -> Drawn:
        """n different passages with content; fewer if the corpus does not have as many."""
        found = Drawn([])
        seen: set[tuple[str, int]] = set()
        misses = 0
        while len(found.passages) < n and misses < MOST_MISSES:
            passage = self.draw(generator)
            again = (passage.doc_id, passage.start) in seen
            reason = "drawn before" if again else without_content(passage.text)
            misses = misses + 1 if reason else 0
            if reason:
                found.passed_over[reason] += 1
            else:
                seen.add((passage.doc_id, passage.start))
                found.passages.append(passage)
        return found


def windows(text: str, size: int = WINDOW) -> list[tuple[int, int]]:
    """The windows of a text: from each sentence to the one that completes `size` characters, or to the end of the text.

    Of the windows that reach the end only the longest counts, so that no window is short unless the text is.

    >>> text = "One is here. Two is here. Three is here."
    >>> [text[start:end] for start, end in windows(text, 20)]
    ['One is here. Two is here.', 'Two is here. Three is here.']
    """
    sentences = Sentence(tokens=1).spans(text)
    ends = [end for _, end in sentences]
    found = []
    for start, _ in sentences:
        last = bisect_left(ends, start + size)
        found.append((start, ends[min(last, len(ends) - 1)]))
        if last >= len(ends) - 1:
            break
    return found


def without_content(text: str) -> str:
    """Why no question can be asked of a passage: the first rule that it breaks; empty if it breaks none.

    >>> without_content("Home | Products | Contact"), without_content("Copyright 2020. All rights reserved. " * 9)
    ('fewer than 25 words', 'licence')
    """
    words = text.split()
    if len(words) < FEWEST_WORDS:
        return f"fewer than {FEWEST_WORDS} words"
    if len(text) > LONGEST:
        return "no sentence end"
    if _LEGAL.search(text):
        return "licence"
    letters = sum(each.isalpha() for each in text)
    if letters < 0.6 * sum(not each.isspace() for each in text):
        return "numbers and symbols"
    lines = [line for line in text.splitlines() if line.strip()]
    short = sum(len(line.split()) < 5 and not line.rstrip().endswith((".", "!", "?", "。")) for line in lines)
    if len(lines) >= 5 and short > 0.6 * len(lines):
        return "navigation or a list of names"
    return ""
