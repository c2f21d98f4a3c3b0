"""Smoothing of tables over words of similar spelling, for languages that inflect.

A word that training pairs have once or never still looks like others: `walked` like `walks`, and
in Zulu or Basque most forms of a word are rare. So the expected counts of EM, c(w, t), are shared
among words of similar spelling before they become probabilities. With s from `similar_words`,

    c'(w, t) = c(w, t) + 0.1 Σ_w' s(w', w) c(w', t)                                query words
    c''(w, t) = c'(w, t) + 2 min(1, n_t) Σ_t' s(t, t') c'(w, t') / n_t          document words
    T(w | t) = c''(w, t) / Σ_w' c''(w', t)

where n_t = Σ_w Σ_t' s(t, t') c'(w, t'): the neighbours of a document word count together as much as
two occurrences of its own, so they decide about rare words and hardly touch frequent ones. This is
Dirichlet smoothing (MacKay and Peto 1995) with a prior of its own for each word.

Words that no pair has, but that a document and a query spell almost alike, need no table: `element`
and `Elements`, `Jerusalem` and `Jérusalem`. They are `lookalikes`.

The constants were chosen on validation queries of mdn-en-de, bible-en-fr and bible-en-tl, and of
Bibles in Zulu and Basque.
"""

from collections.abc import Sequence

import numpy as np

from tf_smoothclir.lexical.sparse_tables import by_rows, kept_entries, largest_of_rows, unit_rows
from tf_smoothclir.utils import sparse as sp

QUERY_SHARE = 0.1
DOCUMENT_COUNT = 2.0
_LOOKALIKES = 4  # of a word: with all of them, an index is twice as large, and ranks little better
_SHORTEST, _LONGEST = 3, 5  # n-grams, in characters
_LEAST_COSINE = 0.3
_LEAST_OF_LOOKALIKES = 0.4
_POWER = 4  # of the cosine: near neighbours count far more than distant ones
_MOST_WORDS = 1000  # an n-gram of more words says nothing, and costs most
_LEAST_SHARE = 0.002  # of a row of counts; what is below is most of the work, and of no use


def similar_words(words: Sequence[str]) -> sp.csr_array:
    """Similarity of spelling, `[words, words]` float32: cosine⁴ from 0.3 on; 0 on the diagonal."""
    # Of TF-IDF vectors of n-grams of 3 to 5 characters; the beginning and the end of a word are
    # one.
    vectors = _ngram_vectors(words)
    frequency = np.bincount(vectors.indices, minlength=vectors.shape[1])
    # An n-gram that only one word has makes no two words alike.
    telling = sp.csr_array(vectors[:, np.flatnonzero((frequency > 1) & (frequency < _MOST_WORDS))])

    def above_diagonal(rows: slice) -> sp.csr_array:
        cosines = telling[rows] @ telling[rows.start :].T
        part = sp.triu(kept_entries(cosines, cosines.data >= _LEAST_COSINE), k=1, format="csr")
        parts = part.data**_POWER, part.indices + rows.start, part.indptr
        return sp.csr_array(parts, shape=(part.shape[0], len(words)))

    # All cosines at once would not fit in memory: most are below the least, and go at once. Each is
    # computed once.
    upper = by_rows(above_diagonal, len(words))
    return sp.csr_array(upper + upper.T)


def lookalikes(similar: sp.csr_array) -> sp.csr_array:
    """The most similar words of each word, by what `similar_words` returns."""
    near = kept_entries(similar, similar.data >= _LEAST_OF_LOOKALIKES**_POWER)
    return largest_of_rows(near, _LOOKALIKES)


def _ngram_vectors(words: Sequence[str]) -> sp.csr_array:
    """TF-IDF vectors of length 1, `[words, n-grams]` float32."""
    has_ngrams = [len(word) > 1 and any(map(str.isalpha, word)) for word in words]
    rows = np.flatnonzero(has_ngrams)
    # Marked, so that "\0un" is a prefix, and "un" anywhere is not.
    marked = [f"\0{words[row]}\1" for row in rows]
    codes = np.frombuffer("".join(marked).encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.array([len(word) for word in marked], np.int64)
    rows, ends = np.repeat(rows, lengths), np.repeat(np.cumsum(lengths), lengths)
    # The n-gram that begins at each character, as a number: that of the one before it in the
    # alphabet of shorter ones, and its last character.
    grams, places, total = codes.astype(np.int64), np.arange(len(codes)), 0
    cells = []
    for length in range(2, _LONGEST + 1):
        inside = places + length <= ends[places]
        places, grams = places[inside], grams[inside]
        _, grams = np.unique(grams << 21 | codes[places + length - 1], return_inverse=True)
        if length >= _SHORTEST:
            cells.append((rows[places], total + grams))
            total += grams.max(initial=-1) + 1
    row, column = (np.concatenate(parts).astype(np.int32) for parts in zip(*cells))
    shape = len(words), total
    has = sp.csr_array((np.ones(len(row), np.float32), (row, column)), shape=shape)
    has.sum_duplicates()  # an n-gram counts once in a word
    has.data = np.log(shape[0] / np.bincount(has.indices, minlength=total))[has.indices]
    return unit_rows(has.astype(np.float32))


def shared_counts(
    counts: sp.csr_array, similar_documents: sp.csr_array, similar_queries: sp.csr_array
) -> sp.csr_array:
    """Shares c(w, t), `[document words, query words]`, among similar words; see the module."""
    of_queries = _with_themselves(np.ones(counts.shape[1]), QUERY_SHARE * similar_queries)
    shared = _product(_without_small_shares(counts), of_queries)
    # The module's n_t, of each document word: Σ s(t, t') times the row sums of c'.
    totals = similar_documents @ np.asarray(shared.sum(axis=1)).ravel()
    # 2 min(1, n_t) / n_t: 2 / n_t, but never more than 2.
    scale = np.full_like(totals, DOCUMENT_COUNT)
    np.divide(DOCUMENT_COUNT, totals, out=scale, where=totals > 1)
    return _product(_with_themselves(scale, similar_documents), shared)


def _product(counts: sp.csr_array, others: sp.csr_array) -> sp.csr_array:
    """The product without small shares, which are most of it."""
    return by_rows(lambda rows: _without_small_shares(counts[rows] @ others), counts.shape[0])


def _with_themselves(scale: np.ndarray, similar: sp.csr_array) -> sp.csr_array:
    """I + diag(scale) similar."""
    scaled = sp.diags_array(scale) @ similar + sp.eye_array(len(scale))
    return sp.csr_array(scaled, dtype=np.float32)


def _without_small_shares(counts: sp.sparray) -> sp.csr_array:
    counts = sp.csr_array(counts)
    least = _LEAST_SHARE * np.asarray(counts.sum(axis=1)).ravel()
    return kept_entries(counts, counts.data >= np.repeat(least, np.diff(counts.indptr)))
