"""Encoder of texts as token ids, in the graph: vocabularies as tables."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import tensorflow as tf

from tf_smoothclir.storage.digests import file_digest
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.tokens import Tokens
from tf_smoothclir.text.vocabulary import UNKNOWN_ID


class _VocabularyFile(tf.lookup.TextFileInitializer):
    """Fills a table from a vocabulary file: token -> id, or id -> token.

    TensorFlow shares tables within a process by the path of the file, even if its content has
    changed since (an overwritten run). These tables are shared by content.
    """

    def __init__(self, path: str | os.PathLike, by_id: bool = False):
        token = (tf.string, tf.lookup.TextFileIndex.WHOLE_LINE)
        number = (tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
        key, value = (number, token) if by_id else (token, number)
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


def _entries(vocabulary: str | os.PathLike | Sequence[str], by_id: bool = False):
    is_path = isinstance(vocabulary, (str, os.PathLike))
    return (_VocabularyFile if is_path else _VocabularyList)(vocabulary, by_id)


def words_by_id(vocabulary: str | os.PathLike | Sequence[str]) -> tf.lookup.StaticHashTable:
    """The table int64 id -> token of a vocabulary, "" for other ids."""
    return tf.lookup.StaticHashTable(_entries(vocabulary, by_id=True), default_value="")


class TextEncoder(tf.Module):
    """Texts to token ids, in the graph: tokenisation and vocabulary lookup.

    The vocabulary file becomes an asset of every SavedModel that contains the encoder.
    """

    def __init__(
        self,
        vocabulary_path: str | os.PathLike | Sequence[str],
        max_tokens: int,
        pretokenized: bool = False,
    ):
        super().__init__(name="text_encoder")
        self.max_tokens, self.pretokenized = max_tokens, pretokenized
        initializer = _entries(vocabulary_path)
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
        """Encodes texts.

        Args:
            texts: `[batch]` string, any bytes.
        """
        return self.of_words(self.words(texts))

    def words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """The words that are encoded of texts, `[batch, (tokens)]` string."""
        return tokenize(texts, self.max_tokens, self.pretokenized)

    def of_words(self, tokens: tf.RaggedTensor) -> Tokens:
        """Encodes the words of texts, `[batch, (tokens)]` string, as `__call__` does."""
        return Tokens(
            self.ids(tokens.flat_values),
            tf.cast(tokens.row_lengths(), tf.int32),
            tf.cast(tokens.value_rowids(), tf.int32),
        )

    def complete(self, ids: tf.Tensor, lengths: tf.Tensor) -> Tokens:
        """Result of `__call__`, given the ids and lengths of the tokens."""
        return Tokens.of(ids, lengths)
