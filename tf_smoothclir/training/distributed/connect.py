"""Who trains together, by the settings: one process, several workers, or parameter servers."""

from __future__ import annotations

from collections.abc import Callable

from tf_smoothclir.settings.run import RunSettings, TrainingSettings
from tf_smoothclir.training.distributed.cluster import cluster_of_environment
from tf_smoothclir.training.distributed.parameter_servers import ParameterServers, serve
from tf_smoothclir.training.distributed.served_model import check_served
from tf_smoothclir.training.distributed.workers import ALONE, Alone, Workers


def has_served(settings: RunSettings, is_finished: Callable[[], bool]) -> bool:
    """Does what a chief asks for, where this process is one of its servers.

    Args:
        settings: How to train.
        is_finished: As for `serve`.

    Returns:
        Whether it was one; then the run is finished.

    Raises:
        InputError: TF_CONFIG is missing or wrong, parameter servers cannot hold such a model, or
            another process has the address of this one.
        WorkerLost: The chief has ended before the run is finished.
    """
    distribution = settings.training.distribution
    if distribution != "parameter_server":
        return False
    check_served(settings)
    cluster = cluster_of_environment(distribution)
    if cluster.is_chief:
        return False
    serve(cluster, is_finished)
    return True


def connect(settings: TrainingSettings, is_finished: Callable[[], bool]) -> Alone:
    """Returns the others that train with this process, which is no server, once all are there.

    Args:
        settings: How to train.
        is_finished: As for `Workers`.

    Raises:
        InputError: TF_CONFIG is missing or wrong, or another process has the address of this one.
        WorkerLost: One was lost while others were waited for.
    """
    if settings.distribution == "none":
        return ALONE
    cluster = cluster_of_environment(settings.distribution)
    if settings.distribution == "parameter_server":
        return ParameterServers(cluster)
    return Workers(cluster, is_finished)
