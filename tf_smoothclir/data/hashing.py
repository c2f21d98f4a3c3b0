"""Seeded pseudo-random numbers as pure functions: the same on every machine and NumPy version.

Sampling negatives, splitting queries and breaking ties hash ids instead of drawing from a
generator, so the result for one query does not depend on the other queries.
"""

import hashlib
from collections.abc import Sequence

import numpy as np


def mix(numbers: np.ndarray) -> np.ndarray:
    """The SplitMix64 finaliser of uint64 numbers of any shape (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def hash_ids(ids: Sequence[str], salt: str = "") -> np.ndarray:
    """`[len(ids)]` uint64 hashes of ids, for example of document ids to break ties."""
    key = salt.encode()
    digests = (hashlib.blake2b(i.encode(), digest_size=8, key=key).digest() for i in ids)
    return np.frombuffer(b"".join(digests), "<u8")


def permutation(size: int, *key: int) -> np.ndarray:
    """A permutation of `range(size)` that depends on `key` alone."""
    state = np.zeros((), np.uint64)
    for part in key:
        state = mix(state ^ mix(np.asarray(part, np.uint64)))
    return np.argsort(mix(np.arange(size, dtype=np.uint64) ^ state), kind="stable")
