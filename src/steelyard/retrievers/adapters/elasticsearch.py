"""Elasticsearch and OpenSearch: an existing index, over HTTP or through a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from steelyard.ids import kind_of
from steelyard.masking import from_environment
from steelyard.retrievers.adapters.base import ask_each
from steelyard.retrievers.adapters.documents import DocIds, keys_of
from steelyard.retrievers.adapters.http import JsonService, filled
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import identity_of, instantiated, load_target


class Elasticsearch(JsonService):
    """An existing index of Elasticsearch or OpenSearch. Nothing is written to it.

    A search that timed out in the cluster, or failed on some shards, is an error, since its list is incomplete.
    """

    retriever = "elasticsearch"
    labelled_by = ("name", "index_name")

    target: Any = setting(
        "the URL of the index, `http://localhost:9200/passages`, which needs no package; or a client, as an object or "
        "`package.module:attribute`, with `index`",
        default=None,
        kw_only=False,
    )
    index_name: str | None = setting("the name of the index, for a client", default=None, alias="index")
    field: str = setting("the field that is searched, by a `match` query", default="text", key=None)
    query: Mapping[str, Any] | None = setting(
        "the whole body of the search instead, with {query} and {k} filled in; its size is k unless it has its own",
        default=None,
        key=None,
    )
    id: str = setting(
        "`id` is the hit's `_id`; or `metadata.KEY`, a field of its `_source`; or `hash`, of the field searched",
        default="id",
    )

    def _label(self) -> str:
        at_url = urlsplit(self.target).path.strip("/") if self._is_url() else ""
        return str(self.name or self.index_name or at_url or self.retriever)

    def _is_url(self) -> bool:
        return isinstance(self.target, str) and "://" in self.target

    def _set_up(self) -> None:
        label, index = self.label, self.index_name
        match = {"query": {"match": {self.field: "{query}"}}}
        body = {"size": "{k}", **(match if self.query is None else self.query)}
        if self._is_url():
            base = self.target.rstrip("/") + (f"/{index}" if index else "")
            self._connect(f"{base}/_search", body)
            self._identity = {"target": self._shown, "version": self.version}
        else:
            client = instantiated(load_target(self.target, self.retriever, self.folder), label)
            if not hasattr(client, "search"):
                problem = f"{kind_of(client)} has no `search`;"
                raise self._error(f"{problem} expected a URL, or a client of Elasticsearch or OpenSearch.")
            if index is None:
                raise self._error("a client needs `index`, the name of the index to search.")
            sent = from_environment(body, label, RetrieverError)
            self._by_client: Callable[[str, int], Any] = lambda query, k: client.search(
                index=index, body=filled(sent, query, k)
            )
            self._identity = identity_of(self.target, self.version)
        self._identity["query"] = body
        self._ids = DocIds(self.id, label, f"_source.{self.field}")

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        search = self._json if self._is_url() else self._by_client
        return ask_each(lambda query: self._hits(search(query, k)), queries, self.concurrency)

    def _hits(self, answer: Any) -> Any:
        answer = getattr(answer, "body", answer)
        hits = answer.get("hits") if isinstance(answer, Mapping) else None
        if not isinstance(hits, Mapping) or not isinstance(hits.get("hits"), list):
            raise self._error(f"the response is not a search result; expected hits.hits, but it has {keys_of(answer)}.")
        failed = (answer.get("_shards") or {}).get("failed", 0)
        if answer.get("timed_out") or failed:
            what = "timed out in the cluster" if answer.get("timed_out") else f"failed on {failed} shards"
            raise self._error(f"the search {what}; its list would be incomplete.")
        return hits["hits"]
