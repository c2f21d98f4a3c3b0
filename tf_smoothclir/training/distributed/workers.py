"""Several processes that train one model: what they tell each other.

Each worker has the whole model, begins with the same weights, and does the same arithmetic on the
same numbers: only gradients are exchanged, by the collectives of tf.distribute. So the models stay
equal to the last bit, and optimizers, checkpoints and validation need not know of other workers.
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

from tf_smoothclir.data.shards.reading import Shards
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.distributed.cluster import Cluster, wait_for_all
from tf_smoothclir.training.distributed.exchange import pack, unpack
from tf_smoothclir.training.distributed.shard_batches import ShardBatches
from tf_smoothclir.training.steps import LocalSteps
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.utils.errors import InputError, input_error

_OF_CONNECTIONS = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)
_LOST = "{} was lost; waiting for it to come back and continue from the last checkpoint"


class WorkerLost(Exception):
    """Another worker has ended, or cannot be reached; this process can train no more.

    A new process with the same command joins the others again. The message says what happened and
    what that process will do.
    """


class Alone:
    """One process, which asks nobody; `Workers` says what the names mean."""

    number, size, is_chief = 0, 1, True

    @contextlib.contextmanager
    def noticing_losses(self) -> Iterator[None]:
        """Does nothing."""
        yield

    def together(self) -> contextlib.AbstractContextManager:
        """Does nothing."""
        return contextlib.nullcontext()

    def wait(self) -> None:
        """Does nothing."""

    def agreed(self, stop: signal.Signals | None) -> signal.Signals | None:
        """Returns `stop`."""
        return stop

    def from_chief(self, compute: Callable):
        """Returns `compute()`."""
        return compute()

    def check_alike(self, digest: bytes) -> None:
        """Does nothing."""

    def steps_of(self, model: TwoTower) -> LocalSteps:
        """Returns what trains a model."""
        return LocalSteps(model)

    def batches_of(self, shards: Shards, settings: TrainingSettings) -> ShardBatches:
        """Returns the batches from shards that `steps_of` takes."""
        return ShardBatches(shards, settings)


ALONE = Alone()


class Workers(Alone):
    """The workers of a cluster, of which this process is one.

    All of them have to call the same methods in the same order; each call waits for the others.
    One that is lost makes the calls of all others raise `WorkerLost`.

    Attributes:
        number: Of this worker, from 0.
        size: How many there are.
        is_chief: Whether this is the one that writes the run directory.
    """

    def __init__(self, cluster: Cluster, is_finished: Callable[[], bool]):
        """Connects to the others, and waits until all are there.

        Before anything else is done with TensorFlow in this process. From then on, SIGINT and
        SIGTERM end the process at once where `StopRequest` does not listen.

        Args:
            cluster: Who they are.
            is_finished: Whether the others have done all while this one waited: they may have had
                nothing left to do with it.

        Raises:
            InputError: The address of this worker cannot be used.
            WorkerLost: Another one was lost meanwhile, or they have finished.
        """
        self.number, self.size, self.is_chief = cluster.number, len(cluster.names), cluster.is_chief
        self._cluster = cluster
        logging.info("This is %s of %d; waiting for the others", self._name, self.size)
        if not wait_for_all(cluster, is_finished):
            raise WorkerLost("The others have finished the run without this worker")
        try:
            self._strategy = _connected()
        except tf.errors.OpError as error:
            raise WorkerLost(_LOST.format(self._lost(error))) from error
        logging.info("All %d workers are there", self.size)
        self._gather = tf.function(
            self.gathered, autograph=False, input_signature=[tf.TensorSpec([None], tf.int32)]
        )

    def gathered(self, values: tf.Tensor) -> tf.Tensor:
        """Returns `[n]` int32 values of all workers, one after the other; inside a tf.function.

        The n of the workers may differ. The order is the same for all.
        """

        def gather(values):
            here = tf.identity(values)  # on a device, which the strategy asks for
            return tf.distribute.get_replica_context().all_gather(here, axis=0)

        return self._strategy.run(gather, args=(values,))

    def exchanged(self, gradients: Sequence, loss: tf.Tensor, pairs: tf.Tensor, weight: tf.Tensor):
        """Returns what one process would have from the batches of all workers; in a tf.function.

        Args:
            gradients: Of the mean loss of this worker's batch; sparse ones name each row once.
            loss: That mean, a float32 scalar.
            pairs: Pairs in the batch, an int32 scalar.
            weight: What the mean is taken over, an int32 scalar.

        Returns:
            Gradients in the same form, loss and pairs, of all batches as if they were one.
        """
        message = pack(gradients, loss, pairs, weight)
        return unpack(self.gathered(message), gradients, self.size)

    @contextlib.contextmanager
    def noticing_losses(self) -> Iterator[None]:
        """Turns an error of TensorFlow, inside of it, that comes from another worker.

        Raises:
            WorkerLost: In its place.
        """
        try:
            yield
        except tf.errors.OpError as error:
            if not is_of_cluster(error, self._others):
                raise
            raise WorkerLost(_LOST.format(self._lost(error))) from error

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Waits, at its end, for all others to be there; the mistake of one ends all.

        Raises:
            InputError: Inside of it there was one, of this or of another worker.
        """
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
                self._cluster.names[failed.max() - 1],
                "this worker cannot begin",
                "Its own message says why",
            )

    def wait(self) -> None:
        """Waits for all others to be here too."""
        self._gathered([0])

    def agreed(self, stop: signal.Signals | None) -> signal.Signals | None:
        """Returns the signal that any of the workers was sent, None where there was none."""
        number = self._gathered([stop or 0]).max()
        return signal.Signals(number) if number else None

    def from_chief(self, compute: Callable):
        """Returns, to all, what `compute()` returns to the chief: something that JSON can hold."""
        text = json.dumps(compute()) if self.is_chief else ""
        return json.loads(_text(self._gathered(_numbers(text))))

    def check_alike(self, digest: bytes) -> None:
        """Checks that all workers have the same state.

        Args:
            digest: Of the state, 32 bytes.

        Raises:
            InputError: They have not.
        """
        own = np.frombuffer(digest, np.int32)
        found = self._gathered(own).reshape(self.size, -1)
        if (found != own).any():
            raise input_error(
                "--output_dir",
                "the workers have not begun from the same checkpoint",
                "Let it be one directory, on a file system that all of them share",
            )

    def steps_of(self, model: TwoTower) -> LocalSteps:
        """Returns what trains a model, by the gradients of all workers."""
        return LocalSteps(model, self.exchanged)

    def batches_of(self, shards: Shards, settings: TrainingSettings) -> ShardBatches:
        """Returns the batches from the shards of this worker."""
        return ShardBatches(shards, settings, worker=self.number, num_workers=self.size)

    def _gathered(self, values: Sequence[int]) -> np.ndarray:
        with self.noticing_losses():
            return self._gather(tf.constant(values, tf.int32)).numpy()

    @property
    def _name(self) -> str:
        return self._cluster.names[self.number]

    @property
    def _others(self) -> list[str]:
        return [name for name in self._cluster.names if name != self._name]

    def _lost(self, error: tf.errors.OpError) -> str:
        found = _named(error, self._others)
        return found[0] if len(found) == 1 else "another worker"


def is_of_cluster(error: tf.errors.OpError, others: Sequence[str]) -> bool:
    """Returns whether an error comes from the connection to `others`, and is none of this process.

    TensorFlow names the place of any error, and in a cluster that is /job:...: of this process too.
    """
    if isinstance(error, _OF_CONNECTIONS) or _named(error, others):
        return True
    return bool(re.search(r"[Cc]ollective|coordination service", error.message))


def _named(error: tf.errors.OpError, names: Sequence[str]) -> list[str]:
    tasks = re.findall(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)", error.message)
    said = {job if job == "chief" else f"{job} {index}" for job, index in tasks}
    return [name for name in names if name in said]


def digest_of(text: str, variables: Sequence[tf.Variable]) -> bytes:
    """Returns a hash, 32 bytes, of a text and the values of variables."""
    digest = hashlib.sha256(text.encode())
    for variable in variables:
        digest.update(np.ascontiguousarray(variable.numpy()).data)
    return digest.digest()


def _connected() -> tf.distribute.Strategy:
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    finally:
        # TensorFlow has put in a handler for SIGTERM that does nothing, and Python's for SIGINT
        # does not run while TensorFlow waits for others.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)


def _numbers(text: str) -> np.ndarray:
    """Returns the UTF-8 bytes of a text, with blanks at its end, as int32."""
    content = text.encode()
    return np.frombuffer(content + b" " * (-len(content) % 4), np.int32)


def _text(numbers: np.ndarray) -> str:
    return numbers.astype(np.int32).tobytes().decode()
