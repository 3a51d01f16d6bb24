"""Haystack: a Haystack component or pipeline, through its `run`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from steelyard.retrievers.adapters.base import LibraryRetriever
from steelyard.retrievers.adapters.documents import MissingError, keys_of, steps_of, walk
from steelyard.retrievers.adapters.http import filled
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.settings import setting

_QUERY_INPUTS = ("query", "text")


class Haystack(LibraryRetriever):
    """A Haystack retriever component, or a pipeline that returns documents."""

    retriever = extra = "haystack"
    module = "haystack"
    methods = ("run",)

    inputs: Mapping[str, Any] | None = setting(
        'the inputs of `run`, with {query} and {k} filled in, as in {embedder: {text: "{query}"}}; by default every '
        "open input named query or text gets the query, and every top_k gets k",
        default=None,
    )
    output: str | None = setting(
        "path to the documents in the output of `run`, as in `ranker.documents`; by default those of the last "
        "component that returns documents",
        default=None,
    )
    id: str = setting(
        "`id`, `metadata.KEY` (Haystack's meta), or `hash`; Haystack's own ids are hashes of the document, so the ids "
        "of a dataset are usually in the metadata",
        default="id",
        key=None,
    )
    own_k: bool = setting("true leaves the number of documents to the component", default=False, key=None)

    def _set_up(self) -> None:
        super()._set_up()
        self._is_pipeline = hasattr(self._object, "add_component")
        if self.inputs is None:
            self.inputs = self._default_inputs(self.own_k)
        self._output = None if self.output is None else steps_of(self.output, self.label)

    def _default_inputs(self, own_k: bool) -> dict[str, Any]:
        """The inputs that get the query and k, of those that are open."""
        if not self._is_pipeline:
            parameters = inspect.signature(self._object.run).parameters
            if not set(_QUERY_INPUTS) & set(parameters):
                raise RetrieverError(
                    f"{self.label}: `run` takes {', '.join(parameters)}, but not {' or '.join(_QUERY_INPUTS)}; use a "
                    "retriever that takes an embedding in a pipeline with its embedder."
                )
            return _filled_inputs(parameters, own_k)
        sockets = self._object.inputs()
        inputs = {part: found for part, open_inputs in sockets.items() if (found := _filled_inputs(open_inputs, own_k))}
        if not any(set(_QUERY_INPUTS) & set(found) for found in inputs.values()):
            raise RetrieverError(
                f"{self.label}: no component of the pipeline has an open input named query or text; "
                f"set `inputs`. The open inputs are {keys_of(sockets)}."
            )
        return inputs

    def _search(self, k: int) -> Callable[[str], Any]:
        return lambda query: self._documents(filled(self.inputs, query, k))

    def _documents(self, inputs: dict[str, Any]) -> Any:
        output = self._object.run(inputs) if self._is_pipeline else self._object.run(**inputs)
        if self._output is not None:
            try:
                return walk(output, self._output)
            except MissingError as missing:
                raise RetrieverError(f"{self.label}: `output` does not fit the output of `run`: {missing}.") from None
        if "documents" in output:
            return output["documents"]
        found = [part["documents"] for part in output.values() if isinstance(part, Mapping) and "documents" in part]
        if not found:
            raise RetrieverError(
                f"{self.label}: the output of `run` has no documents; it has {keys_of(output)}. Set `output`."
            )
        return found[-1]


def _filled_inputs(names: Mapping[str, Any], own_k: bool) -> dict[str, str]:
    inputs = {name: "{query}" for name in _QUERY_INPUTS if name in names}
    return inputs | ({"top_k": "{k}"} if "top_k" in names and not own_k else {})
