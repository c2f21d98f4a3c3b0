"""A numerical search for what breaks the constants of `theory`.

SCS depends on inner products alone: a rotation turns the three vectors that one check compares, two
queries and a document, into three dimensions. So a search in three dimensions covers all 64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.papers.liu2020.theory import Constants
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

_DIM = 3
_SEED = 0


def found_constants(functions: Sequence[Callable], inputs: Callable, size: int) -> Constants:
    """The largest slope and the largest change of slope that a search finds.

    The search starts with random points and then narrows down around the best ones. The values it
    finds are attained, so they refute any bound below them; larger ones may exist.

    Args:
        functions: Each maps points `[points, dim]` to values `[points]`, all float64. The largest
            constants among them count.
        inputs: Maps normal numbers `[points, size]` to points `[points, dim]` of the domain.
    """
    found = [_search(function, inputs, size) for function in functions]
    return Constants(max(slope for slope, _ in found), max(bend for _, bend in found))


def _search(function, inputs, size) -> tuple[float, float]:
    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, None], tf.float64)])
    def gradients(points):
        return tf.gradients(function(points), points)[0]

    def bends(points):
        steps = points[:, size:] ** 3  # many of them small
        first, second = inputs(points[:, :size]), inputs(points[:, :size] + steps)
        distances = _norms(first - second)
        changes = _norms(gradients(first) - gradients(second))
        # Differences of closer points would be rounding.
        return np.where(distances > 1e-4, changes / np.maximum(distances, 1e-4), 0)

    slope = _largest(lambda points: _norms(gradients(inputs(points))), size)
    return slope, _largest(bends, 2 * size)


def _largest(objective, size) -> float:
    rng = np.random.default_rng(_SEED)
    points = rng.normal(size=(2048, size))
    for spread in 0.9 ** np.arange(60):
        best = points[np.argsort(objective(points))[-32:]]
        points = np.concatenate([best, *(best + spread * rng.normal(size=(8, *best.shape)))])
    return float(objective(points).max())


def _vectors(coordinates: np.ndarray) -> np.ndarray:
    """Vectors of any direction whose norms are around 1 and far above and below."""
    directions = coordinates[:, :-1] / _norms(coordinates[:, :-1])[:, None]
    return directions * np.exp(np.clip(3 * coordinates[:, -1:], -25, 25))


def _norms(vectors) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


def _losses(thresholds: Sequence[float]) -> list[Callable]:
    loss = SmoothOrdinalSearchLoss(thresholds, reduction="none")
    return [
        lambda scores, grade=grade: loss(tf.fill(tf.shape(scores), grade), scores)
        for grade in range(loss.num_grades)
    ]


def found_in_sosl(thresholds: Sequence[float]) -> Constants:
    """What a search finds for `theory.sosl`, over all grades."""
    by_grade = [lambda r, loss=loss: loss(r[:, 0]) for loss in _losses(thresholds)]
    return found_constants(by_grade, lambda points: np.clip(points, -1, 1), 1)


def found_in_scs(epsilon: float, thresholds: Sequence[float] = (), tower=False) -> Constants:
    """What a search finds for SCS in one vector, the other being long."""
    layer = SmoothCosineSimilarity(epsilon, dtype="float64")
    other = tf.constant([[1e6 * epsilon] + [0.0] * (_DIM - 1)], tf.float64)

    def similarity(vectors):
        vectors = tf.tanh(vectors) if tower else vectors
        return layer([vectors, tf.repeat(other, tf.shape(vectors)[0], axis=0)])

    losses = _losses(thresholds) if thresholds else [tf.identity]
    by_grade = [lambda x, loss=loss: loss(similarity(x)) for loss in losses]
    return found_constants(by_grade, _vectors, _DIM + 1)


def found_in_sgd(
    epsilon: float,
    thresholds: Sequence[float],
    *,
    pairs: int,
    steps: int,
    step_constant: float,
    delta: float,
) -> tuple[float, float]:
    """Stability and gap of SGD on toy data: 8 queries, 8 documents, random grades.

    The stability is how far replacing one training pair moves the loss of any pair, averaged over
    100 orders of training. The gap is what L_E - L_S exceeds in a share δ of 100 draws of training
    pairs.
    """
    rng = np.random.default_rng(_SEED)
    grades = rng.integers(len(thresholds) + 1, size=64)
    one, drawn = rng.integers(64, size=pairs), rng.integers(64, size=(100, pairs))
    other = np.r_[(one[0] + 1) % 64, one[1:]]
    chosen_pairs = np.concatenate([np.tile(one, (100, 1)), np.tile(other, (100, 1)), drawn])
    orders = np.tile(rng.integers(pairs, size=(100, steps)), (3, 1))
    layer = SmoothCosineSimilarity(epsilon, dtype="float64")
    loss = SmoothOrdinalSearchLoss(thresholds, reduction="none")

    def losses(weights, chosen):
        queries, documents = tf.unstack(tf.tanh(weights), axis=1)
        queries = tf.reshape(tf.gather(queries, chosen // 8, batch_dims=1), [-1, _DIM])
        documents = tf.reshape(tf.gather(documents, chosen % 8, batch_dims=1), [-1, _DIM])
        values = loss(tf.reshape(tf.gather(grades, chosen), [-1]), layer([queries, documents]))
        return tf.reshape(values, tf.shape(chosen))

    @tf.function(autograph=False)
    def gradients(weights, chosen):
        return tf.gradients(losses(weights, chosen), weights)[0]

    weights = tf.tile(tf.constant(rng.normal(size=(1, 2, 8, _DIM))), [len(chosen_pairs), 1, 1, 1])
    for step, order in enumerate(orders.T, start=1):
        chosen = tf.constant(np.take_along_axis(chosen_pairs, order[:, None], 1))
        weights -= step_constant / step * gradients(weights, chosen)
    everywhere = losses(weights, np.tile(np.arange(64), (len(chosen_pairs), 1))).numpy()
    gaps = everywhere.mean(axis=1) - np.take_along_axis(everywhere, chosen_pairs, 1).mean(axis=1)
    moved = everywhere[:100].mean(axis=0) - everywhere[100:200].mean(axis=0)
    return float(np.abs(moved).max()), float(np.quantile(gaps[200:], 1 - delta))
