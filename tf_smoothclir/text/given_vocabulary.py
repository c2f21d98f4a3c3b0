"""Vocabularies that a file gives, instead of the words of the texts.

Pre-trained word vectors bring a vocabulary with them: it has words that the training texts lack.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import tensorflow as tf

from tf_smoothclir.storage.folder import file_digest
from tf_smoothclir.text.embeddings import digit_form
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN
from tf_smoothclir.utils.errors import InputError, input_error

_MARKS = {PADDING, UNKNOWN, "<UNK>", "<S>", "</S>", "<PAD>"}  # the last four are Polyglot's
_REMEDY = "Give one word a line, the most frequent first"


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
