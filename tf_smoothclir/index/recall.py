"""The recall of an index: how much of the exact ranking it finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.index.manifest import Recall
from tf_smoothclir.index.ranker import RECALL_DEPTH, Ranker

RECALL_QUERIES = 1000
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
        return Recall(1.0, RECALL_DEPTH, 0, "exact")
    queries, kind = query_vectors(), "queries of the training run"
    if queries is None:
        sample = permutation(ranker.documents, _SEED)[:RECALL_QUERIES]
        queries, kind = np.asarray(vectors[sample]), "documents in place of queries"
    return Recall(ranker.recall(queries, vectors), RECALL_DEPTH, len(queries), kind)
