"""Calls that may take so long and no longer: each in a thread, which is given up when its time is over."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from queue import SimpleQueue
from typing import Any, Literal, cast

from steelyard.ids import kind_of
from steelyard.retrievers.base import RetrieverError, number, whole
from steelyard.wording import counted


class TimeLimit:
    """Makes calls, each within so many seconds; without a limit, in the calling thread.

    Threads are used again, so that calls one after the other are made in one thread. Python cannot end a
    thread: one that is given up goes on until its call returns, and ends with the process at the latest.

    >>> TimeLimit(5.0, "mine").run(lambda: 1 + 1)
    2
    """

    def __init__(self, seconds: float | None, who: str) -> None:
        self.seconds = None if seconds is None else number(who, "`timeout`", seconds, 1e-3)
        self._who = who
        self._idle: list[_Worker] = []
        weakref.finalize(self, _dismiss, self._idle)

    def __deepcopy__(self, memo: dict[int, Any]) -> TimeLimit:
        return TimeLimit(self.seconds, self._who)

    def run(self, call: Callable[[], Any], times: float | None = 1) -> Any:
        """What the call gives, within `times` the limit (None: however long it takes); an error where it is late."""
        if self.seconds is None:
            return call()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker()
        limit = None if times is None else times * self.seconds
        answer = worker.begin(call)
        if not wait([answer], limit).done:
            worker.dismiss()
            raise self.late(limit)
        self._idle.append(worker)
        return answer.result()

    def late(self, limit: float | None) -> RetrieverError:
        """The error of a call that took too long."""
        return RetrieverError(
            f"{self._who}: no answer within {limit:g} s, and it was given up; `timeout` sets how long to wait."
        )


class _Worker:
    """A thread that makes the calls it is given, one after the other."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="steelyard-call").start()

    def begin(self, call: Callable[[], Any]) -> Future[Any]:
        answer: Future[Any] = Future()
        self._calls.put((call, answer))
        return answer

    def dismiss(self) -> None:
        """Let the thread end, after the call it is at."""
        self._calls.put(None)

    def _work(self) -> None:
        while (given := self._calls.get()) is not None:
            call, answer = given
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)


def _dismiss(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.dismiss()


Batch = Literal["auto"] | bool
K_NAMES = ("k", "top_k", "topk", "n", "limit", "size", "depth", "num_results", "n_results", "max_results")
_BATCH_NAMES = {"queries", "questions", "batch", "texts", "inputs", "query_list", "query_texts"}
_METHODS = ("retrieve", "search", "invoke")


def method_of(found: Any, who: str, names: Sequence[str] = _METHODS) -> Callable[..., Any]:
    """What to call of an object: itself where it is a function, or its first method of these names.

    >>> method_of(len, "python") is len
    True
    """
    methods = [] if inspect.isroutine(found) else [getattr(found, name, None) for name in names]
    for method in (*methods, found):
        if callable(method):
            return cast("Callable[..., Any]", method)
    if callable(getattr(found, "index", None)):
        raise RetrieverError(
            f"{who}: {kind_of(found)} has index but none of {', '.join(names)}; "
            "expected retrieve(queries, k) beside index(corpus)."
        )
    raise RetrieverError(
        f"{who}: {kind_of(found)} cannot be called and has none of {', '.join(names)}; "
        "expected a function, a class, or an object with one of them."
    )


def corpus_taker(found: Any, who: str) -> Callable[[Mapping[str, str]], Any] | None:
    """`index` of an object that is to be handed the corpus before it is asked; None where it has none.

    >>> corpus_taker(len, "python") is None
    True
    """
    index = getattr(found, "index", None)
    if inspect.isroutine(found) or not callable(index):
        return None
    signature = _signature(index)
    try:
        if signature is not None:
            signature.bind({})
    except TypeError as error:
        raise RetrieverError(
            f"{who}: index{signature} cannot take the corpus: {error}; expected index(corpus), the corpus being a "
            "mapping of document id to text. Where it is something else, give a function that asks the object."
        ) from None
    return cast("Callable[[Mapping[str, str]], Any]", index)


def ask_each(ask: Callable[[str], Any], queries: Sequence[str], concurrency: int) -> list[Any]:
    """One answer per query, with so many of them out at once, each in a thread.

    >>> ask_each(str.upper, ["a", "b"], 2)
    ['A', 'B']
    """
    if concurrency == 1 or len(queries) < 2:
        return [ask(query) for query in queries]
    with ThreadPoolExecutor(min(concurrency, len(queries))) as pool:
        return list(pool.map(ask, queries))


class Caller:
    """Calls a function for some queries and gives one raw answer for each.

    batch: whether the function takes a list of queries. `auto` looks at its first parameter: annotated as a
        list, or called queries, questions, texts or batch, it is a batch; anything else is one query.
    concurrency: how many queries are out at once when several are asked: tasks where the function is async,
        threads where it is not.
    timeout: seconds that a query may take, or None; a batch may take as many times that as it has queries.

    k goes to the parameter called k, top_k, n, limit or another usual name, or else to a second parameter that
    has no default; a function with neither is called with the query alone.

    >>> Caller(lambda query, top_k=5: [query] * top_k, "python")(["a", "b"], 2)
    [['a', 'a'], ['b', 'b']]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        who: str,
        batch: Batch = "auto",
        concurrency: int = 1,
        arguments: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        if batch not in ("auto", True, False):
            raise RetrieverError(f"{who}: `batch` is {batch!r}; expected true, false or auto.")
        self._function = function
        self._who = who
        self._concurrency = whole(who, "`concurrency`", concurrency, 1)
        self._arguments = dict(arguments or {})
        signature = _signature(function)
        parameters = list(signature.parameters.values()) if signature is not None else []
        self.batch = _takes_batch(parameters) if batch == "auto" else bool(batch)
        self._k = _k_parameter(parameters, self._arguments)
        self._loop: Loop | None = None
        self._limit = TimeLimit(timeout, who)
        self._check_call()

    def __call__(self, queries: Sequence[str], k: int) -> list[Any]:
        """One raw answer per query."""
        if self.batch:
            asked = [self._call(list(queries), k)]
            return self._checked_batch(self.settled(asked, len(queries))[0], len(queries))
        threads = 1 if inspect.iscoroutinefunction(self._function) else self._concurrency
        return self.settled(ask_each(lambda query: self._call(query, k), queries, threads))

    def _call(self, asked: str | list[str], k: int) -> Any:
        places, names = self._arranged(asked, k)
        if inspect.iscoroutinefunction(self._function):
            return self._function(*places, **names)

        def answer() -> Any:
            found = self._function(*places, **names)
            lazy = self._limit.seconds is not None and inspect.isgenerator(found)
            return list(islice(found, k)) if lazy and not self.batch else found

        return self._limit.run(answer, len(asked) if isinstance(asked, list) else 1)

    def once(self, call: Callable[[], Any]) -> Any:
        """What a call gives, made where queries are asked, however long it takes."""
        return self.settled([self._limit.run(call, None)], None)[0]

    def _arranged(self, asked: str | list[str], k: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the function is called with, by place and by name."""
        if self._k is None:
            return (asked,), self._arguments
        if self._k == "":
            return (asked, k), self._arguments
        return (asked,), {self._k: k, **self._arguments}

    def _check_call(self) -> None:
        """Refuse a function that cannot be asked, before anybody asks it."""
        signature = _signature(self._function)
        places, names = self._arranged("", 1)
        try:
            if signature is not None:
                signature.bind(*places, **names)
        except TypeError as error:
            name = getattr(self._function, "__name__", "the call")
            raise RetrieverError(
                f"{self._who}: {name}{signature} cannot be asked: {error}; expected {name}(queries, k) for a list of "
                f"queries, or {name}(query, k) for one, anything further with a default."
            ) from None

    def settled(self, answers: list[Any], times: float | None = 1) -> list[Any]:
        """The answers, those that must be awaited awaited, so many at a time, each within `times` the limit."""
        if not any(inspect.isawaitable(answer) for answer in answers):
            return answers
        self._loop = self._loop or Loop()
        most = None if times is None or self._limit.seconds is None else times * self._limit.seconds
        return cast("list[Any]", self._loop.run(_awaited(answers, self._concurrency, most, self._limit.late)))

    def _checked_batch(self, answers: Any, expected: int) -> list[Any]:
        if isinstance(answers, (Mapping, str)) or not hasattr(answers, "__len__"):
            raise RetrieverError(
                f"{self._who}: asked a batch of {expected}, it gave {kind_of(answers)}; expected a list with one "
                "answer per query. Set `batch: false` if it takes one query at a time."
            )
        if len(answers) != expected:
            raise RetrieverError(
                f"{self._who}: asked a batch of {expected}, it gave {counted(len(answers), 'answer')}; "
                "expected one each. "
                "Set `batch: false` if it takes one query at a time."
            )
        return list(answers)


class Loop:
    """An event loop for all calls: an async client that was opened in one call lives on to the next.

    It runs in the calling thread, which costs least; where a loop is running there already, as in a notebook,
    in a thread beside it.
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
            with ThreadPoolExecutor(1) as beside:
                return beside.submit(self._loop.run_until_complete, work).result()


async def _awaited(
    answers: Sequence[Any], concurrency: int, most: float | None, late: Callable[[float | None], Exception]
) -> list[Any]:
    gate = asyncio.Semaphore(concurrency)

    async def one(answer: Any) -> Any:
        if not inspect.isawaitable(answer):
            return answer
        async with gate:
            task = asyncio.ensure_future(answer)
            if not (await asyncio.wait([task], timeout=most))[0]:
                task.cancel()
                raise late(most)
            return task.result()

    settled = await asyncio.gather(*map(one, answers), return_exceptions=True)
    for answer in settled:
        if isinstance(answer, BaseException):
            raise answer
    return list(settled)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _takes_batch(parameters: Sequence[inspect.Parameter]) -> bool:
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
    """The name k goes by; "" where it is the second, whatever its name; None where there is none."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for place, parameter in enumerate(parameters):
        if place and parameter.name in K_NAMES and parameter.name not in given:
            return "" if parameter.kind == inspect.Parameter.POSITIONAL_ONLY else parameter.name
    if len(parameters) > 1 and parameters[1].name not in given:
        second = parameters[1]
        if second.kind in positional and second.default is inspect.Parameter.empty:
            return ""
    return None
