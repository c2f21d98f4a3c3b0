"""Hashes and permutations: golden values, so that no NumPy version changes what was sampled."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tf_smoothclir.data.hashing import hash_ids, mix, permutation


def plain_split_mix(number: int) -> int:
    """SplitMix64's finaliser in unbounded integers."""
    z = (number + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_mix_is_split_mix_64():
    numbers = [0, 1, 2, 2**32, 2**63, 2**64 - 1]
    assert mix(np.array(numbers, np.uint64)).tolist() == list(map(plain_split_mix, numbers))
    # The first output of the authors' generator with seed 0.
    assert int(mix(np.uint64(0))) == 0xE220A8397B1DCDAF


def test_mix_keeps_the_shape_and_is_injective():
    numbers = np.arange(10_000, dtype=np.uint64).reshape(100, 100)
    assert mix(numbers).shape == (100, 100)
    assert len(np.unique(mix(numbers))) == numbers.size


def test_hash_ids_is_blake2b_in_little_endian():
    digest = hashlib.blake2b("ä7".encode(), digest_size=8, key=b"salt").digest()
    assert hash_ids(["ä7"], "salt").tolist() == [int.from_bytes(digest, "little")]


def test_hash_ids_depends_on_id_and_salt_alone():
    ids = ["1", "2", "doc-3"]
    found = hash_ids(ids, "negatives 13")
    np.testing.assert_array_equal(hash_ids(ids[::-1], "negatives 13")[::-1], found)
    assert not np.isin(hash_ids(ids, "negatives 14"), found).any()
    assert not np.isin(hash_ids(ids), found).any()


def test_hash_ids_of_nothing():
    assert hash_ids([]).shape == (0,)


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_permutation_contains_every_number_once(size):
    assert sorted(permutation(size, 13, 0).tolist()) == list(range(size))


def test_permutation_follows_every_part_of_its_key():
    orders = {tuple(permutation(20, *key)) for key in [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]}
    assert len(orders) == 6
    np.testing.assert_array_equal(permutation(20, 3, 4), permutation(20, 3, 4))


def test_golden_permutation():
    state = 0
    for part in (13, 2):
        state = plain_split_mix(state ^ plain_split_mix(part))
    expected = sorted(range(8), key=lambda i: plain_split_mix(i ^ state))
    assert permutation(8, 13, 2).tolist() == expected


def test_each_number_is_as_often_at_each_place():
    size, draws = 5, 4000
    orders = np.array([permutation(size, seed) for seed in range(draws)])
    table = np.array([np.bincount(orders[:, place], minlength=size) for place in range(size)])
    chi_square = ((table - draws / size) ** 2 / (draws / size)).sum()
    assert chi_square < 34.3  # 99.5% point of chi-square with (5-1)^2 = 16 degrees of freedom
