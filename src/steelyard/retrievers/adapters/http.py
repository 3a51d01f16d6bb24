"""A service over HTTP that returns JSON, and what it shares with Elasticsearch: requests, retries and headers."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request

from steelyard.masking import from_environment, masked, masked_settings, remember, remember_settings
from steelyard.retrievers.adapters import documents
from steelyard.retrievers.adapters.base import Wrapped, ask_each
from steelyard.retrievers.adapters.documents import EVERY, HASH, DocIds, MissingError, steps_of
from steelyard.retrievers.base import Ranked, RetrieverError
from steelyard.retrievers.dense import Dense
from steelyard.retrievers.settings import setting
from steelyard.web import LARGEST_LIST, WRONG_ANSWER, AnswerError, json_value, opened, read_body, start_of
from steelyard.wording import counted

_QUERY = "{query}"
_VECTOR = "{vector}"
_VARIABLE = re.compile(r"\$?\{\w+\}")
_PLACEHOLDER = re.compile(r"\{(query|k)\}")
_RETRIED = {408, 429, 500, 502, 503, 504}
_FIRST_PAUSE = 0.2


def filled(template: Any, query: str, k: int, vector: Sequence[float] | None = None) -> Any:
    """The template with the query and k filled in: `{k}` alone becomes a number, within a text its digits.

    `{vector}` alone becomes the vector of the query, if there is one.

    >>> filled({"text": "{query}", "size": "{k}", "note": "first {k}"}, "a fox", 10)
    {'text': 'a fox', 'size': 10, 'note': 'first 10'}
    >>> filled({"near": "{vector}"}, "a fox", 10, [0.5, 1.0])
    {'near': [0.5, 1.0]}
    """
    if isinstance(template, Mapping):
        return {key: filled(value, query, k, vector) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [filled(value, query, k, vector) for value in template]
    if not isinstance(template, str):
        return template
    if template == "{k}":
        return k
    return vector if template == _VECTOR and vector is not None else filled_text(template, query, k)


def filled_text(template: str, query: str, k: int) -> str:
    """The text with the query and k filled in; placeholders within the query are not filled in."""
    return _PLACEHOLDER.sub(lambda match: query if match[1] == "query" else str(k), template)


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_HEADER = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


def checked_headers(headers: Mapping[str, str] | None, label: str) -> dict[str, str]:
    """Headers with ${VARIABLES} replaced. A name or value that cannot be sent is an error, which has no value."""
    checked: dict[str, str] = {}
    for name, given in (headers or {}).items():
        remember_settings({"headers": str(given)})
        value = str(from_environment(str(given), label, RetrieverError))
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise RetrieverError(f"{label}: {name!r} cannot be the name of a header.")
        if match := _NOT_IN_HEADER.search(value):
            what = "a line end" if match[0] in "\r\n" else "a character"
            raise RetrieverError(f"{label}: the value of the header {name} has {what} that a header cannot hold.")
        checked[name] = value
    return checked


class UnreachableError(RetrieverError):
    """A service that does not accept connections, or does not respond in time."""


class JsonService(Wrapped):
    """A URL that returns JSON for a query. `_shown` is the URL without its user and with ${VARIABLES} not replaced."""

    headers: Mapping[str, str] | None = setting(default=None)
    timeout: float = setting(default=10.0, low=1e-3)
    retries: int = setting(default=2)
    concurrency: int = setting(default=1, low=1)

    def _connect(self, url: str, body: Any) -> None:
        host_of(url, self.label)
        remember_settings({"target": url, "body": body})
        self._shown = masked(_without_user(url))
        self._headers = checked_headers(self.headers, self.label)
        self._body = from_environment(body, self.label, RetrieverError)
        complete = str(from_environment(url, self.label, RetrieverError))
        self._url = _without_user(complete)
        self._user = _basic(complete)

    def _json(self, query: str, k: int, vector: Sequence[float] | None = None) -> Any:
        """The JSON of the response."""
        url = filled_text(self._url, quote(query, safe=""), k)
        sent = None if self._body is None else json.dumps(filled(self._body, query, k, vector)).encode()
        headers = {"Accept": "application/json", **self._user}
        if sent is not None:
            headers["Content-Type"] = "application/json"
        answer = self._answered(Request(url, sent, {**headers, **self._headers}))
        try:
            return json_value(answer)
        except AnswerError as error:
            raise self._failed(str(error)) from None
        except ValueError:
            raise self._failed(f"did not return JSON; the response starts with {start_of(answer)!r}") from None

    def _answered(self, request: Request) -> bytes:
        """The body of the response, after up to `retries` retries."""
        kind = RetrieverError
        for attempt in range(self.retries + 1):
            try:
                with opened(request, self.timeout) as response:
                    return read_body(response, LARGEST_LIST)
            except AnswerError as error:
                raise self._failed(str(error)) from None
            except HTTPError as error:
                problem, retry = f"returned {error.code} {error.reason}", error.code in _RETRIED
                with suppress(OSError, HTTPException), error:
                    start = start_of(error.read(WRONG_ANSWER))
                    problem += f": {start}" if start else ""
            except (URLError, OSError, HTTPException) as error:
                reason, retry = getattr(error, "reason", None) or error, True
                late = f"did not respond within {self.timeout:g} s (`timeout` sets the limit)"
                problem = late if isinstance(reason, TimeoutError) else f"could not be reached: {reason}"
                kind = UnreachableError if isinstance(error, (URLError, TimeoutError)) else RetrieverError
            if not retry:
                break
            if attempt < self.retries:
                time.sleep(_FIRST_PAUSE * 2**attempt)
        tried = f" (tried {attempt + 1} times)" if attempt else ""
        raise self._failed(f"{problem}{tried}", kind)

    def _failed(self, problem: str, kind: type[RetrieverError] = RetrieverError) -> RetrieverError:
        return kind(masked(f"{self.label}: {self._shown} {problem}."))


def host_of(url: Any, label: str) -> str:
    """The host of an http URL; other URLs, such as files, are an error."""
    parts = None
    with suppress(ValueError):  # of a host or a port that is not valid
        if isinstance(url, str):
            _ = urlsplit(_VARIABLE.sub("0", url)).port
            parts = urlsplit(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.netloc:
        raise RetrieverError(
            f"{label}: `target` is {masked_settings(url)!r}; expected a URL, as in http://localhost:8000/search?q={{query}}&k={{k}}."
        )
    return parts.netloc.rpartition("@")[2]


def _without_user(url: str) -> str:
    netloc = urlsplit(url).netloc
    return url.replace(netloc, netloc.rpartition("@")[2], 1)


def _basic(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    password = unquote(parts.password or "")
    encoded = base64.b64encode(f"{unquote(parts.username)}:{password}".encode()).decode()
    for secret in (password, encoded):
        remember(secret)
    return {"Authorization": f"Basic {encoded}"}


class Http(JsonService):
    """A service over HTTP that returns JSON, with one request per query.

    Every request opens its own connection, which is included in its latency. A redirect to another server and a
    response of more than 100 MB are errors. The values of headers, variables and settings that are named like a
    secret (key, token, secret, password, authorization) are not in result folders and not in messages.
    """

    retriever = "http"

    target: Any = setting(
        "its URL, with {query} and {k} filled in: `http://localhost:8000/search?q={query}&k={k}`",
        default=None,
        kw_only=False,
    )
    body: Any = setting(
        "the JSON body, with {query}, {k} and {vector} filled in; without a body the request is a GET", default=None
    )
    id: str | None = setting(
        "JSON path to the ids, as in `results[*].id` or `hits.hits[*]._source.key`; or `hash`, by the texts. Without a "
        "path, the response is read as the result of a function",
        default=None,
    )
    score: str | None = setting(
        "JSON path to the scores, or to distances (`distance`); without one, they are 1/rank", default=None
    )
    text: str | None = setting(
        "JSON path to the texts, as in `results[*].text`; by default they are found by the usual names",
        default=None,
        key="text",
    )
    model: Any = setting(
        "embeds the query for {vector}: a model as for `dense`, such as `package.module:attribute`", default=None
    )
    concurrency: int = setting("the number of requests at the same time", default=1, low=1)
    version: str | None = setting(
        "version of the data behind the service; results are cached between benches while the settings are unchanged",
        default=None,
        key="version",
    )

    def _label(self) -> str:
        return str(self.name or host_of(self.target, "http"))

    def _set_up(self) -> None:
        sent = json.dumps(self.body, default=str)
        host_of(self.target, self.label)
        if _QUERY not in self.target and _QUERY not in sent and _VECTOR not in sent:
            raise self._error(f"neither the URL nor `body` contains {_QUERY}; add it where the query goes.")
        if (self.model is None) != (_VECTOR not in sent):
            missing = f"`body` has {_VECTOR}, which needs `model`, the model that embeds the query."
            extra = f"`model` embeds the query for {_VECTOR}, which `body` does not have."
            raise self._error(missing if self.model is None else extra)
        self._source = None if self.model is None else Dense(model=self.model, folder=self.folder, name=self.label)
        self._connect(self.target, self.body)
        self._paths = {name: self._steps(name) for name in ("id", "score", "text")}
        self._ids = DocIds(self.id or "id", self.label)
        self._identity = {"target": self._shown, "headers": sorted(self._headers)}
        if self._source is not None:
            self._identity["model"] = self._source.settings()

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        def ask(query: str) -> Any:
            vector = None if self._source is None else self._source.model_vectors([query])[0].tolist()
            return self._json(query, k, vector)

        return ask_each(ask, queries, self.concurrency)

    def _read(self, answer: Any, query: str, k: int) -> Ranked:
        where = f"the result for {query[:60]!r}"
        if self._paths["text"] is not None and self._ids.setting == HASH:
            texts = self._values(answer, "text")
            docs = [self._ids.of_text(text, where) for text in texts]
        elif self._paths["id"] is not None:
            docs = [self._ids.plain(doc_id, where) for doc_id in self._values(answer, "id")]
            texts = self._values(answer, "text")
        else:
            return super()._read(answer, query, k)
        self._keep(answer, docs[:k], texts)
        if self._paths["score"] is None:
            return documents.with_scores([(doc, None) for doc in docs[:k]])
        scores = self._values(answer, "score")
        if len(scores) != len(docs):
            raise self._error(f"{where} has {counted(len(docs), 'id')} and {counted(len(scores), 'score')}.")
        pairs = zip(docs[:k], scores[:k], strict=True)
        scored = documents.with_scores(
            [(doc, documents.read_score(value, self.label, f"{doc!r} in {where}")) for doc, value in pairs]
        )
        return documents.without_distances(scored) if self._paths["score"][-1] in documents.DISTANCE_NAMES else scored

    def _keep(self, answer: Any, docs: Sequence[str], texts: Sequence[Any]) -> None:
        """Keep the texts of the documents: those at the path `text`, or in the records that have the ids."""
        if self._ids.keep is None:
            return
        path = self._paths["id"]
        records = [{"text": text} for text in texts]
        if not texts and path is not None and path[-1] != EVERY:
            records = list(documents.every(answer, path[: len(path) - path[::-1].index(EVERY)]))
        for doc, record in zip(docs, records, strict=False):
            self._ids.keep_text(doc, record)

    def _steps(self, name: str) -> list[str | int] | None:
        """The path that a setting has, if it is one."""
        path = getattr(self, name)
        if path is None or path == HASH:
            return None
        steps = steps_of(path, self.label)
        if EVERY not in steps:
            raise self._error(f"`{name}` is {path!r}; expected a JSON path with [*] for the list, as in results[*].id.")
        return steps

    def _values(self, answer: Any, name: str) -> list[Any]:
        """The values at the path of a setting; none without a path."""
        steps = self._paths[name]
        try:
            return [] if steps is None else list(documents.every(answer, steps))
        except MissingError as missing:
            raise self._error(f"`{name}` does not fit the response: {missing}.") from None
