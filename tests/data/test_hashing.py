"""Hashes and permutations: golden values, so that no NumPy version changes what was sampled."""

import hashlib

import numpy as np

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


def test_hash_ids_is_blake2b_in_little_endian():
    expected = [
        int.from_bytes(hashlib.blake2b(id_, digest_size=8, key=b"salt").digest(), "little")
        for id_ in ("ä7".encode(), b"1")
    ]
    assert hash_ids(["ä7", "1"], "salt").tolist() == expected
    assert not np.isin(hash_ids(["ä7", "1"]), expected).any()
    assert hash_ids([]).shape == (0,)


def test_permutation_has_every_number_once_and_follows_every_part_of_its_key():
    for size in (0, 1, 2, 1000):
        assert sorted(permutation(size, 13, 0).tolist()) == list(range(size))
    orders = {tuple(permutation(20, *key)) for key in [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]}
    assert len(orders) == 6
    state = plain_split_mix(plain_split_mix(13))
    state = plain_split_mix(state ^ plain_split_mix(2))
    expected = sorted(range(8), key=lambda i: plain_split_mix(i ^ state))
    assert permutation(8, 13, 2).tolist() == expected
