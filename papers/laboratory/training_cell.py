"""Cells that are ordinary training runs."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.papers.laboratory.cells import Cell
from tf_smoothclir.plugins import LOSSES
from tf_smoothclir.storage.files import read_json, write_json
from tf_smoothclir.training.run_data import tokenized_set_of
from tf_smoothclir.training.run_models import load_retriever
from tf_smoothclir.training.train import train

SCORE_BINS = 80


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingCell(Cell):
    """An ordinary training run, with the scores of its training pairs (Figure 3)."""

    # whether the run only helps to choose thresholds; only its metrics are kept then
    tuning: bool = False

    @property
    def segments(self) -> tuple[float, ...]:
        """The cut points, if the loss takes some, else the thresholds."""
        model = self.settings.model
        return model.cut_points if "cut_points" in LOSSES[model.loss].settings else model.thresholds

    @property
    def parts(self):
        model, training = self.settings.model, self.settings.training
        objective = training.objective
        loss = model.loss if objective == "ranking" else objective
        segments = "t" + "_".join(f"{value:g}" for value in self.segments)
        parts = [self.study.name, loss, model.tower, f"e{model.epsilon:g}", segments]
        return [*["tune"] * self.tuning, *parts, f"n{training.negatives}", f"s{self.seed}"]

    @property
    def values(self):
        return [self.settings.values_with_effect(), self.tuning]

    @property
    def _scores(self) -> Path:
        return self.path / "training_scores.json"

    def score_counts(self) -> np.ndarray:
        """`[K, SCORE_BINS]`: training pairs by grade and score in [-1, 1]."""
        return np.array(read_json(self._scores)["counts"])

    def compute(self):
        train(self.settings, self.path)
        is_dense = self.settings.retrieval.retriever == "dense"  # others have no range
        if is_dense and not (self.tuning or self._scores.is_file()):
            write_json(self._scores, self._training_scores())
        run = self.run
        directories = [run.evaluation, run.vocabulary, run.plots, run.logs] * self.tuning
        for directory in (run.checkpoints, *directories):
            shutil.rmtree(directory, ignore_errors=True)

    def _training_scores(self) -> dict:
        settings, run = self.settings, self.run
        tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
        lists = candidate_lists(
            tokenized_set.retrieval_set,
            "train",
            negatives=settings.training.negatives,
            seed=self.seed,
        )
        scores = load_retriever(run, tokenized_set)[0].score(lists)
        scores = np.clip(scores, -1, 1)  # rounding may put a plain cosine just outside
        counts = [
            np.histogram(scores[lists.grades == grade], SCORE_BINS, (-1, 1))[0].tolist()
            for grade in range(tokenized_set.retrieval_set.num_grades)
        ]
        return {"split": "train", "range": [-1, 1], "counts": counts}
