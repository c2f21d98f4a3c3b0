"""What all towers share: a table of word vectors, and the forms that tokens come in."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.ops.kernels import segment_sum
from tf_smoothclir.text.vocabulary import PADDING_ID, UNKNOWN_ID


class WordTableTower(keras.layers.Layer):
    """Base of all towers: owns `embeddings`, `[vocabulary_size, dim]`.

    With `ngram_buckets` it owns `ngram_embeddings` too, `[ngram_buckets, dim]`: the vector of a
    word is its own plus the sum of those of its n character n-grams, divided by √n (Bojanowski et
    al. 2017 take the plain sum, which is √n times as long as that of the word). Ids from
    `vocabulary_size` on are then words without a vector of their own, and so is unknown (1): they
    are their n-grams alone.

    A subclass makes the vector of a text from those of its words in `call`, and has its other
    weights made by `build_rest`.

    Attributes:
        initial_stddev: Of the normal distribution that a random table is drawn from. 1, as in the
            authors' code, is for the mean: with epsilon = 1, short vectors have small scores.
        bilingual_scale: Factor on the vectors of `--initial_vectors=bilingual`.
        pads_texts: Whether a text costs as much as the longest one of its batch.
        has_plain_table: Whether word vectors are the rows of a weight of the tower, and no more.
        names_all_rows: Whether the gradient of the table should name the rows of all texts, where
            naming those that can change by it would do.
        names_rows_once: That the gradient of a table names no row twice.
    """

    initial_stddev = 1.0
    bilingual_scale = 1.0
    pads_texts = False
    names_all_rows = False
    names_rows_once = True

    def __init__(
        self,
        vocabulary_size: int,
        dim: int = 64,
        *,
        embeddings_initializer="random_normal",
        train_embeddings: bool = True,
        ngram_buckets: int = 0,
        ngram_initializer="random_normal",
        **kwargs,
    ):
        """Creates the tower.

        Args:
            vocabulary_size: Rows of the embedding table, padding (0) and unknown (1) included.
            dim: Length of the word vectors and of the result (paper: 64).
            embeddings_initializer: Keras initializer of the table; "random_normal", the default,
                has the standard deviation `initial_stddev`.
            train_embeddings: False freezes the table, or both tables, and nothing else.
            ngram_buckets: Rows of the table of n-grams; 0 for none, then words are all.
            ngram_initializer: Keras initializer of that table; "random_normal" as above.
            **kwargs: Of the Keras layer; `trainable=False` freezes the whole tower.

        Raises:
            ValueError: On sizes below 1.
        """
        super().__init__(**kwargs)
        self.supports_jit = False  # else Keras 3 has XLA compile it, which needs fixed shapes
        for argument, value in {"vocabulary_size": vocabulary_size, "dim": dim}.items():
            if int(value) < 1:
                raise ValueError(f"{argument} must be at least 1, but is {value}.")
        self.vocabulary_size = int(vocabulary_size)
        self.dim = int(dim)
        if int(ngram_buckets) < 0:
            raise ValueError(f"ngram_buckets must be at least 0, but is {ngram_buckets}.")
        self.ngram_buckets = int(ngram_buckets)
        self.has_plain_table = not self.ngram_buckets
        self.embeddings_initializer = self._initializer(embeddings_initializer)
        self.ngram_initializer = self._initializer(ngram_initializer)
        self.train_embeddings = bool(train_embeddings)

    def build(self, input_shape=None):
        """Creates the tables, and all other weights."""
        if self.built:
            return
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.dim),
            initializer=self.embeddings_initializer,
            trainable=self.train_embeddings,
        )
        if self.ngram_buckets:
            self.ngram_embeddings = self.add_weight(
                name="ngram_embeddings",
                shape=(self.ngram_buckets, self.dim),
                initializer=self.ngram_initializer,
                trainable=self.train_embeddings,
            )
        self.build_rest()
        self.built = True

    def build_rest(self) -> None:
        """Creates the weights besides the tables; there are none here."""

    def word_vectors(self, tokens: dict, training: bool | None = None) -> tf.Tensor:
        """Returns `[distinct, dim]`, the vectors of the distinct tokens of `complete_tokens`.

        Each row of a table is read once, and so named once in its gradient.

        Raises:
            ValueError: With `ngram_buckets`, where the n-grams are missing.
        """
        words = tokens["distinct"]
        if not self.ngram_buckets:
            return tf.nn.embedding_lookup(tf_variable(self.embeddings), words)
        if "subwords" not in tokens:
            raise ValueError(
                "This tower needs the n-grams of the words: tokens must hold 'subwords', as those"
                " of a set that was prepared with ngram_buckets, and of SubwordTextEncoder, do."
            )
        subwords = tokens["subwords"]
        of_ngrams = segment_sum(
            tf.gather(tf_variable(self.ngram_embeddings), subwords["distinct"]),
            subwords["positions"],
            subwords["texts"],
            tf.size(words),
            training=training,
        )
        root = tf.sqrt(tf.cast(subwords["lengths"], of_ngrams.dtype))
        of_ngrams *= tf.math.divide_no_nan(1.0, root)[:, tf.newaxis]
        has_own = (words > UNKNOWN_ID) & (words < self.vocabulary_size)
        own = tf.gather(tf_variable(self.embeddings), tf.boolean_mask(words, has_own))
        return of_ngrams + tf.scatter_nd(tf.where(has_own), own, tf.shape(of_ngrams, tf.int64))

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "dim": self.dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "train_embeddings": self.train_embeddings,
            "ngram_buckets": self.ngram_buckets,
            "ngram_initializer": keras.initializers.serialize(self.ngram_initializer),
        }

    def _initializer(self, given):
        if given == "random_normal":
            given = keras.initializers.RandomNormal(stddev=self.initial_stddev)
        return keras.initializers.get(given)


def flat_tokens(tokens) -> dict[str, tf.Tensor]:
    """Returns the real tokens of texts, one text after the other.

    Args:
        tokens: `{"ids", "lengths"}`, and perhaps more; or `[batch, length]` ids padded with 0
            anywhere, floating ones too, which is what Keras 3 makes of them on its way into a
            `Sequential`.

    Returns:
        "ids", `[tokens]`; "lengths", `[batch]`: the tokens of each text; "texts", `[tokens]`: the
        text of each token; all int. And what more there was.
    """
    if not isinstance(tokens, dict):
        real = tf.not_equal(tokens, PADDING_ID)
        lengths = tf.reduce_sum(tf.cast(real, tf.int32), axis=-1)
        ids = tf.boolean_mask(tokens, real)
        ids = ids if ids.dtype.is_integer else tf.cast(ids, tf.int32)
        tokens = {"ids": ids, "lengths": lengths}
    if "texts" not in tokens:
        lengths = tokens["lengths"]
        tokens = {**tokens, "texts": tf.repeat(tf.range(tf.size(lengths)), lengths)}
    return tokens


def complete_tokens(tokens) -> dict[str, tf.Tensor]:
    """Returns what `flat_tokens` does, and which different ids there are.

    Args:
        tokens: As there; with "distinct", "positions" and "subwords" where they are known.

    Returns:
        "distinct", `[distinct]`: each different id once; "positions", `[tokens]`: where each token
        stands there; both int. "subwords", "lengths", "texts", "distinct" and "positions" of the
        n-grams of the distinct tokens, where they are given.
    """
    tokens = flat_tokens(tokens)
    if "distinct" not in tokens:
        distinct, positions = tf.unique(tokens["ids"])
        tokens = {**tokens, "distinct": distinct, "positions": positions}
    return tokens
