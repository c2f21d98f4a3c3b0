"""Towers of earlier representations, sums over words of a text; the LSTM of Li and Cheng."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.ops.row_sums import segment_sum
from tf_smoothclir.text.tokens import distinct_tokens
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.towers.lstm import BidirectionalTower
from tf_smoothclir.towers.sequence_tower import SequenceTower, places
from tf_smoothclir.towers.word_table import WordTableTower


def matrices(tower: WordTableTower) -> list[tf.Variable]:
    """The trained matrices of the layers that read words in order; none of other towers."""
    weights = tower.but_tables(tower.trainable_weights)
    is_sequence = isinstance(tower, SequenceTower)
    return [weight for weight in weights if is_sequence and weight.shape.rank == 2]


class BagTower(WordTableTower):
    """Base of both: the sum of what each word adds, which a subclass says in `contributions`.

    A word may have a weight that is not trained, such as its inverse document frequency. Call it on
    tokens as `AveragePoolingTower`, flat or padded. Returns `[batch, dim]` float; a text without
    tokens is the zero vector. The gradient of the table names each row once.
    """

    initial_stddev = 0.1
    settings = ("token_weights",)
    accepted_token_weights = ("none", "idf")

    def __init__(
        self, vocabulary_size: int, dim: int = 64, *, token_weights: str = "none", **kwargs
    ):
        """Creates a `WordTableTower`; with "idf", words have weights, all 1 at first."""
        super().__init__(vocabulary_size, dim, **kwargs)
        if token_weights not in self.accepted_token_weights:
            raise ValueError(f"token_weights must be 'none' or 'idf', but is {token_weights!r}.")
        self.token_weights = token_weights

    def build_rest(self):
        if self.token_weights == "idf":
            self._weights = self.add_weight(
                name="token_weights",
                shape=(self.vocabulary_size, 1),
                initializer="ones",
                trainable=False,
            )

    def start_token_weights(self, weights: np.ndarray) -> None:
        """Sets the weight of each token, `[vocabulary_size]`."""
        self._weights.assign(weights[:, np.newaxis].astype(np.float32))

    def contributions(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns what words add, `[words, dim]`, given their weighted vectors."""
        raise NotImplementedError

    def call(self, tokens, training=None):
        """Returns the vectors of texts; see the class."""
        tokens = distinct_tokens(tokens)
        vectors = self.word_vectors(tokens, training)
        if self.token_weights == "idf":
            words = tokens.distinct  # those outside the vocabulary weigh as much as "unknown"
            words = tf.where(words < self.vocabulary_size, words, UNKNOWN_ID)
            vectors *= tf.gather(tf_variable(self._weights), words)
        added = self.contributions(vectors)
        texts = tf.size(tokens.lengths)
        return segment_sum(added, tokens.positions, tokens.texts, texts, training=training)

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "token_weights": self.token_weights}


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class LinearTower(BagTower):
    """The weighted sum of word vectors: a projection of a vector of terms, y = Aᵀ x.

    The tower of S2Net (Yih et al. 2011), and with "idf" how bilingual autoencoders (Chandar et al.
    2014) represent a text. See `BagTower` for the arguments and the call.
    """

    trains_words_alone = True

    def contributions(self, vectors):
        return vectors


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class WordTanhTower(BagTower):
    """The sum of tanh(w v + b) over words: the composition of XCNN (Gupta et al. 2017).

    As in its first author's programs (parthg/jDNN), b is one vector for all words. There it begins
    below 0, which makes all texts alike at first; here with 0. See `BagTower` for the rest.
    """

    initial_stddev = 0.5  # as there

    def build_rest(self):
        super().build_rest()
        self._bias = self.add_weight(name="bias", shape=(self.dim,), initializer="zeros")

    def contributions(self, vectors):
        return tf.tanh(vectors + self._bias)


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class MaxLSTMTower(BidirectionalTower):
    """The largest value of each state of a bidirectional LSTM over the positions of a text.

        m = max_t [h_forward(t), h_backward(t)],  z = tanh(A m + b)

    Li and Cheng, "Learning Neural Representation for CLIR with Adversarial Framework", EMNLP 2018,
    sections 3.1 and 4.2.1. Of the sizes that they choose from, 64 units for each direction are
    built here; they name no activation. Nothing is dropped. Only real positions count. See
    `SequenceTower` for the other arguments and the call, which returns `[batch, dim]`.
    """

    # Beside short vectors, the steps that suit the LSTM are long enough for words too.
    bilingual_scale = SequenceTower.initial_stddev

    def __init__(self, vocabulary_size: int, dim: int = 64, *, dropout: float = 0.0, **kwargs):
        """Creates the tower; the arguments are those of `SequenceTower`."""
        super().__init__(vocabulary_size, dim, dropout=dropout, **kwargs)

    def read(self, vectors, lengths):
        """Returns the largest values of the states of each text, `[batch, 128]`."""
        texts, place = places(lengths)
        from_the_end = tf.gather(lengths, texts) - 1 - place
        # An empty text has the state after one zero vector: infinity times 0 would be no number.
        real = tf.transpose(tf.sequence_mask(tf.maximum(lengths, 1)))[:, :, tf.newaxis]
        # At least one step, in which an empty text reads a zero vector.
        longest = tf.reduce_max(tf.concat([lengths, tf.ones([1], lengths.dtype)], axis=0))
        shape = tf.stack([longest, tf.size(lengths, lengths.dtype), self.dim])
        highest = []
        for direction, steps in ((self._forward, place), (self._backward, from_the_end)):
            states = direction.scan(tf.scatter_nd(tf.stack([steps, texts], 1), vectors, shape))
            states = tf.where(real, states, tf.fill(tf.shape(states), states.dtype.min))
            highest.append(tf.reduce_max(states, axis=0))
        return tf.concat(highest, axis=1)
