"""Reader of queries and of a few documents as the words of the lexical models, in plain Python.

Ids, tokens and evidence are those of `TextReader`, which reads many documents, and texts in
exported models. One query takes it a third of a millisecond, and this one a fiftieth of that.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder.tokenizer import has_letters, tokens_of
from tf_smoothclir.encoder.word_evidence import NAMES, NOTHING, SPELLING, WORDS
from tf_smoothclir.lexical.joined_words import FREQUENT, joined_with_neighbour, parts_of
from tf_smoothclir.lexical.nearest_words import NearestWords, swapped
from tf_smoothclir.lexical.new_words import NONE, hashes
from tf_smoothclir.lexical.words import FEWEST_BEFORE_SIGN, NO_WORD, Words, read_vocabularies
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.text.vocabulary import UNKNOWN_ID

_MOST_REMEMBERED = 1 << 16  # unknown words of queries


class PlainReader:
    """Reads queries or a few documents; see `TextReader`."""

    def __init__(
        self, vocabulary_dir: Path, role: str, max_tokens: int, pretokenized: bool = False
    ):
        self._max_tokens, self._pretokenized = max_tokens, pretokenized
        self._ids: dict[str, int] = {}
        self.names: dict[int, str] = {}  # of new words that were read
        self.size = 0
        vocabularies = read_vocabularies(vocabulary_dir)
        self._hashes_of = functools.partial(hashes, query_words=sum(map(len, vocabularies)))
        read = vocabularies[ROLES.index(role) :]
        for words in read:
            ids = range(self.size, self.size + len(words))
            self._ids = dict(zip(words[UNKNOWN_ID + 1 :], ids[UNKNOWN_ID + 1 :])) | self._ids
            self.size += len(words)
        # With a vocabulary of both languages, an unknown word of a query may be known ones written
        # as one; others have a nearest one.
        self._is_query = len(read) > 1
        self._own, self._compares = read[0], self._is_query and read[0] == read[1]

    def batch(self, texts: Iterable[str], new_words: np.ndarray = NONE) -> Words:
        """The words of texts; some new words, by their hashes, sorted, have numbers too."""
        tokens = [self._tokens(text) for text in texts]
        return self._words(tokens, self._new_ids(tokens, new_words))

    def queries(
        self, texts: Sequence[str], new_words: np.ndarray = NONE
    ) -> tuple[Words, list[QueryReading]]:
        """The words of queries, and what is known of each."""
        whole = [tokens_of(text, self._pretokenized) for text in texts]
        tokens = [of_query[: self._max_tokens] for of_query in whole]
        new = self._new_ids(tokens, new_words)
        readings = [
            dataclasses.replace(self._reading(read, new), cut=len(of_query) - len(read))
            for of_query, read in zip(whole, tokens)
        ]
        return self._words(tokens, new), readings

    def _new_ids(self, tokens: list[list[str]], new_words: np.ndarray) -> dict[str, int]:
        """The numbers of unknown words whose hashes are among those of `new_words`."""
        if not len(new_words):
            return {}
        unknown = {token for of_text in tokens for token in of_text} - self._ids.keys()
        words = list(filter(has_letters, unknown))
        of_words = self._hashes_of(words)
        places = np.searchsorted(new_words, of_words).clip(max=len(new_words) - 1)
        is_new = (new_words[places] == of_words).tolist()
        numbers = zip(words, (self.size + of_words).tolist())
        new = dict(itertools.compress(numbers, is_new))
        self.names.update((number, word) for word, number in new.items())
        return new

    @functools.cached_property
    def _known_ones(self) -> Callable[[str], list[int]]:
        """What an unknown word is read as, `NO_WORD` alone if there is none."""
        nearest = NearestWords(self._own)  # takes a tenth of a second, which most queries save
        known_id, frequent = self._ids.get, int(FREQUENT * len(self._own))

        def known_ones(word: str) -> list[int]:
            parts = parts_of(word, known_id, frequent)
            return parts or [nearest.id_of(word) or swapped(word, known_id)]

        return functools.lru_cache(_MOST_REMEMBERED)(known_ones)

    def _read(self, words: list[str], new: Mapping[str, int]) -> Iterator[list[int]]:
        """Yields the ids that each word of a query is read as, `NO_WORD` alone if there is none."""
        for place, word in enumerate(words):
            id_ = self._ids.get(word) or new.get(word, NO_WORD)
            if id_ == NO_WORD and self._compares:
                joined = joined_with_neighbour(words, place, self._ids.get)
                yield [joined] if joined else self._known_ones(word)
            else:
                yield [id_]

    def _ids_of(self, tokens: list[str], new: Mapping[str, int]) -> list[int]:
        """Ids of all words; those of a query count once, and a sign after several words."""
        if not self._is_query:
            return [self._ids.get(token) or new.get(token, NO_WORD) for token in tokens]
        words = list(filter(has_letters, tokens))
        last = len(tokens) - 1 if len(words) >= FEWEST_BEFORE_SIGN else None
        of_words, ids, read = self._read(words, new), [], set[int]()
        for place, token in enumerate(tokens):
            sign = self._ids.get(token, NO_WORD) if place == last else NO_WORD
            for id_ in next(of_words) if has_letters(token) else [sign]:
                ids.append(NO_WORD if id_ in read else id_)
                read.add(id_)
        return ids

    def _tokens(self, text: str) -> list[str]:
        return tokens_of(text, self._pretokenized)[: self._max_tokens]

    def _words(self, tokens: list[list[str]], new: Mapping[str, int]) -> Words:
        of_texts = [self._ids_of(of_text, new) for of_text in tokens]
        ids = np.fromiter(itertools.chain.from_iterable(of_texts), np.int32)
        return Words(ids, np.cumsum([0, *map(len, of_texts)], dtype=np.int64), self.size)

    def _reading(self, tokens: list[str], new: Mapping[str, int]) -> QueryReading:
        level, unknown, read_as = NOTHING, [], {}
        words = list(filter(has_letters, tokens))
        for token, ids in zip(words, self._read(words, new)):
            if ids == [NO_WORD]:
                unknown.append(token)
            elif token in self._ids or token in new:
                level = max(level, WORDS if ids[0] < len(self._own) else SPELLING)
            else:
                level = max(level, SPELLING)
                read_as[token] = " ".join(self._own[id_] for id_ in ids)
        return QueryReading(NAMES[level], tuple(unknown), read_as)
