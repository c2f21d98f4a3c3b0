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
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tf_smoothclir.lexical.sparse_tables import cells, ends_of, kept_entries
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.ranges import ranges

ROUNDS = 6
CLASS_LETTERS = 5  # 4 serve as well; 3 and 6, small sets in Estonian and Kazakh less
# Least probability that is kept: on mdn-en-de a tenth of all entries, with the same figures.
LEAST_PROBABILITY = 0.005
_LEAST_SUM = np.float32(1e-15)  # of probabilities, which are divided by it
_ALIGNMENTS_AT_ONCE = 1 << 20  # of one thread


class WordClasses(NamedTuple):
    """The class of each word, a number."""

    queries: np.ndarray  # `[query words]` int32
    documents: np.ndarray  # `[document words]` int32

    @classmethod
    def of(cls, vocabularies: Sequence[Sequence[str]], sizes: Sequence[int]) -> WordClasses:
        """The classes of `sizes` words of queries and of documents, which these begin with."""
        return cls(*map(word_classes, vocabularies, sizes))

    def of_cells(self, rows: np.ndarray, columns: np.ndarray) -> Ties:
        """The cells of classes that cells `[document word, query word]` are in."""
        number, sizes = len(rows), (self.queries.max() + 1, self.documents.max() + 1)
        one_row = np.arange(number, dtype=np.int32), self.queries[columns], [0, number]
        by_column = sp.csr_array(one_row, shape=(1, sizes[0])).tocsc()  # a counting sort
        of_queries, of_documents, places = cells(
            by_column.indptr, self.documents[rows[by_column.data]], sizes[1]
        )
        of_cells = np.empty(number, np.int32)
        of_cells[by_column.data] = places
        return Ties(of_cells, of_documents, of_queries)


class Ties(NamedTuple):
    """Entries of a table that have one probability: those of one cell of classes."""

    cells: np.ndarray  # `[entries]` int32, the cell of each
    rows: np.ndarray  # `[cells]` int32, the class of document words of each
    columns: np.ndarray  # the same of query words


def word_classes(words: Sequence[str], size: int) -> np.ndarray:
    """The class of each of `size` words, int32: words with letters that begin alike are one."""
    # Of their first letters, as McNamee and Mayfield found to serve most languages ("Character
    # N-Gram Tokenization for European Language Text Retrieval", Information Retrieval 2004).
    numbers: dict[str, int] = {}
    ends = (CLASS_LETTERS if any(map(str.isalpha, word)) else None for word in words)
    known = [numbers.setdefault(word[:end], len(numbers)) for word, end in zip(words, ends)]
    others = np.arange(size - len(known)) + len(numbers)
    return np.concatenate([known, others]).astype(np.int32)


class Diagonal(NamedTuple):
    """Where words stand in pairs of texts, by `Words.places`: in about the same order, or not.

    Dyer, Chahuneau and Smith, "A Simple, Fast, and Effective Reparameterization of IBM Model 2",
    NAACL 2013. Where both texts say the same, a query word at a and a document word at b, in parts
    of their texts, stand for each other the more probably, the nearer these are. EM reads for
    p(t | d), whose scale cancels,

        p(t | d) exp(-tension |a - b|).

    Nobody says whether texts are parallel, as verses and messages are, or say something somewhere,
    as pages do. The likelihood of the pairs does: this raises it only where they are.
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
    classes: WordClasses
    # `[query words of all pairs]` int, where the documents of each begin in the words of all pairs.
    begins: np.ndarray

    @classmethod
    def of(
        cls,
        queries: sp.csr_array,
        documents: sp.csr_array,
        diagonal: Diagonal | None = None,
        classes: WordClasses | None = None,
    ) -> Alignments:
        """The alignments of pairs of a query and a document that says the same."""
        # `queries` are counts, `[pairs, query words]`; `documents` p(t | d), `[pairs, document
        # words]`, with rows that sum to 1, or to less where words are unknown.
        pairs = np.repeat(np.arange(queries.shape[0]), np.diff(queries.indptr))
        order = np.argsort(queries.indices, kind="stable")
        pairs, words = pairs[order], queries.indices[order]
        places, ends = _places(documents, pairs)
        shape = documents.shape[1], queries.shape[1]
        of_words = ends[np.searchsorted(words, np.arange(shape[1] + 1))]
        columns, rows, slots = cells(of_words, documents.indices[places], shape[0])
        ties = Ties(np.arange(len(rows), dtype=np.int32), rows, columns)
        if classes is None:
            classes = WordClasses(np.arange(shape[1]), np.arange(shape[0]))
        elif len(rows):
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
            classes=classes,
            begins=documents.indptr[pairs],
        )

    def with_shares(self, documents: sp.csr_array) -> Alignments:
        """The same alignments, off no diagonal, with other p(t | d) above 0 for the same words."""
        places, ends = _places(documents, self.pairs)
        matrix = documents.data[places].astype(np.float32), self.matrix.indices, ends
        return dataclasses.replace(self, matrix=sp.csr_array(matrix, shape=self.matrix.shape))

    def likelihood(self, table: sp.csr_array) -> float:
        """Log P of all query words by T(w | t), where the p(t | d) of each add up to 1."""
        # Words whose documents have no known word are left out: they are alike by every prior.
        if not len(self.rows):
            return 0.0
        of_entries = np.asarray(table[self.rows, self.columns]).ravel()
        sums, whole = self.matrix @ of_entries, self.matrix @ np.ones_like(of_entries)
        counted = whole > 0
        return float(self.counts[counted] @ np.log(sums[counted] / whole[counted]))

    def learn_counts(
        self,
        pair_weights: np.ndarray,
        rounds: int = ROUNDS,
        *,
        agreement: np.ndarray | None = None,
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
        # What rows and columns have counted: I(t | w) is T(w | t) times the one by the other.
        totals = [np.ones((size, counts.shape[1]), np.float32) for size in self.shape]
        tied = self.ties.cells.astype(np.intp)
        for one_round in range(rounds):
            if one_round and len(tied):
                for number, of_one in enumerate(expected.T):
                    # These arrays are the largest, so no more of them are made.
                    of_cells = np.bincount(tied, of_one, len(self.ties.rows)).astype(np.float32)
                    of_rows = _sums(self.ties.rows, of_cells, self.classes.documents)
                    of_columns = _sums(self.ties.columns, of_cells, self.classes.queries)
                    of_cells /= np.where(of_rows > 0, of_rows, 1)[self.ties.rows]
                    np.take(of_cells, tied, out=table[:, number], mode="clip")
                    totals[0][:, number] = of_rows[self.classes.documents]
                    totals[1][:, number] = of_columns[self.classes.queries]
            inverse = scales = None
            if agreement is not None:
                inverse = functools.partial(self._inverse, table, *totals)
                scales = self._scales(inverse, counts.shape[1])
            expect = functools.partial(
                self._expect, table, counts, expected, agreement, inverse, scales
            )
            for _ in map_in_threads(expect, self._parts()):
                pass
        del table, inverse, expect
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
        agreement: np.ndarray | None,
        inverse: Callable[[slice], np.ndarray] | None,
        scales: np.ndarray | None,
        part: tuple[slice, slice],
    ) -> None:
        """Σ n(w, q) T(w | t) p(t | d) / P(w | d) of some entries of the table, or as agreed."""
        words, entries = part
        matrix, places = self._part(part)
        of_entries = table[entries]
        sums = matrix @ of_entries  # P(w | d), of each query word
        odds = counts[words] / np.maximum(sums, _LEAST_SUM)
        if inverse is None:
            np.multiply(matrix.T @ odds, of_entries, out=expected[entries])
            return
        shares = agreement[self.pairs[words], None].astype(np.float32)
        np.multiply(matrix.T @ (odds * (1 - shares)), of_entries, out=expected[entries])
        # The share of agreement is multiplied by n(w, q) I(t | w) p(t | d) and its scale: n(w, q)
        # is of the query word, I(t | w) of the entry, and all else of the alignment.
        odds *= shares * self.counts[words, None]
        of_entries = of_entries * inverse(entries)
        squares = matrix.data * matrix.data
        for number, scale in enumerate(scales):
            matrix.data = squares * scale[places]
            expected[entries, number] += of_entries[:, number] * (matrix.T @ odds[:, number])

    def _inverse(
        self, table: np.ndarray, rows: np.ndarray, columns: np.ndarray, entries: slice
    ) -> np.ndarray:
        """I(t | w) of some entries, `[entries, tables]`, by totals of all rows and columns."""
        totals = np.maximum(columns, _LEAST_SUM)[self.columns[entries]]
        return table[entries] * rows[self.rows[entries]] / totals

    def _scales(self, inverse: Callable[[slice], np.ndarray], tables: int) -> np.ndarray:
        """1 / Σ_w n(w, q) I(t | w) p(t | d), `[tables, words of all documents]` float32."""
        # That p(t | d), which cancels, holds the factors of a diagonal too, if there is one.

        def sums_of(part: tuple[slice, slice]) -> list[np.ndarray]:
            matrix, places = self._part(part)
            of_words, shape = self.counts[part[0]], (matrix.shape[0], sums.shape[1])
            of_tables = (matrix.data * one[matrix.indices] for one in inverse(part[1]).T)
            of_texts = (sp.csr_array((one, places, matrix.indptr), shape) for one in of_tables)
            return [one.T @ of_words for one in of_texts]

        size = (self.begins + np.diff(self.matrix.indptr)).max(initial=0)
        sums = np.zeros((tables, size), np.float32)
        for of_part in map_in_threads(sums_of, self._parts()):
            for of_table, one in zip(sums, of_part):
                of_table += one
        return 1 / np.maximum(sums, _LEAST_SUM)

    def _part(self, part: tuple[slice, slice]) -> tuple[sp.csr_array, np.ndarray]:
        """Some rows of the matrix, with the only columns that they have; places of its data."""
        words, entries = part
        ends = self.matrix.indptr[words.start : words.stop + 1]
        inside = slice(ends[0], ends[-1])
        columns = self.matrix.indices[inside] - entries.start
        shape = len(ends) - 1, entries.stop - entries.start
        matrix = sp.csr_array((self.matrix.data[inside], columns, ends - ends[0]), shape=shape)
        return matrix, ranges(self.begins[words], np.diff(ends))

    def _parts(self) -> Iterator[tuple[slice, slice]]:
        """Rows of the matrix, those of some query words, and the only columns that they have."""
        ends = self.matrix.indptr
        firsts = np.searchsorted(ends, np.arange(0, ends[-1], _ALIGNMENTS_AT_ONCE), side="right")
        words = np.append(np.unique(self.words[firsts - 1]), self.shape[1])
        limits = (np.searchsorted(of, words).tolist() for of in (self.words, self.columns))
        return zip(*(map(slice, one, one[1:]) for one in limits))


def _sums(numbers: np.ndarray, values: np.ndarray, all_numbers: np.ndarray) -> np.ndarray:
    """Sums of values by number, float32; `np.bincount` copies what it gets, so it gets parts."""
    sums = np.zeros(all_numbers.max(initial=-1) + 1)
    for begin in range(0, len(numbers), _ALIGNMENTS_AT_ONCE):
        part = slice(begin, begin + _ALIGNMENTS_AT_ONCE)
        sums += np.bincount(numbers[part], values[part], len(sums))
    return sums.astype(np.float32)


def _places(documents: sp.csr_array, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places in the data of `documents` of the rows of pairs, and where each row begins."""
    lengths = np.diff(documents.indptr)[pairs].astype(np.int32)
    ends = ends_of(lengths)
    places = np.repeat(documents.indptr[pairs].astype(np.int32) - ends[:-1], lengths)
    places += np.arange(ends[-1], dtype=np.int32)
    return places, ends


def pruned(table: sp.csr_array, least: float = LEAST_PROBABILITY) -> sp.csr_array:
    """A table without the entries below `least`; what is left is not scaled up."""
    return kept_entries(table, table.data >= least)
