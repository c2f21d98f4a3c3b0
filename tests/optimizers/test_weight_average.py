"""The mean of the weights after epochs, against a mean by hand."""

import numpy as np
import pytest

from tests.training.test_checkpoints import make_model, task_of
from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.two_tower.builder import build_model


@pytest.mark.parametrize("decay", [0.5, 0.9, 1.0])
def test_average_is_the_mean_in_which_an_epoch_counts_decay_times_the_next(decay):
    model, seen = make_model(), []
    task = task_of(model, average_weights=decay)
    generator = np.random.default_rng(1)
    for epoch in range(1, 6):
        for weight in tf_weights(model):
            weight.assign(generator.normal(size=weight.shape))
        seen.append([weight.numpy().astype("f8") for weight in tf_weights(model)])
        task.end_epoch(epoch)
        shares = [decay ** (epoch - other) for other in range(1, epoch + 1)]
        for index, found in enumerate(task.variables.kept):
            expected = np.average([weights[index] for weights in seen], axis=0, weights=shares)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
            if epoch == 1:  # to the last bit
                np.testing.assert_array_equal(found, tf_weights(model)[index])
    for weight, last in zip(model.weights, seen[-1]):  # the model itself keeps its last weights
        np.testing.assert_array_equal(weight.numpy(), last.astype("f4"))


def test_frozen_tables_and_counters_are_those_of_the_model():
    model = build_model(
        RunSettings(model=ModelSettings(dim=2, tower="lstm", train_query_embeddings=False)),
        {"query": list("abcd"), "document": list("abcde")},
    )
    task = task_of(model, average_weights=0.5)
    for epoch in (1, 2, 3):
        for weight in tf_weights(model):
            if weight.trainable or weight.dtype == "int64":
                weight.assign_add(np.full(weight.shape, 1, weight.dtype.as_numpy_dtype))
        task.end_epoch(epoch)
    pairs = list(zip(task.variables.kept, tf_weights(model)))
    untrained = [pair for pair in pairs if not pair[1].trainable]
    assert len(untrained) == 3  # one table and the counters of dropouts of two towers
    for found, expected in untrained:
        np.testing.assert_array_equal(found, expected)
    for found, expected in (pair for pair in pairs if pair[1].trainable):
        # 1, 2 and 3 with shares 1 : 2 : 4; the last of them is 3.
        distance = 3 - (1 * 1 + 2 * 2 + 3 * 4) / 7
        np.testing.assert_allclose(expected - found, np.full(found.shape, distance), rtol=1e-4)
