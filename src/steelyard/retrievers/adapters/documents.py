"""Results of other retrievers: paths into documents, their ids, and the forms of a result that are accepted."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from hashlib import sha256
from itertools import islice
from numbers import Integral, Real
from typing import Any, TypeAlias
from uuid import UUID

from steelyard.errors import InputError, did_you_mean
from steelyard.ids import kind_of, text_ids
from steelyard.retrievers.base import Ranked, RetrieverError, Staged, checked_corpus
from steelyard.wording import counted

_STEP = re.compile(r"""\.?([^.\[\]]+)|\[(\*|-?\d+)\]|\[['"](.+?)['"]\]""")
_SHOWN = 12
EVERY = "*"


class MissingError(LookupError):
    """A step of a path that does not exist; its text (the step and the existing keys) is made when it is read."""

    def __init__(self, text: Callable[[], str]) -> None:
        super().__init__()
        self._text = text

    def __str__(self) -> str:
        return self._text()


def steps_of(path: str, label: str) -> list[str | int]:
    """The steps of a path; `[*]` is every item of a list."""
    rest = path.strip().removeprefix("$")
    steps: list[str | int] = []
    while rest:
        match = _STEP.match(rest)
        if match is None:
            problem = f"{label}: the path {path!r} is not valid at {rest!r};"
            raise RetrieverError(f"{problem} expected keys and positions, as in hits[*].id or metadata.source.")
        key, position, quoted = match.groups()
        steps.append(key or quoted or (EVERY if position == EVERY else int(position)))
        rest = rest[match.end() :]
    return steps


def step_into(value: Any, step: str | int) -> Any:
    """The value of one step: a key of a mapping, a position in a list, or an attribute."""
    if isinstance(value, Mapping):
        if step in value:
            return value[step]
        raise MissingError(lambda: f"no {step!r}.{did_you_mean(str(step), map(str, value))} It has {keys_of(value)}")
    if isinstance(step, int):
        if isinstance(value, Sequence) and not isinstance(value, str) and -len(value) <= step < len(value):
            return value[step]
        raise MissingError(lambda: f"no position {step}: it has {keys_of(value)}")
    if not step.startswith("__") and hasattr(value, step):
        return getattr(value, step)
    raise MissingError(lambda: f"no {step!r}.{did_you_mean(step, _names(value))} It has {keys_of(value)}")


def walk(value: Any, steps: Sequence[str | int]) -> Any:
    """The value at a path."""
    return reduce(step_into, steps, value)


def every(value: Any, steps: Sequence[str | int]) -> Iterator[Any]:
    """All values at a path, where `*` is every item of a list; a missing value is an error."""
    if EVERY not in steps:
        yield walk(value, steps)
        return
    here = list(steps).index(EVERY)
    items = walk(value, steps[:here])
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise MissingError(lambda: f"[*] needs a list, got {kind_of(items)}")
    for number, item in enumerate(items, 1):
        try:
            yield from every(item, steps[here + 1 :])
        except MissingError as missing:
            raise MissingError(f"item {number}: {missing}".__str__) from None


def keys_of(value: Any) -> str:
    """The keys or attributes of a value, for a message, with the keys of mappings within it."""
    if not isinstance(value, Mapping):
        names = _names(value)
        if not names:
            return f"no keys ({kind_of(value)})"
        value = {name: getattr(value, name, None) for name in names}
    if not value:
        return "no keys"
    shown = []
    for key, inner in islice(value.items(), _SHOWN):
        within = f" ({', '.join(map(str, list(inner)[:_SHOWN]))})" if isinstance(inner, Mapping) and inner else ""
        shown.append(f"{key}{within}")
    return ", ".join(shown) + (", ..." if len(value) > _SHOWN else "")


def _names(value: Any) -> list[str]:
    if isinstance(value, (str, int, float, list, tuple)) or value is None:
        return []
    attributes = getattr(value, "__dict__", None)
    return [name for name in attributes if not name.startswith("_")] if attributes else []


HASH = "hash"
ID_NAMES = ("id", "_id", "doc_id", "docid", "docno", "document_id")
TEXT_NAMES = ("text", "page_content", "content", "contents", "body")
METADATA_NAMES = ("metadata", "meta", "payload", "_source", "entity")
MADE = "sha256:"  # The start of an id that was made from a text.

Keep: TypeAlias = Callable[[str, str, Any], None]
"""Takes the id and the text of a document that was returned, and the document; see `title_and_metadata`."""

PARENT = "node.ref_doc_id"  # Path to the id of the document that a LlamaIndex node was cut from.
SEEN = 20  # The number of documents that are kept to find a better setting, if their ids are not in the corpus.


class DocIds:
    """Reads the id of a document, by a setting.

    `id` is the field of that name, or the first of the other usual names (`_id`, `doc_id`, `docid`, `docno`).
    `metadata.KEY` is a key of the document's metadata, under any of its usual names (`meta`, `payload`,
    `_source`). Any other path goes through keys and attributes. `hash` finds the document of the corpus with the
    same text, ignoring white space at its ends; a text that is not in the corpus becomes `sha256:...`, which is
    counted as an unknown id. A document that is only a string is its text. If several documents have the same text,
    the first is used.

    >>> DocIds("metadata.source", "langchain").of({"meta": {"source": "d7"}}, "the answer")
    'd7'
    >>> ids = DocIds("hash", "langchain")
    >>> ids.learn({"d1": "a red fox"})
    >>> ids.of({"page_content": "a red fox "}, "the answer"), ids.of({"text": "an owl"}, "the answer")
    ('d1', 'sha256:e5f8ab6be6b7bb68')
    """

    def __init__(self, setting: str, label: str, text: str | None = None, keep: Keep | None = None) -> None:
        if not isinstance(setting, str) or not setting.strip():
            raise RetrieverError(f"{label}: `id` is {setting!r}; expected id, metadata.KEY, a path to the id, or hash.")
        self.setting, self.text, self._label = setting.strip(), text, label
        self._ways = _ways(self.setting, ID_NAMES, label)
        self._text_ways = _ways(text, TEXT_NAMES, label)
        if all(len(way) == 1 for way in self._text_ways):
            self._text_ways += [[metadata, *way] for metadata in METADATA_NAMES for way in list(self._text_ways)]
        self._by_text: dict[bytes, str] | None = None
        self._seen: list[Any] = []
        self._makes_ids, self.keep = False, keep

    def learn(self, corpus: Mapping[str, str]) -> None:
        """Keep a hash of every text of a corpus, if ids are found by text; without a corpus, make ids from texts."""
        self._makes_ids = not corpus
        if self.setting == HASH:
            self._by_text = _by_text(corpus, self._label) if corpus else {}

    def size_in_bytes(self) -> int:
        """The approximate memory of the hashes."""
        return 0 if self._by_text is None else 200 * len(self._by_text)

    def of(self, document: Any, where: str) -> str:
        """The id of a document; `where` identifies the document in an error. Its text is passed to `keep`."""
        doc = self._id_of(document, where)
        self.keep_text(doc, document)
        return doc

    def of_string(self, found: Any, where: str) -> str:
        """The id of a document that is only a string (or a number): it is the id, or with `hash` the text."""
        if self.setting != HASH or not isinstance(found, str):
            return self.plain(found, where)
        doc = self.of_text(found, where)
        if self.keep is not None:
            self.keep(doc, found, {"text": found})
        return doc

    def keep_text(self, doc: str, document: Any) -> None:
        """Pass the text of a document to `keep`, if it has one."""
        if self.keep is not None and (text := self._text_of(document)) is not None:
            self.keep(doc, text, document)

    def _id_of(self, document: Any, where: str) -> str:
        if self.setting == HASH:
            text = self._text_of(document)
            if text is None and self._by_text is not None:
                problem = f"{self._label}: `id: hash` needs the text of {where}, but it has {keys_of(document)};"
                raise RetrieverError(f"{problem} set `text` to the path of its text.")
            return self.of_text(text, where)
        if len(self._seen) < SEEN:
            self._seen.append(document)
        for way in self._ways:
            try:
                value = walk(document, way)
            except MissingError:
                continue
            if value is not None:
                return self.plain(value, where)
        text = self._text_of(document) if self._makes_ids and self.setting == "id" else None
        if text is not None:
            return made_id(text)
        problem = f"{self._label}: {where} has no {self.setting!r}; it has {keys_of(document)}. Set `id` to the path"
        raise RetrieverError(f"{problem} of its id, as in `id: metadata.source`, or to `hash` to find it by its text.")

    def elsewhere(self, corpus: Mapping[str, str]) -> str | None:
        """Another value of `id` with which most of the first documents are in the corpus; None if there is none.

        >>> ids = DocIds("id", "langchain")
        >>> ids.of({"id": "9f3c", "metadata": {"source": "d7"}}, "the answer")
        '9f3c'
        >>> ids.elsewhere({"d7": "a text"})
        'metadata.source'
        """
        counts = Counter(
            setting
            for document in self._seen
            for setting, value in _fields(document)
            if isinstance(value, (str, int, UUID)) and not isinstance(value, bool) and str(value) in corpus
        )
        for setting, count in counts.most_common(1):
            if setting != self.setting and 2 * count > len(self._seen):
                return setting
        texts = [text for text in map(self._text_of, self._seen) if text is not None]
        if not texts or 2 * len(texts) <= len(self._seen):
            return None
        by_text = _by_text(corpus, self._label)
        return HASH if 2 * sum(_digest(text) in by_text for text in texts) > len(self._seen) else None

    def _text_of(self, document: Any) -> str | None:
        first = self._text_ways[0]
        if type(document) is dict and len(first) == 1:
            text = document.get(first[0])  # The usual case, which is far quicker than the others.
            if isinstance(text, str):
                return text
        found: str | None = _first(self._text_ways, document, lambda value: isinstance(value, str))
        return found

    def plain(self, found: Any, where: str) -> str:
        """An id as text."""
        if type(found) is str and found.isascii():
            return found
        return text_ids([str(found) if isinstance(found, UUID) else found], "document id", f"{self._label}: {where}")[0]

    def of_text(self, text: Any, where: str) -> str:
        """The id of the document of the corpus with this text."""
        if self._by_text is None:
            raise RetrieverError(
                f"{self._label}: `id: hash` finds documents by their texts; call index(corpus) before retrieve()."
            )
        if not isinstance(text, str):
            raise RetrieverError(f"{self._label}: the text of {where} is {text!r}; expected text.")
        return self._by_text.get(_digest(text)) or made_id(text)


def made_id(text: str) -> str:
    """An id that is made from a text."""
    return f"{MADE}{_digest(text).hex()[:16]}"


def title_and_metadata(document: Any) -> tuple[str, Mapping[str, Any]]:
    """The title of a document, its own or in its metadata, and its metadata without its text."""
    ways = [[name] for name in METADATA_NAMES]
    metadata = _first(ways, document, lambda value: isinstance(value, Mapping) and len(value) > 0) or {}
    title = _first([["title"]], document, lambda value: isinstance(value, str))
    title = _first([["title"]], metadata, lambda value: isinstance(value, str)) if title is None else title
    fields: dict[str, Any] = {}
    with suppress(Exception):  # As in `_first`: the user's mapping may raise anything.
        fields = {str(key): value for key, value in metadata.items() if key not in TEXT_NAMES}
    return title if isinstance(title, str) else "", fields


def _first(ways: Sequence[Sequence[str | int]], document: Any, fits: Callable[[Any], bool]) -> Any:
    """The first value at one of the paths that fits; None if there is none."""
    for way in ways:
        # The paths that a dictionary lacks are passed over, as an exception for each takes longer.
        if type(document) is dict and way[0] not in document:
            continue
        # A property of a user's object may raise anything, as the text of a LlamaIndex node that has none does.
        with suppress(Exception):
            value = walk(document, way)
            if fits(value):
                return value
    return None


def _ways(setting: str | None, usual: Sequence[str], label: str) -> list[list[str | int]]:
    """The paths to try, in order."""
    if setting is None or setting == usual[0]:
        return [[name] for name in usual]
    steps = steps_of(setting, label)
    if not steps or steps[0] != METADATA_NAMES[0]:
        return [steps]
    return [[name, *steps[1:]] for name in METADATA_NAMES]


def _by_text(corpus: Mapping[str, str], label: str) -> dict[bytes, str]:
    """The ids of a corpus by a hash of their texts, with and without titles."""
    documents = checked_corpus(corpus, label)
    ids: dict[bytes, str] = {}
    without_titles = getattr(corpus, "texts", None)
    for texts in (documents.texts, without_titles.values() if isinstance(without_titles, Mapping) else ()):
        for doc, text in zip(documents.ids, texts, strict=False):
            ids.setdefault(_digest(text), doc)
    return ids


def _fields(document: Any) -> Iterator[tuple[str, Any]]:
    """The possible ids of a document: the keys of its metadata, then its own, each with its setting of `id`."""
    for name in METADATA_NAMES:
        metadata = _first([[name]], document, lambda value: isinstance(value, Mapping)) or {}
        with suppress(Exception):  # As in `_first`.
            yield from [(f"{METADATA_NAMES[0]}.{key}", value) for key, value in metadata.items()]
    parent = _first([steps_of(PARENT, "")], document, lambda value: value is not None)
    if parent is not None:
        yield PARENT, parent
    fields = document if isinstance(document, Mapping) else getattr(document, "__dict__", None) or {}
    yield from ((str(key), value) for key, value in fields.items() if not str(key).startswith("__"))


def _digest(text: str) -> bytes:
    return sha256(text.strip().encode("utf-8", "surrogatepass")).digest()


SCORE_NAMES = ("score", "_score", "similarity", "relevance", "_relevance_score")
DISTANCE_NAMES = ("distance", "_distance")
MOST_OF_A_STAGE = 100_000  # Documents of a stage that are read; the last stage is cut at k.
LIST_NAMES = (
    *("documents", "results", "hits", "docs", "data", "matches", "items", "points"),
    *("source_documents", "source_nodes", "context"),  # Those of chains and query engines.
)


def read_answer(answer: Any, ids: DocIds, label: str, query: str, k: int, score: str = "score") -> Ranked:
    """The first k documents of a result, in its order, with repeats.

    A result is None (nothing found), ids, (id, score) pairs, documents or records, (document, score) pairs,
    {id: score} (ordered by score), a list under a usual name ({"results": [...]}), a table (of Arrow, pandas or
    polars), or {"ids": [...], "scores": [...]}, also as Chroma returns it, with `distances` and a list per query. A
    pipeline may return the lists of its stages: {"stages": {"retrieve": [...], "rerank": [...]}}. If a document has no
    score, the whole list gets 1/rank. Distances (`distance`, `_distance`, `distances`) become negative scores; some
    engines return a similarity under that name, which decreases down the list and is kept.

    >>> ids = DocIds("id", "mine")
    >>> read_answer(["d1", 7], ids, "mine", "a question", 10)
    [('d1', 1.0), ('7', 0.5)]
    >>> read_answer({"d1": 1, "d2": 3}, ids, "mine", "a question", 1)
    [('d2', 3.0)]
    >>> read_answer({"ids": [["d1", "d2"]], "distances": [[0.25, 0.5]]}, ids, "mine", "a question", 2)
    [('d1', -0.25), ('d2', -0.5)]
    """
    where = f"the result for {query[:60]!r}"
    if isinstance(answer, Staged):
        return answer.ending_in(read_answer(list(answer), ids, label, query, k, score))
    if isinstance(answer, Mapping) and isinstance(answer.get("stages"), Mapping):
        return _staged(answer, ids, label, query, k, score)
    short = answer[:k] if type(answer) is list else answer
    plain = None if ids.setting == HASH else _plain_list(short, label, where)
    if plain is not None:
        return plain
    items = list(islice(_items(answer, label, where), k))
    pairs = with_scores(
        [_pair(item, ids, score, label, f"document {rank} of {where}") for rank, item in enumerate(items, 1)]
    )
    records = items and score == SCORE_NAMES[0] and not isinstance(items[0], (str, tuple, list))
    return without_distances(pairs) if records and _usual_score(items[0])[0] in DISTANCE_NAMES else pairs


def _staged(answer: Mapping[str, Any], ids: DocIds, label: str, query: str, k: int, score: str) -> Ranked:
    """The result of a pipeline with the lists of its stages: the last stage is the answer."""
    from steelyard.comparison.stages import stage_inputs

    where = f"the result for {query[:60]!r}"
    stages = {str(name): stage for name, stage in answer["stages"].items()}
    inputs = answer.get("inputs") or {}
    if not stages or not isinstance(inputs, Mapping):
        wrong = f"`inputs` is {kind_of(inputs)}" if stages else "`stages` is empty"
        raise RetrieverError(
            f'{label}: {where}: {wrong}; expected {{"stages": {{"retrieve": [...], "rerank": [...]}}}}, and with '
            '"inputs" what a stage reads, if not the one before it: {"fuse": ["lexical", "dense"]}.'
        )
    try:
        reads = stage_inputs(tuple(stages), {str(name): tuple(map(str, read)) for name, read in inputs.items()})
    except (InputError, TypeError) as error:
        raise RetrieverError(f"{label}: {where}: {error}") from None

    def listed(name: str, returned: Any, most: int = MOST_OF_A_STAGE) -> Ranked:
        return read_answer(returned, ids, f"{label}: stage {name}", query, most, score)

    # Several calls of a stage: {"calls": [[...], [...]]}, and under "list" what it returned.
    calls = {
        name: [listed(name, returned) for returned in stage["calls"]]
        for name, stage in stages.items()
        if isinstance(stage, Mapping) and set(stage) <= {"calls", "list"} and _is_list(stage.get("calls"))
    }
    lists: dict[str, Ranked] = {}
    for name, stage in stages.items():
        most = k if name == list(stages)[-1] else MOST_OF_A_STAGE
        if name in calls and stage.get("list") is None:
            docs = list(dict.fromkeys(doc for call in calls[name] for doc, _ in call))[:most]
            lists[name] = with_scores([(doc, None) for doc in docs])
        else:
            lists[name] = listed(name, stage["list"] if name in calls else stage, most)
    return Staged.of(lists, reads, calls)


def without_distances(found: Ranked) -> Ranked:
    """Distances as negative scores; numbers that decrease down the list are similarities, and are kept."""
    if len(found) > 1 and found[0][1] > found[-1][1]:
        return found
    return [(doc, 0.0 - score) for doc, score in found]


def read_lists(found: Any, label: str, query: str, k: int, keep: Keep | None = None) -> Ranked:
    """The list of what a Retriever returned for one query: one list, whose documents and scores are checked."""
    if not _is_list(found) or len(found) != 1:
        returned = counted(len(found), "list") if _is_list(found) else kind_of(found)
        raise RetrieverError(f"{label}: retrieve() returned {returned} for one query; expected one list.")
    return read_answer(found[0], DocIds("id", label, keep=keep), label, query, k)


def _plain_list(answer: Any, label: str, where: str) -> Ranked | None:
    """A list of ids, or of pairs of an id and a finite number: the usual results, read at once; None for another."""
    kinds = set(map(type, answer)) if type(answer) is list else set()
    if kinds == {str}:
        docs, scores = answer, [1 / rank for rank in range(1, len(answer) + 1)]
    elif kinds and kinds <= {tuple, list} and set(map(len, answer)) == {2}:
        docs, values = zip(*answer, strict=True)
        numbers = all(kind is not bool and issubclass(kind, Real) for kind in set(map(type, values)))
        if set(map(type, docs)) != {str} or not numbers:
            return None
        scores = list(map(float, values))
        if not all(map(math.isfinite, scores)):
            return None
    else:
        return None
    return list(zip(text_ids(docs, "document id", f"{label}: {where}"), scores, strict=True))


def with_scores(found: Sequence[tuple[str, float | None]]) -> Ranked:
    """The list with its scores, or with 1/rank if a score is missing."""
    scored = [(doc, score) for doc, score in found if score is not None]
    return scored if len(scored) == len(found) else [(doc, 1 / rank) for rank, (doc, _) in enumerate(found, 1)]


def read_score(value: Any, label: str, where: str) -> float | None:
    """A score as a float; None stays None, and anything but a finite number is an error."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise RetrieverError(f"{label}: the score of {where} is {value!r}; expected a number.")
    if not math.isfinite(value):
        raise RetrieverError(f"{label}: the score of {where} is {float(value)}; expected a finite number.")
    return float(value)


def _items(answer: Any, label: str, where: str) -> Iterable[Any]:
    if answer is None:
        return []
    if isinstance(answer, Mapping):
        return _items_of_mapping(answer, label, where)
    for rows in ("to_pylist", "to_dicts"):
        if hasattr(answer, rows):
            return list(getattr(answer, rows)())
    if hasattr(answer, "to_dict") and hasattr(answer, "iloc"):
        return list(answer.to_dict("records"))
    if not isinstance(answer, (str, bytes)) and isinstance(answer, Iterable):
        return answer
    problem = f"{label}: {where} is {kind_of(answer)}; expected a list of ids, of (id, score)"
    raise RetrieverError(f"{problem} pairs or of documents, or a mapping of id to score.")


def _items_of_mapping(answer: Mapping[Any, Any], label: str, where: str) -> Iterable[Any]:
    if all(isinstance(value, Real) for value in answer.values()):
        for doc, value in answer.items():
            read_score(value, label, f"document {doc!r} of {where}")
        return sorted(answer.items(), key=lambda pair: -pair[1])
    ids: Any = answer.get("ids")
    scores: Any = answer.get("scores")
    if _is_list(ids) and len(ids) == 1 and _is_list(ids[0]):
        # The answer of Chroma to one query; a column that was not asked for is None.
        names = {"ids": "id", "distances": "distance", "metadatas": "metadata", "documents": "text"}
        return _records({name: answer[key][0] for key, name in names.items() if answer.get(key) is not None})
    if _is_list(ids):
        texts: Any = next((answer[name] for name in ("texts", "documents") if _is_list(answer.get(name))), None)
        if texts is not None and len(texts) == len(ids) == len(ids if scores is None else scores):
            return _records({"id": ids, "text": texts, **({} if scores is None else {"score": scores})})
        if scores is None and _is_list(answer.get("distances")):
            return [{"id": doc, "distance": distance} for doc, distance in zip(ids, answer["distances"], strict=False)]
        if scores is None:
            return list(ids)
        if not _is_list(scores) or len(scores) != len(ids):
            raise RetrieverError(
                f"{label}: {where} has {counted(len(ids), 'id')} but not {counted(len(ids), 'score')}."
            )
        return list(zip(ids, scores, strict=True))
    for name in LIST_NAMES:
        if _is_list(answer.get(name)):
            return list(answer[name])
    problem = f"{label}: {where} is a mapping, but neither of id to score nor with a list under a usual"
    usual = ", ".join(("ids", *LIST_NAMES))
    raise RetrieverError(f"{problem} name ({usual}); it has {keys_of(answer)}. Return the list of documents alone.")


def _records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _is_list(value: Any) -> bool:
    return (isinstance(value, Sequence) and not isinstance(value, (str, bytes))) or type(value).__name__ == "ndarray"


def _pair(item: Any, ids: DocIds, score: str, label: str, where: str) -> tuple[str, float | None]:
    if isinstance(item, (str, Integral)):
        return ids.of_string(item, where), None
    if isinstance(item, (tuple, list)):
        if len(item) != 2:
            raise RetrieverError(f"{label}: {where} is a {type(item).__name__} of {len(item)}; expected (id, score).")
        document, value = item
        doc = ids.of_string(document, where) if isinstance(document, (str, Integral)) else ids.of(document, where)
        return doc, read_score(value, label, where)
    doc = ids.of(item, where)
    try:
        value = _usual_score(item)[1] if score == SCORE_NAMES[0] else walk(item, steps_of(score, label))
    except MissingError as missing:
        raise RetrieverError(f"{label}: the score {score!r} of a document: {missing}.") from None
    return doc, read_score(value, label, where)


def _usual_score(document: Any) -> tuple[str, Any]:
    """The name and the value of the first usual field with a score or a distance."""
    fields = document.get if isinstance(document, Mapping) else partial(getattr, document)
    names = (*SCORE_NAMES, *DISTANCE_NAMES)
    return next(((name, value) for name in names if (value := fields(name, None)) is not None), ("", None))
