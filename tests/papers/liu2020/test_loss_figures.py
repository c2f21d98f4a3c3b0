"""Figures 1 and 2: plotted values against the slow oracle, the files, no figure left open."""

import csv

import pytest
from matplotlib import pyplot as plt

from tests.oracles import maths
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.reproduce import WRITERS
from tf_smoothclir.papers.laboratory.tables import Page
from tf_smoothclir.papers.liu2020 import figures

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("error::UserWarning")]  # of fonts


def rows_of(name, directory):
    """The plotted values; checks that they are drawn."""
    written = WRITERS[name](Page(EXPERIMENTS[name], None, directory))
    (picture,) = written.plots
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert plt.get_fignums() == []
    return list(csv.DictReader(written.csv.splitlines()))


def test_figure1_plots_the_derivative_of_the_oracle(tmp_path):
    rows = [row for row in rows_of("figure1", tmp_path) if row["plot"] == "derivative by x1"]
    assert {float(row["epsilon"]) for row in rows} == set(figures.EPSILONS)
    at_zero = [row for row in rows if (float(row["x1"]), float(row["x2"])) == (0, 0)]
    assert len(at_zero) == len(figures.EPSILONS)
    for row in (*rows[:: len(rows) // 200], *at_zero):
        *point, epsilon, value = (float(row[key]) for key in ("x1", "x2", "epsilon", "value"))
        expected = maths.smooth_cosine_gradient(point, figures.DOCUMENT, epsilon)[0]
        assert value == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_figure2_plots_the_oracles_over_the_whole_range(tmp_path):
    rows = rows_of("figure2", tmp_path)
    for name, oracle in (("SOSL", maths.sosl), ("MSE", maths.mse)):
        of_loss = [row for row in rows if row["loss"] == name]
        scores = [float(row["score"]) for row in of_loss]
        assert (len(scores), min(scores), max(scores)) == (3 * 201, -1, 1)
        for row, score in zip(of_loss, scores, strict=True):
            expected = oracle(score, int(row["grade"]), (0.0, 0.5))
            assert float(row["value"]) == pytest.approx(expected, rel=1e-4, abs=1e-6)
