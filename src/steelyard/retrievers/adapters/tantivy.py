"""Tantivy: BM25 of tantivy, on the corpus or on an existing index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.retrievers.adapters.base import Wrapped
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.adapters.engines import folder_bytes, temporary_folder
from steelyard.retrievers.adapters.targets import package
from steelyard.retrievers.base import RetrieverError, checked_corpus, checked_index

if TYPE_CHECKING:
    from typing_extensions import Self

_WORD = re.compile(r"[^\W_]+")
_HEAP = 128_000_000


class Tantivy(Wrapped):
    """BM25 of tantivy (with its fixed k1 1.2 and b 0.75).

    tokenizer: tokenizer of the corpus: `en_stem` (English stems), `default` (words in lower case), `whitespace` or
        `raw`.
    target: the folder of an existing index; nothing is written to it.
    fields: the fields of that index that are searched, separated by spaces.
    id: the stored field of that index with the id.
    folder: the folder that a relative target is relative to; the working directory by default.
    version: version of that index.
    name: its label in tables.

    A query is searched as plain words, without tantivy's query language. The corpus is indexed by one thread, so
    that the same corpus gives the same lists. Documents without any of the words are left out.
    """

    extra = "tantivy"

    def __init__(
        self,
        target: str | Path | None = None,
        tokenizer: str = "en_stem",
        fields: str = "text",
        id: str = "id",
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        label = name or "tantivy"
        self._package = package("tantivy", self.extra, "tantivy")
        self._tokenizer = tokenizer
        self._fields = fields.split() if target is not None else ["text"]
        self._id = id if target is not None else "id"
        self._folder: Path | None = None if target is None else Path(folder or ".") / target
        self._opened = None if self._folder is None else self._open(self._folder, label)
        self._own = target is None
        known: dict[str, Any] = {"retriever": "tantivy", "package": self._package.__version__}
        if target is None:
            known["tokenizer"] = tokenizer
        else:
            known |= {"target": str(target), "fields": self._fields, "version": version}
        super().__init__(label, DocIds(self._id, label), known)

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index the corpus in a temporary folder; with a target, nothing is indexed."""
        if not self._own:
            return self
        documents = checked_corpus(corpus, self.label)
        schema = self._package.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        schema.add_text_field("text", tokenizer_name=self._tokenizer)
        folder = temporary_folder(self, "tantivy")
        index = self._package.Index(schema.build(), path=str(folder))
        try:
            writer = index.writer(_HEAP, 1)
            for doc, text in zip(documents.ids, documents.texts, strict=True):
                writer.add_document(self._package.Document(id=doc, text=text))
            writer.commit()
        except ValueError as error:
            raise RetrieverError(f"{self.label}: tantivy could not index the corpus: {error}.") from error
        writer.wait_merging_threads()
        index.reload()
        self._opened, self._folder = index, folder
        return self

    def size_in_bytes(self) -> int:
        """The files of the index."""
        return folder_bytes(self._folder)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        index = checked_index(self._opened, self.label)
        searcher = index.searcher()
        answers = []
        for query in queries:
            words = " ".join(_WORD.findall(query.lower()))
            hits = searcher.search(index.parse_query(words, self._fields), k).hits if words else []
            answers.append([(self._record(searcher.doc(address)), score) for score, address in hits])
        return answers

    def _record(self, document: Any) -> dict[str, Any]:
        return {key: values[0] for key, values in document.to_dict().items() if values}

    def _open(self, folder: Path, label: str) -> Any:
        if not folder.is_dir() or not self._package.Index.exists(str(folder)):
            raise RetrieverError(f"{label}: there is no tantivy index in {folder}.")
        return self._package.Index.open(str(folder))
