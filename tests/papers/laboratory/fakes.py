"""Figures of systems and finished cells without any training."""

import json
from pathlib import Path

import numpy as np

from tf_smoothclir.papers.laboratory.cells import TrainingCell
from tf_smoothclir.papers.laboratory.experiment import Study
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS


def study_in(directory, settings=None, **options):
    options = {"seeds": (13,), "name": "tiny", "fingerprint": "fingerprint", **options}
    return Study(settings or RunSettings(), Path(directory), **options)


class FakeCell(TrainingCell):
    def score_counts(self):
        return np.array(((8, 2), (5, 5), (0, 10)))


def fake_system(name, values, *, loss="sosl"):
    """Metrics of a system: the same `values`, one for each seed, for every metric."""
    cell = FakeCell(study_in("."), RunSettings(model=ModelSettings(loss=loss)))
    by_metric = {metric: np.array(values) for metric in METRICS}
    return SystemMetrics(name, (cell,) * len(values), by_metric, dict.fromkeys(METRICS, 7))


def finish(cell, **splits):
    """Writes what a finished run has, with the same value for all metrics of a split."""
    cell.path.mkdir(parents=True)
    content = {split: dict.fromkeys(METRICS, value) for split, value in splits.items()}
    (cell.path / "metrics.json").write_text(json.dumps({**content, "counts": content}))
    (cell.path / "cell.json").write_text("{}")
