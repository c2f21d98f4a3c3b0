"""How many threads TensorFlow computes an operation of a training step with."""

from __future__ import annotations

import os

from tf_smoothclir._compat.threads import threads_of_short_operations
from tf_smoothclir.settings.run import RunSettings

_CHOICE = "TF_NUM_INTRAOP_THREADS"  # TensorFlow reads it when it starts


def operation_threads(settings: RunSettings, cores: int) -> int:
    """Returns how many threads an operation should have, on so many cores.

    Those of towers that add up rows of a table are short. In-batch and mined negatives,
    convolutions and LSTMs are products of large matrices, which need all cores.
    """
    model, training = settings.model, settings.training
    multiplies = (
        model.tower != "average_pooling"
        or training.batching == "in_batch"
        or training.hard_negatives > 0
    )
    return cores if multiplies else threads_of_short_operations(cores)


def choose_threads(settings: RunSettings) -> None:
    """Has TensorFlow use `operation_threads`, where it has not started yet.

    Who has set TF_NUM_INTRAOP_THREADS, or called `tf.config.threading`, has chosen otherwise.
    """
    cores = _cores()
    threads = operation_threads(settings, cores)
    if threads != cores and settings.training.distribution == "none":
        os.environ.setdefault(_CHOICE, str(threads))


def _cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
