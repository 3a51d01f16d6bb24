"""A JSON service: requests made and made again, answers read, and errors that show no secret."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

from steelyard.retrievers.adapters.templates import filled, filled_text, from_environment
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.checks import number

_SHOWN = 200
_TRY_AGAIN = {408, 429, 500, 502, 503, 504}
_FIRST_PAUSE = 0.2


class JsonService:
    """A URL that is asked queries. `shown` is the URL without its user, its ${VARIABLES} as they were written."""

    def __init__(
        self, url: str, who: str, body: Any, headers: Mapping[str, str] | None, timeout: float, retries: int
    ) -> None:
        self.host = host_of(url, who)
        self.shown = _without_user(url)
        self.headers = {str(key): from_environment(str(value), who) for key, value in (headers or {}).items()}
        self._who = who
        self._body = body
        self._timeout = number(who, "`timeout`", timeout, 1e-3)
        self._retries = int(number(who, "`retries`", retries))
        whole = from_environment(url, who)
        self._url = _without_user(whole)
        self._user = _basic(whole)

    def ask(self, query: str, k: int) -> Any:
        """The answer's JSON."""
        url = filled_text(self._url, quote(query, safe=""), k)
        sent = None if self._body is None else json.dumps(filled(self._body, query, k)).encode()
        headers = {"Accept": "application/json", **self._user}
        if sent is not None:
            headers["Content-Type"] = "application/json"
        answer = self._answered(Request(url, sent, {**headers, **self.headers}))
        try:
            return json.loads(answer)
        except ValueError:
            start = answer[:_SHOWN].decode("utf-8", "replace").strip()
            raise RetrieverError(
                f"{self._who}: {self.shown} answered no JSON; the answer starts with {start!r}."
            ) from None

    def _answered(self, request: Request) -> bytes:
        """The body of the answer, after as many tries as are allowed."""
        for attempt in range(self._retries + 1):
            try:
                with urlopen(request, timeout=self._timeout) as response:
                    return bytes(response.read())
            except HTTPError as error:
                with error:
                    said = error.read(_SHOWN).decode("utf-8", "replace").strip()
                problem = f"answered {error.code} {error.reason}" + (f": {said}" if said else "")
                again = error.code in _TRY_AGAIN
            except (URLError, OSError, HTTPException) as error:
                problem, again = self._broken(error), True
            if not again:
                break
            if attempt < self._retries:
                time.sleep(_FIRST_PAUSE * 2**attempt)
        tried = f" (tried {attempt + 1} times)" if attempt else ""
        raise RetrieverError(f"{self._who}: {self.shown} {problem}{tried}.")

    def _broken(self, error: Exception) -> str:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            return f"gave no answer within {self._timeout:g} s; `timeout` sets how long to wait"
        return f"could not be reached: {reason}"


def host_of(url: Any, who: str) -> str:
    """The host of an http URL; urllib would open files too.

    >>> host_of("http://localhost:9200/passages", "http")
    'localhost:9200'
    """
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.netloc:
        raise RetrieverError(
            f"{who}: `target` is {url!r}; expected a URL, as in http://localhost:8000/search?q={{query}}&k={{k}}."
        )
    return parts.netloc.rpartition("@")[2]


def _without_user(url: str) -> str:
    netloc = urlsplit(url).netloc
    return url.replace(netloc, netloc.rpartition("@")[2], 1)


def _basic(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
