"""python: any callable of your own takes part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.retrievers.adapters.calling import Batch, Caller, corpus_taker, method_of
from steelyard.retrievers.adapters.doc_ids import DocIds
from steelyard.retrievers.adapters.targets import label_of, load_target, made, seen_settings
from steelyard.retrievers.adapters.wrapped import Wrapped
from steelyard.retrievers.base import Retriever

if TYPE_CHECKING:
    from typing_extensions import Self


class Python(Wrapped):
    """A function, or an object with `retrieve`, `search` or `invoke` (and `index`), as a retriever.

    target: the callable, or `package.module:attribute`. A class is made, with `arguments`.
    batch: true if it takes a list of queries, false if it takes one; auto looks at its first parameter.
    id: where the id of a document is, if it gives documents: `id`, `metadata.KEY`, another path, or `hash`.
    score: where its score is.
    concurrency: how many queries are out at once when several are asked.
    arguments: keyword arguments of the class, or of every call.
    folder: where modules are also looked for; the working directory by default.
    version: of what the callable holds. Answers are kept from bench to bench for as long as its version and
        its code stay: its module and the modules of your own that it imports, directly or through others.
    timeout: seconds that a query may take; one that takes longer is given up and counts as failed. The thread it
        runs in cannot be ended, and what it goes on doing may slow the others. By default there is no limit.
    name: the label of its row in a table; the target by default.

    It may give ids, (id, score) pairs, documents or records, {id: score}, or None for nothing, at once or as an
    awaitable. Its order is kept, and so are documents that it gives twice. Without scores, they are 1/rank.
    An object (or class) with `index(corpus)` is handed the corpus, a mapping of document id to text, before it is asked.

    >>> def search(query, k):
    ...     return [("d1", 2.5), ("d2", 0.5)][:k]
    >>> Python(search).retrieve(["a question"], k=1)
    [[('d1', 2.5)]]
    """

    def __init__(
        self,
        target: Any = None,
        batch: Batch = "auto",
        id: str = "id",
        score: str = "score",
        concurrency: int = 1,
        arguments: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        timeout: float | None = None,
        name: str | None = None,
    ) -> None:
        loaded = load_target(target, "python", folder)
        label = name or label_of(target)
        found = made(loaded, label, arguments)
        self._inner = found if isinstance(found, Retriever) else None
        self._take = corpus_taker(found, label)
        per_call = None if isinstance(loaded, type) else arguments
        self._call = Caller(method_of(found, label), label, batch, concurrency, per_call, timeout)
        seen = seen_settings("python", target, version, arguments, batch=self._call.batch)
        if self._inner is not None:
            seen["of"] = self._inner.settings()
        super().__init__(label, DocIds(id, label), {**seen, "score": score}, score)

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Hands the corpus on, to a target that has `index`."""
        take = self._take
        if take is not None:
            self._call.once(lambda: take(corpus))
        return super().index(corpus)

    def size_in_bytes(self) -> int:
        """What the target says, if it is a retriever of this package's kind."""
        return super().size_in_bytes() + (self._inner.size_in_bytes() if self._inner is not None else 0)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        return self._call(queries, k)
