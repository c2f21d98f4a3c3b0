"""Inverted lists in the graph: sums over the postings of a few words, with core operations.

The lists lie one after the other in two variables. A list is a range of places, and a query is a
ragged batch of ranges.
"""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.lexical.postings import SparseRows

# Bounds the memory of a request with long lists: 1,048,576 postings, or one list, at a time.
_POSTINGS_PER_STEP = 1 << 20


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


class PostingSums(tf.Module):
    """Scores all documents by the lists of words."""

    def __init__(self, by_word: SparseRows, documents: int):
        super().__init__(name="postings")
        self._lists = SparseLists(by_word, documents)

    def __call__(
        self, words: tf.Tensor, weights: tf.Tensor | None, rows: tf.Tensor, queries: tf.Tensor
    ) -> tf.Tensor:
        """Σ weight · impact of all documents, `[queries, documents]` float32.

        Each document gets its sum in the order of the words, so equal documents have equal sums.

        Args:
            words: `[items]` int32, the words of all queries.
            weights: `[items]` float32, what each counts; None for 1.
            rows: `[items]` int32, ascending, the query of each.
        """
        lengths = self._lists.lengths(words)
        ends = tf.cumsum(lengths)

        def add_some(begin, sums):
            before = ends[begin] - lengths[begin]
            # Whole lists, at least one.
            end = tf.searchsorted(ends, [before + _POSTINGS_PER_STEP], side="right")[0]
            end = tf.maximum(begin + 1, end)
            documents, values = self._lists.entries(words[begin:end])
            if weights is not None:
                values *= tf.gather(weights[begin:end], owners(lengths[begin:end]))
            per_query = tf.math.unsorted_segment_sum(lengths[begin:end], rows[begin:end], queries)
            return end, sums + row_sums(documents, values, per_query, self._lists.width)

        _, sums = tf.while_loop(
            lambda begin, _: begin < tf.size(words),
            add_some,
            (0, tf.zeros([queries, self._lists.width])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, self._lists.width])),
        )
        return sums


def row_sums(ids: tf.Tensor, values: tf.Tensor, lengths: tf.Tensor, width: int) -> tf.Tensor:
    """Sums of the values of each id in each of consecutive rows, `[rows, width]` float32."""
    splits = tf.concat([[tf.constant(0, tf.int64)], tf.cumsum(lengths)], axis=0)
    sums = tf.raw_ops.RaggedBincount(splits=splits, values=ids, size=width, weights=values)
    return tf.ensure_shape(sums, [None, width])


def owners(lengths: tf.Tensor) -> tf.Tensor:
    """`[sum of lengths]` int32, the list that each entry of consecutive lists is in.

    `tf.repeat` would need memory for the number of lists times the longest one.

    Args:
        lengths: `[lists]` int64.
    """
    begins = tf.cumsum(lengths, exclusive=True)
    # An entry is in the last list that begins at or before its place.
    begun = tf.math.unsorted_segment_sum(
        tf.ones_like(begins, tf.int32), begins, tf.reduce_sum(lengths) + 1
    )
    return tf.cumsum(begun)[:-1] - 1
