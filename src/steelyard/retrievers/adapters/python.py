"""Python: any function, class or object as a retriever, and how it is called."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from queue import SimpleQueue
from typing import Any, Literal, TypeAlias, cast

from steelyard.ids import kind_of
from steelyard.retrievers.adapters.base import Called, ask_each
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.base import Ranked, Retriever, RetrieverError, Self, needs_corpus
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import expanded, identity_of, instantiated, load_target
from steelyard.user_code import await_user_code, no_child_returns
from steelyard.wording import counted

K_NAMES = ("k", "top_k", "topk", "n", "limit", "size", "depth", "num_results", "n_results", "max_results")
_BATCH_NAMES = {"queries", "questions", "batch", "texts", "inputs", "query_list", "query_texts"}
_METHODS = ("retrieve", "search", "invoke")
_Calls: TypeAlias = "SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]"


class Python(Called):
    """A function, a class, or an object with `retrieve`, `search` or `invoke` (and `index`).

    It may return ids, (id, score) pairs, documents or records, or {id: score}, directly or as an awaitable; None is an
    error. The order is kept, and so are repeated documents. Without scores, they are 1/rank. An object or class with
    `index(corpus)` gets the corpus, a mapping of document id to text, before the first query.

    >>> def search(query, k):
    ...     return [("d1", 2.5), ("d2", 0.5)][:k]
    >>> Python(search).retrieve(["a question"], k=1)
    [[('d1', 2.5)]]
    """

    retriever = "python"

    target: Any = setting(
        "the callable, or `package.module:attribute`; a class is instantiated with `arguments`",
        default=None,
        kw_only=False,
    )
    batch: Literal["auto"] | bool = setting(
        "true if it takes a list of queries, false if it takes one; auto inspects its first parameter",
        default="auto",
        key=None,
    )
    score: str = setting("path to the score of a document", default="score")
    timeout: float | None = setting(
        "seconds per query; a query that takes longer is abandoned and counts as failed. Its thread cannot be stopped "
        "and may slow down the others. By default there is no limit",
        default=None,
        low=1e-3,
    )

    def _set_up(self) -> None:
        loaded = load_target(self.target, "python", self.folder)
        target = instantiated(loaded, self.label, self.arguments)
        self._inner = target if isinstance(target, Retriever) else None
        self._index = index_method(target, self.label)
        self._given = {} if isinstance(loaded, type) else expanded(self.arguments, self.label)
        self._function = method_of(target, self.label)
        signature = _signature(self._function)
        parameters = list(signature.parameters.values()) if signature is not None else []
        self._in_batches = _takes_batch(parameters) if self.batch == "auto" else bool(self.batch)
        self._k = _k_parameter(parameters, self._given)
        self._check_call(signature)
        self._loop: Loop | None = None
        self._limit = TimeLimit(self.timeout, self.label)
        self._ids = DocIds(self.id, self.label, self.text)
        self.score_path = self.score
        self._identity = identity_of(self.target, self.version, self.arguments) | {"batch": self._in_batches}
        if self._inner is not None:
            self._identity["of"] = self._inner.settings()

    def _check_call(self, signature: inspect.Signature | None) -> None:
        positional, keywords = self._call_arguments("", 1)
        try:
            if signature is not None:
                signature.bind(*positional, **keywords)
        except TypeError as error:
            name = getattr(self._function, "__name__", "the call")
            raise self._error(
                f"{name}{signature} cannot be called: {error}; expected {name}(queries, k) for a list "
                f"of queries, or {name}(query, k) for one; other parameters need a default."
            ) from None

    @property
    def needs_corpus(self) -> bool:
        """Whether the target indexes the corpus."""
        return needs_corpus(self._inner) if self._inner is not None else self._index is not None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Pass the corpus to a target with `index`."""
        index = self._index
        if index is not None:  # In the thread of the queries, without a time limit.
            self._finished([self._limit.run(lambda: index(corpus), None)], None)
        return super().index(corpus)

    def size_in_bytes(self) -> int:
        """The size of the target, if it is a Retriever."""
        return super().size_in_bytes() + (self._inner.size_in_bytes() if self._inner is not None else 0)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        """One raw result per query; a batch may take the time limit for each of its queries.

        Up to `concurrency` queries are asked at the same time: in tasks if the function is async, otherwise in threads.
        """
        if not self._in_batches:
            threads = 1 if inspect.iscoroutinefunction(self._function) else self.concurrency
            return self._finished(ask_each(lambda query: self._call(query, k), queries, threads))
        (results,) = self._finished([self._call(list(queries), k)], len(queries))
        listed = not isinstance(results, (Mapping, str)) and hasattr(results, "__len__")
        if listed and len(results) == len(queries):
            return list(results)
        returned = counted(len(results), "result") if listed else kind_of(results)
        problem = f"a batch of {len(queries)} returned {returned}; expected a list with one result per query."
        raise self._error(f"{problem} Set `batch: false` if it takes one query at a time.")

    def _call(self, query: str | list[str], k: int) -> Any:
        positional, keywords = self._call_arguments(query, k)
        if inspect.iscoroutinefunction(self._function):
            return self._function(*positional, **keywords)

        def call() -> Any:
            answer = self._function(*positional, **keywords)
            lazy = self.timeout is not None and inspect.isgenerator(answer)
            return list(islice(answer, k)) if lazy and not self._in_batches else answer

        return self._limit.run(call, len(query) if isinstance(query, list) else 1)

    def _call_arguments(self, query: str | list[str], k: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._k is None:
            return (query,), self._given
        if self._k == "":
            return (query, k), self._given
        return (query,), {self._k: k, **self._given}

    def _finished(self, results: list[Any], times: float | None = 1) -> list[Any]:
        """The results, with awaitables awaited, each within `times` the limit."""
        if not any(map(inspect.isawaitable, results)):
            return results
        self._loop = self._loop or Loop()
        limit = None if times is None or self.timeout is None else times * self.timeout
        return cast("list[Any]", self._loop.run(self._awaited(results, limit)))

    async def _awaited(self, results: Sequence[Any], limit: float | None) -> list[Any]:
        """The results, with awaitables awaited, up to `concurrency` at the same time, each within the limit."""
        free = asyncio.Semaphore(self.concurrency)

        async def one(result: Any) -> Any:
            if not inspect.isawaitable(result):
                return result
            async with free:
                task = asyncio.ensure_future(await_user_code(result))
                if not (await asyncio.wait([task], timeout=limit))[0]:
                    task.cancel()
                    raise self._limit.late(limit)
                return task.result()

        finished = await asyncio.gather(*map(one, results), return_exceptions=True)
        for result in finished:
            if isinstance(result, BaseException):
                raise result
        return list(finished)

    def _read(self, answer: Any, query: str, k: int) -> Ranked:
        if answer is None:
            missing = "expected a list, which is empty if nothing was found (is a `return` missing?)"
            raise self._error(f"the result for {query[:60]!r} is None; {missing}.")
        return super()._read(answer, query, k)


def method_of(found: Any, label: str) -> Callable[..., Any]:
    """The callable of a target: a function itself, or the first of the usual methods of an object."""
    methods = [] if inspect.isroutine(found) else [getattr(found, name, None) for name in _METHODS]
    for method in (*methods, found):
        if callable(method):
            return cast("Callable[..., Any]", method)
    if callable(getattr(found, "index", None)):
        problem = f"{label}: {kind_of(found)} has index but none of {', '.join(_METHODS)};"
        raise RetrieverError(f"{problem} expected retrieve(queries, k) beside index(corpus).")
    problem = f"{label}: {kind_of(found)} cannot be called and has none of {', '.join(_METHODS)};"
    raise RetrieverError(f"{problem} expected a function, a class, or an object with one of them.")


def index_method(found: Any, label: str) -> Callable[[Mapping[str, str]], Any] | None:
    """The method `index` of an object, which takes the corpus; None if it has none."""
    index = getattr(found, "index", None)
    if inspect.isroutine(found) or not callable(index):
        return None
    signature = _signature(index)
    try:
        if signature is not None:
            signature.bind({})
    except TypeError as error:
        raise RetrieverError(
            f"{label}: index{signature} cannot take the corpus: {error}; expected index(corpus), where the corpus is a "
            "mapping of document id to text. If `index` is something else, use a function that calls the object."
        ) from None
    return cast("Callable[[Mapping[str, str]], Any]", index)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _takes_batch(parameters: Sequence[inspect.Parameter]) -> bool:
    """Whether the first parameter is a list of queries: annotated as one, or else named queries, texts or batch."""
    if not parameters:
        return False
    annotation = parameters[0].annotation
    if annotation is not inspect.Parameter.empty:
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
        text = str(annotation) if "[" in str(annotation) else text
        head = text.split("[")[0].rpartition(".")[2].strip("'\" ").lower()
        if head in ("list", "sequence", "iterable", "collection", "tuple"):
            return True
        if head in ("str", "text"):
            return False
    return parameters[0].name in _BATCH_NAMES


def _k_parameter(parameters: Sequence[inspect.Parameter], given: Mapping[str, Any]) -> str | None:
    """The name of the parameter for k; "" if it is passed as the second argument; None if there is none.

    It is k, top_k or another usual name, or else a second parameter without a default.
    """
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for position, parameter in enumerate(parameters):
        if position and parameter.name in K_NAMES and parameter.name not in given:
            return "" if parameter.kind == inspect.Parameter.POSITIONAL_ONLY else parameter.name
    for second in parameters[1:2]:
        if second.name not in given and second.kind in positional and second.default is inspect.Parameter.empty:
            return ""
    return None


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
        _make(*task)
        del task  # A call holds its retriever, which would otherwise never be released, and the thread would not end.


def _make(call: Callable[[], Any], result: Future[Any]) -> None:
    try:
        with no_child_returns():
            value = call()
        result.set_result(value)
    except BaseException as error:
        result.set_exception(error)


def _end(threads: list[_Calls]) -> None:
    for calls in threads:
        calls.put(None)


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
