"""A sentence embedding model of the BERT kind on numpy, without a framework and without a download.

    text ─WordPiece─► ids ─► embeddings ─► N x (attention, feed-forward) ─► mean over tokens ─► length 1

Devlin et al. 2018 for the network, Reimers & Gurevych 2019 for the mean over its tokens. It reads the files that
sentence-transformers publishes (`model.safetensors`, `tokenizer.json`, `config.json`), such as those of
all-MiniLM-L6-v2. This module needs the extra `brainq[embeddings]`.
"""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

# By name, and so without their types: the extra is not installed where brainq is type-checked.
np: Any = import_module("numpy")
load_file: Any = import_module("safetensors.numpy").load_file
Tokenizer: Any = import_module("tokenizers").Tokenizer
Array: TypeAlias = Any  # a numpy array of 32-bit floats
MAX_TOKENS = 128  # the training length of all-MiniLM-L6-v2; the rest of a longer text is not read


class SentenceModel:
    """A model that maps texts to vectors of length 1. It is read-only after its creation, so threads may share it.

    Raises FileNotFoundError, ValueError or KeyError if `directory` does not hold such a model.
    """

    def __init__(self, directory: Path) -> None:
        config = json.loads((directory / "config.json").read_text())
        if config["model_type"] != "bert":
            raise ValueError(f"{directory} holds a {config['model_type']!r} model, not a BERT")
        self._layers: int = config["num_hidden_layers"]
        self._heads: int = config["num_attention_heads"]
        self._epsilon: float = config["layer_norm_eps"]
        self._weights: dict[str, Array] = load_file(directory / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(min(MAX_TOKENS, config["max_position_embeddings"]))

    def embed(self, text: str) -> Array:
        """Return the vector of `text`. It takes some 40 ms of CPU for 30 tokens of all-MiniLM-L6-v2, in proportion to
        their number."""
        ids: list[int] = self._tokenizer.encode(text).ids
        weights = self._weights
        x = self._norm(
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][: len(ids)]
            + weights["embeddings.token_type_embeddings.weight"][0],
            "embeddings.LayerNorm",
        )
        for number in range(self._layers):
            layer = f"encoder.layer.{number}"
            attended = self._linear(self._attend(x, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
            x = self._norm(x + attended, f"{layer}.attention.output.LayerNorm")
            fed = self._linear(_gelu(self._linear(x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
            x = self._norm(x + fed, f"{layer}.output.LayerNorm")
        mean = x.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _attend(self, x: Array, name: str) -> Array:
        tokens, width = x.shape
        size = width // self._heads
        query, key, value = (
            self._linear(x, f"{name}.{part}").reshape(tokens, self._heads, size).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(size)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ value).transpose(1, 0, 2).reshape(tokens, width)

    def _linear(self, x: Array, name: str) -> Array:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + self._epsilon)
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(x: Array) -> Array:
    """Return the GELU of `x` in Hendrycks & Gimpel's tanh form. numpy has no erf, and the difference is below 0.001."""
    # x * x * x and not x**3, which is twenty times slower for floats in numpy.
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
