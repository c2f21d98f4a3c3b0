"""Plots of trained systems and of their training, without training."""

import dataclasses
import types

import numpy as np
import pytest

from tests.papers.laboratory.fakes import fake_system
from tf_smoothclir.evaluation import plots
from tf_smoothclir.evaluation.compare import Difference
from tf_smoothclir.papers.laboratory import curve_plots, system_plots
from tf_smoothclir.training.checkpoints import bin_of


@pytest.fixture
def panels(monkeypatch):
    """`panels(plot, ...)` draws, and returns the panels of the figure."""
    figures = []
    for module in (curve_plots, system_plots):
        monkeypatch.setattr(module, "save_png", lambda figure, *_, **__: figures.append(figure))

    def draw(plot, *arguments):
        plot("plot.png", "title", *arguments)
        return figures[0].axes

    yield draw
    plots.plt.close("all")


def system_of(name, *histories):
    system = fake_system(name, [0.5] * len(histories))
    cells = [
        types.SimpleNamespace(**vars(cell), history=lambda history=history: history)
        for cell, history in zip(system.cells, histories)
    ]
    return dataclasses.replace(system, cells=tuple(cells))


def ys(lines):
    return [line.get_ydata().tolist() for line in lines]


def test_gradient_norms_of_all_epochs_and_losses_of_each(panels):
    first = {"epoch": 1, "loss": 0.5, "gradient_norm_counts": {"-4": 6, "-2": 1}}
    second = {"epoch": 2, "loss": 0.25, "gradient_norm_counts": {"-4": 1}}
    system = system_of("ε = 0, clipped", [first, second])
    norms, losses = panels(curve_plots.plot_gradients, [system])
    (stairs,) = norms.patches
    np.testing.assert_allclose(stairs.get_data().values, [7 / 8, 0, 1 / 8])
    np.testing.assert_allclose(stairs.get_data().edges, [2**-2, 2**-1.5, 2**-1, 2**-0.5])
    assert ys(losses.lines) == [[0.5, 0.25]]
    assert [bin_of(norm) for norm in (0, 1e-30, 0.4, 1, 1.5, 2)] == [-60, -60, -3, 0, 1, 2]


def test_every_seed_has_a_learning_curve_and_a_ring_at_its_best_epoch(panels):
    values = [0.3, 0.6, 0.5], [0.2, 0.3]
    histories = [
        [
            {"epoch": n, "loss": 1 / n, "validation": {"NDCG@5": v}}
            for n, v in enumerate(of, start=1)
        ]
        for of in values
    ]
    losses, validation = panels(curve_plots.plot_learning, [system_of("pooling", *histories)])
    assert ys(losses.lines) == [[1, 1 / 2, 1 / 3], [1, 1 / 2]]
    assert ys(validation.lines[::2]) == [*values]
    at = [(*ring.get_xdata(), *ring.get_ydata()) for ring in validation.lines[1::2]]
    assert at == [(2, 0.6), (2, 0.3)]


def test_each_system_is_a_line_over_the_related_documents(panels):
    systems = [
        fake_system(f"{name}, {number}", [value])
        for number, value in (("0.5", 0.1), ("all", 0.2))
        for name in ("SOSL", "MSE")
    ]
    # The run of MSE with all has failed.
    for panel in panels(curve_plots.plot_related, systems[:3]):
        assert [label.get_text() for label in panel.get_xticklabels()] == ["0.5", "all"]
        assert ys(panel.lines) == [[0.1, 0.2], [0.1]]


def test_overlap_is_the_share_of_scores_common_to_two_grades():
    def overlaps(*counts):
        return [*system_plots.grade_overlaps(fake_system("", (0.1, 0.2), counts=counts)).values()]

    # Shares 0.8 0.2, 0.5 0.5, 0 1, of the pairs of all seeds.
    assert overlaps((8, 2), (5, 5), (0, 10)) == pytest.approx([0.5 + 0.2, 0 + 0.5, 0 + 0.2])
    assert overlaps((1, 1), (0, 0), (1, 1)) == pytest.approx([0, 0, 1])  # no pair of grade 1


def test_other_plots_are_drawn(tmp_path):
    losses = [fake_system(loss, (0.1,), loss=loss) for loss in ("sosl", "three_part_l2", "mse")]
    epsilons = [fake_system(name, (0.1, 0.2)) for name in ("0", "0.5", "2")]
    names = [field.name for field in dataclasses.fields(Difference)]
    gain = Difference(**{**dict.fromkeys(names, 0.01), "metric": "MAP", "system": "better"})
    system_plots.plot_score_densities(tmp_path / "densities", "title", losses)
    system_plots.plot_metric_curves(tmp_path / "curves", "title", "ε", epsilons)
    system_plots.plot_gains(tmp_path / "gains", "title", "Paper", [gain])
    assert [path.read_bytes()[:4] for path in tmp_path.iterdir()] == [b"\x89PNG"] * 3
