"""http: a search service that answers in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.retrievers.adapters.answers import read_answer, read_score, with_scores
from steelyard.retrievers.adapters.calling import ask_each
from steelyard.retrievers.adapters.doc_ids import HASH, DocIds
from steelyard.retrievers.adapters.paths import EVERY, MissingError, every, steps_of
from steelyard.retrievers.adapters.service import JsonService, host_of
from steelyard.retrievers.adapters.wrapped import Wrapped
from steelyard.retrievers.base import Ranked, RetrieverError, checked_queries
from steelyard.retrievers.checks import whole
from steelyard.wording import counted

_QUERY = "{query}"


class Http(Wrapped):
    """A service that is asked over HTTP, one request a query.

    target: its URL, with {query} and {k} filled in: `http://localhost:8000/search?q={query}&k={k}`.
    body: what is posted as JSON, with {query} and {k} filled in; without a body the request is a GET.
    id: the JSON path to the ids, as in `results[*].id` or `hits.hits[*]._source.key`; or `hash`, with `text`.
        Without a path, the answer is read as that of a function would be.
    score: the JSON path to the scores; without one, they are 1/rank.
    text: the JSON path to the texts, for `id: hash`.
    headers: of every request. ${VARIABLE} in a header or in the URL comes from the environment.
    timeout: seconds to wait for an answer.
    retries: how often a request is made again after a timeout, a broken connection, or a status of 408, 429,
        500 or above that says to come again, with a pause that doubles from 0.2 s.
    concurrency: how many requests are out at once when several queries are asked.
    version: of what the service holds: answers are kept from bench to bench for as long as the settings stay.
    name: the label of its row in a table; the host by default.

    Every request opens a connection of its own, which its latency includes. The values of headers are in no
    settings and no message.
    """

    def __init__(
        self,
        target: Any = None,
        body: Any = None,
        id: str | None = None,
        score: str | None = None,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        retries: int = 2,
        concurrency: int = 1,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or host_of(target, "http")
        if _QUERY not in target and _QUERY not in json.dumps(body, default=str):
            raise RetrieverError(
                f"{label}: neither the URL nor `body` has {_QUERY}; put it where the query goes."
            )
        self._service = JsonService(target, label, body, headers, timeout, retries)
        self._paths = {"id": _path(id, "id", label), "score": _path(score, "score", label)}
        self._texts = _path(text, "text", label)
        if id == HASH and text is None:
            raise RetrieverError(f"{label}: `id: hash` needs `text`, the JSON path to the texts.")
        self._concurrency = whole(label, "`concurrency`", concurrency, 1)
        seen = {
            "retriever": "http",
            "target": self._service.shown,
            "body": body,
            "headers": sorted(self._service.headers),
            "score": score,
            "text": text,
            "version": version,
        }
        super().__init__(label, DocIds(id or "id", label), seen)

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the first k (document id, score) pairs of its answer, in its order."""
        listed = checked_queries(queries, k, self.label)
        answers = ask_each(lambda query: self._service.ask(query, k), listed, self._concurrency)
        return [self._read(answer, query, k) for query, answer in zip(listed, answers, strict=True)]

    def _read(self, answer: Any, query: str, k: int) -> Ranked:
        where = f"the answer to {query[:60]!r}"
        if self._texts is not None and self._ids.setting == HASH:
            docs = [self._ids.of_text(text, where) for text in self._values(answer, self._texts, "text")]
        elif self._paths["id"] is not None:
            docs = [self._ids.plain(found, where) for found in self._values(answer, self._paths["id"], "id")]
        else:
            return read_answer(answer, self._ids, self.label, query, k)
        if self._paths["score"] is None:
            return with_scores([(doc, None) for doc in docs[:k]])
        scores = self._values(answer, self._paths["score"], "score")
        if len(scores) != len(docs):
            raise RetrieverError(
                f"{self.label}: {where} has {counted(len(docs), 'id')} and {counted(len(scores), 'score')}."
            )
        pairs = zip(docs[:k], scores[:k], strict=True)
        return with_scores(
            [(doc, read_score(value, self.label, f"{doc!r} in {where}")) for doc, value in pairs]
        )

    def _values(self, answer: Any, steps: Sequence[str | int], setting: str) -> list[Any]:
        try:
            return list(every(answer, steps))
        except MissingError as missing:
            raise RetrieverError(f"{self.label}: `{setting}` does not fit the answer: {missing}.") from None


def _path(setting: str | None, what: str, who: str) -> list[str | int] | None:
    if setting is None or setting == HASH:
        return None
    steps = steps_of(setting, who)
    if EVERY not in steps:
        raise RetrieverError(
            f"{who}: `{what}` is {setting!r}; expected a JSON path with [*] where the list is, as in results[*].id."
        )
    return steps
