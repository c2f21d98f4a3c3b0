"""Workers: several processes that train one task together.

Each worker has all variables, begins with the same values, and does the same arithmetic on the same
numbers. Only gradients and losses are exchanged, by an all-reduce of tf.distribute. So the
variables stay equal to the last bit, and optimizers, checkpoints and validation work as in a single
process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import signal
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.extras.distributed.cluster import Cluster, cluster_from_environment, wait_for_all
from tf_smoothclir.extras.distributed.pipeline import OnShards, open_shards
from tf_smoothclir.extras.distributed.reading import Shards
from tf_smoothclir.optimizers.gradients import each_row_once
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.processes import ProcessLost
from tf_smoothclir.utils.errors import InputError, input_error

_CONNECTION_ERRORS = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)


class Workers(OnShards):
    """The workers of a cluster; this process is the one with `number`, from 0."""

    def __init__(self, shards: Shards, cluster: Cluster, is_finished: Callable[[], bool]):
        """Connects to the other workers, and waits until all are there.

        Call it before anything else that uses TensorFlow in this process. Afterwards, SIGINT and
        SIGTERM end the process at once unless a `StopRequest` listens.
        """
        self.number, self.size = cluster.number, len(cluster.names)
        self.is_chief = self.number == 0
        super().__init__(shards)
        self._names = cluster.names
        own = self._names[self.number]
        self._others = [name for name in self._names if name != own]
        logging.info("This is %s of %d; waiting for the others", own, self.size)
        if not wait_for_all(cluster, is_finished):
            raise ProcessLost("The others have finished the run without this worker")
        try:
            self._strategy = _connected()
        except tf.errors.OpError as error:
            raise self._lost(error) from error
        logging.info("All %d workers are there", self.size)
        self._gather = tf.function(
            self._all_gather, autograph=False, input_signature=[tf.TensorSpec([None], tf.int32)]
        )

    def exchange(self, gradients: Sequence, losses: Sequence, pairs: tf.Tensor, weight: tf.Tensor):
        """As `protocols.task.Exchange`."""

        def summed(values):
            values = tf.nest.map_structure(tf.identity, values)  # on a device, as it must be
            return tf.distribute.get_replica_context().all_reduce("SUM", values)

        return joint_gradients(
            lambda values: self._strategy.run(summed, args=(values,)),
            gradients,
            losses,
            pairs,
            weight,
        )

    @contextlib.contextmanager
    def noticing_lost_processes(self) -> Iterator[None]:
        try:
            yield
        except tf.errors.OpError as error:
            if not is_of_cluster(error, self._others):
                raise
            raise self._lost(error) from error

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        mistake = None
        try:
            yield
        except InputError as error:
            mistake = error
        failed = self._gathered([0 if mistake is None else self.number + 1])
        if mistake is not None:
            raise mistake
        if failed.any():
            raise input_error(
                self._names[failed.max() - 1],
                "this worker cannot begin",
                "Its own message says why",
            )

    def wait(self) -> None:
        self._gathered([0])

    def agreed(self, stop: signal.Signals | None) -> signal.Signals | None:
        number = self._gathered([stop or 0]).max()
        return signal.Signals(number) if number else None

    def from_chief(self, compute: Callable):
        content = json.dumps(compute()).encode() if self.is_chief else b""
        content += b" " * (-len(content) % 4)  # it travels as whole int32 numbers
        found = self._gathered(np.frombuffer(content, np.int32))
        return json.loads(found.astype(np.int32).tobytes())

    def check_alike(self, text: str, variables: Sequence[tf.Variable]) -> None:
        own = np.frombuffer(digest_of(text, variables), np.int32)
        found = self._gathered(own).reshape(self.size, -1)
        if (found != own).any():
            raise input_error(
                "--output_dir",
                "the workers did not begin with the same checkpoint",
                "Use one directory, on a file system that all workers share",
            )

    def _all_gather(self, values: tf.Tensor) -> tf.Tensor:
        """The `[n]` int32 values of all workers, one after the other; their n may differ."""

        def gather(values):
            here = tf.identity(values)  # the strategy needs a tensor on a device
            return tf.distribute.get_replica_context().all_gather(here, axis=0)

        return self._strategy.run(gather, args=(values,))

    def _gathered(self, values: Sequence[int]) -> np.ndarray:
        with self.noticing_lost_processes():
            return self._gather(tf.constant(values, tf.int32)).numpy()

    def _lost(self, error: tf.errors.OpError) -> ProcessLost:
        named = _names_in(error, self._others)
        who = named[0] if len(named) == 1 else "another worker"
        return ProcessLost(
            f"{who} was lost; waiting for it to come back and continue from the last checkpoint"
        )


def multi_worker(settings: RunSettings, is_finished: Callable[[], bool]) -> Workers:
    """The implementation of `--distribution=multi_worker`."""
    shards = open_shards(settings)  # its errors show before this process waits for others
    return Workers(shards, cluster_from_environment(), is_finished)


def joint_gradients(
    reduce: Callable,
    gradients: Sequence,
    losses: Sequence[tf.Tensor],
    pairs: tf.Tensor,
    weight: tf.Tensor,
) -> tuple[list, list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """What `protocols.task.Exchange` returns, of the joint batch.

    Args:
        reduce: Sums tensors and `IndexedSlices` over the workers.
    """
    counts = [tf.cast(count, tf.float32) for count in (pairs, weight)]  # one sum has one dtype
    *sums, all_pairs, total = reduce(
        [*(_times(one, counts[1]) for one in (*gradients, *losses)), *counts]
    )
    means = [_times(one, 1 / total) for one in sums]
    of_gradients = map(_shaped_like, means, gradients)
    of_losses = means[len(gradients) :]
    all_pairs, total = tf.cast(all_pairs, pairs.dtype), tf.cast(total, weight.dtype)
    return [each_row_once(one) for one in of_gradients], of_losses, all_pairs, total


def _shaped_like(total: tf.Tensor | tf.IndexedSlices, own: tf.Tensor | tf.IndexedSlices):
    """A sum with the shape that is known of the gradient of a worker, which the sum loses."""
    if isinstance(own, tf.IndexedSlices):
        values = tf.ensure_shape(total.values, [None, *own.values.shape[1:]])
        rows = tf.ensure_shape(tf.cast(total.indices, own.indices.dtype), [None])
        return tf.IndexedSlices(values, rows, own.dense_shape)
    return tf.ensure_shape(total, own.shape)


def _times(value: tf.Tensor | tf.IndexedSlices, factor: tf.Tensor):
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(value.values * factor, value.indices, value.dense_shape)
    return value * factor


def is_of_cluster(error: tf.errors.OpError, others: Sequence[str]) -> bool:
    """Whether an error comes from the connection to `others`, not from this process.

    In a cluster, TensorFlow names the place of every error as /job:..., also for this process.
    """
    if isinstance(error, _CONNECTION_ERRORS) or _names_in(error, others):
        return True
    return bool(re.search(r"[Cc]ollective|coordination service", error.message))


def _names_in(error: tf.errors.OpError, names: Sequence[str]) -> list[str]:
    tasks = re.findall(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)", error.message)
    said = {job if job == "chief" else f"{job} {index}" for job, index in tasks}
    return [name for name in names if name in said]


def digest_of(text: str, variables: Sequence[tf.Variable]) -> bytes:
    """A digest, 32 bytes, of a text and the values of variables."""
    digest = hashlib.sha256(text.encode())
    for variable in variables:
        digest.update(np.ascontiguousarray(variable.numpy()).data)
    return digest.digest()


def _connected() -> tf.distribute.Strategy:
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    finally:
        # TensorFlow installs a handler for SIGTERM that does nothing, and Python's handler for
        # SIGINT does not run while TensorFlow waits for other workers.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
