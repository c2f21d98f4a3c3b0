"""Threads within an operation, chosen by settings unless the user chooses; and huge pages."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tf_smoothclir.extras import distributed as distributed  # registers multi_worker
from tf_smoothclir.ops import intraop_threads as module
from tf_smoothclir.ops.huge_pages import use_huge_pages
from tf_smoothclir.settings import presets, run

NAME = "TF_NUM_INTRAOP_THREADS"
MEGABYTE = 1 << 20


@cases(
    "changes, on_keras_2, on_keras_3",
    ({}, 2, 1),  # sums of rows
    ({"tower": "cnn"}, 2, 2),  # products of matrices
    ({"batching": "in_batch"}, 2, 2),
    ({"hard_negatives": 5}, 2, 2),
    ({"tower": "lstm"}, 1, 1),  # directions take a core each
    ids=str,
)
def test_threads_on_two_cores(changes, on_keras_2, on_keras_3, monkeypatch):
    settings = presets.changed(run.RunSettings(), changes)
    for stack, on_two in ((False, on_keras_2), (True, on_keras_3)):
        monkeypatch.setattr(module, "ON_KERAS_3", stack)
        found = {cores: module.intraop_threads(settings, cores) for cores in (1, 2, 3, 8)}
        assert found == {1: 1, 2: on_two, 3: 3, 8: 8}


@cases(
    "on_keras_3, changes, explicit, expected",
    (True, {}, None, "1"),
    (False, {}, None, None),  # TensorFlow would choose the same
    (True, {}, "2", "2"),
    (True, {"distribution": "multi_worker", "shards_dir": "d", "batching": "lists"}, None, None),
)
def test_the_variable_that_is_set(on_keras_3, changes, explicit, expected, monkeypatch):
    monkeypatch.setenv(NAME, explicit or "restored at the end")
    if explicit is None:
        monkeypatch.delenv(NAME)
    monkeypatch.setattr(module, "ON_KERAS_3", on_keras_3)
    monkeypatch.setattr(module, "_cores", lambda: 2)
    module.choose_intraop_threads(presets.changed(run.RunSettings(), changes))
    assert os.environ.get(NAME) == expected


def table(megabytes):
    """TensorFlow's own memory: NumPy asks for huge pages itself, and its arrays may be shared."""
    shape = [megabytes * MEGABYTE // 256, 64]
    with tf.device("CPU"):
        return tf.Variable(tf.random.stateless_normal(shape, seed=[0, 0]))


def test_values_stay_and_small_tables_and_other_systems_are_left_alone(monkeypatch):
    small, large = table(1), table(16)
    before = [small.numpy(), large.numpy()]
    asked = use_huge_pages([small, large, tf.Variable(3.0), tf.Variable(7, dtype=tf.int64)])
    # The ends of a table do not fill a page of 2 MB.
    assert asked in (0, 12 * MEGABYTE, 14 * MEGABYTE, 16 * MEGABYTE)
    np.testing.assert_equal([small, large], before)
    large.scatter_sub(tf.IndexedSlices(tf.ones([1, 64]), [5]))
    np.testing.assert_allclose(large[5], before[1][5] - 1, rtol=1e-6)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert use_huge_pages([large]) == 0


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists()
    or "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(),
    reason="this kernel has no transparent huge pages",
)
def test_the_variable_itself_is_advised_not_a_copy():
    """The advice stays on the mapping; a copy's mapping would have gone with the copy.

    Whether huge pages follow at once is the kernel's affair: it needs 2 MB in one piece.
    """

    variable = table(64)
    begin = np.asarray(memoryview(variable.read_value())).ctypes.data
    use_huge_pages([variable])
    advised = 0
    # Memory that was freed keeps its advice, so only the bytes of this variable are counted.
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if mapping := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
            first, end = (int(address, 16) for address in mapping.groups())
            common = min(end, begin + 64 * MEGABYTE) - max(first, begin)
        elif line.startswith("VmFlags:") and "hg" in line.split() and common > 0:
            advised += common
    assert advised > 60 * MEGABYTE
    assert variable.shape[0] == 64 * MEGABYTE // 256  # it is still there
