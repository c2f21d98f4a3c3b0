"""How tf.data runs the pipelines of this package."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

# For what makes a batch: tracing takes longer than all else that the start of an epoch takes.
traced_once = tf.function(autograph=False, reduce_retracing=True)


def prefetched(steps: tf.data.Dataset, batch: Callable, number: int) -> tf.data.Dataset:
    """Returns `batch` of each step, of which so many are ready before they are asked for."""
    batch = tf.autograph.experimental.do_not_convert(batch)
    batches = steps.map(batch, num_parallel_calls=2, deterministic=True)
    return batches.prefetch(number).with_options(plain_options())


def plain_options() -> tf.data.Options:
    """Returns options with which tf.data runs a pipeline as it is given.

    Its autotuning, which is on otherwise, looks at a pipeline at times that lie twice as far apart
    each time, up to a minute, and whoever is done with the pipeline waits for the next of them: an
    epoch of three seconds lasted up to five (TensorFlow 2.15, and 2.21 does the same). Rewriting
    the pipeline takes half of the time that an iterator takes to begin, and makes it no faster.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options
