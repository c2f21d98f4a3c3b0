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
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.sparse_tables import kept_entries, rows_of_1

ROUNDS = 6
# Least probability that is kept: on mdn-en-de a tenth of all entries, with the same figures.
LEAST_PROBABILITY = 0.005


@dataclasses.dataclass(frozen=True)
class Alignments:
    """Every way in which a word of a document may stand for a word of its query."""

    # `[query words of all pairs, entries of the table]` float32: p(t | d) of each document word t,
    # in the column of its entry.
    matrix: sp.csr_array
    counts: np.ndarray  # `[query words of all pairs]` float32, how often each stands in its query
    pairs: np.ndarray  # the same shape, int32, the pair of each
    rows: np.ndarray  # `[entries]` int32, the document word of each entry of the table, sorted
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
        places, ends = _places(documents, pairs)
        # A query word is aligned with every different word of its document.
        words = np.repeat(words, np.diff(ends))
        shape = documents.shape[1], queries.shape[1]
        rows, columns, slots = _entries(documents.indices[places], words, shape)
        shares = documents.data[places].astype(np.float32)
        return cls(
            matrix=sp.csr_array((shares, slots, ends), shape=(len(pairs), len(rows))),
            counts=counts.astype(np.float32),
            pairs=pairs.astype(np.int32),
            rows=rows,
            columns=columns,
            shape=shape,
        )

    def with_shares(self, documents: sp.csr_array) -> Alignments:
        """The same alignments, where other p(t | d) are above 0 for the same words."""
        places, ends = _places(documents, self.pairs)
        matrix = documents.data[places].astype(np.float32), self.matrix.indices, ends
        return dataclasses.replace(self, matrix=sp.csr_array(matrix, shape=self.matrix.shape))

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
        weights = np.ones(1 + self.pairs.max(initial=0)) if pair_weights is None else pair_weights
        (counts,), likelihoods = self.learn_counts(weights[:, None], rounds)
        return rows_of_1(counts), [likelihood for (likelihood,) in likelihoods]

    def learn_counts(
        self, pair_weights: np.ndarray, rounds: int = ROUNDS
    ) -> tuple[Iterator[sp.csr_array], list[np.ndarray]]:
        """Learns c(w, t) of the last round for several weightings of the pairs, `[pairs, tables]`.

        Each is as `learn_table` has it. One pass over the alignments serves all, and the pass is
        what takes time.
        """
        counts = self.counts[:, None] * pair_weights[self.pairs].astype(np.float32)
        counted, starts = counts > 0, np.flatnonzero(np.diff(self.rows, prepend=-1))
        of_row = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(self.rows))))
        # Equal probabilities to begin with; after a round, the entries of each row sum to 1.
        first = np.float32(1 / max(1, len(np.unique(self.columns))))
        table = np.full((len(self.rows), counts.shape[1]), first)
        expected, likelihoods = table, []
        for _ in range(rounds):
            sums = self.matrix @ table  # P(w | d), of each query word
            # Pairs of weight 0 count neither here nor in the likelihood.
            logs = np.log(sums, out=np.zeros(sums.shape), where=counted & (sums > 0))
            likelihoods.append(np.sum(counts * logs, axis=0))
            odds = np.divide(counts, sums, out=np.zeros_like(sums), where=counted & (sums > 0))
            # Σ n(w, q) T(w | t) p(t | d) / P(w | d), of each entry.
            expected = self.matrix.T @ odds
            expected *= table
            if len(expected):  # these arrays are the largest, so no more of them are made
                totals = np.add.reduceat(expected, starts)
                scale = np.divide(1, totals, out=np.zeros_like(totals), where=totals > 0)
                np.take(scale, of_row, axis=0, out=table, mode="clip")
                table *= expected
        return map(self._as_table, expected.T), likelihoods

    def _as_table(self, values: np.ndarray) -> sp.csr_array:
        kept = np.flatnonzero(values)
        places = self.rows[kept], self.columns[kept]
        return sp.csr_array((values[kept], places), shape=self.shape)


def _places(documents: sp.csr_array, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places in the data of `documents` of the rows of pairs, and where each row begins."""
    ends = np.append(0, np.cumsum(np.diff(documents.indptr)[pairs]))
    places = np.arange(ends[-1]) + np.repeat(documents.indptr[pairs] - ends[:-1], np.diff(ends))
    return places, ends


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
