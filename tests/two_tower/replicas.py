"""Prints as JSON how `fit` goes on one device and on two: losses, and the error of an optimizer."""

from __future__ import annotations

import contextlib
import json

import tensorflow as tf

from tests.two_tower.small_model import make_tower
from tf_smoothclir import LazyAdam, SmoothOrdinalSearchLoss, TwoTower


def losses(scope, optimizer):
    """The losses of three epochs of one batch, half of which each of two devices would get."""
    with scope:
        model = TwoTower(make_tower(1), make_tower(2))
        model.build()
        model.compile(optimizer, SmoothOrdinalSearchLoss((0.2, 0.7)))
    inputs = {role: tf.constant([[2, 3], [4, 5]]) for role in ("query", "document")}
    batches = tf.data.Dataset.from_tensors((inputs, tf.constant([2, 0])))
    return model.fit(batches, epochs=3, verbose=0).history["loss"]


def main():
    (device,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found = {
        "alone": losses(contextlib.nullcontext(), "sgd"),
        "together": losses(strategy.scope(), "sgd"),
    }
    try:
        losses(strategy.scope(), LazyAdam(0.05))
    except ValueError as error:
        found["error"] = str(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
