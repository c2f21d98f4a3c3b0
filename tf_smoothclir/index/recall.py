"""The recall of an index: how much of the exact ranking it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

import numpy as np

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.index.manifest import Recall
from tf_smoothclir.index.ranker import RECALL_DEPTH, Ranker
from tf_smoothclir.index.segments import Segments

RECALL_QUERIES = 1000
_SEED = 13

QueryVectors = Callable[[], Optional[np.ndarray]]


def measured_recall(ranker: Ranker, segments: Segments, query_vectors: QueryVectors) -> Recall:
    """Measures an index against the exact ranking.

    Args:
        ranker: The ranker over the index.
        segments: The documents of the index.
        query_vectors: Called only for an approximate index. Returns `[queries, dim]`, or None to
            measure with vectors of documents instead.
    """
    if ranker.exact:
        return Recall(1.0, RECALL_DEPTH, 0, "exact")
    vectors, kind = query_vectors(), "queries of the training run"
    if vectors is None:
        sample = permutation(len(segments), _SEED)[:RECALL_QUERIES]
        vectors, kind = segments.vectors(sample), "documents in place of queries"
    return Recall(ranker.recall(vectors), RECALL_DEPTH, len(vectors), kind)
