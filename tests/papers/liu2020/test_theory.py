"""The theory of the paper: arithmetic, bounds over any vectors, what the search finds."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import maths
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.papers.liu2020 import theory, theory_search, theory_table
from tf_smoothclir.papers.liu2020.theory import Constants
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

SETTINGS = settings(deadline=None, max_examples=30, derandomize=True)
PAPER = (0.2, 0.7)
epsilons = st.floats(0.01, 2)
# Zero, far below and far above ε, and so large that a plain square overflows even float64.
norms = st.one_of(st.sampled_from([0.0, 1e-200, 1e-30, 1e30, 1e200]), st.floats(1e-6, 1e6))
vectors = st.tuples(st.integers(0, 2**31), norms, st.sampled_from([1, 2, 64]))
thresholds = st.lists(st.integers(-99, 99), min_size=1, max_size=5, unique=True).map(
    lambda values: tuple(value / 100 for value in sorted(values))
)


def vector(seed, norm, dim):
    direction = np.random.default_rng(seed).normal(size=dim)
    return norm * direction / np.linalg.norm(direction)


def gradients(query, document, epsilon, function=tf.identity):
    layer = SmoothCosineSimilarity(epsilon, dtype="float64")
    pair = [tf.constant([query], tf.float64), tf.constant([document], tf.float64)]
    with tf.GradientTape() as tape:
        tape.watch(pair)
        value = function(layer(pair))
    return [gradient.numpy()[0] for gradient in tape.gradient(value, pair)]


# ---- arithmetic -----------------------------------------------------------------------------


def test_constants_by_hand():
    # θ = (0.2, 0.7): the farthest a score can be from its segment is 1 + 0.7, grade 2 at r = -1.
    assert theory.sosl(PAPER) == Constants(2 * (1 + 0.7), 2)
    assert theory.sosl_maximum(PAPER) == (1 + 0.7) ** 2
    # θ = (-0.6, 0.1): 1 + 0.6, grade 0 at r = 1.
    assert theory.sosl((-0.6, 0.1)) == Constants(2 * (1 + 0.6), 2)
    assert (theory.sosl(), theory.sosl_maximum()) == (Constants(4, 2), 4)
    assert theory.scs_of_paper(0.5) == 2 / 0.5
    assert theory.scs(0.5) == Constants(1 / 0.5, 2 / 0.5**2)
    assert theory.scs_gradient_bound(3, 4, 0.5) == pytest.approx(4 / 4.5 / 3.5)
    # tanh'' = -2 tanh (1 - tanh²) is largest at tanh² = 1/3.
    assert theory.average_pooling().smoothness == pytest.approx(2 * math.sqrt(1 / 3) * 2 / 3)

    # g(r) = r² for |r| <= 10 after f(x) = 10 x: 100 x² has slope 200 and second derivative 200.
    # Lemma A.2 of the paper, L_f β_g + L_g β_f, would say 20.
    assert theory.compose(Constants(20, 2), Constants(10, 0)) == Constants(200, 200)
    # L = 4/ε; γ = 4 (2/ε² + 0.77/ε) + 2/ε², here with ε = 1.
    assert theory.model(1.0).lipschitz == 4
    assert theory.model(1.0).smoothness == pytest.approx(4 * (2 + 4 / (3 * math.sqrt(3))) + 2)


def test_bounds_of_sgd_by_hand():
    # γ c = 2 * 0.5 = 1: (1 + 1/1) / (101 - 1) * (2 * 0.5 * 3²)^(1/2) * 16^(1/2), for M = 1.
    steps = {"pairs": 101, "steps": 16}
    found = theory.sgd_stability(
        **steps, step_constant=0.5, constants=Constants(3, 2), loss_maximum=1
    )
    assert found == pytest.approx(2 / 100 * 3 * 4)
    # Loss, L, γ in cents instead of dollars, and a step to match: the same SGD, β in cents.
    cents = theory.sgd_stability(
        **steps, step_constant=0.005, constants=Constants(300, 200), loss_maximum=100
    )
    assert cents == pytest.approx(100 * found)
    # ln(1/δ) = 2 and n = 100: sqrt(2 / 200) = 0.1.
    found = theory.generalization_bound(0.01, pairs=100, loss_maximum=4, delta=math.exp(-2))
    assert found == pytest.approx(2 * 0.01 + (4 * 100 * 0.01 + 4) * 0.1)


# ---- bounds over anything ---------------------------------------------------------------------


@SETTINGS
@given(vectors, norms, epsilons)
def test_scs_gradient_keeps_its_bounds_for_zero_tiny_and_huge_vectors(query, norm, epsilon):
    seed, query_norm, dim = query
    query, document = vector(seed, query_norm, dim), vector(seed + 1, norm, dim)
    by_query, by_document = gradients(query, document, epsilon)
    size = maths.norm(by_query)
    assert np.isfinite(size)
    tight = theory.scs_gradient_bound(maths.norm(query), maths.norm(document), epsilon)
    rounding = 1e-9 / epsilon
    assert size <= tight + rounding
    assert tight <= theory.scs(epsilon).lipschitz < theory.scs_of_paper(epsilon)
    assert math.hypot(size, maths.norm(by_document)) <= theory.scs(epsilon).lipschitz + rounding


@SETTINGS
@given(vectors, st.tuples(norms, norms, norms), epsilons)
def test_scs_is_smooth_in_both_vectors_together(first, others, epsilon):
    seed, norm, dim = first
    sizes = [min(size, 1e6) for size in (norm, *others)]  # beyond, differences are rounding
    query, document, step, other_step = (
        vector(seed + k, size, dim) for k, size in enumerate(sizes)
    )
    before = gradients(query, document, epsilon)
    after = gradients(query + step, document + other_step, epsilon)
    change = math.hypot(*(maths.norm(a - b) for a, b in zip(after, before)))
    distance = math.hypot(maths.norm(step), maths.norm(other_step))
    assert change <= theory.scs(epsilon).smoothness * distance + 1e-9 / epsilon


@SETTINGS
@given(vectors, norms, epsilons, thresholds)
def test_sosl_after_scs_keeps_the_composed_bound(query, norm, epsilon, edges):
    seed, query_norm, dim = query
    loss = SmoothOrdinalSearchLoss(edges, reduction="sum")
    bound = theory.compose(theory.sosl(edges), theory.scs(epsilon)).lipschitz
    for grade in range(loss.num_grades):
        found = gradients(
            vector(seed, query_norm, dim),
            vector(seed + 1, norm, dim),
            epsilon,
            lambda scores, grade=grade: loss([grade], scores),
        )
        assert math.hypot(*map(maths.norm, found)) <= bound * (1 + 1e-9)


# ---- what search finds ------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_search_comes_close_to_the_sharp_bounds_of_scs_and_never_above(epsilon):
    found, bound = theory_search.found_in_scs(epsilon), theory.scs(epsilon)
    assert 0.999 * bound.lipschitz < found.lipschitz <= bound.lipschitz
    assert 0.99 * bound.smoothness < found.smoothness <= bound.smoothness * (1 + 1e-6)
    assert found.lipschitz < 0.51 * theory.scs_of_paper(epsilon)  # the paper's is twice too large


@pytest.mark.parametrize("edges", [PAPER, (-0.6, 0.1), (0.0,)])
def test_search_reaches_the_bounds_of_sosl(edges):
    found, bound = theory_search.found_in_sosl(edges), theory.sosl(edges)
    assert found.lipschitz == pytest.approx(bound.lipschitz)
    assert found.smoothness == pytest.approx(bound.smoothness)
    assert bound.lipschitz <= theory.sosl().lipschitz
    scores = np.linspace(-1, 1, 41)
    losses = [maths.sosl(r, grade, edges) for r in scores for grade in range(len(edges) + 1)]
    assert max(losses) == pytest.approx(theory.sosl_maximum(edges))


def test_search_refutes_a_bound_that_is_too_low():
    # sin(3x) has slope 3 and bends by 9: bounds of 2 and 8 would not pass.
    found = theory_search.found_constants([lambda x: tf.sin(3 * x[:, 0])], lambda points: points, 1)
    assert found.lipschitz == pytest.approx(3, rel=1e-3)
    assert found.smoothness == pytest.approx(9, rel=1e-2)


def test_sgd_on_toy_data_is_measured_and_below_its_bounds():
    sgd = {"pairs": 30, "steps": 40, "step_constant": 0.1}
    stability, gap = theory_search.found_in_sgd(1.0, PAPER, **sgd, delta=0.05)
    maximum = theory.sosl_maximum(PAPER)
    beta = theory.sgd_stability(**sgd, constants=theory.model(1.0, PAPER), loss_maximum=maximum)
    assert 0 < stability < beta
    assert 0 < gap < theory.generalization_bound(beta, pairs=30, loss_maximum=maximum, delta=0.05)


# ---- the table --------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_bound_of_the_table_holds_and_both_files_hold_it(tmp_path):
    table = theory_table.write_theory_table(tmp_path)
    assert len(table.rows) == 13
    for name, _, bound, found, holds in table.rows:
        assert holds == "yes", name
        assert 0 < float(found) <= float(bound) * (1 + 1e-5), name
    with open(tmp_path / "theory.csv", encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [table.columns, *table.rows]
    lines = (tmp_path / "theory.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 + len(table.rows)
    assert all(name in line for line, (name, *_) in zip(lines[2:], table.rows))


def test_a_broken_bound_is_shown_not_hidden(tmp_path, monkeypatch):
    rows = [("a", "1", 1.0, found) for found in (0.5, 1.1, math.nan)]
    monkeypatch.setattr(theory_table, "_rows", lambda *_: rows)
    table = theory_table.write_theory_table(tmp_path)
    assert [row[-1] for row in table.rows] == ["yes", "NO", "NO"]


# ---- arguments --------------------------------------------------------------------------------

SGD = {"pairs": 9, "steps": 9, "step_constant": 1, "loss_maximum": 1, "constants": Constants(1, 1)}
BOUND = {"beta": 0.1, "pairs": 9, "loss_maximum": 1, "delta": 0.1}


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        *(
            (function, {"epsilon": epsilon}, "epsilon must be finite and > 0")
            for function in (theory.scs, theory.scs_of_paper, theory.model)
            for epsilon in (0, -1.0, math.nan, math.inf)
        ),
        (theory.sgd_stability, {**SGD, "pairs": 1}, "pairs must be"),
        (theory.sgd_stability, {**SGD, "steps": 0}, "steps >= 1"),
        (theory.sgd_stability, {**SGD, "step_constant": 0}, "step_constant must be"),
        (theory.sgd_stability, {**SGD, "loss_maximum": -1}, "loss_maximum must be"),
        (theory.sgd_stability, {**SGD, "constants": Constants(0, 1)}, "lipschitz must be"),
        (theory.sgd_stability, {**SGD, "constants": Constants(1, 0)}, "smoothness must be"),
        (theory.generalization_bound, {**BOUND, "delta": 0}, "delta"),
        (theory.generalization_bound, {**BOUND, "delta": 1}, "delta"),
        (theory.generalization_bound, {**BOUND, "pairs": 0}, "pairs must be"),
        (theory.generalization_bound, {**BOUND, "loss_maximum": 0}, "loss_maximum must be"),
    ],
)
def test_arguments_outside_their_range_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(**arguments)
