"""Batches of candidate lists from TFRecord shards."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.dataset_options import prefetched
from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.extras.distributed.reading import READ_BUFFER_BYTES, Shards, decode_lists
from tf_smoothclir.utils.errors import input_error

_LISTS_IN_BUFFER = 1024  # about 35 MB with 54 documents of 150 tokens
_FILES_AT_ONCE = 4


class ShardPipeline:
    """Batches of whole candidate lists from shards, like those of `ListPipeline` from token stores.

    Each of several workers reads its own shards; together they read every list once per epoch. Seed
    and epoch alone decide the order of the shards and of the lists within a buffer.
    """

    def __init__(
        self, shards: Shards, *, batch_size: int, seed: int, worker: int = 0, num_workers: int = 1
    ):
        if not 0 <= worker < num_workers:
            raise ValueError(f"worker must be in 0..{num_workers - 1}, but is {worker}.")
        manifest = shards.manifest
        if num_workers > len(manifest.shards):
            raise input_error(
                shards.directory,
                f"{num_workers} workers cannot share {len(manifest.shards)} shards",
                f"Use fewer workers, or write more: smoothclir-shards --num_shards={num_workers}",
            )
        own = manifest.shards[worker::num_workers]
        self._paths = np.array([shards.path(shard.file) for shard in own])
        self._queries = np.array([shard.queries for shard in own])
        self._lists_in_batch = max(1, round(batch_size * manifest.queries / manifest.pairs))
        self._seed = seed

    def num_steps(self) -> int:
        """The number of batches in an epoch; the last one may be smaller.

        It may differ among workers. Workers that wait for each other take the smallest number.
        """
        return -(-int(self._queries.sum()) // self._lists_in_batch)

    def epoch(self, epoch: int, start_step: int = 0) -> tf.data.Dataset:
        """The batches of an epoch, from `start_step` on.

        Read errors are raised while the batches are taken: see `Shards.explaining_defects`.
        """
        batches = prefetched(self._records(epoch, start_step), decode_lists, 8)
        options = tf.data.Options()
        # The shards are this worker's own: tf.distribute must not split them once more.
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        return batches.with_options(options)

    def rows(self, epoch: int, step: int) -> list[tuple[str, str, int]]:
        """(query id, document id, grade) for each pair of a batch."""
        (records,) = self._records(epoch, step).take(1).as_numpy_iterator()
        pairs = []
        for example in map(tf.train.Example.FromString, records):
            values = {name: f.bytes_list.value for name, f in example.features.feature.items()}
            query = values["query_id"][0].decode()
            grades = np.frombuffer(values["grades"][0], "<i4").tolist()
            documents = [document.decode() for document in values["document_ids"]]
            pairs += [(query, *pair) for pair in zip(documents, grades)]
        return pairs

    def _records(self, epoch: int, start_step: int) -> tf.data.Dataset:
        """Batches of serialised Examples, `[lists]` string, from `start_step` on."""
        files = permutation(len(self._paths), self._seed, epoch)
        records = tf.data.Dataset.from_tensor_slices((self._paths[files], self._queries[files]))
        records = records.interleave(
            _records_of,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=_FILES_AT_ONCE,
            deterministic=True,
        )
        # Lists are shuffled within a buffer: each list takes the place that is drawn for it.
        places = tf.data.Dataset.from_tensor_slices(self._places_in_buffers(epoch))
        size = _LISTS_IN_BUFFER
        buffers = tf.data.Dataset.zip((records.batch(size), places.batch(size))).map(tf.gather)
        return buffers.prefetch(1).rebatch(self._lists_in_batch).skip(start_step)

    def _places_in_buffers(self, epoch: int) -> np.ndarray:
        """`[queries]`, the place in the buffer that each list is taken from."""
        queries, size = int(self._queries.sum()), _LISTS_IN_BUFFER
        return np.concatenate(
            [
                permutation(min(size, queries - begin), self._seed, epoch, begin)
                for begin in range(0, queries, size)
            ]
        )


def _records_of(path: tf.Tensor, number: tf.Tensor) -> tf.data.Dataset:
    records = tf.data.TFRecordDataset(path, buffer_size=READ_BUFFER_BYTES)
    # Without this, a truncated file would end without an error.
    return records.apply(tf.data.experimental.assert_cardinality(number))
