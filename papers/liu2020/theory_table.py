"""The table of the constants: each bound beside the largest value that a search finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from tf_smoothclir.papers.laboratory.tables import Table, Written, plain_csv
from tf_smoothclir.papers.liu2020 import theory
from tf_smoothclir.papers.liu2020.theory_search import (
    found_constants,
    found_in_scs,
    found_in_sgd,
    found_in_sosl,
)

_DELTA = 0.05


def _rows(epsilon, thresholds) -> list[tuple[str, str, float, float]]:
    """(constant, formula, bound, largest value found) for each row of the table."""
    loss, scores = theory.sosl(thresholds), theory.scs(epsilon)
    composed, whole = theory.compose(loss, scores), theory.model(epsilon, thresholds)
    maximum, tower = theory.sosl_maximum(thresholds), theory.average_pooling()
    edge, in_loss = found_in_sosl((-0.999, 0.999)), found_in_sosl(thresholds)
    in_scores, in_composed = found_in_scs(epsilon), found_in_scs(epsilon, thresholds)
    in_whole = found_in_scs(epsilon, thresholds, tower=True)
    in_tower = found_constants([lambda x: tf.tanh(x[:, 0])], lambda points: points, 1)
    sgd = {"pairs": 50, "steps": 100, "step_constant": 0.1}
    stability, gap = found_in_sgd(epsilon, thresholds, **sgd, delta=_DELTA)
    beta = theory.sgd_stability(**sgd, constants=whole, loss_maximum=maximum)
    bound = theory.generalization_bound(beta, pairs=50, loss_maximum=maximum, delta=_DELTA)
    smoothness, theorem = "L_l (β_s + L_s β_t) + L_s² β_l", "2β + (4nβ+M) √(ln(1/δ)/2n), δ=0.05"
    return [
        ("SOSL slope, any θ (Prop. 1)", "4", theory.sosl().lipschitz, edge.lipschitz),
        ("SOSL slope L_l", "2 max(1-θ_1, 1+θ_{K-1})", loss.lipschitz, in_loss.lipschitz),
        ("SOSL smoothness β_l (Prop. 1)", "2", loss.smoothness, in_loss.smoothness),
        ("SCS slope (Lemma 2)", "2/ε", theory.scs_of_paper(epsilon), in_scores.lipschitz),
        ("SCS slope L_s, ours", "1/ε", scores.lipschitz, in_scores.lipschitz),
        ("SCS smoothness β_s, ours", "2/ε²", scores.smoothness, in_scores.smoothness),
        ("tower smoothness β_t", "4/(3√3)", tower.smoothness, in_tower.smoothness),
        ("SOSL∘SCS slope", "L_l L_s", composed.lipschitz, in_composed.lipschitz),
        ("SOSL∘SCS smoothness", "L_l β_s + L_s² β_l", composed.smoothness, in_composed.smoothness),
        ("model slope α", "L_l L_s", whole.lipschitz, in_whole.lipschitz),
        ("model smoothness γ", smoothness, whole.smoothness, in_whole.smoothness),
        ("stability, toy SGD (Theorem A.4)", "β(n), n=50, T=100, c=0.1", beta, stability),
        ("gap, toy SGD (Theorem 3)", theorem, bound, gap),
    ]


def theory_table(epsilon: float = 1.0, thresholds: Sequence[float] = (0.2, 0.7)) -> Table:
    """The constants, whether each bound holds against the search."""
    rows = []
    for name, formula, bound, found in _rows(epsilon, thresholds):
        holds = found <= bound * (1 + 1e-6)  # differences of rounded gradients
        rows.append((name, formula, f"{bound:.6g}", f"{found:.6g}", "yes" if holds else "NO"))
    columns = ("constant", "formula", "bound", "largest found", "holds")
    return Table(f"ε = {epsilon:g}, θ = {', '.join(map(str, thresholds))}", columns, tuple(rows))


def write_theory(directory: Path) -> Written:
    """What the experiment shows; nothing is drawn."""
    del directory
    table = theory_table()
    return Written([table], csv=plain_csv(table))
