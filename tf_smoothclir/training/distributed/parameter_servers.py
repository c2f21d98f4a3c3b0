"""Tables of word vectors on parameter servers, trained by workers whom the chief gives shards.

The chief runs the command, and is the only one who knows of the run: it makes the tables, hands out
shards, validates, and tells the servers to write checkpoints. Workers and parameter servers are
bare servers of TensorFlow, which do what the chief asks them to.
"""

from __future__ import annotations

import contextlib
import logging as standard_logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import tensorflow as tf
from absl import logging

from tf_smoothclir.data.shards.shards import Shards
from tf_smoothclir.settings.run import RunSettings, TrainingSettings
from tf_smoothclir.training.distributed.cluster import Cluster, check_address, listens, wait_for
from tf_smoothclir.training.distributed.served_batches import ServedBatches
from tf_smoothclir.training.distributed.served_model import ServedSteps, build_served_model
from tf_smoothclir.training.distributed.workers import LOST, Alone, WorkerLost, lost_name
from tf_smoothclir.two_tower.model import TwoTower

# With fewer, processes that wait for each other's rows have no thread left to answer with.
_LEAST_THREADS = 8
_SECONDS_BETWEEN_LOOKS = 1.0
_OF_LOSSES = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,  # also of a race in TensorFlow 2.15 when servers meet again
)


class ParameterServers(Alone):
    """What the chief has of a cluster: room for tables, and workers.

    Attributes:
        num_workers: How many workers there are.
    """

    def __init__(self, cluster: Cluster):
        """Connects to all servers, and waits until they are there.

        Before anything else is done with TensorFlow in this process.

        Args:
            cluster: Who they are; this process is its chief.

        Raises:
            InputError: The address of this process cannot be used.
            WorkerLost: One was lost meanwhile.
        """
        number = len(cluster.names) - 1
        self._servers = {
            name: address
            for name, address in zip(cluster.names, cluster.addresses)
            if name.startswith("ps")
        }
        self.num_workers = number - len(self._servers)
        check_address(cluster)
        logging.info("This is the chief of %d servers; waiting for them", number)
        wait_for(cluster.addresses[1:], lambda: False)
        standard_logging.getLogger("tensorflow").addFilter(_is_news)
        os.environ["GRPC_FAIL_FAST"] = "use_caller"  # else the loss of a server goes unnoticed
        tf.config.threading.set_inter_op_parallelism_threads(_threads())
        with self.noticing_losses():
            self._strategy = tf.distribute.ParameterServerStrategy(
                tf.distribute.cluster_resolver.TFConfigClusterResolver(),
                tf.distribute.experimental.partitioners.FixedShardsPartitioner(len(self._servers)),
            )
            self._coordinator = tf.distribute.coordinator.ClusterCoordinator(self._strategy)
        logging.info("All %d servers are there", number)

    def table(self, rows: int, dim: int, initial: Callable):
        """Returns a table whose rows lie on the parameter servers, about as many on each.

        Args:
            rows: Of the table.
            dim: Numbers of a row.
            initial: `(shape, first_row)` -> `[rows, dim]` values of a part; called for each.

        Returns:
            A variable, where there is one server; else a ShardedVariable.
        """

        def part(partition_shape=(rows, dim), partition_offset=(0, 0)):
            return initial(partition_shape, partition_offset[0])

        with self._strategy.scope():
            return tf.Variable(part, shape=(rows, dim), dtype=tf.float32)

    def results(self, function: Callable, arguments: Sequence[tuple]) -> list:
        """Calls a `tf.function` on the workers, once with each of the arguments.

        A call that fails because its worker is lost is made anew, by whoever is free.

        Returns:
            The NumPy result of each call.

        Raises:
            tf.errors.OpError: A call failed otherwise.
        """
        remote = [self._coordinator.schedule(function, args=each) for each in arguments]
        self._coordinator.join()
        return [value.fetch() for value in remote]

    @contextlib.contextmanager
    def noticing_losses(self) -> Iterator[None]:
        """Turns an error of TensorFlow, inside of it, that a lost parameter server leaves.

        Raises:
            WorkerLost: In its place.
        """
        try:
            yield
        except _OF_LOSSES as error:
            name = lost_name(error, [*self._servers]) or self._silent_server()
            raise WorkerLost(LOST.format(name)) from error

    def _silent_server(self) -> str:
        """Returns which server is lost, where the error does not say so."""
        silent = (name for name, address in self._servers.items() if not listens(address))
        return next(silent, "a server")

    def model_of(self, settings: RunSettings, vocabularies: Mapping[str, list[str]]) -> TwoTower:
        """Returns the model of the settings, its tables on the parameter servers."""
        return build_served_model(settings, vocabularies, self.table)

    def steps_of(self, model: TwoTower) -> ServedSteps:
        """Returns what trains such a model."""
        return ServedSteps(model, self.table, self.results)

    def batches_of(self, shards: Shards, settings: TrainingSettings) -> ServedBatches:
        """Returns the batches of the workers."""
        return ServedBatches(shards, settings, self.num_workers)


def serve(cluster: Cluster, is_finished: Callable[[], bool]) -> None:
    """Does what the chief asks a worker or a parameter server to do, until the run is finished.

    Args:
        cluster: The processes, of which this is none but the chief.
        is_finished: Whether it is.

    Raises:
        InputError: The address of this process cannot be used.
        WorkerLost: The chief has ended before.
    """
    name, chief = cluster.names[cluster.number], cluster.addresses[0]
    check_address(cluster)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
        config=tf.compat.v1.ConfigProto(inter_op_parallelism_threads=_threads()),
    )
    logging.info("This is %s; waiting for the chief", name)
    if not wait_for([chief], is_finished):
        return
    logging.info("The chief is there")
    while listens(chief):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    if not is_finished():
        # A new process, without the tables of the chief that is gone.
        raise WorkerLost("The chief has ended before the run is finished; waiting for it")


def _is_news(record: standard_logging.LogRecord) -> bool:
    """Leaves out what comes as an error too, and that each checkpoint is a function of its own.

    Of the loss of a worker, which is no error, it says less than TensorFlow does.
    """
    if record.msg == "Worker %s failed with %r:%s":
        name = "worker " + record.args[0].rpartition(":")[2]
        logging.warning("%s was lost; the others go on, and it joins them when it is back", name)
    is_of_coordinator = record.pathname.endswith("cluster_coordinator.py")
    return not is_of_coordinator and "MultiDeviceSaver" not in record.getMessage()


def _threads() -> int:
    return max(_LEAST_THREADS, os.cpu_count() or 1)
