"""Timing the steps inside one call of `fit`, as many in a call of the graph as in the trainer."""

from __future__ import annotations

import time

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import optimizer_variables, tf_weights
from tf_smoothclir.data.judged_lists import judged_lists
from tf_smoothclir.data.pipeline import PairPipeline
from tf_smoothclir.data.prepared import PreparedSet
from tf_smoothclir.settings import RunSettings
from tf_smoothclir.training.huge_pages import use_huge_pages
from tf_smoothclir.training.trainer import STEPS_PER_CALL


class _StepTimer(keras.callbacks.Callback):
    """Notes when the first and the last batch it is told of ended."""

    def __init__(self):
        super().__init__()
        self.ends = []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append((batch, time.perf_counter()))

    def seconds_per_step(self) -> float:
        (first, begin), (last, end) = self.ends[0], self.ends[-1]
        return (end - begin) / (last - first)


def seconds_per_step(model: keras.Model, dataset: tf.data.Dataset) -> float:
    """Fits a compiled model on a dataset once, which must have more than `STEPS_PER_CALL` batches.

    The time up to the end of the first call of the graph does not count.
    """
    # As the trainer does: loops in the graph are slow otherwise.
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
    model.compile(model.optimizer, model.loss, steps_per_execution=STEPS_PER_CALL)
    use_huge_pages([*tf_weights(model), *optimizer_variables(model.optimizer)])
    timer = _StepTimer()
    model.fit(dataset, verbose=0, callbacks=[timer])
    return timer.seconds_per_step()


def dataset_of(prepared: PreparedSet, settings: RunSettings) -> tf.data.Dataset:
    """Returns the first epoch of the shuffled training pairs of a set."""
    training = settings.training
    lists = judged_lists(
        prepared.retrieval_set, "train", negatives=training.negatives, seed=training.seed
    )
    pipeline = PairPipeline(prepared, batch_size=training.batch_size, seed=training.seed)
    return pipeline.epoch(lists, 0)
