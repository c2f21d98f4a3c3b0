"""Plots of learning curves, of gradient norms, of few and many judgments, without training."""

import dataclasses
import types

import numpy as np
import pytest

from tests.papers.laboratory.fakes import fake_system
from tf_smoothclir.evaluation import plots
from tf_smoothclir.papers.laboratory import curve_plots
from tf_smoothclir.training.histograms import bin_of, lower_edge


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved."""
    figures = []
    save = plots.save_png

    def keep(figure, path, **options):
        figures.append(figure)
        save(figure, path, **options)

    monkeypatch.setattr(curve_plots, "save_png", keep)
    monkeypatch.setattr(plots.plt, "close", lambda figure: None)
    yield figures
    monkeypatch.undo()
    plots.plt.close("all")


def with_history(system, *epochs):
    cell = types.SimpleNamespace(**vars(system.cells[0]), history=lambda: list(epochs))
    return dataclasses.replace(system, cells=(cell,))


def test_gradient_norms_of_all_epochs_and_losses_of_each(drawn, tmp_path):
    first = {"epoch": 1, "loss": 0.5, "gradient_norm_counts": {"-4": 6, "-2": 1}}
    second = {"epoch": 2, "loss": 0.25, "gradient_norm_counts": {"-4": 1}}
    systems = [
        with_history(fake_system("ε = 0, clipped", [0.5]), first, second),
    ]
    curve_plots.plot_gradients(tmp_path / "plot.png", "title", systems)
    norms, losses = drawn[0].axes
    (stairs,) = norms.patches
    np.testing.assert_allclose(stairs.get_data().values, [7 / 8, 0, 1 / 8])
    np.testing.assert_allclose(stairs.get_data().edges, [2**-2, 2**-1.5, 2**-1, 2**-0.5])
    assert [line.get_ydata().tolist() for line in losses.lines] == [[0.5, 0.25]]
    assert (tmp_path / "plot.png").stat().st_size > 0


def test_every_seed_has_a_learning_curve_and_a_ring_at_its_best_epoch(drawn, tmp_path):
    def epochs(*values):
        return [
            {"epoch": n, "loss": 1 / n, "validation": {"NDCG@5": value}}
            for n, value in enumerate(values, start=1)
        ]

    two = fake_system("pooling", [0.5, 0.5])
    cells = [
        types.SimpleNamespace(**vars(cell), history=lambda found=found: found)
        for cell, found in zip(two.cells, (epochs(0.3, 0.6, 0.5), epochs(0.4, 0.5, 0.6)))
    ]
    fewer = with_history(fake_system("LSTM", [0.5]), *epochs(0.2, 0.3))
    systems = [dataclasses.replace(two, cells=tuple(cells)), fewer]
    curve_plots.plot_learning(tmp_path / "plot.png", "title", systems)
    losses, validation = drawn[0].axes
    assert [line.get_ydata().tolist() for line in losses.lines] == [
        [1, 1 / 2, 1 / 3],
        [1, 1 / 2, 1 / 3],
        [1, 1 / 2],
    ]
    curves, rings = validation.lines[::2], validation.lines[1::2]
    assert [line.get_ydata().tolist() for line in curves] == [
        [0.3, 0.6, 0.5],
        [0.4, 0.5, 0.6],
        [0.2, 0.3],
    ]
    at = [(*ring.get_xdata(), *ring.get_ydata()) for ring in rings]
    assert at == [(2, 0.6), (3, 0.6), (2, 0.3)]
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["pooling", "LSTM"]


def test_each_loss_is_a_line_over_the_related_documents(drawn, tmp_path):
    systems = [
        fake_system(f"{loss}, {mean}", [value])
        for mean, value in (("0.5", 0.1), ("all", 0.2))
        for loss in ("SOSL", "MSE")
    ]
    systems = systems[:3]  # the run of MSE with all has failed
    curve_plots.plot_related(tmp_path / "plot.png", "title", systems)
    for panel in drawn[0].axes:
        assert [label.get_text() for label in panel.get_xticklabels()] == ["0.5", "all"]
        assert [line.get_ydata().tolist() for line in panel.lines] == [[0.1, 0.2], [0.1]]


def test_each_retriever_is_a_line_over_the_training_queries(drawn, tmp_path):
    systems = [
        fake_system(f"{name}, {number}", [value])
        for number, value in (("500", 0.1), ("all", 0.2))
        for name in ("towers", "table")
    ]
    curve_plots.plot_queries(tmp_path / "plot.png", "title", systems)
    assert len(drawn[0].axes) == 3
    for panel in drawn[0].axes:
        assert panel.get_xlabel() == "training queries"
        assert [label.get_text() for label in panel.get_xticklabels()] == ["500", "all"]
        assert [line.get_ydata().tolist() for line in panel.lines] == [[0.1, 0.2]] * 2


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, -60), (1e-30, -60), (1.0, 0), (1.5, 1), (2.0, 2), (0.4, -3)]
)
def test_bin_of(value, expected):
    assert bin_of(value) == expected
    if expected > -60:
        assert lower_edge(expected) <= value < lower_edge(expected + 1)
