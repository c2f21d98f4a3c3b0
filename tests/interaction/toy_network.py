"""A network small enough to follow by hand: the weighted number of words that both texts have."""

import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.interaction.networks.base import InteractionNetwork


class SameWords(InteractionNetwork):
    """Adds the weight of each query word that the document has."""

    def __init__(self, size: int, features_once: bool):
        super().__init__()
        self.features_once = features_once
        self.weight = self.add_weight(name="weight", shape=(size,), initializer="zeros")

    def features(self, query_ids, document_ids):
        same = tf.equal(query_ids[:, :, tf.newaxis], document_ids[:, tf.newaxis])
        found = tf.reduce_any(same, axis=2) & (query_ids > 0)
        return {"ids": query_ids, "found": tf.cast(found, tf.float32)}

    def score(self, features, training=False):
        weights = tf.gather(tf_variable(self.weight), features["ids"])
        return tf.reduce_sum(weights * features["found"], axis=1)

    def similarities(self, query_ids, document_ids):
        same = tf.equal(query_ids[:, :, tf.newaxis], document_ids[:, tf.newaxis])
        return tf.cast(same & (query_ids > 0)[:, :, tf.newaxis], tf.float32)
