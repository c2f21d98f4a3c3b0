"""Significance tests: agreement with scipy, properties, conventions for degenerate cases."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tf_smoothclir.evaluation import significance
from tf_smoothclir.evaluation.significance import (
    bootstrap_interval,
    differences,
    effect_size,
    holm,
    paired_t_test,
    randomization_test,
)

SETTINGS = settings(deadline=None, max_examples=60, derandomize=True)
# Eighths: sums are exact and there are many ties.
SCORES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=14).map(
    lambda pairs: np.array(pairs, np.float64).T / 8
)
TESTS = {
    "randomization": lambda a, b: randomization_test(a, b, seed=3, samples=500),
    "t": paired_t_test,
}
both_tests = pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)


def scores(queries, seed, shift=0.0):
    generator = np.random.default_rng(seed)
    a = generator.uniform(size=queries)
    return a, a + generator.normal(shift, 0.2, size=queries)


@SETTINGS
@given(SCORES.filter(lambda ab: 2 <= ab.shape[1] <= 11))
def test_exact_randomization_agrees_with_scipy_with_many_ties(ab):
    options = {"permutation_type": "samples", "n_resamples": np.inf}
    expected = stats.permutation_test(ab, lambda x, y: np.mean(x - y), **options).pvalue
    assert randomization_test(*ab, seed=1) == pytest.approx(expected, rel=1e-12)


def test_exact_by_hand():
    # Of the 8 sums +-1 +-2 +-3, those of size 6 or more are 6 and -6; of size 4 or more, 4 of them.
    assert randomization_test(np.array([1, 2, 3]), np.zeros(3), seed=1) == 2 / 8
    assert randomization_test(np.array([-1, 2, 3]), np.zeros(3), seed=1) == 4 / 8
    # Queries without a difference leave the test exact.
    many = np.append(np.zeros(1000), [-1, 2, 3])
    assert randomization_test(many, np.zeros(1003), seed=1) == 4 / 8


def test_sampling_agrees_with_the_exact_value():
    a, b = scores(14, seed=3, shift=0.08)
    exact = randomization_test(a, b, seed=1, samples=2**14)
    sampled = randomization_test(a, b, seed=1, samples=2**14 - 1)
    assert sampled != exact
    assert sampled == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 2**14))


def test_sampling_of_many_queries_agrees_with_the_t_test_and_takes_seconds():
    a, b = scores(6000, seed=4, shift=0.003)  # more than a block of queries
    p = paired_t_test(a, b)
    assert 0.01 < p < 0.5
    begin = time.perf_counter()
    found = randomization_test(a, b, seed=1, samples=100_000)
    assert time.perf_counter() - begin < 20  # 0.8 s on two free cores
    assert found == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 100_000) + 0.002)


def test_ties_within_rounding_of_float32_count_as_extreme():
    a = np.array([1 / 3, 2 / 3, 1 / 7, 1])
    b = np.array([2 / 3, 1 / 3, 1 / 7 + 1 / 3, 1 / 3])
    # In thirds: -1, 1, -1, 2 add up to 1; no pattern of these has a smaller sum than 1 in size.
    assert randomization_test(a, b, seed=1) == 1
    rounded = [v.astype(np.float32).astype(np.float64) for v in (a, b)]
    assert randomization_test(*rounded, seed=1) == 1


def test_p_at_a_fixed_seed_is_the_same_on_every_machine():
    a, b = np.arange(40) % 7 / 8, np.arange(40) % 5 / 8
    assert randomization_test(a, b, seed=13, samples=2000) == 65 / 2001
    assert randomization_test(a, b, seed=14, samples=2000) != 65 / 2001
    # The least p of samples is 1 of one more.
    assert randomization_test(np.ones(40), np.zeros(40), seed=1, samples=3000) == 1 / 3001


@both_tests
@SETTINGS
@given(ab=SCORES)
def test_properties_of_p(test, ab):
    a, b = ab
    p = test(a, b)
    assert 0 < p <= 1
    assert test(b, a) == p
    assert test(a + 3, b + 3) == p
    assert test(a * 4, b * 4) == p
    assert test(a, a) == 1


@pytest.mark.parametrize("queries", [2, 30, 5000])
@pytest.mark.parametrize("shift", [0.0, 0.2, 2.0])
def test_t_test_and_effect_size_are_those_of_pairs(queries, shift):
    a, b = scores(queries, seed=queries + 1, shift=shift)
    expected = stats.ttest_rel(a, b)
    p = max(expected.pvalue, np.finfo(float).tiny)
    assert paired_t_test(a, b) == pytest.approx(p, rel=1e-8)
    assert effect_size(a, b) == pytest.approx(expected.statistic / math.sqrt(queries))


@pytest.mark.parametrize(
    ("a", "t_test", "effect"),
    [
        ([], 1, 0),
        ([0.5], 1, 0),
        ([0, 0, 0], 1, 0),
        ([0.25] * 4, 1 / 8, math.inf),
        ([-0.25] * 4, 1 / 8, -math.inf),
        ([0.1 + 1e-12, 0.1 - 1e-12], 1 / 2, math.inf),  # but for rounding, constant
        ([0.25] * 5000, np.finfo(float).tiny, math.inf),  # underflow
    ],
)
def test_degenerate_cases(a, t_test, effect):
    a = np.array(a, np.float64)
    assert paired_t_test(a, np.zeros_like(a)) == t_test
    assert effect_size(a, np.zeros_like(a)) == effect
    if len(a) < 15:  # where t is undefined, the t-test falls back on this
        assert randomization_test(a, np.zeros_like(a), seed=1) == t_test


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.01, 0.04, 0.03], [3 * 0.01, 2 * 0.03, 2 * 0.03]),  # 0.04 may not pass 0.03
        ([0.5, 0.6], [1, 1]),
        ([0.02, 0.02], [2 * 0.02, 2 * 0.02]),
    ],
)
def test_holm_by_hand(p, adjusted):
    np.testing.assert_allclose(holm(p), adjusted, rtol=1e-12)


def test_queries_undefined_in_both_systems_are_left_out():
    a, b = scores(20, seed=11, shift=0.1)
    gaps = [0, 7, 20]
    with_gaps = np.insert(a, gaps, np.nan), np.insert(b, gaps, np.nan)
    np.testing.assert_array_equal(differences(*with_gaps), a - b)
    for function in (*TESTS.values(), effect_size):
        assert function(*with_gaps) == function(a, b)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([0.1, math.nan], [0.1, 0.2], "Query 1 has a score in one system and NaN in the other"),
        ([0.1, 0.2], [math.nan, 0.2], "Query 0 has a score in one"),
        ([0.1, math.inf], [0.1, 0.2], "must be finite"),
        ([0.1], [0.1, 0.2], r"\(1,\) and \(2,\)"),
        ([[0.1]], [[0.1]], r"\(1, 1\)"),
    ],
)
@pytest.mark.parametrize("function", [*TESTS.values(), effect_size], ids=[*TESTS, "effect"])
def test_scores_that_do_not_pair_are_an_error(function, a, b, message):
    with pytest.raises(ValueError, match=message):
        function(np.array(a), np.array(b))


def test_zero_samples_and_values_that_are_no_probabilities_are_errors():
    with pytest.raises(ValueError, match="samples must be at least 1, but is 0"):
        randomization_test(np.ones(3), np.zeros(3), seed=1, samples=0)
    for p in ([0.5, math.nan], [-0.1], [1.1]):
        with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
            holm(p)


VALUES = np.random.default_rng(1).beta(2, 5, size=800)


def test_an_interval_agrees_with_the_normal_approximation_whatever_the_batch(monkeypatch):
    half = 1.96 * VALUES.std() / math.sqrt(len(VALUES))
    low, high = expected = bootstrap_interval(VALUES, seed=3, samples=4000)
    assert low == pytest.approx(VALUES.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(VALUES.mean() + half, abs=0.1 * half)
    assert bootstrap_interval(VALUES, seed=4, samples=4000) != expected
    monkeypatch.setattr(significance, "_VALUES_PER_BATCH", 7 * len(VALUES))
    assert bootstrap_interval(VALUES, seed=3, samples=4000) == expected


def test_an_interval_leaves_out_queries_without_a_value():
    with_gaps = np.insert(VALUES[:50], [0, 20, 50], np.nan)
    assert bootstrap_interval(with_gaps, seed=3) == bootstrap_interval(VALUES[:50], seed=3)
    for values in ([], [math.nan]):
        assert bootstrap_interval(np.array(values), seed=3) == (0, 0)
    for number in (1, 9):
        assert bootstrap_interval(np.full(number, 0.25), seed=3) == (0.25, 0.25)
