"""Queries as a query tower reads them: their vectors, and their evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tf_smoothclir.encoder import Encoder
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.text.evidence_levels import NAMES, NGRAMS, NOTHING, WORDS

if TYPE_CHECKING:
    from tf_smoothclir.client.serving_client import ServingClient


class EncodedQueries(NamedTuple):
    """Some queries.

    Attributes:
        vectors: `[queries, dim]` float32.
    """

    vectors: np.ndarray
    readings: list[QueryReading]


EncodeQueries = Callable[[Sequence[str]], EncodedQueries]


def by_tower(model) -> EncodeQueries:
    """Encoder of queries by a query tower in memory, as `load_part` loads it."""
    import tensorflow as tf  # here, because other searches need none of it

    read = model.signatures["evidence"]

    def encoded(queries: Sequence[str]) -> EncodedQueries:
        found = read(text=tf.constant(list(queries), tf.string))
        answers = found["evidence"].numpy(), found["unknown"].numpy()
        readings = [_reading(*answer) for answer in zip(*answers)]
        return EncodedQueries(found["vector"].numpy(), readings)

    return encoded


def by_encoder(encoder: Encoder) -> EncodeQueries:
    """Encoder of queries by an exported query tower, without TensorFlow."""

    def encoded(queries: Sequence[str]) -> EncodedQueries:
        readings = []
        for read in encoder.known(queries):
            level = WORDS if read.known else NGRAMS if read.resembling else NOTHING
            readings.append(QueryReading(NAMES[level], read.unknown))
        return EncodedQueries(encoder.encode(queries), readings)

    return encoded


def by_server(client: ServingClient) -> EncodeQueries:
    """Encoder of queries by the query tower of a model server."""

    def encoded(queries: Sequence[str]) -> EncodedQueries:
        vectors, found = client.encode_queries(queries)
        readings = [QueryReading(evidence, tuple(unknown.split())) for evidence, unknown in found]
        return EncodedQueries(vectors, readings)

    return encoded


def with_better(
    readings: Sequence[QueryReading], of_tower: Sequence[QueryReading]
) -> list[QueryReading]:
    """Evidence of queries in words, and in a tower where words know nothing."""
    return [own if own.says_something else other for own, other in zip(readings, of_tower)]


def _reading(evidence: bytes, unknown: bytes) -> QueryReading:
    return QueryReading(evidence.decode(), tuple(unknown.decode().split()))
