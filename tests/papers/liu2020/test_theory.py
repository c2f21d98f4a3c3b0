"""The theory of the paper: arithmetic, what the search finds, the gap on a real study."""

import math
import types

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.papers.laboratory.cells import Cell
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.papers.liu2020 import generalization, theory, theory_search, theory_table
from tf_smoothclir.papers.liu2020.theory import Constants
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings

PAPER = (0.2, 0.7)


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
    sgd = {"pairs": 101, "steps": 16, "step_constant": 0.5, "loss_maximum": 1}
    found = theory.sgd_stability(**sgd, constants=Constants(3, 2))
    assert found == pytest.approx(2 / 100 * 3 * 4)
    # Loss, L, γ in cents instead of dollars, and a step to match: the same SGD, β in cents.
    in_cents = {**sgd, "step_constant": 0.005, "loss_maximum": 100}
    cents = theory.sgd_stability(**in_cents, constants=Constants(300, 200))
    assert cents == pytest.approx(100 * found)
    # ln(1/δ) = 2 and n = 100: sqrt(2 / 200) = 0.1.
    found = theory.generalization_bound(0.01, pairs=100, loss_maximum=4, delta=math.exp(-2))
    assert found == pytest.approx(2 * 0.01 + (4 * 100 * 0.01 + 4) * 0.1)
    with pytest.raises(ValueError, match="pairs must be >= 2"):
        theory.sgd_stability(**{**sgd, "pairs": 1}, constants=Constants(3, 2))
    with pytest.raises(ValueError, match="pairs must be >= 1 and 0 < delta < 1"):
        theory.generalization_bound(0.01, pairs=100, loss_maximum=4, delta=1)
    for epsilon in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon must be finite and > 0"):
            theory.scs(epsilon)


def test_search_comes_close_to_the_sharp_bounds_and_never_above():
    for edges in (PAPER, (-0.6, 0.1)):
        found, bound = theory_search.found_in_sosl(edges), theory.sosl(edges)
        assert found.lipschitz == pytest.approx(bound.lipschitz)
        assert found.smoothness == pytest.approx(bound.smoothness)
    for epsilon in (0.05, 1.0):
        found, bound = theory_search.found_in_scs(epsilon), theory.scs(epsilon)
        assert 0.999 * bound.lipschitz < found.lipschitz <= bound.lipschitz
        assert 0.99 * bound.smoothness < found.smoothness <= bound.smoothness * (1 + 1e-6)
        assert found.lipschitz < 0.51 * theory.scs_of_paper(epsilon)  # half the paper's
    # sin(3x) has slope 3 and bends by 9: bounds of 2 and 8 would not pass.
    found = theory_search.found_constants([lambda x: tf.sin(3 * x[:, 0])], lambda points: points, 1)
    assert found.lipschitz == pytest.approx(3, rel=1e-3)
    assert found.smoothness == pytest.approx(9, rel=1e-2)


@pytest.mark.slow
def test_every_bound_of_the_table_holds():
    table = theory_table.theory_table()
    assert len(table.rows) == 13
    for name, _, bound, found, holds in table.rows:
        assert holds == "yes", name
        assert 0 < float(found) <= float(bound) * (1 + 1e-5), name


def test_a_broken_bound_is_shown_not_hidden(monkeypatch):
    rows = [("a", "1", 1.0, found) for found in (0.5, 1.1, math.nan)]
    monkeypatch.setattr(theory_table, "_rows", lambda *_: rows)
    table = theory_table.theory_table()
    assert [row[-1] for row in table.rows] == ["yes", "NO", "NO"]


def test_the_gap_is_that_of_the_scores_by_grade_and_is_shown(tmp_path):
    thresholds = (0.0, 0.5)
    # Four bins of [-1, 1], with middles -0.75, -0.25, 0.25, 0.75.
    counts = ((2, 0, 1, 0), (0, 1, 0, 0), (0, 0, 0, 1))
    # 0.25 lies 0.25 above the segment of grade 0, -0.25 lies 0.25 below that of grade 1.
    training = (2 * 0 + 0.25**2 + 0.25**2 + 0) / 5
    # 0.1 above grade 0's, 0.3 above grade 1's, 0.4 below grade 2's, right.
    test = (0.1**2 + 0.3**2 + 0.4**2 + 0) / 4
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    run.write_text("q1 Q0 d1 1 0.8 x\nq1 Q0 d2 2 0.1 x\nq2 Q0 d1 1 0.1 x\nq2 Q0 d2 2 -0.9 x\n")
    qrels.write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\nq2 0 d2 0\n")
    settings = changed(RunSettings(), {"thresholds": thresholds, "epochs": 3})
    cell = types.SimpleNamespace(
        cell=Cell(settings, "fake", "fingerprint"),
        score_counts=lambda: np.array(counts),
        trec_files=lambda split: {"test": (run, qrels)}[split],
    )
    gap = generalization.gap_of(SystemMetrics("5", (cell, cell), {}, {}, np.ones(2), np.ones(2)))
    assert gap.training == pytest.approx(training)
    assert gap.test == pytest.approx(test)
    maximum = (1 + 0.5) ** 2  # grade 0 at score 1 has 1², grade 2 at score -1 has 1.5²
    sgd = {"pairs": 5, "steps": 3 * 5, "step_constant": 0.01, "loss_maximum": maximum}
    beta = theory.sgd_stability(**sgd, constants=theory.model(1.0, thresholds))
    bound = theory.generalization_bound(beta, pairs=5, loss_maximum=maximum, delta=0.05)
    assert gap.bound == pytest.approx(bound)  # that of SGD over as many epochs
    table = generalization.gap_table("queries", [gap])
    shown = f"{training:.4f} | {test:.4f} | {test - training:.4f}"
    assert f"| 5 | 5 | {shown} |" in table.markdown()
    generalization.plot_gaps(tmp_path / "gap.png", "title", [gap, gap])
    assert (tmp_path / "gap.png").read_bytes()[:4] == b"\x89PNG"
