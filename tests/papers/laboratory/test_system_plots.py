"""Plots of trained systems: Figures 3 to 5 and the gains of the ablation."""

import pytest

from tests.papers.laboratory.fakes import fake_system
from tf_smoothclir.evaluation.compare import Difference
from tf_smoothclir.papers.laboratory import system_plots
from tf_smoothclir.papers.laboratory.system_plots import (
    grade_overlaps,
    plot_gains,
    plot_metric_curves,
    plot_score_densities,
)


def test_overlap_is_the_share_of_scores_common_to_two_grades():
    counts = ((8, 2), (5, 5), (0, 10))  # shares 0.8 0.2, 0.5 0.5, 0 1
    assert grade_overlaps(fake_system("SOSL", (0.1,), counts=counts)) == pytest.approx(
        {"NR and SR": 0.5 + 0.2, "SR and MR": 0 + 0.5, "NR and MR": 0 + 0.2}
    )


def test_overlap_sums_the_pairs_of_all_seeds():
    one, three = fake_system("SOSL", (0.1,)), fake_system("SOSL", (0.1, 0.2, 0.3))
    assert (three.score_counts == 3 * one.score_counts).all()
    assert grade_overlaps(one) == pytest.approx(grade_overlaps(three))


def test_a_grade_without_pairs_overlaps_with_none():
    system = fake_system("SOSL", (0.1,), counts=((1, 1), (0, 0), (1, 1)))
    assert grade_overlaps(system) == {"NR and SR": 0, "SR and MR": 0, "NR and MR": 1}


def draw_densities(path):
    losses = ("sosl", "three_part_l2", "mse")
    plot_score_densities(path, "title", [fake_system(loss, (0.1,), loss=loss) for loss in losses])


def draw_curves(path):
    plot_metric_curves(path, "title", "ε", [fake_system(n, (0.1, 0.2)) for n in ("0", "0.5", "2")])


def difference(system, metric, low, high):
    middle = (low + high) / 2
    statistics = dict.fromkeys(("randomization_p", "holm_p", "t_test_p", "effect_size"), 0.01)
    counts = dict.fromkeys(("queries", "left_out", "wins", "ties", "losses"), 1)
    means = {"mean": 0.5 + middle, "baseline_mean": 0.5, "difference": middle}
    return Difference(metric, system, **means, low=low, high=high, **statistics, **counts)


GAINS = [
    difference("worse", "MAP", -0.03, -0.01),
    difference("better", "MAP", 0.02, 0.05),
    difference("worse", "full/MRR@10", -0.1, 0.01),
    difference("better", "full/MRR@10", 0.1, 0.2),
]


def draw_gains(path):
    plot_gains(path, "title", "Paper", GAINS)


def test_gains_have_a_panel_for_each_metric_and_the_interval_of_each_system(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(system_plots, "save_png", lambda figure, *_, **__: drawn.append(figure))
    draw_gains(tmp_path / "plot")
    panels = drawn[0].axes
    assert [panel.get_title() for panel in panels] == ["MAP", "full/MRR@10"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["worse", "better"]
    for panel, rows in zip(panels, (GAINS[:2], GAINS[2:])):
        (bars,) = panel.containers
        ends = [segment[:, 0].tolist() for segment in bars[2][0].get_segments()]
        assert ends == [pytest.approx([row.low, row.high]) for row in rows]
        assert bars[0].get_xdata() == pytest.approx([row.difference for row in rows])
    system_plots.plt.close(drawn[0])


@pytest.mark.parametrize("draw", [draw_densities, draw_curves, draw_gains])
def test_the_same_plot_gives_the_same_png(draw, tmp_path):
    first, second = tmp_path / "set.v1.png", tmp_path / "again.png"
    draw(first)
    draw(second)
    assert first.read_bytes()[:4] == b"\x89PNG"
    assert first.read_bytes() == second.read_bytes()
