"""The paper's tower: the mean of the word vectors, then tanh."""

from typing import TypeVar

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.ops.row_sums import segment_sum
from tf_smoothclir.ops.table_sum import table_sum
from tf_smoothclir.text.tokens import (
    DistinctTokens,
    SubwordTokens,
    Tokens,
    distinct_tokens,
    flat_tokens,
)
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.towers.word_table import WordTableTower

# The position, from 0, at which each part of a text begins; the last part has no end.
PART_BEGINS = (0, 1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160)
NUM_PARTS = len(PART_BEGINS)

AnyTokens = TypeVar("AnyTokens", Tokens, DistinctTokens, SubwordTokens)


def by_part(tokens: AnyTokens) -> AnyTokens:
    """Splits each text into `NUM_PARTS` shorter ones: its parts, in order; empty after its end."""
    begins = tf.constant(PART_BEGINS, tokens.lengths.dtype)
    widths = tf.constant((*np.diff(PART_BEGINS), tokens.lengths.dtype.max), tokens.lengths.dtype)
    lengths = tf.clip_by_value(tokens.lengths[:, tf.newaxis] - begins, 0, widths)
    first = tf.gather(tf.cumsum(tokens.lengths, exclusive=True), tokens.texts)
    position = tf.range(tf.size(tokens.texts, first.dtype)) - first
    parts = tf.constant(part_of_position(PART_BEGINS[-1] + 1), tokens.texts.dtype)
    part = tf.gather(parts, tf.minimum(position, PART_BEGINS[-1]))
    return tokens._replace(lengths=tf.reshape(lengths, [-1]), texts=tokens.texts * NUM_PARTS + part)


def part_of_position(number: int) -> np.ndarray:
    """Returns `[number]` int, the part that each of the first positions belongs to."""
    return np.searchsorted(PART_BEGINS, np.arange(number), side="right") - 1


def weights_of_tokens(tokens: AnyTokens, profile: tf.Tensor) -> tf.Tensor:
    """Returns `[tokens, 1]`, the weight of each token by a profile, `[NUM_PARTS]`."""
    return tf.gather(profile, by_part(tokens).texts % NUM_PARTS)[:, tf.newaxis]


def profile_means(sums: tf.Tensor, weights: tf.Tensor, profile: tf.Tensor) -> tf.Tensor:
    """The means of texts by sums and weights of their parts and a factor on each."""
    weights = tf.reshape(weights, [-1, NUM_PARTS])
    totals = tf.linalg.matvec(weights, profile)[:, tf.newaxis]
    shares = tf.math.divide_no_nan(profile, totals)  # an empty text is the zero vector
    sums = tf.reshape(sums, [-1, NUM_PARTS, sums.shape[-1]])
    return tf.matmul(shares[:, tf.newaxis], sums)[:, 0]


TOKEN_WEIGHTS = ("none", "idf", "learned")
POSITION_WEIGHTS = ("none", "learned")
# Factor on the trained numbers behind the weights. It makes a weight change less in a step than a
# word vector: at the same pace, the weights overfit the training queries.
PACE = 0.1


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class AveragePoolingTower(WordTableTower):
    """Average pooling over word embeddings, followed by tanh (Liu et al. 2020, section 3.2).

    Only real tokens enter the mean; a text without tokens is the zero vector. The gradient of the
    table is sparse and names each row once.

    Call it on the tokens of texts in one of two forms:

    * flat: `Tokens`, `DistinctTokens` or `SubwordTokens`; or, as Keras users write it,
      `{"ids": [tokens] int, "lengths": [batch] int}`, the ids of all texts one after the other and
      the number of tokens of each text;
    * padded: `[batch, length]` int, where id 0 is padding.

    With `ngram_buckets`, it must be `SubwordTokens`. Returns `[batch, dim]` float.
    """

    has_token_vectors = True
    settings = ("token_weights", "position_weights")
    accepted_token_weights = TOKEN_WEIGHTS
    weighs_positions = True
    can_be_cut = True
    trains_words_alone = True

    def __init__(
        self,
        vocabulary_size: int,
        dim: int = 64,
        *,
        token_weights: str = "none",
        position_weights: str = "none",
        **kwargs,
    ):
        """Creates the tower.

        Args:
            vocabulary_size: As in `WordTableTower`.
            dim: As in `WordTableTower`.
            token_weights: "none" for the plain mean. "idf" and "learned" weigh each token of the
                vocabulary by a positive number, which "learned" trains. All weights are equal until
                `start_token_weights` sets them.
            position_weights: "none" for words that count alike wherever they stand. "learned"
                trains a profile of positions, from equal weights on.
            **kwargs: Of `WordTableTower`.

        Raises:
            ValueError: On sizes below 1 and on unknown kinds of weights.
        """
        super().__init__(vocabulary_size, dim, **kwargs)
        for argument, value, kinds in (
            ("token_weights", token_weights, TOKEN_WEIGHTS),
            ("position_weights", position_weights, POSITION_WEIGHTS),
        ):
            if value not in kinds:
                raise ValueError(f"{argument} must be one of {kinds}, but is {value!r}.")
        self.token_weights = token_weights
        self.position_weights = position_weights

    def build_rest(self):
        """Creates the numbers behind the positive weights of tokens and of positions."""
        if self.token_weights != "none":
            self._raw_weights = self.add_weight(
                name="token_weights",
                shape=(self.vocabulary_size, 1),
                initializer="zeros",
                trainable=self.token_weights == "learned",
            )
        if self.position_weights != "none":
            self._log_profile = self.add_weight(
                name="position_weights", shape=(NUM_PARTS,), initializer="zeros"
            )

    def other_arrays(self) -> dict[str, tf.Variable]:
        """Returns the numbers behind the weights of tokens and of positions, by name."""
        found = {}
        if self.token_weights != "none":
            found["token_weights"] = tf_variable(self._raw_weights)
        if self.position_weights != "none":
            found["position_weights"] = tf_variable(self._log_profile)
        return found

    def start_token_weights(self, weights: np.ndarray) -> None:
        """Sets the weight of each token, `[vocabulary_size]`, all above 0."""
        # The inverse of softplus, in a form that does not overflow.
        raw = weights + np.log(-np.expm1(-np.asarray(weights, np.float64)))
        self._raw_weights.assign((raw / PACE)[:, np.newaxis].astype(np.float32))

    def call(self, tokens, training=None):
        """Returns the vectors of texts; see the class."""
        tokens = flat_tokens(tokens)
        if self.position_weights == "none":
            return tf.tanh(tf.math.divide_no_nan(*self._sums(tokens, training)))
        return tf.tanh(profile_means(*self._sums(by_part(tokens), training), self._profile()))

    def _sums(
        self, tokens: Tokens | DistinctTokens | SubwordTokens, training: bool | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Sums over texts, `[batch, dim]` and `[batch, 1]`: of weighted vectors; of weights."""
        # Without token weights, each token weighs 1.
        if self.token_weights != "none":
            tokens = distinct_tokens(tokens)
            vectors, weights = self.word_vectors(tokens, training), self._weights(tokens.distinct)
            sums = _sums_of(weights * vectors, tokens, training)
            return sums, _sums_of(weights, tokens, training)
        if training and not self.ngram_buckets and not tf.executing_eagerly():
            sums = table_sum(
                tf_variable(self.embeddings),
                tokens.ids,
                tokens.texts,
                tokens.lengths,
                names_all_rows=self.names_all_rows,
            )
        elif self.ngram_buckets:
            tokens = distinct_tokens(tokens)
            sums = _sums_of(self.word_vectors(tokens, training), tokens, training)
        else:
            sums = self.sums_of_rows("embeddings", tokens, training)
        return sums, tf.cast(tokens.lengths, sums.dtype)[:, tf.newaxis]

    def token_vectors(self, tokens) -> tf.Tensor:
        """Returns the vector of each token, times its weight over the mean weight of the text."""
        tokens = distinct_tokens(tokens)
        vectors = tf.gather(self.word_vectors(tokens), tokens.positions)
        if self.token_weights == self.position_weights == "none":
            return vectors
        weights = tf.ones([tf.size(tokens.texts), 1], vectors.dtype)
        if self.token_weights != "none":
            weights *= tf.gather(self._weights(tokens.distinct), tokens.positions)
        if self.position_weights != "none":
            weights *= weights_of_tokens(tokens, self._profile())
        means = tf.math.segment_mean(weights, tokens.texts)
        return vectors * weights / tf.gather(means, tokens.texts)

    def _profile(self) -> tf.Tensor:
        """The weights of the parts of a text, `[NUM_PARTS]`, the largest of them 1."""
        logs = tf.convert_to_tensor(tf_variable(self._log_profile))
        # A common factor changes no mean; this one keeps the powers from overflowing.
        return tf.exp(logs - tf.stop_gradient(tf.reduce_max(logs)))

    def _weights(self, words: tf.Tensor) -> tf.Tensor:
        """`[distinct, 1]`, the weights of distinct ids; it reads each row once."""
        if not self.ngram_buckets:
            return tf.nn.softplus(PACE * tf.gather(tf_variable(self._raw_weights), words))
        # Words outside the vocabulary weigh as much as "unknown", but do not train its weight.
        known = words < self.vocabulary_size
        own = tf.gather(tf_variable(self._raw_weights), tf.boolean_mask(words, known))
        own = tf.scatter_nd(tf.where(known), own, [tf.size(words, tf.int64), 1])
        unknown = tf.stop_gradient(tf.gather(tf_variable(self._raw_weights), [UNKNOWN_ID]))
        return tf.nn.softplus(PACE * tf.where(known[:, tf.newaxis], own, unknown))

    def get_config(self):
        """Returns the arguments of the constructor."""
        own = {"token_weights": self.token_weights, "position_weights": self.position_weights}
        return {**super().get_config(), **own}


def _sums_of(
    rows: tf.Tensor, tokens: DistinctTokens | SubwordTokens, training: bool | None = None
) -> tf.Tensor:
    """The sums of `rows`, `[distinct, ...]`, over the tokens of each text."""
    number = tf.size(tokens.lengths)
    return segment_sum(rows, tokens.positions, tokens.texts, number, training=training)
