"""The source probe: a fresh classifier on frozen vectors says how much of the source is left.

The discriminator of a training may name sources badly because it is weak. A classifier that is
trained to the end on fixed vectors has no such excuse.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize
import tensorflow as tf

from tf_smoothclir.data.pipeline import stored_tokens, tower_tokens
from tf_smoothclir.data.ragged_tensors import mapped_tensors
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.papers.li2018.discriminator import SOURCES
from tf_smoothclir.papers.li2018.encoders import Encoders
from tf_smoothclir.papers.li2018.translations import TokenRows

_DECAY = 1e-3  # of squared weights
_ROUNDS = 100
_MOST_QUERIES = 1000


class SourceProbe:
    """Probes the vectors of validation queries, their translations and their best documents."""

    def __init__(self, encoders: Encoders, tokenized_set: TokenizedSet, translations: TokenRows):
        found = tokenized_set.retrieval_set
        of_split = found.splits[found.query_rows] == SPLITS.index("validation")
        best = np.flatnonzero(of_split & (found.grades == found.num_grades - 1))
        _, first = np.unique(found.query_rows[best], return_index=True)
        chosen = best[first][:_MOST_QUERIES]
        queries, documents = found.query_rows[chosen], found.document_rows[chosen]
        ngrams = {role: tokenized_set.ngrams(role) for role in ("query", "document")}
        stores = {
            "query": (mapped_tensors(tokenized_set.tokens("query")), queries, ngrams["query"]),
            "translation": (
                (tf.constant(translations.values), tf.constant(translations.offsets)),
                queries,
                ngrams["document"],
            ),
            "document": (
                mapped_tensors(tokenized_set.tokens("document")),
                documents,
                ngrams["document"],
            ),
        }
        self._towers = encoders.towers
        self._texts = {
            source: tower_tokens(
                stored_tokens(*store, tf.constant(rows, tf.int64)),
                None if of_words is None else mapped_tensors(of_words),
            )
            for source, (store, rows, of_words) in stores.items()
        }

    def __call__(self) -> dict[str, float]:
        """ "source_probe" -> the accuracy with the present weights; nothing of two texts."""
        vectors = [self._towers[source](self._texts[source]).numpy() for source in SOURCES]
        return {"source_probe": round(probe_accuracy(vectors), 6)} if len(vectors[0]) > 1 else {}


def probe_accuracy(vectors: Sequence[np.ndarray]) -> float:
    """How well a logistic regression names the source of vectors that it has not seen.

    The numbers of a vector are standardised. The regression learns from every other row, of all
    sources alike, and is asked about the rest; the mean of both ways round.

    Args:
        vectors: Of each source, `[texts, dim]`; texts of the same row belong together.
    """
    stacked = np.stack(vectors).astype(np.float64)
    flat = stacked.reshape(-1, stacked.shape[2])
    stacked = (stacked - flat.mean(axis=0)) / np.maximum(flat.std(axis=0), 1e-12)
    halves = stacked[:, ::2], stacked[:, 1::2]
    shares = [_share_right(_regression(one), other) for one, other in (halves, halves[::-1])]
    return float(np.mean(shares))


def _regression(vectors: np.ndarray) -> np.ndarray:
    """The weights of a logistic regression, `[dim + 1, sources]`."""
    sources, texts, dim = vectors.shape
    inputs = _with_ones(vectors).reshape(-1, dim + 1)
    targets = np.repeat(np.eye(sources), texts, axis=0)

    def loss(flat):
        weights = flat.reshape(dim + 1, sources)
        logits = inputs @ weights
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        shares /= shares.sum(axis=1, keepdims=True)
        value = -np.mean(np.sum(targets * np.log(shares + 1e-300), axis=1))
        gradient = inputs.T @ (shares - targets) / len(inputs) + 2 * _DECAY * weights
        return value + _DECAY * np.sum(weights**2), gradient.ravel()

    start = np.zeros((dim + 1) * sources)
    found = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ROUNDS}
    )
    return found.x.reshape(dim + 1, sources)


def _share_right(weights: np.ndarray, vectors: np.ndarray) -> float:
    named = (_with_ones(vectors) @ weights).argmax(axis=2)
    return float(np.mean(named == np.arange(len(vectors))[:, np.newaxis]))


def _with_ones(vectors: np.ndarray) -> np.ndarray:
    return np.concatenate([vectors, np.ones((*vectors.shape[:2], 1))], axis=2)
