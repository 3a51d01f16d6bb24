"""The sentence encoder all-MiniLM-L6-v2, run by numpy from the weights of a local folder.

A BERT of six layers (Devlin et al., 2019; Wang et al., 2020), the mean of its last states taken as the text's
vector. Plain matrix products do, so neither torch nor a runtime is needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_BATCH_TOKENS = 8192
_MASKED = np.float32(-1e9)


class MiniLM:
    """Texts in, vectors out. Texts are cut to as many tokens as the model was trained on (256)."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        limits = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = np.float32(config["layer_norm_eps"])
        self._weights: dict[str, Floats] = load_file(folder / "model.safetensors")
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(int(limits["max_seq_length"]))
        self._tokenizer.no_padding()

    def __call__(self, texts: Sequence[str]) -> Floats:
        """A row per text."""
        tokens = [found.ids for found in self._tokenizer.encode_batch(list(texts))]
        vectors = np.zeros((len(texts), self._weights["embeddings.LayerNorm.weight"].shape[0]), np.float32)
        # Texts of like length go together, so that little is padded.
        order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
        while order:
            longest = len(tokens[order[-1]])
            batch = order[-max(1, _BATCH_TOKENS // longest) :]
            del order[-len(batch) :]
            ids = np.zeros((len(batch), longest), np.int64)
            mask = np.zeros((len(batch), longest), np.float32)
            for row, place in enumerate(batch):
                ids[row, : len(tokens[place])] = tokens[place]
                mask[row, : len(tokens[place])] = 1
            vectors[batch] = self._encode(ids, mask)
        return vectors

    def _encode(self, ids: npt.NDArray[np.int64], mask: Floats) -> Floats:
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
        mean: Floats = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return mean

    def _layer(self, states: Floats, hidden: Floats, at: str) -> Floats:
        from scipy.special import erf

        query, key, value = (
            self._split(self._linear(states, f"{at}attention.self.{part}")) for part in _PARTS
        )
        scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[3])) + hidden
        scores = np.exp(scores - scores.max(axis=3, keepdims=True))
        mixed = (scores / scores.sum(axis=3, keepdims=True)) @ value
        joined = mixed.swapaxes(1, 2).reshape(states.shape)
        attended = self._linear(joined, f"{at}attention.output.dense") + states
        attended = self._normed(attended, f"{at}attention.output.LayerNorm")
        wide = self._linear(attended, f"{at}intermediate.dense")
        wide = wide * np.float32(0.5) * (1 + erf(wide * np.float32(np.sqrt(0.5))))
        return self._normed(self._linear(wide, f"{at}output.dense") + attended, f"{at}output.LayerNorm")

    def _linear(self, states: Floats, at: str) -> Floats:
        product: Floats = states @ self._weights[f"{at}.weight"].T + self._weights[f"{at}.bias"]
        return product

    def _split(self, states: Floats) -> Floats:
        texts, length, width = states.shape
        heads: Floats = states.reshape(texts, length, self._heads, width // self._heads).swapaxes(1, 2)
        return heads

    def _normed(self, states: Floats, at: str) -> Floats:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._epsilon)
        normed: Floats = centred / spread * self._weights[f"{at}.weight"] + self._weights[f"{at}.bias"]
        return normed


_PARTS = ("query", "key", "value")
