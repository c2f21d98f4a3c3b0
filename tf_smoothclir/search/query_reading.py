"""What searches know of queries, by the towers or the words that they rank with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from tf_smoothclir.client.serving_client import ServingClient
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.text.evidence import NAMES, NOTHING, WORDS

ReadQueries = Callable[[Sequence[str]], list[QueryReading]]
_SIGNATURE = "evidence"


def by_tower(model) -> ReadQueries:
    """Returns what reads queries with an exported query tower, as `load_part` loads it."""
    if _SIGNATURE not in model.signatures:
        return by_sight
    ask = model.signatures[_SIGNATURE]

    def read(queries: Sequence[str]) -> list[QueryReading]:
        found = ask(text=tf.constant(list(queries), tf.string))
        return _readings(found["evidence"].numpy(), found["unknown"].numpy())

    return read


def by_server(client: ServingClient) -> ReadQueries:
    """Returns what reads queries with the query tower of a model server."""

    def read(queries: Sequence[str]) -> list[QueryReading]:
        found = client.read(queries)
        if found is None:
            return by_sight(queries)
        return [QueryReading(evidence, tuple(unknown.split())) for evidence, unknown in found]

    return read


def by_sight(queries: Sequence[str]) -> list[QueryReading]:
    """Reads queries for a tower of an earlier release, which does not say what it knows."""
    return [QueryReading(NAMES[WORDS if query.strip() else NOTHING]) for query in queries]


def by_words(lexical: LexicalParts, of_towers: ReadQueries | None = None) -> ReadQueries:
    """Returns what reads queries with a lexical model; towers are asked where it knows nothing.

    Args:
        lexical: An exported model.
        of_towers: Reads queries with the towers that rank too; None if they do not.
    """

    def read(queries: Sequence[str]) -> list[QueryReading]:
        found = lexical.query_reader.evidence(tf.constant(list(queries), tf.string))
        names = [NAMES[level] for level in found.levels.numpy()]
        readings = _readings(names, found.unknown.numpy())
        if of_towers is None:
            return readings
        return [
            reading if reading.says_something else of_towers([query])[0]
            for query, reading in zip(queries, readings)
        ]

    return read


def answered(
    queries: Sequence[str],
    readings: Sequence[QueryReading],
    search: Callable[[Sequence[str]], list],
) -> list[list]:
    """Returns the hits of queries; none for those of which nothing is known.

    Args:
        queries: All.
        readings: Of each.
        search: Returns the hits of each of the others.
    """
    asked = [query for query, reading in zip(queries, readings) if reading.says_something]
    found = iter(search(asked) if asked else ())
    return [next(found) if reading.says_something else [] for reading in readings]


def without_zeros(positions: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leaves out the last documents of a ranking, whose score is zero: they share nothing.

    Args:
        positions: `[documents]`, best first.
        scores: `[documents]`.
    """
    others = np.flatnonzero(scores)
    end = others[-1] + 1 if len(others) else 0
    return positions[:end], scores[:end]


def _readings(names, unknown) -> list[QueryReading]:
    return [
        QueryReading(tf.compat.as_str(name), tuple(words.decode().split()))
        for name, words in zip(names, unknown)
    ]
