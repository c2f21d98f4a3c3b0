"""Results and finished cells that no training has made."""

from __future__ import annotations

import json
import types

import numpy as np

from tf_smoothclir.experiments.cells import Cell
from tf_smoothclir.experiments.scores import Result
from tf_smoothclir.settings.run import METRICS, ModelSettings, RunSettings


def fake_result(name, values, *, loss="sosl", counts=((8, 2), (5, 5), (0, 10))):
    """A result with the same `values`, one a seed, for each metric."""
    settings = RunSettings(model=ModelSettings(loss=loss))
    cell = types.SimpleNamespace(
        cell=Cell(settings, "fake", "fingerprint"), score_counts=lambda: np.array(counts)
    )
    figures = {metric: np.array(values) for metric in METRICS}
    costs = np.ones(len(values)), np.full(len(values), 500.0)
    return Result(name, (cell,) * len(values), figures, dict.fromkeys(METRICS, 7), *costs)


def finish(cell, *, validation, test):
    """Writes what a finished cell has, with one value for all metrics of a split."""
    cell.path.mkdir(parents=True)
    figures = {"validation": validation, "test": test}
    content = {split: dict.fromkeys(METRICS, value) for split, value in figures.items()}
    (cell.path / "metrics.json").write_text(json.dumps(content))
    (cell.path / "cell.json").write_text("{}")
