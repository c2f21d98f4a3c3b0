"""Bootstrap intervals: deterministic, about the mean, as wide as theory says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tf_smoothclir.evaluation import confidence
from tf_smoothclir.evaluation.confidence import bootstrap_interval

VALUES = np.random.default_rng(1).beta(2, 5, size=800)


def test_the_same_seed_gives_the_same_interval():
    assert bootstrap_interval(VALUES, seed=3) == bootstrap_interval(VALUES.copy(), seed=3)
    assert bootstrap_interval(VALUES, seed=3) != bootstrap_interval(VALUES, seed=4)


def test_chunks_do_not_change_the_interval(monkeypatch):
    expected = bootstrap_interval(VALUES, seed=3)
    monkeypatch.setattr(confidence, "_QUERIES_PER_CHUNK", 7 * len(VALUES))
    assert bootstrap_interval(VALUES, seed=3) == pytest.approx(expected, rel=1e-12)


def test_agrees_with_the_normal_approximation():
    half = 1.96 * VALUES.std() / math.sqrt(len(VALUES))
    low, high = bootstrap_interval(VALUES, seed=3, samples=4000)
    assert low == pytest.approx(VALUES.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(VALUES.mean() + half, abs=0.1 * half)


def test_covers_the_mean_and_narrows_with_more_queries():
    widths = []
    for count in (20, 80, 320):
        low, high = bootstrap_interval(VALUES[:count], seed=3)
        assert low < VALUES[:count].mean() < high
        widths.append(high - low)
    # Four times the queries, half the width, but for the spread of the sample itself.
    assert widths[0] > 1.5 * widths[1] > 1.5 * 1.5 * widths[2]


def test_contains_the_true_mean_in_about_95_of_100_samples():
    generator = np.random.default_rng(5)
    samples = generator.uniform(size=(300, 50))
    bounds = [bootstrap_interval(sample, seed=1, samples=300) for sample in samples]
    share = np.mean([low <= 0.5 <= high for low, high in bounds])
    assert 0.95 - 4 * math.sqrt(0.95 * 0.05 / 300) <= share <= 0.99


def test_queries_without_a_value_are_left_out():
    with_gaps = np.insert(VALUES[:50], [0, 20, 50], np.nan)
    assert bootstrap_interval(with_gaps, seed=3) == bootstrap_interval(VALUES[:50], seed=3)


@pytest.mark.parametrize(
    ("values", "interval"), [([], (0, 0)), ([math.nan], (0, 0)), ([0.25], (0.25, 0.25))]
)
def test_no_query_and_one_query(values, interval):
    assert bootstrap_interval(np.array(values), seed=3) == interval
