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
    """Fills a table from a vocabulary file: token -> id.

    TensorFlow shares tables within a process by the path of the file, even if its content has
    changed since (an overwritten run). These tables are shared by content.
    """

    def __init__(self, path: str | os.PathLike):
        token = (tf.string, tf.lookup.TextFileIndex.WHOLE_LINE)
        number = (tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
        super().__init__(os.fspath(path), *token, *number)
        self.digest = file_digest(path)

    @property
    def _shared_name(self) -> str:
        return f"vocabulary_{self.digest}"


class _VocabularyList(tf.lookup.KeyValueTensorInitializer):
    """Fills a table from a list of tokens, as `_VocabularyFile` does from a file."""

    def __init__(self, tokens: Sequence[str]):
        ids = tf.range(len(tokens), dtype=tf.int64)
        super().__init__(tf.constant(list(tokens), tf.string), ids)
        self.digest = hashlib.sha256("\n".join([*tokens, ""]).encode()).hexdigest()


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
        is_path = isinstance(vocabulary_path, (str, os.PathLike))
        initializer = (_VocabularyFile if is_path else _VocabularyList)(vocabulary_path)
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
