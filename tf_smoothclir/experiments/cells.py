"""Cells: the training runs behind tables and figures, each done once, in a process of its own."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.encoding import Encoder
from tf_smoothclir.evaluation.reranking import score_lists
from tf_smoothclir.settings.run import WITHOUT_EFFECT, RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import load_model, tokenized_set_of, train
from tf_smoothclir.utils.files import read_json, write_json

SCORE_BINS = 80


@dataclasses.dataclass(frozen=True)
class Cell:
    """One training run.

    Attributes:
        settings: What it is made with.
        set_name: Name of the retrieval set.
        fingerprint: Of its content.
        tuning: It only helps to choose thresholds: no more than its figures is kept.
    """

    settings: RunSettings
    set_name: str
    fingerprint: str
    tuning: bool = False

    @property
    def name(self) -> str:
        """Readable, and another one for other settings or other data."""
        model, training = self.settings.model, self.settings.training
        parts = ["tune"] if self.tuning else []
        parts += [self.set_name, model.loss, model.tower, f"e{model.epsilon:g}"]
        parts += ["t" + "_".join(f"{value:g}" for value in self.segments)]
        parts += [f"n{training.negatives}", f"s{training.seed}", self._digest()]
        return re.sub(r"[^\w.+-]+", "_", "-".join(parts))

    @property
    def segments(self) -> tuple[float, ...]:
        """Where a grade ends by the loss: its cut points or thresholds."""
        model = self.settings.model
        return model.cut_points if model.loss == "three_part_l2" else model.thresholds

    def _digest(self) -> str:
        values = {
            name: value
            for group in dataclasses.asdict(self.settings).values()
            for name, value in group.items()
            if name not in WITHOUT_EFFECT
        }
        content = json.dumps([values, self.fingerprint, self.tuning], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:10]


class CellDirectory:
    """Where a cell is: a run directory without checkpoints, and what figures need besides."""

    def __init__(self, output_dir: Path, cell: Cell):
        """Names the parts; nothing is made."""
        self.cell = cell
        self.path = Path(output_dir, "cells", cell.name)
        self.log = self.path.with_name(f"{cell.name}.log")
        self.run = RunDirectory(self.path)
        self._scores = self.path / "training_scores.json"
        self._mark = self.path / "cell.json"

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self._mark.is_file()

    def metrics(self) -> dict:
        """Returns the content of `metrics.json`."""
        return read_json(self.run.metrics)

    def trec_files(self, split: str, *, full: bool = False) -> tuple[Path, Path]:
        """Returns the TREC run and qrels of a split: of its candidate lists, or full retrieval."""
        directory, prefix = self.run.evaluation / split, "full." if full else ""
        return directory / f"{prefix}run.trec", directory / f"{prefix}qrels.trec"

    def score_counts(self) -> np.ndarray:
        """Returns `[K, SCORE_BINS]`: pairs of the training set by grade and score in [-1, 1]."""
        return np.array(read_json(self._scores)["counts"])

    def complete(self) -> None:
        """Trains and evaluates from where it stands, and deletes what only that needed."""
        train(self.cell.settings, self.path)
        if not (self.cell.tuning or self._scores.is_file()):
            write_json(self._scores, _training_scores(self.run, self.cell.settings))
        self._delete_the_rest()
        cell = self.cell
        write_json(self._mark, {"set": cell.set_name, "fingerprint": cell.fingerprint})

    def _delete_the_rest(self) -> None:
        run = self.run
        directories = [run.checkpoints]
        if self.cell.tuning:
            directories += [run.evaluation, run.vocabulary, run.plots, run.logs]
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)


def _training_scores(run: RunDirectory, settings: RunSettings) -> dict:
    """Returns how the scores of the training pairs of each grade are distributed (Figure 3).

    The settings know where the data are now; those of the run, where they were when it began.
    """
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    lists = candidate_lists(
        tokenized_set.retrieval_set,
        "train",
        negatives=settings.training.negatives,
        seed=settings.training.seed,
    )
    scores = score_lists(Encoder(load_model(run), tokenized_set)(), lists)
    # Rounding may put a plain cosine just outside.
    scores = np.clip(scores, -1, 1)
    counts = [
        np.histogram(scores[lists.grades == grade], SCORE_BINS, (-1, 1))[0].tolist()
        for grade in range(tokenized_set.retrieval_set.num_grades)
    ]
    return {"split": "train", "range": [-1, 1], "counts": counts}
