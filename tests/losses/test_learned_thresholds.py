"""Trained thresholds: always rising, segments never closed, the right gradient."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.losses.learned_thresholds import LearnedThresholdsLoss
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.two_tower.model import TwoTower

STARTS = [(0.0,), (0.2, 0.7), (-0.9, 0.1, 0.2, 0.95)]
INPUTS = {
    "query": tf.constant([[2, 3], [4, 0], [2, 5]]),
    "document": tf.constant([[2], [3], [4]]),
}
GRADES = tf.constant([2, 1, 0])


def samples(thresholds):
    scores = np.linspace(-1, 1, 41, dtype="f4")
    grades = np.repeat(np.arange(len(thresholds) + 1), len(scores))
    return grades, np.tile(scores, len(thresholds) + 1)


def compiled_model():
    towers = [
        AveragePoolingTower(6, 2, embeddings_initializer=keras.initializers.RandomNormal(seed=seed))
        for seed in (1, 2)
    ]
    model = TwoTower(*towers)
    model.build()
    model.compile(keras.optimizers.SGD(0.5), LearnedThresholdsLoss())
    return model


@pytest.mark.parametrize("start", STARTS)
def test_at_the_start_it_is_the_loss_with_these_thresholds(start):
    learned, fixed = (kind(start) for kind in (LearnedThresholdsLoss, SmoothOrdinalSearchLoss))
    grades, scores = samples(start)
    np.testing.assert_allclose(learned.thresholds, start, atol=1e-6)
    np.testing.assert_allclose(learned(grades, scores), fixed(grades, scores), rtol=1e-5)
    assert learned.num_grades == fixed.num_grades
    assert np.isnan(learned(tf.constant([len(start) + 1]), tf.constant([0.5])))


@pytest.mark.parametrize("start", STARTS)
def test_thresholds_rise_and_segments_stay_half_as_wide_whatever_the_logits(start):
    loss, generator = LearnedThresholdsLoss(start), np.random.default_rng(1)
    first = np.diff((-1, *start, 1))
    for scale in (0.1, 1, 10, 1000):
        loss.layer.logits.assign(scale * generator.normal(size=len(first)))
        widths = np.diff((-1, *loss.thresholds, 1))
        assert (widths >= first / 2 - 1e-6).all()


def test_predicted_grades_are_those_of_the_present_thresholds():
    loss = LearnedThresholdsLoss((0.2, 0.7))
    loss.layer.logits.assign([-50.0, -50.0, 50.0])  # half of 1.2, half of 0.5, all that is left
    np.testing.assert_allclose(loss.thresholds, [-1 + 0.6, -1 + 0.6 + 0.25], atol=1e-6)
    assert loss.predict_grade([-0.5, -0.3, -0.1, 0.9]).numpy().tolist() == [0, 1, 2, 2]


def test_gradient_of_the_thresholds_is_that_of_the_loss():
    loss = LearnedThresholdsLoss((0.1, 0.6), reduction="sum")
    grades, scores = samples((0.1, 0.6))
    with tf.GradientTape() as tape:
        value = loss(grades, scores)
    found = tape.gradient(value, loss.layer.logits).numpy()
    logits, step = loss.layer.logits.numpy(), 1e-2
    for index in range(len(logits)):
        values = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[index] += sign * step
            loss.layer.logits.assign(moved)
            values.append(float(loss(grades, scores)))
        assert found[index] == pytest.approx(
            (values[0] - values[1]) / (2 * step), rel=1e-2, abs=1e-3
        )


def test_model_trains_the_thresholds_of_its_loss():
    model = compiled_model()
    before = model.loss.thresholds
    model.train_on_batch(INPUTS, GRADES)
    assert model.loss.thresholds != before


def test_thresholds_survive_save_and_reload(tmp_path):
    model = compiled_model()
    model.train_on_batch(INPUTS, GRADES)
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    assert reloaded.loss.thresholds == model.loss.thresholds
    assert len(reloaded.trainable_weights) == len(model.trainable_weights) == 3
