"""tf.data pipelines: from token stores to batches of tokenized pairs."""

import abc
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tf_smoothclir.data import model_inputs
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.model_inputs import ListInputs, ModelInputs, PairInputs, Texts
from tf_smoothclir.data.tokenized_set import ROLES, RaggedStore, TokenizedSet
from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, Tokens
from tf_smoothclir.utils.ranges import ranges

_BATCHES_SORTED = 32
# For functions that make a batch: tracing takes most of the time that an epoch needs to start.
traced_once = tf.function(autograph=False, reduce_retracing=True)


class Pipeline(abc.ABC):
    """Batches of query-document pairs for training."""

    # The batches of an epoch are a function of seed and epoch alone, so training can continue at
    # any step.

    def __init__(
        self, tokenized_set: TokenizedSet, *, batch_size: int, seed: int, both_at_once: bool = False
    ):
        self._both_at_once = both_at_once
        self._stores = {role: mapped_tensors(tokenized_set.tokens(role)) for role in ROLES}
        self._ngrams = {role: ngram_tensors(tokenized_set, role) for role in ROLES}
        self._batch_size = batch_size
        self._seed = seed

    def batch_pairs(self, lists: CandidateLists, epoch: int, step: int) -> np.ndarray:
        """`[batch]`, the positions in `lists` of the pairs of one batch."""
        ends = np.append(0, self.pair_ends(lists, epoch))
        return self._order(lists, epoch)[ends[step] : ends[step + 1]]

    @abc.abstractmethod
    def pair_ends(self, lists: CandidateLists, epoch: int) -> np.ndarray:
        """`[steps]` int64, the number of pairs up to the end of each batch of an epoch."""

    @abc.abstractmethod
    def _order(self, lists: CandidateLists, epoch: int) -> np.ndarray:
        """`[pairs]`, the positions in `lists` of the pairs of an epoch, in its order."""

    def epoch(self, lists: CandidateLists, epoch: int, start_step: int = 0) -> tf.data.Dataset:
        """`(inputs, grades)` from a step on: of `TwoTower`; int32 in the shape of its scores."""
        pairs = self._pairs(lists, epoch)
        steps = tf.data.Dataset.range(start_step, len(self.pair_ends(lists, epoch)))
        return prefetched(steps, lambda step: self._batch(step, *pairs), 8)

    @abc.abstractmethod
    def _pairs(self, lists: CandidateLists, epoch: int) -> tuple[tf.Tensor, ...]:
        """The pairs of an epoch, in its order."""

    @abc.abstractmethod
    def _batch(self, step: tf.Tensor, *pairs: tf.Tensor) -> tuple[ModelInputs, tf.Tensor]:
        """Inputs and grades of one batch, from what `_pairs` returns."""

    def _texts(self, queries: tf.Tensor, documents: tf.Tensor) -> Texts:
        """The tokens of a batch from the rows of its queries and documents."""
        rows = {"query": queries, "document": documents}
        tokens = {role: stored_tokens(*self._stores[role], rows[role]) for role in ROLES}
        if self._both_at_once:  # the n-grams of queries and documents are the same
            query, document = tokens.values()
            document = document._replace(texts=document.texts + tf.size(query.lengths))
            joined = Tokens(*(tf.concat(parts, axis=0) for parts in zip(query, document)))
            return model_inputs.JoinedTexts(tower_tokens(joined, self._ngrams["query"]))
        return model_inputs.SeparateTexts(
            **{role: tower_tokens(tokens[role], self._ngrams[role]) for role in ROLES}
        )


class PairPipeline(Pipeline):
    """Pairs shuffled over all queries, as in the paper; a query is encoded for each pair."""

    def pair_ends(self, lists, epoch):
        pairs, size = len(lists.document_rows), self._batch_size
        return np.append(np.arange(size, pairs, size), pairs)

    def _pairs(self, lists, epoch):
        order = self._order(lists, epoch)
        return (
            tf.constant(lists.pair_query_rows[order], tf.int64),
            tf.constant(lists.document_rows[order], tf.int64),
            tf.constant(lists.grades[order]),
        )

    @traced_once
    def _batch(self, step, queries, documents, grades):
        part = slice(step * self._batch_size, (step + 1) * self._batch_size)
        return PairInputs(self._texts(queries[part], documents[part])), grades[part]

    def _order(self, lists, epoch):
        return permutation(len(lists.document_rows), self._seed, epoch)


class BucketedPairPipeline(PairPipeline):
    """Shuffled pairs, in batches whose documents are about as long, for towers that pad."""

    def __init__(self, tokenized_set, **kwargs):
        super().__init__(tokenized_set, **kwargs)
        self._lengths = tokenized_set.tokens("document").lengths

    def _order(self, lists, epoch):
        # Within each group of batches, the shuffled pairs by length of their document.
        order, size = super()._order(lists, epoch), self._batch_size
        lengths = self._lengths[lists.document_rows[order]]
        order = order[np.lexsort((lengths, np.arange(len(order)) // (size * _BATCHES_SORTED)))]
        # Batches of one length, `[full, size]`, in random order within their group; the last batch,
        # which is smaller, stays last.
        full = len(order) // size
        shuffled = permutation(full, self._seed, epoch)
        batches = order[: full * size].reshape(full, size)
        batches = batches[np.lexsort((shuffled, np.arange(full) // _BATCHES_SORTED))]
        return np.concatenate([batches.ravel(), order[full * size :]])


class ListPipeline(Pipeline):
    """Whole candidate lists in shuffled order; each query is encoded once for all its documents."""

    # Batches have `batch_size` pairs on average: a list is in the batch that its last pair would be
    # in if all had as many.

    def pair_ends(self, lists, epoch):
        return self._lists(lists, epoch)[2]

    def _order(self, lists, epoch):
        order, _, _ = self._lists(lists, epoch)
        return ranges(lists.offsets[order], np.diff(lists.offsets)[order])  # list after list

    def _pairs(self, lists, epoch):
        order, ends, pairs_done = self._lists(lists, epoch)
        pairs = self._order(lists, epoch)
        return (
            tf.constant(lists.query_rows[order], tf.int64),
            tf.constant(np.diff(lists.offsets)[order], tf.int32),
            tf.constant(np.append(0, ends)),
            tf.constant(lists.document_rows[pairs], tf.int64),
            tf.constant(lists.grades[pairs]),
            tf.constant(np.append(0, pairs_done)),
        )

    @traced_once
    def _batch(self, step, queries, list_lengths, list_ends, documents, grades, pair_ends):
        of_lists = slice(list_ends[step], list_ends[step + 1])
        of_pairs = slice(pair_ends[step], pair_ends[step + 1])
        return self._list_batch(
            queries[of_lists], list_lengths[of_lists], documents[of_pairs], grades[of_pairs]
        )

    def _list_batch(
        self, queries: tf.Tensor, list_lengths: tf.Tensor, documents: tf.Tensor, grades: tf.Tensor
    ) -> tuple[ModelInputs, tf.Tensor]:
        """Inputs and grades of some lists, given the rows of their texts."""
        return list_inputs(self._texts(queries, documents), list_lengths), grades

    def _lists(
        self, lists: CandidateLists, epoch: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The order of the lists, and the lists and pairs up to the end of each batch."""
        order = permutation(len(lists.query_rows), self._seed, epoch)
        pairs = np.cumsum(np.diff(lists.offsets)[order])
        # The last list of each batch: the last pair of the next one is in another batch.
        last = np.flatnonzero(np.diff((pairs - 1) // self._batch_size, append=-1))
        return order, last + 1, pairs[last]


class InBatchPipeline(ListPipeline):
    """Whole candidate lists whose documents are negatives for all other queries of the batch."""

    # Each document comes once, and the grades are `[queries, documents]`, 0 outside the list of a
    # query.

    def _list_batch(self, queries, list_lengths, documents, grades):
        # Grades of lists become a matrix: `[pairs, 2]`, the query and the document of each.
        distinct, places = tf.unique(documents)
        pairs = tf.stack([row_numbers(list_lengths), places], axis=1)
        inputs = model_inputs.InBatchInputs(self._texts(queries, distinct), list_lengths)
        return inputs, tf.scatter_nd(pairs, grades, [tf.size(queries), tf.size(distinct)])


def list_inputs(texts: Texts, list_lengths: tf.Tensor) -> ListInputs:
    """Candidate lists, given their texts and `[queries]` int32 lengths."""
    return ListInputs(texts, list_lengths, row_numbers(list_lengths))


PIPELINES = {
    "pairs": PairPipeline,
    "bucketed": BucketedPairPipeline,
    "lists": ListPipeline,
    "in_batch": InBatchPipeline,
}


def tower_tokens(
    tokens: Tokens, ngrams: tuple[tf.Tensor, tf.Tensor] | None = None
) -> Tokens | SubwordTokens:
    """The tokens of texts as towers take them."""
    if ngrams is None:
        return tokens
    # N-grams are stored by word id; each different word of the batch brings its own once.
    words = DistinctTokens.of(tokens)
    return SubwordTokens(*words, DistinctTokens.of(stored_tokens(*ngrams, words.distinct)))


def ngram_tensors(tokenized_set: TokenizedSet, role: str) -> tuple[tf.Tensor, tf.Tensor] | None:
    """The stored n-grams of every word of a role, mapped; None without n-grams."""
    store = tokenized_set.ngrams(role)
    return None if store is None else mapped_tensors(store)


def token_batches(tokenized_set: TokenizedSet, role: str, batch_size: int) -> tf.data.Dataset:
    """All queries or documents of a set, in row order, as batches of tokens."""
    store = tokenized_set.tokens(role)
    values, offsets = mapped_tensors(store)
    ngrams = ngram_tensors(tokenized_set, role)

    def batch(begin):
        rows = tf.range(begin, tf.minimum(begin + batch_size, len(store)))
        return tower_tokens(stored_tokens(values, offsets, rows), ngrams)

    begins = tf.data.Dataset.range(0, len(store), batch_size)
    return prefetched(begins, batch, 2)


def prefetched(steps: tf.data.Dataset, batch: Callable, ahead: int) -> tf.data.Dataset:
    """`batch(step)` for each step, with some of them prefetched."""
    batch = tf.autograph.experimental.do_not_convert(batch)
    batches = steps.map(batch, num_parallel_calls=2, deterministic=True)
    return batches.prefetch(ahead).with_options(plain_options())


def plain_options() -> tf.data.Options:
    """Options that make tf.data run a pipeline as given: no autotuning, no rewriting."""
    # tf.data's autotuning wakes at intervals that double up to a minute, and closing a pipeline
    # waits for it: an epoch of three seconds took up to five (TensorFlow 2.15 and 2.21). Rewriting
    # takes half of the time that an iterator needs to start, and makes it no faster.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


def mapped_tensors(store: RaggedStore) -> tuple[tf.Tensor, tf.Tensor]:
    """`(values, offsets)` as tensors; the values stay on disk, mapped into memory."""
    if not len(store.values):
        return tf.constant(store.values, store.dtype), tf.constant(store.offsets)
    # DLPack shares arrays that may be written to, which a private mapping may: nothing reaches the
    # file. (`ImmutableConst`, which is made for this, reads all of it into memory.)
    values = np.memmap(store.path, store.dtype, mode="c")
    return tf.experimental.dlpack.from_dlpack(values.__dlpack__()), tf.constant(store.offsets)


def stored_tokens(values: tf.Tensor, offsets: tf.Tensor, rows: tf.Tensor) -> Tokens:
    """`[batch]` rows of a token store, by its `[all rows + 1]` int64 offsets, in the graph."""
    gathered = tf.raw_ops.RaggedGather(
        params_nested_splits=[offsets],
        params_dense_values=values,
        indices=rows,
        OUTPUT_RAGGED_RANK=1,
    )
    (splits,) = gathered.output_nested_splits
    lengths = tf.cast(splits[1:] - splits[:-1], tf.int32)
    return Tokens(gathered.output_dense_values, lengths, row_numbers(lengths))


def row_numbers(lengths: tf.Tensor) -> tf.Tensor:
    """`[sum of lengths]` int32, the row of each value, given the `[rows]` int32 lengths."""
    # Several times faster than `tf.repeat`, which makes a matrix as wide as the longest row; but on
    # the CPU only.
    lengths, bits = tf.cast(lengths, tf.int64), tf.constant(32, tf.int64)
    # One range per row, of numbers whose upper halves are the row number.
    begins = tf.bitwise.left_shift(tf.range(tf.size(lengths, tf.int64)), bits)
    ranges = tf.ragged.range(begins, begins + lengths)
    return tf.cast(tf.bitwise.right_shift(ranges.flat_values, bits), tf.int32)
