"""The client of a model: questions to a chat-completions endpoint, cached, capped, several at a time, resumable.

Model judges and the drafting of questions share it. One request has an overall timeout, a bounded answer, back-off, and
no secrets in its errors. Every answer is in the cache before it is used, so nothing is asked twice, also after a crash.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from steelyard.checks import is_number, is_whole, number_between, text_value, whole_number
from steelyard.errors import InputError, PolicyError, SteelyardError
from steelyard.judging.prompts import digest, stated_reason
from steelyard.masking import masked, remember
from steelyard.notes import Note, note
from steelyard.safe_text import utf8
from steelyard.web import LARGEST_CHAT, AnswerError, connect, is_address, json_value, read_body, start_of
from steelyard.wording import counted

ATTEMPTS = 8  # How often a request is sent at most, the first time included.
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 0.01, 86_400.0  # Seconds that one attempt may be given.
MOST_TOKENS = 10**9  # Tokens of one answer at most; a server that counts more, or fewer than 0, has not counted.
CONNECTING = 8.0  # Seconds in which a server has to accept the first connection.
LONGEST_WAIT = 60.0  # Seconds between two attempts at most, whatever Retry-After asks for.
MOST_WORKERS = 256
STEP = 0.2  # Seconds of waiting after which Ctrl-C is noticed, also if another thread got the signal.
_ADDRESS = "Does the address end in /v1, as most do?"


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
        wait: Callable[[float], object] = time.sleep,
    ) -> Reply:
        """The answer to a prompt; `system`: instructions. `allow` is called before each attempt and may raise."""
        messages = [*([{"role": "system", "content": system}] if system else []), {"role": "user", "content": prompt}]
        body = {"model": self.model, "messages": messages, "temperature": 0, "max_tokens": longest_answer}
        reason = ""
        for attempt in range(ATTEMPTS):
            try:
                allow()
            except CapReachedError as cap:
                cap.failure = masked(reason)
                raise
            start = time.monotonic()
            try:
                return Reply(*self._post(body), time.monotonic() - start)
            except RetryableError as error:
                reason = str(error)
                if attempt < ATTEMPTS - 1:
                    wait(_pause(attempt, error.after))
        raise ChatError(f"{self.url}: no answer after {ATTEMPTS} attempts; the last: {masked(reason)}.")

    def _post(self, body: dict[str, Any]) -> tuple[str, int | None]:
        """The text of the answer and its tokens, if the server counted them."""
        connection = connect(self.url, self.timeout)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            path = f"{urlsplit(self.url).path.rstrip('/')}/chat/completions"
            connection.request("POST", path, json.dumps(body, ensure_ascii=True), headers)
            response = connection.getresponse()
            content = read_body(response, LARGEST_CHAT)
        except (AnswerError, OSError, http.client.HTTPException) as error:
            message = "timeout" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            raise RetryableError(message) from None
        finally:
            connection.close()
        start = start_of(content, 300) or "no text"
        if response.status in (408, 429) or response.status >= 500:
            raise RetryableError(f"status {response.status}", _seconds(response.getheader("Retry-After", "")))
        if response.status != 200:
            hint = f" {_ADDRESS}" if response.status == 404 else ""
            raise ChatError(f"{self.url}: status {response.status}: {start}.{hint}")
        if content.lstrip().startswith(b"<"):
            raise ChatError(f"{self.url}: the answer is a web page, not a chat completion. {_ADDRESS}")
        try:
            answer = json_value(content)
        except (ValueError, AnswerError):
            raise RetryableError(f"the answer is not JSON: {start}") from None
        try:
            message = answer["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            raise RetryableError(f"the answer has no choices[0].message.content: {start}") from None
        usage = answer.get("usage")
        tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
        if isinstance(message, list):
            message = "".join(str(part.get("text") or "") for part in message if isinstance(part, dict))
        # A server may echo the request: what is stored has neither the key nor half of a character.
        text = masked(utf8(message if isinstance(message, str) else "").decode())
        return text, tokens if is_count(tokens) else None


def is_count(tokens: Any) -> bool:
    """Whether a server counted the tokens: a whole number that can be true."""
    return is_whole(tokens, 0) and tokens <= MOST_TOKENS


def _pause(attempt: int, after: float | None) -> float:
    """Seconds to wait: what the server asked for, or 0.5, 1, 2, ... with a random share."""
    if after is not None:
        return min(after, LONGEST_WAIT)
    return min(0.5 * 2.0**attempt, LONGEST_WAIT) * (0.5 + random.random() / 2)


def _seconds(text: str) -> float | None:
    """Retry-After in seconds, from a number or a date."""
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(TypeError, ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


Reader = Callable[[str], tuple[int | None, str]]
"""From the text of an answer to a grade, or None and why it has none; an answer without a grade is asked for again."""


class CapReachedError(Exception):
    """The next request could pass max_requests or max_tokens. `failure`: why the attempt before it failed."""

    failure = ""


@dataclass(frozen=True)
class Answer:
    """What a model answered: its grade with the reason, or None and why there is none; the text of the last answer.

    tokens, seconds: of all attempts.
    """

    grade: int | None
    reason: str
    tokens: int | None
    seconds: float | None
    text: str = ""


_COLUMNS = (
    "key TEXT PRIMARY KEY, model TEXT, prompt TEXT, query_id TEXT, doc_id TEXT, repetition INTEGER, grade INTEGER, "
    "tokens INTEGER, seconds REAL, raw TEXT"
)


class AnswerCache:
    """Every answer in SQLite, by endpoint, model, prompt, texts and repetition; safe to kill at any time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.damaged: set[str] = set()
        try:
            self._database = sqlite3.connect(self.path, check_same_thread=False, timeout=30)
            self._database.text_factory = lambda content: content.decode("utf-8", "replace")
            tables = [name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            columns = [name for _, name, *_ in self._database.execute("PRAGMA table_info(answers)")]
            if tables and columns != [column.split()[0] for column in _COLUMNS.split(", ")]:
                self._database.close()
                problem = f"this is a database of something else, with the table {tables[0]!r};"
                raise InputError(f"{problem} name another file for the cache.", self.path)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute(f"CREATE TABLE IF NOT EXISTS answers ({_COLUMNS})")
            self._database.commit()
        except sqlite3.Error as error:
            raise InputError(f"the cache cannot be opened ({error}).", self.path) from None
        self._lock = threading.Lock()

    def get(self, key: str, read: Reader) -> Answer | None:
        """An answer; None if the question was never answered, or if the row is damaged.

        The grade is read from the text of the answer again: a row whose grade is a different one is damaged.
        """
        with self._used():
            cursor = self._database.execute("SELECT grade, tokens, seconds, raw FROM answers WHERE key = ?", (key,))
            row = cursor.fetchone()
        if row is None:
            return None
        grade, tokens, seconds, raw = row
        with suppress(ValueError, RecursionError, TypeError, LookupError, AttributeError):
            texts = json.loads(raw)
            stated, reason = read(texts[-1])
            whole = (tokens is None or is_count(tokens)) and (seconds is None or is_number(seconds))
            if stated == grade and whole:
                return Answer(stated, reason or stated_reason(texts[-1]), tokens, seconds, texts[-1])
        self.damaged.add(key)
        return None

    def put(self, question: Question, answer: Answer, raw: Sequence[str]) -> None:
        """Keep an answer, with the raw texts for audit."""
        names = (question.model, question.prompt_name, question.query_id, question.doc_id)
        texts = (utf8(name).decode() for name in names)
        kept = (answer.grade, answer.tokens, answer.seconds, json.dumps(list(raw), ensure_ascii=False))
        values = (question.key, *texts, question.repetition, *kept)
        with self._used():
            self._database.execute(f"INSERT OR REPLACE INTO answers VALUES ({', '.join('?' * len(values))})", values)
            self._database.commit()

    @contextmanager
    def _used(self) -> Iterator[None]:
        """One thread at a time uses the file. A full disk and a damaged file are errors; earlier answers are kept."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                problem = f"the cache cannot be read or written ({error}); earlier answers are kept."
                raise InputError(problem, self.path) from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()


@dataclass(frozen=True)
class Question:
    """One question to the model: the user message `text`, the system message, and how the answer is read."""

    query_id: str
    doc_id: str
    repetition: int
    prompt_name: str
    text: str
    system: str
    model: str
    endpoint: str
    read: Reader = field(compare=False, repr=False)
    asked: str = ""
    text_hash: str = ""

    @property
    def key(self) -> str:
        """What an answer is cached by."""
        return digest(self.endpoint.rstrip("/"), self.model, self.system, self.text, str(self.repetition))

    @property
    def tokens(self) -> int:
        """Estimated tokens of the prompt: one per four characters."""
        return (len(self.system) + len(self.text)) // 4 + 1


@dataclass(frozen=True)
class RequestPlan:
    """What asking takes: questions, those answered already, requests to send, estimated tokens."""

    questions: int
    answered: int
    requests: int
    tokens: int

    def __str__(self) -> str:
        done = f", {self.answered:,} of them answered before" if self.answered else ""
        asking = f"{counted(self.requests, 'request')}, about {self.tokens:,} tokens without the answers"
        return f"{counted(self.questions, 'question')}{done}: {asking}"


class Client:
    """An endpoint with a cache and caps. `plan` first, then `run`.

    `retry`: ask again for what was answered without a grade. `longest`: tokens that an answer may have.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        cache: str | Path,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        concurrency: int = 4,
        retry: bool = False,
        *,
        longest: int = 300,
    ) -> None:
        for label, cap in (("max_requests", max_requests), ("max_tokens", max_tokens)):
            if cap is not None:
                whole_number(label, cap, 0, error=PolicyError)
        self.endpoint, self.max_requests, self.max_tokens = endpoint, max_requests, max_tokens
        self.concurrency = whole_number("concurrency", concurrency, 1, high=MOST_WORKERS, error=PolicyError)
        self.retry, self.longest = retry, longest
        self.cache = AnswerCache(cache)
        self.requests = self.tokens = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def plan(self, questions: Sequence[Question]) -> RequestPlan:
        """What is left to ask."""
        left = [question for question in questions if self.known(question) is None]
        tokens = sum(question.tokens for question in left)
        return RequestPlan(len(questions), len(questions) - len(left), len(left), tokens)

    def notes(self) -> tuple[Note, ...]:
        """Answers in the cache that are damaged."""
        damaged = len(self.cache.damaged)
        return (note("damaged-answers", file=self.cache.path.name, count=damaged),) if damaged else ()

    def run(self, questions: Sequence[Question], use: Callable[[Question, Answer], None]) -> str | None:
        """Ask what is not answered yet, and call `use` with every answer; the reason if a cap stopped it.

        An error if a cap stopped it after failures only.
        """
        if any(self.known(question) is None for question in questions):
            self.endpoint.check()
        self._stopping.clear()
        todo = iter(questions)
        stopped: str | None = None
        used, failure = 0, ""
        waiting: dict[Future[Answer], Question] = {}
        workers = ThreadPoolExecutor(self.concurrency)
        try:
            while True:
                for question in islice(todo, 2 * self.concurrency - len(waiting)) if stopped is None else ():
                    waiting[workers.submit(self._answer, question)] = question
                if not waiting and stopped is not None:
                    stopped = stopped.format(f"{self.tokens:,}")
                    if failure and not used:
                        raise ChatError(f"{self.endpoint.url}: no answer, and {stopped}; the last: {failure}.")
                    return f"{stopped}; the last failure: {failure}" if failure else stopped
                if not waiting:
                    return None
                done = wait(waiting, STEP, FIRST_COMPLETED).done
                for future in [task for task in waiting if task in done]:  # in the order in which they were asked
                    question = waiting.pop(future)
                    try:
                        use(question, future.result())
                        used += 1
                    except CapReachedError as error:
                        stopped, failure = str(error), failure or error.failure
        except BaseException:
            # Nothing is asked again: only the answers that are under way are waited for, until a second Ctrl-C.
            self._stopping.set()
            running = [future for future in waiting if not future.cancel()]
            while wait(running, STEP).not_done:
                pass
            raise
        finally:
            workers.shutdown(wait=False)

    def known(self, question: Question) -> Answer | None:
        """The answer in the cache; with `retry`, only if it has a grade."""
        answer = self.cache.get(question.key, question.read)
        return None if answer is None or (answer.grade is None and self.retry) else answer

    def _answer(self, question: Question) -> Answer:
        """The answer from the cache, or from the model: asked a second time if the first has no grade."""
        if (cached := self.known(question)) is not None:
            return cached
        raw: list[str] = []
        tokens, seconds, grade, reason = 0, 0.0, None, ""
        for _ in range(2):
            reply = self._ask(question)
            raw.append(reply.text)
            tokens += reply.tokens or question.tokens + len(reply.text) // 4
            seconds += reply.seconds
            grade, reason = question.read(reply.text)
            if grade is not None:
                break
        answer = Answer(grade, reason or stated_reason(raw[-1]), tokens, seconds, raw[-1])
        self.cache.put(question, answer, raw)
        return answer

    def _ask(self, question: Question) -> Reply:
        reserved = question.tokens + self.longest

        def allow() -> None:
            with self._lock:
                if self._stopping.is_set():
                    raise CapReachedError("stopped")
                if self.max_requests is not None and self.requests >= self.max_requests:
                    raise CapReachedError(f"max_requests={self.max_requests:,} is reached")
                if self.max_tokens is not None and self.tokens + reserved > self.max_tokens:
                    # `run` adds how many were used, once the requests that still run have answered.
                    cap = f"max_tokens={self.max_tokens:,}"
                    raise CapReachedError(f"another request beside those that still ran could pass {cap} ({{}} used)")
                self.requests += 1
                self.tokens += reserved

        reply = self.endpoint.ask(
            question.text, system=question.system, allow=allow, longest_answer=self.longest, wait=self._stopping.wait
        )
        with self._lock:
            self.tokens += (reply.tokens if reply.tokens is not None else reserved) - reserved
        return reply
