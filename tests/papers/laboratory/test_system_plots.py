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


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Shares 0.8 0.2, 0.5 0.5, 0 1, of the pairs of all seeds.
        (((8, 2), (5, 5), (0, 10)), (0.5 + 0.2, 0 + 0.5, 0 + 0.2)),
        (((1, 1), (0, 0), (1, 1)), (0, 0, 1)),  # no pair of grade 1
    ],
)
@pytest.mark.parametrize("seeds", [1, 3])
def test_overlap_is_the_share_of_scores_common_to_two_grades(counts, expected, seeds):
    found = grade_overlaps(fake_system("SOSL", (0.1,) * seeds, counts=counts))
    names = ("NR and SR", "SR and MR", "NR and MR")
    assert found == pytest.approx(dict(zip(names, expected)))


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


def test_gains_have_a_panel_for_each_metric_and_the_interval_of_each_system(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(system_plots, "save_png", lambda figure, *_, **__: drawn.append(figure))
    plot_gains(tmp_path / "plot", "title", "Paper", GAINS)
    panels = drawn[0].axes
    assert [panel.get_title() for panel in panels] == ["MAP", "full/MRR@10"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["worse", "better"]
    for panel, rows in zip(panels, (GAINS[:2], GAINS[2:])):
        (bars,) = panel.containers
        ends = [segment[:, 0].tolist() for segment in bars[2][0].get_segments()]
        assert ends == [pytest.approx([row.low, row.high]) for row in rows]
        assert bars[0].get_xdata() == pytest.approx([row.difference for row in rows])
    system_plots.plt.close(drawn[0])


def test_the_same_plot_gives_the_same_png(tmp_path):
    losses = [fake_system(loss, (0.1,), loss=loss) for loss in ("sosl", "three_part_l2", "mse")]
    epsilons = [fake_system(name, (0.1, 0.2)) for name in ("0", "0.5", "2")]
    for number in (1, 2):
        plot_score_densities(tmp_path / f"densities.{number}.png", "title", losses)
        plot_metric_curves(tmp_path / f"curves.{number}.png", "title", "ε", epsilons)
    for name in ("densities", "curves"):
        first, second = ((tmp_path / f"{name}.{number}.png").read_bytes() for number in (1, 2))
        assert first[:4] == b"\x89PNG"
        assert first == second
