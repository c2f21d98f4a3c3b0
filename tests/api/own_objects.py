"""A loss, a tower and a callback as a user writes them; imported, it registers the classes."""

import tensorflow as tf
from tensorflow import keras

register = keras.utils.register_keras_serializable(package="own")


@register
class PowerLoss(keras.losses.Loss):
    """|grade / 2 - score| to a power: a Keras loss that knows nothing of this package."""

    def __init__(self, power: float = 2.0, **kwargs):
        super().__init__(**kwargs)
        self.power = power

    def call(self, y_true, y_pred):
        return tf.abs(tf.cast(y_true, y_pred.dtype) / 2 - y_pred) ** self.power

    def get_config(self):
        return {**super().get_config(), "power": self.power}


@register
class SumTower(keras.layers.Layer):
    """tanh of the sum of word vectors, from padded ids."""

    def __init__(self, words: int = 5_000, dim: int = 8, **kwargs):
        super().__init__(**kwargs)
        self.words, self.dim = words, dim
        start = keras.initializers.RandomNormal(seed=1)
        self.vectors = keras.layers.Embedding(words, dim, embeddings_initializer=start)

    def call(self, ids):
        real = tf.cast(ids > 0, tf.float32)[..., tf.newaxis]
        return tf.tanh(tf.reduce_sum(self.vectors(ids) * real, axis=1))

    def get_config(self):
        return {**super().get_config(), "words": self.words, "dim": self.dim}


class Recorder(keras.callbacks.Callback):
    """Notes its calls; stops training after `last` epochs."""

    def __init__(self, last: int):
        super().__init__()
        self.calls, self.last = [], last

    def on_train_begin(self, logs=None):
        self.calls.append("begin")

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append((epoch, "loss" in logs, "val_NDCG@5" in logs))
        self.model.stop_training = epoch + 1 >= self.last

    def on_train_end(self, logs=None):
        self.calls.append("end")
