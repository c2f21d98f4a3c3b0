"""The words of a tokenized set as the lexical models number them, and sparse matrices of them.

Document words have the ids of the document vocabulary. Query words have those of the query
vocabulary; a query word that it does not have, but the document vocabulary does (a name, a number,
an identifier), has the id `len(query vocabulary) + document id`: it can still be found as it is
spelled. Every other unknown word has the id 0, which no matrix has a column for.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.lexical.sparse_tables import cells
from tf_smoothclir.text.vocabulary import UNKNOWN_ID, read_vocabulary
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.ranges import ranges

NO_WORD = 0
# Words of a query whose last sign counts: it tells a question from a label. In fewer words, a sign
# outweighs them; within a query, as in WH-1000, it tells how people write, not what they look for.
FEWEST_BEFORE_SIGN = 5


@dataclasses.dataclass(frozen=True)
class PositionProfile:
    """Weights of words of a document by position: 1 + height exp(-position / decay)."""

    # Words of a title stand before the text, at positions below 0, and weigh `title` each. How much
    # the opening counts, which often says what a query says, is chosen on validation queries.

    height: float = 0.0  # what the first position has above the rest; 0 for a flat profile
    decay: float = 1.0  # positions after which that has fallen to 1/e
    title: float = 0.1  # enough to be found by

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        """The weight of each position in the same shape."""
        weights = 1 + self.height * np.exp(-np.maximum(positions, 0) / self.decay)
        return np.where(np.asarray(positions) < 0, self.title, weights)

    def __str__(self):
        title = f", words of titles {self.title:g}" if self.title != FLAT.title else ""
        if not self.height:
            return f"all positions alike{title}"
        return f"positions weigh 1 + {self.height:g} exp(-position / {self.decay:g}){title}"


FLAT = PositionProfile()
# What validation chooses from besides: a height with the first decay, then a decay with the best
# height, then a height with that decay. `PositionProfile(100, 15)` was the best on mdn-en-de.
HEIGHTS, DECAYS = (3.0, 20.0, 100.0), (15.0, 8.0, 40.0)
# Weights of words of titles that validation chooses from, rising.
TITLE_WEIGHTS = (1.0, 10.0)


@dataclasses.dataclass(frozen=True)
class Words:
    """The words of many texts, one text after the other."""

    # `[words]` int32; `NO_WORD` where a word has no id, so that positions stay right.
    ids: np.ndarray
    offsets: np.ndarray  # `[texts + 1]` int64, where each text begins and ends
    size: int
    # `[texts]` int64, the position of the first word of each in its document; below 0 in a title
    # before it. None for 0.
    starts: np.ndarray | None = None
    # Of passages: `[documents + 1]` int64, where those of each document begin. None: each text is a
    # document.
    firsts: np.ndarray | None = None
    languages: np.ndarray | None = None  # `[texts]` codes, of documents where these are told

    def after_titles(self, lengths: np.ndarray) -> Words:
        """The same words, of which the first `[texts]` so many are titles."""
        return dataclasses.replace(self, starts=-lengths) if lengths.any() else self

    def with_ids(self, ids: np.ndarray, size: int) -> Words:
        """The same words by other numbers, below `size`."""
        return dataclasses.replace(self, ids=ids, size=size)

    def passages(self, longest: int) -> Words:
        """Passages of texts: windows of `longest` words, each from the middle of the one before."""
        # The last one ends where its text ends, so all of a text are equally long. Texts that are
        # not longer stay as they are, and so does everything if all are, or for a length of 0.
        lengths = np.diff(self.offsets)
        if not longest or lengths.max(initial=0) <= longest:
            return self
        step = max(1, longest // 2)
        of_each = 1 + np.maximum(0, -(-(lengths - longest) // step))
        firsts = np.append(0, np.cumsum(of_each))
        texts = np.repeat(np.arange(len(lengths)), of_each)
        sizes = np.minimum(lengths, longest)[texts]
        begins = np.minimum(step * (np.arange(firsts[-1]) - firsts[texts]), lengths[texts] - sizes)
        starts = begins if self.starts is None else begins + self.starts[texts]
        offsets = np.append(0, np.cumsum(sizes))
        ids = self.ids[ranges(self.offsets[texts] + begins, sizes)]
        languages = None if self.languages is None else self.languages[texts]
        return Words(ids, offsets, self.size, starts, firsts, languages)

    def number_of_each(self) -> np.ndarray:
        """`[documents]` int64, the number of passages of each."""
        return np.ones(len(self.offsets) - 1, int) if self.firsts is None else np.diff(self.firsts)

    def of(self, rows: np.ndarray, most: int | None = None) -> Words:
        """The words of some texts, of each the first `most`."""
        lengths = np.diff(self.offsets)[rows]
        if most is not None:
            lengths = np.minimum(lengths, most)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        starts, languages = (
            None if one is None else one[rows] for one in (self.starts, self.languages)
        )
        ids = self.ids[ranges(self.offsets[rows], lengths)]
        return Words(ids, offsets, self.size, starts, languages=languages)

    def positions(self) -> np.ndarray:
        """`[words]` int64, the place of each word in its document, from 0."""
        begins = self.offsets[:-1] if self.starts is None else self.offsets[:-1] - self.starts
        return np.arange(len(self.ids)) - np.repeat(begins, np.diff(self.offsets))

    def matrix(self, weights: Callable[[np.ndarray], np.ndarray] | None = None) -> sp.csr_array:
        """Counts the words of texts, `[texts, size]` float32; shares, with weights of positions."""
        # Rows are divided by the sum of the weights of all words of the text, those without an id
        # too.
        known, (rows, columns, places) = self._cells
        values = np.ones(len(known), np.float32)
        if weights is not None:
            values, lengths = weights(self.positions()), np.diff(self.offsets)
            texts = np.repeat(np.arange(len(lengths)), lengths)
            values = values / np.bincount(texts, values, minlength=len(lengths))[texts]
        sums = np.bincount(places, values[known], minlength=len(rows)).astype(np.float32)
        shape = len(self.offsets) - 1, self.size
        return sp.csr_array((sums, (rows, columns)), shape=shape)

    def places(self) -> sp.csr_array:
        """Where words stand in texts, from 0 to 1, `[texts, size]`, in the entries of `matrix`."""
        # On average, where one repeats.
        known, (rows, columns, places) = self._cells
        lengths = np.diff(self.offsets)
        begins = np.repeat(self.offsets[:-1], lengths)
        values = (np.arange(len(self.ids)) - begins + 0.5) / np.repeat(lengths, lengths)
        sums = np.bincount(places, values[known], minlength=len(rows))
        means = (sums / np.bincount(places, minlength=len(rows))).astype(np.float32)
        return sp.csr_array((means, (rows, columns)), shape=(len(lengths), self.size))

    @functools.cached_property
    def _cells(self) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Which words have ids, `[words]` bool, and `cells` of a matrix of them."""
        known = self.ids != NO_WORD
        ends = np.append(0, np.cumsum(known))[self.offsets]
        return known, cells(ends, self.ids[known], self.size)


def read_vocabularies(directory: Path) -> list[list[str]]:
    """The words of queries and of documents."""
    return [read_vocabulary(directory / f"{role}.txt") for role in ROLES]


def document_words(tokenized_set: TokenizedSet) -> Words:
    """The words of every document, by row."""
    size = len(tokenized_set.vocabulary("document"))
    store = tokenized_set.whole_documents()
    ids = np.asarray(store.values)
    known = np.where((ids > UNKNOWN_ID) & (ids < size), ids, NO_WORD).astype(np.int32)
    languages = tokenized_set.retrieval_set.document_languages
    of_each = np.array(languages.codes)[languages.rows]
    words = Words(known, np.asarray(store.offsets), size, languages=of_each)
    titles = tokenized_set.title_lengths()
    return words if titles is None else words.after_titles(titles)


def same_spelling(query_vocabulary: list[str], document_vocabulary: list[str]) -> sp.csr_array:
    """Matches of document and query words of one spelling, `[document, query words]` float32."""
    # One 1 in the row of each document word: at the query word of the same spelling, or at the id
    # of a word that only documents have.
    first = UNKNOWN_ID + 1
    places = {word: place for place, word in enumerate(query_vocabulary) if place >= first}
    rows = np.arange(first, len(document_vocabulary), dtype=np.int32)
    words = enumerate(document_vocabulary[first:], start=len(query_vocabulary) + first)
    columns = np.array([places.get(word, own_id) for own_id, word in words], np.int32)
    shape = (len(document_vocabulary), len(query_vocabulary) + len(document_vocabulary))
    return sp.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
