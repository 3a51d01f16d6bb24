"""haystack: a Haystack component or pipeline, through its `run`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from steelyard.retrievers.adapters.base import Wrapped
from steelyard.retrievers.adapters.calling import ask_each
from steelyard.retrievers.adapters.documents import DocIds, MissingError, keys_of, steps_of, walk
from steelyard.retrievers.adapters.http import filled
from steelyard.retrievers.adapters.python import label_of, library_object, seen_settings
from steelyard.retrievers.base import RetrieverError, whole

_QUERY_INPUTS = ("query", "text")


class Haystack(Wrapped):
    """A Haystack retriever component, or a pipeline that ends in documents.

    target: the component or pipeline, or `package.module:attribute`; a class or a function without parameters
        is called.
    inputs: what `run` gets, with {query} and {k} filled in, as in {embedder: {text: "{query}"}}. By default,
        every open text input called query or text gets the query, and every top_k gets k.
    output: the path to the documents in what `run` gives, as in `ranker.documents`; by default the last
        component that gives documents.
    id: `id`, `metadata.KEY` (Haystack's meta), or `hash`. Haystack's own ids are hashes of the document, so a
        dataset's ids are usually in the metadata.
    own_k: true leaves the number of documents to the component.
    concurrency: how many queries are out at once when several are asked.
    arguments, folder, version, name: as for `python`.
    """

    extra: ClassVar[str] = "haystack"
    """The extra that brings its package."""

    def __init__(
        self,
        target: Any = None,
        inputs: Mapping[str, Any] | None = None,
        output: str | None = None,
        id: str = "id",
        own_k: bool = False,
        concurrency: int = 1,
        arguments: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        found = library_object(target, self.extra, "haystack", ["run"], folder, arguments)
        label = name or label_of(target)
        self._run = found.run
        self._is_pipeline = hasattr(found, "add_component")
        self._inputs = inputs if inputs is not None else self._usual_inputs(found, own_k, label)
        self._output = None if output is None else steps_of(output, label)
        self._concurrency = whole(label, "`concurrency`", concurrency, 1)
        seen = seen_settings("haystack", target, version, arguments, inputs=dict(self._inputs), output=output)
        super().__init__(label, DocIds(id, label), seen)

    def _usual_inputs(self, found: Any, own_k: bool, who: str) -> Mapping[str, Any]:
        if not self._is_pipeline:
            return _usual(dict.fromkeys(inspect.signature(found.run).parameters), own_k, who)
        parts = {part: _usual(sockets, own_k, None) for part, sockets in found.inputs().items()}
        if not any(set(given) & set(_QUERY_INPUTS) for given in parts.values()):
            raise RetrieverError(
                f"{who}: no component of the pipeline has an open input called query or text; "
                f"set `inputs`. Open are: {keys_of(found.inputs())}."
            )
        return {part: given for part, given in parts.items() if given}

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        return ask_each(lambda query: self._answer(query, k), queries, self._concurrency)

    def _answer(self, query: str, k: int) -> Any:
        given = filled(self._inputs, query, k)
        answer = self._run(given) if self._is_pipeline else self._run(**given)
        try:
            if self._output is not None:
                return walk(answer, self._output)
        except MissingError as missing:
            raise RetrieverError(f"{self.label}: `output` leads nowhere: {missing}.") from None
        if "documents" in answer:
            return answer["documents"]
        ends = [
            part["documents"] for part in answer.values() if isinstance(part, Mapping) and "documents" in part
        ]
        if not ends:
            raise RetrieverError(
                f"{self.label}: what `run` gave has no documents; it has {keys_of(answer)}. Set `output`."
            )
        return ends[-1]


def _usual(sockets: Mapping[str, Any], own_k: bool, who: str | None) -> dict[str, str]:
    """The inputs that get the query and k, of those that are open."""
    given = {name: "{query}" for name in _QUERY_INPUTS if name in sockets}
    if who is not None and not given:
        raise RetrieverError(
            f"{who}: `run` takes {', '.join(sockets)}, and none of {' or '.join(_QUERY_INPUTS)}; a retriever that "
            "takes an embedding goes into a pipeline with its embedder."
        )
    return given | ({"top_k": "{k}"} if "top_k" in sockets and not own_k else {})
