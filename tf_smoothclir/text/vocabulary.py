"""Vocabularies: counted once, kept as a text file, looked up in the graph."""

from __future__ import annotations

import os

import tensorflow as tf

from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.tokens import Tokens
from tf_smoothclir.utils.digests import file_digest
from tf_smoothclir.utils.errors import input_error

PADDING, UNKNOWN = "[PAD]", "[UNK]"
PADDING_ID, UNKNOWN_ID = 0, 1


def write_vocabulary(path: str | os.PathLike, tokens: list[str]) -> None:
    """Writes one token a line; the line number, from 0, is the token's id."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{token}\n" for token in tokens)


def read_vocabulary(path: str | os.PathLike) -> list[str]:
    """Reads what `write_vocabulary` wrote."""
    with open(path, encoding="utf-8", newline="\n") as file:
        tokens = file.read().split("\n")[:-1]
    if tokens[:2] != [PADDING, UNKNOWN]:
        raise input_error(
            path,
            f"a vocabulary starts with the lines {PADDING} and {UNKNOWN}, this one with"
            f" {tokens[:2]}",
            "Use the file that training wrote",
        )
    return tokens


class _VocabularyFile(tf.lookup.TextFileInitializer):
    """Fills a table from a vocabulary, from token to id or the other way round.

    TensorFlow shares the tables of a process by the path of their file, even where its content has
    changed since (a run that is overwritten); these are shared by the content.
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


def words_by_id(path: str | os.PathLike) -> tf.lookup.StaticHashTable:
    """Returns a table int64 id -> token of a vocabulary file, "" for all other ids."""
    return tf.lookup.StaticHashTable(_VocabularyFile(path, by_id=True), default_value="")


class TextEncoder(tf.Module):
    """Texts to token ids, in the graph: tokenisation and vocabulary lookup.

    The vocabulary file becomes an asset of any SavedModel that holds the encoder.
    """

    def __init__(self, vocabulary_path: str | os.PathLike, max_tokens: int):
        """Looks tokens up in `vocabulary_path` and keeps the first `max_tokens` of a text."""
        super().__init__(name="text_encoder")
        self.max_tokens = max_tokens
        initializer = _VocabularyFile(vocabulary_path)
        self.vocabulary_digest = initializer.digest
        self._table = tf.lookup.StaticHashTable(initializer, default_value=UNKNOWN_ID)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> Tokens:
        """Encodes texts.

        Args:
            texts: `[batch]` string, anything at all.

        Returns:
            Tokens, int32.
        """
        tokens = tokenize(texts, self.max_tokens)
        return Tokens(
            tf.cast(self._table.lookup(tokens.flat_values), tf.int32),
            tf.cast(tokens.row_lengths(), tf.int32),
            tf.cast(tokens.value_rowids(), tf.int32),
        )

    def complete(self, ids: tf.Tensor, lengths: tf.Tensor) -> Tokens:
        """Returns what `__call__` does, from the ids and lengths of texts."""
        return Tokens.of(ids, lengths)
