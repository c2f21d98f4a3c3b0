"""Small matrices for the lexical tests."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.words import Words


def words(*texts: list[int], size: int) -> Words:
    """Texts of word ids."""
    offsets = np.cumsum([0, *map(len, texts)])
    ids = np.array([word for text in texts for word in text], np.int32)
    return Words(ids, offsets.astype(np.int64), size)


def counts(*texts: list[int], size: int) -> sp.csr_array:
    """`[texts, size]`, how often each word stands in each text."""
    return words(*texts, size=size).matrix()


def shares(*texts: list[int], size: int) -> sp.csr_array:
    """`[texts, size]`, the share that each word has of each text."""
    return words(*texts, size=size).matrix(np.ones_like)
