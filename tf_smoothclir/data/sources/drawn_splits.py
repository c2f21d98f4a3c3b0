"""Splits of a set that has none of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tf_smoothclir.data.hashing import hash_ids


def drawn_splits(query_ids: Sequence[str], seed: int) -> np.ndarray:
    """`[queries]` int8, an index into `SPLITS` for each judged query.

    They are split 3:1:1 by query (Liu et al. 2020, section 5), by the hashes of their ids.
    """
    order = np.argsort(hash_ids(query_ids, f"split {seed}"), kind="stable")
    splits = np.zeros(len(query_ids), np.int8)
    splits[order[len(order) * 3 // 5 :]] = 1
    splits[order[len(order) * 4 // 5 :]] = 2
    return splits
