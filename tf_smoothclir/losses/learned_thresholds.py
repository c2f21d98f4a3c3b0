"""Smooth Ordinal Search Loss whose thresholds are learned with the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss, squared_excess

# Of the width that a segment starts with, it keeps at least this share. Without it the segments
# between would close: then all scores may be the same, which no loss punishes.
_KEPT = 0.5

_register = keras.utils.register_keras_serializable(package="tf_smoothclir")


@_register
class OrderedThresholds(keras.layers.Layer):
    """Trainable thresholds that are always rising and inside (-1, 1).

    Weights are the logits of the shares that the K segments have of what can be shared out. Called
    with no input that matters, returns `[K-1]` float32.
    """

    def __init__(self, thresholds: Sequence[float], **kwargs):
        """Starts from `thresholds`, rising and inside (-1, 1)."""
        super().__init__(**kwargs)
        self.start = tuple(map(float, thresholds))

    def build(self, input_shape=None):
        """Creates the logits."""
        if self.built:
            return
        self._shares = np.diff((-1.0, *self.start, 1.0)) / 2
        self.logits = self.add_weight(
            name="logits",
            shape=(len(self._shares),),
            initializer=keras.initializers.Constant(np.log(self._shares)),
        )
        self.built = True

    def call(self, inputs=None):
        """Returns the thresholds."""
        shares = _KEPT * self._shares + (1 - _KEPT) * tf.nn.softmax(self.logits)
        return 2 * tf.cumsum(shares)[:-1] - 1

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "thresholds": self.start}


@_register
class LearnedThresholdsLoss(SmoothOrdinalSearchLoss):
    """`SmoothOrdinalSearchLoss` with thresholds that are trained.

    They are weights of a layer, `layer`, which the model must have among its own: `TwoTower` takes
    it in when it is compiled. Each segment keeps at least half of its first width.

    Args:
        thresholds: Where training starts.
        **kwargs: `reduction` and `name` of `OrdinalLoss`.
    """

    def __init__(self, thresholds=(0.2, 0.7), **kwargs):
        super().__init__(thresholds, **kwargs)
        self.layer = OrderedThresholds(self._thresholds, name="thresholds")
        self.layer.build()

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The present thresholds."""
        return tuple(map(float, self.layer(None).numpy()))

    def call(self, y_true, y_pred):
        inner = tf.cast(self.layer(None), y_pred.dtype)
        one = tf.ones([1], y_pred.dtype)
        return squared_excess(
            y_true, y_pred, tf.concat([-one, inner], 0), tf.concat([inner, one], 0)
        )
