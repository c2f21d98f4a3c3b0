"""Towers that add up words, by hand; what they share with others is in `test_word_table`."""

import numpy as np
import pytest

from tests.towers.test_average_pooling import flat, padded
from tf_smoothclir.papers.li2018.bag_towers import LinearTower, WordTanhTower

TEXTS = [[2, 3, 3], [], [4]]
TABLE = np.array([[9, 9], [8, 8], [1, -2], [0.5, 4], [0, 3]], np.float32)
IDF = np.array([1, 1, 2, 0.5, 3])


def make(kind, **options):
    tower = kind(len(TABLE), 2, **options)
    tower.build()
    tower.embeddings.assign(TABLE)
    return tower


@pytest.mark.parametrize("form", [flat, padded])
def test_linear_is_the_weighted_sum(form):
    plain, weighted = make(LinearTower), make(LinearTower, token_weights="idf")
    expected = [TABLE[2] + 2 * TABLE[3], [0, 0], TABLE[4]]
    np.testing.assert_allclose(plain(form(TEXTS)), expected)
    np.testing.assert_allclose(weighted(form(TEXTS)), expected)  # all weights are 1 at first
    weighted.start_token_weights(IDF)
    expected = [2 * TABLE[2] + 2 * 0.5 * TABLE[3], [0, 0], 3 * TABLE[4]]
    np.testing.assert_allclose(weighted(form(TEXTS)), expected)
    assert len(weighted.trainable_weights) == 1
    with pytest.raises(ValueError, match="token_weights must be 'none' or 'idf'"):
        make(LinearTower, token_weights="learned")


def test_word_tanh_has_weight_and_bias_inside():
    tower = make(WordTanhTower, token_weights="idf")
    tower.start_token_weights(IDF)
    tower.trainable_weights[1].assign([0.25, -0.5])
    added = np.tanh(IDF[:, None] * TABLE + [0.25, -0.5])
    expected = [added[2] + 2 * added[3], [0, 0], added[4]]
    np.testing.assert_allclose(tower(flat(TEXTS)), expected, rtol=1e-6)
    assert len(tower.trainable_weights) == 2  # the weights of words are not
