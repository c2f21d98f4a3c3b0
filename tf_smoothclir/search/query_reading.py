"""Queries as a query tower reads them: their vectors, and their evidence."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np

from tf_smoothclir.encoder import Encoder
from tf_smoothclir.encoder.word_evidence import NAMES, NGRAMS, NOTHING, WORDS
from tf_smoothclir.lexical.new_words import NONE
from tf_smoothclir.lexical.plain_reader import PlainReader
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.protocols.text_search import QueryReading


class QueryBatch(NamedTuple):
    """Some queries, read once."""

    texts: list[str]
    readings: list[QueryReading]  # the evidence of each
    # `[queries, dim]` float32, of a query tower; None without one.
    vectors: np.ndarray | None = None
    # Of each its words, `[words]` int32, as `PlainReader` numbers them; None where nothing ranks
    # by words.
    words: list[np.ndarray] | None = None

    @property
    def known_words(self) -> list[int]:
        """How many words of each query have a number; 1 where nothing ranks by words."""
        if self.words is None:
            return [1] * len(self.texts)
        return [int(np.count_nonzero(of_query != NO_WORD)) for of_query in self.words]

    def of(self, places: list[int]) -> Self:
        """Some of the queries."""
        texts, readings = ([values[place] for place in places] for values in self[:2])
        vectors = None if self.vectors is None else self.vectors[places]
        words = None if self.words is None else [self.words[place] for place in places]
        return type(self)(texts, readings, vectors, words)


EncodeQueries = Callable[[Sequence[str]], QueryBatch]


def by_tower(model) -> EncodeQueries:
    """Encoder of queries by a query tower in memory, as `load_part` loads it."""
    import tensorflow as tf  # here, because other searches need none of it

    read = model.signatures["evidence"]

    def encoded(queries: Sequence[str]) -> QueryBatch:
        found = read(text=tf.constant(list(queries), tf.string))
        answers = found["evidence"].numpy(), found["unknown"].numpy()
        readings = [
            QueryReading(evidence.decode(), tuple(unknown.decode().split()))
            for evidence, unknown in zip(*answers)
        ]
        return QueryBatch(list(queries), readings, found["vector"].numpy())

    return encoded


def by_encoder(encoder: Encoder) -> EncodeQueries:
    """Encoder of queries by an exported query tower, without TensorFlow."""

    def encoded(queries: Sequence[str]) -> QueryBatch:
        readings = []
        for read in encoder.known(queries):
            level = WORDS if read.known else NGRAMS if read.resembling else NOTHING
            readings.append(QueryReading(NAMES[level], read.unknown, cut=read.cut))
        return QueryBatch(list(queries), readings, encoder.encode(queries))

    return encoded


def by_each(encoders: Sequence[EncodeQueries]) -> EncodeQueries:
    """Encoder of queries by several, vector after vector; the best evidence counts."""

    def encoded(queries: Sequence[str]) -> QueryBatch:
        batches = [encode(queries) for encode in encoders]
        of_query = zip(*(batch.readings for batch in batches))
        readings = [max(of_one, key=lambda reading: reading.says_something) for of_one in of_query]
        vectors = np.concatenate([batch.vectors for batch in batches], axis=1)
        return QueryBatch(list(queries), readings, vectors)

    return encoded


def read_with(
    reader: PlainReader | None,
    encode: EncodeQueries | None,
    queries: Sequence[str],
    new_words: np.ndarray = NONE,
) -> QueryBatch:
    """Queries by words and by a tower, whose evidence counts where words know nothing."""
    # `new_words` are those of an index.
    if reader is None:
        return encode(queries)
    words, readings = reader.queries(queries, new_words)
    vectors = None
    if encode is not None:
        _, of_tower, vectors, _ = encode(queries)
        readings = [
            by_words if by_words.says_something else other
            for by_words, other in zip(readings, of_tower)
        ]
    return QueryBatch(list(queries), readings, vectors, np.split(words.ids, words.offsets[1:-1]))
