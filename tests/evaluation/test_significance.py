"""Significance tests: agreement with scipy, properties, conventions for degenerate cases."""

from __future__ import annotations

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


def by_scipy(a, b):
    """The exact paired randomisation test of scipy."""
    return stats.permutation_test(
        (a, b),
        lambda x, y: np.mean(x - y),
        permutation_type="samples",
        n_resamples=np.inf,
    ).pvalue


@pytest.mark.parametrize("queries", [2, 3, 8, 12])
@pytest.mark.parametrize("shift", [0.0, 0.15])
def test_exact_randomization_agrees_with_scipy(queries, shift):
    a, b = scores(queries, seed=queries, shift=shift)
    assert randomization_test(a, b, seed=1) == pytest.approx(by_scipy(a, b), rel=1e-12)


@SETTINGS
@given(SCORES.filter(lambda ab: 2 <= ab.shape[1] <= 9))
def test_exact_randomization_agrees_with_scipy_with_many_ties(ab):
    assert randomization_test(*ab, seed=1) == pytest.approx(by_scipy(*ab), rel=1e-12)


def test_exact_by_hand():
    # Of the 8 sums +-1 +-2 +-3, those of size 6 or more are 6 and -6; of size 4 or more, 4 of them.
    assert randomization_test(np.array([1, 2, 3]), np.zeros(3), seed=1) == 2 / 8
    assert randomization_test(np.array([-1, 2, 3]), np.zeros(3), seed=1) == 4 / 8


def test_sampling_agrees_with_the_exact_value():
    a, b = scores(14, seed=3, shift=0.08)
    exact = randomization_test(a, b, seed=1, samples=2**14)
    sampled = randomization_test(a, b, seed=1, samples=2**14 - 1)
    assert sampled != exact
    assert sampled == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 2**14))


def test_sampling_agrees_with_the_t_test_for_many_queries():
    a, b = scores(6000, seed=4, shift=0.003)  # more than a block of queries
    p = paired_t_test(a, b)
    assert 0.01 < p < 0.5
    found = randomization_test(a, b, seed=1, samples=20_000)
    assert found == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 20_000) + 0.002)


def test_the_least_sampled_p_is_1_in_samples_plus_1():
    assert randomization_test(np.ones(40), np.zeros(40), seed=1, samples=3000) == 1 / 3001


def test_queries_without_a_difference_leave_the_test_exact():
    a, b = scores(8, seed=5)
    same = np.full(1000, 0.5)
    expected = randomization_test(a, b, seed=1)
    found = randomization_test(np.append(same, a), np.append(same, b), seed=2)
    assert found == pytest.approx(expected, rel=1e-12)


def test_ties_within_rounding_of_float32_count_as_extreme():
    a = np.array([1 / 3, 2 / 3, 1 / 7, 1])
    b = np.array([2 / 3, 1 / 3, 1 / 7 + 1 / 3, 1 / 3])
    # In thirds: -1, 1, -1, 2 add up to 1; no pattern of these has a smaller sum than 1 in size.
    assert randomization_test(a, b, seed=1) == 1
    rounded = [v.astype(np.float32).astype(np.float64) for v in (a, b)]
    assert randomization_test(*rounded, seed=1) == 1


def test_the_same_seed_gives_the_same_p_and_another_seed_another():
    a, b = scores(50, seed=6, shift=0.04)
    first = randomization_test(a, b, seed=1, samples=5000)
    assert randomization_test(a.copy(), b.copy(), seed=1, samples=5000) == first
    assert randomization_test(a, b, seed=2, samples=5000) != first


def test_signs_are_fair_and_independent():
    # Powers of 3: each pattern of signs has a sum of its own.
    sums = significance._random_sums(3.0 ** np.arange(4), 1024, np.random.default_rng(7))
    _, counts = np.unique(sums, return_counts=True)
    assert len(counts) == 16
    # Each is seen 1024 / 16 times, give or take 5 standard deviations.
    assert np.abs(counts - 64).max() < 5 * math.sqrt(1024 * 1 / 16 * 15 / 16)


def test_p_at_a_fixed_seed_is_the_same_on_every_machine():
    a, b = np.arange(40) % 7 / 8, np.arange(40) % 5 / 8
    assert randomization_test(a, b, seed=13, samples=2000) == 65 / 2001


def test_large_test_takes_seconds_and_little_memory():
    a, b = scores(5000, seed=8)
    begin = time.perf_counter()
    randomization_test(a, b, seed=1, samples=100_000)
    assert time.perf_counter() - begin < 20  # 0.7 s on two free cores


@both_tests
@pytest.mark.parametrize("queries", [10, 30])
def test_type_one_error_is_about_5_percent(test, queries):
    generator = np.random.default_rng(queries)
    trials = 1000
    found = [
        test(*generator.normal(size=(2, queries)) + generator.normal(size=queries))
        for _ in range(trials)
    ]
    share = np.mean(np.array(found) <= 0.05)
    assert share == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / trials))


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
def test_t_test_is_that_of_pairs(queries, shift):
    a, b = scores(queries, seed=queries + 1, shift=shift)
    expected = max(stats.ttest_rel(a, b).pvalue, np.finfo(float).tiny)
    assert paired_t_test(a, b) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("a", "t_test", "effect"),
    [
        ([], 1, 0),
        ([0.5], 1, 0),
        ([0, 0, 0], 1, 0),
        ([0.25] * 4, 1 / 8, math.inf),
        ([-0.25] * 4, 1 / 8, -math.inf),
        ([0.1 + 1e-12, 0.1 - 1e-12], 1 / 2, math.inf),
        ([0.25] * 5000, np.finfo(float).tiny, math.inf),
    ],
    ids=["no query", "one query", "equal", "constant", "constant loss", "rounding", "underflow"],
)
def test_degenerate_cases(a, t_test, effect):
    a = np.array(a, np.float64)
    assert paired_t_test(a, np.zeros_like(a)) == t_test
    assert effect_size(a, np.zeros_like(a)) == effect
    if len(a) < 15:  # where t is undefined, the t-test falls back on this
        assert randomization_test(a, np.zeros_like(a), seed=1) == t_test


def test_effect_size_by_hand():
    # Differences 0, 1, 2: mean 1, standard deviation 1 (divisor n - 1).
    assert effect_size(np.array([1, 1, 1.0]), np.array([1, 0, -1.0])) == pytest.approx(1 / 1)
    assert effect_size(np.array([1, 0, -1.0]), np.array([1, 1, 1.0])) == pytest.approx(-1 / 1)


def test_effect_size_is_t_divided_by_the_root_of_the_number_of_queries():
    a, b = scores(25, seed=9, shift=0.1)
    assert effect_size(a, b) == pytest.approx(stats.ttest_rel(a, b).statistic / math.sqrt(25))


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


@SETTINGS
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_properties_of_holm(p):
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1, len(p) * np.array(p))).all()  # Bonferroni
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    np.testing.assert_array_equal(holm(p[::-1]), adjusted[::-1])


@pytest.mark.parametrize("p", [[0.5, math.nan], [-0.1], [1.1]])
def test_holm_refuses_values_that_are_not_probabilities(p):
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        holm(p)


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


def test_zero_samples_are_an_error():
    with pytest.raises(ValueError, match="samples must be at least 1, but is 0"):
        randomization_test(np.ones(3), np.zeros(3), seed=1, samples=0)


VALUES = np.random.default_rng(1).beta(2, 5, size=800)


def test_the_same_seed_gives_the_same_interval_whatever_the_batch(monkeypatch):
    expected = bootstrap_interval(VALUES, seed=3)
    monkeypatch.setattr(significance, "_VALUES_PER_BATCH", 7 * len(VALUES))
    assert (
        bootstrap_interval(VALUES.copy(), seed=3) == expected != bootstrap_interval(VALUES, seed=4)
    )


def test_an_interval_agrees_with_the_normal_approximation():
    half = 1.96 * VALUES.std() / math.sqrt(len(VALUES))
    low, high = bootstrap_interval(VALUES, seed=3, samples=4000)
    assert low == pytest.approx(VALUES.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(VALUES.mean() + half, abs=0.1 * half)


def test_queries_without_a_value_are_not_drawn():
    with_gaps = np.insert(VALUES[:50], [0, 20, 50], np.nan)
    assert bootstrap_interval(with_gaps, seed=3) == bootstrap_interval(VALUES[:50], seed=3)


@pytest.mark.parametrize(
    ("values", "interval"),
    [([], (0, 0)), ([math.nan], (0, 0)), ([0.25], (0.25, 0.25)), ([0.25] * 9, (0.25, 0.25))],
)
def test_no_query_one_query_and_equal_ones(values, interval):
    assert bootstrap_interval(np.array(values), seed=3) == interval
