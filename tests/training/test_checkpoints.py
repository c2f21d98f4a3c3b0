"""Checkpoints: everything comes back, the last two are kept, a torn one is not read."""

import os
import re
import shutil
from dataclasses import astuple, replace

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tf_smoothclir._compat.keras_api import optimizer_variables, tf_weights
from tf_smoothclir.protocols.task import Batches
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.checkpoints import BestWeights, Checkpoints, Progress
from tf_smoothclir.two_tower import builder, scorer
from tf_smoothclir.utils.errors import InputError

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
    own = RunSettings(model=ModelSettings(dim=2), training=TrainingSettings(seed=seed, **training))
    return builder.build_model(own, {"query": list("abcd"), "document": list("abcde")})


def task_of(model, **training):
    return scorer.TwoTowerTask(model, TrainingSettings(**training), Batches())


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


def test_progress_counts_steps_and_begins_each_epoch_anew():
    progress = Progress()
    assert astuple(progress) == (0, 0, 0, 0, {"loss": 0}, 0, 0, 0, [])
    for loss, pairs, terms in ((0.5, 4, 2), (2.0, 6, 6)):
        progress.count_step([("loss", loss), ("other", 2 * loss)], pairs, terms)
    assert (progress.step, progress.epoch_pairs, progress.epoch_terms) == (2, 4 + 6, 2 + 6)
    mean = (0.5 * 2 + 2.0 * 6) / 8
    assert progress.mean_losses() == {"loss": mean, "other": 2 * mean}
    progress.begin_epoch(1)
    assert progress == Progress(epoch=1, pairs=4 + 6)


@cases("optimizer", "lazy_adam", "adam", "rmsprop", "row_rmsprop")
def test_weights_optimizer_and_progress_come_back_bitwise(tmp_path, optimizer):
    model = make_model(optimizer=optimizer)
    shift(model)
    checkpoints_of(tmp_path, model).save(PROGRESS)
    other = make_model(seed=2, optimizer=optimizer)
    assert checkpoints_of(tmp_path, other).restore() == PROGRESS
    assert other.optimizer.iterations == 1
    np.testing.assert_equal(state(other), state(model))


def test_helpers_and_what_batches_know_come_back(tmp_path):
    """Such as an adversary, and which hard negatives were mined."""
    model = make_model()

    def own(value):
        found = tf.Variable(value), tf.Variable(value + 1)
        kinds = {"helpers": found[:1], "more": {"center": found[1]}}
        return found, Checkpoints(tmp_path, replace(task_of(model).variables, **kinds))

    own(1.0)[1].save(PROGRESS)
    found, checkpoints = own(7.0)
    assert checkpoints.restore() == PROGRESS
    assert [float(one) for one in found] == [1.0, 2.0]


def test_last_two_are_kept_also_across_restarts(tmp_path):
    for step in range(1, 4):
        checkpoints = checkpoints_of(tmp_path, make_model())
        assert checkpoints.restore() == (Progress(step=step - 1) if step > 1 else None)
        checkpoints.save(Progress(step=step))
    assert sorted(os.listdir(tmp_path)) == ["state-2", "state-3"]
    assert checkpoints_of(tmp_path, make_model()).restore() == Progress(step=3)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def saved_twice(path):
    """A model, and its checkpoints with two states of which the second has better weights."""
    model = make_model()
    checkpoints, best = checkpoints_of(path, model), BestWeights(path, tf_weights(model))
    for epoch in (1, 2):
        best.save()
        checkpoints.save(Progress(epoch=epoch, best_epoch=epoch))
        shift(model)
    return model


@cases("folder", "state-2", "best-2")
@cases("name", "variables.data-00000-of-00001", "variables.index", "manifest.json")
@cases("damage", flip, lambda path: os.truncate(path, 9))
def test_the_state_before_is_restored_if_one_is_damaged(tmp_path, caplog, folder, name, damage):
    saved_twice(tmp_path)
    damage(tmp_path / folder / name)
    model = make_model(seed=2)
    checkpoints, best = checkpoints_of(tmp_path, model), BestWeights(tmp_path, tf_weights(model))
    assert checkpoints.restore() == Progress(epoch=1, best_epoch=1)
    assert len(re.findall(rf"{tmp_path}/{folder}\b.*{name}", caplog.text)) == 1
    np.testing.assert_equal(state(model), state(make_model()))
    # The epoch is trained again, and the damaged files go.
    best.save()
    checkpoints.save(Progress(epoch=2, best_epoch=2))
    assert checkpoints_of(tmp_path, make_model()).restore() == Progress(epoch=2, best_epoch=2)
    best.restore()
    if folder == "state-2":
        assert sorted(os.listdir(tmp_path)) == ["best-1", "best-2", "state-1", "state-3"]


def test_the_best_weights_are_on_disk_once(tmp_path):
    assert BestWeights.prefix(tmp_path) is None
    model = saved_twice(tmp_path)  # after it, the weights are others
    saved = tf.train.list_variables(str(tmp_path / "state-2" / "variables"))
    assert saved
    assert not any(name.startswith("weights/") for name, _ in saved)
    checkpoints = checkpoints_of(tmp_path, model)
    for progress in (
        Progress(epoch=3, best_epoch=2),  # an epoch that was no better
        Progress(epoch=2, best_epoch=2, step=5),  # within an epoch
    ):
        checkpoints.save(progress)
        other = make_model(seed=2)
        assert checkpoints_of(tmp_path, other).restore() == progress
        np.testing.assert_equal(state(other), state(model))
    BestWeights(tmp_path, tf_weights(model)).restore()
    expected = make_model()
    shift(expected)  # as at the second save
    np.testing.assert_equal(model.get_weights(), expected.get_weights())


def test_better_weights_than_those_of_the_restored_state_are_forgotten(tmp_path):
    """A kill between the best weights and the state: the epoch is trained again."""
    model = saved_twice(tmp_path)
    BestWeights(tmp_path, tf_weights(model)).save()
    assert BestWeights.prefix(tmp_path) == f"{tmp_path}/best-3/variables"
    assert checkpoints_of(tmp_path, model).restore().best_epoch == 2
    assert BestWeights.prefix(tmp_path) == f"{tmp_path}/best-2/variables"


def test_checkpoints_of_another_run_are_refused(tmp_path):
    """Of the same sizes: nothing else would show that they are not of this run."""
    runs = [tmp_path / name for name in ("one", "other")]
    for seed, run in enumerate(runs):
        run.mkdir()
        (run / "config.json").write_text(f'{{"seed": {seed}}}')
        saved_twice(run / "checkpoints")
    shutil.rmtree(runs[0] / "checkpoints")
    shutil.copytree(runs[1] / "checkpoints", runs[0] / "checkpoints")
    with pytest.raises(InputError, match=r"another config\.json"):
        checkpoints_of(runs[0] / "checkpoints", make_model()).restore()
