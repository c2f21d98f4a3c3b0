"""A task of another kind, in the same trainer: everything that a `Task` declares is honoured."""

import numpy as np
import pytest
import tensorflow as tf

from tests.training.test_trainer import train_until_killed
from tests.training.toy_task import DISCRIMINATOR_STEPS, STEPS, ToyTask
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.training.checkpoints import BestWeights
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.steps import StepLoop
from tf_smoothclir.training.train import retrieval_set_of
from tf_smoothclir.training.trainer import Trainer
from tf_smoothclir.utils.errors import InputError

EPOCHS = 3


@pytest.fixture(scope="module")
def start(tiny):
    """`start(path)` is a trainer of a new `ToyTask`."""
    settings = tiny(epochs=EPOCHS)
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, ["validation"])

    def start(path):
        run = RunDirectory.create(path, settings)
        return Trainer(ToyTask(), retrieval_set, settings.training, run)

    return start


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory):
    path = tmp_path_factory.mktemp("toy") / "run"
    trainer = start(path)
    trainer.train()
    return path, trainer


def state(task):
    variables = task.variables
    every = [*variables.trained, *variables.optimizer, *variables.more.values()]
    return [variable.numpy() for variable in every]


def test_every_optimizer_trains_its_own_variables_and_only_the_weights_are_kept(whole):
    path, trainer = whole
    task, fresh = trainer.task, ToyTask()
    for found, initial in zip(task.variables.trained, fresh.variables.trained):
        assert (found.numpy() != initial.numpy()).all()
    assert task.optimizer.iterations == EPOCHS * STEPS
    assert task.discriminator_optimizer.iterations == EPOCHS * STEPS * DISCRIMINATOR_STEPS
    saved = tf.train.load_checkpoint(BestWeights.prefix(path / "checkpoints"))
    names = [name for name in saved.get_variable_to_shape_map() if name.startswith("weights/")]
    assert len(names) == len(saved.get_variable_to_shape_map()) - 1 == 1  # and the object graph
    np.testing.assert_array_equal(saved.get_tensor(names[0]), task.weights)


def test_history_is_complete(whole):
    _, trainer = whole
    history, task = trainer.progress.history, ToyTask()
    task.begin_epoch(0)
    results = StepLoop(task)(iter(task.batches.epoch(0).batches(0)), STEPS)
    for name in ToyTask.losses:
        assert history[0][name] == pytest.approx(results[name].mean(), rel=1e-6)
    centers = [record["center"] for record in history]
    assert len(set(centers)) == EPOCHS
    assert centers[-1] == pytest.approx(float(trainer.task.batches.variables["center"]))


@pytest.mark.parametrize("steps", [[1], [STEPS], [STEPS + 2, 4]], ids=str)
def test_killed_run_continues_bit_for_bit(start, whole, tmp_path, steps):
    train_until_killed(start(tmp_path / "run"), 3, minutes=60.0)
    assert not start(tmp_path / "run").progress.pairs  # nothing was saved yet: it begins again
    for number in steps:
        train_until_killed(start(tmp_path / "run"), number)
    trainer = start(tmp_path / "run")
    assert (trainer.progress.epoch, trainer.progress.step) == divmod(sum(steps), STEPS) or (
        trainer.progress.step == STEPS  # before the validation
    )
    trainer.train()
    assert trainer.progress.history == whole[1].progress.history
    for found, expected in zip(state(trainer.task), state(whole[1].task)):
        np.testing.assert_array_equal(found, expected)


def test_helpers_that_are_not_finite_are_not_saved(start, tmp_path, monkeypatch):
    trainer = start(tmp_path / "run")
    trainer.task.discriminator.assign([np.inf, 0.0, 0.0])
    monkeypatch.setattr(trainer, "_explain", None)
    trainer.task.losses = trainer.task.checked = ()
    trainer.task.train_step = lambda batch, exchange: {"pairs": tf.shape(batch)[0]}
    with pytest.raises(InputError, match=r"step 5: the weights are not finite\. Play another game"):
        trainer.train()
    assert not list((tmp_path / "run").rglob("*.index"))
