"""Training by Keras on two devices: as a program, it prints losses and an error as JSON."""

import contextlib
import json

import pytest
import tensorflow as tf

from tests.two_tower.small_model import make_tower
from tf_smoothclir import LazyAdam, SmoothOrdinalSearchLoss, TwoTower


def test_two_devices_learn_what_one_does(commands):
    done = commands.run("tests.two_tower.test_replicas", check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    # Gradients of devices are added: were a loss not divided, they would be twice as large.
    assert found["together"] == pytest.approx(found["alone"], rel=1e-5)
    assert found["together"][2] < found["together"][0]
    message = "LazyAdam trains on one device, and the strategy in scope has 2: compile with"
    assert message in found["error"]


def losses(scope, optimizer):
    """Of three epochs of one batch, half of which each of two devices would get."""
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
    found = {"alone": losses(contextlib.nullcontext(), "sgd")}
    found["together"] = losses(strategy.scope(), "sgd")
    try:
        losses(strategy.scope(), LazyAdam(0.05))
    except ValueError as error:
        found["error"] = str(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
