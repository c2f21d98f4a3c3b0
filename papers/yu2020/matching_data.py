"""A set as the systems of Yu and Allan 2020 read it: content words and their vectors.

Vectors of two languages in one space are made of training pairs, given, or rotated into it. A
rotation needs a dictionary, which is mined from pairs. Schönemann, "A Generalized Solution of the
Orthogonal Procrustes Problem", 1966; as in Smith et al., "Offline Bilingual Word Vectors,
Orthogonal Transformations and the Inverted Softmax", ICLR 2017.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES, RaggedStore, TokenizedSet
from tf_smoothclir.data.word_places import occurrences
from tf_smoothclir.interaction.inputs import InteractionTexts, padded_ids
from tf_smoothclir.interaction.networks.base import WordTables, unit_rows
from tf_smoothclir.interaction.reranker import frequency_weights
from tf_smoothclir.lexical.sparse_tables import kept_entries
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.word_vectors import WordVectors, given_vectors
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.papers.laboratory.translated import Collection, by_nearest, literal
from tf_smoothclir.papers.yu2020.options import MAPPED, MOST_COMMON, PAIRS, MatchingOptions
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.text.vocabulary import PADDING_ID, UNKNOWN_ID
from tf_smoothclir.utils.errors import input_error

_WHOLE = 1 << 30, 1 << 30
_FIRST_ALONE = 0x0E00  # Thai, and after it all that has no spaces: one character may be a word
_DIM = 300  # as in the paper: unrelated words have a cosine of 1 / √300 = 0.06 or so
_LEAST_PAIRS = 2
LEAST_COUNT = 5  # pairs that have both words of an entry


class MatchingData:
    """A set, its word vectors, and role -> `[vocabulary]` bool, the content words."""

    def __init__(
        self, tokenized_set: TokenizedSet, settings: RunSettings, options: MatchingOptions
    ):
        self.retrieval_set = tokenized_set.retrieval_set
        self._tokenized_set, self._settings = tokenized_set, settings
        counted = {
            "query": self.retrieval_set.queries_in("train"),
            "document": np.arange(len(self.retrieval_set.document_ids)),
        }
        self.content = {
            role: content_words(
                self.vocabulary(role), tokenized_set.tokens(role), counted[role], MOST_COMMON[role]
            )
            for role in ROLES
        }
        self.vectors = word_vectors(
            options.word_vectors, settings, tokenized_set, self._texts(self.content)
        )

    def vocabulary(self, role: str) -> list[str]:
        """The words of "query" or "document"; a word's place is its id."""
        return self._tokenized_set.vocabulary(role)

    @functools.cached_property
    def _lexical(self) -> LexicalTexts:
        """The set with all of its words."""
        return LexicalTexts(self._tokenized_set, self._settings.text.max_query_tokens)

    @functools.cached_property
    def translation(self) -> sp.csr_array:
        """`[query words, document words]`: the nearest content word, else the same spelling."""
        vectors, spelling = self.vectors, self._lexical.spelling
        occurring = (self.collection.occurrences > 0) & self.content["document"]
        return by_nearest(vectors.queries, vectors.documents, occurring, spelling)

    @property
    def untranslated(self) -> sp.csr_array:
        """`[query words, document words]`: every word stays as it is spelled."""
        return literal(self._lexical.spelling)

    @functools.cached_property
    def collection(self) -> Collection:
        """The content words of the documents."""
        words = self._lexical.documents
        kept = self.content["document"][words.ids]
        ends = np.append(0, np.cumsum(kept))
        return Collection.of(Words(words.ids[kept], ends[words.offsets], words.size))

    @property
    def queries(self) -> sp.csr_array:
        """`[queries, query words]`, counts of content words, those of documents alone too."""
        content, counts = np.concatenate([*self.content.values()]), self._lexical.queries
        return kept_entries(counts, content[counts.indices])

    @property
    def frequency_weights(self) -> np.ndarray:
        """`[query words]` float32, how much words count by their rarity."""
        return frequency_weights(self._tokenized_set)

    def tables(self, *, translates: bool) -> WordTables:
        """The vectors for networks."""
        queries, documents = self.vectors.queries, self.vectors.documents
        if translates:
            queries = (self.translation @ documents)[: len(queries)]
        return WordTables(queries, documents)

    def texts(self, tables: WordTables, lengths: tuple[int, int] = _WHOLE) -> InteractionTexts:
        """The content words that have a vector, cut to the first ones of either role."""
        kept = {
            role: self.content[role] & np.asarray(table).any(axis=1)
            for role, table in zip(ROLES, tables.both)
        }
        return self._texts(kept, lengths)

    def _texts(self, kept, lengths: tuple[int, int] = _WHOLE) -> InteractionTexts:
        stores = map(self._tokenized_set.tokens, ROLES)
        return InteractionTexts(*map(padded_ids, stores, lengths, map(kept.get, ROLES)))


def content_words(
    vocabulary: Sequence[str], store: RaggedStore, rows: np.ndarray, most_common: float
) -> np.ndarray:
    """`[vocabulary]` bool, the content words, counted on `[texts]` rows; unknown words stay."""
    # Those with a letter or a digit and more than one character (but of scripts without spaces)
    # that not too many texts contain.
    values = np.asarray(store.values)
    owners = np.repeat(np.arange(len(store)), store.lengths)
    counted = np.isin(owners, rows) & (values < len(vocabulary))
    pairs = np.unique(owners[counted] * np.int64(len(vocabulary)) + values[counted])
    frequency = np.bincount(pairs % len(vocabulary), minlength=len(vocabulary))
    kept = np.array(
        [
            any(map(str.isalnum, word)) and (len(word) > 1 or ord(word) >= _FIRST_ALONE)
            for word in vocabulary
        ],
        bool,
    )
    kept &= frequency <= most_common * max(1, len(rows))
    kept[PADDING_ID], kept[UNKNOWN_ID] = False, True
    return kept


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
    queries = word_counts(texts.queries[lists.pair_query_rows[best]], sizes[0]).sign()
    documents = word_counts(texts.documents[lists.document_rows[best]], sizes[1]).sign()
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
