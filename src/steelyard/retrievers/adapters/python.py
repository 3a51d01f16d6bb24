"""Python: any function, class or object as a retriever, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, cast

from steelyard.ids import kind_of
from steelyard.retrievers.adapters.base import Called, Loop, TimeLimit, ask_each, awaited
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.adapters.targets import expanded, identity_of, instantiated, load_target
from steelyard.retrievers.base import Ranked, Retriever, RetrieverError, Self, needs_corpus
from steelyard.retrievers.settings import setting
from steelyard.wording import counted

Batch = Literal["auto"] | bool
K_NAMES = ("k", "top_k", "topk", "n", "limit", "size", "depth", "num_results", "n_results", "max_results")
_BATCH_NAMES = {"queries", "questions", "batch", "texts", "inputs", "query_list", "query_texts"}
_METHODS = ("retrieve", "search", "invoke")


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
    batch: Batch = setting(
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
        per_call = None if isinstance(loaded, type) else expanded(self.arguments, self.label)
        method = method_of(target, self.label)
        self._call = Caller(method, self.label, self.batch, self.concurrency, per_call, self.timeout)
        self._ids = DocIds(self.id, self.label, self.text)
        self.score_path = self.score
        self._identity = identity_of(self.target, self.version, self.arguments) | {"batch": self._call.batch}
        if self._inner is not None:
            self._identity["of"] = self._inner.settings()

    @property
    def needs_corpus(self) -> bool:
        """Whether the target indexes the corpus."""
        return needs_corpus(self._inner) if self._inner is not None else self._index is not None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Pass the corpus to a target with `index`."""
        index = self._index
        if index is not None:
            self._call.without_limit(lambda: index(corpus))
        return super().index(corpus)

    def size_in_bytes(self) -> int:
        """The size of the target, if it is a Retriever."""
        return super().size_in_bytes() + (self._inner.size_in_bytes() if self._inner is not None else 0)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        return self._call(queries, k)

    def _read(self, answer: Any, query: str, k: int) -> Ranked:
        if answer is None:
            missing = "expected a list, which is empty if nothing was found (is a `return` missing?)"
            raise self._error(f"the result for {query[:60]!r} is None; {missing}.")
        return super()._read(answer, query, k)


class Caller:
    """Calls a function for queries and returns one raw result per query.

    batch: whether the function takes a list of queries. `auto` inspects its first parameter: it is a list if it is
        annotated as one, or named queries, questions, texts or batch; otherwise it is one query.
    concurrency: the number of queries at the same time: tasks if the function is async, otherwise threads.
    timeout: seconds per query, or None; a batch may take this many seconds for each of its queries.

    k is passed to the parameter k, top_k, n, limit or another usual name, or else to a second parameter without a
    default; a function with neither is called with the query only.

    >>> Caller(lambda query, top_k=5: [query] * top_k, "python")(["a", "b"], 2)
    [['a', 'a'], ['b', 'b']]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        label: str,
        batch: Batch = "auto",
        concurrency: int = 1,
        arguments: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._function, self._label, self._concurrency = function, label, concurrency
        self._arguments = dict(arguments or {})
        signature = _signature(function)
        parameters = list(signature.parameters.values()) if signature is not None else []
        self.batch = _takes_batch(parameters) if batch == "auto" else bool(batch)
        self._k = _k_parameter(parameters, self._arguments)
        self._loop: Loop | None = None
        self._limit = TimeLimit(timeout, label)
        positional, keywords = self._call_arguments("", 1)
        try:
            if signature is not None:
                signature.bind(*positional, **keywords)
        except TypeError as error:
            name = getattr(function, "__name__", "the call")
            raise RetrieverError(
                f"{label}: {name}{signature} cannot be called: {error}; expected {name}(queries, k) for a list "
                f"of queries, or {name}(query, k) for one; other parameters need a default."
            ) from None

    def __call__(self, queries: Sequence[str], k: int) -> list[Any]:
        """One raw result per query."""
        if self.batch:
            (results,) = self._finished([self._call(list(queries), k)], len(queries))
            listed = not isinstance(results, (Mapping, str)) and hasattr(results, "__len__")
            if listed and len(results) == len(queries):
                return list(results)
            returned = counted(len(results), "result") if listed else kind_of(results)
            problem = f"{self._label}: a batch of {len(queries)} returned {returned}; expected a list with one"
            raise RetrieverError(f"{problem} result per query. Set `batch: false` if it takes one query at a time.")
        threads = 1 if inspect.iscoroutinefunction(self._function) else self._concurrency
        return self._finished(ask_each(lambda query: self._call(query, k), queries, threads))

    def without_limit(self, call: Callable[[], Any]) -> Any:
        """The result of a call in the thread of the queries, without a time limit."""
        return self._finished([self._limit.run(call, None)], None)[0]

    def _call(self, query: str | list[str], k: int) -> Any:
        positional, keywords = self._call_arguments(query, k)
        if inspect.iscoroutinefunction(self._function):
            return self._function(*positional, **keywords)

        def call() -> Any:
            answer = self._function(*positional, **keywords)
            lazy = self._limit.seconds is not None and inspect.isgenerator(answer)
            return list(islice(answer, k)) if lazy and not self.batch else answer

        return self._limit.run(call, len(query) if isinstance(query, list) else 1)

    def _call_arguments(self, query: str | list[str], k: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._k is None:
            return (query,), self._arguments
        if self._k == "":
            return (query, k), self._arguments
        return (query,), {self._k: k, **self._arguments}

    def _finished(self, results: list[Any], times: float | None = 1) -> list[Any]:
        """The results, with awaitables awaited, each within `times` the limit."""
        if not any(inspect.isawaitable(result) for result in results):
            return results
        self._loop = self._loop or Loop()
        limit = None if times is None or self._limit.seconds is None else times * self._limit.seconds
        return cast("list[Any]", self._loop.run(awaited(results, self._concurrency, limit, self._limit.late)))


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
    """The name of the parameter for k; "" if it is passed as the second argument; None if there is none."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for position, parameter in enumerate(parameters):
        if position and parameter.name in K_NAMES and parameter.name not in given:
            return "" if parameter.kind == inspect.Parameter.POSITIONAL_ONLY else parameter.name
    for second in parameters[1:2]:
        if second.name not in given and second.kind in positional and second.default is inspect.Parameter.empty:
            return ""
    return None
