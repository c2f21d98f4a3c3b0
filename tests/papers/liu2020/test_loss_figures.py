"""Figures 1 and 2: plotted values against the slow oracle, the files, no figure left open."""

import csv

import numpy as np
import pytest
from matplotlib import image
from matplotlib import pyplot as plt

from tests.oracles import maths
from tf_smoothclir.papers.liu2020 import loss_figures

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("error::UserWarning")]  # of fonts
FIGURES = {"figure1": loss_figures.figure1, "figure2": loss_figures.figure2}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    directory = tmp_path_factory.mktemp("figures")
    return {name: draw(directory) for name, draw in FIGURES.items()}


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", FIGURES)
def test_drawing_gives_two_files_and_leaves_no_figure_open(name, drawn):
    assert [path.name for path in drawn[name]] == [f"{name}.png", f"{name}.csv"]
    pixels = image.imread(drawn[name][0])
    assert len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 50
    assert plt.get_fignums() == []


def test_figure1_plots_the_derivative_of_the_oracle(drawn):
    rows = [row for row in read(drawn["figure1"][1]) if row["plot"] == "derivative by x1"]
    assert {float(row["epsilon"]) for row in rows} == set(loss_figures.EPSILONS)
    at_zero = [row for row in rows if (float(row["x1"]), float(row["x2"])) == (0, 0)]
    assert len(at_zero) == len(loss_figures.EPSILONS)
    for row in (*rows[:: len(rows) // 200], *at_zero):
        *point, epsilon, value = (float(row[key]) for key in ("x1", "x2", "epsilon", "value"))
        expected = maths.smooth_cosine_gradient(point, loss_figures.DOCUMENT, epsilon)[0]
        assert value == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(("name", "oracle"), [("SOSL", maths.sosl), ("MSE", maths.mse)])
def test_figure2_plots_the_oracle_over_the_whole_range(name, oracle, drawn):
    rows = [row for row in read(drawn["figure2"][1]) if row["loss"] == name]
    assert len(rows) == 3 * 201
    scores = [float(row["score"]) for row in rows]
    assert (min(scores), max(scores)) == (-1, 1)
    for row in rows:
        expected = oracle(float(row["score"]), int(row["grade"]), (0.0, 0.5))
        assert float(row["value"]) == pytest.approx(expected, rel=1e-4, abs=1e-6)
