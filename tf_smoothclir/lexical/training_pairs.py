"""Training pairs of a translation table: judged training queries and documents.

Pairs of the highest grade say the same, word by word. Pairs of lower grades are about the same
things, so words of one text meet related words of the other, wherever they stand: with a small
weight they add translations that the few pairs of the highest grade lack. Of their texts only words
count that stand in at most a tenth of all texts, and of documents only the first 40 words: more
changes nothing, and costs several times as much.
"""

import copy
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.lexical.ibm_model_1 import Alignments, Diagonal, pruned
from tf_smoothclir.lexical.related_words import shared_counts
from tf_smoothclir.lexical.sparse_tables import kept_entries, rows_of_1
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.word_classes import WordClasses, word_classes
from tf_smoothclir.lexical.words import FLAT, PositionProfile, Words
from tf_smoothclir.utils import sparse as sp

# Weights of a pair of a lower grade; one of the highest has 1.
LOWER_GRADES = (0.03, 0.1)
# Shares of what a word counts, in a pair of the highest grade, that both directions agree on.
AGREEMENTS = (0.5, 1.0)
_COMMON = 0.1
_FIRST_WORDS = 40
_LOOKED_AT = 500  # pairs, to see whether texts are parallel
# By which these have to be likelier near the diagonal: of a few hundred pages, chance alone can
# make them so, and texts whose order hardly matters (Kazakh, Japanese) rank as well without it.
_STANDARD_ERRORS = 3.0
_TENSION_OF_THESE = 4.0  # with 2, a page that says it somewhere may pass for parallel
# Of the diagonal, half of fast_align's. With that, verses are found as well, and messages less
# often in languages that put verbs last, such as Kazakh and Turkish.
TENSION = 2.0
_MOST_ALIGNED = 10_000_000  # words of documents with words of queries, in these


class TableChoices(NamedTuple):
    """How a table is learned."""

    profile: PositionProfile = FLAT
    lower_grades: float = 0.0  # one of `LOWER_GRADES`, or 0
    agreement: float = 0.0  # one of `AGREEMENTS`, or 0
    in_order: bool = False  # whether words of pairs are read near the diagonal


class Pairs(NamedTuple):
    """Queries and the documents that each is paired with."""

    queries: np.ndarray  # `[pairs]` int, rows
    documents: np.ndarray  # the same


class TrainingPairs:
    """The pairs of a set."""

    def __init__(self, texts: LexicalTexts, are_taught: np.ndarray | None = None):
        """Finds the pairs, of whole documents, of the queries of training or `are_taught`."""
        retrieval_set = texts.retrieval_set
        rows, grades = retrieval_set.query_rows, retrieval_set.grades
        if are_taught is None:
            are_taught = retrieval_set.splits == SPLITS.index("train")
        of_training = are_taught[rows]
        highest = max(1, grades[of_training].max(initial=0))
        self.training = np.unique(rows[of_training])
        of_highest = of_training & (grades == highest)
        of_lower = of_training & (grades < highest) & (grades > 0)
        self.mates, self.lower = (
            Pairs(rows[chosen], retrieval_set.document_rows[chosen])
            for chosen in (of_highest, of_lower)
        )
        weights = retrieval_set.weights
        self._weights, self._lower_weights = weights[of_highest], weights[of_lower]
        self._texts = texts
        self._read(texts.documents.of(self.mates.documents))

    def _read(self, mates: Words) -> None:
        self._words_of_mates = mates
        self._whole_tables: dict[TableChoices, tuple] = {}
        # Off the diagonal, of pairs with those of lower grades or without; one, as they are large.
        self._latest: tuple[bool, Alignments] | None = None

    def of_passages(self, mates: Words) -> Self:
        """The same pairs with passages, `[pairs]`, for the mates."""
        of_passages = copy.copy(self)
        of_passages._read(mates)
        return of_passages

    def whole_table(self, choices: TableChoices) -> tuple[sp.csr_array, np.ndarray]:
        """T(w | t) of all training queries, pruned, and its evidence; learned once."""
        if choices not in self._whole_tables:
            ((table, evidence),) = self.tables(choices, [self.training])
            self._whole_tables[choices] = pruned(table), evidence
        return self._whole_tables[choices]

    def tables(
        self, choices: TableChoices, parts: Sequence[np.ndarray]
    ) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
        """Yields T(w | t) of several parts of the queries, not pruned, and its evidence."""
        # They are learned at once, `[document words, query words]` float32, with the counts that
        # the row of each document word comes from, `[document words]` float32; 0 for words that no
        # pair has.
        queries, weights = self.mates.queries, self._weights
        agreement = np.full(len(weights), choices.agreement)
        if choices.lower_grades:
            queries = np.concatenate([queries, self.lower.queries])
            weights = np.append(weights, choices.lower_grades * self._lower_weights)
            # Words of lower grades are related words, which no direction has to confirm.
            agreement = np.append(agreement, np.zeros(len(self.lower.queries)))
        of_parts = np.stack([weights * np.isin(queries, rows) for rows in parts], axis=1)
        learned = self._alignments(choices).learn_counts(
            of_parts, agreement=agreement if choices.agreement else None
        )
        if len(parts) > 1:  # who asks for parts asks for nothing afterwards
            self._latest = None
        for counts in learned:
            shared = shared_counts(counts, *self._texts.similar_words)
            sums = np.asarray(shared.sum(axis=1)).ravel()
            yield rows_of_1(shared), np.where(np.diff(counts.indptr) > 0, sums, 0)

    def _alignments(self, choices: TableChoices) -> Alignments:
        """Alignments of all training pairs, with those of lower grades if they count."""
        latest, self._latest, with_lower = self._latest, None, bool(choices.lower_grades)
        queries, documents = self._texts_of_pairs(choices.profile, with_lower)
        if latest is not None and latest[0] == with_lower and not choices.in_order:
            alignments = latest[1].with_shares(documents)  # a profile makes no word come or go
        else:
            del latest  # before others are made
            diagonal = self._diagonal(queries, documents) if choices.in_order else None
            alignments = Alignments.of(queries, documents, diagonal, self._classes)
        if not choices.in_order:
            self._latest = with_lower, alignments
        return alignments

    @functools.cached_property
    def _classes(self) -> WordClasses:
        sizes = self._texts.spelling.shape[::-1]
        return WordClasses(*map(word_classes, self._texts.vocabularies, sizes))

    @property
    def plain_choices(self) -> TableChoices:
        """Choices by the pairs alone: words near the diagonal where texts are parallel."""
        return TableChoices(in_order=self.are_parallel)

    @functools.cached_property
    def are_parallel(self) -> bool:
        """Whether words of pairs of the highest grade stand in about the same order."""
        # Whole documents tell: of a text that says the same somewhere, the passage that says it may
        # be about as long as the query, and so look parallel.
        number = len(self.mates.queries)
        if not number:
            return False
        some = np.unique(np.linspace(0, number - 1, min(number, _LOOKED_AT), dtype=int))
        queries = self._known(self._texts.queries[self.mates.queries[some]])
        longest = _MOST_ALIGNED // max(1, queries.nnz)
        words = self._texts.documents.of(self.mates.documents[some], longest)
        asked = self._known(self._texts.query_words.of(self.mates.queries[some]).places())
        diagonal = Diagonal(asked, words.places(), _TENSION_OF_THESE)
        documents = words.matrix(FLAT)
        alignments = Alignments.of(queries, documents)
        (counts,) = alignments.learn_counts(np.ones((len(some), 1)))
        table, nearer = rows_of_1(counts), Alignments.of(queries, documents, diagonal)
        of_words = nearer.likelihoods(table) - alignments.likelihoods(table)
        gains = np.bincount(alignments.pairs, of_words, len(some))
        error = gains.std() / np.sqrt(len(some))
        return bool(gains.mean() > _STANDARD_ERRORS * error)

    def _diagonal(self, queries: sp.csr_array, documents: sp.csr_array) -> Diagonal:
        """Where words stand in the texts of pairs; those of lower grades, in the same place."""
        places = []
        of_queries = self._known(self._texts.query_words.of(self.mates.queries).places())
        of_documents = self._words_of_mates.places()
        for texts, of_mates in ((queries, of_queries), (documents, of_documents)):
            everywhere = np.zeros(texts.nnz - of_mates.nnz, np.float32)
            data = np.append(of_mates.data, everywhere)
            places.append(sp.csr_array((data, texts.indices, texts.indptr), shape=texts.shape))
        return Diagonal(*places, TENSION)

    def _texts_of_pairs(
        self, profile: PositionProfile, with_lower: bool
    ) -> tuple[sp.csr_array, sp.csr_array]:
        words = self._known(self._texts.queries[self.mates.queries])
        mates = words, self._words_of_mates.matrix(profile)
        if not with_lower:
            return mates
        words = self._known(self._texts.queries[self.lower.queries])
        shares = self._texts.documents.of(self.lower.documents, _FIRST_WORDS).matrix(profile)
        words = _without_common(words, self._texts.queries)
        shares = _without_common(shares, self._texts.documents.matrix())
        both = zip(mates, (words, shares))
        queries, documents = (sp.csr_array(sp.vstack(parts, format="csr")) for parts in both)
        return queries, documents

    def _known(self, queries: sp.csr_array) -> sp.csr_array:
        """The entries of words that are in the vocabulary of queries."""
        known = queries[:, : self._texts.known].tocsr()
        known.resize(queries.shape)
        return sp.csr_array(known)


def _without_common(texts: sp.csr_array, all_texts: sp.csr_array) -> sp.csr_array:
    """Leaves out the words that more than a tenth of all texts have."""
    frequency = np.bincount(all_texts.indices, minlength=all_texts.shape[1])
    common = frequency > _COMMON * all_texts.shape[0]
    return kept_entries(texts, ~common[texts.indices])
