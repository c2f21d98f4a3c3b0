"""Options and prefetching of the tf.data pipelines."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

# For functions that make a batch: tracing takes most of the time that an epoch needs to start.
traced_once = tf.function(autograph=False, reduce_retracing=True)


def prefetched(steps: tf.data.Dataset, batch: Callable, number: int) -> tf.data.Dataset:
    """`batch(step)` for each step, with `number` of them prefetched."""
    batch = tf.autograph.experimental.do_not_convert(batch)
    batches = steps.map(batch, num_parallel_calls=2, deterministic=True)
    return batches.prefetch(number).with_options(plain_options())


def plain_options() -> tf.data.Options:
    """Options that make tf.data run a pipeline as given: no autotuning, no rewriting.

    tf.data's autotuning wakes at intervals that double up to a minute, and closing a pipeline waits
    for it to wake: an epoch of three seconds took up to five (TensorFlow 2.15 and 2.21). Rewriting
    takes half of the time that an iterator needs to start, and makes it no faster.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options
