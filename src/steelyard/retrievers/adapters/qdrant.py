"""Qdrant: an existing collection, or the corpus in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from steelyard.masking import from_environment, remember_settings
from steelyard.retrievers.adapters.base import Wrapped
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.adapters.targets import identity_of, instantiated, load_target, package
from steelyard.retrievers.base import Documents, RetrieverError, checked_corpus, checked_index
from steelyard.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Self

_OWN = "steelyard"
_BATCH = 512


class Qdrant(Wrapped):
    """Nearest neighbours in Qdrant, with your own embeddings.

    embed: a callable from a list of texts to one vector each, or `package.module:attribute`.
    target: a client, its URL, or `package.module:attribute`, with `collection`; nothing is written to it.
        Without a target the corpus is indexed in memory, by cosine.
    collection: the name of the collection, for a target.
    using: the name of the vector, if a collection has several.
    id: path to the id, for a target: `id` is the point's; `metadata.KEY` a key of its payload; or `hash`.
    api_key: for a URL; ${VARIABLE} is read from the environment.
    folder, version, name: as for `python`.
    """

    extra = "qdrant"

    def __init__(
        self,
        target: Any = None,
        embed: Any = None,
        collection: str | None = None,
        using: str | None = None,
        id: str = "id",
        api_key: str | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or collection or "qdrant"
        self._package = package("qdrant_client", self.extra, "qdrant")
        if embed is None:
            raise RetrieverError(
                f"{label}: `embed` is missing; expected a callable from a list of texts to one vector each, "
                "or `package.module:attribute`."
            )
        self._embed: Callable[[list[str]], npt.ArrayLike] = instantiated(
            load_target(embed, label, folder), label
        )
        self._documents: Documents | None = None
        self._bytes = 0
        self._own = target is None
        self._collection = collection or _OWN
        self._using = using
        known: dict[str, Any] = {"retriever": "qdrant", "embed": identity_of(embed, version)}
        if target is None:
            self._client = None
        elif collection is None:
            raise RetrieverError(
                f"{label}: a target needs `collection`, the name of the collection to search."
            )
        elif isinstance(target, str) and "://" in target:
            remember_settings({"api_key": api_key})
            key, url = from_environment([api_key, target], label, RetrieverError)
            self._client = self._package.QdrantClient(url=url, api_key=key)
            known |= {"target": target, "version": version}
        else:
            self._client = instantiated(load_target(target, label, folder), label)
            known |= identity_of(target, version)
        super().__init__(label, DocIds(id, label), {**known, "collection": collection, "using": using})

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index the corpus in memory; with a target, nothing is indexed."""
        if not self._own:
            return super().index(corpus)
        documents = checked_corpus(corpus, self.label)
        vectors = self._vectors(documents.texts)
        models = self._package.models
        client = self._package.QdrantClient(":memory:")
        shape = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
        client.create_collection(_OWN, vectors_config=shape)
        for first in range(0, len(documents), _BATCH):
            batch = range(first, min(first + _BATCH, len(documents)))
            points = [models.PointStruct(id=number, vector=vectors[number].tolist()) for number in batch]
            client.upsert(_OWN, points)
        self._client, self._documents, self._bytes = client, documents, vectors.nbytes
        return self

    def size_in_bytes(self) -> int:
        """The vectors of the collection in memory."""
        return self._bytes + super().size_in_bytes()

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        documents = checked_index(self._documents, self.label) if self._own else None
        answers = []
        for vector in self._vectors(queries):
            found = self._client.query_points(  # type: ignore[union-attr]
                self._collection, query=vector.tolist(), using=self._using, limit=k, with_payload=True
            ).points
            if documents is not None:
                found = [(documents.ids[point.id], point.score) for point in found]
            answers.append(found)
        return answers

    def _vectors(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        vectors = np.asarray(self._embed(list(texts)), np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise RetrieverError(
                f"{self.label}: `embed` returned an array of shape {vectors.shape} for "
                f"{counted(len(texts), 'text')}; expected one vector each."
            )
        return vectors
