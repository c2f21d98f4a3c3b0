"""Number of threads that TensorFlow uses within one operation of a training step.

Why it is here: on two cores, a step of many short operations keeps both busy with one thread for
each operation. More threads within an operation only take turns, with TensorFlow 2.21 about 50
times a step instead of 15; the kernels of 2.15 gain more by them than that costs. `python -m
benchmarks.stacks` measures training with this choice. The kernel of an LSTM multiplies small
matrices one after the other: there, a second thread only makes the first one wait, on either stack,
while the two directions of the LSTM can take a core each.

When it may go: when training on today's TensorFlow is as fast with TensorFlow's own choice, one
thread for each core (`TF_NUM_INTRAOP_THREADS=2` on two cores).
"""

import os

from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.plugins import DISTRIBUTIONS, TOWERS
from tf_smoothclir.settings.run import RunSettings

_VARIABLE = "TF_NUM_INTRAOP_THREADS"  # TensorFlow reads it when it starts


def intraop_threads(settings: RunSettings, cores: int) -> int:
    """Number of threads that TensorFlow should use within an operation, given the cores."""
    # In-batch and mined negatives and convolutions are products of large matrices: of all cores.
    model, training = settings.model, settings.training
    if cores == 2 and TOWERS.plugin(model.tower).fact("is_recurrent", False):
        return 1
    multiplies = (
        model.tower != "average_pooling"
        or training.batching == "in_batch"
        or training.hard_negatives > 0
    )
    return 1 if ON_KERAS_3 and cores == 2 and not multiplies else cores


def choose_intraop_threads(settings: RunSettings) -> None:
    """Sets TensorFlow to `intraop_threads`, if it has not started and nobody has chosen others."""
    cores = _cores()
    threads = intraop_threads(settings, cores)
    distribution = DISTRIBUTIONS.plugin(settings.training.distribution)
    if threads != cores and not distribution.fact("has_several_processes", False):
        os.environ.setdefault(_VARIABLE, str(threads))


def _cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
