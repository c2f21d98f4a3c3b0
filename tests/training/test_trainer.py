"""The training loop: reproducible, continued exactly, stopped early, clear when it diverges."""

import dataclasses
import os
import signal
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.training.fixtures import tokenized_by
from tf_smoothclir.protocols.task import PAIRS
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.training import batches as batches_module
from tf_smoothclir.training import run_directory, run_models, train
from tf_smoothclir.training import trainer as trainer_module
from tf_smoothclir.training.steps import StepMonitor
from tf_smoothclir.utils.errors import InputError

STEPS = 8  # an epoch: 12 queries * (2 judged + 3 sampled) = 60 pairs, in batches of 8


class Killed(BaseException):
    """Ends a run without any handling, as kill -9 does."""


def begin(settings, path):
    """Does what `train` does before the first step."""
    run = run_directory.RunDirectory.create(path, settings)
    tokenized_set = tokenized_by(run)
    return tokenized_set, train.trainer_of(run_models.ModelsOverSet(settings, tokenized_set), run)


def start(settings, path):
    _, trainer = begin(settings, path)
    return trainer, trainer.task.model


def trained(settings, path):
    trainer, model = start(settings, path)
    return trainer.train(), weights(model)


def weights(model):
    return [weight.numpy() for weight in model.weights]


def call_at_step(monkeypatch, number, action):
    """Calls `action()` after step `number` of this process, from 1."""
    original, calls = StepMonitor.after_steps, []

    def counted(monitor, results):
        original(monitor, results)
        calls.append(len(results[PAIRS]))
        if sum(calls) == number:
            action()

    monkeypatch.setattr(trainer_module, "STEPS_PER_CALL", 1)
    monkeypatch.setattr(StepMonitor, "after_steps", counted)


def train_until_killed(trainer, number):
    """Trains, saves each step, and dies after step `number` of this process."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        settings = dataclasses.replace(trainer._settings, checkpoint_minutes=0.0)
        monkeypatch.setattr(trainer, "_settings", settings)
        call_at_step(monkeypatch, number, mock.Mock(side_effect=Killed))
        with pytest.raises(Killed):
            trainer.train()


def note_weights(trainer):
    """Returns the list of the weights after each epoch, which training fills."""
    after, save = [], trainer._checkpoints.save

    def noted(progress):
        after.append(weights(trainer.task.model))
        save(progress)

    trainer._checkpoints.save = noted
    return after


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
    """Fresh negatives or not -> progress, weights and those of each epoch of an undisturbed run.

    Its "path" is that of the run without.
    """
    directory = tmp_path_factory.mktemp("whole")
    runs = {"path": directory / "False"}
    for fresh in (False, True):
        trainer, model = start(tiny(fresh_negatives=fresh), directory / str(fresh))
        after = note_weights(trainer)
        runs[fresh] = (trainer.train(), weights(model), after)
    return runs


def assert_same(found, expected):
    np.testing.assert_equal(found[1], expected[1])
    for name in ("history", "pairs", "best_epoch"):
        assert getattr(found[0], name) == getattr(expected[0], name)


def test_learns_at_a_rate_that_falls_by_its_factor_after_each_epoch(tiny, tmp_path):
    trainer, model = start(tiny(epochs=5, learning_rate_decay=0.99), tmp_path / "run")
    rates, finish_epoch = [], trainer._finish_epoch

    def noting():
        rates.append(float(model.optimizer.learning_rate))
        finish_epoch()

    trainer._finish_epoch = noting
    history = trainer.train().history
    assert rates == pytest.approx([0.1 * 0.99**epoch for epoch in range(5)])
    assert history[-1]["loss"] < history[0]["loss"] / 1.5
    best = max(record["validation"]["NDCG@5"] for record in history)
    assert best > history[0]["validation"]["NDCG@5"]


def test_history_and_tensorboard_have_every_epoch_once(tiny, whole):
    progress = whole[False][0]
    assert [record["epoch"] for record in progress.history] == [1, 2]
    assert (progress.epoch, progress.step, progress.pairs) == (2, 0, 2 * 60)
    assert all(set(record["validation"]) == set(METRICS) for record in progress.history)
    found = [
        (value.tag, event.step)
        for path in sorted((whole["path"] / "logs").iterdir())
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    ]
    tags = ("training/loss", *(f"validation/{name}" for name in METRICS))
    assert sorted(found) == sorted((tag, epoch) for epoch in (1, 2) for tag in tags)
    assert_same(trained(tiny(), whole["path"]), whole[False])  # trained again, it stays


@cases("steps", [STEPS + 3], pytest.param([3, 3, STEPS], marks=pytest.mark.slow), ids=str)
def test_killed_run_with_fresh_negatives_continues_bit_for_bit(tiny, tmp_path, whole, steps):
    settings = tiny(fresh_negatives=True)
    for number in steps:
        train_until_killed(start(settings, tmp_path / "run")[0], number)
    assert_same(trained(settings, tmp_path / "run"), whole[True])


@pytest.mark.slow
@cases("mined", 0, 2)
@cases("batching", "lists", "bucketed", "in_batch")
def test_killed_run_of_any_batches_continues_bitwise(batching, mined, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(batches_module, "MINED_RANKS", (1, 30))
    more = {"hard_negatives": mined, "epochs": 3} if mined else {}
    settings = tiny(batching=batching, fresh_negatives=True, **more)
    progress, expected = trained(settings, tmp_path / "whole")
    found = [record.get("mining", {}).get("per_query", 0) > 0 for record in progress.history]
    assert found == ([True, True, False] if mined else [False, False])  # not after the last
    assert progress.pairs > 3 * 60 if mined else progress.pairs == 2 * 60
    trainer, _ = start(settings, tmp_path / "run")
    steps = trainer.task.batches.epoch(0).steps
    train_until_killed(trainer, steps + 2)  # in the second epoch, after a mining
    assert_same(trained(settings, tmp_path / "run"), (progress, expected))


def test_a_signal_saves_and_says_how_to_continue(tiny, tmp_path, monkeypatch, whole, caplog):
    with monkeypatch.context() as patch:
        call_at_step(patch, STEPS + 2, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(trainer_module.Interrupted) as interrupted:
            trained(tiny(), tmp_path / "run")
    assert interrupted.value.code == 128 + signal.SIGTERM
    assert "SIGTERM: stopped after epoch 1, step 2, and saved in" in caplog.text
    assert_same(trained(tiny(), tmp_path / "run"), whole[False])


@cases(
    "metric, patience, values, epochs, best",
    ("MAP", 2, [0.3, 0.6, 0.5, 0.5, 0.9], 4, 2),
    ("NDCG@5", 1, [0.0, 0.0, 0.9], 2, 1),  # equal is not better; 0 still is something to keep
)
def test_patience_stops_early_and_the_best_epoch_by_the_chosen_metric_is_kept(
    tiny, tmp_path, monkeypatch, metric, patience, values, epochs, best
):
    # Other metrics stay as they are.
    measured = iter([{**dict.fromkeys(METRICS, 0.5), metric: value} for value in values])
    monkeypatch.setattr(trainer_module, "mean_metrics", lambda _: next(measured))
    lists: list = []
    monkeypatch.setattr(trainer_module, "list_metrics", lambda _, of_set, __: lists.append(of_set))
    settings = tiny(epochs=len(values), patience=patience, select_metric=metric, train_negatives=1)
    trainer, model = start(settings, tmp_path / "run")
    assert trainer.progress.best_epoch == 0  # none yet
    after = note_weights(trainer)
    progress = trainer.train()
    assert set(np.diff(lists[0].offsets)) == {2 + 3}  # judged and sampled
    assert (progress.epoch, progress.best_epoch, len(after)) == (epochs, best, epochs)
    for found, kept, last in zip(weights(model), after[best - 1], after[-1], strict=True):
        np.testing.assert_array_equal(found, kept)
        assert (found != last).any()


def test_divergence_keeps_the_last_state_and_the_pairs(tiny, tmp_path, monkeypatch):
    trainer, model = start(tiny(checkpoint_minutes=0.0), tmp_path / "run")  # after each step
    table = model.document_tower.embeddings

    def poison():  # as an overflow in step 10 would
        table.assign(tf.fill(table.shape, np.float32("nan")))

    call_at_step(monkeypatch, STEPS + 2, poison)
    message = "epoch 2, step 3: the loss is not finite; the 8 pairs .*--learning_rate"
    with pytest.raises(InputError, match=message):
        trainer.train()
    batches, lists = trainer.task.batches, trainer.task.batches.lists(0)
    expected = [
        f"{batches._set.query_ids[lists.pair_query_rows[pair]]}\t"
        f"{batches._set.document_ids[lists.document_rows[pair]]}\t{lists.grades[pair]}"
        for pair in batches._pipeline.batch_pairs(lists, epoch=1, step=2)
    ]
    assert (tmp_path / "run" / "diverged_batch.tsv").read_text().splitlines() == expected
    trainer, model = start(tiny(), tmp_path / "run")
    assert (trainer.progress.epoch, trainer.progress.step) == (1, 2)
    assert np.isfinite(weights(model)[0]).all()


def test_absurd_learning_rate_is_an_error_of_the_user_not_a_stack_trace(tiny, tmp_path):
    # Vectors become infinite, and tanh makes ones of them, whose scores and losses are finite.
    with pytest.raises(InputError, match=r"epoch 1, step \d+: the weights are not finite.*Lower"):
        trained(tiny(learning_rate=3e38, clip_norm=0.0, epochs=2), tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.index"))  # no such checkpoint
