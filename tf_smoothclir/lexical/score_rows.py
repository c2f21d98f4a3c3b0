"""Scores of all documents at once, row after row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.postings import Postings

# From `[queries]` rows to the scores of all documents, `[queries, documents]` float32.
ScoreRows = Callable[[np.ndarray], np.ndarray]


def lexical_rows(
    queries: sp.csr_array, impacts: sp.csr_array, firsts: np.ndarray | None = None
) -> ScoreRows:
    """Scorer by sums over `[queries, words]` counts and `[documents, words]` impacts.

    With `firsts` of `Words`, impacts are those of passages, and the best one counts.
    """
    postings = Postings.of(impacts, firsts)
    return lambda query_rows: postings.sums(queries[query_rows])
