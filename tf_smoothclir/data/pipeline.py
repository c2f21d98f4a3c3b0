"""tf.data pipelines: from token stores to batches of tokenized pairs."""

from __future__ import annotations

import abc

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.dataset_options import prefetched, traced_once
from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.ragged_store import gather_rows, row_numbers
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet

_BATCHES_SORTED = 32


class Pipeline(abc.ABC):
    """Batches of query-document pairs for training.

    What an epoch holds is a function of seed and epoch alone, so that training can continue at any
    step as if it had never stopped.
    """

    def __init__(
        self, tokenized_set: TokenizedSet, *, batch_size: int, seed: int, both_at_once: bool = False
    ):
        """Makes batches.

        Args:
            tokenized_set: Where the tokens come from.
            batch_size: About so many pairs a batch.
            seed: Decides the order, with the epoch.
            both_at_once: Gives queries and documents together, as "both" of the inputs of
                `TwoTower`; their vocabulary must be shared.
        """
        self._both_at_once = both_at_once
        self._stores = {role: tokenized_set.tokens(role).tensors() for role in ROLES}
        self._ngrams = {role: _ngram_tensors(tokenized_set, role) for role in ROLES}
        self._batch_size = batch_size
        self._seed = seed

    @abc.abstractmethod
    def batch_pairs(self, lists: CandidateLists, epoch: int, step: int) -> np.ndarray:
        """Returns `[batch]`, the positions in `lists` of the pairs of one batch."""

    @abc.abstractmethod
    def pair_ends(self, lists: CandidateLists, epoch: int) -> np.ndarray:
        """Returns `[steps]` int64, how many pairs are done after each batch of an epoch."""

    def epoch(self, lists: CandidateLists, epoch: int, start_step: int = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch, from `start_step` on.

        Args:
            lists: The candidate lists whose pairs are trained on.
            epoch: Number of the epoch, from 0; decides the order.
            start_step: First batch, for continuing in the middle of an epoch.

        Returns:
            A dataset of `(inputs, grades int32)`, inputs as `TwoTower` takes them, where tokens are
            what `tower_tokens` returns, and grades in the shape of its scores.
        """
        pairs = self._pairs(lists, epoch)
        steps = tf.data.Dataset.range(start_step, len(self.pair_ends(lists, epoch)))
        return prefetched(steps, lambda step: self._batch(step, *pairs), 8)

    @abc.abstractmethod
    def _pairs(self, lists: CandidateLists, epoch: int) -> tuple[tf.Tensor, ...]:
        """Returns the pairs of an epoch, in its order."""

    @abc.abstractmethod
    def _batch(self, step: tf.Tensor, *pairs: tf.Tensor) -> tuple[dict, tf.Tensor]:
        """Returns inputs and grades of one batch, from what `_pairs` returns."""

    def _tokens(self, rows: dict[str, tf.Tensor]) -> dict[str, dict[str, tf.Tensor]]:
        """Returns the tokens of a batch by role, or of "both", from the rows of either role."""
        texts = {role: gather_rows(*self._stores[role], rows[role]) for role in ROLES}
        ngrams = self._ngrams
        if self._both_at_once:
            texts = {"both": _joined(*texts.values())}
            ngrams = {"both": ngrams["query"]}  # those of the documents are the same
        return {name: tower_tokens(*texts[name], ngrams[name]) for name in texts}


class PairPipeline(Pipeline):
    """Pairs shuffled over all queries, as in the paper; a query is encoded for each pair."""

    def batch_pairs(self, lists, epoch, step):
        return self._order(lists, epoch)[step * self._batch_size : (step + 1) * self._batch_size]

    def pair_ends(self, lists, epoch):
        del epoch
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
        return self._tokens({"query": queries[part], "document": documents[part]}), grades[part]

    def _order(self, lists: CandidateLists, epoch: int) -> np.ndarray:
        return permutation(len(lists.document_rows), self._seed, epoch)


class BucketedPairPipeline(PairPipeline):
    """Shuffled pairs, of which those of a batch have documents of about the same length.

    For towers that pad: every few batches of shuffled pairs are sorted by length and cut into
    batches, which come in shuffled order.
    """

    def __init__(self, tokenized_set, **kwargs):
        super().__init__(tokenized_set, **kwargs)
        self._lengths = tokenized_set.tokens("document").lengths

    def _order(self, lists, epoch):
        order, size = super()._order(lists, epoch), self._batch_size
        lengths = self._lengths[lists.document_rows[order]]
        order = order[np.lexsort((lengths, np.arange(len(order)) // (size * _BATCHES_SORTED)))]
        full = len(order) // size
        shuffled = permutation(full, self._seed, epoch)
        batches = order[: full * size].reshape(full, size)
        batches = batches[np.lexsort((shuffled, np.arange(full) // _BATCHES_SORTED))]
        return np.concatenate([batches.ravel(), order[full * size :]])


class ListPipeline(Pipeline):
    """Whole candidate lists in shuffled order; each query is encoded once for all its documents.

    Batches have `batch_size` pairs on average: a list belongs to the batch that its last pair would
    belong to if batches had just so many.
    """

    def batch_pairs(self, lists, epoch, step):
        order, ends, _ = self._order(lists, epoch)
        begin = ends[step - 1] if step else 0
        return _pairs_of(lists, order[begin : ends[step]])

    def pair_ends(self, lists, epoch):
        return self._order(lists, epoch)[2]

    def _pairs(self, lists, epoch):
        order, ends, pairs_done = self._order(lists, epoch)
        pairs = _pairs_of(lists, order)
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
    ) -> tuple[dict, tf.Tensor]:
        """Returns inputs and grades of some lists, whose texts are given by their rows."""
        inputs = self._tokens({"query": queries, "document": documents})
        return {**inputs, **of_lists(list_lengths)}, grades

    def _order(
        self, lists: CandidateLists, epoch: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the order of the lists, and how many lists and pairs are done after a batch."""
        order = permutation(len(lists.query_rows), self._seed, epoch)
        pairs = np.cumsum(np.diff(lists.offsets)[order])
        last = np.flatnonzero(np.diff((pairs - 1) // self._batch_size, append=-1))
        return order, last + 1, pairs[last]


class InBatchPipeline(ListPipeline):
    """Whole candidate lists whose documents are negatives of all other queries of the batch too.

    For a `TwoTower` with `in_batch`: each document comes once, and the grades are `[queries,
    documents]`, 0 where a document is not in the list of a query. All judged ones are.
    """

    def _list_batch(self, queries, list_lengths, documents, grades):
        distinct, places = tf.unique(documents)
        pairs = tf.stack([row_numbers(list_lengths), places], axis=1)
        inputs = self._tokens({"query": queries, "document": distinct})
        inputs["list_lengths"] = list_lengths
        return inputs, tf.scatter_nd(pairs, grades, [tf.size(queries), tf.size(distinct)])


def of_lists(lengths: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns what a `TwoTower` is told of lists, one after the other, from their lengths."""
    return {"list_lengths": lengths, "lists": row_numbers(lengths)}


PIPELINES = {
    "pairs": PairPipeline,
    "bucketed": BucketedPairPipeline,
    "lists": ListPipeline,
    "in_batch": InBatchPipeline,
}


def tower_tokens(
    ids: tf.Tensor,
    lengths: tf.Tensor,
    texts: tf.Tensor,
    ngrams: tuple[tf.Tensor, tf.Tensor] | None = None,
) -> dict[str, tf.Tensor]:
    """Returns the tokens of texts as towers take them.

    Args:
        ids: `[tokens]` int32, of all texts one after the other.
        lengths: `[texts]` int32, how many each text has.
        texts: `[tokens]` int32, the text of each token.
        ngrams: Tensors of the store of the n-grams of each word, where towers need them.

    Returns:
        These three. With n-grams, "distinct" and "positions": each different id once, and where
        among these each token stands, both int32; and "subwords", all the same of the n-grams of
        the distinct ids.
    """
    tokens = {"ids": ids, "lengths": lengths, "texts": texts}
    if ngrams is None:
        return tokens
    tokens = _with_distinct(tokens)
    subwords = tower_tokens(*gather_rows(*ngrams, tokens["distinct"]))
    return {**tokens, "subwords": _with_distinct(subwords)}


def _with_distinct(tokens: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    distinct, positions = tf.unique(tokens["ids"])
    return {**tokens, "distinct": distinct, "positions": positions}


def _joined(queries: tuple, documents: tuple) -> tuple:
    """Returns what `gather_rows` would of the texts of both, queries first."""
    ids, lengths, texts = documents
    documents = ids, lengths, texts + tf.size(queries[1])
    return tuple(tf.concat(parts, axis=0) for parts in zip(queries, documents))


def _ngram_tensors(tokenized_set: TokenizedSet, role: str) -> tuple[tf.Tensor, tf.Tensor] | None:
    store = tokenized_set.ngrams(role)
    return None if store is None else store.tensors()


def token_batches(tokenized_set: TokenizedSet, role: str, batch_size: int) -> tf.data.Dataset:
    """Returns all queries or documents of a set, in row order, as batches of tokens."""
    store = tokenized_set.tokens(role)
    values, offsets = store.tensors()
    ngrams = _ngram_tensors(tokenized_set, role)

    def batch(begin):
        rows = tf.range(begin, tf.minimum(begin + batch_size, len(store)))
        return tower_tokens(*gather_rows(values, offsets, rows), ngrams)

    begins = tf.data.Dataset.range(0, len(store), batch_size)
    return prefetched(begins, batch, 2)


def _pairs_of(lists: CandidateLists, chosen: np.ndarray) -> np.ndarray:
    """Returns the positions of the pairs of some lists, list after list."""
    lengths = np.diff(lists.offsets)[chosen]
    shift = np.repeat(lists.offsets[:-1][chosen] - (np.cumsum(lengths) - lengths), lengths)
    return np.arange(len(shift)) + shift
