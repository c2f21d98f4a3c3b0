"""What a search model ranks by, in the graph: vectors, a lexical model, or both, and feedback."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.lexical.feedback import DEPTH as FEEDBACK_DEPTH
from tf_smoothclir.lexical.feedback import TERMS
from tf_smoothclir.lexical.postings import Postings, SparseRows
from tf_smoothclir.lexical.words import NO_WORD, Words
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.text.tokens import Tokens
from tf_smoothclir.utils import sparse as sp

# Bounds the memory of a request with long lists: 1,048,576 postings, or one list, at a time.
_POSTINGS_PER_STEP = 1 << 20


class QueriesRead(NamedTuple):
    """Queries as the halves of a retriever see them."""

    words: Tokens | None  # of the lexical model; None without one
    vectors: dict[str, tf.Tensor]  # part that ranks by vectors -> `[batch, dim]` float32
    levels: tf.Tensor  # `[batch]` int32, the best evidence that either has of each query

    def known_words(self) -> tf.Tensor:
        """`[batch]` float32, how many words of each have an id, at least 1; 1 without words."""
        if self.words is None:
            return tf.ones_like(self.levels, tf.float32)
        known = tf.cast(self.words.ids != NO_WORD, tf.float32)
        number = tf.size(self.levels)
        return tf.maximum(tf.math.unsorted_segment_sum(known, self.words.texts, number), 1)


class DenseScorer(tf.Module):
    """Scores by inner products of vectors."""

    def __init__(self, part: str, vectors: np.ndarray):
        super().__init__(name=part)
        self._part = part
        self._vectors = tf.Variable(vectors, trainable=False)  # `[documents, dim]` float32

    def all_documents(self, queries: QueriesRead) -> tf.Tensor:
        """The scores of the collection, `[queries, documents]`."""
        return tf.matmul(queries.vectors[self._part], self._vectors, transpose_b=True)


class LexicalScorer(tf.Module):
    """Scores by the words of queries, as a `RowRetriever` of the lexical model without feedback."""

    def __init__(self, parts: LexicalParts, words: Words):
        super().__init__(name="lexical")
        read = parts.model.passages(words)
        passages = read.number_of_each()
        postings = Postings.of(parts.model.impacts(read, parts.spelling))
        self._documents = None  # the document of each passage
        if len(passages) < postings.rows:
            owners = np.repeat(np.arange(len(passages), dtype=np.int32), passages)
            self._documents = tf.Variable(owners, trainable=False)
        places = np.full(len(postings.rare), -1, np.int32)
        places[postings.common] = np.arange(len(postings.common))
        self._common_places = tf.Variable(places, trainable=False)
        self._common = tf.Variable(postings.common_values, trainable=False)
        self._rare = PostingSums(postings.rare, postings.rows)
        self._shape = [None, len(passages)]

    def all_documents(self, queries: QueriesRead) -> tf.Tensor:
        """The scores of the collection, `[queries, documents]`."""
        tokens, num_queries = queries.words, tf.size(queries.levels)
        known = tokens.ids != NO_WORD
        words, rows = tf.boolean_mask(tokens.ids, known), tf.boolean_mask(tokens.texts, known)
        places = tf.gather(self._common_places, words)
        common = places >= 0
        scores = tf.raw_ops.SparseSegmentSumWithNumSegments(
            data=self._common,
            indices=tf.boolean_mask(places, common),
            segment_ids=tf.boolean_mask(rows, common),
            num_segments=num_queries,
        )
        words, rows = tf.boolean_mask(words, ~common), tf.boolean_mask(rows, ~common)
        scores += self._rare(words, None, rows, num_queries)
        if self._documents is None:
            return scores
        best = tf.math.segment_max(tf.transpose(scores), self._documents)
        return tf.ensure_shape(tf.transpose(best), self._shape)


class FusedScorer(tf.Module):
    """Scores by a fusion of parts."""

    def __init__(self, fusion: Fusion, scorers: Mapping[str, DenseScorer | LexicalScorer]):
        super().__init__(name="fused")
        self._weights, self._scorers = fusion.weights, dict(scorers)

    def all_documents(self, queries: QueriesRead) -> tf.Tensor:
        """The scores of the collection, `[queries, documents]`."""
        scores, times = [], queries.known_words()[:, tf.newaxis]  # as `times_counted`
        for part, weight in self._weights.items():
            if weight:
                factor = weight if part == "lexical" else weight * times
                scores.append(factor * self._scorers[part].all_documents(queries))
        return tf.add_n(scores)


class ExportedFeedback(tf.Module):
    """Adds feedback to the scores of a collection, as `lexical.feedback.Feedback` does."""

    def __init__(self, vectors: sp.csr_array, weight: float):
        """Takes a collection as the `[documents, words]` of `tf_idf`."""
        super().__init__(name="feedback")
        self._weight = weight
        self._depth = min(FEEDBACK_DEPTH, vectors.shape[0])
        self._terms = min(TERMS, vectors.shape[1])
        self._documents = SparseLists(SparseRows.of(vectors), vectors.shape[1])
        self._postings = PostingSums(SparseRows.of(vectors.T.tocsr()), vectors.shape[0])

    def __call__(self, scores: tf.Tensor) -> tf.Tensor:
        """`[queries, documents]` scores with feedback; of equal ones, lower places rank first."""
        queries = tf.shape(scores)[0]
        best, first = tf.math.top_k(scores, self._depth)
        shares = tf.nn.softmax(tf.where(best > 0, best, scores.dtype.min))
        weights, terms = self._heaviest_terms(first, tf.where(best > 0, shares, 0))
        rows = tf.repeat(tf.range(queries), self._terms)
        some = tf.reshape(weights, [-1]) > 0
        similar = self._postings(
            tf.boolean_mask(tf.reshape(terms, [-1]), some),
            tf.boolean_mask(tf.reshape(weights, [-1]), some),
            tf.boolean_mask(rows, some),
            queries,
        )
        # The first documents, and what equals the last of them.
        least = tf.reduce_min(tf.where(best > 0, best, best.dtype.max), axis=1, keepdims=True)
        lifted = (scores >= least) & (scores > 0)
        highest = tf.reduce_max(tf.where(lifted, similar, 0), axis=1, keepdims=True)
        return scores + self._weight * tf.where(lifted, highest, similar)

    def _heaviest_terms(self, first: tf.Tensor, shares: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The weights and ids of the words of mixtures of documents, `[queries, terms]`."""
        documents, shares = tf.reshape(first, [-1]), tf.reshape(shares, [-1])
        lengths = self._documents.lengths(documents)
        words, values = self._documents.entries(documents)
        per_query = tf.reduce_sum(tf.reshape(lengths, tf.shape(first)), axis=1)
        values *= tf.gather(shares, owners(lengths))
        mixture = row_sums(words, values, per_query, self._documents.width)
        return tf.math.top_k(mixture, self._terms)


class SparseLists(tf.Module):
    """The rows of a sparse matrix: a list of ids and values for each."""

    def __init__(self, rows: SparseRows, width: int):
        super().__init__(name="lists")
        self.width = width
        self._ends = tf.Variable(rows.ends, trainable=False)
        self._ids = tf.Variable(rows.ids, trainable=False)
        self._values = tf.Variable(rows.values, trainable=False)

    def lengths(self, lists: tf.Tensor) -> tf.Tensor:
        """The number of entries of some lists, in the same shape, int64."""
        return tf.gather(self._ends, lists + 1) - tf.gather(self._ends, lists)

    def entries(self, lists: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids and the values of some lists, one list after the other."""
        places = tf.ragged.range(
            tf.gather(self._ends, lists), tf.gather(self._ends, lists + 1)
        ).flat_values
        return tf.gather(self._ids, places), tf.gather(self._values, places)


class PostingSums(SparseLists):
    """Scores all documents by the lists of words; its width is their number."""

    def __call__(
        self, words: tf.Tensor, weights: tf.Tensor | None, rows: tf.Tensor, queries: tf.Tensor
    ) -> tf.Tensor:
        """Σ weight · impact, `[queries, documents]` float32, of `[items]` words by query row."""
        # Each document gets its sum in the order of the words, so equal documents have equal sums.
        lengths = self.lengths(words)
        ends = tf.cumsum(lengths)

        def add_some(begin, sums):
            before = ends[begin] - lengths[begin]
            # Whole lists, at least one.
            end = tf.searchsorted(ends, [before + _POSTINGS_PER_STEP], side="right")[0]
            end = tf.maximum(begin + 1, end)
            documents, values = self.entries(words[begin:end])
            if weights is not None:
                values *= tf.gather(weights[begin:end], owners(lengths[begin:end]))
            per_query = tf.math.unsorted_segment_sum(lengths[begin:end], rows[begin:end], queries)
            return end, sums + row_sums(documents, values, per_query, self.width)

        _, sums = tf.while_loop(
            lambda begin, _: begin < tf.size(words),
            add_some,
            (0, tf.zeros([queries, self.width])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, self.width])),
        )
        return sums


def row_sums(ids: tf.Tensor, values: tf.Tensor, lengths: tf.Tensor, width: int) -> tf.Tensor:
    """Sums of the values of each id in each of consecutive rows, `[rows, width]` float32."""
    splits = tf.concat([[tf.constant(0, tf.int64)], tf.cumsum(lengths)], axis=0)
    sums = tf.raw_ops.RaggedBincount(splits=splits, values=ids, size=width, weights=values)
    return tf.ensure_shape(sums, [None, width])


def owners(lengths: tf.Tensor) -> tf.Tensor:
    """`[sum of lengths]` int32, the list of each entry of lists of `[lists]` int64 lengths."""
    # `tf.repeat` would need memory for the number of lists times the longest one.
    begins = tf.cumsum(lengths, exclusive=True)
    # An entry is in the last list that begins at or before its place.
    begun = tf.math.unsorted_segment_sum(
        tf.ones_like(begins, tf.int32), begins, tf.reduce_sum(lengths) + 1
    )
    return tf.cumsum(begun)[:-1] - 1
