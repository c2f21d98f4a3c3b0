"""The average of the weights that a model had after its epochs."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf


class WeightAverage:
    """Variables whose values are the mean of a model's weights after its epochs.

    Late steps move weights back and forth around a better place (Izmailov et al. 2018). The mean is
    taken after epochs, not after steps: a step changes some thousand rows of a table, but a
    decaying mean changes all of them, which costs many times what the step itself costs.
    """

    def __init__(
        self, averages: Sequence[tf.Variable], weights: Sequence[tf.Variable], decay: float
    ):
        """Averages `weights` into `averages`; each epoch counts `decay` times the next one."""
        self._pairs = tuple(zip(averages, weights))
        self._decay = decay

    def update(self, epoch: int) -> None:
        """Adds the weights after `epoch`, from 1, to the mean. Call it once per epoch, in order.

        Frozen weights and counters are copied.
        """
        # The shares of all epochs, decay**age divided by their sum, add up to 1.
        share = 1 / sum(self._decay**age for age in range(epoch))
        for average, weight in self._pairs:
            if share == 1 or not (weight.trainable and weight.dtype.is_floating):
                average.assign(weight)
            else:
                average.assign_add(tf.cast(share, weight.dtype) * (weight - average))
