"""Exact top-k by inner product, in chunks of documents."""

from collections.abc import Iterable

import numpy as np
import tensorflow as tf

DOCUMENTS_PER_CHUNK = 1 << 17
_SAME_SCORE = 1e-6  # scores closer than this may come in either order


def top_k(
    queries: tf.Tensor | np.ndarray, documents: tf.Tensor | np.ndarray, depth: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """The largest inner products: scores and positions, `[queries, depth]`, best first."""
    # Only the scores of one chunk are in memory at a time. Among equal scores, the document at the
    # lower position comes first: sort the documents by a tie rule beforehand to apply that rule.
    scores, positions = tf.zeros([len(queries), 0]), tf.zeros([len(queries), 0], tf.int32)
    for begin in range(0, len(documents), DOCUMENTS_PER_CHUNK):
        chunk = documents[begin : begin + DOCUMENTS_PER_CHUNK]
        products = tf.matmul(queries, chunk, transpose_b=True)
        best, places = tf.math.top_k(products, min(depth, len(chunk)))
        scores = tf.concat([scores, best], axis=1)
        positions = tf.concat([positions, begin + places], axis=1)
        scores, kept = tf.math.top_k(scores, min(depth, scores.shape[1]))
        positions = tf.gather(positions, kept, batch_dims=1)
    return scores, positions


def recall(
    queries: np.ndarray, documents: np.ndarray, found: Iterable[np.ndarray], depth: int
) -> float:
    """The share of the exact best documents that a search has found, on average."""
    # A found document counts if its score reaches that of the last of the exact best, so that
    # ties and duplicates do not look like errors.
    depth = min(depth, len(documents))
    best, _ = top_k(queries, documents, depth)
    reached = [
        np.count_nonzero(documents[rows] @ query >= last - _SAME_SCORE)
        for query, rows, last in zip(queries, found, best.numpy()[:, -1])
    ]
    return float(np.mean(reached) / depth)
