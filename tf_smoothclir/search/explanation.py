"""Explanation of a dense score: the share of each word of a text in the SCS with another text.

The average-pooling tower turns a text with word vectors e_1 ... e_n into f = tanh(m), where m is
their mean. Its score with a smooth-normalised vector v of the other side is

    r = v · f / (‖f‖ + ε).

Around m, tanh has the slope 1 - tanh(m)² in each coordinate, and word i enters m as e_i / n. To
first order, its share is therefore

    c_i = v · ((1 - tanh(m)²) ∘ e_i / n) / (‖f‖ + ε).

The length ‖f‖ + ε is held constant. SCS hardly depends on the length of f, so slopes through it
would tell which words turn f towards v, and would sum to nearly zero whatever the score. Because
tanh is not linear, the shares leave a remainder:

    r = Σ c_i + remainder,  remainder = v · (tanh(m) - (1 - tanh(m)²) ∘ m) / (‖f‖ + ε).

The remainder is small where the numbers in m are small; it tells how far to trust the shares. The
words of a query are explained in the same way, with the sides exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tf_smoothclir.encoder.encoder import TokenVectors
from tf_smoothclir.index.encoding import encode_texts
from tf_smoothclir.protocols.text_search import Explanation, WordShare
from tf_smoothclir.utils.errors import input_error


class ExplainedTower(Protocol):
    """A tower that says what its vectors are made of; `Encoder` is one."""

    epsilon: float

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The smooth-normalised vectors of texts, `[texts, dim]` float32."""

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The words of each text with their vectors."""


class SavedTower:
    """An `ExplainedTower` in TensorFlow."""

    def __init__(self, model, epsilon: float):
        self._model, self.epsilon = model, epsilon

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts; see `ExplainedTower`."""
        return encode_texts(self._model.signatures["serving_default"], texts)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The words of each text with their vectors; see `ExplainedTower`."""
        if not hasattr(self._model, "words"):
            raise input_error(
                "--explain",
                "the exported tower cannot say what its words add to a score: only average pooling"
                " can",
                "Export a run with --tower=average_pooling, or leave --explain out",
            )
        import tensorflow as tf  # here, because searches need it no earlier, if at all

        found = self._model.words(tf.constant(list(texts), tf.string))
        words = [word.decode() for word in found["words"].numpy().tolist()]
        vectors, ends = found["vectors"].numpy(), np.cumsum(found["lengths"].numpy())
        parts = map(slice, [0, *ends[:-1]], ends)
        return [TokenVectors(words[own], vectors[own]) for own in parts]


def explain(text: TokenVectors, other: np.ndarray, epsilon: float) -> Explanation:
    """Explains the score of a text.

    Args:
        other: `[dim]`, smooth-normalised vector of the other side.
    """
    if not text.words:
        return Explanation(0.0, (), 0.0)
    vectors, other = text.vectors.astype(np.float64), other.astype(np.float64)
    pooled = np.tanh(vectors.mean(axis=0))
    length = np.linalg.norm(pooled) + epsilon
    score = float(pooled @ other / length) if length else 0.0
    slope = (1 - pooled**2) * other / (len(vectors) * length) if length else np.zeros_like(pooled)
    shares: dict[str, list[float]] = {}
    for word, share in zip(text.words, (vectors @ slope).tolist()):
        shares.setdefault(word, []).append(share)
    words = [WordShare(word, math.fsum(values)) for word, values in shares.items()]
    words.sort(key=lambda word: -word.share)
    return Explanation(score, tuple(words), score - math.fsum(word.share for word in words))
