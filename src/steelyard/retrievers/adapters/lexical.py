"""BM25 of other packages: Tantivy, on the corpus or on an existing index, and bm25s, on the corpus."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from steelyard.retrievers.adapters.base import WORD, Engine, Kept
from steelyard.retrievers.base import CheckedCorpus, Ranked, unknown
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.settings import Indexed, setting
from steelyard.retrievers.targets import package
from steelyard.temporary import temporary_folder

_HEAP = 128_000_000
# The terms of a query for the tokenizers that keep capitals and punctuation.
_TERMS = {"raw": re.compile(r"(?s).+"), "whitespace": re.compile(r"[^ \t\n\f\r]+")}


class Tantivy(Engine):
    """BM25 of tantivy (with its fixed k1 1.2 and b 0.75).

    A query is searched as plain words (with `raw`, as one term), without tantivy's query language. The corpus is
    indexed by one thread, so that the same corpus gives the same lists. Documents without a word are left out.
    """

    retriever = extra = "tantivy"
    module = "tantivy"

    target: str | Path | None = setting(
        "the folder of an existing index; nothing is written to it", default=None, kw_only=False
    )
    tokenizer: str = setting(
        "tokenizer: `en_stem` (English stems), `default` (words in lower case), `whitespace` or `raw`",
        default="en_stem",
        only="corpus",
    )
    fields: str = setting("the fields that are searched, separated by spaces", default="text", only="target", key=None)
    id: str = setting("the stored field with the id", default="id", only="target")

    def _set_up(self) -> None:
        super()._set_up()
        self._fields = self.fields.split()
        self._tokenizers = {"text": self.tokenizer}
        if self._existing:
            folder = Path(self.folder or ".") / str(self.target)
            if not folder.is_dir() or not self._package.Index.exists(str(folder)):
                raise self._error(f"there is no tantivy index in {folder}.")
            self._client = self._package.Index.open(str(folder))
            self._folder = folder
            schema = json.loads((folder / "meta.json").read_text("utf-8"))["schema"]
            texts = [
                (field["name"], field["options"].get("indexing") or {}) for field in schema if field["type"] == "text"
            ]
            self._tokenizers = {name: str(indexing.get("tokenizer")) for name, indexing in texts}

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"id": self.id} | ({"fields": self._fields} if self._existing else {})

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
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
            raise self._error(f"tantivy could not index the corpus: {error}.") from error
        writer.wait_merging_threads()
        index.reload()
        self._client = index

    def _search(self, query: str, vector: Vectors, k: int) -> Any:
        index, queries, kinds = self._client, self._package.Query, self._tokenizers
        exact = [field for field in self._fields if kinds.get(field) in _TERMS]
        terms = [(field, term) for field in exact for term in _TERMS[kinds[field]].findall(query)]
        parts = [queries.term_query(index.schema, *term) for term in terms]
        words, others = " ".join(WORD.findall(query.lower())), [field for field in self._fields if field not in exact]
        if words and others:
            parts.append(index.parse_query(words, others))
        if not parts:
            return []
        searcher, should = index.searcher(), self._package.Occur.Should
        whole = parts[0] if len(parts) == 1 else queries.boolean_query([(should, part) for part in parts])
        hits = searcher.search(whole, k).hits
        scored = [(searcher.doc(address).to_dict(), score) for score, address in hits]
        records = [({key: values[0] for key, values in fields.items() if values}, score) for fields, score in scored]
        return records if self._existing else [(int(record["id"]), score) for record, score in records]


class BM25S(Indexed):
    """The package bm25s with its own tokenizer, in its default 32-bit floats.

    Documents with a score of 0 are left out, since bm25s does not order them.
    """

    retriever = extra = "bm25s"

    method: Literal["lucene", "robertson", "atire", "bm25l", "bm25+"] = setting("the formula", default="lucene")
    k1: float = setting("saturation of term counts", default=1.5)
    b: float = setting("influence of a document's length", default=0.75)
    delta: float = setting("lower bound of a term's weight, of bm25l and bm25+", default=0.5)
    stopwords: str | None = setting("the language whose stop words are removed, or None", default="english")
    stemmer: str | None = setting("the language of PyStemmer's stemmer, such as `english`, or None", default=None)

    def _set_up(self) -> None:
        self._package = package("bm25s", self.extra, self.retriever)
        self._stemmer: Any = None
        if self.stemmer is not None:
            library = package("Stemmer", self.extra, f"{self.label} with a stemmer")
            try:
                self._stemmer = library.Stemmer(self.stemmer)
            except KeyError:
                raise unknown(self.label, "stemmer", self.stemmer, library.algorithms()) from None
        self._model: Any = None

    def _build(self, documents: CheckedCorpus, corpus: Mapping[str, str]) -> None:
        model = self._package.BM25(method=self.method, k1=self.k1, b=self.b, delta=self.delta)
        model.index(self._tokens(documents.texts), show_progress=False)
        self._model = model

    def _lists(self, documents: CheckedCorpus, queries: list[str], k: int) -> list[Ranked]:
        if not queries:
            return []
        positions, scores = self._model.retrieve(self._tokens(queries), k=min(k, len(documents)), show_progress=False)
        return [
            [(documents.ids[position], score) for position, score in zip(*row, strict=True) if score > 0]
            for row in zip(positions.tolist(), scores.tolist(), strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        return {"retriever": self.retriever, "package": self._package.__version__, **self._declared_values()}

    def size_in_bytes(self) -> int:
        """The scores with their positions, and the vocabulary."""
        if self._model is None:
            return 0
        arrays = sum(getattr(array, "nbytes", 0) for array in self._model.scores.values())
        vocabulary = self._model.vocab_dict
        return int(arrays + sys.getsizeof(vocabulary) + sum(map(sys.getsizeof, vocabulary)))

    def _tokens(self, texts: list[str]) -> Any:
        return self._package.tokenize(texts, stopwords=self.stopwords or [], stemmer=self._stemmer, show_progress=False)
