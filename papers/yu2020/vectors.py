"""Word vectors of two languages in one space: made of training pairs, given, or rotated into it.

A rotation needs a dictionary, which is mined from pairs. Schönemann, "A Generalized Solution of
the Orthogonal Procrustes Problem", 1966; as in Smith et al., "Offline Bilingual Word Vectors,
Orthogonal Transformations and the Inverted Softmax", ICLR 2017.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.data.word_places import occurrences
from tf_smoothclir.interaction.inputs import InteractionTexts
from tf_smoothclir.interaction.networks.base import unit_rows
from tf_smoothclir.lexical.word_vectors import WordVectors, given_vectors
from tf_smoothclir.papers.yu2020.options import MAPPED, PAIRS
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils.errors import input_error

_DIM = 300  # as in the paper: unrelated words have a cosine of 1 / √300 = 0.06 or so
_LEAST_PAIRS = 2
LEAST_COUNT = 5  # pairs that have both words of an entry


def word_vectors(
    kind: str, settings: RunSettings, tokenized_set: TokenizedSet, texts: InteractionTexts
) -> WordVectors:
    """The vectors of both vocabularies, of what training may see; zeros for words without one."""
    if kind == PAIRS:
        return WordVectors(*(_of_pairs(settings, tokenized_set, role) for role in ROLES))
    vectors = given_vectors(settings, tokenized_set)
    if kind != MAPPED:
        return vectors
    sizes = len(vectors.queries), len(vectors.documents)
    return aligned(vectors, mined_dictionary(tokenized_set.retrieval_set, texts, sizes))


def _of_pairs(settings: RunSettings, tokenized_set: TokenizedSet, role: str) -> np.ndarray:
    """Random indexing of the training pairs; zeros for words that too few pairs have."""
    # Two words that stand in one pair alone, and in the same, would be the same word.
    size, seed = len(tokenized_set.vocabulary(role)), settings.training.seed
    places = occurrences(tokenized_set, (role,), size=size, dim=_DIM, seed=seed)
    return np.where(places.counts[:, np.newaxis] >= _LEAST_PAIRS, places.vectors(), 0)


def word_counts(ids: np.ndarray, size: int) -> sp.csr_array:
    """`[texts, size]` float32 counts of known words of `[texts, longest]` ids."""
    texts, places = np.nonzero((ids > UNKNOWN_ID) & (ids < size))
    ones = np.ones(len(texts), np.float32)
    counts = sp.csr_array((ones, (texts, ids[texts, places])), shape=(len(ids), size))
    counts.sum_duplicates()
    return counts


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
        word_counts(ids[rows], size).sign() for (rows, ids), size in zip(pairs, sizes)
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


def _centred(vectors: np.ndarray) -> np.ndarray:
    units = unit_rows(np.asarray(vectors, np.float32))
    known = units.any(axis=1)
    units[known] -= units[known].sum(axis=0) / max(1, known.sum())
    return unit_rows(units)
