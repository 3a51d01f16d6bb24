"""The common parts of adapters: how calls are made, retrievers indexed elsewhere, and retrievers of a library."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from types import FunctionType
from typing import Any, ClassVar, TypeAlias

from steelyard.checks import is_whole
from steelyard.ids import kind_of
from steelyard.retrievers.adapters.documents import DocIds, Keep, read_answer
from steelyard.retrievers.adapters.targets import called, identity_of, label_of, load_target, package
from steelyard.retrievers.base import Ranked, RetrieverError, Self, checked_queries, unused_name
from steelyard.retrievers.settings import Declared, setting
from steelyard.user_code import await_user_code, no_child_returns

_Calls: TypeAlias = "SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]"


class TimeLimit:
    """Calls with a time limit, each in a thread; without a limit, in the calling thread.

    Threads are reused, so that consecutive calls are in one thread. Python cannot stop a thread: one whose call
    takes too long is abandoned and ends when the call returns, or with the process.
    """

    def __init__(self, seconds: float | None, label: str) -> None:
        self.seconds, self._label = seconds, label
        self._idle: list[_Calls] = []
        weakref.finalize(self, _end, self._idle)

    def __deepcopy__(self, memo: dict[int, Any]) -> TimeLimit:
        return TimeLimit(self.seconds, self._label)

    def run(self, call: Callable[[], Any], times: float | None = 1) -> Any:
        """The result of a call within `times` the limit (None: without a limit); an error if it takes longer."""
        if self.seconds is None:
            with no_child_returns():
                return call()
        try:
            calls = self._idle.pop()
        except IndexError:
            calls = SimpleQueue()
            threading.Thread(target=_work, args=(calls,), daemon=True, name="steelyard-call").start()
        limit = None if times is None else times * self.seconds
        result: Future[Any] = Future()
        calls.put((call, result))
        if not wait([result], limit).done:
            calls.put(None)
            raise self.late(limit)
        self._idle.append(calls)
        return result.result()

    def late(self, limit: float | None) -> RetrieverError:
        """The error of a call that took too long."""
        return RetrieverError(
            f"{self._label}: no result within {limit:g} s; the call was abandoned (`timeout` sets the limit)."
        )


def _work(calls: _Calls) -> None:
    """Make one call after the other, until there is None in place of a call."""
    while (task := calls.get()) is not None:
        call, result = task
        try:
            with no_child_returns():
                value = call()
            result.set_result(value)
        except BaseException as error:
            result.set_exception(error)


def _end(threads: list[_Calls]) -> None:
    for calls in threads:
        calls.put(None)


def ask_each(ask: Callable[[str], Any], queries: Sequence[str], concurrency: int) -> list[Any]:
    """One result per query, with up to `concurrency` calls at the same time, each in a thread."""
    if concurrency == 1 or len(queries) < 2:
        return [ask(query) for query in queries]
    with ThreadPoolExecutor(min(concurrency, len(queries))) as pool:
        return list(pool.map(ask, queries))


class Loop:
    """One event loop for all calls, so that an async client can be used in several calls.

    It runs in the calling thread, or in another thread if a loop is already running there, as in a notebook.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._one_at_a_time = threading.Lock()
        weakref.finalize(self, self._loop.close)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine."""
        with self._one_at_a_time:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return self._loop.run_until_complete(work)
            with ThreadPoolExecutor(1) as other:
                return other.submit(self._loop.run_until_complete, work).result()


async def awaited(
    results: Sequence[Any], concurrency: int, limit: float | None, late: Callable[[float | None], Exception]
) -> list[Any]:
    """The results, with awaitables awaited, up to `concurrency` at the same time, each within the limit."""
    free = asyncio.Semaphore(concurrency)

    async def one(result: Any) -> Any:
        if not inspect.isawaitable(result):
            return result
        async with free:
            task = asyncio.ensure_future(await_user_code(result))
            if not (await asyncio.wait([task], timeout=limit))[0]:
                task.cancel()
                raise late(limit)
            return task.result()

    finished = await asyncio.gather(*map(one, results), return_exceptions=True)
    for result in finished:
        if isinstance(result, BaseException):
            raise result
    return list(finished)


class Wrapped(Declared):
    """A retriever that was indexed elsewhere. A subclass has the query in `_ask`, and `_ids` from `_set_up`."""

    score_path = "score"
    """Path to the score of a document."""

    folder: str | Path | None = setting(
        "the folder of relative paths and of modules; the working directory by default", default=None
    )
    version: str | None = setting(
        "version of the data that is searched; results are cached between benches while the settings and the code of "
        "the target are unchanged",
        default=None,
    )

    @property
    def needs_corpus(self) -> bool:
        """Whether it indexes a corpus: it searches an index of its own."""
        return False

    def keep_texts(self, keep: Keep | None) -> None:
        """Pass the text of every document that it returns to `keep`, with its id."""
        self._ids.keep = keep

    def _set_up(self) -> None:
        self._ids = DocIds("id", self.label)
        self._identity: dict[str, Any] = {}

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index nothing; if ids are found by text, keep the texts of the corpus."""
        self._ids.learn(corpus)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the first k (document id, score) pairs of its result, in its order."""
        listed = checked_queries(queries, k, self.label)
        return self.read(listed, self.ask(listed, int(k)), k) if listed else []

    def ask(self, queries: list[str], k: int) -> list[Any]:
        """Per query, its result as it was returned: the part of `retrieve` that is not ours, for measuring its time."""
        return [list(islice(answer, k)) if isinstance(answer, Iterator) else answer for answer in self._ask(queries, k)]

    def read(self, queries: Sequence[str], answers: Sequence[Any], k: int) -> list[Ranked]:
        """The results of `ask` as (document id, score) pairs."""
        return [self._read(answer, query, k) for query, answer in zip(queries, answers, strict=True)]

    def _read(self, answer: Any, query: str, k: int) -> Ranked:
        return read_answer(answer, self._ids, self.label, query, k, self.score_path)

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on, as far as it is known."""
        values = {"retriever": self.retriever, **self._declared_values(), **self._identity, "id": self._ids.setting}
        return values | ({} if self._ids.text is None else {"text": self._ids.text})

    def size_in_bytes(self) -> int:
        """The memory used here; the index itself is elsewhere."""
        return self._ids.size_in_bytes()

    def ids_elsewhere(self, corpus: Mapping[str, str]) -> str | None:
        """Another value of `id` with which the documents found so far are in the corpus, if there is one."""
        return self._ids.elsewhere(corpus)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        """One result per query, in any form that `read_answer` accepts."""
        raise NotImplementedError


class Called(Wrapped):
    """The settings of retrievers that call an object of the user's."""

    target: Any = setting(
        "the object, or `package.module:attribute`; a class or a function is called to create it",
        default=None,
        kw_only=False,
    )
    id: str = setting("path to the id of a document: `id`, `metadata.KEY`, another path, or `hash`", default="id")
    text: str | None = setting(default=None)
    concurrency: int = setting(default=1, low=1)
    arguments: Mapping[str, Any] | None = setting(
        "keyword arguments of the class or of the function that makes the object, or of every call of a function; "
        "${VARIABLE} in them is read from the environment",
        default=None,
    )

    def _label(self) -> str:
        return str(self.name or label_of(self.target))


class LibraryRetriever(Called):
    """A retriever object of a library, called for one query at a time. A subclass has the call in `_search`."""

    module: ClassVar[str]
    """The module of the library."""
    methods: ClassVar[tuple[str, ...]]
    """The target has one of these methods."""

    def _set_up(self) -> None:
        library = self.extra
        package(self.module, library, library)
        loaded = load_target(self.target, library, self.folder)
        self._object = called(loaded, library, self.arguments) if isinstance(loaded, (type, FunctionType)) else loaded
        if not any(hasattr(self._object, method) for method in self.methods):
            problem = f"{library}: {self.target!r} is {kind_of(self._object)} without {' or '.join(self.methods)}, so"
            raise RetrieverError(f"{problem} it does not belong to that library; use `python` for any other callable.")
        self._ids = DocIds(self.id, self.label, self.text)
        self._identity = identity_of(self.target, self.version, self.arguments)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        return ask_each(self._search(k), queries, self.concurrency)

    def _search(self, k: int) -> Callable[[str], Any]:
        raise NotImplementedError


def in_stages(
    first: Callable[[str], Any], steps: Sequence[Any], call: Callable[[Any, list[Any], str], Any]
) -> Callable[[str], Any]:
    """A search whose result is changed step by step (`call` of the step, the result and the query), with every list.

    A step is named after its class.
    """

    def search(query: str) -> dict[str, Any]:
        docs = list(first(query))
        stages = {"retrieve": docs}
        for step in steps:
            docs = list(call(step, list(docs), query)) if docs else []
            stages[unused_name(type(step).__name__, stages)] = docs
        return {"stages": stages}

    return search


def with_depth(retriever: Any, names: Sequence[str], k: int) -> Any:
    """A copy that returns k documents; the object itself if it has none of these attributes, or k already."""
    for name in names:
        depth = getattr(retriever, name, None)
        if is_whole(depth, 0):
            if depth == k:
                return retriever
            other = copy.copy(retriever)
            setattr(other, name, k)
            return other
    return retriever
