"""Training with an adversary: bit for bit the same without its weight, killed and continued."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.training.test_trainer import assert_same, start, train_until_killed, trained, weights
from tf_smoothclir.optimizers.gradients import each_row_once
from tf_smoothclir.papers.li2018.task import source_log_likelihood
from tf_smoothclir.papers.li2018.towers import matrices
from tf_smoothclir.training.checkpoints import BestWeights
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.slow

LSTM = {"tower": "max_lstm", "batching": "bucketed"}
LINEAR = {"tower": "linear", "token_weights": "idf"}
BASE = {"objective": "adversarial", "epsilon": 0.0, "learning_rate": 0.01, "optimizer": "rmsprop"}


def test_weight_0_is_bit_for_bit_the_model_without_a_discriminator(tiny, tmp_path):
    """M_adv of the paper."""

    def weights_with(weight, steps):
        settings = tiny(**BASE, adversarial_weight=weight, discriminator_steps=steps)
        return trained(settings, tmp_path / f"{weight} {steps}")[1]

    none, idle, some = weights_with(0.0, 0), weights_with(0.0, 2), weights_with(0.5, 2)
    np.testing.assert_equal(idle, none)
    assert any((one != other).any() for one, other in zip(some, none))


def test_translations_begin_with_the_layers_of_documents_and_leave_them(tiny, tmp_path):
    trainer, _ = start(tiny(**BASE, **LSTM, epochs=1), tmp_path)
    towers = [trainer.task.encoders.towers[of] for of in ("translation", "document")]
    assert trainer.task._training_queries == 12

    def pairs():
        return [[w.numpy() for w in both] for both in zip(*map(matrices, towers))]

    for one, other in pairs():
        np.testing.assert_array_equal(one, other)
    trainer.train()
    assert all((one != other).any() for one, other in pairs())


def test_words_of_translations_weigh_as_those_of_documents(tiny, tmp_path):
    trainer, _ = start(tiny(**BASE, token_weights="idf"), tmp_path)
    towers = trainer.task.encoders.towers
    texts = {"ids": tf.constant([3, 5, 4, 3]), "lengths": tf.constant([3, 1])}
    np.testing.assert_array_equal(*[towers[of](texts) for of in ("translation", "document")])
    assert len(np.unique(towers["document"].other_arrays()["token_weights"].numpy())) > 1


@cases(
    "changes, kills",
    ({"opening_epochs": 1}, (1, 4)),
    (LSTM, (5,)),
    ({**LINEAR, "objective": "s2net"}, (3,)),
    ({**LINEAR, "objective": "bae"}, (3,)),
    ids=["two stages", "lstm", "s2net", "bae"],
)
def test_killed_run_continues_bit_for_bit(tiny, tmp_path, changes, kills):
    settings = tiny(**{**BASE, **changes})
    whole, model = start(settings, tmp_path / "whole")
    expected = whole.train(), weights(model)
    for steps in kills:
        train_until_killed(start(settings, tmp_path / "killed")[0], steps)
    trainer, model = start(settings, tmp_path / "killed")
    assert_same((trainer.train(), weights(model)), expected)
    for one, other in zip(trainer.task.variables.helpers, whole.task.variables.helpers):
        np.testing.assert_array_equal(one, other)
    saved = tf.train.list_variables(BestWeights.prefix(tmp_path / "whole" / "checkpoints"))
    assert len(saved) - 1 == len(trainer.task.variables.weights)  # no helper; the object graph
    if settings.training.objective == "adversarial":
        first = whole.progress.history[0]
        assert {"translation_loss", "monolingual_loss", "norms"} <= first.keys()
        assert first["log_likelihood"] == pytest.approx(-math.log(3), abs=0.1)


def test_a_discriminator_that_is_not_finite_is_not_saved(tiny, tmp_path, monkeypatch):
    trainer, _ = start(tiny(**BASE), tmp_path / "run")
    weight = trainer.task.discriminator.trainable_weights[0]
    weight.assign(np.full(weight.shape, np.inf))
    monkeypatch.setattr(trainer, "_explain", None)
    trainer.task.losses = trainer.task.checked = ()
    trainer.task.train_step = lambda batch, exchange: {"pairs": tf.shape(batch.grades)[0]}
    with pytest.raises(InputError, match=r"step 3: the weights are not finite\. Lower"):
        trainer.train()
    assert not list((tmp_path / "run").rglob("*.index"))


def test_towers_go_down_the_likelihood_of_a_discriminator_that_stays(tiny, tmp_path):
    """Of one batch, in each step; to far below chance, -log 3, where only the game would end."""
    alone = {"gamma1": 0.0, "gamma2": 0.0, "gamma3": 0.0, "discriminator_rate": 1e-9}
    task = start(tiny(**BASE, **alone, adversarial_weight=1000.0), tmp_path / "run")[0].task
    for number, weight in enumerate(task.discriminator.trainable_weights):
        weight.assign(np.random.default_rng(number).normal(0, 0.5, weight.shape))
    batch = next(iter(task.batches.epoch(0).batches(0)))
    with tf.GradientTape() as tape:
        likelihood = source_log_likelihood(task.logits(task.encoders(batch)))
    gradients = tape.gradient(likelihood, task.model.trainable_variables)
    norm = tf.linalg.global_norm([each_row_once(gradient) for gradient in gradients])
    task.begin_epoch(0)
    step = tf.function(task.train_step)
    found = [step(batch) for _ in range(10)]
    assert float(found[0]["gradient_norm"]) == pytest.approx(1000 * float(norm), rel=1e-3)
    likelihoods = [float(one["log_likelihood"]) for one in found]
    assert likelihoods[0] == pytest.approx(float(likelihood), rel=1e-4)
    assert (np.diff(likelihoods) < 0).all()
    assert likelihoods[-1] < -2 * math.log(3)


def test_a_huge_weight_leaves_the_discriminator_no_better_than_chance(tiny, tmp_path):
    """At most -log 3, if the towers are as fast as it is: 60 steps of a tenth were too few."""
    changes = {"discriminator_rate": 0.02, "learning_rate": 0.1}

    def likelihood(weight):
        settings = tiny(**{**BASE, **changes}, epochs=20, adversarial_weight=weight)
        return trained(settings, tmp_path / str(weight))[0].history[-1]["log_likelihood"]

    assert likelihood(1000.0) < -math.log(3) + 0.15
    assert likelihood(0.0) > -0.8


def test_the_document_tower_of_xcnn_stays_as_it_is_in_the_second_stage(tiny, tmp_path):
    changes = {"objective": "xcnn", "tower": "word_tanh", "opening_epochs": 1, "epochs": 3}
    trainer, model = start(tiny(**{**BASE, **changes}), tmp_path / "run")
    found, finish_epoch = [], trainer._finish_epoch

    def noting():
        found.append([weights(tower) for tower in (model.query_tower, model.document_tower)])
        finish_epoch()

    trainer._finish_epoch = noting
    trainer.train()
    (_, first), (queries, second), (later, third) = found
    for documents in (second, third):
        np.testing.assert_equal(documents, first)
    assert any((one != other).any() for one, other in zip(queries, later))
