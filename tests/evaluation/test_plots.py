"""Plots: files of the right size with something on them, and no figure left open."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from matplotlib import image
from matplotlib import pyplot as plt

from tf_smoothclir.evaluation import plots
from tf_smoothclir.settings.training import METRICS

HISTORY = [
    {
        "epoch": epoch,
        "loss": 1 / epoch,
        "validation": {**dict.fromkeys(METRICS, 0.1 * epoch), "full/MRR@10": 0.5},
    }
    for epoch in (1, 2, 3)
]
SCORES = [np.linspace(-0.5, 0.2, 50), np.linspace(0.1, 0.8, 20), np.array([0.9])]
DRAWINGS = {
    "curves": (lambda path: plots.learning_curves(path, HISTORY), (1200, 480)),
    "curves of one epoch": (lambda path: plots.learning_curves(path, HISTORY[:1]), (1200, 480)),
    "scores": (lambda path: plots.score_density(path, SCORES, (0.2, 0.7)), (720, 480)),
    "scores of an empty grade": (
        lambda path: plots.score_density(path, [SCORES[0], np.zeros(0)], (0.2,)),
        (720, 480),
    ),
    "scores without thresholds": (lambda path: plots.score_density(path, SCORES, ()), (720, 480)),
    "profiles": (
        lambda path: plots.position_profiles(
            path, {"falling": np.exp(-np.arange(99) / 8), "all alike": np.ones(99)}
        ),
        (720, 480),
    ),
    "profile of one position": (
        lambda path: plots.position_profiles(path, {"all alike": np.ones(1)}),
        (720, 480),
    ),
    "grades of hits": (
        lambda path: plots.grades_of_hits(path, SCORES, (0.2, 0.7)),
        (720, 480),
    ),
    "grades of hits whose scores are all equal": (
        lambda path: plots.grades_of_hits(path, [np.ones(3), np.ones(1)], (1.0,)),
        (720, 480),
    ),
    "confusion": (lambda path: plots.confusion(path, np.eye(3, dtype=int) * 7), (552, 480)),
    "confusion with a grade that no pair has": (
        lambda path: plots.confusion(path, np.array([[5, 1], [0, 0]])),
        (552, 480),
    ),
}


def size_of(path):
    header = path.read_bytes()[:24]
    assert header.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", header[16:])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("draw", "size"), DRAWINGS.values(), ids=DRAWINGS.keys())
def test_drawings(draw, size, tmp_path):
    draw(tmp_path / "plot.png")
    assert size_of(tmp_path / "plot.png") == size
    shades = np.unique(image.imread(tmp_path / "plot.png").reshape(-1, 4), axis=0)
    assert len(shades) > 50  # text and lines, not an empty page
    assert plt.get_fignums() == []


@pytest.mark.parametrize("grade", range(9))
def test_more_grades_than_colours_are_all_drawn(grade, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "save_png", lambda figure, _: drawn.append(figure))
    scores = [np.zeros(0)] * 9
    scores[grade] = np.array([0.5])
    plots.score_density(tmp_path / "plot.png", scores, ())
    (figure,) = drawn
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    plt.close(figure)
    assert labels == [f"grade {grade} (1 pairs)"]
