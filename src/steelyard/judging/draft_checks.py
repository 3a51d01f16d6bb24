"""Checks of drafted questions without a model: each is a pure function that returns what it found, or an empty text.

They are made for English. A question in another language is checked for its span, for copying and for repeats only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

LONGEST_COPY = 8  # Words in a row that a question may have in common with its source, less one.
COPIED_SHARE = 0.6  # Share of a question's words that these must be, at least, to count as a copy.
REPEATED_SHARE = 0.8
"""Share of the content words of two questions that are the same, from which they are near-repeats (Jaccard)."""

_TEXT = (
    r"(?:passage|text|excerpt|paragraph|snippet|extract|context|document|article|section|chapter|transcript|author"
    r"|narrator|speaker|writer|speech|story|essay|conversation|dialogue)s?"
)
_POINTING = re.compile(
    rf"""
    \b(?:(?:this|these)\s+(?:\w+\s+)?|(?:that|those)\s+)(?:passage|text|excerpt|paragraph|snippet|extract|document|article|section
        |chapter|transcript|table|figure)s?\b(?!\s+(?:file|editor|message|box|field|of\s+the\s+constitution))
    | \b(?:the\s+)?(?:given|provided|above|aforementioned|following|preceding)\s+{_TEXT}\b
    | \b(?:according\s+to|based\s+on|per|in|from|within|throughout|by|of|does|did|do|is|are|was|were|what|why|how)
        \s+the\s+(?:passage|text|excerpt|paragraph|snippet|extract|article|transcript|author|narrator|speaker|writer
        |context(?=\s*(?:[?.,]|$)))(?:'s|’s|s)?\b
        (?!\s+(?:["'“‘]|(?:of|by|on|from|titled|entitled|called|named|about)\b|editor|file|message|box))
    | \b(?:mentioned|described|discussed|stated|outlined|listed|specified|referenced|presented|provided|given|noted
        |shown)\s+(?:in\s+(?:the|this|that)\s+(?:{_TEXT}|table|figure)\b|above|below|earlier|here\b)
    | \baccording\s+to\s+(?:the|this|that)\s+{_TEXT}\b(?!\s+(?:["'“‘]|of\b|by\b|on\b|from\b|titled))
    | \b(?:according\s+to|in)\s+(?:the|this|these)\s+(?:study|studies|research|findings|paper)\b(?=\s*(?:[?.,]|$))
    | ^(?:what|which|whose|how\s+many)\s+(?-i:[a-z]+\s+){{1,2}}(?:did|does|do|was|is|has|had|were|would|could|will|can)
        \s+(?:he|she|they)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PRONOUN = re.compile(r"(?:he|she|him|his|her|hers|they|them|their|theirs|its?|this|these|those)", re.IGNORECASE)
_EXPLETIVE = re.compile(
    r"\bit\b.*\b(?:to|when|that|if|for|whether|like|called|mean|means|possible|true|legal|safe|raining?|ing)\b"
    r"|\b(?:is|was|are|were)\s+(?:this|these|those)\s+\w+",
    re.IGNORECASE,
)
_FOLLOWED = {"they": 1, "it": 1, "this": 0, "these": 0, "those": 0}
"""Content words that may follow a pronoun which seems to stand for nothing; with more it is used in general."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ENDINGS = {"ies": "y", "sses": "ss", "xes": "x", "ches": "ch", "shes": "sh", "ing": "", "ed": "", "s": ""}
_QUOTES = str.maketrans({**dict.fromkeys("“”„‟«»″", '"'), **dict.fromkeys("‘’‚‛′`", "'")})


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTION = _listed(
    """a an the and or but nor so if then than as at by for from in into of off on onto out over per to up upon with
    within without about above across after against along among around because before behind below beneath
    beside between beyond despite down during except inside like near outside past since through throughout till
    toward towards under until via what which who whom whose when where why how is are was were be been being am
    do does did done doing has have had having can could may might must shall should will would not no yes n't
    it its it's he him his she her hers they them their theirs we us our ours you your yours i me my mine this
    that these those there here some any each every all both few more most other another such only own same too
    very just also even still yet ever never one ones someone something anyone anything everyone everything s t
    d m re ve ll don didn doesn isn aren wasn weren won wouldn couldn shouldn many much long often far old big
    kind kinds type types sort sorts way ways happen happens happened mean means meant call called say says said
    tell told think thinks thought make makes made get gets got use used need needs needed know known according
    regarding"""
)
_GENERIC = _listed(
    """main idea ideas point points topic topics subject subjects theme themes purpose purposes goal goals thing things
    key fact facts detail details information summary problem problems issue issues important importance
    significance significant example examples reason reasons result results conclusion conclusions difference
    differences step steps process method methods approach feature features benefit benefits people person
    matter matters describe described explain explained mention mentioned discuss discussed state stated provide
    provided give given list name work works do specific particular various different following document passage
    text article author"""
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without apostrophes' endings.

    >>> words("What's the City's name?")
    ['what', 'the', 'city', 'name']
    """
    tokens = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    return [re.sub(r"['’](?:s|re|ve|ll|d|m|t)$", "", word) for word in tokens]


def stem(word: str) -> str:
    """A word without the endings of plurals and verbs: enough to see that two words are the same.

    >>> [stem(word) for word in ("filters", "filtering", "filtered", "policies", "bus")]
    ['filter', 'filter', 'filter', 'policy', 'bus']
    """
    if word.endswith(("ss", "us", "is")):
        return word
    for ending, other in _ENDINGS.items():
        if word.endswith(ending) and len(word) - len(ending) + len(other) >= 3:
            return word[: -len(ending)] + other
    return word


def content_words(text: str) -> list[str]:
    """The stems of the words that carry content: no function words, no single letters."""
    return [stem(word) for word in words(text) if word not in _FUNCTION and (len(word) > 1 or word.isdigit())]


def not_standalone(question: str) -> str:
    """What the question points at that a reader without the passage does not see; empty if there is nothing.

    >>> not_standalone("What does the author say about salt?"), not_standalone("Why did he leave?")
    ('does the author', 'he')
    >>> not_standalone("When did Edison say that he would leave?"), not_standalone("How long does it take to fly?")
    ('', '')
    """
    for pointing in _POINTING.finditer(question):
        last = stem(words(pointing[0])[-1])
        if last not in map(stem, words(question[: pointing.start()])):
            return " ".join(pointing[0].split())
    # Then a pronoun before anything that it could stand for.
    if _EXPLETIVE.search(question):
        return ""
    for match in _WORD.finditer(question):
        word = match[0].lower()
        if _PRONOUN.fullmatch(word):
            following = question[match.end() :].lstrip()
            # 'Where do they film ...' and 'when does it snow in ...' have nobody and nothing in mind.
            most = _FOLLOWED.get(word, len(following))
            return match[0] if len(content_words(following)) <= most else ""
        if words(word) and words(word)[0] not in _FUNCTION:
            return ""
    return ""


def too_general(question: str) -> str:
    """The question, if it could be asked of any passage; otherwise empty.

    >>> too_general("What is the main idea?"), too_general("What is apatite?")
    ('What is the main idea?', '')
    """
    left = [word for word in words(question) if word not in _FUNCTION and word not in _GENERIC]
    return "" if left or not question.isascii() else question.strip()


def copies_source(question: str, source: str) -> str:
    """The words in a row that the question has in common with its source, if they are most of it; otherwise empty.

    >>> source = "The harbour of the old town was deepened in 1840 for larger ships, after a long dispute."
    >>> copies_source("Was the harbour of the old town deepened in 1840?", source)
    ''
    >>> copies_source("The harbour of the old town was deepened in 1840 for whom?", source)
    'the harbour of the old town was deepened in 1840 for'
    """
    asked, given = words(question), words(source)
    match = SequenceMatcher(None, asked, given, autojunk=False).find_longest_match()
    copied = asked[match.a : match.a + match.size]
    return " ".join(copied) if match.size >= max(LONGEST_COPY, COPIED_SHARE * len(asked)) else ""


def overlap(question: str, source: str) -> float:
    """The share of the question's content words that its source has; 0 without content words.

    >>> overlap("Who deepened the harbour?", "The harbour was deepened by monks.")
    1.0
    """
    asked = set(content_words(question))
    return len(asked & set(content_words(source))) / len(asked) if asked else 0.0


def answer_in_question(question: str, quotes: Iterable[str]) -> str:
    """The answer, if the question contains all its content words; otherwise empty.

    >>> answer_in_question("Was the bridge built in 1932?", ["built in 1932"])
    'built in 1932'
    >>> answer_in_question("When was the bridge built?", ["The bridge was built in 1932."])
    ''
    """
    asked = set(content_words(question))
    given = [word for quote in quotes for word in content_words(quote)]
    return " ".join(quotes) if given and set(given) <= asked else ""


def repeats(question: str, earlier: Iterable[frozenset[str]]) -> int | None:
    """The place of the first earlier question that this one nearly repeats; None if there is none.

    Both are compared by their content words, numbers included, `frozenset(content_words(...))`.
    """
    mine = frozenset(content_words(question))
    for place, other in enumerate(earlier):
        if mine and other and len(mine & other) / len(mine | other) >= REPEATED_SHARE:
            return place
    return None


def find_span(text: str, quote: str) -> tuple[int, int] | None:
    """Where a quote is in a text, equal up to white space and quotation marks; None if it is not there.

    >>> find_span("He said “go\\n  on” twice.", 'said "go on"')
    (3, 17)
    """
    parts = [re.escape(part) for part in quote.translate(_QUOTES).split()]
    if not parts:
        return None
    # Both translations keep the length, so that places in the translated text are places in the text.
    match = re.search(r"\s+".join(parts), text.translate(_QUOTES))
    return match.span() if match else None
