"""One training step of the two-tower model: what it logs, and which rows of the tables it moves."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.two_tower.small_model import (
    DIM,
    GRADES,
    SIZE,
    batches,
    make_model,
    make_tower,
    tensors,
)
from tf_smoothclir import (
    AveragePoolingTower,
    LazyAdam,
    SmoothCosineSimilarity,
    SmoothOrdinalSearchLoss,
    SparseRMSprop,
    TwoTower,
)


def take_step(model, inputs=None, grades=GRADES):
    """Runs one step without a graph, which would take a second to trace; returns its logs."""
    return model.train_step((inputs or tensors(), tf.constant(grades)))


def gradients_by_tape(model):
    with tf.GradientTape() as tape:
        loss = model.loss(tf.constant(GRADES), model(tensors()))
    gradients = tape.gradient(loss, model.trainable_variables)
    # Dense, so that a row that is named twice counts with its sum.
    return loss.numpy(), [tf.convert_to_tensor(g).numpy().astype("f8") for g in gradients]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("clip", [0.0, 1e-3])
def test_logs_the_gradient_norm_before_clipping_and_the_loss_of_the_batch(shared, clip):
    model = make_model(shared=shared, clip=clip)
    loss, gradients = gradients_by_tape(model)
    history = model.fit(batches(), verbose=0, log_steps=True).history
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    assert history["gradient_norm"][0] == pytest.approx(norm, rel=1e-5)
    assert history["batch_loss"][0] == pytest.approx(loss, rel=1e-6)


class Embedded(keras.layers.Layer):
    """A tower of plain Keras, whose gradient names a row as often as it occurs."""

    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(SIZE, DIM, embeddings_initializer="ones")

    def build(self, input_shape=None):
        self.table.build(None)
        self.built = True

    def call(self, ids):
        return tf.reduce_sum(self.table(ids), axis=1)


def test_the_gradient_norm_sums_rows_named_twice():
    model = TwoTower(Embedded(), Embedded(), keras.layers.Dot(axes=1))
    model.build()
    model.compile(keras.optimizers.SGD(0.0), "mse")
    ids = tf.constant([[3, 3, 3]])
    logs = model.train_step(({"query": ids, "document": ids}, tf.constant([0.0])))
    # Scores are s = q · d with q = d = (3, 3, 3, 3), s = 36; of the loss s² by row 3: 2s · 3 · d.
    one_table = np.linalg.norm(2 * 36 * 3 * np.full(DIM, 3.0))
    assert float(logs["gradient_norm"]) == pytest.approx(np.hypot(one_table, one_table))


class WithUnusedWeight(AveragePoolingTower):
    def build_rest(self):
        super().build_rest()
        self.unused = self.add_weight(name="unused", shape=(), initializer="ones")


@pytest.mark.parametrize("clip", [0.0, 1e-3])
def test_a_weight_without_a_gradient_stays(clip):
    towers = WithUnusedWeight(SIZE, DIM), make_tower(2)
    model = TwoTower(*towers, SmoothCosineSimilarity(0.5), clip_norm=clip)
    model.build()
    model.compile(LazyAdam(0.05), SmoothOrdinalSearchLoss((0.2, 0.7)))
    before = towers[0].embeddings.numpy()
    take_step(model)
    assert float(towers[0].unused) == 1.0
    assert (towers[0].embeddings.numpy() != before).any()


@pytest.mark.parametrize("shared", [False, True])
def test_clipping_scales_the_sum_of_both_uses_of_a_table(shared):
    limit = 1e-3
    model = make_model(shared=shared, clip=limit)
    _, gradients = gradients_by_tape(model)
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    assert norm > 2 * limit
    take_step(model)
    for gradient, moment in zip(gradients, model.optimizer._momentums):
        np.testing.assert_allclose(moment, 0.1 * gradient * limit / norm, rtol=1e-4, atol=1e-12)


def test_one_step_changes_every_row_that_occurs_and_no_other():
    model = make_model(rate=0.05)
    before = [w.numpy() for w in model.weights]
    # Grade 2 wants a score above 0.7 and grade 1 one below: neither pair is where it should be.
    inputs = {
        "query": {"ids": [2, 3, 4], "lengths": [2, 1]},
        "document": {"ids": [6, 7, 8], "lengths": [1, 2]},
    }
    assert not (model(tensors(inputs)).numpy() > 0.7).any()
    take_step(model, tensors(inputs), [2, 2])
    for old, new, rows in zip(before, model.weights, ([2, 3, 4], [6, 7, 8])):
        assert np.flatnonzero((new.numpy() != old).any(axis=1)).tolist() == rows


@pytest.mark.parametrize(
    ("optimizer", "in_second_step"),
    [(SparseRMSprop, [[3], [5, 6]]), (LazyAdam, [[2, 3], [4, 5, 6]])],
)
def test_pairs_with_a_score_inside_the_segment_of_their_grade_move_no_words(
    optimizer, in_second_step
):
    """Except by the momentum of lazy Adam, which moves all words of a batch."""
    model = make_model(epsilon=1.0)
    model.compile(optimizer(0.05), model.loss)
    for tower in (model.query_tower, model.document_tower):
        tower.embeddings.assign(np.linspace(0.5, 1, SIZE * DIM).reshape(SIZE, DIM))
    inputs = {
        "query": {"ids": tf.constant([2, 3]), "lengths": tf.constant([1, 1])},
        "document": {"ids": tf.constant([4, 5, 6]), "lengths": tf.constant([1, 2])},
    }
    score = float(model(inputs)[0])
    assert 0.2 < score < 0.7  # what grade 1 wants, and neither 0 nor 2
    moved = []
    for grades in ([0, 0], [1, 2]):
        before = model.get_weights()
        take_step(model, inputs, grades)
        moved.append(
            [
                np.flatnonzero((old != new).any(axis=1)).tolist()
                for old, new in zip(before, model.get_weights())
            ]
        )
    assert moved == [[[2, 3], [4, 5, 6]], in_second_step]


def test_frozen_query_tower_stays_bitwise_while_the_other_learns():
    model = make_model(trainable=False)
    query, document = (
        getattr(model, f"{role}_tower").embeddings.numpy() for role in ("query", "document")
    )
    take_step(model)
    np.testing.assert_array_equal(model.query_tower.embeddings, query)
    assert (model.document_tower.embeddings.numpy() != document).any()


def test_batch_of_empty_texts_gives_zero_scores_and_a_finite_step():
    empty = {"ids": [], "lengths": [0, 0]}
    model = make_model()
    before = [w.numpy() for w in model.weights]
    inputs = tensors({"query": empty, "document": empty})
    np.testing.assert_array_equal(model(inputs), [0, 0])
    logs = take_step(model, inputs, [2, 0])
    assert float(logs["gradient_norm"]) == 0.0
    assert float(logs["batch_loss"]) == pytest.approx(0.7**2 / 2)  # (θ_2 - 0)² and 0
    for old, new in zip(before, model.weights):
        np.testing.assert_array_equal(new, old)
