"""Probabilistic structured queries: documents as expected words of the query language.

Darwish and Oard, "Probabilistic Structured Query Methods", SIGIR 2003, with the mixture of Xu and
Weischedel, "Cross-lingual Information Retrieval Using Hidden Markov Models", EMNLP 2000, as the
public code of PSQ has it (github.com/hltcoe/PSQ):

    score(q, d) = Σ_w n(w, q) log(1 + (1 - α) P(w | d) / (α P(w)))
    P(w | d) = (1 - β) Σ_t T(w | t) p(t | d) + β p(w | d)

P(w) is how often a query word is w; the last p is of the document word spelled like w, and of
lookalikes (`related_words`) by how much they are like it. Of a word that few training queries have,
documents tell how frequent it is, or `in` would count as much as a name.
"""

import functools
import operator
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.lexical.sparse_tables import by_rows, kept_entries
from tf_smoothclir.utils import sparse as sp

# α, the share of the language at large, and β, that of words that are spelled alike: those of the
# public code's experiments, near enough. Others rank no better on any set that they were tried on.
ALPHA, BETA = 0.03, 0.3
_UNSEEN = 0.1  # what each word counts besides its occurrences in training queries
# Times its share of the words of documents, a word of no training query is expected in a query, and
# one of n by 1/sqrt(1 + n) of that. More than once, since documents have a word or not, where its
# translations are many. From 1 to 10, test queries of eleven sets ranked the same within chance;
# queries with words around them that training queries lack, as in `what is the ...?`, better the
# higher it is.
_OF_DOCUMENTS = 3


def spelling_mixed_in(
    table: sp.csr_array, alike: sp.csr_array, words: np.ndarray | None = None
) -> sp.csr_array:
    """M(w | t) = (1 - β) T(w | t) + β [w is spelled like t], `[document words, query words]`."""
    # `alike` is of `same_spelling` and `lookalikes`; `words` are the only query words to have any.
    mixed = sp.csr_array((1 - BETA) * table + BETA * alike)
    if words is None:
        return mixed
    asked = np.zeros(mixed.shape[1], bool)
    asked[words] = True
    return kept_entries(mixed, asked[mixed.indices])


def odds(background: np.ndarray) -> np.ndarray:
    """What P(w | d) is multiplied by: (1 - α) / (α P(w)), `[query words]`."""
    return (1 - ALPHA) / ALPHA / background


def background(queries: sp.csr_array) -> np.ndarray:
    """P(w), `[query words]` float32, by `[queries, query words]` counts."""
    # Each word counts a little more than it occurs, so that words that never occurred have a share.
    counts = np.asarray(queries.sum(axis=0)).ravel() + _UNSEEN
    occurring = np.count_nonzero(counts > _UNSEEN)
    return (counts / (counts[counts > _UNSEEN].sum() + _UNSEEN * max(1, occurring))).astype(
        np.float32
    )


def by_documents(
    background: np.ndarray, counts: np.ndarray, occurrences: np.ndarray, spelling: sp.csr_array
) -> np.ndarray:
    """P(w), of words of few `[query words]` counts by their `[document words]` occurrences."""
    # A word that one document has is no less telling in a small collection.
    others = np.maximum(0, occurrences - 1) / max(1, occurrences.sum())
    expected = _OF_DOCUMENTS * (others @ spelling) / np.sqrt(1 + counts)
    return np.maximum(background, expected).astype(np.float32)


def impacts(
    fields: Sequence[sp.csr_array],
    mixed: sp.csr_array,
    background: np.ndarray,
    weights: np.ndarray | None = None,
) -> sp.csr_array:
    """What a query word adds to the score of a document, `[documents, query words]` float32."""
    # Of each field, p(t | d), `[documents, document words]`; M(w | t); P(w); and, if they are not
    # 1, `[fields, query words]` weights.
    of_words = odds(background)

    def of_field(rows: slice, field: int) -> sp.csr_array:
        expected = sp.csr_array(fields[field][rows] @ mixed, dtype=np.float32)
        expected.data *= of_words[expected.indices]
        np.log1p(expected.data, out=expected.data)
        if weights is not None:
            expected.data *= weights[field].astype(np.float32)[expected.indices]
            expected.eliminate_zeros()
        return expected

    def of_rows(rows: slice) -> sp.csr_array:
        parts = (of_field(rows, field) for field in range(len(fields)))
        return functools.reduce(operator.add, parts)

    return by_rows(of_rows, fields[0].shape[0])
