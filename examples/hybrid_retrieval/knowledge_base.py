"""A generated knowledge base: texts, links, questions and qrels, all from one seed.

A topic has several themes. A theme has several ideas and two to ten documents, which are the relevant documents of
the questions about it. An idea has several words, and every document prefers one of them, so that a relevant
document need not share the words of the question. Some documents are edited copies of another and satisfy the same
target. Documents link to others of their theme and topic, to overview pages (the hubs, which mention every theme of
their topic and are not relevant to any question) and sometimes to any other document; a few have no links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from steelyard.datasets.corpus import Corpus
from steelyard.errors import PolicyError
from steelyard.qrels import Qrels

Words: TypeAlias = list[str]

_ONSETS = [*"bdfgklmnprstvz", "br", "dr", "gr", "kl", "pl", "st", "tr"]
_VOWELS = [*"aeiou"]


@dataclass(frozen=True)
class Shape:
    """The parameters of a knowledge base. Probabilities are per document; the defaults are those of the experiment.

    themes: per topic; questions: per theme. overviews: hubs per topic. ideas: per theme; wordings: per idea.
    habit: probability that a document uses its preferred word for an idea. length: words per document. on_theme,
    on_topic: shares of the words that come from its theme and its topic; the other words are common to all.
    copies: probability that a document is an edited copy of another of its theme; edited: share of words changed.
    theme_link: probability of a link to each other document of the theme. topic_links, hub_links: mean number of
    links to the topic and to its hubs. stray: probability of a link to any document. orphans: share of documents
    without links.
    """

    documents: int = 500
    topics: int = 10
    themes: int = 8
    questions: int = 3
    overviews: int = 5
    ideas: int = 6
    wordings: int = 3
    habit: float = 0.8
    length: int = 60
    on_theme: float = 0.2
    on_topic: float = 0.3
    copies: float = 0.3
    edited: float = 0.15
    theme_link: float = 0.3
    topic_links: float = 2.0
    hub_links: float = 3.0
    stray: float = 0.4
    orphans: float = 0.1


@dataclass(frozen=True)
class KnowledgeBase:
    """Documents by id, their links, questions by id, and the targets of each question (the ids that satisfy each)."""

    texts: dict[str, str]
    links: dict[str, list[str]]
    questions: dict[str, str]
    targets: dict[str, list[list[str]]]
    hubs: list[str] = field(default_factory=list)

    @cached_property
    def corpus(self) -> Corpus:
        """The documents and their links, as retrievers index them."""
        return Corpus.of({doc: {"text": text, "links": self.links[doc]} for doc, text in self.texts.items()})

    @cached_property
    def qrels(self) -> Qrels:
        """The qrels: several documents may satisfy one target."""
        return Qrels(self.targets)


def knowledge_base(seed: int = 0, shape: Shape | None = None) -> KnowledgeBase:
    """A knowledge base from a seed.

    >>> base = knowledge_base(seed=0)
    >>> len(base.texts), len(base.questions), len(base.hubs)
    (500, 240, 50)
    """
    return _Writer(np.random.default_rng(seed), shape or Shape()).write()


@dataclass(frozen=True)
class _Theme:
    ideas: list[Words]
    topic: Words
    targets: list[list[str]]

    @property
    def documents(self) -> list[str]:
        return [doc for target in self.targets for doc in target]


@dataclass(frozen=True)
class _Topic:
    themes: list[_Theme]
    hubs: list[str]


class _Writer:
    """Writes one knowledge base, with one random generator."""

    def __init__(self, rng: np.random.Generator, shape: Shape) -> None:
        per_topic, rest = divmod(shape.documents, shape.topics)
        self._answers = per_topic - shape.overviews
        if rest or not 2 * shape.themes <= self._answers <= 10 * shape.themes:
            raise PolicyError(
                f"{shape.documents} documents cannot be divided into {shape.topics} topics "
                f"of {shape.overviews} overviews and "
                f"{shape.themes} themes with 2 to 10 documents each; change documents, topics or themes."
            )
        self._rng = rng
        self._shape = shape
        self._known: set[str] = set()
        self._common = self._new_words(400)

    def write(self) -> KnowledgeBase:
        base = KnowledgeBase({}, {}, {}, {})
        topics = [self._write_topic(base, f"t{number}") for number in range(self._shape.topics)]
        base.hubs.extend(hub for topic in topics for hub in topic.hubs)
        self._link(base, topics)
        for topic in topics:
            for theme in topic.themes:
                for _ in range(self._shape.questions):
                    question = f"q{len(base.questions) + 1}"
                    base.questions[question] = self._question(theme)
                    base.targets[question] = theme.targets
        return base

    def _write_topic(self, base: KnowledgeBase, name: str) -> _Topic:
        words = self._new_words(60)
        themes = []
        for number, size in enumerate(self._sizes()):
            ideas = [self._new_words(self._shape.wordings) for _ in range(self._shape.ideas)]
            targets = self._write_theme(base, f"{name}-{number}", ideas, words, size)
            themes.append(_Theme(ideas, words, targets))
        hubs = [f"{name}-overview-{number}" for number in range(self._shape.overviews)]
        every_word = [word for theme in themes for idea in theme.ideas for word in idea]
        for hub in hubs:
            base.texts[hub] = " ".join(self._text(every_word, words))
        return _Topic(themes, hubs)

    def _new_words(self, count: int) -> Words:
        """New words that are not used elsewhere in this knowledge base."""
        found: Words = []
        while len(found) < count:
            size = int(self._rng.integers(2, 5))
            parts = self._rng.integers([len(_ONSETS), len(_VOWELS)], size=(size, 2)).tolist()
            word = "".join(_ONSETS[onset] + _VOWELS[vowel] for onset, vowel in parts)
            if word not in self._known:
                self._known.add(word)
                found.append(word)
        return found

    def _sizes(self) -> list[int]:
        """The number of documents of each theme of a topic: from 2 to 10, with a fixed sum."""
        while True:
            sizes = self._rng.integers(2, 11, size=self._shape.themes)
            if sizes.sum() == self._answers:
                return [int(size) for size in sizes]

    def _write_theme(
        self, base: KnowledgeBase, name: str, theme: Sequence[Words], topic: Words, size: int
    ) -> list[list[str]]:
        targets: list[list[str]] = []
        for number in range(size):
            doc = f"{name}-{number}"
            if targets and self._rng.random() < self._shape.copies:
                target = targets[int(self._rng.integers(len(targets)))]
                base.texts[doc] = " ".join(self._edited(base.texts[target[0]].split(), topic))
                target.append(doc)
            else:
                base.texts[doc] = " ".join(self._text(self._habits(theme), topic))
                targets.append([doc])
        return targets

    def _habits(self, theme: Sequence[Words]) -> Words:
        """Words for the ideas of a document (two thirds of those of its theme), mostly its preferred ones."""
        treated = self._rng.permutation(len(theme))[: max(1, 2 * len(theme) // 3)]
        words: Words = []
        for idea in treated.tolist():
            own = self._pick(theme[idea])
            words += [own if self._rng.random() < self._shape.habit else self._pick(theme[idea]) for _ in range(4)]
        return words

    def _text(self, theme: Words, topic: Words) -> Words:
        kinds = self._rng.random(self._shape.length)
        on_theme, on_topic = self._shape.on_theme, self._shape.on_topic
        return [
            self._pick(theme)
            if kind < on_theme
            else self._frequent(topic)
            if kind < on_theme + on_topic
            else self._frequent(self._common)
            for kind in kinds.tolist()
        ]

    def _edited(self, words: Words, topic: Words) -> Words:
        changed = self._rng.random(len(words)) < self._shape.edited
        return [
            self._frequent(topic if self._rng.random() < 0.5 else self._common) if change else word
            for word, change in zip(words, changed.tolist(), strict=True)
        ]

    def _question(self, theme: _Theme) -> str:
        """Words for three ideas of the theme, two words of its topic and two common ones."""
        ideas = self._rng.permutation(len(theme.ideas))[:3].tolist()
        words = [self._pick(theme.ideas[idea]) for idea in ideas]
        words += [self._frequent(theme.topic) for _ in range(2)]
        words += [self._frequent(self._common) for _ in range(2)]
        return " ".join(words[position] for position in self._rng.permutation(len(words)).tolist())

    def _pick(self, words: Sequence[str]) -> str:
        return words[int(self._rng.integers(len(words)))]

    def _frequent(self, words: Sequence[str]) -> str:
        """A word by Zipf's law: the n-th with probability proportional to 1 / n."""
        # For u uniform from 0 to 1, (N + 1) ** u has a density proportional to 1 / n.
        return words[int((len(words) + 1) ** self._rng.random()) - 1]

    def _link(self, base: KnowledgeBase, topics: Sequence[_Topic]) -> None:
        answers = [doc for topic in topics for theme in topic.themes for doc in theme.documents]
        orphans = {doc for doc in answers if self._rng.random() < self._shape.orphans}
        everything = [doc for doc in base.texts if doc not in orphans]
        base.links.update({doc: [] for doc in orphans})
        for topic in topics:
            themes = [[doc for doc in theme.documents if doc not in orphans] for theme in topic.themes]
            in_topic = [doc for theme in themes for doc in theme]
            for theme in themes:
                for doc in theme:
                    base.links[doc] = self._links_of(doc, theme, in_topic, topic.hubs, everything)
            for hub in topic.hubs:
                pages = [self._pick(in_topic) for _ in range(len(in_topic) // 3)]
                others = [topics[int(self._rng.integers(len(topics)))].hubs[0] for _ in range(3)]
                base.links[hub] = _without(hub, [*pages, *others])

    def _links_of(self, doc: str, theme: Words, in_topic: Words, hubs: Words, everything: Words) -> list[str]:
        links = [other for other in theme if self._rng.random() < self._shape.theme_link]
        links += [self._pick(in_topic) for _ in range(int(self._rng.poisson(self._shape.topic_links)))]
        links += [self._frequent(hubs) for _ in range(int(self._rng.poisson(self._shape.hub_links)))]
        if self._rng.random() < self._shape.stray:
            links.append(self._pick(everything))
        return _without(doc, links)


def _without(doc: str, links: Sequence[str]) -> list[str]:
    return [other for other in dict.fromkeys(links) if other != doc]
