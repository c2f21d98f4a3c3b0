"""Vectors of two languages, trained apart, in one space: a dictionary from pairs, and Procrustes.

Schönemann, "A Generalized Solution of the Orthogonal Procrustes Problem", 1966; as in Smith et al.,
"Offline Bilingual Word Vectors, Orthogonal Transformations and the Inverted Softmax", ICLR 2017.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.interaction.inputs import InteractionTexts
from tf_smoothclir.interaction.networks.base import unit_rows
from tf_smoothclir.lexical.word_vectors import WordVectors
from tf_smoothclir.papers.yu2020.mean_vectors import word_counts
from tf_smoothclir.utils.errors import input_error

LEAST_COUNT = 5  # pairs that have both words of an entry


def mined_dictionary(
    retrieval_set: RetrievalSet, texts: InteractionTexts, sizes: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """`[entries]` query and document ids of words that translate each other, by training pairs."""
    # Two words are an entry if they occur together in at least `LEAST_COUNT` pairs of the highest
    # grade, and each is the other's best by the correlation (φ) of occurring in the same pairs.
    lists = candidate_lists(retrieval_set, "train", negatives=0, seed=0)
    best = lists.grades == retrieval_set.num_grades - 1
    pairs = (
        (lists.pair_query_rows[best], texts.queries),
        (lists.document_rows[best], texts.documents),
    )
    queries, documents = (
        _binary(word_counts(ids[rows], size)) for (rows, ids), size in zip(pairs, sizes)
    )
    both = sp.coo_array(queries.T @ documents)
    enough = both.data >= LEAST_COUNT
    rows, columns = both.row[enough], both.col[enough]
    joint, pairs_in_all = both.data[enough].astype(np.float64), queries.shape[0]
    of_query, of_document = (np.asarray(m.sum(axis=0), np.float64) for m in (queries, documents))
    of_row, of_column = of_query[rows], of_document[columns]
    spread = np.sqrt(of_row * (pairs_in_all - of_row) * of_column * (pairs_in_all - of_column))
    phi = np.divide(
        joint * pairs_in_all - of_row * of_column, spread, out=np.zeros(len(rows)), where=spread > 0
    )
    mutual = (phi > 0) & (phi == _best(phi, rows, sizes[0]))
    mutual &= phi == _best(phi, columns, sizes[1])
    return rows[mutual], columns[mutual]


def aligned(vectors: WordVectors, dictionary: tuple[np.ndarray, np.ndarray]) -> WordVectors:
    """Maps the vectors of query words into the space of document words, by a rotation."""
    # Both are brought to length 1, centred and brought to length 1 again. With X and Y for the
    # vectors of the dictionary, the rotation is U Vᵀ for U S Vᵀ = XᵀY.
    queries, documents = _centred(vectors.queries), _centred(vectors.documents)
    rows, columns = dictionary
    usable = queries[rows].any(axis=1) & documents[columns].any(axis=1)
    if not usable.any():
        raise input_error(
            "--word_vectors=mapped",
            f"none of the {len(rows)} words of the mined dictionary has a vector in both languages",
            "Give vectors of these languages, lower-cased, or use --word_vectors=pairs",
        )
    left, _, right = np.linalg.svd(queries[rows[usable]].T @ documents[columns[usable]])
    return WordVectors(queries @ (left @ right), documents)


def _best(values: np.ndarray, owners: np.ndarray, size: int) -> np.ndarray:
    """The largest value of each value's owner."""
    best = np.full(size, -np.inf)
    np.maximum.at(best, owners, values)
    return best[owners]


def _binary(counts: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones_like(counts.data), counts.indices, counts.indptr), counts.shape)


def _centred(vectors: np.ndarray) -> np.ndarray:
    units = unit_rows(np.asarray(vectors, np.float32))
    known = units.any(axis=1)
    units[known] -= units[known].sum(axis=0) / max(1, known.sum())
    return unit_rows(units)
