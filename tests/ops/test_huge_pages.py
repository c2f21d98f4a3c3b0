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
def test_the_variable_itself_is_moved_not_a_copy():
    def huge_kilobytes():
        status = Path("/proc/self/smaps_rollup").read_text()
        return int(re.search(r"AnonHugePages:\s+(\d+)", status)[1])

    variable = table(64)
    before = huge_kilobytes()
    use_huge_pages([variable])
    assert huge_kilobytes() - before > 32 * 1024
    assert variable.shape[0] == 64 * MEGABYTE // 256


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert use_huge_pages([table(4)]) == 0
