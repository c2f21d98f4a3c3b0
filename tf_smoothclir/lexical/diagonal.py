"""The diagonal of pairs: where both texts say the same, their words stand in about the same order.

Dyer, Chahuneau and Smith, "A Simple, Fast, and Effective Reparameterization of IBM Model 2", NAACL
2013. A query word at a and a document word at b, in parts of their texts, stand for each other the
more probably, the nearer these are. EM reads for p(t | d), whose scale cancels,

    p(t | d) exp(-TENSION |a - b|).

Nobody says whether texts are parallel, as verses and messages are, or say something somewhere, as
pages do. The likelihood of the pairs does: this raises it only where they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tf_smoothclir.utils import sparse as sp

TENSION = 4.0  # that of fast_align; with 8, mates of verses are found less often


class Diagonal(NamedTuple):
    """Where words stand in pairs of texts, by `Words.places`."""

    queries: sp.csr_array  # `[pairs, query words]`, with the entries of the words of queries
    documents: sp.csr_array  # `[pairs, document words]`, the same of documents

    def factors(
        self, queries: np.ndarray, documents: np.ndarray, of_each: np.ndarray
    ) -> np.ndarray:
        """What alignments count, `[alignments]` float32, by entries of the two matrices."""
        # `queries` are the words of all pairs; `of_each` is how many alignments each has.
        factors = np.repeat(self.queries.data[queries], of_each)
        factors -= self.documents.data[documents]
        np.abs(factors, out=factors)
        factors *= -TENSION
        return np.exp(factors, out=factors)
