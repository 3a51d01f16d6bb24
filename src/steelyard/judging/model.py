"""Model judges: grades by a language model at a chat-completions endpoint, cached, capped and resumable."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError, PolicyError, problem_report
from steelyard.judging.chat import ChatError, Endpoint, Reply
from steelyard.judging.pool import Pool
from steelyard.judgments import Judgments
from steelyard.notes import note
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets import Dataset

GRADED = """\
You judge search results. Read the query and the passage, then grade how well the passage serves someone who \
asks the query.

3: the passage answers the query fully and directly.
2: the passage answers part of the query, or answers it among much other material.
1: the passage is on the topic of the query but does not answer it.
0: the passage has nothing to do with the query.

Query: {query}

Passage: {document}

Reply with one JSON object and nothing else: {{"grade": 0, 1, 2 or 3, "reason": "one short sentence"}}"""

BINARY = """\
You judge search results. Decide whether the passage contains information that helps to answer the query.

1: it does.
0: it does not.

Query: {query}

Passage: {document}

Reply with one JSON object and nothing else: {{"grade": 0 or 1, "reason": "one short sentence"}}"""

PROMPTS = {"graded": (GRADED, (0, 1, 2, 3)), "binary": (BINARY, (0, 1))}
_GRADE = re.compile(r"""grade["'*]*\s*[:=]\s*["'*]*(-?\d+(?:\.\d+)?)(?!\d|\.\d)""", re.IGNORECASE)
LONGEST_ANSWER = 300
"""Tokens that an answer may have."""

Progress = Callable[[int, int, int], None]
"""Called with pairs done, pairs in all, and tokens so far."""


class CapReachedError(Exception):
    """The next request could pass max_requests or max_tokens."""


@dataclass(frozen=True)
class Prompt:
    """A prompt with the places {query} and {document}, and the grades that an answer may have."""

    name: str
    text: str
    grades: tuple[int, ...]

    @classmethod
    def of(cls, prompt: str | Path) -> Prompt:
        """A prompt by name (graded, binary), or of a file with {query} and {document}, graded 0 to 3."""
        if str(prompt) in PROMPTS:
            text, grades = PROMPTS[str(prompt)]
            return cls(str(prompt), text.replace("{{", "{").replace("}}", "}"), grades)
        path = Path(prompt)
        if not path.is_file():
            raise InputError(
                f"unknown prompt {str(prompt)!r}; expected {', '.join(PROMPTS)} or a file with {{query}} and {{document}}."
            )
        text = path.read_text("utf-8")
        missing = [place for place in ("{query}", "{document}") if place not in text]
        if missing:
            raise InputError(f"{path}: the prompt has no {' and no '.join(missing)}.")
        return cls(path.stem, text, PROMPTS["graded"][1])

    def fill(self, query: str, document: str) -> str:
        """The prompt of a pair; the texts are put in as they are."""
        places = {"{query}": query, "{document}": document}
        return re.sub(r"\{query\}|\{document\}", lambda match: places[match.group()], self.text)

    def grade(self, answer: str) -> int | None:
        """The grade of an answer, or None where there is none.

        A JSON object with `grade` anywhere in the text, a bare number, or 'grade: 2'.

        >>> prompt = Prompt.of("graded")
        >>> prompt.grade('Sure! ```json {"grade": 2, "reason": "partly"}```'), prompt.grade("3"), prompt.grade("7")
        (2, 3, None)
        """
        for match in _GRADE.finditer(answer):
            if (grade := self._allowed(match.group(1))) is not None:
                return grade
        bare = re.fullmatch(r"\W*(-?\d+(?:\.0+)?)\W*", answer.strip())
        return self._allowed(bare.group(1)) if bare else None

    def _allowed(self, text: str) -> int | None:
        value = float(text)
        return int(value) if value in self.grades else None


class AnswerCache:
    """Every answer in SQLite, by model, prompt, query text, document text and repetition; safe to kill at any time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._database = sqlite3.connect(self.path, check_same_thread=False, timeout=30)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, model TEXT, prompt TEXT, query_id TEXT, "
                "doc_id TEXT, repetition INTEGER, grade INTEGER, tokens INTEGER, seconds REAL, raw TEXT)"
            )
            self._database.commit()
        except sqlite3.Error as error:
            raise InputError(f"the cache cannot be opened ({error}).", self.path) from None
        self._lock = threading.Lock()

    def get(self, key: str) -> tuple[int | None, int | None, float | None] | None:
        """Grade, tokens and seconds of an answer; None where the question was never answered."""
        with self._used():
            row = self._database.execute(
                "SELECT grade, tokens, seconds FROM answers WHERE key = ?", (key,)
            ).fetchone()
        return None if row is None else (row[0], row[1], row[2])

    def put(
        self, task: Task, grade: int | None, tokens: int | None, seconds: float, raw: Sequence[str]
    ) -> None:
        """Keep an answer, with the raw texts for audit."""
        values = (
            *(task.key, task.model, task.prompt_name, task.query_id, task.doc_id, task.repetition),
            *(grade, tokens, seconds, json.dumps(list(raw), ensure_ascii=False)),
        )
        with self._used():
            self._database.execute(
                f"INSERT OR REPLACE INTO answers VALUES ({', '.join('?' * len(values))})", values
            )
            self._database.commit()

    @contextmanager
    def _used(self) -> Iterator[None]:
        """One thread at a time uses the file. A full disk and a damaged file are errors; earlier answers are kept."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise InputError(
                    f"the cache cannot be read or written ({error}); earlier answers are kept.", self.path
                ) from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()


@dataclass(frozen=True)
class Task:
    """One question to the model."""

    query_id: str
    doc_id: str
    repetition: int
    prompt_name: str
    text: str
    model: str

    @property
    def key(self) -> str:
        """What an answer is cached by."""
        parts = (self.model, self.text, str(self.repetition))
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def tokens(self) -> int:
        """Estimated tokens of the prompt: one per four characters."""
        return len(self.text) // 4 + 1


@dataclass(frozen=True)
class Plan:
    """What judging a pool takes: pairs, those answered already, requests to send, estimated tokens."""

    pairs: int
    answered: int
    requests: int
    tokens: int

    def __str__(self) -> str:
        done = f", {self.answered:,} of them answered before" if self.answered else ""
        return (
            f"{counted(self.pairs, 'question')}{done}: {counted(self.requests, 'request')}, "
            f"about {self.tokens:,} tokens without the answers"
        )


class ModelJudge:
    """A model judge: its endpoint, prompt, cache and caps. `plan` first, then `run`."""

    def __init__(
        self,
        endpoint: Endpoint,
        prompt: str | Path = "graded",
        *,
        name: str | None = None,
        cache: str | Path = "judge.sqlite",
        max_requests: int | None = None,
        max_tokens: int | None = None,
        concurrency: int = 4,
        repeat: int = 1,
    ) -> None:
        for label, value in (("max_requests", max_requests), ("max_tokens", max_tokens)):
            if value is not None and value < 0:
                raise PolicyError(f"{label} is {value}; expected 0 or more.")
        for label, value in (("concurrency", concurrency), ("repeat", repeat)):
            if value < 1:
                raise PolicyError(f"{label} is {value}; expected 1 or more.")
        self.endpoint = endpoint
        self.prompt = Prompt.of(prompt)
        self.name = name or endpoint.model
        self.cache = AnswerCache(cache)
        self.max_requests, self.max_tokens = max_requests, max_tokens
        self.concurrency, self.repeat = concurrency, repeat
        self.requests = self.tokens = 0
        self._lock = threading.Lock()

    def tasks(self, pool: Pool, dataset: Dataset) -> list[Task]:
        """A task for every document of the pool (and repetition), in the order of the pool."""
        check_texts(pool, dataset.queries, dataset.corpus)
        return [
            Task(
                query,
                doc,
                repetition,
                self.prompt.name,
                self.prompt.fill(dataset.queries[query], dataset.corpus[doc]),
                self.endpoint.model,
            )
            for query, doc in pool.frame.sort("priority").select("query_id", "doc_id").iter_rows()
            for repetition in range(1, self.repeat + 1)
        ]

    def plan(self, tasks: Sequence[Task]) -> Plan:
        """What is left to ask."""
        left = [task for task in tasks if self.cache.get(task.key) is None]
        return Plan(len(tasks), len(tasks) - len(left), len(left), sum(task.tokens for task in left))

    def run(
        self, tasks: Sequence[Task], judgments: Judgments, progress: Progress | None = None
    ) -> str | None:
        """Ask what is not answered yet and append every answer; the reason where a cap stopped it, otherwise None."""
        known = {line.key for line in judgments.current}
        todo = iter([task for task in tasks if (self._judge(task), task.query_id, task.doc_id) not in known])
        total = len(tasks)
        done = sum((self._judge(task), task.query_id, task.doc_id) in known for task in tasks)
        stopped: str | None = None
        with ThreadPoolExecutor(self.concurrency) as workers:
            waiting: dict[Future[tuple[int | None, int | None, float | None]], Task] = {}
            try:
                while True:
                    for task in _take(todo, 2 * self.concurrency - len(waiting)) if stopped is None else ():
                        waiting[workers.submit(self._answer, task)] = task
                    if not waiting:
                        return stopped
                    finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in finished:
                        task = waiting.pop(future)
                        try:
                            grade, tokens, seconds = future.result()
                        except CapReachedError as error:
                            stopped = str(error)
                            continue
                        more: dict[str, Any] = {"model": task.model, "prompt": task.prompt_name}
                        more |= {} if seconds is None else {"seconds": round(seconds, 3)}
                        more |= {} if tokens is None else {"tokens": tokens}
                        judgments.append(task.query_id, task.doc_id, grade, self._judge(task), **more)
                        done += 1
                        if progress is not None:
                            progress(done, total, self.tokens)
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise

    def _judge(self, task: Task) -> str:
        return self.name if task.repetition == 1 else f"{self.name}#{task.repetition}"

    def _answer(self, task: Task) -> tuple[int | None, int | None, float | None]:
        """The answer from the cache, or from the model: asked a second time where the first has no grade."""
        found = self.cache.get(task.key)
        if found is not None:
            return found
        raw: list[str] = []
        tokens, seconds, grade = 0, 0.0, None
        for _ in range(2):
            reply = self._ask(task)
            raw.append(reply.text)
            tokens += reply.tokens or task.tokens + len(reply.text) // 4
            seconds += reply.seconds
            grade = self.prompt.grade(reply.text)
            if grade is not None:
                break
        self.cache.put(task, grade, tokens, seconds, raw)
        return grade, tokens, seconds

    def _ask(self, task: Task) -> Reply:
        reserved = task.tokens + LONGEST_ANSWER

        def allow() -> None:
            with self._lock:
                if self.max_requests is not None and self.requests >= self.max_requests:
                    raise CapReachedError(f"max_requests={self.max_requests:,} is reached")
                if self.max_tokens is not None and self.tokens + reserved > self.max_tokens:
                    raise CapReachedError(
                        f"the next request could pass max_tokens={self.max_tokens:,} ({self.tokens:,} used)"
                    )
                self.requests += 1
                self.tokens += reserved

        reply = self.endpoint.ask(task.text, allow=allow, longest_answer=LONGEST_ANSWER)
        with self._lock:
            self.tokens += (reply.tokens if reply.tokens is not None else reserved) - reserved
        return reply


def judge(
    pool: Pool | str | Path,
    dataset: Dataset | str | Path,
    *,
    endpoint: str,
    model: str,
    prompt: str | Path = "graded",
    judge: str | None = None,
    output: str | Path | None = None,
    cache: str | Path = "judge.sqlite",
    api_key_env: str = "OPENAI_API_KEY",
    max_requests: int | None = None,
    max_tokens: int | None = None,
    concurrency: int = 4,
    repeat: int = 1,
    deadline: float = 120.0,
    progress: Progress | None = None,
) -> Judgments:
    """Grades of a pool by a language model at a chat-completions endpoint.

    endpoint: its address, for example http://127.0.0.1:8000/v1 (hosted, Ollama, vLLM, llama.cpp).
    prompt: "graded" (0 to 3), "binary", or a file with {query} and {document}.
    judge: the name of the judge in the judgments; default: the model.
    output: a judgments file to append to; pairs that this judge has there are not asked again.
    cache: an SQLite file with every answer; nothing that was answered is asked again.
    api_key_env: the environment variable with the key. The key is sent to the endpoint and written nowhere.
    max_requests, max_tokens: stop before more are used. Retries count as requests.
    repeat: ask every question this often, to measure how far the judge agrees with itself.
    deadline: seconds that one request may take.

    An answer without a grade is asked for once more and then recorded with grade None, never as 0.
    """
    from steelyard.datasets import Dataset as DatasetClass

    pool = Pool.read(pool) if isinstance(pool, (str, Path)) else pool
    dataset = DatasetClass.read(dataset, judged=False) if isinstance(dataset, (str, Path)) else dataset
    made = ModelJudge(
        Endpoint(endpoint, model, os.environ.get(api_key_env, ""), deadline),
        prompt,
        name=judge,
        cache=cache,
        max_requests=max_requests,
        max_tokens=max_tokens,
        concurrency=concurrency,
        repeat=repeat,
    )
    judgments = open_judgments(output)
    try:
        stopped = made.run(made.tasks(pool, dataset), judgments, progress)
    finally:
        made.cache.close()
    if stopped is not None:
        judgments.notes = (*judgments.notes, note("judging-stopped", reason=stopped))
    return judgments


def open_judgments(path: str | Path | None) -> Judgments:
    """The judgments of a file to append to; a new file where there is none; in memory without a path."""
    if path is None:
        return Judgments()
    if Path(path).exists():
        return Judgments.read(path)
    made = Judgments()
    made.path = Path(path)
    return made


def check_texts(pool: Pool, queries: Mapping[str, Any], corpus: Mapping[str, Any]) -> None:
    """Raise where the dataset has no text for a query or document of the pool."""
    pairs = pool.frame.select("query_id", "doc_id").unique(maintain_order=True)
    missing = [
        f"query {query!r}" for query in pairs["query_id"].unique(maintain_order=True) if query not in queries
    ]
    missing += [
        f"document {doc!r}" for doc in pairs["doc_id"].unique(maintain_order=True) if doc not in corpus
    ]
    if missing:
        raise InputError(
            problem_report(
                "the dataset has no text for part of the pool:",
                missing,
                "Check that pool and dataset belong together.",
            )
        )


def _take(tasks: Iterator[Task], count: int) -> Iterator[Task]:
    for _ in range(max(0, count)):
        task = next(tasks, None)
        if task is None:
            return
        yield task


__all__ = ["AnswerCache", "ChatError", "Endpoint", "ModelJudge", "Plan", "Prompt", "judge", "open_judgments"]
