"""The gap between training and test loss, by hand arithmetic and over a real study."""

import types

import numpy as np
import pytest

from tf_smoothclir.papers.laboratory.cells import Cell
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.papers.liu2020 import generalization, theory
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings

THRESHOLDS = (0.0, 0.5)
# Four bins of [-1, 1], with middles -0.75, -0.25, 0.25, 0.75.
COUNTS = ((2, 0, 1, 0), (0, 1, 0, 0), (0, 0, 0, 1))
# 0.25 lies 0.25 above the segment of grade 0, -0.25 lies 0.25 below that of grade 1.
TRAINING = (2 * 0 + 0.25**2 + 0.25**2 + 0) / 5
# 0.1 above grade 0's, 0.3 above grade 1's, 0.4 below grade 2's, right.
TEST = (0.1**2 + 0.3**2 + 0.4**2 + 0) / 4


@pytest.fixture(name="system")
def fixture_system(tmp_path):
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    run.write_text("q1 Q0 d1 1 0.8 x\nq1 Q0 d2 2 0.1 x\nq2 Q0 d1 1 0.1 x\nq2 Q0 d2 2 -0.9 x\n")
    qrels.write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\nq2 0 d2 0\n")
    settings = RunSettings(
        model=ModelSettings(thresholds=THRESHOLDS), training=TrainingSettings(epochs=3)
    )
    cell = types.SimpleNamespace(
        cell=Cell(settings, "fake", "fingerprint"),
        score_counts=lambda: np.array(COUNTS),
        trec_files=lambda split: {"test": (run, qrels)}[split],
    )
    return SystemMetrics("5", (cell, cell), {}, {}, np.ones(2), np.ones(2))


def test_losses_are_those_of_the_scores_by_grade(system):
    gap = generalization.gap_of(system)
    assert gap.pairs == 5
    assert gap.training == pytest.approx(TRAINING)
    assert gap.test == pytest.approx(TEST)


def test_the_bound_is_that_of_sgd_over_as_many_epochs(system):
    maximum = (1 + 0.5) ** 2  # grade 0 at score 1 has 1², grade 2 at score -1 has 1.5²
    beta = theory.sgd_stability(
        pairs=5,
        steps=3 * 5,
        step_constant=0.01,
        constants=theory.model(1.0, THRESHOLDS),
        loss_maximum=maximum,
    )
    expected = theory.generalization_bound(beta, pairs=5, loss_maximum=maximum, delta=0.05)
    assert generalization.gap_of(system).bound == pytest.approx(expected)


def test_the_table_and_the_plot_show_the_gap(system, tmp_path):
    gap = generalization.gap_of(system)
    table = generalization.gap_table("queries", [gap])
    shown = f"{TRAINING:.4f} | {TEST:.4f} | {TEST - TRAINING:.4f}"
    assert f"| 5 | 5 | {shown} |" in table.markdown()
    generalization.plot_gaps(tmp_path / "gap.png", "title", [gap, gap])
    assert (tmp_path / "gap.png").read_bytes()[:4] == b"\x89PNG"
