"""A new vocabulary: the tokens of texts, counted, or the words that a file gives.

Pre-trained word vectors bring a file with them: it has words that the training texts lack.
"""

import functools
import itertools
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_smoothclir.storage.folder import file_digest
from tf_smoothclir.text.embeddings import digit_form
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, UNKNOWN_ID
from tf_smoothclir.utils.errors import InputError, input_error

_MARKS = {PADDING, UNKNOWN, "<UNK>", "<S>", "</S>", "<PAD>"}  # the last four are Polyglot's
_REMEDY = "Give one word a line, the most frequent first"


class NumberedTexts(NamedTuple):
    """A batch of texts whose tokens are numbered from 0 within the batch."""

    tokens: tf.Tensor  # `[distinct]` string, number -> token
    numbers: np.ndarray  # `[tokens]` int32, of all texts one after the other
    lengths: np.ndarray  # `[batch]` int32, the number of tokens in each text


@functools.cache
def _splitter(pretokenized: bool) -> Callable:
    # AutoGraph has nothing to rewrite here, but would take most of the tracing time.
    @tf.function(
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int64)],
    )
    def split(texts, max_tokens):
        tokens = tokenize(texts, max_tokens, pretokenized)
        distinct, numbers = tf.unique(tokens.flat_values)
        return distinct, numbers, tf.cast(tokens.row_lengths(), tf.int32)

    return split


class TokenCounter:
    """Counts the tokens of a stream of texts, and numbers them before their ids are known."""

    # Ids depend on the counts of the whole stream; thanks to the numbers, nothing is tokenised
    # twice. All distinct tokens are kept, 150 to 200 bytes each: 30 million in 6 GB.

    def __init__(self, pretokenized: bool = False):
        self._split = _splitter(pretokenized)
        self._numbers: dict[bytes, int] = {}
        self._counts = np.zeros(1 << 16, np.int64)  # by number; may be longer than the dict

    def split(self, texts: list[str], max_tokens: int) -> NumberedTexts:
        """Tokenises a batch, which takes almost all of the time; in any number of threads."""
        tokens, numbers, lengths = self._split(
            tf.constant(texts, tf.string), tf.constant(max_tokens, tf.int64)
        )
        return NumberedTexts(tokens, numbers.numpy(), lengths.numpy())

    def add(self, texts: NumberedTexts, counted: np.ndarray | None = None) -> np.ndarray:
        """Adds a batch, in one thread; `[tokens]` int32, their numbers in the whole stream."""
        # Tokens of texts that are not `counted`, `[batch]` bool, are numbered only.
        known = self._numbers
        numbers = np.fromiter(
            (known.setdefault(token, len(known)) for token in texts.tokens.numpy().tolist()),
            np.int32,
            count=len(texts.tokens),
        )
        if len(known) > len(self._counts):  # double the size: seldom copied
            self._counts = np.concatenate([self._counts, np.zeros(len(known), np.int64)])
        seen = texts.numbers
        if counted is not None:
            seen = seen[np.repeat(counted, texts.lengths)]
        self._counts[numbers] += np.bincount(seen, minlength=len(numbers))
        return numbers[texts.numbers]

    def counts(self) -> dict[bytes, int]:
        """The count of each token that was counted at least once."""
        counts = self._counts[: len(self._numbers)].tolist()
        return {token: count for token, count in zip(self._numbers, counts) if count}

    def vocabulary(self, *, max_size: int, min_count: int, role: str) -> list[str]:
        """Padding, unknown, then the most frequent tokens; equal counts in byte order."""
        counts = self._counts[: len(self._numbers)]
        frequent = np.sort(counts[counts >= max(min_count, 1)])[::-1][: max_size - 2]
        if not frequent.size:
            raise input_error(
                f"{role} vocabulary",
                f"no token occurs at least {min_count} time(s) in the {role} texts"
                f" ({np.count_nonzero(counts)} distinct tokens seen)",
                "Lower --min_count, or check that the right column holds the text",
            )
        # Of many millions of tokens, sort only those that may have a place.
        enough = counts >= frequent[-1]
        tokens = itertools.compress(self._numbers, enough.tolist())
        kept = sorted(zip((-counts[enough]).tolist(), tokens))
        return [PADDING, UNKNOWN] + [token.decode() for _, token in kept[: max_size - 2]]

    def ids(self, vocabulary: list[str]) -> np.ndarray:
        """`[distinct]` int32, number -> position in `vocabulary`, or `UNKNOWN_ID`."""
        ids = np.full(len(self._numbers), UNKNOWN_ID, np.int32)
        for id_, token in enumerate(vocabulary):
            number = self._numbers.get(token.encode())
            if number is not None:
                ids[number] = id_
        return ids

    def left_out(self, vocabulary: list[str], min_count: int) -> tuple[int, float]:
        """Number of the frequent tokens that a vocabulary lacks; their share of all counted."""
        counts = self._counts[: len(self._numbers)]
        lacking = counts[(self.ids(vocabulary) == UNKNOWN_ID) & (counts >= max(min_count, 1))]
        return len(lacking), lacking.sum() / max(counts.sum(), 1)

    def distinct_ids(self, vocabulary: list[str]) -> tuple[np.ndarray, list[str]]:
        """`[distinct]` int32, number -> id, and the tokens with ids from `len(vocabulary)` on."""
        ids = self.ids(vocabulary)
        unknown = ids == UNKNOWN_ID
        ids[unknown] = len(vocabulary) + np.arange(np.count_nonzero(unknown))
        tokens = itertools.compress(self._numbers, unknown.tolist())
        return ids, [token.decode() for token in tokens]


def given_vocabulary(
    path: str | os.PathLike,
    counts: Mapping[bytes, int],
    *,
    max_size: int,
    min_count: int,
    pretokenized: bool = False,
) -> list[str]:
    """Padding, unknown, the words of a file, then numbers of the texts."""
    # Words become the tokens that the tokeniser makes of them; those that it splits are left out.
    # If the file has words with `#` for each digit, as Polyglot's do, the numbers of the texts that
    # have such a form are added, the most frequent first.
    words = _read(path)
    tokens = tokenize(tf.constant(words, tf.string), 2, pretokenized)
    starts, lengths = tokens.row_starts().numpy(), tokens.row_lengths().numpy()
    single = tokens.flat_values.numpy()[starts[lengths == 1]]
    entries = dict.fromkeys([PADDING, UNKNOWN, *(token.decode() for token in single)])
    if len(entries) == 2:
        raise input_error(path, "the file has no word", _REMEDY)
    numbers = _numbers({word for word in words if "#" in word}, counts, min_count)
    entries.update(dict.fromkeys(numbers))
    return list(entries)[:max_size]


def vocabulary_digest(path: str | os.PathLike) -> str:
    """The hex SHA-256 of a file for `given_vocabulary`."""
    try:
        return file_digest(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _numbers(forms: set[str], counts: Mapping[bytes, int], min_count: int) -> list[str]:
    """The tokens that look like one of `forms` if each digit is written as `#`."""
    numbers = (
        (-count, token.decode())
        for token, count in counts.items()
        if count >= min_count and any(48 <= byte < 58 for byte in token)
    )
    return [token for _, token in sorted(numbers) if digit_form(token) in forms]


def _read(path: str | os.PathLike) -> list[str]:
    words = []
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            for line, text in enumerate(file, 1):
                fields = text.split()
                if len(fields) > 1:
                    reason = f"{len(fields)} words in a line"
                    raise input_error(path, reason, _REMEDY, line=line)
                words += fields
    except UnicodeError as error:
        raise input_error(path, f"the file is not UTF-8 ({error})", _REMEDY) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    return [word for word in words if word not in _MARKS]


def _unreadable(path: str | os.PathLike, error: OSError) -> InputError:
    return input_error(path, f"the file cannot be read ({error.strerror})", "Check the path")
