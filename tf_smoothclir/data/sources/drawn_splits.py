"""Splits of a set that has none of its own, and queries that several splits have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.encoder.tokenizer import tokens_of


def drawn_splits(queries: Sequence[Text], seed: int) -> np.ndarray:
    """`[queries]` int8, an index into `SPLITS` for each judged query.

    They are split 3:1:1 by query (Liu et al. 2020, section 5), by the hashes of their ids. Queries
    of the same tokens are drawn as one, that of the lowest hash: no split knows those of another.
    """
    places = drawn_places(queries, f"split {seed}")
    number = places.max(initial=-1) + 1
    return np.searchsorted([number * 3 // 5, number * 4 // 5], places, "right").astype(np.int8)


def drawn_places(queries: Sequence[Text], salt: str) -> np.ndarray:
    """`[queries]` int64, where each stands in an order by hashes; of the same tokens, at one."""
    hashes = hash_ids([query.id for query in queries], salt)
    first: dict[str, int] = {}
    groups = [
        first.setdefault(" ".join(tokens_of(query.text)) or f"\n{query.id}", len(first))
        for query in queries
    ]
    lowest = np.full(len(first), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(lowest, groups, hashes)
    places = np.empty(len(first), np.int64)
    places[np.argsort(lowest, kind="stable")] = np.arange(len(first))
    return places[groups]


def known_queries(training: Iterable[str], others: Iterable[str]) -> tuple[int, int]:
    """How many of other texts have the tokens of a training query, and how many the same set.

    Those that differ in the order of their tokens, or in how often each stands there, are counted
    in the second number alone. Texts without tokens do not count.
    """
    tokens = [tokens for text in training if (tokens := tuple(tokens_of(text)))]
    same, alike, counts = set(tokens), set(map(frozenset, tokens)), [0, 0]
    for text in others:
        tokens = tuple(tokens_of(text))
        if tokens in same:
            counts[0] += 1
        elif frozenset(tokens) in alike:
            counts[1] += 1
    return counts[0], counts[1]
