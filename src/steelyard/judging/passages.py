"""Passages of a corpus, windows of whole sentences: drawn at random with known probabilities, to draft questions from;
and found by a lexical and a dense retriever, to compare them with the source. What they find rejects no draft: to keep
the questions that a retriever answers makes that retriever win.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from steelyard.chunking import Sentence
from steelyard.datasets import Corpus
from steelyard.errors import InputError, did_you_mean
from steelyard.judging.draft_checks import content_words
from steelyard.judging.drafts import DEPTH, Draft, Lists
from steelyard.lazy import looked_up

WINDOW = 1000  # Characters from which a window is complete; it ends with the sentence that reaches them.
LONGEST = 6000  # Characters of a window at most; a text without sentence ends has longer ones.
FEWEST_WORDS = 25
MOST_MISSES = 1000  # Draws in a row without a new passage that has content, after which the drawing stops.

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


class Sampler:
    """Draws passages: a stratum, a document of it and a window of that, each uniformly at random.

    Long documents are therefore as likely as short ones. `by` names a field of the documents' metadata; its values are
    the strata, each as likely as the others; without it all documents are one stratum. Documents without text are left
    out. The probability of a window is 1 / (strata x documents of the stratum x windows of the document).
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
            names = sorted({name for doc_id in self.texts for name in corpus.metadata[doc_id]})
            raise InputError(
                f"no document has a field {by!r}; the fields are {', '.join(names) or 'none'}.{did_you_mean(by, names)}"
            )
        self.strata = list(strata.values())
        self.windows = lru_cache(maxsize=4096)(lambda doc_id: windows(self.texts[doc_id], size))

    def draw(self, generator: np.random.Generator) -> Passage:
        """One passage, whatever its content."""
        stratum = self.strata[int(generator.integers(len(self.strata)))]
        doc_id = stratum[int(generator.integers(len(stratum)))]
        windows = self.windows(doc_id)
        start, end = windows[int(generator.integers(len(windows)))]
        share = 1.0 / (len(self.strata) * len(stratum) * len(windows))
        return Passage(doc_id, start, end, self.texts[doc_id][start:end], share)

    def passages(self, n: int, generator: np.random.Generator) -> tuple[list[Passage], Counter[str]]:
        """n different passages with content, fewer if the corpus does not have as many; why others were passed over."""
        kept: dict[tuple[str, int], Passage] = {}
        passed_over: Counter[str] = Counter()
        misses = 0
        while len(kept) < n and misses < MOST_MISSES:
            passage = self.draw(generator)
            place = passage.doc_id, passage.start
            if reason := "drawn before" if place in kept else without_content(passage.text):
                passed_over[reason] += 1
                misses += 1
            else:
                kept[place], misses = passage, 0
        return list(kept.values()), passed_over


def windows(text: str, size: int = WINDOW) -> list[tuple[int, int]]:
    """The windows of a text: from each sentence to the one that completes `size` characters, or to the end of the text.

    Of the windows that reach the end only the longest counts, so that no window is short unless the text is.

    >>> text = "One is here. Two is here. Three is here."
    >>> [text[start:end] for start, end in windows(text, 20)]
    ['One is here. Two is here.', 'Two is here. Three is here.']
    """
    sentences = Sentence(tokens=1).spans(text)
    ends = [end for _, end in sentences]
    spans = []
    for start, _ in sentences:
        last = bisect_left(ends, start + size)
        spans.append((start, ends[min(last, len(ends) - 1)]))
        if last >= len(ends) - 1:
            break
    return spans


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
    letters = sum(character.isalpha() for character in text)
    if letters < 0.6 * sum(not character.isspace() for character in text):
        return "numbers and symbols"
    lines = [line for line in text.splitlines() if line.strip()]
    short = sum(len(line.split()) < 5 and not line.rstrip().endswith((".", "!", "?", "。")) for line in lines)
    if len(lines) >= 5 and short > 0.6 * len(lines):
        return "navigation or a list of names"
    return ""


MOST_DOCUMENTS = 10_000
"""Documents of a corpus up to which it is searched: the dense retriever takes about half a minute for as many."""
RETRIEVERS = {"bm25": "steelyard.retrievers.bm25:BM25", "dense": "steelyard.retrievers.dense:Dense"}


def search(corpus: Corpus, drafts: Sequence[Draft], step: Callable[[str, int, int], None] | None = None) -> Lists:
    """The first documents of both retrievers for the accepted answerable drafts; empty for a large corpus.

    step: called before each retriever with what is done next, the number of retrievers that are done, and of all.
    """
    asked = {draft.id: str(draft.question) for draft in drafts if draft.status == "accepted" and draft.spans}
    if not asked or len(corpus) > MOST_DOCUMENTS:
        return {}
    lists = {}
    for done, (name, place) in enumerate(RETRIEVERS.items()):
        if step is not None:
            step(f"searching {len(corpus):,} documents with {name}", done, len(RETRIEVERS))
        rankings = looked_up(place)().index(corpus).retrieve(list(asked.values()), k=DEPTH)
        lists[name] = dict(zip(asked, rankings, strict=True))
    return lists


def others(draft: Draft, corpus: Corpus, lists: Lists) -> list[dict[str, Any]]:
    """For each retriever its first document that is not a source of the draft: the passage with most of its words."""
    sources = {passage["doc_id"] for passage in draft.passages}
    passages: dict[str, dict[str, Any]] = {}
    for name, ranked in lists.items():
        doc = next((doc for doc, _ in ranked.get(draft.id, ()) if doc not in sources), None)
        if doc is None:
            continue
        if doc not in passages:
            text, asked = corpus.texts[doc], set(content_words(str(draft.question)))
            shared = {place: len(asked & set(content_words(text[slice(*place)]))) for place in windows(text)}
            start, end = max(shared, key=lambda place: shared[place], default=(0, len(text)))
            passages[doc] = {"doc_id": doc, "start": start, "end": end, "found_by": []}
        passages[doc]["found_by"].append(name)
    return list(passages.values())
