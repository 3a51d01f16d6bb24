"""Where a document's id comes from: a field, a key of its metadata, or its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any
from uuid import UUID

from steelyard.ids import text_ids
from steelyard.retrievers.adapters.paths import MissingError, keys_of, steps_of, walk
from steelyard.retrievers.base import RetrieverError, checked_corpus

HASH = "hash"
ID_NAMES = ("id", "_id", "doc_id", "docid", "docno", "document_id")
TEXT_NAMES = ("text", "page_content", "content", "contents", "body")
METADATA_NAMES = ("metadata", "meta", "payload", "_source")
PARENT = "node.ref_doc_id"
"""Where a LlamaIndex node has the id of the document it was cut from."""

SEEN = 20
"""So many of the first documents that come are looked at again, where their ids turn out to be strange."""


class DocIds:
    """Reads the id of a document as a setting says.

    `id` is the field of that name, or the first of the usual other names (`_id`, `doc_id`, `docid`, `docno`).
    `metadata.KEY` is a key of the document's metadata, whatever the library calls that (`meta`, `payload`,
    `_source`). Any other path leads through keys and attributes. `hash` finds the document of the corpus that
    has the same text, white space at its ends aside; a text that the corpus has not becomes `sha256:...`, an
    id that is in no corpus and is counted as such. Of equal texts the first stands for all.

    >>> DocIds("metadata.source", "langchain").of({"meta": {"source": "d7"}}, "the answer")
    'd7'
    >>> ids = DocIds("hash", "langchain")
    >>> ids.learn({"d1": "a red fox"})
    >>> ids.of({"page_content": "a red fox "}, "the answer"), ids.of({"text": "an owl"}, "the answer")
    ('d1', 'sha256:e5f8ab6be6b7bb68')
    """

    def __init__(self, setting: str, who: str, text: str | None = None) -> None:
        if not isinstance(setting, str) or not setting.strip():
            raise RetrieverError(
                f"{who}: `id` is {setting!r}; expected id, metadata.KEY, a path to the id, or hash."
            )
        self.setting = setting.strip()
        self.text = text
        self._who = who
        self._ways = _ways(self.setting, ID_NAMES, who)
        self._text_ways = _ways(text, TEXT_NAMES, who)
        self._by_text: dict[bytes, str] | None = None
        self._seen: list[Any] = []

    def learn(self, corpus: Mapping[str, str]) -> None:
        """Keep a hash of every text of a corpus, where ids are found by their texts."""
        if self.setting != HASH:
            return
        self._by_text = _by_text(corpus, self._who)

    def size_in_bytes(self) -> int:
        """The hashes, about."""
        return 0 if self._by_text is None else 200 * len(self._by_text)

    def of(self, document: Any, where: str) -> str:
        """The id of a document; `where` says which document it is, for the error."""
        if self.setting == HASH:
            return self._by_its_text(document, where)
        if len(self._seen) < SEEN:
            self._seen.append(document)
        for way in self._ways:
            try:
                found = walk(document, way)
            except MissingError:
                continue
            if found is not None:
                return self.plain(found, where)
        raise RetrieverError(
            f"{self._who}: {where} has no {self.setting!r}; it has {keys_of(document)}. "
            "Set `id` to where its id is, as in `id: metadata.source`, or to `hash` to find it by its text."
        )

    def elsewhere(self, corpus: Mapping[str, str]) -> str | None:
        """Another `id` by which most of the first documents that came would be in the corpus; None where there is none.

        >>> ids = DocIds("id", "langchain")
        >>> ids.of({"id": "9f3c", "metadata": {"source": "d7"}}, "the answer")
        '9f3c'
        >>> ids.elsewhere({"d7": "a text"})
        'metadata.source'
        """
        found = Counter(
            setting
            for document in self._seen
            for setting, value in _fields(document)
            if _text(value) in corpus
        )
        for setting, count in found.most_common(1):
            if setting != self.setting and 2 * count > len(self._seen):
                return setting
        texts = [text for text in map(self._text_of, self._seen) if text is not None]
        if not texts or 2 * len(texts) <= len(self._seen):
            return None
        known = _by_text(corpus, self._who)
        return HASH if 2 * sum(_digest(text) in known for text in texts) > len(self._seen) else None

    def _text_of(self, document: Any) -> str | None:
        for way in self._text_ways:
            try:
                text = walk(document, way)
            except MissingError:
                continue
            if isinstance(text, str):
                return text
        return None

    def plain(self, found: Any, where: str) -> str:
        """An id as text."""
        given = str(found) if isinstance(found, UUID) else found
        return text_ids([given], "document id", f"{self._who}: {where}")[0]

    def of_text(self, text: Any, where: str) -> str:
        """The id of the document of the corpus that has this text."""
        if self._by_text is None:
            raise RetrieverError(
                f"{self._who}: `id: hash` finds documents by their texts; call index(corpus) before retrieve()."
            )
        if not isinstance(text, str):
            raise RetrieverError(f"{self._who}: the text of {where} is {text!r}; expected text.")
        digest = _digest(text)
        return self._by_text.get(digest) or f"sha256:{digest.hex()[:16]}"

    def _by_its_text(self, document: Any, where: str) -> str:
        for way in self._text_ways:
            try:
                return self.of_text(walk(document, way), where)
            except MissingError:
                continue
        raise RetrieverError(
            f"{self._who}: `id: hash` needs the text of {where}, and it has {keys_of(document)}; "
            "set `text` to where its text is."
        )


def _ways(setting: str | None, usual: Sequence[str], who: str) -> list[list[str | int]]:
    """The paths to try, in order."""
    if setting is None or setting == usual[0]:
        return [[name] for name in usual]
    steps = steps_of(setting, who)
    if steps[0] == METADATA_NAMES[0]:
        return [[name, *steps[1:]] for name in METADATA_NAMES]
    return [steps]


def _by_text(corpus: Mapping[str, str], who: str) -> dict[bytes, str]:
    """The ids of a corpus by a hash of their texts, with titles and without."""
    documents = checked_corpus(corpus, who)
    known: dict[bytes, str] = {}
    bare = getattr(corpus, "texts", None)
    for texts in (documents.texts, bare.values() if isinstance(bare, Mapping) else ()):
        for doc, text in zip(documents.ids, texts, strict=False):
            known.setdefault(_digest(text), doc)
    return known


def _fields(document: Any) -> Iterator[tuple[str, Any]]:
    """What an id may be: the keys of a document's metadata first, then its own; each with the setting that reads it."""
    for name in METADATA_NAMES:
        try:
            held = walk(document, [name])
        except MissingError:
            continue
        if isinstance(held, Mapping):
            yield from ((f"{METADATA_NAMES[0]}.{key}", value) for key, value in held.items())
    with suppress(MissingError):
        yield PARENT, walk(document, steps_of(PARENT, ""))
    own = document if isinstance(document, Mapping) else getattr(document, "__dict__", None) or {}
    yield from ((str(key), value) for key, value in own.items() if not str(key).startswith("__"))


def _text(value: Any) -> str | None:
    """A value as an id would be written; None for what can be none."""
    return str(value) if isinstance(value, (str, int, UUID)) and not isinstance(value, bool) else None


def _digest(text: str) -> bytes:
    return sha256(text.strip().encode("utf-8", "surrogatepass")).digest()
