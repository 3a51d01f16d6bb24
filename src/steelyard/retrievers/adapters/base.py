"""The common parts of adapters: retrievers that were indexed elsewhere, and search engines."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from steelyard.checks import unknown_name
from steelyard.errors import SteelyardError
from steelyard.masking import from_environment, masked, remember_settings
from steelyard.retrievers import base
from steelyard.retrievers.adapters.documents import HASH, TEXT_NAMES, DocIds, Keep, read_answer
from steelyard.retrievers.base import CheckedCorpus, Ranked, RetrieverError, Self
from steelyard.retrievers.dense import Dense, describe_filter, passing
from steelyard.retrievers.embeddings import Vectors
from steelyard.retrievers.registry import from_spec
from steelyard.retrievers.settings import Declared, setting
from steelyard.retrievers.targets import identity_of, label_of, package
from steelyard.safe_text import error_text
from steelyard.temporary import temporary_folder

WORD = re.compile(r"[^\W_]+")
PASSES = "passes"  # The field of an index that holds whether a document passes the filter.

Kept = npt.NDArray[np.bool_]


def ask_each(ask: Callable[[str], Any], queries: Sequence[str], concurrency: int) -> list[Any]:
    """One result per query, with up to `concurrency` calls at the same time, each in a thread."""
    if concurrency == 1 or len(queries) < 2:
        return [ask(query) for query in queries]
    with ThreadPoolExecutor(min(concurrency, len(queries))) as pool:
        return list(pool.map(ask, queries))


class Wrapped(Declared):
    """A retriever that was indexed elsewhere. A subclass has the query in `_ask`, and `_ids` from `_set_up`."""

    score_path = "score"
    """Path to the score of a document."""
    _source: Dense | None = None
    """What embeds the queries, if they are searched by their vectors."""

    folder: str | Path | None = setting(
        "the folder of relative paths and of modules; the working directory by default", default=None
    )
    version: str | None = setting(
        "version of the data that is searched; results are cached between benches while the settings and the code of "
        "the target are unchanged",
        default=None,
    )

    @property
    def needs_corpus(self) -> bool:
        """Whether lsa is fitted on the corpus; nothing else is, as it searches an index of its own."""
        return self._source is not None and self._source.model == "lsa"

    def keep_texts(self, keep: Keep | None) -> None:
        """Pass the text of every document that it returns to `keep`, with its id."""
        self._ids.keep = keep

    def _set_up(self) -> None:
        self._ids = DocIds("id", self.label)
        self._identity: dict[str, Any] = {}

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index nothing; if ids are found by text, keep the texts of the corpus. lsa is fitted on the corpus."""
        if self._source is not None and self._source.model == "lsa":
            self._source.index(corpus)
        self._ids.learn(corpus)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the first k (document id, score) pairs of its result, in its order."""
        listed = base.checked_queries(queries, k, self.label)
        return self.read(listed, self.ask(listed, int(k)), k) if listed else []

    def ask(self, queries: list[str], k: int) -> list[Any]:
        """Per query, its result as it was returned: the part of `retrieve` that is not ours, for measuring its time."""
        return [list(islice(answer, k)) if isinstance(answer, Iterator) else answer for answer in self._ask(queries, k)]

    def read(self, queries: Sequence[str], answers: Sequence[Any], k: int) -> list[Ranked]:
        """The results of `ask` as (document id, score) pairs."""
        return [self._read(answer, query, k) for query, answer in zip(queries, answers, strict=True)]

    def _read(self, answer: Any, query: str, k: int) -> Ranked:
        return read_answer(answer, self._ids, self.label, query, k, self.score_path)

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on, as far as it is known."""
        values = {"retriever": self.retriever, **self._declared_values(), **self._identity, "id": self._ids.setting}
        return values | ({} if self._ids.text is None else {"text": self._ids.text})

    def size_in_bytes(self) -> int:
        """The memory used here; the index itself is elsewhere."""
        return self._ids.size_in_bytes()

    def ids_elsewhere(self, corpus: Mapping[str, str]) -> str | None:
        """Another value of `id` with which the documents found so far are in the corpus, if there is one."""
        return self._ids.elsewhere(corpus)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        """One result per query, in any form that `read_answer` accepts."""
        raise NotImplementedError


class Called(Wrapped):
    """The settings of retrievers that call an object of the user's."""

    target: Any = setting(
        "the object, or `package.module:attribute`; a class or a function is called to create it",
        default=None,
        kw_only=False,
    )
    id: str = setting("path to the id of a document: `id`, `metadata.KEY`, another path, or `hash`", default="id")
    text: str | None = setting(default=None)
    concurrency: int = setting(default=1, low=1)
    arguments: Mapping[str, Any] | None = setting(
        "keyword arguments of the class or of the function that makes the object, or of every call of a function; "
        "${VARIABLE} in them is read from the environment",
        default=None,
    )

    def _label(self) -> str:
        return str(self.name or label_of(self.target))


class Engine(Wrapped):
    """A search engine. A subclass has `_build`, which indexes the corpus, and `_search`, which answers one query.

    Own documents are known to the engine by their positions. An existing collection is opened by `_open` for the first
    query, and nothing is written to it.
    """

    module: ClassVar[str] = ""
    """The module of the engine, whose version results depend on."""
    id_path: ClassVar[str] = ""
    """Path to the id in an answer; by default the setting `id`, which an engine without an `id_path` has."""
    selects_texts: ClassVar[bool] = False
    """Whether the texts are selected by their column, and `text` is not a path into an answer."""

    target: Any = setting("an existing collection; nothing is written to it", default=None, kw_only=False)
    text: str | None = setting(default=None, only="target")

    def _set_up(self) -> None:
        super()._set_up()
        if self.module:
            self._package = package(self.module, self.extra, self.retriever)
        self._row_ids: list[str] | None = None
        self._folder: Path | None = None
        self._bytes = 0
        if self._existing:
            chosen = str(vars(self).get("id", self.id_path))
            path = chosen if chosen == HASH else self.id_path or chosen
            self._ids = DocIds(path, self.label, None if self.selects_texts else self.text)
            self._identity = self._target_identity()

    @property
    def needs_corpus(self) -> bool:
        """Whether the corpus is indexed; an existing collection needs none, unless lsa is fitted on the corpus."""
        return not self._existing or super().needs_corpus

    def _target_identity(self) -> dict[str, Any]:
        """What identifies the target, for the cache of results."""
        if isinstance(self.target, str | Path):
            return {"target": str(self.target), "version": self.version}
        return identity_of(self.target, self.version)

    def _package_version(self) -> dict[str, Any]:
        return {"package": self._package.__version__} if self.module else {}

    @cached_property
    def _client(self) -> Any:
        """The open collection, or what the corpus was indexed in."""
        return self._open()

    def _open(self) -> Any:
        raise NotImplementedError

    def _opened(self, value: Any) -> Any:
        """A setting with a URL or a key, ${VARIABLE} read from the environment; secrets are kept out of messages."""
        remember_settings(value)
        return from_environment(value, self.label, RetrieverError)

    def _text_column(self, columns: Sequence[str]) -> str | None:
        """The column of an existing table with the texts: the one that is named, or the first with a usual name."""
        if self.text is not None and self.text not in columns:
            raise self._error(unknown_name("column in `text`", self.text, columns))
        return self.text or next((name for name in TEXT_NAMES if name in columns), None)

    def _id_column(self, text: str | None) -> str:
        """The column to select as the id: that of the texts for `hash`, which identifies documents by them."""
        chosen = str(vars(self)["id"])
        if chosen != HASH:
            return chosen
        if text is None:
            raise self._error("`id: hash` identifies documents by their texts; set `text` to their column.")
        return text

    def _path(self, what: str, path: Any = None) -> Path:
        """A file or folder that a target names, which may be a number in YAML; an error if there is none."""
        full_path = Path(self.folder or ".", str(self.target if path is None else path))
        if not full_path.is_file() and not full_path.is_dir():  # Opening a pipe would wait for its writer.
            raise self._error(f"there is no {what} {full_path}.")
        return full_path

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index the corpus; an existing collection is left as it is."""
        if self._existing:
            return super().index(corpus)
        documents = base.checked_corpus(corpus, self.label)
        source = self._source
        vectors = np.empty((len(documents), 0), np.float32) if source is None else source.index(corpus).vectors
        self._build(documents, vectors, passing(corpus, documents.ids, getattr(self, "filter", None), self.label))
        self._row_ids = documents.ids
        return self

    def read(self, queries: Sequence[str], answers: Sequence[Any], k: int) -> list[Ranked]:
        """The results of `ask`; of own documents, pairs of a position and a score."""
        ids = self._row_ids
        if ids is None:
            return super().read(queries, answers, k)
        for query, answer in zip(queries, answers, strict=True):
            for position, score in answer:
                if not math.isfinite(score):
                    raise self._error(
                        f"the score of {ids[position]!r} for {query[:60]!r} is {score}; expected a "
                        "finite number. A vector of zeros, as of a query without a known word, has no cosine."
                    )
        return [[(ids[position], float(score)) for position, score in answer] for answer in answers]

    def settings(self) -> dict[str, Any]:
        values = {"retriever": self.retriever, **self._package_version(), **self._declared_values(), **self._identity}
        values |= {} if self.text is None else {"text": self.text}
        return values | ({"id": self._ids.setting} if self._existing else {})

    def size_in_bytes(self) -> int:
        """The index of the corpus, its files or `_bytes` in memory; the size of an existing collection is not known."""
        files = [] if self._folder is None else [file for file in self._folder.rglob("*") if file.is_file()]
        return super().size_in_bytes() + self._bytes + sum(file.stat().st_size for file in files)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        if not self._existing:
            base.checked_index(self._row_ids, self.label)
        vectors = np.empty((len(queries), 0), np.float32)
        if self._source is not None:
            vectors = self._source.model_vectors(queries) if self._existing else self._source.embed(queries)
        return [self._answer(query, vector, k) for query, vector in zip(queries, vectors, strict=True)]

    def _answer(self, query: str, vector: Vectors, k: int) -> Any:
        """The answer of `_search`; the error of an existing collection has its target."""
        try:
            return self._search(query, vector, k)
        except SteelyardError:
            raise
        except Exception as error:
            if not self._existing:
                raise
            target = self._identity.get("target")
            raise RetrieverError(masked(f"{self.label}: {target}: {error_text(error)}")) from error

    def _build(self, documents: CheckedCorpus, vectors: Vectors, kept: Kept | None) -> None:
        """Index the documents by their positions; `kept` tells which of them the filter keeps."""
        raise NotImplementedError

    def _search(self, query: str, vector: Vectors, k: int) -> Any:
        """The best k (position, score) pairs of own documents, or the answer of an existing collection."""
        raise NotImplementedError


class VectorEngine(Engine):
    """A search engine for vectors, of a dense retriever or of a model."""

    embeds_queries: ClassVar[bool] = False
    """Whether an existing collection can be searched by texts, without a model."""

    of: Any = setting("the dense retriever whose vectors are used, such as `dense`", default=None)
    model: Any = setting("the model as for `dense`, instead of `of`", default=None)
    vectors: Any = setting("the vectors of the documents as for `dense`, instead of `of`", default=None)
    filter: Any = setting("search only among some of the documents, as for `dense`", default=None, only="corpus")

    def _set_up(self) -> None:
        super()._set_up()
        self._source = self._vector_source()
        describe_filter(self.filter, self.label)

    def settings(self) -> dict[str, Any]:
        values = super().settings()
        if self._source is not None:
            values["of"] = {key: value for key, value in self._source.settings().items() if key != "filter"}
        return values | describe_filter(self.filter, self.label)

    def _vector_source(self) -> Dense | None:
        """The embeddings: those of another dense retriever (`of`), of a model, or of a file."""
        if self._existing and self.of is None and self.model is None and self.vectors is None:
            if self.embeds_queries:
                return None
            raise self._error(
                "an existing collection needs `model`, the model that made its vectors, so that "
                "questions are embedded by the same one: a name of sentence-transformers, or "
                "`package.module:attribute` of a function from texts to vectors."
            )
        if self.of is None:
            model = "lsa" if self.model is None else self.model
            return Dense(model=model, vectors=self.vectors, folder=self.folder, name=self.label)
        if self.model is not None or self.vectors is not None:
            raise self._error("it has `of` and also `model` or `vectors`; expected one of them.")
        source = from_spec(self.of)
        if not isinstance(source, Dense):
            raise self._error(f"`of` is {source.label}, which has no vectors; expected a dense retriever.")
        return source


def found_rows(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Rows of id and score, and of the text if it was selected, as pairs or records."""
    return [{"id": row[0], "score": row[1], "text": row[2]} if len(row) > 2 else tuple(row) for row in rows]


def private_copy(path: Path, owner: object, *others: Path) -> Path:
    """A copy of a database in a temporary folder, for an engine that writes to it; `others` lie beside it."""
    copies = temporary_folder("copy", owner)
    for source in (path, *others):
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, copies / source.name)
    return copies / path.name


class DatabaseEngine(VectorEngine):
    """A vector database whose target has an address, a client, or a name of one."""

    api_key: str | None = setting(default=None, only="target")

    def _set_up(self) -> None:
        if self._existing:
            secrets, self._address = self._opened([{"api_key": self.api_key}, self.target])
            self._key = secrets["api_key"]
        super()._set_up()

    def _is_url(self) -> bool:
        return isinstance(self._address, str) and "://" in self._address
