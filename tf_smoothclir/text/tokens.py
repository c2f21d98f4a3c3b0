"""The forms in which the tokens of texts reach a tower."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import tensorflow as tf

from tf_smoothclir.storage.folder import file_digest
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import PADDING_ID, UNKNOWN_ID


class Tokens(NamedTuple):
    """The tokens of some texts, one text after the other, without padding."""

    ids: tf.Tensor  # `[tokens]` int
    lengths: tf.Tensor  # `[texts]` int, the number of tokens of each text
    texts: tf.Tensor  # `[tokens]` int, ascending, the text of each token

    @classmethod
    def of(cls, ids: tf.Tensor, lengths: tf.Tensor) -> Self:
        """Finds the text of each token."""
        return cls(ids, lengths, tf.repeat(tf.range(tf.size(lengths)), lengths))

    @classmethod
    def of_ragged(cls, ids: tf.RaggedTensor) -> Self:
        """Those of `[texts, (tokens)]`."""
        lengths, texts = ids.row_lengths(), ids.value_rowids()
        return cls(ids.flat_values, tf.cast(lengths, tf.int32), tf.cast(texts, tf.int32))


class DistinctTokens(NamedTuple):
    """Tokens of texts, with each different id once."""

    distinct: tf.Tensor  # `[distinct]` int, each different id
    positions: tf.Tensor  # `[tokens]` int, the place of each token's id in `distinct`
    lengths: tf.Tensor  # as in `Tokens`
    texts: tf.Tensor  # as in `Tokens`

    @classmethod
    def of(cls, tokens: Tokens) -> Self:
        """Finds the different ids."""
        return cls(*tf.unique(tokens.ids), tokens.lengths, tokens.texts)

    @property
    def ids(self) -> tf.Tensor:
        """The id of each token, `[tokens]` int."""
        return tf.gather(self.distinct, self.positions)


class SubwordTokens(NamedTuple):
    """Tokens of texts, `DistinctTokens` with the character n-grams of each different word."""

    distinct: tf.Tensor
    positions: tf.Tensor
    lengths: tf.Tensor
    texts: tf.Tensor
    ngrams: Tokens | DistinctTokens  # of the words in `distinct`; each word is a "text" of them

    ids = DistinctTokens.ids


def flat_tokens(given) -> Tokens | DistinctTokens | SubwordTokens:
    """Tokens as they are, or of `{"ids", "lengths"}`, ragged ids, or ids padded by 0 anywhere."""
    # Padded ids may be floats, which is what Keras 3 makes of them on their way into a
    # `Sequential`.
    if isinstance(given, (Tokens, DistinctTokens, SubwordTokens)):
        return given
    ids = given["ids"] if isinstance(given, Mapping) else given
    if tf.as_dtype(getattr(ids, "dtype", None) or tf.convert_to_tensor(ids).dtype) == tf.string:
        raise ValueError(
            "The tower reads ids, but got strings. Give ids, or put the tower into a TextTower,"
            " which reads texts."
        )
    if isinstance(given, Mapping):
        return Tokens.of(given["ids"], given["lengths"])
    if isinstance(given, tf.RaggedTensor):
        return Tokens.of_ragged(given)
    # Padded: the real ids of each row, in order.
    real = tf.not_equal(given, PADDING_ID)
    lengths = tf.reduce_sum(tf.cast(real, tf.int32), axis=-1)
    ids = tf.boolean_mask(given, real)
    return Tokens.of(ids if ids.dtype.is_integer else tf.cast(ids, tf.int32), lengths)


def distinct_tokens(given) -> DistinctTokens | SubwordTokens:
    """Returns the tokens of texts, as `flat_tokens` does, with each different id once."""
    tokens = flat_tokens(given)
    return DistinctTokens.of(tokens) if isinstance(tokens, Tokens) else tokens


class _VocabularyFile(tf.lookup.TextFileInitializer):
    """Fills a table from a vocabulary file: token -> id, or id -> token."""

    # TensorFlow shares tables within a process by the path of the file, even if its content has
    # changed since (an overwritten run). These tables are shared by content.

    def __init__(self, path: str | os.PathLike, by_id: bool = False):
        token = (tf.string, tf.lookup.TextFileIndex.WHOLE_LINE)
        line = (tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
        key, value = (line, token) if by_id else (token, line)
        super().__init__(os.fspath(path), *key, *value)
        self.digest = file_digest(path)
        self._kind = "words" if by_id else "vocabulary"

    @property
    def _shared_name(self) -> str:
        return f"{self._kind}_{self.digest}"


class _VocabularyList(tf.lookup.KeyValueTensorInitializer):
    """Fills a table from a list of tokens, as `_VocabularyFile` does from a file."""

    def __init__(self, tokens: Sequence[str], by_id: bool = False):
        words, ids = tf.constant(list(tokens), tf.string), tf.range(len(tokens), dtype=tf.int64)
        super().__init__(*((ids, words) if by_id else (words, ids)))
        self.digest = hashlib.sha256("\n".join([*tokens, ""]).encode()).hexdigest()


def vocabulary_entries(vocabulary: str | os.PathLike | Sequence[str], by_id: bool = False):
    """What fills a table: from tokens to int64 ids, or from ids to tokens."""
    is_path = isinstance(vocabulary, (str, os.PathLike))
    return (_VocabularyFile if is_path else _VocabularyList)(vocabulary, by_id)


class TextEncoder(tf.Module):
    """Texts to token ids, in the graph; the vocabulary is an asset of every SavedModel."""

    def __init__(
        self,
        vocabulary_path: str | os.PathLike | Sequence[str],
        max_tokens: int,
        pretokenized: bool = False,
    ):
        super().__init__(name="text_encoder")
        self.max_tokens, self.pretokenized = max_tokens, pretokenized
        initializer = vocabulary_entries(vocabulary_path)
        self.vocabulary_digest = initializer.digest
        self._table = tf.lookup.StaticHashTable(initializer, default_value=UNKNOWN_ID)

    @property
    def size(self) -> int:
        """Number of entries of the vocabulary; outside of a graph."""
        return int(self._table.size())

    def ids(self, words: tf.Tensor) -> tf.Tensor:
        """The ids of words, `[words]` int32."""
        return tf.cast(self._table.lookup(words), tf.int32)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> Tokens:
        """Encodes texts, `[batch]` string of any bytes."""
        return self.of_words(self.words(texts))

    def words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """The words that are encoded of texts, `[batch, (tokens)]` string."""
        return tokenize(texts, self.max_tokens, self.pretokenized)

    def of_words(self, tokens: tf.RaggedTensor) -> Tokens:
        """Encodes the words of texts, `[batch, (tokens)]` string, as `__call__` does."""
        return Tokens.of_ragged(tokens.with_flat_values(self.ids(tokens.flat_values)))

    def complete(self, ids: tf.Tensor, lengths: tf.Tensor) -> Tokens:
        """Result of `__call__`, given the ids and lengths of the tokens."""
        return Tokens.of(ids, lengths)
