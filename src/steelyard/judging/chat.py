"""One request to a chat-completions endpoint: an overall timeout, a bounded answer, back-off, no secrets in errors."""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from steelyard.checks import is_whole, number_between, text_value
from steelyard.errors import InputError, SteelyardError
from steelyard.masking import masked, remember
from steelyard.safe_text import utf8
from steelyard.web import LARGEST_CHAT, AnswerError, connect, is_address, json_value, read_body

ATTEMPTS = 8
"""How often a request is sent at most, the first time included."""

SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 0.01, 86_400.0
"""Seconds that one attempt may be given."""

MOST_TOKENS = 10**9
"""Tokens of one answer at most; a server that counts more, or fewer than 0, has not counted."""

CONNECTING = 8.0
"""Seconds in which a server has to accept the first connection."""

LONGEST_WAIT = 60.0
"""Seconds between two attempts at most, whatever Retry-After asks for."""


class ChatError(SteelyardError):
    """The endpoint refused a request, or did not answer it after several attempts."""


class RetryableError(Exception):
    """An attempt that may succeed later: a timeout, a broken connection, status 408, 429 or 5xx."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


@dataclass(frozen=True)
class Reply:
    """The text of the answer, the tokens that the server counted (None where it did not), and the seconds."""

    text: str
    tokens: int | None
    seconds: float


@dataclass(frozen=True)
class Endpoint:
    """Where to send requests, for example http://127.0.0.1:8000/v1; `key` is sent as a bearer token.

    timeout: seconds that one attempt may take from start to end.
    """

    url: str
    model: str
    key: str = ""
    timeout: float = 120.0

    def __post_init__(self) -> None:
        if not is_address(self.url):
            raise InputError(
                f"the endpoint {masked(self.url)!r} is not an address; expected one such as http://127.0.0.1:8000/v1."
            )
        text_value("model", self.model)
        number_between("timeout", self.timeout, SHORTEST_TIMEOUT, LONGEST_TIMEOUT)
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise InputError("the API key contains characters that a header cannot hold.")
        remember(self.key)

    def __repr__(self) -> str:
        return f"Endpoint({masked(self.url)!r}, model={self.model!r})"

    def check(self) -> None:
        """Raise if nothing answers at the address, within a few seconds: before many questions wait for it."""
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            socket.create_connection((parts.hostname or "", port), min(self.timeout, CONNECTING)).close()
        except OSError as error:
            reason = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise ChatError(f"{masked(self.url)} cannot be reached ({reason}); is the server running?") from None

    def ask(
        self,
        prompt: str,
        *,
        system: str = "",
        allow: Callable[[], None] = lambda: None,
        longest_answer: int = 300,
        wait: Callable[[float], None] = time.sleep,
    ) -> Reply:
        """The answer to a prompt; `system`: instructions. `allow` is called before each attempt and may raise."""
        body = {
            "model": self.model,
            "messages": [
                *([{"role": "system", "content": system}] if system else []),
                {"role": "user", "content": prompt},
            ],
            "temperature": 0,
            "max_tokens": longest_answer,
        }
        reason = ""
        for attempt in range(ATTEMPTS):
            allow()
            start = time.monotonic()
            try:
                return self._reply(self._post(body), time.monotonic() - start)
            except RetryableError as error:
                reason = str(error)
                if attempt < ATTEMPTS - 1:
                    wait(_pause(attempt, error.after))
        raise ChatError(f"{self.url}: no answer after {ATTEMPTS} attempts; the last: {masked(reason)}.")

    def _post(self, body: dict[str, Any]) -> Any:
        parts = urlsplit(self.url)
        connection = connect(self.url, self.timeout)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            path = f"{parts.path.rstrip('/')}/chat/completions"
            connection.request("POST", path, json.dumps(body, ensure_ascii=True), headers)
            response = connection.getresponse()
            content = read_body(response, LARGEST_CHAT)
        except AnswerError as error:
            raise RetryableError(str(error)) from None
        except TimeoutError:
            raise RetryableError("timeout") from None
        except (OSError, http.client.HTTPException, ssl.SSLError) as error:
            raise RetryableError(str(error) or type(error).__name__) from None
        finally:
            connection.close()
        if response.status in (408, 429) or response.status >= 500:
            raise RetryableError(f"status {response.status}", _seconds(response.getheader("Retry-After")))
        if response.status != 200:
            shown = masked(content[:300].decode("utf-8", "replace").strip())
            raise ChatError(f"{self.url}: status {response.status}: {shown or 'no text'}.")
        try:
            return json_value(content)
        except (ValueError, AnswerError):
            raise RetryableError("the answer is not JSON") from None

    def _reply(self, answer: Any, seconds: float) -> Reply:
        try:
            content = answer["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            raise RetryableError("the answer has no choices[0].message.content") from None
        usage = answer.get("usage")
        tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
        # A server may echo the request: what is stored has neither the key nor half of a character.
        text = masked(utf8(_content_text(content)).decode())
        return Reply(text, tokens if is_count(tokens) else None, seconds)


def is_count(tokens: Any) -> bool:
    """Whether a server counted the tokens: a whole number that can be true."""
    return is_whole(tokens, 0) and tokens <= MOST_TOKENS


def _content_text(content: Any) -> str:
    """The text of a message: a text, or a list of parts with texts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _pause(attempt: int, after: float | None) -> float:
    """Seconds to wait: what the server asked for, or 0.5, 1, 2, ... with a random share."""
    if after is not None:
        return min(after, LONGEST_WAIT)
    return min(0.5 * 2.0**attempt, LONGEST_WAIT) * (0.5 + random.random() / 2)


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds, from a number or a date."""
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
