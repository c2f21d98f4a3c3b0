"""N-grams without TensorFlow: the buckets of the graph, and FarmHash on every length."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_smoothclir.encoder.ngram_buckets import fingerprints, ngram_buckets
from tf_smoothclir.text.subwords import ngrams

SETTINGS = settings(deadline=None, max_examples=60, derandomize=True)
WORDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=70), max_size=20)
_BUCKETS = 2**63 - 1  # almost the whole hash


@pytest.mark.parametrize("length", range(65))
def test_hashes_are_those_of_the_graph(length):
    generator = np.random.default_rng(length)
    texts = [generator.bytes(length) for _ in range(20)]
    expected = tf.strings.to_hash_bucket_fast(texts, _BUCKETS).numpy().astype(np.uint64)
    np.testing.assert_array_equal(fingerprints(texts) % np.uint64(_BUCKETS), expected)


@given(WORDS, st.integers(1, 5), st.integers(0, 11), st.integers(1, 1 << 31 - 1))
@SETTINGS
def test_buckets_are_those_of_the_graph(words, shortest, more, buckets):
    found, numbers = ngram_buckets(words, buckets, shortest, shortest + more)
    expected = ngrams(tf.constant(words, tf.string), buckets, shortest, shortest + more)
    np.testing.assert_array_equal(found, expected.flat_values)
    np.testing.assert_array_equal(numbers, expected.row_lengths())
