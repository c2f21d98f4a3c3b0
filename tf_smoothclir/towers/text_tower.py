"""A tower that reads strings: normalisation, tokens and vocabulary inside, then any other tower."""

from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.new_vocabulary import TokenCounter
from tf_smoothclir.text.subwords import SubwordTextEncoder
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN
from tf_smoothclir.towers.word_table import WordTableTower
from tf_smoothclir.utils.errors import input_error, kind
from tf_smoothclir.utils.parallel import text_batches


def _checked(texts: Iterable[str]) -> Iterator[str]:
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise input_error("texts", f"it is {kind(texts)}", "Give a list of strings")
    for place, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            remedy = "Give a string there; fill in or leave out missing texts"
            raise input_error(f"texts[{place}]", f"it is {kind(text)}", remedy)
        yield text


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class TextTower(keras.layers.Layer):
    """Reads texts as preparation, export and search read them, and gives them to a tower.

    Call it on `[batch]` string, any bytes; it returns `[batch, dim]` float. The vocabulary is part
    of the configuration, so a `.keras` file and a SavedModel need nothing else. A tower with
    `ngram_buckets` gets the n-grams of the words.

    ```python
    words = TextTower.words_of(documents, max_size=50_000)
    tower = TextTower(AveragePoolingTower(len(words)), words)
    ```

    Attributes:
        tower: The tower inside.
        encoder: From texts to the tokens that it takes.
    """

    def __init__(
        self,
        tower: WordTableTower,
        vocabulary: Sequence[str],
        *,
        max_tokens: int = 200,
        min_ngram: int = 3,
        max_ngram: int = 5,
        **kwargs,
    ):
        """Joins a vocabulary and a tower.

        Args:
            tower: A tower of this package.
            vocabulary: Its words; the position is the id. It begins with "[PAD]" and "[UNK]".
            max_tokens: Texts are cut after this many tokens (paper: 200).
            min_ngram: Length in characters of the shortest n-gram, of a tower with `ngram_buckets`.
            max_ngram: Length of the longest n-gram.
            **kwargs: Of the Keras layer.

        Raises:
            ValueError: The tower has another number of words, or the vocabulary another beginning.
        """
        super().__init__(**kwargs)
        self.supports_jit = False
        words = list(vocabulary)
        if words[:2] != [PADDING, UNKNOWN]:
            raise ValueError(
                f"vocabulary must begin with {PADDING!r} and {UNKNOWN!r}, but begins with"
                f" {words[:2]}: make it with TextTower.words_of(texts)."
            )
        if len(words) != tower.vocabulary_size:
            raise ValueError(
                f"vocabulary has {len(words)} words, and the tower {tower.vocabulary_size}: build"
                " the tower with vocabulary_size=len(vocabulary)."
            )
        self.tower = tower
        self._config = {
            "max_tokens": int(max_tokens),
            "min_ngram": int(min_ngram),
            "max_ngram": int(max_ngram),
        }
        self._words = tuple(words)
        if tower.ngram_buckets:
            settings = TextSettings(
                ngram_buckets=tower.ngram_buckets, min_ngram=min_ngram, max_ngram=max_ngram
            )
            self.encoder: TextEncoder = SubwordTextEncoder(words, max_tokens, settings)
        else:
            self.encoder = TextEncoder(words, max_tokens)

    @staticmethod
    def words_of(
        texts: Iterable[str], *, max_size: int = 100_000, min_count: int = 1, max_tokens: int = 200
    ) -> list[str]:
        """Returns the vocabulary of texts: "[PAD]", "[UNK]", then the most frequent words.

        Args:
            texts: The texts; streamed.
            max_size: Largest number of entries (paper: 100,000).
            min_count: Words that occur less often are left out.
            max_tokens: Texts are cut after this many tokens.

        Raises:
            InputError: No word is left, or `texts` is a single text or has what is none.
        """
        counter = TokenCounter()
        for batch in text_batches(_checked(texts)):
            counter.add(counter.split(batch, max_tokens))
        return counter.vocabulary(max_size=max_size, min_count=min_count, role="text")

    @property
    def vocabulary(self) -> list[str]:
        """The words; the position is the id."""
        return list(self._words)

    def build(self, input_shape=None):
        """Creates the variables of the tower."""
        if not self.tower.built:
            self.tower.build(None)
        self.built = True

    def call(self, texts, training=None):
        """Returns the vectors of texts, `[batch, dim]`.

        Args:
            texts: `[batch]` or `[batch, 1]` string.
            training: Whether the gradient is wanted.

        Raises:
            ValueError: They are no strings.
        """
        texts = tf.convert_to_tensor(texts)
        if texts.dtype != tf.string:
            raise ValueError(
                f"{self.name}: it reads strings, but got {texts.dtype.name}. Give texts, or use"
                " the tower inside for ids."
            )
        return self.tower(self.encoder(tf.reshape(texts, [-1])), training=training)

    def get_config(self):
        """Returns the arguments of the constructor."""
        tower = keras.utils.serialize_keras_object(self.tower)
        return {**super().get_config(), **self._config, "tower": tower, "vocabulary": self._words}

    @classmethod
    def from_config(cls, config):
        """Restores a tower from `get_config`."""
        tower = keras.utils.deserialize_keras_object(config["tower"])
        return cls(**{**config, "tower": tower})


def word_table(tower: keras.layers.Layer) -> keras.layers.Layer:
    """Returns the tower that has the table of words: the one inside a `TextTower`, or itself."""
    return tower.tower if isinstance(tower, TextTower) else tower
