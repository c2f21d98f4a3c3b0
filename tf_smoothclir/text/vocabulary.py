"""Vocabularies: counted once, kept as a text file, looked up in the graph."""

from __future__ import annotations

import itertools
import os
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.utils.digests import file_digest
from tf_smoothclir.utils.errors import InputError, input_error

PADDING, UNKNOWN = "[PAD]", "[UNK]"
PADDING_ID, UNKNOWN_ID = 0, 1


class NumberedTexts(NamedTuple):
    """A batch of texts, each token given as a number that counts up from 0 within the batch.

    Attributes:
        tokens: `[distinct]` string tensor, number -> token.
        numbers: `[tokens]` int32, the numbers of all texts one after the other.
        lengths: `[batch]` int32, the number of tokens of each text.
    """

    tokens: tf.Tensor
    numbers: np.ndarray
    lengths: np.ndarray


# AutoGraph would find nothing to rewrite, here and in the towers, and take most of the tracing.
@tf.function(
    autograph=False, input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int64)]
)
def _split(texts, max_tokens):
    tokens = tokenize(texts, max_tokens)
    distinct, numbers = tf.unique(tokens.flat_values)
    return distinct, numbers, tf.cast(tokens.row_lengths(), tf.int32)


class TokenCounter:
    """Counts the tokens of a stream of texts, and numbers them before their ids are known.

    The ids of a vocabulary depend on the counts of the whole stream; by the numbers, nothing has to
    be tokenised a second time. All distinct tokens are kept, for exact counts: 150 to 200 bytes
    each, so that 6 GB hold 30 million; the texts themselves take no memory.
    """

    def __init__(self):
        """Has seen nothing yet."""
        self._numbers: dict[bytes, int] = {}
        self._counts = np.zeros(1 << 16, np.int64)  # by number; may be longer than the dict

    def split(self, texts: list[str], max_tokens: int) -> NumberedTexts:
        """Tokenises a batch; takes almost all of the time, and any number of threads may call.

        Args:
            texts: `[batch]`.
            max_tokens: Longer ones are cut to so many tokens.
        """
        tokens, numbers, lengths = _split(
            tf.constant(texts, tf.string), tf.constant(max_tokens, tf.int64)
        )
        return NumberedTexts(tokens, numbers.numpy(), lengths.numpy())

    def add(self, texts: NumberedTexts, counted: np.ndarray | None = None) -> np.ndarray:
        """Takes a batch in, from one thread.

        Args:
            texts: What `split` returned.
            counted: `[batch]` bool, the texts that the vocabulary rests on; None for all. Tokens of
                the others are numbered, not counted.

        Returns:
            `[tokens]` int32, numbers that count up from 0 over the whole stream.
        """
        known = self._numbers
        numbers = np.fromiter(
            (known.setdefault(token, len(known)) for token in texts.tokens.numpy().tolist()),
            np.int32,
            count=len(texts.tokens),
        )
        if len(known) > len(self._counts):  # twice as long: copied seldom
            self._counts = np.concatenate([self._counts, np.zeros(len(known), np.int64)])
        seen = texts.numbers
        if counted is not None:
            seen = seen[np.repeat(counted, texts.lengths)]
        self._counts[numbers] += np.bincount(seen, minlength=len(numbers))
        return numbers[texts.numbers]

    def counts(self) -> dict[bytes, int]:
        """Returns how often each token occurs that was counted at least once."""
        counts = self._counts[: len(self._numbers)].tolist()
        return {token: count for token, count in zip(self._numbers, counts) if count}

    def vocabulary(self, *, max_size: int, min_count: int, role: str) -> list[str]:
        """Returns padding, unknown, then the most frequent tokens; equal counts in byte order.

        Args:
            max_size: Most entries, padding and unknown included (paper: 100,000).
            min_count: Tokens seen less often become unknown.
            role: "query", "document" or "shared", for the error.

        Raises:
            InputError: Where no token is left.
        """
        counts = self._counts[: len(self._numbers)]
        frequent = np.sort(counts[counts >= max(min_count, 1)])[::-1][: max_size - 2]
        if not frequent.size:
            raise no_token_left(role, min_count, np.count_nonzero(counts))
        # Of many millions of tokens, only those are sorted that may have room.
        enough = counts >= frequent[-1]
        tokens = itertools.compress(self._numbers, enough.tolist())
        kept = sorted(zip((-counts[enough]).tolist(), tokens))
        return [PADDING, UNKNOWN] + [token.decode() for _, token in kept[: max_size - 2]]

    def ids(self, vocabulary: list[str]) -> np.ndarray:
        """Returns `[distinct]` int32, number -> position in `vocabulary`, or `UNKNOWN_ID`."""
        found = np.full(len(self._numbers), UNKNOWN_ID, np.int32)
        for id_, token in enumerate(vocabulary):
            number = self._numbers.get(token.encode())
            if number is not None:
                found[number] = id_
        return found

    def distinct_ids(self, vocabulary: list[str]) -> tuple[np.ndarray, list[str]]:
        """Numbers the unknown tokens too, behind the vocabulary and in the order they were seen.

        Returns:
            `[distinct]` int32, number -> id, and the tokens of the ids from `len(vocabulary)` on.
        """
        ids = self.ids(vocabulary)
        unknown = ids == UNKNOWN_ID
        ids[unknown] = len(vocabulary) + np.arange(np.count_nonzero(unknown))
        tokens = itertools.compress(self._numbers, unknown.tolist())
        return ids, [token.decode() for token in tokens]


def no_token_left(role: str, min_count: int, seen: int) -> InputError:
    """Returns the error about a vocabulary that would be empty.

    Args:
        role: "query", "document" or "shared".
        min_count: Tokens seen less often become unknown.
        seen: Different tokens.
    """
    return input_error(
        f"{role} vocabulary",
        f"no token occurs at least {min_count} time(s) in the {role} texts"
        f" ({seen} different tokens seen)",
        "Lower --min_count, or check that the right column holds the text",
    )


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

    def complete(self, ids: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns what `__call__` gives from `ids` and `lengths` alone."""
        return {"ids": ids, "lengths": lengths}
