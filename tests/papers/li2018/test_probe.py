"""The source probe: what it finds in vectors that say their source, and in those that do not."""

import numpy as np
import pytest

from tf_smoothclir.papers.li2018.probe import probe_accuracy

RANDOM = np.random.default_rng(3)


def test_sources_that_lie_apart_are_all_named():
    vectors = [RANDOM.normal(size=(40, 3)) + 20 * np.eye(3)[n] for n in range(3)]
    assert probe_accuracy(vectors) == 1


def test_equal_vectors_and_unseen_noise_are_named_by_chance():
    """It must not be asked about what it learned from: 40 texts of 60 numbers are memorised."""
    same = RANDOM.normal(size=(60, 4))
    assert probe_accuracy([same, same, same]) == pytest.approx(1 / 3, abs=1e-6)
    assert probe_accuracy([RANDOM.normal(size=(40, 60)) for _ in range(3)]) < 0.5
