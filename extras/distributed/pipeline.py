"""Training from TFRecord shards: batches of lists, and whether shards and settings agree."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.pipeline import prefetched
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.extras.distributed.reading import (
    READ_BUFFER_BYTES,
    ShardEntry,
    Shards,
    decode_lists,
)
from tf_smoothclir.extras.distributed.settings import ShardsSettings
from tf_smoothclir.protocols.task import Batches, Epoch
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.processes import SingleProcess
from tf_smoothclir.utils.errors import InputError, input_error

_LISTS_IN_BUFFER = 1024  # about 35 MB with 54 documents of 150 tokens
_FILES_AT_ONCE = 4
_OF_NGRAMS = ("min_ngram", "max_ngram")  # shards hold no n-grams


class ShardPipeline(Batches):
    """Batches of whole candidate lists from shards, like those of `ListPipeline` from token stores.

    Each of several workers reads its own shards; together they read every list once per epoch, but
    for the last steps of those that have more: an epoch ends with the worker that has the fewest
    batches. Seed and epoch alone decide the order of the shards and of the lists within a buffer.
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
        self._shards, self._worker, self._seed = shards, worker, seed
        self._own = [manifest.shards[number::num_workers] for number in range(num_workers)]
        lists = batch_size / num_workers * manifest.queries / manifest.pairs
        self._lists_in_batch = max(1, round(lists))
        self.num_steps = min(-(-_queries(own) // self._lists_in_batch) for own in self._own)

    def epoch(self, number: int) -> Epoch:
        """The batches of an epoch, from 0; the rows of a step are those of all workers."""
        workers = range(len(self._own))
        return Epoch(
            steps=self.num_steps,
            pairs=self._shards.manifest.pairs,
            batches=lambda start: self.dataset(number, start).take(self.num_steps - start),
            rows=lambda step: [row for w in workers for row in self._rows(number, step, w)],
        )

    def explaining_defects(self) -> contextlib.AbstractContextManager:
        """Turns a read error, inside the context, into one that names file and record."""
        return self._shards.explaining_defects()

    def dataset(self, epoch: int, start_step: int = 0) -> tf.data.Dataset:
        """All batches of this worker in an epoch, from `start_step` on; the last may be smaller.

        Read errors are raised while the batches are taken: see `explaining_defects`.
        """
        records = self._records(epoch, start_step, self._worker)
        options = tf.data.Options()
        # The shards are this worker's own: tf.distribute must not split them once more.
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        return prefetched(records, decode_lists, 8).with_options(options)

    def _rows(self, epoch: int, step: int, worker: int) -> list[tuple[str, str, int]]:
        """(query id, document id, grade) for each pair of a batch."""
        (records,) = self._records(epoch, step, worker).take(1).as_numpy_iterator()
        pairs = []
        for example in map(tf.train.Example.FromString, records):
            values = example.features.feature
            (query,) = values["query_id"].bytes_list.value
            documents, grades = values["document_ids"].bytes_list, values["grades"].int64_list
            pairs += [
                (query.decode(), d.decode(), g) for d, g in zip(documents.value, grades.value)
            ]
        return pairs

    def _records(self, epoch: int, start_step: int, worker: int) -> tf.data.Dataset:
        """Batches of serialised Examples, `[lists]` string, from `start_step` on."""
        own = self._own[worker]
        files = [own[number] for number in permutation(len(own), self._seed, epoch)]
        paths = [self._shards.path(shard.file) for shard in files]
        numbers = np.array([shard.queries for shard in files])
        records = tf.data.Dataset.from_tensor_slices((paths, numbers)).interleave(
            _records_of,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=_FILES_AT_ONCE,
            deterministic=True,
        )
        # Lists are shuffled within a buffer: each list takes the place that is drawn for it.
        queries, size = _queries(own), _LISTS_IN_BUFFER
        sizes = {begin: min(size, queries - begin) for begin in range(0, queries, size)}
        drawn = [permutation(of, self._seed, epoch, begin) for begin, of in sizes.items()]
        places = tf.data.Dataset.from_tensor_slices(np.concatenate(drawn)).batch(size)
        buffers = tf.data.Dataset.zip((records.batch(size), places)).map(tf.gather)
        return buffers.prefetch(1).rebatch(self._lists_in_batch).skip(start_step)


def _queries(shards: Sequence[ShardEntry]) -> int:
    return sum(shard.queries for shard in shards)


def _records_of(path: tf.Tensor, number: tf.Tensor) -> tf.data.Dataset:
    records = tf.data.TFRecordDataset(path, buffer_size=READ_BUFFER_BYTES)
    # Without this, a truncated file would end without an error.
    return records.apply(tf.data.experimental.assert_cardinality(number))


class OnShards(SingleProcess):
    """One process that trains on shards; `Workers` are several."""

    number = 0

    def __init__(self, shards: Shards):
        self._shards = shards
        self.fingerprint = f"{self.size} on shards {shards.manifest.fingerprint()}"

    def check_set(self, name: str) -> None:
        """Checks also that there are enough shards."""
        shards = self._shards
        if shards.manifest.name != name:
            raise _differs(
                shards,
                f"they were made from the set {shards.manifest.name}, but the data flags name"
                f" {name}",
                "Give the same data flags as to smoothclir-shards",
            )
        ShardPipeline(shards, batch_size=1, seed=0, num_workers=self.size)

    def vocabularies(self) -> Mapping[str, list[str]]:
        """Those that the ids of the shards were looked up in."""
        return {role: self._shards.vocabulary(role) for role in ROLES}

    def batches(self, settings: TrainingSettings) -> Batches:
        """Those of this process's own shards."""
        return ShardPipeline(
            self._shards,
            batch_size=settings.batch_size,
            seed=settings.seed,
            worker=self.number,
            num_workers=self.size,
        )


def on_shards(settings: RunSettings, is_finished: Callable[[], bool]) -> OnShards:
    """The implementation of `--distribution=shards`."""
    del is_finished
    return OnShards(open_shards(settings))


def open_shards(settings: RunSettings) -> Shards:
    """Opens the shards that the settings name, and checks that they were written alike."""
    shards = Shards.open(settings.of(ShardsSettings).shards_dir)
    manifest, training = shards.manifest, settings.training
    own, common = training.train_negatives, training.negatives
    expected = {
        **{k: v for k, v in settings.text.values().items() if k not in _OF_NGRAMS},
        "train_negatives": common if own < 0 else own,
        "num_grades": len(settings.model.thresholds) + 1,
    }
    written = {
        **dataclasses.asdict(TextSettings()),
        **TextSettings(**manifest.text).values(),
        "train_negatives": manifest.negatives,
        "num_grades": manifest.num_grades,
    }
    for name, value in expected.items():
        if written[name] == value:
            continue
        if name == "num_grades":
            reason = f"they have {written[name]} grades, but --thresholds are for {value}"
            raise _differs(shards, reason, f"Give {written[name] - 1} --thresholds")
        reason = f"they were written with {written[name]} for --{name}, but it is {value} here"
        raise _differs(shards, reason, f"Give --{name}={written[name]}, or write new shards")
    return shards


def _differs(shards: Shards, reason: str, remedy: str) -> InputError:
    return input_error(f"--shards_dir={shards.directory}", reason, remedy)
