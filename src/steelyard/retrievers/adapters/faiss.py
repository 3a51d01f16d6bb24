"""FAISS: exact and approximate nearest neighbours of the vectors of a corpus, or an index in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.io.files import read_bytes, reading
from steelyard.retrievers.adapters.base import Kept, VectorEngine
from steelyard.retrievers.base import CheckedCorpus, Self, unknown
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.wording import counted

_KINDS = ("flat", "hnsw", "ivf")
_HNSW, _IVF = ("hnsw",), ("ivf",)


class Faiss(VectorEngine):
    """Nearest neighbours in FAISS: exact (flat) or approximate (hnsw, ivf).

    Scores are cosines; those of a target are of its metric, and distances (L2) are negated. The index is built by one
    thread, so that the same corpus gives the same index. With a filter, the search skips documents that do not pass.
    """

    retriever = extra = "faiss"
    module = "faiss"
    id_path = "id"

    target: str | Path | None = setting(
        "the file of an existing index; `model` or `of` embeds the queries", default=None, kw_only=False
    )
    kind: str = setting(
        "`flat`, `hnsw`, `ivf`, or any text of faiss.index_factory, such as `IVF64,PQ16`", default="flat"
    )
    m: int = setting(default=32, low=1, kinds=_HNSW)
    ef_construction: int = setting(default=40, low=1, kinds=_HNSW)
    ef_search: int = setting(default=16, low=1, kinds=_HNSW)
    lists: int = setting(default=64, low=1, kinds=_IVF)
    probes: int = setting(default=1, low=1, kinds=_IVF)
    ids: str | Path | None = setting(
        "a text file with the id of each row, by default the order of the corpus", default=None, only="target"
    )

    def _set_up(self) -> None:
        self._factory = self.kind if self.kind not in _KINDS and any(map(str.isupper, self.kind)) else None
        if self.kind not in _KINDS and self._factory is None:
            raise unknown(self.label, "kind", self.kind, _KINDS)
        super()._set_up()
        self._index: Any = None
        self._selector: Any = None
        self._own_ids: Any = None
        if self._existing:
            path = self._path("file of an index")
            try:
                self._index = self._package.read_index(str(path))
            except RuntimeError as error:
                raise self._error(f"{path} is not an index of faiss: {error}") from None
            if self.ids is not None:
                path = self._path("file of ids", self.ids)
                with reading(path):
                    text = read_bytes(path).decode().rstrip("\r\n")
                self._name_rows([line.removesuffix("\r") for line in text.split("\n") if text])

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index the corpus; for an existing index, its rows are in the order of the corpus unless it has `ids`."""
        super().index(corpus)
        if self._row_ids is None:
            self._name_rows(list(map(str, corpus)))
        return self

    def _name_rows(self, ids: list[str]) -> None:
        """Name the rows of an existing index; ids that it has itself are in the order of its rows."""
        faiss, index = self._package, self._index
        if index.ntotal != len(ids):
            problem = f"the index has {counted(index.ntotal, 'vector')} for {counted(len(ids), 'id')};"
            raise self._error(f"{problem} expected one each. Set `ids` to a file with one id per line.")
        while isinstance(index, faiss.IndexPreTransform):
            index = faiss.downcast_index(index.index)
        if hasattr(index, "id_map"):
            self._own_ids = faiss.vector_to_array(index.id_map)
        elif isinstance(index, faiss.IndexIVF) and ids:  # Its lists do not keep the order of the rows.
            sizes = map(index.invlists.list_size, range(index.nlist))
            lists = [faiss.rev_swig_ptr(index.invlists.get_ids(n), size) for n, size in enumerate(sizes) if size]
            self._own_ids = np.sort(np.concatenate(lists))
        if self._own_ids is not None and np.any(np.diff(self._own_ids) <= 0):
            raise self._error(
                "the numbers that the index has as ids do not ascend from vector to vector, so that it "
                "is unknown which document each one is. Add the vectors again with ascending ids, or without."
            )
        self._row_ids = ids

    def size_in_bytes(self) -> int:
        """The size of the index as a file."""
        if self._index is None or self._existing:
            return super().size_in_bytes()
        size = 0

        def count(data: bytes) -> int:
            nonlocal size
            size += len(data)
            return len(data)

        self._package.write_index(self._index, self._package.PyCallbackIOWriter(count))
        return size

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        faiss, chosen = self._package, self._parameters
        width, product = vectors.shape[1], faiss.METRIC_INNER_PRODUCT
        if self.kind == "hnsw":
            index = faiss.IndexHNSWFlat(width, chosen["m"], product)
            index.hnsw.efConstruction = chosen["ef_construction"]
        else:
            lists = min(chosen.get("lists", 1), len(documents))
            texts = {"flat": "Flat", "ivf": f"IVF{lists},Flat"}
            try:
                index = faiss.index_factory(width, self._factory or texts[self.kind], product)
            except RuntimeError as error:
                raise self._error(f"faiss cannot make an index {self.kind!r}: {error}") from None
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            index.train(vectors)
            index.add(vectors)
        except RuntimeError as error:
            raise self._error(f"faiss could not index the corpus: {error}") from None
        finally:
            faiss.omp_set_num_threads(threads)
        self._index, self._selector = index, None
        if kept is not None:
            # The selector points into the bits, which must live as long as it does.
            self._bits = np.packbits(kept, bitorder="little")
            self._selector = faiss.IDSelectorBitmap(len(kept), faiss.swig_ptr(self._bits))

    def _search(self, query: str, vector: Vectors, k: int) -> list[tuple[int, float]]:
        try:
            scores, positions = self._index.search(vector[None, :], k, params=self._search_parameters())
        except AssertionError:
            raise self._error(
                f"the vector of the query has {counted(vector.shape[0], 'dimension')} and those of the "
                f"index have {self._index.d}; both must come from the same model."
            ) from None
        rows = positions if self._own_ids is None else np.searchsorted(self._own_ids, positions)
        values = scores if self._package.is_similarity_metric(self._index.metric_type) else 0.0 - scores
        found = positions != -1
        return list(zip(rows[found].tolist(), values[found].tolist(), strict=True))

    def _search_parameters(self) -> Any:
        faiss, given = self._package, {} if self._selector is None else {"sel": self._selector}
        if isinstance(self._index, faiss.IndexHNSW):
            searched = self._parameters.get("ef_search", self._index.hnsw.efSearch)
            return faiss.SearchParametersHNSW(efSearch=searched, **given)
        if isinstance(self._index, faiss.IndexIVF):
            searched = self._parameters.get("probes", self._index.nprobe)
            return faiss.SearchParametersIVF(nprobe=searched, **given)
        return faiss.SearchParameters(**given) if given else None
