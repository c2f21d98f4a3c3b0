"""The recall of an index: how much of the exact ranking it finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.index.manifest import Recall
from tf_smoothclir.index.ranker import Ranker

RECALL_QUERIES, _DEPTH = 1000, 10
_SEED = 13


def measured_recall(
    ranker: Ranker, vectors: np.ndarray, query_vectors: Callable[[], np.ndarray | None]
) -> Recall:
    """Measures an index against the exact ranking.

    Args:
        vectors: `[documents, dim]` float32, as the document tower made them.
        query_vectors: Called only for an approximate index. Returns `[queries, dim]`, or None to
            measure with vectors of documents instead.
    """
    if ranker.exact:
        return Recall(1.0, _DEPTH, 0, "exact")
    from tf_smoothclir.ops.top_k import recall  # here, because searches need no TensorFlow

    queries, kind = query_vectors(), "queries of the training run"
    if queries is None:
        sample = permutation(ranker.documents, _SEED)[:RECALL_QUERIES]
        queries, kind = np.asarray(vectors[sample]), "documents in place of queries"
    queries = np.ascontiguousarray(queries, np.float32)
    found = (positions for positions, _ in ranker.rank(queries, _DEPTH))
    return Recall(recall(queries, vectors, found, _DEPTH), _DEPTH, len(queries), kind)
