"""The average of the weights that a model had after its epochs."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.two_tower.model import TwoTower


class WeightAverage:
    """A second model, whose weights are the mean of those of the first one after its epochs.

    Late steps move weights to and fro around a better place (Izmailov et al. 2018). The mean is
    taken after epochs, not after steps: a step changes some thousands of rows of a table, but a
    mean that forgets would have to touch all of them, many times what the step itself costs.

    Attributes:
        model: The second model, not compiled. Its weights belong into the checkpoints.
    """

    def __init__(self, model: TwoTower, decay: float):
        """Averages the weights of `model`, which counts `decay` times less with each epoch."""
        self.model = TwoTower.from_config(model.get_config())
        self.model.compile(loss=type(model.loss).from_config(model.loss.get_config()))
        self._pairs = tuple(zip(tf_weights(self.model), tf_weights(model)))
        self._decay = decay

    def update(self, epoch: int) -> None:
        """Takes in the present weights, those after `epoch`, from 1; each epoch once."""
        # The weights of all epochs, decay**age, add up to 1 after division by their sum.
        share = 1 / sum(self._decay**age for age in range(epoch))
        for average, weight in self._pairs:
            if share == 1 or not (weight.trainable and weight.dtype.is_floating):
                average.assign(weight)
            else:
                average.assign_add(tf.cast(share, weight.dtype) * (weight - average))
