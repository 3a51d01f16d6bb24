"""Elasticsearch and OpenSearch: an index of a cluster, by its URL or through a client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from steelyard.ids import kind_of
from steelyard.masking import from_environment
from steelyard.retrievers.adapters.base import Wrapped
from steelyard.retrievers.adapters.calling import ask_each
from steelyard.retrievers.adapters.documents import DocIds, keys_of
from steelyard.retrievers.adapters.http import JsonService, filled
from steelyard.retrievers.adapters.targets import identity_of, instantiated, load_target
from steelyard.retrievers.base import RetrieverError, whole


class Elasticsearch(Wrapped):
    """An existing index of Elasticsearch or OpenSearch. Nothing is written to it.

    target: the URL of the index, `http://localhost:9200/passages`, which needs no package; or a client, as an
        object or `package.module:attribute`, with `index`.
    index: the name of the index, for a client.
    field: the field that is searched, by a `match` query.
    query: the whole body of the search instead, with {query} and {k} filled in. Its size is k unless it has its own.
    id: `id` is the hit's `_id`; or `metadata.KEY`, a field of its `_source`; or `hash`, of the field searched.
    headers, timeout, retries: of requests to a URL, as for `http`.
    concurrency: the number of queries at the same time.
    folder: folder in which the module of a client is also searched; the working directory by default.
    version: version of the index. Results are cached between benches while the settings are unchanged.
    name: its label in tables; the index by default.

    A search that timed out in the cluster, or failed on some shards, is an error, since its list is incomplete.
    """

    def __init__(
        self,
        target: Any = None,
        index: str | None = None,
        field: str = "text",
        query: Mapping[str, Any] | None = None,
        id: str = "id",
        headers: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        retries: int = 2,
        concurrency: int = 1,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        body = {"size": "{k}", **(query if query is not None else {"query": {"match": {field: "{query}"}}})}
        known: dict[str, Any]
        if isinstance(target, str) and "://" in target:
            label = name or index or urlsplit(target).path.strip("/") or "elasticsearch"
            base = target.rstrip("/") + (f"/{index}" if index else "")
            service = JsonService(f"{base}/_search", label, body, headers, timeout, retries)
            known = {"target": service.shown, "version": version}
            self._search = service.ask
        else:
            label = name or index or "elasticsearch"
            client = instantiated(load_target(target, "elasticsearch", folder), label)
            self._search = _client_search(client, index, from_environment(body, label, RetrieverError), label)
            known = identity_of(target, version)
        self._concurrency = whole(label, "`concurrency`", concurrency, 1)
        settings = {"retriever": "elasticsearch", **known, "index": index, "query": body}
        super().__init__(label, DocIds(id, label, f"_source.{field}"), settings)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        return ask_each(lambda query: self._hits(self._search(query, k)), queries, self._concurrency)

    def _hits(self, answer: Any) -> Any:
        answer = getattr(answer, "body", answer)
        hits = answer.get("hits") if isinstance(answer, Mapping) else None
        if not isinstance(hits, Mapping) or not isinstance(hits.get("hits"), list):
            raise RetrieverError(
                f"{self.label}: the response is not a search result; expected hits.hits, but it has {keys_of(answer)}."
            )
        failed = (answer.get("_shards") or {}).get("failed", 0)
        if answer.get("timed_out") or failed:
            what = "timed out in the cluster" if answer.get("timed_out") else f"failed on {failed} shards"
            raise RetrieverError(f"{self.label}: the search {what}; its list would be incomplete.")
        return hits["hits"]


def _client_search(client: Any, index: str | None, body: Mapping[str, Any], label: str) -> Any:
    if not hasattr(client, "search"):
        raise RetrieverError(
            f"{label}: {kind_of(client)} has no `search`; expected a URL, or a client of Elasticsearch or OpenSearch."
        )
    if index is None:
        raise RetrieverError(f"{label}: a client needs `index`, the name of the index to search.")
    return lambda query, k: client.search(index=index, body=filled(body, query, k))
