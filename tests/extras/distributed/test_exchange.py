"""Exchanged gradients: the same as those of one process with the joint batch."""

import functools

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tests.cases import cases
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.extras.distributed.workers import joint_gradients
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.two_tower.builder import build_model

WORDS = 12
# Of each worker, lists of texts: (query, documents with grades), of unequal numbers.
PARTS = (
    [([2, 3], [([4, 5], 2), ([6], 0), ([], 1)]), ([3], [([7, 4, 4], 2), ([8], 0)])],
    [([3, 9, 9], [([4], 1), ([10, 6], 0)])],
    [([11], [([5], 2)]), ([], [([4], 0)])],
)
CASES = {
    "defaults": {},
    "clipped": {"clip_norm": 1e-3},
    "mean over lists": {"loss": "softmax"},
    "one table": {"shared_vocabulary": True},
    "dense gradients too": {"token_weights": "learned"},
}


def batch(part):
    inputs = {
        "query": tokens([query for query, _ in part]),
        "document": tokens([document for _, listed in part for document, _ in listed]),
        "list_lengths": tf.constant([len(listed) for _, listed in part]),
    }
    return inputs, tf.constant([grade for _, listed in part for _, grade in listed])


def tokens(texts):
    ids = [word for text in texts for word in text]
    return {"ids": tf.constant(ids, tf.int32), "lengths": tf.constant(list(map(len, texts)))}


def model_of(case):
    """A model with plain steps: others would magnify what rounding leaves of a gradient of 0."""
    changes = {"batching": "lists", "dim": 4, **CASES[case]}
    vocabulary = ["", "?", *map(str, range(2, WORDS))]
    model = build_model(changed(RunSettings(), changes), dict.fromkeys(ROLES, vocabulary))
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss)
    model.optimizer.build(model.trainable_variables)
    return model


@cases("case", *CASES)
def test_step_of_all_workers_is_that_of_one_process_on_the_joint_batch(case):
    sent = []

    def noting(values):
        sent.append(values)
        return values

    for part in PARTS:
        stepped(case, part, noting)
    found = [stepped(case, part, lambda _: tf.nest.map_structure(summed, *sent)) for part in PARTS]
    expected, logs = stepped(case, [each for part in PARTS for each in part], None)
    for own, own_logs in found:
        for name in ("pairs", "batch_loss", "gradient_norm"):
            np.testing.assert_allclose(own_logs[name], logs[name], rtol=1e-5)
        for one, other, first in zip(own, expected, found[0][0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(one, first)


def stepped(case, part, reduce):
    """The weights after a step of a worker, and its logs; without `reduce`, of one process."""
    model = model_of(case)
    logs = model.logged_step(batch(part), (reduce and functools.partial(joint_gradients, reduce)))
    return [weight.numpy() for weight in model.weights], logs


def summed(*values):
    if not isinstance(values[0], tf.IndexedSlices):
        return tf.add_n(values)
    rows = tf.concat([one.indices for one in values], axis=0)
    numbers = tf.concat([one.values for one in values], axis=0)
    return tf.IndexedSlices(numbers, rows, values[0].dense_shape)
