"""Exchanged gradients: the same as those of one process with the joint batch."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.extras.distributed.exchange import pack, unpack
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
    documents = [document for _, listed in part for document, _ in listed]
    inputs = {
        "query": tokens([query for query, _ in part]),
        "document": tokens(documents),
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


class Worker:
    def __init__(self, case, part):
        self._model, self._part = model_of(case), part
        self._start = self._model.get_weights()
        self._step = tf.function(self._traced, input_signature=[tf.TensorSpec([None], tf.int32)])

    def _traced(self, messages):
        sent = []

        def exchange(gradients, losses, pairs, weight):
            sent.append(pack(gradients, losses, pairs, weight))
            alone = tf.tile(sent[0], [len(PARTS)])  # any message will do
            given = tf.cond(tf.size(messages) > 0, lambda: messages, lambda: alone)
            return unpack(given, gradients, len(losses), len(PARTS))

        logs = self._model.logged_step(batch(self._part), exchange)
        return sent.pop(), logs

    def message(self):
        message, _ = self._step(tf.zeros([0], tf.int32))
        self._model.set_weights(self._start)
        return message

    def stepped(self, messages):
        _, logs = self._step(messages)
        return logs, [weight.numpy() for weight in self._model.weights]


@pytest.mark.parametrize("case", CASES)
def test_step_of_all_workers_is_that_of_one_process_on_the_joint_batch(case):
    workers = [Worker(case, part) for part in PARTS]
    messages = tf.concat([worker.message() for worker in workers], axis=0)
    model, joint = model_of(case), [each for part in PARTS for each in part]
    logs = tf.function(lambda: model.logged_step(batch(joint)))()
    expected = [weight.numpy() for weight in model.weights]
    found = [worker.stepped(messages) for worker in workers]
    for own_logs, own in found:
        for name in ("pairs", "batch_loss", "gradient_norm"):
            np.testing.assert_allclose(own_logs[name], logs[name], rtol=1e-5)
        for one, other, first in zip(own, expected, found[0][1]):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(one, first)
