"""Exact top-k by inner product, in chunks of documents."""

from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

DOCUMENTS_PER_CHUNK = 1 << 17
_SAME_SCORE = 1e-6  # scores closer than this may come in either order


def top_k(
    queries: tf.Tensor, chunks: Iterable[tf.Tensor | np.ndarray], depth: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """The largest inner products: scores and positions, `[queries, depth]`, best first."""
    # `chunks` are the documents, `[n, dim]` each; only one `[queries, n]` matrix of scores is
    # in memory at a time. Among equal scores, the document at the lower position comes first:
    # sort the documents by a tie rule beforehand to apply that rule. Runs eagerly or in a
    # `tf.function`; there, the chunks need static lengths, and the loop over them is unrolled.
    best_scores, best, begin = None, None, 0
    for chunk in chunks:
        size = int(chunk.shape[0])
        scores = tf.matmul(queries, chunk, transpose_b=True)
        scores, positions = tf.math.top_k(scores, min(depth, size))
        positions += begin
        if best is not None:
            scores = tf.concat([best_scores, scores], axis=1)
            positions = tf.concat([best, positions], axis=1)
            scores, kept = tf.math.top_k(scores, min(depth, scores.shape[1]))
            positions = tf.gather(positions, kept, batch_dims=1)
        best_scores, best, begin = scores, positions, begin + size
    if best is None:
        raise ValueError("chunks: there are no documents to rank. Pass at least one chunk.")
    return best_scores, best


def in_chunks(documents: tf.Tensor | tf.Variable | np.ndarray) -> Iterator[tf.Tensor | np.ndarray]:
    """Yields `[at most DOCUMENTS_PER_CHUNK, dim]` pieces of `[documents, dim]`, in order."""
    size = int(documents.shape[0])
    if size <= DOCUMENTS_PER_CHUNK:  # a slice of a variable would copy it
        yield documents
        return
    for begin in range(0, size, DOCUMENTS_PER_CHUNK):
        yield documents[begin : begin + DOCUMENTS_PER_CHUNK]


def recall(
    queries: np.ndarray, documents: np.ndarray, found: Iterable[np.ndarray], depth: int
) -> float:
    """The share of the exact best documents that a search has found, on average."""
    # A found document counts if its score reaches that of the last of the exact best, so that
    # ties and duplicates do not look like errors.
    depth = min(depth, len(documents))
    best, _ = top_k(queries, in_chunks(documents), depth)
    reached = [
        np.count_nonzero(documents[rows] @ query >= last - _SAME_SCORE)
        for query, rows, last in zip(queries, found, best.numpy()[:, -1])
    ]
    return float(np.mean(reached) / depth)
