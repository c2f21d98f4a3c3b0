"""IBM Model 1: which document word stands for which query word, learned from pairs of texts.

Brown et al., "The Mathematics of Statistical Machine Translation", Computational Linguistics 1993,
section 4.1. A query q is thought to be made of its document d, word by word,

    P(q | d) = Π_w Σ_t T(w | t) p(t | d),

where p(t | d) is the share that word t has of the document. In Model 1 it is the same for all its
positions; here it may follow a profile of positions, and be larger near the place that w has in the
query (`Diagonal`). EM counts how often t is expected to stand for w,
c(w, t) = Σ_pairs n(w, q) T(w | t) p(t | d) / Σ_t' T(w | t') p(t' | d), and sets
T(w | t) = c(w, t) / Σ_w' c(w', t). No round lowers the likelihood of the pairs.

Where languages inflect, or pairs are few, most words are too rare to tell what they stand for. So
EM learns probabilities of classes of words (`word_classes`): with C(w) the class of w,

    T(w | t) = Σ c(w', t') / Σ c(w", t')    over w' in C(w), t' in C(t), any w",

and the last round counts words by these, which tells the words of a class apart.

A page that says what the query says somewhere has many words that the query does not ask for, and a
rare word of the query may take any of them for its translation. There both directions should agree,
as Liang, Taskar and Klein, "Alignment by Agreement", HLT-NAACL 2006, have it. Of what t is expected
to count for w, a share a is multiplied by the probability that w, of all words of the query, stands
for t, with I(t | w) = c(w, t) / Σ_t' c(w, t'):

    1 - a + a n(w, q) I(t | w) / Σ_w' n(w', q) I(t | w').

The first rounds are without it: each direction has to know something before the other hears of it.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from tf_smoothclir.lexical.sparse_tables import cells, ends_of, kept_entries
from tf_smoothclir.lexical.word_classes import Ties, WordClasses
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.parallel import map_in_threads

ROUNDS = 6
PLAIN_ROUNDS = 2  # the first of these, which no direction has to agree on
# Least probability that is kept: on mdn-en-de a tenth of all entries, with the same figures.
LEAST_PROBABILITY = 0.005
_LEAST_SUM = np.float32(1e-15)  # of probabilities, which are divided by it
_ALIGNMENTS_AT_ONCE = 1 << 20  # of one thread


class Diagonal(NamedTuple):
    """Where words stand in pairs of texts, by `Words.places`: in about the same order, or not.

    Dyer, Chahuneau and Smith, "A Simple, Fast, and Effective Reparameterization of IBM Model 2",
    NAACL 2013. Where both texts say the same, a query word at a and a document word at b, in parts
    of their texts, stand for each other the more probably, the nearer these are. EM reads for
    p(t | d), whose scale cancels,

        p(t | d) exp(-tension |a - b|).

    Nobody says whether texts are parallel, as verses and messages are, or say something somewhere,
    as pages do. The likelihood of the pairs does: this raises it clearly only where they are.
    """

    queries: sp.csr_array  # `[pairs, query words]`, with the entries of the words of queries
    documents: sp.csr_array  # `[pairs, document words]`, the same of documents
    tension: float

    def factors(
        self, queries: np.ndarray, documents: np.ndarray, of_each: np.ndarray
    ) -> np.ndarray:
        """What alignments count, `[alignments]` float32, by entries of the two matrices."""
        # `queries` are the words of all pairs; `of_each` is how many alignments each has.
        factors = np.repeat(self.queries.data[queries], of_each)
        factors -= self.documents.data[documents]
        np.abs(factors, out=factors)
        factors *= -self.tension
        return np.exp(factors, out=factors)


class _Agreement(NamedTuple):
    """What one round of EM needs to make both directions agree."""

    shares: np.ndarray  # `[query words of all pairs, 1]` float32, the a of each
    # What the classes of rows and of columns have counted, of each table.
    totals: Sequence[tuple[np.ndarray, np.ndarray]]
    scales: np.ndarray  # what `Alignments._scales` returns


@dataclasses.dataclass(frozen=True)
class Alignments:
    """Every way in which a word of a document may stand for a word of its query."""

    # All are in the order of their query words: what EM reads and writes next is near in memory.

    # `[query words of all pairs, entries of the table]` float32: p(t | d) of each document word t,
    # in the column of its entry.
    matrix: sp.csr_array
    counts: np.ndarray  # `[query words of all pairs]` float32, how often each stands in its query
    pairs: np.ndarray  # the same shape, int, the pair of each
    words: np.ndarray  # the same shape, int32, the query word that each is, sorted
    rows: np.ndarray  # `[entries]` int32, the document word of each entry of the table
    columns: np.ndarray  # `[entries]` int32, its query word, sorted
    shape: tuple[int, int]
    ties: Ties
    # `[query words of all pairs]` int32, where the document of each begins in the data of all.
    begins: np.ndarray

    @classmethod
    def of(
        cls,
        queries: sp.csr_array,
        documents: sp.csr_array,
        diagonal: Diagonal | None = None,
        classes: WordClasses | None = None,
    ) -> Self:
        """The alignments of pairs of a query and a document that says the same."""
        # `queries` are counts, `[pairs, query words]`; `documents` p(t | d), `[pairs, document
        # words]`, with rows that sum to 1, or to less where words are unknown.
        pairs = np.repeat(np.arange(queries.shape[0]), np.diff(queries.indptr))
        order = np.argsort(queries.indices, kind="stable")
        pairs, words = pairs[order], queries.indices[order]
        begins, lengths = documents.indptr[pairs].astype(np.int32), np.diff(documents.indptr)[pairs]
        ends = ends_of(lengths)
        places = _places(begins, ends)
        shape = documents.shape[1], queries.shape[1]
        of_words = ends[np.searchsorted(words, np.arange(shape[1] + 1))]
        columns, rows, slots = cells(of_words, documents.indices[places], shape[0])
        ties = Ties(np.arange(len(rows), dtype=np.int32), rows, columns)
        if classes is not None and len(rows):
            ties = classes.of_cells(rows, columns)
        shares = documents.data[places].astype(np.float32)
        if diagonal is not None:
            shares *= diagonal.factors(order, places, np.diff(ends))
        return cls(
            matrix=sp.csr_array((shares, slots, ends), shape=(len(pairs), len(rows))),
            counts=queries.data[order].astype(np.float32),
            pairs=pairs,
            words=words,
            rows=rows,
            columns=columns,
            shape=shape,
            ties=ties,
            begins=begins,
        )

    def with_shares(self, documents: sp.csr_array) -> Self:
        """The same alignments, off no diagonal, with other p(t | d) above 0 for the same words."""
        of_columns = self.matrix.indices, self.matrix.indptr
        shares = documents.data[_places(self.begins, self.matrix.indptr)].astype(np.float32)
        matrix = sp.csr_array((shares, *of_columns), shape=self.matrix.shape)
        return dataclasses.replace(self, matrix=matrix)

    def likelihoods(self, table: sp.csr_array) -> np.ndarray:
        """`[query words of all pairs]`, log P of each by T(w | t), its p(t | d) adding up to 1."""
        # 0 for words whose documents have no known word: they are alike by every prior.
        logs = np.zeros(len(self.counts))
        if not len(self.rows):
            return logs
        of_entries = np.asarray(table[self.rows, self.columns]).ravel()
        sums, whole = self.matrix @ of_entries, self.matrix @ np.ones_like(of_entries)
        counted = whole > 0
        logs[counted] = self.counts[counted] * np.log(sums[counted] / whole[counted])
        return logs

    def learn_counts(
        self, pair_weights: np.ndarray, agreement: np.ndarray | None = None
    ) -> Iterator[sp.csr_array]:
        """Yields c(w, t) of the last round of EM for each table by `[pairs, tables]` weights."""
        # The shares of agreement are `[pairs]`, the a of each pair.
        # `[document words, query words]` float32: the row of each word of a pair is proportional to
        # its T, all others are empty. Several tables are learned in one pass over the alignments,
        # which is what takes time; the first round has equal probabilities.
        counts = self.counts[:, None] * pair_weights[self.pairs].astype(np.float32)
        # T(w | t): equal ones to begin with, whose scale cancels; then rows that sum to 1.
        table = np.ones((len(self.rows), counts.shape[1]), np.float32)
        expected = table.copy()
        totals: list[tuple[np.ndarray, np.ndarray]] = []  # of the rows and columns of each table
        tied = self.ties.cells.astype(np.intp)
        for one_round in range(ROUNDS):
            agrees = agreement is not None and one_round >= PLAIN_ROUNDS
            totals.clear()
            if one_round and len(tied):
                for of_one, probabilities in zip(expected.T, table.T):
                    # These arrays are the largest, so no more of them are made.
                    of_cells = np.bincount(tied, of_one, len(self.ties.rows)).astype(np.float32)
                    of_rows = _sums(self.ties.rows, of_cells)
                    if agrees:
                        totals.append((of_rows, _sums(self.ties.columns, of_cells)))
                    of_cells /= np.where(of_rows > 0, of_rows, 1)[self.ties.rows]
                    np.take(of_cells, tied, out=probabilities, mode="clip")
            agreed = None
            if agrees:
                shares = agreement[self.pairs, None].astype(np.float32)
                agreed = _Agreement(shares, totals, self._scales(table, totals))
            expect = functools.partial(self._expect, table, counts, expected, agreed)
            for _ in map_in_threads(expect, self._parts()):
                pass
        del table, expect
        rows, columns, shape = self.rows, self.columns, self.shape  # the matrix is let go
        return (
            sp.csr_array((values[kept], (rows[kept], columns[kept])), shape=shape)
            for values, kept in zip(expected.T, map(np.flatnonzero, expected.T))
        )

    def _expect(
        self,
        table: np.ndarray,
        counts: np.ndarray,
        expected: np.ndarray,
        agreed: _Agreement | None,
        part: tuple[slice, slice],
    ) -> None:
        """Σ n(w, q) T(w | t) p(t | d) / P(w | d) of some entries of the table, or as agreed."""
        words, entries = part
        matrix, of_entries = self._part(part), table[entries]
        sums = matrix @ of_entries  # P(w | d), of each query word
        odds = counts[words] / np.maximum(sums, _LEAST_SUM)
        if agreed is None:
            np.multiply(matrix.T @ odds, of_entries, out=expected[entries])
            return
        shares = agreed.shares[words]
        np.multiply(matrix.T @ (odds * (1 - shares)), of_entries, out=expected[entries])
        # The share of agreement is multiplied by n(w, q) I(t | w) p(t | d) and its scale: n(w, q)
        # is of the query word, I(t | w) of the entry, and all else of the alignment.
        odds *= shares * self.counts[words, None]
        of_entries = of_entries * self._inverse(table, agreed.totals, entries)
        squares, places = matrix.data * matrix.data, _places(self.begins[words], matrix.indptr)
        for number, scale in enumerate(agreed.scales):
            matrix.data = squares * scale[places]
            expected[entries, number] += of_entries[:, number] * (matrix.T @ odds[:, number])

    def _inverse(
        self, table: np.ndarray, totals: Sequence[tuple[np.ndarray, np.ndarray]], entries: slice
    ) -> np.ndarray:
        """I(t | w) of some entries, `[entries, tables]`, from T(w | t) and totals of classes."""
        inverse, of_cells = table[entries].copy(), self.ties.cells[entries]
        for of_one, (rows, columns) in zip(inverse.T, totals):
            of_one *= rows[self.ties.rows[of_cells]]
            of_one /= np.maximum(columns[self.ties.columns[of_cells]], _LEAST_SUM)
        return inverse

    def _scales(
        self, table: np.ndarray, totals: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """1 / Σ_w n(w, q) I(t | w) p(t | d), `[tables, words of all documents]` float32."""
        # That p(t | d), which cancels, holds the factors of a diagonal too, if there is one.

        def sums_of(part: tuple[slice, slice]) -> list[np.ndarray]:
            (words, entries), matrix = part, self._part(part)
            places = _places(self.begins[words], matrix.indptr)
            inverse, shape = self._inverse(table, totals, entries), (matrix.shape[0], sums.shape[1])
            of_tables = (matrix.data * one[matrix.indices] for one in inverse.T)
            of_texts = (sp.csr_array((one, places, matrix.indptr), shape) for one in of_tables)
            return [one.T @ self.counts[words] for one in of_texts]

        size = (self.begins + np.diff(self.matrix.indptr)).max(initial=0)
        sums = np.zeros((table.shape[1], size), np.float32)
        for of_part in map_in_threads(sums_of, self._parts()):
            for of_table, one in zip(sums, of_part):
                of_table += one
        return 1 / np.maximum(sums, _LEAST_SUM)

    def _part(self, part: tuple[slice, slice]) -> sp.csr_array:
        """Some rows of the matrix, with the only columns that they have."""
        words, entries = part
        ends = self.matrix.indptr[words.start : words.stop + 1]
        inside = slice(ends[0], ends[-1])
        columns = self.matrix.indices[inside] - entries.start
        shape = len(ends) - 1, entries.stop - entries.start
        return sp.csr_array((self.matrix.data[inside], columns, ends - ends[0]), shape=shape)

    def _parts(self) -> Iterator[tuple[slice, slice]]:
        """Rows of the matrix, those of some query words, and the only columns that they have."""
        ends = self.matrix.indptr
        firsts = np.searchsorted(ends, np.arange(0, ends[-1], _ALIGNMENTS_AT_ONCE), side="right")
        words = np.append(np.unique(self.words[firsts - 1]), self.shape[1])
        limits = (np.searchsorted(of, words).tolist() for of in (self.words, self.columns))
        return zip(*(map(slice, one, one[1:]) for one in limits))


def _sums(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of values by number, float32; `np.bincount` copies what it gets, so it gets parts."""
    sums = np.zeros(numbers.max(initial=-1) + 1)
    for begin in range(0, len(numbers), _ALIGNMENTS_AT_ONCE):
        part = slice(begin, begin + _ALIGNMENTS_AT_ONCE)
        sums += np.bincount(numbers[part], values[part], len(sums))
    return sums.astype(np.float32)


def _places(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The places from each of `begins` on, one range after the other, by where these end."""
    places = np.repeat(begins - ends[:-1], np.diff(ends))
    places += np.arange(len(places), dtype=np.int32)
    return places


def pruned(table: sp.csr_array, least: float = LEAST_PROBABILITY) -> sp.csr_array:
    """A table without the entries below `least`; what is left is not scaled up."""
    return kept_entries(table, table.data >= least)
