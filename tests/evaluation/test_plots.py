"""Plots: files of the right size with something on them, and no figure left open."""

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
PROFILES = {"falling": np.exp(-np.arange(99) / 8), "all alike": np.ones(99)}
WIDE, USUAL, SQUARE = (1200, 480), (720, 480), (552, 480)
DRAWINGS = {
    "curves": (plots.learning_curves, [HISTORY], WIDE),
    "curves of one epoch": (plots.learning_curves, [HISTORY[:1]], WIDE),
    "scores": (plots.score_density, [SCORES, (0.2, 0.7)], USUAL),
    "scores of an empty grade": (plots.score_density, [[SCORES[0], np.zeros(0)], (0.2,)], USUAL),
    "scores without thresholds": (plots.score_density, [SCORES, ()], USUAL),
    "profiles": (plots.position_profiles, [PROFILES], USUAL),
    "profile of one position": (plots.position_profiles, [{"all alike": np.ones(1)}], USUAL),
    "grades of hits": (plots.grades_of_hits, [SCORES, (0.2, 0.7)], USUAL),
    "hits of equal scores": (plots.grades_of_hits, [[np.ones(3), np.ones(1)], (1.0,)], USUAL),
    "confusion": (plots.confusion, [np.eye(3, dtype=int) * 7], SQUARE),
    "a grade that no pair has": (plots.confusion, [np.array([[5, 1], [0, 0]])], SQUARE),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("draw", "arguments", "size"), DRAWINGS.values(), ids=DRAWINGS)
def test_drawings(draw, arguments, size, tmp_path):
    draw(tmp_path / "plot.png", *arguments)
    header = (tmp_path / "plot.png").read_bytes()[:24]
    assert header.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", header[16:]) == size
    shades = np.unique(image.imread(tmp_path / "plot.png").reshape(-1, 4), axis=0)
    assert len(shades) > 50  # text and lines, not an empty page
    assert plt.get_fignums() == []


def test_more_grades_than_colours_are_all_drawn(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "save_png", lambda figure, _: drawn.append(figure))
    plots.score_density(tmp_path / "plot.png", [np.array([0.5])] * 9, ())
    (figure,) = drawn
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    plt.close(figure)
    assert labels == [f"grade {grade} (1 pairs)" for grade in range(9)]
