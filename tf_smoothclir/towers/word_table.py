"""The base of all towers: a table of word vectors."""

import abc
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.ops.row_sums import segment_sum
from tf_smoothclir.ops.table_sum import table_sum_of_distinct
from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, Tokens, distinct_tokens
from tf_smoothclir.text.vocabulary import UNKNOWN_ID


class WordTableTower(keras.layers.Layer):
    """Base of all towers: owns `embeddings`, `[vocabulary_size, dim]`.

    With `ngram_buckets`, it also owns `ngram_embeddings`, `[ngram_buckets, dim]`: the vector of a
    word is then its own vector plus the sum of the vectors of its n character n-grams, divided by
    √n. (Bojanowski et al. 2017 take the plain sum, which is √n times as long as the word's own
    vector.) Unknown words (id 1) and ids from `vocabulary_size` on have no vector of their own,
    only n-grams.

    A subclass makes the vector of a text from those of its words in `call`, and its other weights
    in `build_rest`. The gradient of a table must name no row twice, as that of `word_vectors` does.

    Attributes:
        initial_stddev: Standard deviation of a random table. 1, as in the authors' code, suits the
            mean: with epsilon = 1, short vectors have small scores.
        bilingual_scale: Factor on the vectors of `--initial_vectors=bilingual`.
        settings: The constructor's arguments that a training run sets by flags of the same names.
        accepted_token_weights: Values of `--token_weights` that it takes.
        weighs_positions: Whether it takes `--position_weights`.
        can_be_cut: Whether the first numbers of its vectors can be trained as vectors.
        trains_words_alone: Whether nothing but word vectors is trained, unless it weighs them.
        is_recurrent: Whether it reads one word after the other.
        pads_texts: Whether each text costs as much as the longest text of the batch.
        has_token_vectors: Whether `token_vectors` says what each token adds to a vector.
        names_all_rows: Whether the optimizer wants gradients that name the rows of all tokens; a
            model sets it when it is compiled.
    """

    initial_stddev = 1.0
    bilingual_scale = 1.0
    pads_texts = False
    has_token_vectors = False
    settings: ClassVar[tuple[str, ...]] = ()
    accepted_token_weights: ClassVar[tuple[str, ...]] = ("none",)
    weighs_positions = False
    can_be_cut = False
    trains_words_alone = False
    is_recurrent = False
    names_all_rows = False
    _reads_in_place = False

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
            train_embeddings: False freezes the word vectors, of n-grams too, and nothing else.
            ngram_buckets: Rows of the table of n-grams; 0 for words without n-grams.
            ngram_initializer: Keras initializer of that table; "random_normal" as above.
            **kwargs: Of the Keras layer; `trainable=False` freezes the whole tower.

        Raises:
            ValueError: On sizes below 1, and on half precision.
        """
        super().__init__(**kwargs)
        check_precision(self)
        self.supports_jit = False  # else Keras 3 compiles it with XLA, which needs fixed shapes
        for argument, value in {"vocabulary_size": vocabulary_size, "dim": dim}.items():
            if int(value) < 1:
                raise ValueError(f"{argument} must be at least 1, but is {value}.")
        self.vocabulary_size = int(vocabulary_size)
        self.dim = int(dim)
        if int(ngram_buckets) < 0:
            raise ValueError(f"ngram_buckets must be at least 0, but is {ngram_buckets}.")
        self.ngram_buckets = int(ngram_buckets)
        self.embeddings_initializer = self._initializer(embeddings_initializer)
        self.ngram_initializer = self._initializer(ngram_initializer)
        self.train_embeddings = bool(train_embeddings)

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], vocabulary_size: int, *, seed: int, **kwargs
    ) -> Self:
        """Returns the tower with the values that a training run's settings have for it.

        Args:
            settings: By name, "dim" and at least those that `WordTableTower.settings` declares.
            vocabulary_size: Rows of the table.
            seed: Of all initial weights but the tables.
            **kwargs: Of the constructor.
        """
        del seed  # of towers with layers
        chosen = {name: settings[name] for name in cls.settings}
        return cls(vocabulary_size, settings["dim"], **chosen, **kwargs)

    def build(self, input_shape=None):
        """Creates the tables, and all other weights."""
        if self.built:
            return
        if not hasattr(self, "embeddings"):  # else it was given those of another tower
            self._build_tables()
        self.build_rest()
        self.built = True

    def _build_tables(self) -> None:
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

    @abc.abstractmethod
    def call(self, tokens, training=None):
        """Returns the vectors of texts, `[batch, dim]`."""
        raise NotImplementedError

    def build_rest(self) -> None:
        """Creates the weights besides the tables: none, unless a subclass does."""

    def start_like(self, other: Self) -> None:
        """Copies all weights but tables and counters from another built tower of the same kind."""
        # Weights that are not trained are among them, such as inverse document frequencies.
        for own, given in zip(self.but_tables(self.weights), other.but_tables(other.weights)):
            if own.dtype.is_floating:
                own.assign(given)

    def but_tables(self, weights: list) -> list[tf.Variable]:
        """Returns some of the tower's weights without the tables."""
        tables = {id(table) for table in self.tables().values()}
        return [weight for weight in map(tf_variable, weights) if id(weight) not in tables]

    def tables(self) -> dict[str, tf.Variable]:
        """Returns the tables by name: `embeddings` and, with n-grams, `ngram_embeddings`."""
        names = ("embeddings", "ngram_embeddings") if self.ngram_buckets else ("embeddings",)
        return {name: tf_variable(getattr(self, name)) for name in names}

    @contextlib.contextmanager
    def reading_in_place(self) -> Iterator[None]:
        """Adds up rows where they lie in the tables, which is faster; only for exports."""
        # Once TensorFlow has read single rows of a variable, or trained them, it copies the whole
        # variable whenever an operation asks for it.
        self._reads_in_place = True
        try:
            yield
        finally:
            self._reads_in_place = False

    def token_vectors(self, tokens) -> tf.Tensor:
        """Returns `[tokens, dim]`: the mean over a text, then tanh, is the vector of the text.

        Only for towers that declare `has_token_vectors`.

        Args:
            tokens: As for `call`.
        """
        raise NotImplementedError

    def word_vectors(
        self, tokens: DistinctTokens | SubwordTokens, training: bool | None = None
    ) -> tf.Tensor:
        """Returns `[distinct, dim]`, the vectors of the distinct words.

        Its gradient names each row of a table once.

        Raises:
            ValueError: The tower has `ngram_buckets`, and the tokens have no n-grams.
        """
        words = tokens.distinct
        if not self.ngram_buckets:
            return self._rows("embeddings", words)
        if not isinstance(tokens, SubwordTokens):
            raise ValueError(
                "tokens: this tower has ngram_buckets and needs the n-grams of the words. Give it"
                " SubwordTokens, such as those of a set that was prepared with ngram_buckets, or of"
                " SubwordTextEncoder."
            )
        ngrams = tokens.ngrams
        of_ngrams = self._sums_of_ngrams(ngrams, training)
        root = tf.sqrt(tf.cast(ngrams.lengths, of_ngrams.dtype))
        of_ngrams *= tf.math.divide_no_nan(1.0, root)[:, tf.newaxis]
        # Only these words have a row of their own; it is added to the sums of n-grams in place.
        has_own = (words > UNKNOWN_ID) & (words < self.vocabulary_size)
        own = self._rows("embeddings", tf.boolean_mask(words, has_own))
        return tf.tensor_scatter_nd_add(of_ngrams, tf.where(has_own), own)

    def sums_of_rows(
        self, table: str, tokens: Tokens | DistinctTokens, training: bool | None = None
    ) -> tf.Tensor:
        """Returns `[texts, dim]`, the sums of the rows of a table over each text.

        Its gradient names each row once.
        """
        number = tf.size(tokens.lengths)
        if self._reads_in_place:
            return segment_sum(self._table(table), tokens.ids, tokens.texts, number)
        # Each different row is read once, then added up from the copy, `[distinct, dim]`.
        tokens = distinct_tokens(tokens)
        rows = self._rows(table, tokens.distinct)
        return segment_sum(rows, tokens.positions, tokens.texts, number, training=training)

    def _rows(self, table: str, numbers: tf.Tensor) -> tf.Tensor:
        return tf.gather(self._table(table), numbers)

    def _table(self, name: str) -> tf.Variable | tf.Tensor:
        table = tf_variable(getattr(self, name))
        return tf.convert_to_tensor(table) if self._reads_in_place else table

    def _sums_of_ngrams(self, ngrams: Tokens | DistinctTokens, training: bool | None) -> tf.Tensor:
        """`[words, dim]`, the sum of the vectors of each word's n-grams."""
        # In training, rows are added up where they lie; see `ops/table_sum.py`.
        if training and not tf.executing_eagerly():
            ngrams = distinct_tokens(ngrams)
            return table_sum_of_distinct(
                tf_variable(self.ngram_embeddings),
                ngrams.distinct,
                ngrams.positions,
                ngrams.texts,
                ngrams.lengths,
            )
        return self.sums_of_rows("ngram_embeddings", ngrams, training)

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


def check_precision(layer: keras.layers.Layer) -> None:
    """Checks that a layer computes in float32 or more, not as under the policy "mixed_float16"."""
    if layer.compute_dtype in ("float16", "bfloat16"):
        raise ValueError(
            f"{layer.name}: it computes in {layer.compute_dtype}, but rows of a table of words are"
            " added up in float32. Set keras.mixed_precision.set_global_policy('float32') before,"
            " or give dtype='float32'."
        )
