"""Huge pages: the values stay, the memory moves where Linux takes the advice."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.ops.huge_pages import use_huge_pages

MEGABYTE = 1 << 20


def table(megabytes):
    values = np.random.default_rng(0).normal(size=(megabytes * MEGABYTE // 256, 64))
    return tf.Variable(values.astype("f4"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="madvise of Linux")
def test_values_stay_and_tables_smaller_than_a_page_are_left_alone():
    small, large = table(1), table(16)
    before = [small.numpy(), large.numpy()]
    asked = use_huge_pages([small, large, tf.Variable(3.0), tf.Variable(7, dtype=tf.int64)])
    # The ends of a table do not fill a page of 2 MB.
    assert asked in (0, 12 * MEGABYTE, 14 * MEGABYTE, 16 * MEGABYTE)
    for variable, old in zip((small, large), before):
        np.testing.assert_array_equal(variable, old)
    large.scatter_sub(tf.IndexedSlices(tf.ones([1, 64]), [5]))
    np.testing.assert_allclose(large[5], before[1][5] - 1, rtol=1e-6)


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists()
    or "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(),
    reason="this kernel has no transparent huge pages",
)
def test_the_variable_itself_is_advised_not_a_copy():
    """The advice stays on the mapping; a copy's mapping would have gone with the copy.

    Whether huge pages follow at once is the kernel's affair: it needs 2 MB in one piece.
    """

    def advised_kilobytes():
        mappings = Path("/proc/self/smaps").read_text()
        found = re.findall(r"^Size: +(\d+) kB$.*?^VmFlags:([^\n]*)", mappings, re.M | re.S)
        return sum(int(size) for size, flags in found if "hg" in flags.split())

    # TensorFlow's own memory: NumPy asks for huge pages itself, and its arrays may be shared.
    with tf.device("CPU"):
        variable = tf.Variable(tf.random.stateless_normal([64 * MEGABYTE // 256, 64], seed=[0, 0]))
    before = advised_kilobytes()
    use_huge_pages([variable])
    assert advised_kilobytes() - before > 60 * 1024
    assert variable.shape[0] == 64 * MEGABYTE // 256


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert use_huge_pages([table(4)]) == 0
