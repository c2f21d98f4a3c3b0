"""Word vectors with n-grams, against sums taken by hand in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, Tokens
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

SIZE, DIM, BUCKETS = 5, 3, 11
# By word id: padding, unknown, three of the vocabulary, two that only their spelling tells apart.
NGRAMS = [[], [], [0, 1, 2], [2, 2], [], [3, 4, 0], [9]]
TEXTS = [[2, 3, 2], [], [5, 6, 4], [1]]


def flat(rows):
    lengths = tf.constant([len(row) for row in rows], tf.int32)
    values = tf.constant([value for row in rows for value in row], tf.int32)
    return DistinctTokens.of(Tokens.of(values, lengths))


def tokens_of(texts):
    tokens = flat(texts)
    return SubwordTokens(*tokens, flat([NGRAMS[word] for word in tokens.distinct.numpy()]))


def make_tower(kind=AveragePoolingTower, **arguments):
    tower = kind(SIZE, DIM, ngram_buckets=BUCKETS, **arguments)
    tower.build()
    return tower


def word_vectors(tower):
    """Returns the vector of each word id: its own (from 2 up to the size) plus its n-grams."""
    own, ngrams = tower.embeddings.numpy(), tower.ngram_embeddings.numpy()
    vectors = np.zeros([len(NGRAMS), DIM])
    for word, buckets in enumerate(NGRAMS):
        if 2 <= word < SIZE:
            vectors[word] += own[word]
        if buckets:
            vectors[word] += ngrams[buckets].sum(axis=0) / np.sqrt(len(buckets))
    return vectors


def test_a_word_is_its_own_vector_plus_its_ngrams_over_the_root_of_their_number():
    tower = make_tower()
    vectors = word_vectors(tower)
    means = [np.tanh(vectors[text].mean(axis=0)) if text else np.zeros(DIM) for text in TEXTS]
    np.testing.assert_allclose(tower(tokens_of(TEXTS)), means, rtol=1e-5, atol=1e-6)
    assert not means[3].any()  # unknown, without a spelling


@pytest.mark.parametrize("kind", TOWERS.values(), ids=TOWERS)
def test_every_tower_has_word_vectors_with_ngrams(kind):
    tower = make_tower(kind)
    assert tower.ngram_embeddings.shape == (BUCKETS, DIM)
    plain = kind(len(NGRAMS), DIM)
    plain.build()
    for weight, other in zip(plain.weights[1:], tower.weights[2:]):
        weight.assign(other)
    plain.embeddings.assign(word_vectors(tower))
    np.testing.assert_allclose(tower(tokens_of(TEXTS)), plain(flat(TEXTS)), rtol=1e-5, atol=1e-6)


def test_gradients_are_sparse_name_each_row_once_and_equal_a_dense_model():
    tower = make_tower()
    upstream = np.arange(1, 1 + len(TEXTS) * DIM, dtype="f4").reshape(-1, DIM)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tower(tokens_of(TEXTS)) * upstream)
    found = tape.gradient(loss, tower.trainable_weights)
    assert all(isinstance(gradient, tf.IndexedSlices) for gradient in found)
    assert [sorted(g.indices.numpy()) for g in found] == [[2, 3, 4], [0, 1, 2, 3, 4, 9]]

    # The same by matrices: texts x words, words x n-grams.
    of_words = np.zeros([len(TEXTS), len(NGRAMS)])
    for row, text in enumerate(TEXTS):
        for word in text:
            of_words[row, word] += 1 / len(text)
    of_ngrams = np.zeros([len(NGRAMS), BUCKETS])
    for word, buckets in enumerate(NGRAMS):
        for bucket in buckets:
            of_ngrams[word, bucket] += 1 / np.sqrt(len(buckets))
    slopes = upstream * (1 - np.tanh(of_words @ word_vectors(tower)) ** 2)
    words = of_words.T @ slopes
    own = np.where((np.arange(len(NGRAMS)) > 1)[:, np.newaxis], words, 0)[:SIZE]
    for gradient, expected in zip(found, [own, of_ngrams.T @ words]):
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), expected, rtol=1e-4, atol=1e-6)


def test_a_shared_tower_sums_both_uses_of_a_row_before_the_norm():
    tower = make_tower()
    inputs = {"query": tokens_of([[2, 5], [3]]), "document": tokens_of([[2, 6], [5, 3]])}
    grades = tf.constant([2.0, 0.0])
    model = TwoTower(tower, tower, SmoothCosineSimilarity(0.5), clip_norm=1e9)
    model.build()
    model.compile(keras.optimizers.SGD(1.0), "mse")
    with tf.GradientTape() as tape:
        loss = model.compute_loss(inputs, grades, model(inputs, training=True))
    dense = [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]
    before = [weight.numpy() for weight in model.weights]
    logs = model.train_step((inputs, grades))
    assert len(dense) == 2
    norm = tf.linalg.global_norm(dense).numpy()
    assert logs["gradient_norm"].numpy() == pytest.approx(norm, rel=1e-5)
    for old, new, gradient in zip(before, model.weights, dense):
        np.testing.assert_allclose(new, old - gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", [flat(TEXTS), tf.constant([[2, 3]])], ids=["flat", "padded"])
def test_ids_without_ngrams_are_an_error(form):
    with pytest.raises(ValueError, match=r"tokens: .* ngram_buckets .* SubwordTextEncoder"):
        make_tower()(form)


def test_frozen_tables_are_both_frozen():
    assert make_tower(train_embeddings=False).trainable_weights == []


def test_without_buckets_there_is_one_table():
    tower = AveragePoolingTower(SIZE, DIM)
    tower.build()
    assert [weight.shape for weight in tower.weights] == [(SIZE, DIM)]


def test_config_keeps_buckets_and_initializer():
    tower = make_tower(ngram_initializer=keras.initializers.Constant(0.25))
    restored = AveragePoolingTower.from_config(tower.get_config())
    restored.build()
    np.testing.assert_array_equal(restored.ngram_embeddings, np.full([BUCKETS, DIM], 0.25))
    assert restored.get_config() == tower.get_config()


def test_a_negative_number_of_buckets_is_named():
    with pytest.raises(ValueError, match=r"^ngram_buckets must be at least 0, but is -1"):
        AveragePoolingTower(SIZE, DIM, ngram_buckets=-1)
