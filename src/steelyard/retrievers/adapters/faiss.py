"""FAISS: exact and approximate nearest neighbours of the vectors of a corpus, or an index in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from steelyard.retrievers.adapters.engines import Engine, Kept, chosen_kind, vector_source
from steelyard.retrievers.adapters.targets import package
from steelyard.retrievers.base import Documents, RetrieverError
from steelyard.retrievers.filters import Filter
from steelyard.retrievers.shared_vectors import Vectors
from steelyard.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Self

_KINDS: dict[str, dict[str, int]] = {
    "flat": {},
    "hnsw": {"m": 32, "ef_construction": 40, "ef_search": 16},
    "ivf": {"lists": 64, "probes": 1},
}


class Faiss(Engine):
    """Nearest neighbours in FAISS: exact (flat) or approximate (hnsw, ivf).

    kind: `flat`, `hnsw`, `ivf`, or any text of faiss.index_factory, such as `IVF64,PQ16`.
    m, ef_construction, ef_search: of hnsw; links per document, candidates while it is built and while it is searched.
    lists, probes: of ivf; the number of lists, and of lists that are searched.
    of: the dense retriever whose vectors are used, such as `dense`.
    model, vectors: instead of `of`, the model and the vectors as for `dense`.
    filter: as for `dense`; the index has all documents, and the search skips those that do not pass.
    target: the file of an existing index; `ids` is a text file with the id of each row, by default the order of the
        corpus. `model` or `of` embeds the queries.
    folder, version, name: as for `python`.

    Scores are cosines. The index is built by one thread, so that the same corpus gives the same index.
    """

    extra = "faiss"

    def __init__(
        self,
        target: str | Path | None = None,
        kind: str = "flat",
        m: int | None = None,
        ef_construction: int | None = None,
        ef_search: int | None = None,
        lists: int | None = None,
        probes: int | None = None,
        of: Any = None,
        model: Any = None,
        vectors: Any = None,
        filter: Filter | None = None,
        ids: str | Path | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or "faiss"
        self._package = package("faiss", self.extra, "faiss")
        given = {
            "m": m,
            "ef_construction": ef_construction,
            "ef_search": ef_search,
            "lists": lists,
            "probes": probes,
        }
        self._factory = kind if kind not in _KINDS and any(map(str.isupper, kind)) else None
        kinds = {**_KINDS, kind: {}} if self._factory else _KINDS
        self._parameters = chosen_kind(kind, kinds, given, label)
        self._kind = kind
        self._index: Any = None
        self._selector: Any = None
        self._bits: npt.NDArray[np.uint8] | None = None
        known: dict[str, Any] = {
            "retriever": "faiss",
            "package": self._package.__version__,
            "kind": kind,
            **self._parameters,
        }
        if target is not None:
            known |= {"target": str(target), "ids": None if ids is None else str(ids), "version": version}
        source = vector_source(of, model, vectors, folder, label)
        super().__init__(label, target is not None, known, source, filter)
        if target is not None:
            self._index = self._opened(Path(folder or ".") / target)
            self._row_ids = None if ids is None else self._ids_of_rows(Path(folder or ".") / ids)

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index the corpus; for an existing index, its rows are in the order of the corpus unless it has `ids`."""
        super().index(corpus)
        if self._row_ids is None:
            self._row_ids = list(map(str, corpus))
        if self._index.ntotal != len(self._row_ids):
            raise RetrieverError(
                f"{self.label}: the index has {counted(self._index.ntotal, 'vector')} for "
                f"{counted(len(self._row_ids), 'id')}; expected one each. Set `ids` to a file with one id per line."
            )
        return self

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

    def _build(self, documents: Documents, vectors: Vectors | None, kept: Kept | None) -> None:
        assert vectors is not None
        faiss, chosen = self._package, self._parameters
        width, product = vectors.shape[1], faiss.METRIC_INNER_PRODUCT
        if self._kind == "hnsw":
            index = faiss.IndexHNSWFlat(width, chosen["m"], product)
            index.hnsw.efConstruction = chosen["ef_construction"]
        else:
            lists = min(chosen.get("lists", 1), len(documents))
            texts = {"flat": "Flat", "ivf": f"IVF{lists},Flat"}
            try:
                index = faiss.index_factory(width, self._factory or texts[self._kind], product)
            except RuntimeError as error:
                raise RetrieverError(
                    f"{self.label}: faiss cannot make an index {self._kind!r}: {error}"
                ) from None
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            index.train(vectors)
            index.add(vectors)
        except RuntimeError as error:
            raise RetrieverError(f"{self.label}: faiss could not index the corpus: {error}") from None
        finally:
            faiss.omp_set_num_threads(threads)
        self._index = index
        # The selector points into the bits, which must live as long as it does.
        self._bits = None if kept is None else np.packbits(kept, bitorder="little")
        self._selector = None
        if kept is not None and self._bits is not None:
            self._selector = faiss.IDSelectorBitmap(len(kept), faiss.swig_ptr(self._bits))

    def _search(self, query: str, vector: Vectors | None, k: int) -> list[tuple[int, float]]:
        assert vector is not None
        try:
            scores, found = self._index.search(vector[None, :], k, params=self._search_parameters())
        except AssertionError:
            raise RetrieverError(
                f"{self.label}: the vector of the query has {counted(vector.shape[0], 'dimension')} and those of the "
                f"index have {self._index.d}; both must come from the same model."
            ) from None
        pairs = zip(found[0].tolist(), scores[0].tolist(), strict=True)
        return [(position, score) for position, score in pairs if position >= 0]

    def _search_parameters(self) -> Any:
        faiss, given = self._package, {} if self._selector is None else {"sel": self._selector}
        if isinstance(self._index, faiss.IndexHNSW):
            searched = self._parameters.get("ef_search", self._index.hnsw.efSearch)
            return faiss.SearchParametersHNSW(efSearch=searched, **given)
        if isinstance(self._index, faiss.IndexIVF):
            searched = self._parameters.get("probes", self._index.nprobe)
            return faiss.SearchParametersIVF(nprobe=searched, **given)
        return faiss.SearchParameters(**given) if given else None

    def _opened(self, path: Path) -> Any:
        if not path.is_file():
            raise RetrieverError(f"{self.label}: there is no file {path} of an index.")
        try:
            return self._package.read_index(str(path))
        except RuntimeError as error:
            raise RetrieverError(f"{self.label}: {path} is not an index of faiss: {error}") from None

    def _ids_of_rows(self, path: Path) -> list[str]:
        if not path.is_file():
            raise RetrieverError(f"{self.label}: there is no file {path} of ids.")
        return path.read_text(encoding="utf-8").split("\n")[: self._index.ntotal]
