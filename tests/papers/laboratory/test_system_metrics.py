"""Metrics over seeds, and significance tests of per-query means over the seeds."""

import json
import types

import numpy as np
import pytest

from tests.papers.laboratory.fakes import metrics_json
from tf_smoothclir.evaluation.trec_files import RunMetrics
from tf_smoothclir.papers.laboratory.cells import CellMetrics
from tf_smoothclir.papers.laboratory.system_metrics import (
    FULL_MRR,
    _mean,
    per_query_means,
    read_system_metrics,
    significant,
)
from tf_smoothclir.settings.training import METRICS


def run_of(values):
    ids = tuple(map(str, range(len(values))))
    return RunMetrics(ids, {m: np.array(values, float) for m in METRICS}, 0, 0, 0)


def test_a_difference_counts_by_its_corrected_p():
    names = ("system", "metric", "randomization_p", "holm_p")
    found = [dict(zip(names, (s, "MAP", 0.01, p))) for s, p in (("far", 0.049), ("near", 0.05))]
    assert significant([types.SimpleNamespace(**one) for one in found]) == {("far", "MAP")}


class FakeCell:
    """A cell with TREC files of one query and two documents."""

    def __init__(self, directory, scores, finished=True, others=0):
        directory.mkdir()
        self.finished, self.seed, self._directory = finished, int(directory.name), directory
        self.cell = types.SimpleNamespace(settings=types.SimpleNamespace(training=self))
        above = {f"other{rank}": 100 - rank for rank in range(others)}
        for name, found, grade_of_a in (("", scores, 0), ("full.", {**above, "b": 1}, 1)):
            lines = [f"q Q0 {document} 0 {score} t\n" for document, score in found.items()]
            (directory / f"{name}run").write_text("".join(lines))
            (directory / f"{name}qrels").write_text(f"q 0 a {grade_of_a}\nq 0 b 2\n")

    def metrics(self, part=""):
        splits = {"test": dict.fromkeys(METRICS, self.seed / 10 + bool(part)), "validation": {}}
        counts = {"test": dict.fromkeys(METRICS, 1)}
        return CellMetrics(splits, counts, {}, seconds=6.0 * self.seed, epochs=2, peak_mb=100.0)

    def trec_files(self, split, part, *, full):
        assert (split, part) == ("test", "")
        return tuple(self._directory / f"{'full.' * full}{name}" for name in ("run", "qrels"))


def test_a_system_has_the_test_metrics_of_each_finished_seed(tmp_path):
    cells = [FakeCell(tmp_path / str(n), {"a": 1}, finished=n != 2) for n in (1, 2, 3)]
    system = read_system_metrics("SOSL", cells)
    assert system.values["MAP"] == pytest.approx([0.1, 0.3])
    assert system.seeds == (1, 3)
    assert system.epoch_seconds.tolist() == [6 * 1 / 2, 6 * 3 / 2]
    assert read_system_metrics("SOSL", cells[1:2]) is None
    part = read_system_metrics("towers", cells[:1], "dense")
    assert part.values["MAP"] == pytest.approx([1 + 0.1])
    path = tmp_path / "metrics.json"
    components = {"lexical": metrics_json(test=2)}
    path.write_text(json.dumps({**metrics_json(test=3), "components": components}))
    found = [CellMetrics.read(path, part).splits["test"]["MAP"] for part in ("", "lexical")]
    assert found == [3, 2]


def test_scores_of_a_query_are_averaged_over_seeds_and_missing_ones_stay_missing(tmp_path):
    mean = _mean([run_of([0.0, 0.5, np.nan]), run_of([1.0, 0.7, np.nan])], ["MAP"])
    np.testing.assert_allclose(mean.per_query["MAP"], [0.5, 0.6, np.nan], atol=1e-15)
    right, wrong = {"a": 0.1, "b": 0.2}, {"a": 0.2, "b": 0.1}
    cells = [FakeCell(tmp_path / "1", right), FakeCell(tmp_path / "2", wrong)]
    means, best_grade = per_query_means([read_system_metrics("SOSL", cells)])
    assert best_grade == 2
    assert means["SOSL"].per_query["MRR_mr"].tolist() == pytest.approx([(1 + 1 / 2) / 2])


def test_full_retrieval_counts_to_the_tenth_document(tmp_path):
    for others, expected in ((9, 1 / 10), (10, 0)):
        cells = [FakeCell(tmp_path / str(others), {"b": 1}, others=others)]
        means, _ = per_query_means([read_system_metrics("SOSL", cells)], ["MAP", FULL_MRR])
        assert means["SOSL"].per_query[FULL_MRR] == pytest.approx([expected], abs=1e-6)
