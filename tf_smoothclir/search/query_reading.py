"""Queries as a query tower reads them: their vectors, and what it knows of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tf_smoothclir.encoder import Encoder
from tf_smoothclir.index.encoding import encode_texts
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.text.evidence_levels import NAMES, NGRAMS, NOTHING, WORDS

if TYPE_CHECKING:
    from tf_smoothclir.client.serving_client import ServingClient


class EncodedQueries(NamedTuple):
    """Some queries.

    Attributes:
        vectors: `[queries, dim]` float32.
        readings: What the tower knows of each.
    """

    vectors: np.ndarray
    readings: list[QueryReading]


EncodeQueries = Callable[[Sequence[str]], EncodedQueries]


def by_tower(model) -> EncodeQueries:
    """What encodes queries with a query tower in memory, as `load_part` loads it."""
    import tensorflow as tf  # here, because other searches need none of it

    encode = model.signatures["serving_default"]
    read = model.signatures.get("evidence")

    def encoded(queries: Sequence[str]) -> EncodedQueries:
        if read is None:
            return EncodedQueries(encode_texts(encode, queries), by_sight(queries))
        found = read(text=tf.constant(list(queries), tf.string))
        answers = found["evidence"].numpy(), found["unknown"].numpy()
        readings = [_reading(*answer) for answer in zip(*answers)]
        if "vector" not in found:  # of the release before this one
            return EncodedQueries(encode_texts(encode, queries), readings)
        return EncodedQueries(found["vector"].numpy(), readings)

    return encoded


def by_encoder(encoder: Encoder) -> EncodeQueries:
    """What encodes queries with an exported query tower, without TensorFlow."""

    def encoded(queries: Sequence[str]) -> EncodedQueries:
        readings = []
        for read in encoder.known(queries):
            level = WORDS if read.known else NGRAMS if read.resembling else NOTHING
            readings.append(QueryReading(NAMES[level], read.unknown))
        return EncodedQueries(encoder.encode(queries), readings)

    return encoded


def by_server(client: ServingClient) -> EncodeQueries:
    """What encodes queries with the query tower of a model server."""

    def encoded(queries: Sequence[str]) -> EncodedQueries:
        vectors, found = client.encode_queries(queries)
        readings = [QueryReading(evidence, tuple(unknown.split())) for evidence, unknown in found]
        return EncodedQueries(vectors, readings)

    return encoded


def by_sight(queries: Sequence[str]) -> list[QueryReading]:
    """Reads queries for a tower of an earlier release, which does not say what it knows."""
    return [QueryReading(NAMES[WORDS if query.strip() else NOTHING]) for query in queries]


def with_better(
    readings: Sequence[QueryReading], of_tower: Sequence[QueryReading]
) -> list[QueryReading]:
    """What words say of queries, and what a tower says where words know nothing."""
    return [own if own.says_something else other for own, other in zip(readings, of_tower)]


def without_zeros(positions: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leaves out the last documents of a ranking, whose score is zero: they share nothing.

    Args:
        positions: `[documents]`, best first.
        scores: `[documents]`.
    """
    others = np.flatnonzero(scores)
    end = others[-1] + 1 if len(others) else 0
    return positions[:end], scores[:end]


def _reading(evidence: bytes, unknown: bytes) -> QueryReading:
    return QueryReading(evidence.decode(), tuple(unknown.decode().split()))
