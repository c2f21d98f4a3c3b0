"""Operations are put on the CPU where a GPU would be the default, in any thread."""

import pytest
import tensorflow as tf

from tf_smoothclir.utils import devices
from tf_smoothclir.utils.devices import on_the_cpu
from tf_smoothclir.utils.parallel import map_in_threads


def device_of():
    return tf.constant(1).op.device


@pytest.mark.parametrize(("has_gpu", "device"), [(True, "/device:CPU:*"), (False, "")])
def test_a_function_runs_on_the_cpu(monkeypatch, has_gpu, device):
    monkeypatch.setattr(devices, "has_gpu", lambda: has_gpu)
    with tf.Graph().as_default():
        assert on_the_cpu(device_of)() == device
        assert device_of() == ""


def test_a_function_runs_on_the_cpu_in_each_thread(monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: True)
    graph = tf.Graph()

    def in_the_graph(_):
        with graph.as_default():
            return device_of()

    def placed_in_the_graph(_):
        with graph.as_default():
            return on_the_cpu(device_of)()

    with tf.device("CPU"):  # of this thread alone
        assert set(map_in_threads(in_the_graph, range(3))) == {""}
        assert set(map_in_threads(placed_in_the_graph, range(3))) == {"/device:CPU:*"}
