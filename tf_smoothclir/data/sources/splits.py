"""Splits: those that projects name, those that are drawn, and queries that several splits have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Source, Text
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.utils.errors import input_error

# What projects call a part -> what it is.
NAMES = {
    "train": "train",
    "dev": "validation",
    "validation": "validation",
    "valid": "validation",
    "test": "test",
}
_PARTS_OF_TRAINING = 5  # one of them validates, if nothing else does


def splits_of_parts(source: Source, parts: Mapping[str, Iterable[str]]) -> dict[str, str] | None:
    """Query id -> split, as the names of the parts of a set say."""
    # Published test queries stay, so that figures can be compared; without any, those of `dev` are
    # (as BEIR does with MS MARCO). Without other validation queries, a fifth of the training
    # queries are, drawn by a hash of their ids. Judged queries that are not there have no split:
    # `checked_judgments` counts them.
    queries = {text.id for text in source.queries()}
    split_of: dict[str, str] = {}
    for name, ids in parts.items():
        for id_ in filter(queries.__contains__, ids):
            if split_of.setdefault(id_, NAMES[name]) != NAMES[name]:
                reason = f"query {id_!r} has judgments for {split_of[id_]} and for {NAMES[name]}"
                raise input_error(source.name, reason, "Keep those of one of the two")
    there = set(split_of.values())
    if there == {"train"}:
        return None
    if "test" not in there:
        split_of = {
            id_: "test" if split == "validation" else split for id_, split in split_of.items()
        }
    if "train" in there and "validation" not in set(split_of.values()):
        training = [id_ for id_, split in split_of.items() if split == "train"]
        hashes = zip(hash_ids(training, "validation").tolist(), training)
        drawn = [id_ for _, id_ in sorted(hashes)][: len(training) // _PARTS_OF_TRAINING]
        split_of.update(dict.fromkeys(drawn, "validation"))
    return split_of


def drawn_splits(queries: Sequence[Text], seed: int) -> np.ndarray:
    """`[queries]` int8, an index into `SPLITS`: 3:1:1 of the judged (Liu et al. 2020, 5)."""
    # By the hashes of ids. Queries of the same tokens are drawn as one: no split knows those of
    # another.
    places = drawn_places(queries, f"split {seed}")
    drawn = places.max(initial=-1) + 1
    return np.searchsorted([drawn * 3 // 5, drawn * 4 // 5], places, "right").astype(np.int8)


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
    """How many of other texts have the tokens of a training query; how many the same set."""
    tokens = [tokens for text in training if (tokens := tuple(tokens_of(text)))]
    same, alike, counts = set(tokens), set(map(frozenset, tokens)), [0, 0]
    for text in others:
        tokens = tuple(tokens_of(text))
        if tokens in same:
            counts[0] += 1
        elif frozenset(tokens) in alike:
            counts[1] += 1
    return counts[0], counts[1]
