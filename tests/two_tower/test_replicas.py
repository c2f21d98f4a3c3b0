"""Training by Keras on several devices, of which each has a part of a batch."""

import json

import pytest


@pytest.fixture(scope="module")
def found(commands):
    done = commands.run("tests.two_tower.replicas")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_two_devices_learn_what_one_does(found):
    # Gradients of devices are added: were a loss not divided, they would be twice as large.
    assert found["together"] == pytest.approx(found["alone"], rel=1e-5)
    assert found["together"][2] < found["together"][0]


def test_an_optimizer_of_one_device_says_so(found):
    message = "LazyAdam trains on one device, and the strategy in scope has 2: compile with"
    assert message in found["error"]
