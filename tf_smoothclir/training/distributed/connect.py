"""Connecting the processes that train together, as the settings say."""

from __future__ import annotations

from collections.abc import Callable

from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.distributed.cluster import cluster_from_environment
from tf_smoothclir.training.distributed.workers import SINGLE_PROCESS, SingleProcess, Workers


def connect(settings: TrainingSettings, is_finished: Callable[[], bool]) -> SingleProcess:
    """Connects to the other workers, and returns once all are there."""
    if settings.distribution == "none":
        return SINGLE_PROCESS
    return Workers(cluster_from_environment(), is_finished)
