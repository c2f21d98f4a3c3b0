"""Threads keep the order, read few items ahead, end with the work, and leave the GPU alone."""

import os
import threading
import time

import pytest
import tensorflow as tf

from tf_smoothclir.utils import devices
from tf_smoothclir.utils.devices import on_the_cpu
from tf_smoothclir.utils.parallel import map_in_threads


@pytest.mark.parametrize("threads_there", [1, 2, 5])
def test_results_keep_the_order_of_the_items(threads_there, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: threads_there)
    ended = []

    def work(item):
        time.sleep(0.02 if item % 3 == 0 else 0)
        ended.append(item)
        return item**2

    assert list(map_in_threads(work, range(20))) == [item**2 for item in range(20)]
    assert (ended == sorted(ended)) == (threads_there == 1)
    assert list(map_in_threads(work, [])) == []


def test_only_a_few_items_are_read_ahead(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    taken = []
    results = map_in_threads(str, (taken.append(item) or item for item in range(50)))
    for item, result in enumerate(results):
        assert result == str(item)
        assert len(taken) <= item + 3


def test_an_error_is_raised_in_order_and_ends_the_work_as_closing_does(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    threads, begun = threading.active_count(), []

    def work(item):
        begun.append(item)
        return 1 // (5 - item)

    results = map_in_threads(work, range(1000))
    assert [next(results) for _ in range(5)] == [0, 0, 0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert max(begun) < 12
    assert threading.active_count() == threads

    results = map_in_threads(str, range(1000))
    assert next(results) == "0"
    results.close()
    assert threading.active_count() == threads


@pytest.mark.parametrize(("has_gpu", "device"), [(True, "/device:CPU:*"), (False, "")])
def test_a_function_runs_on_the_cpu_in_each_thread_where_a_gpu_would_be_the_default(
    monkeypatch, has_gpu, device
):
    monkeypatch.setattr(devices, "has_gpu", lambda: has_gpu)
    graph = tf.Graph()

    def device_of():
        return tf.constant(1).op.device

    def devices_of(_):
        with graph.as_default():
            return device_of(), on_the_cpu(device_of)(), device_of()

    with tf.device("CPU"):  # of this thread alone
        assert set(map_in_threads(devices_of, range(3))) == {("", device, "")}
