"""Translation tables from a file: a person's dictionary, or the output of a word aligner.

`docs/lexical.md` says which formats are read, and what counts as an entry. A translation of several
tokens shares its probability among them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.line_files import read_lines
from tf_smoothclir.encoder.tokenizer import is_pair, is_unspaced, tokens_of
from tf_smoothclir.lexical.sparse_tables import entry_rows, inverted, rows_of_1
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.errors import InputError, input_error

QUERY_TO_DOCUMENT = "query_to_document"
_EMPTY_WORDS = frozenset({"NULL", "<eps>"})
_MOST_TOKENS = 64  # of a word


@dataclasses.dataclass(frozen=True)
class Dictionary:
    """Different entries of a dictionary, each of one token in both languages."""

    path: str
    query_words: list[str]  # of each entry, its token in the language of the queries
    document_words: list[str]  # its token in the language of the documents
    # `[entries]`, P(second column | first column); None where the file has none.
    probabilities: np.ndarray | None
    from_queries: bool  # whether the first column has the words of queries

    @classmethod
    def read(
        cls, path: str | os.PathLike, direction: str, pretokenized: bool = False
    ) -> Dictionary:
        """Reads a file: a word and its translation on each line, and perhaps a number."""
        lines, words, values = _columns(Path(path))
        tokens = [[_tokens(word, pretokenized) for word in column] for column in words]
        numbers = _probabilities(path, lines, values)
        entries: dict[tuple[str, str], float] = {}
        left = 0
        for entry, (first, second) in enumerate(zip(*tokens)):
            left += not (first and second)
            share = 1.0 if numbers is None else numbers[entry] / max(len(second), 1)
            for pair in itertools.product(first, second):
                entries[pair] = max(share, entries.get(pair, 0.0))
        if not entries:
            raise input_error(path, "no entry has one word in both columns", "Give single words")
        if left:
            _warn_of_left_out(os.fspath(path), left, len(lines))
        from_queries = direction == QUERY_TO_DOCUMENT
        columns = list(map(list, zip(*entries)))[:: 1 if from_queries else -1]
        probabilities = None if numbers is None else np.array(list(entries.values()))
        return cls(os.fspath(path), *columns, probabilities, from_queries)

    def new_query_words(self, query_words: Sequence[str], document_words: Sequence[str]) -> list:
        """The query words, sorted, that a vocabulary lacks and whose translation has an id."""
        known = set(document_words)
        pairs = zip(self.query_words, self.document_words)
        return sorted({word for word, other in pairs if other in known} - set(query_words))

    def table(
        self, query_words: Sequence[str], document_words: Sequence[str], background: np.ndarray
    ) -> sp.csr_array:
        """T(w | t) of two vocabularies, `[document words, query words]` float32."""
        # No row sums to more than 1. Without probabilities, all translations of a word are alike.
        # Bayes' rule turns those of document words given query words round, by P(w): `background`,
        # `[query words]`.
        first = UNKNOWN_ID + 1
        columns = {word: place for place, word in enumerate(query_words) if place >= first}
        rows = {word: place for place, word in enumerate(document_words) if place >= first}
        entries = [
            (rows[other], columns[word], entry)
            for entry, (word, other) in enumerate(zip(self.query_words, self.document_words))
            if word in columns and other in rows
        ]
        if not entries:
            raise input_error(
                self.path,
                "no entry has its words in the vocabularies of the set",
                "Give words instead of numbers, one column in each language, and check"
                " --dictionary_direction",
            )
        logging.info("%s: %d entries have words of the set", self.path, len(entries))
        shape = (len(document_words), len(background))
        row, column, entry = np.array(entries).T
        if self.probabilities is None:
            ones = np.ones(len(row), np.float32)
            return rows_of_1(sp.csr_array((ones, (row, column)), shape=shape))
        values = self.probabilities[entry]
        if self.from_queries:
            table = sp.csr_array((values, (column, row)), shape=shape[::-1])
            return inverted(_at_most_1(table), background)
        return _at_most_1(sp.csr_array((values, (row, column)), shape=shape))


@functools.cache  # once: each fold reads the file again
def _warn_of_left_out(path: str, left: int, entries: int) -> None:
    said = "%s: %d of %d entries are not of one word each, and left out"
    remedy = "A list with many phrases teaches more as parallel sentences"
    logging.warning(f"{said}. {remedy}.", path, left, entries)


def mixed(table: sp.csr_array, other: sp.csr_array, share: float) -> sp.csr_array:
    """(1 - share) table + share other; float32, without zeros."""
    mixture = sp.csr_array((1 - share) * table + share * other).astype(np.float32)
    mixture.eliminate_zeros()
    return mixture


def _columns(path: Path) -> tuple[list[int], tuple[list[str], list[str]], list[float]]:
    """The number of each line, its words, and its number where lines have one."""
    lines, first, second, values, columns = [], [], [], [], None
    for line, text in read_lines(path):
        fields = text.strip().split("\t" if "\t" in text else None)
        if columns is None and len(fields) in (2, 3):
            columns = len(fields)
        if len(fields) != columns:
            wanted = columns or "2 or 3"
            raise _bad(path, line, f"{len(fields)} columns instead of {wanted}")
        lines.append(line)
        first.append(fields[0])
        second.append(fields[1])
        if columns == 3:
            values.append(_number(path, line, fields[2]))
    return lines, (first, second), values


def _tokens(word: str, pretokenized: bool) -> list[str]:
    """The different tokens of one word; none of several words, or of an aligner's empty word."""
    # Of scripts without spaces, pairs say more than their characters.
    parts = tokens_of(word, pretokenized)[:_MOST_TOKENS]
    unspaced = any(map(is_unspaced, parts)) and all(token[0].isalnum() for token in parts)
    is_one = len(parts) == 1 or (unspaced and len(word.split()) == 1)
    if not is_one or word in _EMPTY_WORDS:
        return []
    return list(dict.fromkeys(list(filter(is_pair, parts)) or parts))


def _number(path: Path, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value) or value > 1:
        raise _bad(path, line, f"{text!r} is neither a probability nor the logarithm of one")
    return value


def _probabilities(path, lines: Sequence[int], values: Sequence[float]) -> np.ndarray | None:
    """Probabilities of the third column; None where there is none."""
    if not values:
        return None
    numbers = np.array(values)
    if not (numbers < 0).any():
        return numbers
    above = np.flatnonzero(numbers > 0)
    if len(above):
        first_negative = lines[int(np.argmax(numbers < 0))]
        reason = f"{numbers[above[0]]:g} is positive, but the number in line {first_negative}"
        raise _bad(path, lines[above[0]], f"{reason} is negative")
    return np.exp(numbers)


def _bad(path, line: int, reason: str) -> InputError:
    remedy = (
        "Give a word, a translation and, on all lines or on none, a probability in [0, 1] or its"
        " logarithm, separated by tabs or spaces"
    )
    return input_error(path, reason, remedy, line=line)


def _at_most_1(table: sp.csr_array) -> sp.csr_array:
    """A table whose rows are scaled to a sum of 1 where it was larger; float32."""
    sums = np.asarray(table.sum(axis=1)).ravel()
    table.data = (table.data / np.maximum(1, sums)[entry_rows(table)]).astype(np.float32)
    return table
