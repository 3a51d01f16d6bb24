"""Tantivy: BM25 of tantivy, on the corpus or on an existing index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from steelyard.retrievers.adapters.engines import Engine, Kept
from steelyard.retrievers.base import CheckedCorpus, RetrieverError
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import setting
from steelyard.temporary import temporary_folder

_WORD = re.compile(r"[^\W_]+")
_HEAP = 128_000_000


class Tantivy(Engine):
    """BM25 of tantivy (with its fixed k1 1.2 and b 0.75).

    A query is searched as plain words, without tantivy's query language. The corpus is indexed by one thread, so
    that the same corpus gives the same lists. Documents without any of the words are left out.
    """

    retriever = extra = "tantivy"
    module = "tantivy"

    target: str | Path | None = setting(
        "the folder of an existing index; nothing is written to it", default=None, key=None, kw_only=False
    )
    tokenizer: str = setting(
        "tokenizer: `en_stem` (English stems), `default` (words in lower case), `whitespace` or `raw`",
        default="en_stem",
        only="corpus",
    )
    fields: str = setting("the fields that are searched, separated by spaces", default="text", only="target", key=None)
    id: str = setting("the stored field with the id", default="id", only="target", key=None)

    def _set_up(self) -> None:
        super()._set_up()
        self._fields = self.fields.split()
        if self._existing:
            folder = Path(self.folder or ".") / str(self.target)
            if not folder.is_dir() or not self._package.Index.exists(str(folder)):
                raise RetrieverError(f"{self.label}: there is no tantivy index in {folder}.")
            self._client = self._package.Index.open(str(folder))
            self._folder = folder

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on, as far as it is known."""
        fields = {"fields": self._fields} if self._existing else {}
        return super().settings() | {"id": self.id} | fields

    def _build(self, documents: CheckedCorpus, vectors: Vectors | None, kept: Kept | None) -> None:
        schema = self._package.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        schema.add_text_field("text", tokenizer_name=self.tokenizer)
        self._folder = temporary_folder("tantivy", self)
        index = self._package.Index(schema.build(), path=str(self._folder))
        try:
            writer = index.writer(_HEAP, 1)
            for position, text in enumerate(documents.texts):
                writer.add_document(self._package.Document(id=str(position), text=text))
            writer.commit()
        except ValueError as error:
            raise RetrieverError(f"{self.label}: tantivy could not index the corpus: {error}.") from error
        writer.wait_merging_threads()
        index.reload()
        self._client = index

    def _search(self, query: str, vector: Vectors | None, k: int) -> Any:
        words = " ".join(_WORD.findall(query.lower()))
        if not words:
            return []
        index = self._client
        searcher = index.searcher()
        hits = searcher.search(index.parse_query(words, self._fields), k).hits
        records = [(self._record(searcher.doc(address)), score) for score, address in hits]
        return records if self._existing else [(int(record["id"]), score) for record, score in records]

    def _record(self, document: Any) -> dict[str, Any]:
        return {key: values[0] for key, values in document.to_dict().items() if values}
