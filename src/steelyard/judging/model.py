"""Model judges: grades by a language model at a chat-completions endpoint, cached, capped and resumable."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from steelyard.checks import text_value, whole_number
from steelyard.datasets import Dataset
from steelyard.errors import PolicyError
from steelyard.io.judgments import open_judgments
from steelyard.judging.client import Answer, Client, Endpoint, Question
from steelyard.judging.pool import Pool, check_texts
from steelyard.judging.prompts import Prompt, speaks_to_judges
from steelyard.judgments import ASKED, TEXT, Judgments, asked, text_hash
from steelyard.notes import Note, note

MOST_REPETITIONS = 1000

Progress = Callable[[int, int, int], None]  # Called with pairs done, pairs in all, and tokens so far.


class ModelJudge(Client):
    """A model judge: its endpoint, prompt, cache and caps. `plan` first, then `judge`.

    `retry`: ask again for what was answered without a grade.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        prompt: str | Path = "graded",
        name: str | None = None,
        cache: str | Path = "judge.sqlite",
        max_requests: int | None = None,
        max_tokens: int | None = None,
        concurrency: int = 4,
        repeat: int = 1,
        retry: bool = False,
    ) -> None:
        self.prompt = Prompt.of(prompt)
        self.name = text_value("judge", name or endpoint.model)
        self.repeat = whole_number("repeat", repeat, 1, high=MOST_REPETITIONS, error=PolicyError)
        super().__init__(endpoint, cache, max_requests, max_tokens, concurrency, retry)
        self._addressed: tuple[str, ...] = ()

    def questions(self, pool: Pool, dataset: Dataset) -> list[Question]:
        """A question for every document of the pool (and repetition), in the order of the pool."""
        pairs, prompt, endpoint = pool.pairs, self.prompt, self.endpoint
        check_texts(pairs, dataset)
        docs = dict.fromkeys(doc for _, doc in pairs)
        self._addressed = tuple(doc for doc in docs if speaks_to_judges(dataset.corpus[doc]))
        model = (prompt.system, endpoint.model, endpoint.url, prompt.graded)
        requests: list[Question] = []
        for query, doc in pairs:
            text = prompt.fill(dataset.queries[query], dataset.corpus[doc])
            stated = asked(dataset.queries[query]), text_hash(dataset.corpus.texts[doc])
            for repetition in range(1, self.repeat + 1):
                requests.append(Question(query, doc, repetition, prompt.name, text, *model, *stated))
        return requests

    def notes(self) -> tuple[Note, ...]:
        """Documents that speak to whoever grades them, and answers in the cache that are damaged."""
        addressed = [note("documents-address-judge", documents=self._addressed)] if self._addressed else []
        return (*addressed, *super().notes())

    def judge(
        self, questions: Sequence[Question], judgments: Judgments, progress: Progress | None = None
    ) -> str | None:
        """Ask what is not judged yet and append every answer; the reason if a cap stopped it, otherwise None."""
        existing = judgments.for_questions({question.query_id: question.asked for question in questions})
        judged = {line.key for line in existing.current if line.grade is not None or not self.retry}
        left = [task for task in questions if (self._judge(task), task.query_id, task.doc_id) not in judged]
        done = len(questions) - len(left)

        def use(question: Question, answer: Answer) -> None:
            nonlocal done
            more: dict[str, Any] = {"model": question.model, "prompt": question.prompt_name}
            more |= {} if answer.seconds is None else {"seconds": round(answer.seconds, 3)}
            more |= {} if answer.tokens is None else {"tokens": answer.tokens}
            more |= {"reason": answer.reason} if answer.reason else {}
            more |= {} if self.prompt.relevant_from is None else {"relevant_from": self.prompt.relevant_from}
            more |= {ASKED: question.asked, TEXT: question.text_hash}
            judgments.append(question.query_id, question.doc_id, answer.grade, self._judge(question), **more)
            done += 1
            if progress is not None:
                progress(done, len(questions), self.tokens)

        return self.run(left, use)

    def _judge(self, question: Question) -> str:
        return self.name if question.repetition == 1 else f"{self.name}#{question.repetition}"


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
    pool = Pool.read(pool) if isinstance(pool, (str, Path)) else pool
    dataset = Dataset.read(dataset, judged=False) if isinstance(dataset, (str, Path)) else dataset
    server = Endpoint(endpoint, model, os.environ.get(api_key_env, ""), timeout)
    model_judge = ModelJudge(server, prompt, judge, cache, max_requests, max_tokens, concurrency, repeat, retry)
    judgments = Judgments() if output is None else open_judgments(Path(output))
    try:
        stopped = model_judge.judge(model_judge.questions(pool, dataset), judgments, progress)
    finally:
        model_judge.cache.close()
    judgments.notes = (*judgments.notes, *model_judge.notes())
    judgments.notes += () if stopped is None else (note("judging-stopped", reason=stopped),)
    return judgments
