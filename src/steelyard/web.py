"""Answers over HTTP: limits of time, size and nesting that every request keeps."""

from __future__ import annotations

import json
import time
from functools import cache, partial
from http.client import HTTPConnection, HTTPSConnection
from io import BufferedReader, RawIOBase
from socket import socket
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from steelyard.masking import masked

LARGEST_LIST = 100_000_000  # Bytes of the answer of a retriever that are read at most.
LARGEST_CHAT = 2_000_000  # Bytes of the answer of a model that are read at most.
WRONG_ANSWER = 10_000  # Bytes of one that cannot be used of which the start is shown.
_BLOCK = 1 << 16


class AnswerError(Exception):
    """An answer that is refused: too large, nested too deeply, or from another origin; the text tells which."""


def read_body(response: Any, largest: int) -> bytes:
    """The body of a response; an error if it is larger, or shorter than announced."""
    parts: list[bytes] = []
    size = 0
    while part := response.read(_BLOCK):
        parts.append(part)
        size += len(part)
        if size > largest:
            raise AnswerError(f"returned more than {largest:,} bytes")
    if getattr(response, "length", None):
        raise ConnectionError("the connection was closed before the end of the answer")
    return b"".join(parts)


def start_of(answer: bytes, size: int = 200) -> str:
    """The start of an answer, for an error message; masked before it is cut, as a part of a key is not recognised."""
    return masked(answer[:WRONG_ANSWER].decode("utf-8", "replace")).strip()[:size]


def json_value(data: bytes) -> Any:
    """The JSON of an answer; a ValueError if it is not JSON."""
    try:
        return json.loads(data)
    except RecursionError:
        raise AnswerError("returned JSON that is nested too deeply") from None


def is_address(url: str) -> bool:
    """Whether a text is the address of a server that can be connected to: http or https, a host, a possible port.

    >>> addresses = ("http://[::1]:80/v1", "http://[::1/v1", "http://a:99999/", "ftp://a", "http://a/ b")
    >>> [is_address(address) for address in addresses]
    [True, False, False, False, False]
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018 - reading it checks it
        host.encode("idna")
        rest = url.partition(host)[2] if host else url
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and rest.isascii() and rest.isprintable() and " " not in url


def origin(url: str) -> str:
    """The scheme, host and port of a URL.

    >>> origin("https://me@example.org/a"), origin("http://localhost:80/")
    ('https://example.org:443', 'http://localhost:80')
    """
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def connect(url: str, seconds: float) -> HTTPConnection:
    """A connection to the host of a URL, with a time limit for all of its use."""
    parts = urlsplit(url)
    kind = _TimedHTTPS if parts.scheme == "https" else _TimedHTTP
    return kind(parts.hostname or "", parts.port, timeout=seconds, until=time.monotonic() + seconds)


def opened(request: Request, seconds: float) -> Any:
    """The response to a request; `seconds` is the limit for all of it. Redirects stay within the origin."""
    return _opener().open(_TimedRequest(request, time.monotonic() + seconds), timeout=seconds)


class _TimedRequest(Request):
    """A request that has to be finished at a time, also after a redirect."""

    def __init__(self, request: Request, until: float) -> None:
        headers = {**request.headers, **request.unredirected_hdrs}
        super().__init__(request.full_url, request.data, headers, method=request.get_method())
        self.until = until


class _SameOrigin(HTTPRedirectHandler):
    """Follows a redirect only within the origin: another server must not get the headers."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if origin(newurl) != origin(req.full_url):
            fp.close()
            raise AnswerError(f"redirects to another server, {origin(newurl)}, which would get the headers")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        return None if request is None else _TimedRequest(request, req.until)


class _Timed(HTTPHandler, HTTPSHandler):
    def http_open(self, req: Any) -> Any:
        return self.do_open(partial(_TimedHTTP, until=req.until), req)

    def https_open(self, req: Any) -> Any:
        return self.do_open(partial(_TimedHTTPS, until=req.until), req)


@cache
def _opener() -> OpenerDirector:
    """As `urlopen` has it, with the proxies of the environment."""
    return build_opener(_SameOrigin, _Timed)


class _TimedHTTP(HTTPConnection):
    """A connection whose reads and writes end at a time, however slowly the bytes arrive."""

    def __init__(self, *arguments: Any, until: float, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._until = until

    def connect(self) -> None:
        super().connect()
        self.sock = _TimedSocket(self.sock, self._until)


class _TimedHTTPS(_TimedHTTP, HTTPSConnection):
    """The same, encrypted: of the bases, the first gives the time limit and the second the encryption."""


class _TimedSocket:
    """A socket of which every operation gets the time that is left."""

    def __init__(self, inner: socket, until: float) -> None:
        self._inner = inner
        self._until = until

    def sendall(self, data: Any) -> None:
        _limit(self._inner, self._until)
        self._inner.sendall(data)

    def makefile(self, *_: Any) -> BufferedReader:
        return BufferedReader(TimedFile(self._inner, self._until))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class TimedFile(RawIOBase):
    """What arrives at a socket until a time; then reading it is a TimeoutError."""

    def __init__(self, inner: socket, until: float) -> None:
        self._socket = inner
        self._inner = inner.makefile("rb", buffering=0)
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        _limit(self._socket, self._until)
        return self._inner.readinto(buffer)

    def close(self) -> None:
        self._inner.close()
        super().close()


def _limit(inner: socket, until: float) -> None:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    inner.settimeout(left)
