"""Vocabularies: counted once, kept as a text file, looked up in the graph."""

from __future__ import annotations

import collections
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from tf_smoothclir.errors import input_error
from tf_smoothclir.text.tokenizer import tokenize

PADDING, UNKNOWN = "[PAD]", "[UNK]"
PADDING_ID, UNKNOWN_ID = 0, 1
TEXTS_PER_CALL = 4096


class TokenCounter:
    """Counts the tokens of a stream of texts."""

    def __init__(self, max_tokens: int):
        """Counts the first `max_tokens` tokens of each text."""
        self._counts = collections.Counter()

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def count(texts):
            tokens = tokenize(texts, max_tokens).flat_values
            unique, _, counts = tf.unique_with_counts(tokens, out_idx=tf.int64)
            return unique, counts

        self._count = count

    def add(self, texts: Iterable[str]) -> None:
        """Counts the tokens of `texts`."""
        for batch in in_batches(texts, TEXTS_PER_CALL):
            unique, counts = self._count(tf.constant(batch, tf.string))
            self._counts.update(dict(zip(unique.numpy().tolist(), counts.numpy().tolist())))

    def vocabulary(self, *, max_size: int, min_count: int, role: str) -> list[str]:
        """Returns padding, unknown, then the most frequent tokens; equal counts in byte order.

        Args:
            max_size: Most entries, padding and unknown included (paper: 100,000).
            min_count: Tokens seen less often become unknown.
            role: "query" or "document", for the error.

        Raises:
            InputError: Where no token is left.
        """
        kept = [(-count, token) for token, count in self._counts.items() if count >= min_count]
        if not kept:
            raise input_error(
                f"{role} vocabulary",
                f"no token occurs at least {min_count} time(s) in the {role} texts"
                f" ({len(self._counts)} different tokens seen)",
                "Lower --min_count, or check that the right column holds the text",
            )
        kept.sort()
        return [PADDING, UNKNOWN] + [token.decode() for _, token in kept[: max_size - 2]]


def in_batches(items: Iterable, size: int):
    """Yields lists of up to `size` items."""
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


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
    """Fills a table from a vocabulary.

    TensorFlow shares the tables of a process by the path of their file, even where its content has
    changed since (a run that is overwritten); these are shared by the content.
    """

    def __init__(self, path: str | os.PathLike):
        super().__init__(
            os.fspath(path),
            key_dtype=tf.string,
            key_index=tf.lookup.TextFileIndex.WHOLE_LINE,
            value_dtype=tf.int64,
            value_index=tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self.digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()

    @property
    def _shared_name(self) -> str:
        return f"vocabulary_{self.digest}"


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

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encodes texts.

        Args:
            texts: `[batch]` string, anything at all.

        Returns:
            `ids`, `[tokens]` int32, the token ids of all texts one after the other, and `lengths`,
            `[batch]` int32, the number of tokens of each text.
        """
        tokens = tokenize(texts, self.max_tokens)
        return {
            "ids": tf.cast(self._table.lookup(tokens.flat_values), tf.int32),
            "lengths": tf.cast(tokens.row_lengths(), tf.int32),
        }
