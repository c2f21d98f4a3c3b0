"""Pre-trained word embeddings for the tokens of a vocabulary.

Memory grows with the vocabulary, not with the file; `embedding_formats` lists what can be read.
"""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from tf_smoothclir.text.embedding_formats import records
from tf_smoothclir.text.embedding_records import Record, damaged
from tf_smoothclir.utils.errors import input_error

FIRST_WORD = 2  # id of the first word, after padding and unknown
# Shares of the words of the vocabulary that the file has, below which something is wrong.
WARNING_SHARE, ERROR_SHARE = 0.1, 0.01
MAX_UNDECODABLE = 0.001  # share of the tokens of a file; the word2vec program cuts some letters
_UNKNOWN = 1  # id of unknown words
_BY_DIGITS, _ANY_CASE, _EXACT = 1, 2, 3  # how well a token of the file fits one of the vocabulary


class EmbeddingInit(NamedTuple):
    """Initial embeddings of a vocabulary.

    Attributes:
        matrix: `[len(tokens), dim]` float32, one row per token id.
        found: Number of words of the vocabulary that are in the file.
        total: Number of words of the vocabulary: its tokens except padding and unknown.
        in_file: `[len(tokens)]` bool, the tokens that the file has.
    """

    matrix: np.ndarray
    found: int
    total: int
    in_file: np.ndarray


def digit_form(word: str) -> str:
    """A word with `#` for each digit, as Polyglot's and some word2vec files write it."""
    return re.sub("[0-9]", "#", word)


def load_embeddings(
    path: str | os.PathLike,
    vocabulary_tokens: Sequence[str],
    *,
    dim: int,
    seed: int,
    encoding: str = "utf-8",
) -> EmbeddingInit:
    """Reads the rows of a vocabulary from a file of pre-trained embeddings.

    A token takes the row of the first equal token in the file, or else of the first that is equal
    when lower-cased, or else, if it has digits, of the first with `#` in their place. Rows that are
    not in the file are drawn from N(0, s²), where s is the standard deviation of all numbers found;
    a draw depends on the seed and the token's id alone. Row 0, padding, is zero; row 1, unknown, is
    the file's `[UNK]` or `<UNK>`, or drawn. The numbers of tokens outside the vocabulary are
    counted, but not parsed.
    """
    wanted = _Wanted(vocabulary_tokens)
    matrix = np.random.default_rng(seed).standard_normal((len(vocabulary_tokens), dim), np.float32)
    tokens = _Tokens(path, encoding)
    for number, record, unit in records(path, dim):
        rows = wanted.rows(tokens.decode(record.token, number, unit))
        if rows:
            matrix[rows] = _parse(path, number, record, unit)
    tokens.check()
    in_file = wanted.fit > 0
    found, total = int(in_file[FIRST_WORD:].sum()), max(len(vocabulary_tokens) - FIRST_WORD, 0)
    _check_found(path, found, total)
    with np.errstate(over="ignore"):
        matrix[~in_file] *= np.std(matrix[in_file], dtype=np.float64)
    if not np.isfinite(matrix).all():
        reason = "its numbers are so large that rows of words that it lacks are not finite"
        raise input_error(path, reason, "Download the file again")
    matrix[0] = 0
    return EmbeddingInit(matrix, found, total, in_file)


class _Wanted:
    """Which rows of a vocabulary a token of the file is for, if none before it fits better.

    Attributes:
        fit: `[len(tokens)]` int8, how well the best token so far fits; 0 for none.
    """

    def __init__(self, vocabulary_tokens: Sequence[str]):
        self._ids = {token: i for i, token in enumerate(vocabulary_tokens) if i > 0}
        self._ids.setdefault("<unk>", _UNKNOWN)
        self._by_digits = collections.defaultdict(list)
        for token, token_id in self._ids.items():
            form = digit_form(token)
            if form != token:
                self._by_digits[form].append(token_id)
        self.fit = np.zeros(len(vocabulary_tokens), np.int8)

    def rows(self, token: str) -> list[int]:
        """The rows that are to take the vector of a token, the next of the file."""
        lower = token.lower()
        if token in self._ids:
            ids, fit = [self._ids[token]], _EXACT
        elif lower in self._ids:
            ids, fit = [self._ids[lower]], _ANY_CASE
        else:
            ids, fit = self._by_digits.get(lower, []), _BY_DIGITS
        better = [i for i in ids if self.fit[i] < fit]
        self.fit[better] = fit
        return better


class _Tokens:
    """Decodes the tokens of a file, and counts those that are not of its encoding."""

    def __init__(self, path: str | os.PathLike, encoding: str):
        try:
            "".encode(encoding)
        except LookupError:
            reason = "there is no such encoding of texts"
            remedy = "Give a name that Python knows, such as utf-8 or latin-1"
            raise input_error(f"--embeddings_encoding={encoding}", reason, remedy) from None
        self._path, self._encoding = path, encoding
        self._count = self._bad = 0
        self._first = 0, ""

    def decode(self, token: bytes, number: int, unit: str) -> str:
        self._count += 1
        try:
            return token.decode(self._encoding)
        except UnicodeError:
            self._bad += 1
            if self._bad == 1:
                self._first = number, unit
            return token.decode(self._encoding, "replace")

    def check(self) -> None:
        """Warns of tokens of another encoding, or raises `InputError` if they are many."""
        if not self._bad:
            return
        number, unit = self._first
        reason = (
            f"{self._bad} of {self._count} tokens are not {self._encoding}, the first of them in"
            f" {unit} {number}"
        )
        if self._bad > MAX_UNDECODABLE * self._count:
            remedy = "Give the encoding of the file, such as --embeddings_encoding=latin-1"
            raise input_error(self._path, reason, remedy)
        logging.warning("%s: %s. They are left out", self._path, reason)


def _check_found(path: str | os.PathLike, found: int, total: int) -> None:
    """Warns if a file has few words of the vocabulary; raises `InputError` if it has hardly any."""
    if found > WARNING_SHARE * total:
        return
    reason = f"the file contains {found or 'none'} of the {total} words of the vocabulary"
    remedy = "Check that both are in the same language, and --embeddings_encoding"
    if found <= ERROR_SHARE * total:
        raise input_error(path, reason, remedy)
    logging.warning("%s: %s. %s", path, reason, remedy)


def _parse(path, number: int, record: Record, unit: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            values = np.array(record.values, dtype=np.float64).astype(np.float32)
    except ValueError as error:
        raise damaged(path, number, unit, f"has a bad number ({error})") from None
    if not np.isfinite(values).all():
        raise damaged(path, number, unit, "has a number that is not finite in float32")
    return values
