"""Smooth Ordinal Search Loss whose thresholds are trained with the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.ordinal import squared_excess
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss

# Each segment keeps at least this share of its first width. Otherwise the segments of the middle
# grades would close: all scores could then be the same, which the loss does not punish.
_KEPT = 0.5


@register
class OrderedThresholds(keras.layers.Layer):
    """Trainable thresholds that always rise and stay inside (-1, 1).

    The K weights are logits: their softmax shares out, among the K segments, the width that is not
    kept. `call` ignores its input and returns the thresholds, `[K-1]` float32.
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


@register
class LearnedThresholdsLoss(SmoothOrdinalSearchLoss):
    """`SmoothOrdinalSearchLoss` with trained thresholds.

    With w_g the first width of segment g, and a_g trained logits that start at log(w_g / 2):

        θ_g = -1 + Σ_{i<g} (w_i / 2 + softmax(a)_i)

    So thresholds always rise, and each segment keeps at least half of its first width. The logits
    are weights of `layer`, which the trained model must own: `TwoTower` takes it when it is
    compiled.

        >>> loss = LearnedThresholdsLoss(thresholds=(0.2, 0.7))
        >>> print(np.round(loss.thresholds, 4))
        [0.2 0.7]
        >>> loss.layer.set_weights([np.array([-50.0, -50.0, 50.0])])  # all that is free: grade 2's
        >>> print(np.round(loss.thresholds, 4))  # -1 + 1.2 / 2, and 0.5 / 2 above that
        [-0.4  -0.15]

    Args:
        thresholds: Where training starts.
        **kwargs: `reduction` and `name` of `RankingLoss`.
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
