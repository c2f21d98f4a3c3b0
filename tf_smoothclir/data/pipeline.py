"""tf.data pipelines: from token stores to batches of tokenized pairs."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.judged_lists import JudgedLists
from tf_smoothclir.data.prepared import ROLES, PreparedSet
from tf_smoothclir.data.ragged_store import gather_rows


class PairPipeline:
    """Shuffled query-document pairs, as in the paper, in batches of tokens.

    What an epoch holds is a function of seed and epoch alone, so that training can continue at any
    step as if it had never stopped.
    """

    def __init__(self, prepared: PreparedSet, *, batch_size: int, seed: int):
        """Reads tokens from `prepared`, `batch_size` pairs at a time."""
        self._stores = {role: prepared.tokens(role).tensors() for role in ROLES}
        self._batch_size = batch_size
        self._seed = seed

    def num_steps(self, lists: JudgedLists) -> int:
        """Returns the number of batches of an epoch; the last one may be smaller."""
        return -(-len(lists.document_rows) // self._batch_size)

    def batch_pairs(self, lists: JudgedLists, epoch: int, step: int) -> np.ndarray:
        """Returns `[batch]`, the positions in `lists` of the pairs of one batch."""
        order = permutation(len(lists.document_rows), self._seed, epoch)
        return order[step * self._batch_size : (step + 1) * self._batch_size]

    def epoch(self, lists: JudgedLists, epoch: int, start_step: int = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch, from `start_step` on.

        Args:
            lists: The judged lists whose pairs are trained on.
            epoch: Number of the epoch, from 0; decides the order.
            start_step: First batch, for continuing in the middle of an epoch.

        Returns:
            A dataset of `({"query": tokens, "document": tokens}, grades [batch] int32)` with
            `tokens = {"ids": [tokens] int32, "lengths": [batch] int32}`.
        """
        order = permutation(len(lists.document_rows), self._seed, epoch)
        rows = {
            "query": tf.constant(lists.pair_query_rows[order], tf.int64),
            "document": tf.constant(lists.document_rows[order], tf.int64),
        }
        grades = tf.constant(lists.grades[order])
        size = self._batch_size

        def batch(step):
            part = slice(step * size, (step + 1) * size)
            return {role: self._tokens(role, rows[role][part]) for role in ROLES}, grades[part]

        steps = tf.data.Dataset.range(start_step, self.num_steps(lists))
        return steps.map(batch, num_parallel_calls=2, deterministic=True).prefetch(8)

    def _tokens(self, role: str, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        ids, lengths = gather_rows(*self._stores[role], rows)
        return {"ids": ids, "lengths": lengths}


def text_batches(prepared: PreparedSet, role: str, batch_size: int) -> tf.data.Dataset:
    """Returns all queries or documents of a set, in row order, as batches of tokens."""
    store = prepared.tokens(role)
    values, offsets = store.tensors()

    def batch(begin):
        rows = tf.range(begin, tf.minimum(begin + batch_size, len(store)))
        ids, lengths = gather_rows(values, offsets, rows)
        return {"ids": ids, "lengths": lengths}

    begins = tf.data.Dataset.range(0, len(store), batch_size)
    return begins.map(batch, num_parallel_calls=2, deterministic=True).prefetch(2)
