"""Retrieval in a bench: retrievers index the documents and answer the queries; time and memory are the cost of each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np

from steelyard.benchmark.cache import Answers, AnswerStore, IndexStore, ReturnedTexts
from steelyard.benchmark.specs import Spec
from steelyard.masking import masked_settings
from steelyard.retrievers.adapters.base import Wrapped
from steelyard.retrievers.adapters.documents import Keep, read_lists
from steelyard.retrievers.base import Ranked, Retriever, Staged
from steelyard.retrievers.targets import list_hint
from steelyard.user_code import UserCodeError, run_user_code
from steelyard.wording import counted, listed

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the current step, how much of it is done, and its total."""

THROUGHPUT = "queries_per_second"

MOST_AT_ONCE = 1000  # Queries that are passed at once to measure the throughput: their answers are in memory together.

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = 4096
_SAMPLE_SECONDS = 0.01


@dataclass
class Job:
    """A retriever that is run: its corpus, its answers so far, and their cache; `failure` is an error in indexing.

    `saved`: its saved index, if any; `texts` keeps the texts that it returns; `doc_id` makes the ids of the result.
    """

    spec: Spec
    retriever: Retriever
    corpus: Mapping[str, str]
    answers: Answers
    store: AnswerStore
    saved: IndexStore | None
    texts: ReturnedTexts
    doc_id: Callable[[str], str]
    failure: str | None = None

    def open_queries(self, queries: Sequence[str]) -> list[str]:
        """The queries without an answer; a query that failed is run again."""
        return [query for query in queries if query not in self.answers.lists]

    def is_open(self, queries: Sequence[str]) -> bool:
        """Whether something is to be run: a query without an answer, or all of them at once for the throughput."""
        return bool(self.open_queries(queries)) or THROUGHPUT not in self.answers.cost

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add a line of the cache to the answers, and store it."""
        self.answers.add(entry)
        self.store.add(entry)


def index_all(jobs: Sequence[Job], progress: Progress) -> None:
    """Index the documents with every retriever, one after another; a saved index is opened, with its cost when made."""
    for number, job in enumerate(jobs):
        what = f"indexing {counted(len(job.corpus), 'document')} with" if len(job.corpus) else "opening"
        progress(f"{what} {job.spec.label}", number, len(jobs))
        saved_cost = job.saved.restore() if job.saved is not None else None
        if saved_cost is not None:
            job.add({"cost": saved_cost})
            continue
        with PeakMemory() as memory:
            try:
                taken, size = run_user_code(partial(_indexed, job.retriever, job.corpus))
            except UserCodeError as error:
                job.failure = f"indexing failed: {_with_hint(error, job.spec)}"
                continue
        cost = {"index_seconds": taken, "index_bytes": size, "peak_bytes": memory.bytes}
        job.add({"cost": cost})
        if job.saved is not None:
            job.saved.save(cost)


def _indexed(retriever: Retriever, corpus: Mapping[str, str]) -> tuple[float, int]:
    """Index a corpus: the seconds, and the size of the index."""
    start = perf_counter()
    retriever.index(corpus)
    return perf_counter() - start, int(retriever.size_in_bytes())


def retrieve_all(jobs: Sequence[Job], queries: Mapping[str, str], depth: int, warmup: int, progress: Progress) -> None:
    """Run every open query with every retriever, one query at a time, as one session, so that times can be compared."""
    session = uuid4().hex[:12]
    for job in jobs:
        if isinstance(job.retriever, Wrapped):
            job.retriever.keep_texts(job.texts.keeper(job.store.path.name))
        if job.failure is not None:
            job.answers.errors |= dict.fromkeys(job.open_queries(list(queries)), job.failure)
    jobs = [job for job in jobs if job.failure is None]
    step = f"running {listed([job.spec.label for job in jobs], 3)}, queries" if jobs else ""
    for job in jobs:
        progress(step, 0, len(queries))
        for query, text in list(queries.items())[:warmup]:
            with suppress(UserCodeError):
                _retrieve(job, query, text, depth)
    open_queries = {id(job): set(job.open_queries(list(queries))) for job in jobs}
    try:
        for number, (query, text) in enumerate(queries.items()):
            turn = number % len(jobs) if jobs else 0  # The first retriever changes with every query.
            for job in [*jobs[turn:], *jobs[:turn]]:
                if query in open_queries[id(job)]:
                    progress(step, number, len(queries))
                    _answer(job, query, text, depth, session)
    finally:
        for job in jobs:
            _find_ids(job)
            job.store.close()


def measure_throughput(jobs: Sequence[Job], queries: Mapping[str, str], depth: int, progress: Progress) -> None:
    """Queries per second when all are passed at once; not measured for a retriever that failed on a query."""
    texts = list(queries.values())[:MOST_AT_ONCE]
    for number, job in enumerate(job for job in jobs if not job.answers.errors):
        progress(f"running {job.spec.label} with all queries at once", number, len(jobs))
        rate: float | None = None
        with suppress(UserCodeError):
            _, taken = run_user_code(partial(_asked, job.retriever, texts, depth))
            rate = len(texts) / max(taken, 1e-9)
        job.add({"cost": {THROUGHPUT: rate}})
        job.store.close()


def _answer(job: Job, query: str, text: str, depth: int, session: str) -> None:
    """Run a query and store its list and time, or its error."""
    try:
        answer, taken = _retrieve(job, query, text, depth)
    except UserCodeError as failure:
        job.add({"query": query, "error": _with_hint(failure, job.spec)})
        return
    job.texts.flush()
    entry: dict[str, Any] = {"query": query, "seconds": taken, "session": session, "list": list(answer)}
    if isinstance(answer, Staged):
        entry |= {"stages": answer.lists, "reads": answer.reads, **({"calls": answer.calls} if answer.calls else {})}
    job.add(entry)


def _retrieve(job: Job, query: str, text: str, depth: int) -> tuple[Ranked, float]:
    """The list of one query, checked, and the seconds that it took; a UserCodeError if the retriever failed."""
    job.store.add({"query": query, "started": True})  # Before it is run: the retriever may end the process.
    keep = job.texts.keeper(job.store.path.name)
    return run_user_code(partial(answered, job.retriever, text, depth, job.spec.label, keep))


def answered(retriever: Retriever, text: str, depth: int, label: str, keep: Keep) -> tuple[Ranked, float]:
    """The checked list of a retriever for a query, and the seconds of the call; `keep` gets the texts."""
    raw_answers, taken = _asked(retriever, [text], depth)
    if isinstance(retriever, Wrapped):
        return retriever.read([text], raw_answers, depth)[0], taken
    return read_lists(raw_answers, label, text, depth, keep), taken


def _asked(retriever: Retriever, texts: list[str], depth: int) -> tuple[Any, float]:
    """What a retriever returns for queries, and the seconds of the call; a result of another library is read later."""
    ask = retriever.ask if isinstance(retriever, Wrapped) else retriever.retrieve
    start = perf_counter()
    raw_answers = ask(texts, depth)
    return raw_answers, perf_counter() - start


def _with_hint(error: UserCodeError, spec: Spec) -> str:
    """The error of a retriever; with a hint if a list among its `arguments` is the likely cause."""
    hint = list_hint(error.__cause__ or error, spec.settings.get("arguments"))
    return f"{str(error).rstrip('.')}. {hint}" if hint else str(error)


def _find_ids(job: Job) -> None:
    """If retrieved documents are not in the corpus, store which other field has the ids of the corpus."""
    find = getattr(job.retriever, "ids_elsewhere", None)
    if find is None or not job.corpus:
        return
    if all(doc in job.corpus for answer in job.answers.lists.values() for doc, _ in answer):
        return
    hint = job.answers.id_hint
    with suppress(UserCodeError):
        hint = run_user_code(partial(find, job.corpus))
    job.add({"id_hint": hint})


class PeakMemory:
    """Samples the resident memory: `bytes` is the highest value minus that at the start, None if it is not known."""

    bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        self._stop = threading.Event()
        self._start = self._peak = _resident_bytes()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._start:
            self.bytes = max(self._peak, _resident_bytes()) - self._start

    def _sample(self) -> None:
        while self._start and not self._stop.wait(_SAMPLE_SECONDS):
            self._peak = max(self._peak, _resident_bytes())


def _resident_bytes() -> int:
    """The resident memory of the process; 0 if the system does not report it."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


TIMES = ("mean_seconds", "p50_seconds", "p95_seconds", "p99_seconds")
COSTS = (THROUGHPUT, "index_seconds", "index_bytes", "peak_bytes")
"""What a CostRow has of the time per query, and of the other costs."""

SHOWN_IDS = 2  # Example ids of the run and of the corpus in a note.


@dataclass(frozen=True)
class CostRow:
    """The cost of one retriever, and its errors.

    errors: the error by query. unknown_documents, unknown_examples: retrieved documents that are not in the corpus.
    cached: whether all answers are from the cache, whose file is `answers`. id_hint: the field with the ids of the
    corpus, if the retriever returned others. longest: the documents of its longest list. stages: the stages of its
    pipeline in their order, and what each of them reads; empty if they are unknown. session: when the times were
    measured; equal if those of every query were measured together, None if that is unknown.
    """

    run: str
    retriever: str
    settings: dict[str, Any]
    queries: int
    mean_seconds: float | None
    p50_seconds: float | None
    p95_seconds: float | None
    p99_seconds: float | None
    queries_per_second: float | None
    index_seconds: float | None
    index_bytes: int | None
    peak_bytes: int | None
    errors: dict[str, str]
    unknown_documents: int
    cached: bool
    chunker: str | None = None
    chunks: int | None = None
    chunk_tokens: float | None = None
    answers: str | None = None
    unknown_examples: tuple[str, ...] = ()
    id_hint: str | None = None
    longest: int | None = None
    session: str | None = None
    stages: dict[str, list[str]] = field(default_factory=dict)

    @property
    def failed(self) -> str:
        """The number of failed queries out of all, as in `2 of 6`."""
        return failed_share(len(self.errors), self.queries)

    @property
    def broken(self) -> bool:
        """Whether it failed on every query."""
        return bool(self.errors) and not self.queries

    @classmethod
    def of(cls, spec: Spec, found: Answers, unknown: Sequence[str], cached: bool, **others: Any) -> CostRow:
        """The row of a retriever's answers; `unknown` are retrieved documents that are not in the corpus."""
        seconds = np.array(list(found.seconds.values()))
        times = [float(seconds.mean()), *np.percentile(seconds, [50, 95, 99]).tolist()] if len(seconds) else [None] * 4
        return cls(
            run=spec.label,
            retriever=spec.name,
            settings=masked_settings(spec.settings),
            queries=len(found.lists),
            **dict(zip(TIMES, times, strict=True)),
            **{name: found.cost.get(name) for name in COSTS},
            errors=dict(found.errors),
            unknown_documents=len(unknown),
            cached=cached,
            unknown_examples=tuple(dict.fromkeys(unknown))[:SHOWN_IDS],
            id_hint=found.id_hint,
            longest=max(map(len, found.lists.values()), default=None),
            session=found.session,
            stages=found.reads,
            **others,
        )


def failed_share(failed: int, answered: int) -> str:
    """The number of failed queries out of all, as in `2 of 6`."""
    return f"{failed:,} of {failed + answered:,}"
