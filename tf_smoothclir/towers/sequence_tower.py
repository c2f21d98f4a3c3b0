"""The base of towers that read word order: word vectors with dropout, and places in a text."""

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import ONLY_FIRST_REPLICA
from tf_smoothclir.ops.row_sums import take
from tf_smoothclir.text.tokens import distinct_tokens
from tf_smoothclir.towers.word_table import WordTableTower


class SequenceTower(WordTableTower):
    """Base of the DSSM towers of Liu et al. 2020, section 5.1; a subclass reads the word vectors.

    The layers are dropout on the word vectors, `read` of the subclass, and a fully connected layer
    with tanh, as in DSSM (Huang et al. 2013, Shen et al. 2014). A text without tokens is the zero
    vector and moves no weight. The paper leaves some things open; with `as_published`, they are
    what its authors' code does, which each subclass describes.

    A text has the same vector alone and in any batch, up to rounding. The gradient of the table is
    sparse and names each row once. Dropout is a function of `seed` and of a counter among the
    weights, so that training continues exactly from saved weights.

    Call it on tokens as `AveragePoolingTower`, flat or padded, with `training=True` for dropout.
    Returns `[batch, dim]` float.

    Attributes:
        published_activation: Of the fully connected layer in the authors' code.
    """

    # With 1, the largest of many responses lies where tanh is flat, and training hardly begins.
    initial_stddev = 0.1
    pads_texts = True
    published_activation: str | None = "tanh"

    def __init__(
        self,
        vocabulary_size: int,
        dim: int = 64,
        *,
        dropout: float = 0.4,
        as_published: bool = False,
        seed: int = 0,
        **kwargs,
    ):
        """Creates the tower.

        Args:
            vocabulary_size: As in `WordTableTower`.
            dim: As in `WordTableTower`.
            dropout: Share of the entries of the word vectors that training drops (paper: 0.4).
            as_published: Build the tower as the authors' code does.
            seed: Of the dropout and of all initial weights except the table.
            **kwargs: Of `WordTableTower`.

        Raises:
            ValueError: On sizes below 1 and on a dropout outside [0, 1).
        """
        super().__init__(vocabulary_size, dim, **kwargs)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, but is {dropout}.")
        self.dropout = float(dropout)
        self.as_published = bool(as_published)
        self.seed = int(seed)
        self._dense = keras.layers.Dense(
            self.dim,
            self.published_activation if self.as_published else "tanh",
            kernel_initializer=keras.initializers.GlorotUniform(seed=self.seed),
        )

    @classmethod
    def from_settings(cls, settings, vocabulary_size, *, seed, **kwargs):
        """Returns the tower with the values of a training run's settings."""
        chosen = {name: settings[name] for name in cls.settings}
        chosen |= {"as_published": settings["published_towers"], "seed": seed}
        return cls(vocabulary_size, settings["dim"], **chosen, **kwargs)

    def build_rest(self):
        """Creates the counter for dropout, the weights of `read` and the last layer."""
        self._dropouts = self.add_weight(
            name="dropouts",
            shape=(),
            dtype="int64",
            initializer="zeros",
            trainable=False,
            aggregation=ONLY_FIRST_REPLICA,
        )
        self._dense.build([None, self.build_reader()])

    def build_reader(self) -> int:
        """Creates the weights of `read`; returns the width of its result."""
        raise NotImplementedError

    def read(self, vectors: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Reads the word vectors of each text in order.

        Args:
            vectors: `[tokens, dim]`, of all texts one after the other.
            lengths: `[batch]` int, the number of tokens of each text. The result of an empty text
                is not used, but must be finite.

        Returns:
            `[batch, width]`, with the width that `build_reader` returned.
        """
        raise NotImplementedError

    def call(self, tokens, training=None):
        """Returns the vectors of texts; see the class."""
        tokens = distinct_tokens(tokens)
        lengths = tokens.lengths
        vectors = self.word_vectors(tokens, training)
        vectors = take(vectors, tokens.positions, training=training)
        if training and self.dropout:
            self._dropouts.assign_add(1)
            seed = tf.stack([tf.constant(self.seed, tf.int64), tf.identity(self._dropouts)])
            vectors = dropped_out(vectors, self.dropout, seed)
        encoded = self._dense(self.read(vectors, lengths))
        return tf.where(lengths[:, tf.newaxis] > 0, encoded, tf.zeros_like(encoded))

    def get_config(self):
        """Returns the arguments of the constructor."""
        own = {"dropout": self.dropout, "as_published": self.as_published, "seed": self.seed}
        return {**super().get_config(), **own}


def dropped_out(vectors: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """Vectors without a random share of their entries, the rest divided by what is left."""
    # 16 random bits decide on an entry: half as many as a float takes, and drawing them takes
    # most of the time. So the share is `rate` to 1/65536.
    size = tf.size(vectors)
    bits = tf.random.stateless_uniform(
        [(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.int32, alg="philox"
    )
    numbers = tf.reshape(tf.bitcast(bits, tf.int16), [-1])[:size]
    least = min(round(rate * 2**16) - 2**15, 2**15 - 1)  # what int16 can hold
    kept = tf.reshape(numbers >= least, tf.shape(vectors))
    return tf.where(kept, vectors / (1 - rate), tf.zeros_like(vectors))


def places(lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The text of each token and its place there, both `[tokens]` and from 0."""
    texts = tf.repeat(tf.range(tf.size(lengths, lengths.dtype)), lengths)
    begins = tf.cumsum(lengths, exclusive=True)
    return texts, tf.range(tf.size(texts, lengths.dtype)) - tf.gather(begins, texts)
