"""Checkpoints: everything comes back, the last two are kept, a torn one is not read."""

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir._compat.keras_api import optimizer_variables, tf_weights
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.checkpoints import Checkpoints, Progress, state_of
from tf_smoothclir.two_tower.builder import build_model

PROGRESS = Progress(
    epoch=2,
    step=5,
    loss_sum=0.1 + 0.2,  # all 17 digits must survive
    pairs=77,
    seconds=1.5,
    best_epoch=1,
    history=[{"epoch": 1, "loss": 1 / 3, "validation": {"NDCG@5": 0.5}}],
)


def make_model(seed=1, **training):
    return build_model(
        RunSettings(model=ModelSettings(dim=2), training=TrainingSettings(seed=seed, **training)),
        {"query": list("abcd"), "document": list("abcde")},
    )


def variables(model):
    """All but the learning rate, which the trainer sets for each epoch."""
    return [*tf_weights(model), *optimizer_variables(model.optimizer)]


def state(model):
    return [variable.numpy() for variable in variables(model)]


def shift(model, by=1):
    for variable in variables(model):
        variable.assign(variable + by)


def test_weights_optimizer_and_progress_come_back_bitwise(tmp_path):
    model = make_model()
    shift(model)
    Checkpoints(tmp_path, state_of(model)).save(PROGRESS)
    other = make_model(seed=2)
    assert Checkpoints(tmp_path, state_of(other)).restore() == PROGRESS
    assert other.optimizer.iterations == 1
    for found, expected in zip(state(other), state(model)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("optimizer", ["lazy_adam", "adam", "rmsprop", "adagrad"])
def test_every_optimizer_has_its_state_saved(tmp_path, optimizer):
    model = make_model(optimizer=optimizer)
    shift(model)
    Checkpoints(tmp_path, state_of(model)).save(PROGRESS)
    other = make_model(seed=2, optimizer=optimizer)
    Checkpoints(tmp_path, state_of(other)).restore()
    for found, expected in zip(state(other), state(model)):
        np.testing.assert_array_equal(found, expected)


def test_weights_of_another_model_and_more_variables_are_kept_where_they_are_given(tmp_path):
    model, kept, more = make_model(), make_model(seed=2), tf.Variable([3, 4])
    checkpoints = Checkpoints(tmp_path, state_of(model), kept, more=more)
    checkpoints.save_best()
    checkpoints.save(PROGRESS)
    more.assign([0, 0])
    assert checkpoints.restore() == PROGRESS
    assert more.numpy().tolist() == [3, 4]
    checkpoints.restore_best()
    for found, expected in zip(model.weights, kept.weights):
        np.testing.assert_array_equal(found, expected)


def test_nothing_to_restore_leaves_the_initial_weights(tmp_path):
    model = make_model()
    before = state(model)
    checkpoints = Checkpoints(tmp_path, state_of(model))
    assert checkpoints.restore() is None
    assert not checkpoints.has_best
    for found, expected in zip(state(model), before):
        np.testing.assert_array_equal(found, expected)


def test_last_two_are_kept_also_across_restarts(tmp_path):
    for step in range(1, 4):
        checkpoints = Checkpoints(tmp_path, state_of(make_model()))
        checkpoints.restore()
        checkpoints.save(Progress(step=step))
    assert sorted(path.name for path in tmp_path.glob("state-*.index")) == [
        "state-2.index",
        "state-3.index",
    ]
    assert Checkpoints(tmp_path, state_of(make_model())).restore() == Progress(step=3)


def test_checkpoint_that_was_torn_in_a_crash_is_never_restored(tmp_path):
    checkpoints = Checkpoints(tmp_path, state_of(make_model()))
    checkpoints.save(Progress(step=1))
    # What a kill in the middle of the second save leaves.
    (tmp_path / "state-2.data-00000-of-00001").write_bytes(b"half")
    (tmp_path / "state-2.index").write_bytes(b"")
    checkpoints = Checkpoints(tmp_path, state_of(make_model()))
    assert checkpoints.restore() == Progress(step=1)
    checkpoints.save(Progress(step=2))
    assert Checkpoints(tmp_path, state_of(make_model())).restore() == Progress(step=2)


def test_best_weights_are_those_of_the_moment_not_the_last(tmp_path):
    model = make_model()
    checkpoints = Checkpoints(tmp_path, state_of(model))
    checkpoints.save_best()
    best = [weight.numpy() for weight in model.weights]
    shift(model)
    checkpoints.save(PROGRESS)

    other = make_model(seed=2)
    checkpoints = Checkpoints(tmp_path, state_of(other))
    assert checkpoints.has_best
    checkpoints.restore()
    for found, expected in zip(other.weights, best):
        np.testing.assert_array_equal(found, expected + 1)
    checkpoints.restore_best()
    for found, expected in zip(other.weights, best):
        np.testing.assert_array_equal(found, expected)
