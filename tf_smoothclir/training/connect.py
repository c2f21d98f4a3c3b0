"""Who trains together, by the settings: one process, several workers, or parameter servers."""

from __future__ import annotations

from collections.abc import Callable

from tf_smoothclir.settings import TrainingSettings
from tf_smoothclir.training.cluster import Cluster, cluster_of_environment
from tf_smoothclir.training.parameter_servers import ParameterServers
from tf_smoothclir.training.workers import ALONE, Alone, Workers


def cluster_of(settings: TrainingSettings) -> Cluster | None:
    """Returns the processes that train together; None where one process does.

    Raises:
        InputError: TF_CONFIG is missing or wrong.
    """
    if settings.distribution == "none":
        return None
    return cluster_of_environment(settings.distribution)


def is_server(cluster: Cluster | None, settings: TrainingSettings) -> bool:
    """Returns whether this process only does what a chief tells it: `parameter_servers.serve`."""
    return settings.distribution == "parameter_server" and not cluster.is_chief


def connect(
    cluster: Cluster | None, settings: TrainingSettings, is_finished: Callable[[], bool]
) -> Alone | Workers:
    """Returns the others that train with this process, which is no server, once all are there.

    Args:
        cluster: Of `cluster_of`.
        settings: How to train.
        is_finished: As for `Workers`.

    Raises:
        InputError: Another process has the address of this one.
        WorkerLost: One was lost while others were waited for.
    """
    if cluster is None:
        return ALONE
    if settings.distribution == "parameter_server":
        return ParameterServers(cluster)
    return Workers(cluster, is_finished)
