"""Training with an adversary: bit for bit the same without its weight, killed and continued."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.training.test_trainer import train_until_killed
from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.optimizers.gradients import each_row_once
from tf_smoothclir.papers.li2018.constraints import source_log_likelihood
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import SPLITS, tokenized_set_of, trainer_of

pytestmark = pytest.mark.slow

LSTM = {"tower": "max_lstm", "batching": "bucketed"}
BASE = {
    "objective": "adversarial",
    "epsilon": 0.0,
    "learning_rate": 0.01,
    "optimizer": "rmsprop",
}


def start(settings, path):
    run = RunDirectory.create(path, settings)
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    return trainer_of(settings, tokenized_set, run)


def trained(settings, path):
    trainer = start(settings, path)
    trainer.train()
    return trainer


def weights(trainer):
    return [weight.numpy() for weight in tf_weights(trainer.task.model)]


def assert_same(found, expected):
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)


SLOW = pytest.mark.slow  # tracing the steps of LSTMs takes seconds


@pytest.mark.parametrize("tower", [{}, pytest.param(LSTM, marks=SLOW)], ids=["average", "lstm"])
def test_weight_0_is_bit_for_bit_the_model_without_a_discriminator(tiny, tmp_path, tower):
    """M_adv of the paper."""
    none, idle = (
        weights(
            trained(
                tiny(**BASE, **tower, adversarial_weight=0.0, discriminator_steps=steps),
                tmp_path / str(steps),
            )
        )
        for steps in (0, 2)
    )
    assert_same(idle, none)


def test_another_weight_is_another_model(tiny, tmp_path):
    none, some = (
        weights(trained(tiny(**BASE, adversarial_weight=weight), tmp_path / str(weight)))
        for weight in (0.0, 0.5)
    )
    assert any((one != other).any() for one, other in zip(some, none))


def test_translations_begin_with_the_layers_of_documents_and_leave_them(tiny, tmp_path):
    trainer = start(tiny(**BASE, **LSTM, epochs=1), tmp_path)
    towers = [trainer.task.encoders.towers[of] for of in ("translation", "document")]

    def pairs():
        return [[w.numpy() for w in both] for both in zip(*(t.matrices() for t in towers))]

    for one, other in pairs():
        np.testing.assert_array_equal(one, other)
    trainer.train()
    assert all((one != other).any() for one, other in pairs())


def test_words_of_translations_weigh_as_those_of_documents(tiny, tmp_path):
    trainer = start(tiny(**BASE, token_weights="idf"), tmp_path)
    towers = trainer.task.encoders.towers
    texts = {"ids": tf.constant([3, 5, 4, 3]), "lengths": tf.constant([3, 1])}
    found = [towers[of](texts) for of in ("translation", "document")]
    np.testing.assert_array_equal(*found)
    weights = towers["document"].other_arrays()["token_weights"].numpy()
    assert len(np.unique(weights)) > 1


@pytest.mark.parametrize(
    ("changes", "kills"),
    [
        ({"opening_epochs": 1, "graded_triplets": True}, (1, 4)),
        pytest.param({**LSTM, "projection_layers": 2}, (5,), marks=SLOW),
        pytest.param({"matching_loss": "sosl", "adversarial_loss": "uniform"}, (5,), marks=SLOW),
    ],
    ids=["two stages", "lstm", "other losses"],
)
def test_killed_run_continues_bit_for_bit(tiny, tmp_path, changes, kills):
    settings = tiny(**{**BASE, **changes})
    whole = trained(settings, tmp_path / "whole")
    for steps in kills:
        train_until_killed(start(settings, tmp_path / "killed"), steps)
    trainer = start(settings, tmp_path / "killed")
    trainer.train()
    history = whole.progress.history
    assert trainer.progress.history == history
    assert {"translation_loss", "monolingual_loss", "norms", "source_probe"} <= history[0].keys()
    assert history[0]["log_likelihood"] == pytest.approx(-math.log(3), abs=0.1)
    assert_same(weights(trainer), weights(whole))
    for found, expected in zip(trainer.task.variables.helpers, whole.task.variables.helpers):
        np.testing.assert_array_equal(found, expected)


def test_towers_go_down_the_likelihood_of_a_discriminator_that_stays(tiny, tmp_path):
    """Of one batch, in each step; to far below chance, -log 3, where only the game would end."""
    alone = {"gamma1": 0.0, "gamma2": 0.0, "gamma3": 0.0, "discriminator_rate": 1e-9}
    task = start(tiny(**BASE, **alone, adversarial_weight=1000.0), tmp_path / "run").task
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


@pytest.mark.slow
def test_a_huge_weight_leaves_the_discriminator_no_better_than_chance(tiny, tmp_path):
    """At most -log 3, if the towers are as fast as it is.

    Their steps grow with --learning_rate, not with the weight: gradients are clipped, and the
    optimizer divides by their size. With a tenth of this rate, 60 steps are too few.
    """
    changes = {"adversarial_loss": "uniform", "discriminator_rate": 0.02, "learning_rate": 0.1}
    changes["epochs"] = 20
    last = {
        weight: trained(
            tiny(**{**BASE, **changes}, adversarial_weight=weight), tmp_path / name
        ).progress.history[-1]["log_likelihood"]
        for name, weight in (("none", 0.0), ("huge", 1000.0))
    }
    assert last[1000.0] < -math.log(3) + 0.15
    assert last[0.0] > -0.8


@pytest.mark.slow
def test_translation_alone_shrinks_to_a_point_and_with_matching_it_does_not(tiny, tmp_path):
    alone = {"gamma1": 10.0, "gamma2": 0.0, "gamma3": 0.0, "adversarial_weight": 0.0, "epochs": 20}
    losses = [
        trained(tiny(**{**BASE, **alone, **more}), tmp_path / name).progress.history[-1][
            "matching_loss"
        ]
        for name, more in (("alone", {}), ("matched", {"gamma1": 0.1, "gamma2": 1.0}))
    ]
    assert losses[0] > 1.2 * losses[1]


@pytest.mark.parametrize(
    ("objective", "changes"),
    [
        ("s2net", {"tower": "linear", "token_weights": "idf"}),
        pytest.param("bae", {"tower": "linear", "token_weights": "idf"}, marks=SLOW),
    ],
)
def test_models_of_pairs_train_and_continue(tiny, tmp_path, objective, changes):
    settings = tiny(**{**BASE, **changes, "objective": objective})
    whole = trained(settings, tmp_path / "whole")
    train_until_killed(start(settings, tmp_path / "killed"), 3)
    trainer = start(settings, tmp_path / "killed")
    trainer.train()
    assert trainer.progress.history == whole.progress.history
    assert_same(weights(trainer), weights(whole))


def test_the_document_tower_of_xcnn_stays_as_it_is_in_the_second_stage(tiny, tmp_path):
    changes = {**BASE, "tower": "word_tanh", "opening_epochs": 1, "epochs": 3}
    settings = tiny(**{**changes, "objective": "xcnn"})
    trainer = start(settings, tmp_path / "run")
    found = []
    end_epoch = trainer.task.end_epoch

    def kept(completed):
        towers = trainer.task.model.query_tower, trainer.task.model.document_tower
        found.append([[weight.numpy() for weight in tower.weights] for tower in towers])
        end_epoch(completed)

    trainer.task.end_epoch = kept
    trainer.train()
    (_, first), (queries, second), (later, third) = found
    assert_same(second, first)
    assert_same(third, first)
    assert any((one != other).any() for one, other in zip(queries, later))
