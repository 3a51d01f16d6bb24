"""Model judges: grades by a language model at a chat-completions endpoint, cached, capped and resumable."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.checks import is_number, text_value, whole_number
from steelyard.errors import InputError, PolicyError
from steelyard.judging.chat import ChatError, Endpoint, Reply, is_count
from steelyard.judging.pool import Pool, check_texts
from steelyard.judging.prompts import Prompt, digest, speaks_to_judges, stated_reason
from steelyard.judgments import ASKED, Judgments, asked
from steelyard.notes import Note, note
from steelyard.safe_text import utf8
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets import Dataset

LONGEST_ANSWER = 300
"""Tokens that an answer may have."""

MOST_WORKERS, MOST_REPETITIONS = 256, 1000

Progress = Callable[[int, int, int], None]
"""Called with pairs done, pairs in all, and tokens so far."""


class CapReachedError(Exception):
    """The next request could pass max_requests or max_tokens."""


@dataclass(frozen=True)
class Answer:
    """The grade of a model with its reason, or None and why there is none; tokens and seconds of all attempts."""

    grade: int | None
    reason: str
    tokens: int | None
    seconds: float | None


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
            self._refuse_other_tables()
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute(f"CREATE TABLE IF NOT EXISTS answers ({_COLUMNS})")
            self._database.commit()
        except sqlite3.Error as error:
            raise InputError(f"the cache cannot be opened ({error}).", self.path) from None
        self._lock = threading.Lock()

    def _refuse_other_tables(self) -> None:
        """Raise if the file is a database of something else, before anything is written to it."""
        tables = [name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [name for _, name, *_ in self._database.execute("PRAGMA table_info(answers)")]
        if tables and columns != [column.split()[0] for column in _COLUMNS.split(", ")]:
            self._database.close()
            raise InputError(
                f"this is a database of something else, with the table {tables[0]!r}; name another file for the cache.",
                self.path,
            )

    def get(self, key: str, prompt: Prompt) -> Answer | None:
        """An answer; None if the question was never answered, or if the row is damaged.

        The grade is read from the text of the answer again: a row whose grade is a different one is damaged.
        """
        with self._used():
            row = self._database.execute(
                "SELECT grade, tokens, seconds, raw FROM answers WHERE key = ?", (key,)
            ).fetchone()
        if row is None:
            return None
        grade, tokens, seconds, raw = row
        try:
            texts = json.loads(raw)
            stated, reason = prompt.graded(texts[-1])
        except (ValueError, RecursionError, TypeError, LookupError, AttributeError):
            stated, reason = None, "damaged"
        whole = (tokens is None or is_count(tokens)) and (seconds is None or is_number(seconds))
        if reason == "damaged" or stated != grade or not whole:
            self.damaged.add(key)
            return None
        return Answer(stated, reason or stated_reason(texts[-1]), tokens, seconds)

    def put(self, question: Question, answer: Answer, raw: Sequence[str]) -> None:
        """Keep an answer, with the raw texts for audit."""
        names = (question.model, question.prompt_name, question.query_id, question.doc_id)
        values = (
            *(question.key, *(utf8(name).decode() for name in names), question.repetition),
            *(answer.grade, answer.tokens, answer.seconds, json.dumps(list(raw), ensure_ascii=False)),
        )
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
                raise InputError(
                    f"the cache cannot be read or written ({error}); earlier answers are kept.", self.path
                ) from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()


@dataclass(frozen=True)
class Question:
    """One question to the model: the user message `text`, and the system message of the prompt."""

    query_id: str
    doc_id: str
    repetition: int
    prompt_name: str
    text: str
    system: str
    model: str
    endpoint: str
    asked: str = ""

    @property
    def key(self) -> str:
        """What an answer is cached by."""
        return digest(self.endpoint.rstrip("/"), self.model, self.system, self.text, str(self.repetition))

    @property
    def tokens(self) -> int:
        """Estimated tokens of the prompt: one per four characters."""
        return (len(self.system) + len(self.text)) // 4 + 1


@dataclass(frozen=True)
class JudgingPlan:
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
    """A model judge: its endpoint, prompt, cache and caps. `plan` first, then `run`.

    `retry`: ask again for what was answered without a grade.
    """

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
        retry: bool = False,
    ) -> None:
        for label, cap in (("max_requests", max_requests), ("max_tokens", max_tokens)):
            if cap is not None:
                whole_number(label, cap, 0, error=PolicyError)
        self.endpoint = endpoint
        self.prompt = Prompt.of(prompt)
        self.name = text_value("judge", name or endpoint.model)
        self.max_requests, self.max_tokens = max_requests, max_tokens
        self.concurrency = whole_number("concurrency", concurrency, 1, high=MOST_WORKERS, error=PolicyError)
        self.repeat = whole_number("repeat", repeat, 1, high=MOST_REPETITIONS, error=PolicyError)
        self.retry = retry
        self.cache = AnswerCache(cache)
        self.requests = self.tokens = 0
        self._addressed: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def questions(self, pool: Pool, dataset: Dataset) -> list[Question]:
        """A question for every document of the pool (and repetition), in the order of the pool."""
        pairs = pool.pairs
        check_texts(pairs, dataset)
        self._addressed = tuple(
            doc for doc in dict.fromkeys(doc for _, doc in pairs) if speaks_to_judges(dataset.corpus[doc])
        )
        return [
            Question(
                query,
                doc,
                repetition,
                self.prompt.name,
                self.prompt.fill(dataset.queries[query], dataset.corpus[doc]),
                self.prompt.system,
                self.endpoint.model,
                self.endpoint.url,
                asked(dataset.queries[query]),
            )
            for query, doc in pairs
            for repetition in range(1, self.repeat + 1)
        ]

    def plan(self, questions: Sequence[Question]) -> JudgingPlan:
        """What is left to ask."""
        left = [question for question in questions if self._known(question) is None]
        return JudgingPlan(
            len(questions), len(questions) - len(left), len(left), sum(question.tokens for question in left)
        )

    def notes(self) -> tuple[Note, ...]:
        """Documents that speak to whoever grades them, and answers in the cache that are damaged."""
        addressed = [note("documents-address-judge", documents=self._addressed)] if self._addressed else []
        damaged = len(self.cache.damaged)
        return (*addressed, *([note("damaged-answers", file=self.cache.path.name, count=damaged)] if damaged else []))

    def run(self, questions: Sequence[Question], judgments: Judgments, progress: Progress | None = None) -> str | None:
        """Ask what is not answered yet and append every answer; the reason if a cap stopped it, otherwise None."""
        known = judgments.for_questions({question.query_id: question.asked for question in questions})
        judged = {line.key for line in known.current if line.grade is not None or not self.retry}
        left = [each for each in questions if (self._judge(each), each.query_id, each.doc_id) not in judged]
        if any(self._known(question) is None for question in left):
            self.endpoint.check()
        todo, total, done = iter(left), len(questions), len(questions) - len(left)
        stopped: str | None = None
        with ThreadPoolExecutor(self.concurrency) as workers:
            waiting: dict[Future[Answer], Question] = {}
            try:
                while True:
                    for question in islice(todo, 2 * self.concurrency - len(waiting)) if stopped is None else ():
                        waiting[workers.submit(self._answer, question)] = question
                    if not waiting:
                        return stopped
                    finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in finished:
                        question = waiting.pop(future)
                        try:
                            self._append(judgments, question, future.result())
                        except CapReachedError as error:
                            stopped = str(error)
                            continue
                        done += 1
                        if progress is not None:
                            progress(done, total, self.tokens)
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise

    def _append(self, judgments: Judgments, question: Question, answer: Answer) -> None:
        more: dict[str, Any] = {"model": question.model, "prompt": question.prompt_name}
        more |= {} if answer.seconds is None else {"seconds": round(answer.seconds, 3)}
        more |= {} if answer.tokens is None else {"tokens": answer.tokens}
        more |= {"reason": answer.reason} if answer.reason else {}
        more |= {} if self.prompt.relevant_from is None else {"relevant_from": self.prompt.relevant_from}
        more |= {ASKED: question.asked}
        judgments.append(question.query_id, question.doc_id, answer.grade, self._judge(question), **more)

    def _judge(self, question: Question) -> str:
        return self.name if question.repetition == 1 else f"{self.name}#{question.repetition}"

    def _known(self, question: Question) -> Answer | None:
        """The answer in the cache; with `retry`, only if it has a grade."""
        answer = self.cache.get(question.key, self.prompt)
        return None if answer is None or (answer.grade is None and self.retry) else answer

    def _answer(self, question: Question) -> Answer:
        """The answer from the cache, or from the model: asked a second time if the first has no grade."""
        known = self._known(question)
        if known is not None:
            return known
        raw: list[str] = []
        tokens, seconds, grade, reason = 0, 0.0, None, ""
        for _ in range(2):
            reply = self._ask(question)
            raw.append(reply.text)
            tokens += reply.tokens or question.tokens + len(reply.text) // 4
            seconds += reply.seconds
            grade, reason = self.prompt.graded(reply.text)
            if grade is not None:
                break
        answer = Answer(grade, reason or stated_reason(raw[-1]), tokens, seconds)
        self.cache.put(question, answer, raw)
        return answer

    def _ask(self, question: Question) -> Reply:
        reserved = question.tokens + LONGEST_ANSWER

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

        reply = self.endpoint.ask(question.text, system=question.system, allow=allow, longest_answer=LONGEST_ANSWER)
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
    retry: bool = False,
    timeout: float = 120.0,
    progress: Progress | None = None,
) -> Judgments:
    """Grades of a pool by a language model at a chat-completions endpoint.

    endpoint: its address, for example http://127.0.0.1:8000/v1 (hosted, Ollama, vLLM, llama.cpp).
    prompt: "graded" (0 to 3), "binary", or a file with {query} and {document} (and a line `---` after the system
    message, if it has one).
    judge: the name of the judge in the judgments; default: the model.
    output: a judgments file to append to; pairs that this judge has there are not asked again.
    cache: an SQLite file with every answer; nothing that was answered is asked again.
    api_key_env: the environment variable with the key. The key is sent to the endpoint and written nowhere.
    max_requests, max_tokens: stop before more are used. Retries count as requests.
    repeat: ask every question this often, to measure how far the judge agrees with itself.
    retry: ask again for what was answered without a grade.
    timeout: seconds that one request may take.

    An answer without a grade is asked for once more and then recorded with grade None, never as 0.
    """
    from steelyard.datasets import Dataset as DatasetClass

    pool = Pool.read(pool) if isinstance(pool, (str, Path)) else pool
    dataset = DatasetClass.read(dataset, judged=False) if isinstance(dataset, (str, Path)) else dataset
    model_judge = ModelJudge(
        Endpoint(endpoint, model, os.environ.get(api_key_env, ""), timeout),
        prompt,
        name=judge,
        cache=cache,
        max_requests=max_requests,
        max_tokens=max_tokens,
        concurrency=concurrency,
        repeat=repeat,
        retry=retry,
    )
    judgments = open_judgments(output)
    try:
        stopped = model_judge.run(model_judge.questions(pool, dataset), judgments, progress)
    finally:
        model_judge.cache.close()
    judgments.notes = (*judgments.notes, *model_judge.notes())
    if stopped is not None:
        judgments.notes = (*judgments.notes, note("judging-stopped", reason=stopped))
    return judgments


def open_judgments(path: str | Path | None) -> Judgments:
    """The judgments of a file to append to; a new file where there is none; in memory without a path."""
    if path is None:
        return Judgments()
    if Path(path).exists():
        return Judgments.read(path)
    judgments = Judgments()
    judgments.path = Path(path)
    return judgments


__all__ = ["AnswerCache", "ChatError", "Endpoint", "JudgingPlan", "ModelJudge", "Prompt", "judge", "open_judgments"]
