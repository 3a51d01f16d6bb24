"""Retrievers of LangChain, LlamaIndex, Haystack and PyTerrier, called through their own methods."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar

from steelyard.checks import is_whole
from steelyard.ids import kind_of
from steelyard.retrievers.adapters.base import Called, ask_each
from steelyard.retrievers.adapters.documents import PARENT, DocIds, MissingError, keys_of, steps_of, walk
from steelyard.retrievers.adapters.http import filled
from steelyard.retrievers.base import RetrieverError, unused_name
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import called, identity_of, load_target, package


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


class LangChain(LibraryRetriever):
    """A LangChain `BaseRetriever`, or any runnable from a text to documents.

    LangChain's documents have no scores: they get 1/rank. A ContextualCompressionRetriever has stages: `retrieve`, and
    one per compressor.
    """

    retriever = extra = "langchain"
    module = "langchain_core"
    methods = ("invoke",)

    own_k: bool = setting(
        "true leaves the number of documents to the retriever; by default it is set to k: for a vector store through "
        "its search arguments, for another retriever through its field `k`",
        default=False,
    )

    @cached_property
    def _takes_k(self) -> bool:
        """Whether `invoke` passes k on to the search, as for a vector store or a retriever with a parameter k."""
        inner = getattr(self._object, "_get_relevant_documents", None)
        if inner is None:
            return False
        parameters = inspect.signature(inner).parameters
        open_ended = any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
        return "k" in parameters or (open_ended and hasattr(self._object, "search_kwargs"))

    def _search(self, k: int) -> Callable[[str], Any]:
        if _compresses(self._object):
            base, compressor = self._object.base_retriever, self._object.base_compressor
            steps = getattr(compressor, "transformers", None) or [compressor]
            return in_stages(lambda query: base.invoke(query), steps, _compressed)
        if self._takes_k and not self.own_k:
            return lambda query: self._object.invoke(query, k=k)
        retriever = self._object if self.own_k else with_depth(self._object, ["k"], k)
        return lambda query: retriever.invoke(query)


def _compresses(retriever: Any) -> bool:
    """Whether a retriever is LangChain's ContextualCompressionRetriever, and searches as that class does."""
    owner = next((kind for kind in type(retriever).__mro__ if "_get_relevant_documents" in vars(kind)), None)
    return owner is not None and owner.__name__ == "ContextualCompressionRetriever"


def _compressed(step: Any, docs: list[Any], query: str) -> Any:
    """The result of a compressor, or of a transformer of documents, which does not see the query."""
    compresses = hasattr(step, "compress_documents")
    return step.compress_documents(docs, query) if compresses else step.transform_documents(docs)


_K_NAMES = ("similarity_top_k", "_similarity_top_k", "top_k")


class LlamaIndex(LibraryRetriever):
    """A LlamaIndex retriever, or an index or a query engine through its retriever.

    The postprocessors of a query engine are stages. With `id: document`, several nodes of a document repeat its id; the
    policy `duplicates` applies.
    """

    retriever = extra = "llama-index"
    module = "llama_index.core"
    methods = ("retrieve", "as_retriever")

    id: str = setting(
        "`id` is the id of the node; `document` is the id of the document that the node was cut from; or "
        "`metadata.KEY`, or `hash`",
        default="id",
    )
    own_k: bool = setting(
        "true leaves the number of nodes to the retriever; by default `similarity_top_k` is set to k", default=False
    )

    def _set_up(self) -> None:
        super()._set_up()
        self._ids = DocIds({"id": "node_id", "document": PARENT}.get(self.id, self.id), self.label, self.text)
        if not hasattr(self._object, "retrieve"):
            self._object = self._object.as_retriever()

    def _search(self, k: int) -> Callable[[str], Any]:
        engine = getattr(self._object, "_retriever", None) if hasattr(self._object, "_node_postprocessors") else None
        inner = self._object if engine is None else engine
        retriever = inner if self.own_k else with_depth(inner, _K_NAMES, k)
        search: Callable[[str], Any] = retriever.retrieve
        if engine is None:
            return search
        from llama_index.core.schema import QueryBundle

        def postprocessed(step: Any, nodes: list[Any], query: str) -> Any:
            return step.postprocess_nodes(nodes, query_bundle=QueryBundle(query))

        return in_stages(search, self._object._node_postprocessors, postprocessed)


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
    )
    own_k: bool = setting("true leaves the number of documents to the component", default=False, key=None)

    def _set_up(self) -> None:
        super()._set_up()
        self._is_pipeline = hasattr(self._object, "add_component")
        if self.inputs is None:
            self.inputs = self._default_inputs()
        self._output = None if self.output is None else steps_of(self.output, self.label)

    def _default_inputs(self) -> dict[str, Any]:
        """The inputs that get the query and k, of those that are open."""
        if not self._is_pipeline:
            parameters = inspect.signature(self._object.run).parameters
            if not set(_QUERY_INPUTS) & set(parameters):
                raise self._error(
                    f"`run` takes {', '.join(parameters)}, but not {' or '.join(_QUERY_INPUTS)}; use a "
                    "retriever that takes an embedding in a pipeline with its embedder."
                )
            return self._filled(parameters)
        sockets = self._object.inputs()
        inputs = {part: filled for part, open_inputs in sockets.items() if (filled := self._filled(open_inputs))}
        if not any(set(_QUERY_INPUTS) & set(filled) for filled in inputs.values()):
            problem = "no component of the pipeline has an open input named query or text;"
            raise self._error(f"{problem} set `inputs`. The open inputs are {keys_of(sockets)}.")
        return inputs

    def _filled(self, names: Mapping[str, Any]) -> dict[str, str]:
        inputs = {name: "{query}" for name in _QUERY_INPUTS if name in names}
        return inputs | ({"top_k": "{k}"} if "top_k" in names and not self.own_k else {})

    def _search(self, k: int) -> Callable[[str], Any]:
        return lambda query: self._documents(filled(self.inputs, query, k))

    def _documents(self, inputs: dict[str, Any]) -> Any:
        output = self._object.run(inputs) if self._is_pipeline else self._object.run(**inputs)
        if self._output is not None:
            try:
                return walk(output, self._output)
            except MissingError as missing:
                raise self._error(f"`output` does not fit the output of `run`: {missing}.") from None
        if "documents" in output:
            return output["documents"]
        lists = [part["documents"] for part in output.values() if isinstance(part, Mapping) and "documents" in part]
        if not lists:
            raise self._error(f"the output of `run` has no documents; it has {keys_of(output)}. Set `output`.")
        return lists[-1]


class PyTerrier(LibraryRetriever):
    """A PyTerrier transformer or pipeline, called with a frame of qid and query.

    The returned frame is ordered by rank, or by score if it has no rank. Terrier's query parser does not accept
    some punctuation: start the pipeline with `pt.rewrite.tokenise()`.
    """

    retriever = extra = "pyterrier"
    module = "pyterrier"
    methods = ("transform",)
    concurrency = 1

    id: str = setting("the column of the ids", default="docno")

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        pandas = package("pandas", self.extra, self.label)
        numbers = [str(number) for number in range(len(queries))]
        frame = self._object.transform(pandas.DataFrame({"qid": numbers, "query": queries}))
        missing = [column for column in ("qid", self.id) if column not in frame.columns]
        if missing:
            problem = f"its frame has no column {' and no '.join(map(repr, missing))};"
            raise self._error(f"{problem} it has {', '.join(map(str, frame.columns))}.")
        order = {"rank": True, "score": False}
        by = next((column for column in order if column in frame.columns), None)
        if by is not None:
            frame = frame.sort_values(by, ascending=order[by], kind="stable")
        columns = [self.id, *(["score"] if "score" in frame.columns else [])]
        groups = {str(number): group for number, group in frame.groupby("qid", sort=False)}
        lists = [[groups[number][name].tolist() if number in groups else [] for name in columns] for number in numbers]
        return [list(zip(*values, strict=True)) if len(columns) > 1 else values[0] for values in lists]
