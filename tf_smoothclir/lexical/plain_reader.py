"""Reader of texts as the words of the lexical models, in plain Python, for a few texts.

Ids, tokens and evidence are those of `TextReader`, which reads many texts, and texts in exported
models. One query takes it a third of a millisecond, and this one a fiftieth of that.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.encoder.tokenizer import has_letters, tokens_of
from tf_smoothclir.encoder.word_evidence import NAMES, NOTHING, SPELLING, WORDS
from tf_smoothclir.lexical.nearest_words import (
    NearestWords,
    compares_spelling,
    read_vocabularies,
)
from tf_smoothclir.lexical.words import NO_WORD, Words
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.text.vocabulary import UNKNOWN_ID


class PlainReader:
    """Reads queries or a few documents; see `TextReader`."""

    def __init__(
        self, vocabulary_dir: Path, role: str, max_tokens: int, pretokenized: bool = False
    ):
        self._max_tokens, self._pretokenized = max_tokens, pretokenized
        self._ids: dict[str, int] = {}
        self.size = 0
        vocabularies = read_vocabularies(vocabulary_dir, role)
        for words in vocabularies:
            ids = range(self.size, self.size + len(words))
            self._ids = dict(zip(words[UNKNOWN_ID + 1 :], ids[UNKNOWN_ID + 1 :])) | self._ids
            self.size += len(words)
        self._own, self._compares = vocabularies[0], compares_spelling(vocabularies)

    def batch(self, texts: Iterable[str]) -> Words:
        """The words of texts."""
        return self._words([self._tokens(text) for text in texts])

    def queries(self, texts: Sequence[str]) -> tuple[Words, list[QueryReading]]:
        """The words of queries, and what is known of each."""
        tokens = [self._tokens(text) for text in texts]
        return self._words(tokens), [self._reading(of_query) for of_query in tokens]

    @functools.cached_property
    def _nearest(self) -> NearestWords:
        return NearestWords(self._own)  # takes a tenth of a second, which most queries do not need

    def _id(self, word: str) -> int:
        id_ = self._ids.get(word)
        if id_ is not None:
            return id_
        return self._nearest.id_of(word) if self._compares else NO_WORD

    def _tokens(self, text: str) -> list[str]:
        return tokens_of(text, self._pretokenized)[: self._max_tokens]

    def _words(self, tokens: list[list[str]]) -> Words:
        ids = [self._id(token) for of_query in tokens for token in of_query]
        ends = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
        return Words(np.array(ids, np.int32), ends, self.size)

    def _reading(self, tokens: list[str]) -> QueryReading:
        level, unknown, read_as = NOTHING, [], {}
        for token in filter(has_letters, tokens):
            id_ = self._id(token)
            if id_ == NO_WORD:
                unknown.append(token)
            elif token in self._ids:
                level = max(level, WORDS if id_ < len(self._own) else SPELLING)
            else:
                level, read_as[token] = max(level, SPELLING), self._own[id_]
        return QueryReading(NAMES[level], tuple(unknown), read_as)
