"""Checkpoints: everything comes back, the last two are kept, a torn one is not read."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir._compat.keras_api import optimizer_variables, tf_weights
from tf_smoothclir.protocols.task import Batches, TaskVariables
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.checkpoints import BestWeights, Checkpoints, Progress
from tf_smoothclir.two_tower.builder import build_model
from tf_smoothclir.two_tower.task import TwoTowerTask

PROGRESS = Progress(
    epoch=2,
    step=5,
    loss_sums={"loss": 0.1 + 0.2, "other_loss": 1 / 7},  # all 17 digits must survive
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


def task_of(model, **training):
    return TwoTowerTask(model, TrainingSettings(**training), Batches())


def checkpoints_of(path, model):
    return Checkpoints(path, task_of(model).variables)


def variables(model):
    """All except the learning rate, which is set for each epoch."""
    return [*tf_weights(model), *optimizer_variables(model.optimizer)]


def state(model):
    return [variable.numpy() for variable in variables(model)]


def shift(model, by=1):
    for variable in variables(model):
        variable.assign(variable + by)


def test_weights_optimizer_and_progress_come_back_bitwise(tmp_path):
    model = make_model()
    shift(model)
    checkpoints_of(tmp_path, model).save(PROGRESS)
    other = make_model(seed=2)
    assert checkpoints_of(tmp_path, other).restore() == PROGRESS
    assert other.optimizer.iterations == 1
    for found, expected in zip(state(other), state(model)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("optimizer", ["lazy_adam", "adam", "rmsprop", "adagrad"])
def test_every_optimizer_has_its_state_saved(tmp_path, optimizer):
    model = make_model(optimizer=optimizer)
    shift(model)
    checkpoints_of(tmp_path, model).save(PROGRESS)
    other = make_model(seed=2, optimizer=optimizer)
    checkpoints_of(tmp_path, other).restore()
    for found, expected in zip(state(other), state(model)):
        np.testing.assert_array_equal(found, expected)


def test_helpers_and_more_variables_come_back_too(tmp_path):
    weight, helper, more = tf.Variable([1.0]), tf.Variable([2.0]), tf.Variable([3, 4])
    task_variables = TaskVariables([weight], [weight], [], [helper], {"more": more, "list": [more]})
    checkpoints = Checkpoints(tmp_path, task_variables)
    checkpoints.save(PROGRESS)
    for variable in (weight, helper, more):
        variable.assign(variable * 0)
    assert checkpoints.restore() == PROGRESS
    assert weight.numpy().tolist() == [1]
    assert helper.numpy().tolist() == [2]
    assert more.numpy().tolist() == [3, 4]


def test_averages_are_saved_as_the_best_weights_of_a_model(tmp_path):
    model, kept = make_model(), make_model(seed=2)
    best = BestWeights(tmp_path, tf_weights(model), tf_weights(kept))
    assert not BestWeights.exist(tmp_path)
    best.save()
    assert BestWeights.exist(tmp_path)
    best.restore()
    for found, expected in zip(model.weights, kept.weights):
        np.testing.assert_array_equal(found, expected)


def test_progress_is_saved_in_the_same_form_as_ever():
    """With one loss: runs of the code before there were tasks continue, and the other way round."""
    text = (
        '{"epoch": 2, "step": 5, "epoch_pairs": 40, "loss_sum": 0.30000000000000004, "pairs": 77,'
        ' "seconds": 1.5, "best_epoch": 1, "history": [{"epoch": 1, "loss": 0.25}]}'
    )
    progress = Progress.from_json(text)
    assert progress.loss_sums == {"loss": 0.1 + 0.2}
    assert json.loads(progress.to_json()) == json.loads(text)


def test_nothing_to_restore_leaves_the_initial_weights(tmp_path):
    model = make_model()
    before = state(model)
    assert checkpoints_of(tmp_path, model).restore() is None
    assert not BestWeights.exist(tmp_path)
    for found, expected in zip(state(model), before):
        np.testing.assert_array_equal(found, expected)


def test_last_two_are_kept_also_across_restarts(tmp_path):
    for step in range(1, 4):
        checkpoints = checkpoints_of(tmp_path, make_model())
        checkpoints.restore()
        checkpoints.save(Progress(step=step))
    assert sorted(path.name for path in tmp_path.glob("state-*.index")) == [
        "state-2.index",
        "state-3.index",
    ]
    assert checkpoints_of(tmp_path, make_model()).restore() == Progress(step=3)


def test_checkpoint_that_was_torn_in_a_crash_is_never_restored(tmp_path):
    checkpoints = checkpoints_of(tmp_path, make_model())
    checkpoints.save(Progress(step=1))
    # What a kill in the middle of the second save leaves.
    (tmp_path / "state-2.data-00000-of-00001").write_bytes(b"half")
    (tmp_path / "state-2.index").write_bytes(b"")
    checkpoints = checkpoints_of(tmp_path, make_model())
    assert checkpoints.restore() == Progress(step=1)
    checkpoints.save(Progress(step=2))
    assert checkpoints_of(tmp_path, make_model()).restore() == Progress(step=2)


def test_best_weights_are_those_of_the_moment_not_the_last(tmp_path):
    model = make_model()
    BestWeights(tmp_path, tf_weights(model)).save()
    best = [weight.numpy() for weight in model.weights]
    shift(model)
    checkpoints_of(tmp_path, model).save(PROGRESS)

    other = make_model(seed=2)
    checkpoints_of(tmp_path, other).restore()
    for found, expected in zip(other.weights, best):
        np.testing.assert_array_equal(found, expected + 1)
    BestWeights(tmp_path, tf_weights(other)).restore()
    for found, expected in zip(other.weights, best):
        np.testing.assert_array_equal(found, expected)
