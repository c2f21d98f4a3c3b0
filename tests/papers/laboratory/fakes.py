"""Metrics of systems and finished cells without any training."""

import json
import types

import numpy as np

from tf_smoothclir.papers.laboratory.cells import Cell
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS


def fake_system(name, values, *, loss="sosl", counts=((8, 2), (5, 5), (0, 10))):
    """Metrics of a system: the same `values`, one for each seed, for every metric."""
    cell = Cell(RunSettings(model=ModelSettings(loss=loss)), "fake", "fingerprint")
    of_seed = types.SimpleNamespace(cell=cell, score_counts=lambda: np.array(counts))
    cells = (of_seed,) * len(values)
    by_metric = {metric: np.array(values) for metric in (*METRICS, "full/MRR@10")}
    costs = np.ones(len(values)), np.full(len(values), 500.0)
    return SystemMetrics(name, cells, by_metric, dict.fromkeys(by_metric, 7), *costs)


def metrics_json(**splits):
    """What a finished run of one second has written, with the same value for all metrics."""
    content = {split: dict.fromkeys(METRICS, value) for split, value in splits.items()}
    costs = {"seconds": 1.0, "epochs": 1, "peak_rss_mb": 1.0}
    return {**content, "counts": {}, "rules": {}, "training": costs}


def finish(cell, **splits):
    cell.path.mkdir(parents=True)
    (cell.path / "metrics.json").write_text(json.dumps(metrics_json(**splits)))
    (cell.path / "cell.json").write_text("{}")
