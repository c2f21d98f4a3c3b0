"""IBM Model 1: which document word stands for which query word, learned from pairs of texts.

Brown et al., "The Mathematics of Statistical Machine Translation", Computational Linguistics 1993,
section 4.1. A query q is thought to be made of its document d, word by word,

    P(q | d) = Π_w Σ_t T(w | t) p(t | d),

where p(t | d) is the share that word t has of the document. In Model 1 it is the same for all its
positions; here it may follow a profile of positions. EM counts how often t is expected to stand for
w, c(w, t) = Σ_pairs n(w, q) T(w | t) p(t | d) / Σ_t' T(w | t') p(t' | d), and sets
T(w | t) = c(w, t) / Σ_w' c(w', t). No round lowers the likelihood of the pairs.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.sparse_tables import kept_entries, rows_of_1

ROUNDS = 6
# Least probability that is kept: on mdn-en-de a tenth of all entries, with the same figures.
LEAST_PROBABILITY = 0.005


@dataclasses.dataclass(frozen=True)
class Alignments:
    """Every way in which a word of a document may stand for a word of its query."""

    slots: np.ndarray  # `[alignments]` int32, the entry of the table that each one is about
    shares: np.ndarray  # `[alignments]` float32, p(t | d)
    begins: np.ndarray  # `[query words of all pairs]` int64, where the alignments of each begin
    counts: np.ndarray  # the same shape, float32, how often the word stands in its query
    pairs: np.ndarray  # the same shape, int32, the pair of each
    rows: np.ndarray  # `[entries]` int32, the document word of each entry of the table
    columns: np.ndarray  # `[entries]` int32, its query word
    shape: tuple[int, int]

    @classmethod
    def of(cls, queries: sp.csr_array, documents: sp.csr_array) -> Alignments:
        """Lists the alignments of pairs of a query and a document that says the same.

        Args:
            queries: `[pairs, query words]`, counts of words.
            documents: `[pairs, document words]`, p(t | d): rows that sum to 1, or to less where
                words are unknown.
        """
        lengths = np.diff(documents.indptr)
        pairs = np.repeat(np.arange(queries.shape[0]), np.diff(queries.indptr))
        aligned = lengths[pairs] > 0  # an empty document explains no word
        pairs, words, counts = pairs[aligned], queries.indices[aligned], queries.data[aligned]
        # A query word is aligned with every different word of its document: a run of each.
        number = lengths[pairs]
        begins = np.cumsum(number) - number
        # The place in `documents` of each alignment, `[alignments]`.
        places = np.arange(number.sum()) + np.repeat(documents.indptr[pairs] - begins, number)
        shape = documents.shape[1], queries.shape[1]
        rows, columns, slots = _entries(documents.indices[places], np.repeat(words, number), shape)
        return cls(
            slots=slots,
            shares=documents.data[places].astype(np.float32),
            begins=begins,
            counts=counts.astype(np.float32),
            pairs=pairs.astype(np.int32),
            rows=rows,
            columns=columns,
            shape=shape,
        )

    def learn_table(
        self, rounds: int = ROUNDS, pair_weights: np.ndarray | None = None
    ) -> tuple[sp.csr_array, list[float]]:
        """Learns T(w | t) by EM, from equal probabilities on.

        Args:
            pair_weights: `[pairs]`, what each pair counts; 1 without it, 0 leaves a pair out.

        Returns:
            `[document words, query words]` float32: the row of each word of a pair sums to 1, all
            others are empty. And the log-likelihood of the pairs before each round.
        """
        counts, likelihoods = self.learn_counts(rounds, pair_weights)
        return rows_of_1(counts), likelihoods

    def learn_counts(
        self, rounds: int = ROUNDS, pair_weights: np.ndarray | None = None
    ) -> tuple[sp.csr_array, list[float]]:
        """Learns c(w, t) of the last round in place of T(w | t); else as `learn_table`."""
        counts = self.counts
        if pair_weights is not None:
            counts = counts * pair_weights[self.pairs].astype(np.float32)
        # Equal probabilities to begin with; after a round, the entries of each row sum to 1.
        table = np.full(len(self.rows), 1 / max(1, len(np.unique(self.columns))), np.float32)
        likelihoods = []
        for _ in range(rounds):
            expected, likelihood = self._expected_counts(table, counts)
            totals = np.bincount(self.rows, expected, minlength=self.shape[0])[self.rows]
            table = np.zeros(len(expected), np.float32)
            np.divide(expected, totals, out=table, where=totals > 0, casting="same_kind")
            likelihoods.append(likelihood)
        values = expected.astype(np.float32)
        found = sp.csr_array((values, (self.rows, self.columns)), shape=self.shape)
        found.eliminate_zeros()
        return found, likelihoods

    def _expected_counts(self, table: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, float]:
        """C(w, t) of each entry, `[entries]` float64, and the log-likelihood."""
        parts = table[self.slots] * self.shares  # T(w | t) p(t | d), of each alignment
        # P(w | d), of each query word.
        sums = np.add.reduceat(parts, self.begins) if len(parts) else np.zeros(0, np.float32)
        # Pairs of weight 0 count neither here nor in the likelihood.
        counted = counts > 0
        odds = np.divide(counts, sums, out=np.zeros_like(sums), where=counted & (sums > 0))
        # The count of a query word is divided among its alignments; entries collect their parts.
        parts *= np.repeat(odds, np.diff(np.append(self.begins, len(parts))))
        likelihood = np.sum(counts[counted] * np.log(sums[counted], dtype=np.float64))
        return np.bincount(self.slots, parts, minlength=len(table)), float(likelihood)


def _entries(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the different places among some, in order, and which one each is."""
    # By row, then by column: two stable sorts, the less important key first.
    order = _in_order(columns, shape[1])
    order = order[_in_order(rows[order], shape[0])]
    rows, columns = rows[order], columns[order]
    first = np.ones(len(order), bool)  # unlike the place before it
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    slots = np.empty(len(order), np.int32)
    slots[order] = np.cumsum(first, dtype=np.int32) - 1
    return rows[first].astype(np.int32), columns[first].astype(np.int32), slots


def _in_order(keys: np.ndarray, size: int) -> np.ndarray:
    """Sorts keys below `size`, equal ones in their order, as np.argsort does in much more time."""
    # A CSR matrix with a row for each key: making it is a counting sort, in compiled code.
    places = np.arange(len(keys), dtype=np.int32)
    ones = np.ones(len(keys), np.int8)
    return sp.csr_array((ones, (keys, places)), shape=(size, len(keys))).indices


def pruned(table: sp.csr_array, least: float = LEAST_PROBABILITY) -> sp.csr_array:
    """A table without the entries below `least`; what is left is not scaled up."""
    return kept_entries(table, table.data >= least)
