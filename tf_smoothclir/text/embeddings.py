"""Pre-trained word embeddings, as text, for the tokens of a vocabulary.

    word2vec text, fastText `.vec`   first line `<tokens> <dim>`, then `token v1 ... vdim`
    GloVe                            the same, without the first line

Memory grows with the vocabulary, not with the file. A file that states its size must have it.
"""

import codecs
import collections
import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from tf_smoothclir.encoder.tokenizer import is_pair, tokens_of
from tf_smoothclir.utils.errors import InputError, input_error

FIRST_WORD = 2  # id of the first word, after padding and unknown
# Shares of the words of the vocabulary that the file has, below which something is wrong.
WARNING_SHARE, ERROR_SHARE = 0.1, 0.01
MAX_UNDECODABLE = 0.001  # share of the tokens of a file; the word2vec program cuts some letters
_UNKNOWN = 1  # id of unknown words
_BY_DIGITS, _ANY_CASE, _EXACT = 1, 2, 3  # how well a token of the file fits one of the vocabulary
_MAX_LINE_BYTES = 1 << 20  # longer lines are damage, not text
_CONVERT_POLYGLOT = "smoothclir-convert-polyglot --input=FILE.pkl --output=FILE.vec"
_CONVERT_BINARY = (
    "Convert it with gensim: KeyedVectors.load_word2vec_format(FILE, binary=True)"
    ".save_word2vec_format('FILE.vec')"
)
# How a file begins that is not text -> what it is, and a remedy.
_OTHER_KINDS = {
    b"\x80": ("a pickle, which may run code", f"First run {_CONVERT_POLYGLOT}"),
    b"\xba\x16\x4f\x2f": ("a fastText model", "Give the .vec file beside it"),
    b"\x1f\x8b": ("compressed", "Unpack it with gunzip"),
    b"PK": ("a zip archive", "Unpack it, and give the text file in it"),
    codecs.BOM_UTF16_LE: ("UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8"),
    codecs.BOM_UTF16_BE: ("UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8"),
}


class EmbeddingInit(NamedTuple):
    """Initial embeddings of a vocabulary."""

    matrix: np.ndarray  # `[len(tokens), dim]` float32, one row per token id
    found: int  # words of the vocabulary that the file has
    total: int  # words of the vocabulary, without padding and unknown
    in_file: np.ndarray  # `[len(tokens)]` bool, the tokens that the file has


def digit_form(word: str) -> str:
    """A word with `#` for each digit, as Polyglot's and some word2vec files write it."""
    return re.sub("[0-9]", "#", word)


def load_embeddings(
    path: str | os.PathLike, vocabulary_tokens: Sequence[str], *, dim: int, seed: int
) -> EmbeddingInit:
    """Reads the rows of a vocabulary from a file of pre-trained embeddings."""
    # A token takes the row of the first equal token in the file, else of the first that the
    # tokenizer reads as this token, else, with digits, of the first with `#` in their place. Others
    # are drawn from N(0, s²), s being the standard deviation of the file, by seed and id alone. Row
    # 0 is zero; row 1 is `[UNK]` or `<UNK>`, or drawn.
    wanted = _Wanted(vocabulary_tokens)
    matrix = np.random.default_rng(seed).standard_normal((len(vocabulary_tokens), dim), np.float32)
    tokens, not_utf_8 = 0, []
    for line, token, values in _lines(path, dim):
        tokens, text = tokens + 1, token.decode(errors="replace")
        if text.encode() != token:
            not_utf_8.append(line)
        if rows := wanted.rows(text):
            matrix[rows] = _parse(path, line, values)
    _check_encoding(path, tokens, not_utf_8)
    in_file = wanted.fit > 0
    in_both, total = int(in_file[FIRST_WORD:].sum()), max(len(vocabulary_tokens) - FIRST_WORD, 0)
    _check_found(path, in_both, total)
    with np.errstate(over="ignore"):
        matrix[~in_file] *= np.std(matrix[in_file], dtype=np.float64)
    if not np.isfinite(matrix).all():
        reason = "its numbers are so large that rows of words that it lacks are not finite"
        raise input_error(path, reason, "Download the file again")
    matrix[0] = 0
    return EmbeddingInit(matrix, in_both, total, in_file)


class _Wanted:
    """Which rows of a vocabulary a token of the file is for, if none before it fits better."""

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
        if token in self._ids:
            ids, fit = [self._ids[token]], _EXACT
        elif (read := "".join(itertools.filterfalse(is_pair, tokens_of(token)))) in self._ids:
            ids, fit = [self._ids[read]], _ANY_CASE
        else:
            ids, fit = self._by_digits.get(token.lower(), []), _BY_DIGITS
        better = [i for i in ids if self.fit[i] < fit]
        self.fit[better] = fit
        return better


def _check_encoding(path: str | os.PathLike, tokens: int, others: Sequence[int]) -> None:
    """Warns of lines whose tokens are no UTF-8, or raises `InputError` if they are many."""
    if not others:
        return
    reason = (
        f"{len(others)} of {tokens} tokens are not UTF-8, the first of them in line {others[0]}"
    )
    if len(others) > MAX_UNDECODABLE * tokens:
        raise input_error(path, reason, "Convert it, such as by iconv -f latin1 -t utf-8")
    logging.warning("%s: %s. They are left out", path, reason)


def _check_found(path: str | os.PathLike, in_both: int, total: int) -> None:
    """Warns if a file has few words of the vocabulary; raises `InputError` if it has hardly any."""
    if in_both > WARNING_SHARE * total:
        return
    reason = f"the file contains {in_both or 'none'} of the {total} words of the vocabulary"
    remedy = "Check that both are in the same language"
    if in_both <= ERROR_SHARE * total:
        raise input_error(path, reason, remedy)
    logging.warning("%s: %s. %s", path, reason, remedy)


def _lines(path: str | os.PathLike, dim: int) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Yields line number, token and numbers, not parsed, of each token of a file."""
    stated, line = None, 0
    try:
        with open(path, "rb") as file:
            _check_kind(path, file.read(4))
            file.seek(0)
            while text := file.readline(_MAX_LINE_BYTES):
                line += 1
                if len(text) == _MAX_LINE_BYTES:
                    what = f"is longer than {_MAX_LINE_BYTES} bytes"
                    raise _damaged(path, line, what, text)
                if line == 1:
                    text = text.removeprefix(codecs.BOM_UTF8)
                    stated = _header(text)
                    file_dim = stated[1] if stated else len(text.rstrip(b" \r\n").split(b" ")) - 1
                    if file_dim != dim and file_dim > 0:
                        reason = (
                            f"the embeddings have dimension {file_dim}, but the model has {dim}"
                        )
                        remedy = f"Give --dim={file_dim}, or another file"
                        raise input_error(path, reason, remedy, line=1)
                    if stated:
                        continue
                fields = text.rstrip(b" \r\n").split(b" ")
                # A token may contain spaces, as some of GloVe's do, but not numbers after a space.
                if len(fields) <= dim or any(map(_is_number, fields[1:-dim])):
                    what = f"has {len(fields) - 1} numbers after its token, not {dim}"
                    raise _damaged(path, line, what, text)
                yield line, b" ".join(fields[:-dim]), fields[-dim:]
    except OSError as error:
        raise input_error(path, f"the file cannot be read ({error})", "Check the path") from error
    if stated and line - 1 != stated[0]:
        raise input_error(
            path,
            f"the first line states {stated[0]} tokens, but the file has {line - 1}",
            "Download the file again, or correct its first line",
        )


def _check_kind(path: str | os.PathLike, head: bytes) -> None:
    """Checks that the first four bytes of a file may be those of a text."""
    if not head:
        raise input_error(path, "the file is empty", "Download it again")
    if os.fspath(path).endswith((".pkl", ".pickle")):
        head = b"\x80"
    for start, (kind, remedy) in _OTHER_KINDS.items():
        if head.startswith(start):
            raise input_error(path, f"the file is {kind}", remedy)


def _header(line: bytes) -> tuple[int, int] | None:
    """Number of tokens and dim, if the first line states them."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def _parse(path: str | os.PathLike, line: int, fields: list[bytes]) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            values = np.array(fields, dtype=np.float64).astype(np.float32)
    except ValueError as error:
        raise _damaged(path, line, f"has a bad number ({error})") from None
    if not np.isfinite(values).all():
        raise _damaged(path, line, "has a number that is not finite in float32")
    return values


def _damaged(path: str | os.PathLike, line: int, what: str, text: bytes = b"") -> InputError:
    """The error about a line, whose number counts from 1."""
    if any(byte < 32 and byte not in b"\t\n\r" for byte in text):
        return input_error(path, "the file is binary", _CONVERT_BINARY, line=line)
    return input_error(path, what, "Correct the line, or download the file again", line=line)
