"""An answer in whatever shape it comes, as ranked (document id, score) pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from steelyard.ids import kind_of
from steelyard.retrievers.adapters.doc_ids import DocIds
from steelyard.retrievers.adapters.paths import MissingError, keys_of, steps_of, walk
from steelyard.retrievers.base import Ranked, RetrieverError
from steelyard.wording import counted

SCORE_NAMES = ("score", "_score", "similarity", "relevance")
LIST_NAMES = ("documents", "results", "hits", "docs", "data", "matches", "items", "points")


def read_answer(answer: Any, ids: DocIds, who: str, query: str, k: int, score: str = "score") -> Ranked:
    """The first k documents of an answer, in its order, repeats and all.

    An answer is None (nothing found), ids, (id, score) pairs, documents or records, (document, score) pairs,
    {id: score} (ordered by score), or any of the lists under a usual name ({"results": [...]}), also as
    {"ids": [...], "scores": [...]}. Where a document has no score, the whole list gets 1/rank.

    >>> ids = DocIds("id", "mine")
    >>> read_answer(["d1", 7], ids, "mine", "a question", 10)
    [('d1', 1.0), ('7', 0.5)]
    >>> read_answer({"d1": 1, "d2": 3}, ids, "mine", "a question", 1)
    [('d2', 3.0)]
    """
    where = f"the answer to {query[:60]!r}"
    found: list[tuple[str, float | None]] = []
    for place, item in enumerate(_items(answer, who, where), 1):
        if place > k:
            break
        found.append(_pair(item, ids, score, who, f"document {place} of {where}"))
    return with_scores(found)


def with_scores(found: Sequence[tuple[str, float | None]]) -> Ranked:
    """The list with its scores; with 1/rank for all where some have none."""
    scored = [(doc, score) for doc, score in found if score is not None]
    if len(scored) == len(found):
        return scored
    return [(doc, 1 / rank) for rank, (doc, _) in enumerate(found, 1)]


def read_score(value: Any, who: str, where: str) -> float | None:
    """A score as a float; None stays None, and what is no finite number is an error.

    >>> read_score(3, "mine", "document 1")
    3.0
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise RetrieverError(f"{who}: the score of {where} is {value!r}; expected a number.")
    if not math.isfinite(value):
        raise RetrieverError(f"{who}: the score of {where} is {float(value)}; expected a finite number.")
    return float(value)


def _items(answer: Any, who: str, where: str) -> Iterable[Any]:
    if answer is None:
        return []
    if isinstance(answer, Mapping):
        return _items_of_mapping(answer, who, where)
    if not isinstance(answer, (str, bytes)) and isinstance(answer, Iterable):
        return answer
    raise RetrieverError(
        f"{who}: {where} is {kind_of(answer)}; expected a list of ids, of (id, score) pairs or of documents, "
        "a mapping of id to score, or None."
    )


def _items_of_mapping(answer: Mapping[Any, Any], who: str, where: str) -> Iterable[Any]:
    if all(isinstance(value, Real) for value in answer.values()):
        for doc, value in answer.items():
            read_score(value, who, f"document {doc!r} of {where}")
        return sorted(answer.items(), key=lambda pair: -pair[1])
    ids: Any = answer.get("ids")
    scores: Any = answer.get("scores")
    if _is_list(ids):
        if scores is None:
            return list(ids)
        if not _is_list(scores) or len(scores) != len(ids):
            raise RetrieverError(
                f"{who}: {where} has {counted(len(ids), 'id')} and other than {counted(len(ids), 'score')}."
            )
        return list(zip(ids, scores, strict=True))
    for name in LIST_NAMES:
        if _is_list(answer.get(name)):
            return list(answer[name])
    raise RetrieverError(
        f"{who}: {where} is a mapping, but neither of id to score nor with a list under a usual name "
        f"({', '.join(('ids', *LIST_NAMES))}); it has {keys_of(answer)}."
    )


def _is_list(value: Any) -> bool:
    return (isinstance(value, Sequence) and not isinstance(value, (str, bytes))) or type(
        value
    ).__name__ == "ndarray"


def _pair(item: Any, ids: DocIds, score: str, who: str, where: str) -> tuple[str, float | None]:
    if isinstance(item, (str, Integral)):
        return ids.plain(item, where), None
    if isinstance(item, (tuple, list)):
        if len(item) != 2:
            raise RetrieverError(
                f"{who}: {where} is a {type(item).__name__} of {len(item)}; expected (id, score)."
            )
        document, value = item
        doc = ids.plain(document, where) if isinstance(document, (str, Integral)) else ids.of(document, where)
        return doc, read_score(value, who, where)
    return ids.of(item, where), read_score(_score_of(item, score, who), who, where)


def _score_of(document: Any, score: str, who: str) -> Any:
    ways = [[name] for name in SCORE_NAMES] if score == SCORE_NAMES[0] else [steps_of(score, who)]
    for way in ways:
        try:
            return walk(document, way)
        except MissingError as missing:
            if score != SCORE_NAMES[0]:
                raise RetrieverError(f"{who}: the score {score!r} of a document: {missing}.") from None
    return None
