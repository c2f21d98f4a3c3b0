"""Cells: the training runs behind the tables and figures.

A cell is one training run of an experiment's grid. Its name is made of its settings, its data and
the sources of the code, so that experiments share cells and each is trained once, and nothing that
other code has made is taken over.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.papers import li2018 as li2018  # cells name their plug-ins
from tf_smoothclir.papers import yu2020 as yu2020
from tf_smoothclir.papers.laboratory import translated as translated
from tf_smoothclir.papers.laboratory.code_version import sources_digest
from tf_smoothclir.plugins import LOSSES
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import read_json, write_json
from tf_smoothclir.training.run_data import tokenized_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_retriever
from tf_smoothclir.training.run_report import EVALUATED_SPLITS
from tf_smoothclir.training.train import train

SCORE_BINS = 80


@dataclasses.dataclass(frozen=True)
class Cell:
    """One training run."""

    settings: RunSettings  # all settings of the run
    set_name: str  # name of the retrieval set
    fingerprint: str  # of the set's content
    # whether the run only helps to choose thresholds; only its metrics are kept then
    tuning: bool = False

    @property
    def name(self) -> str:
        """A readable name, unique to the settings and the data."""
        model, training = self.settings.model, self.settings.training
        parts = ["tune"] if self.tuning else []
        objective = training.objective
        loss = model.loss if objective == "ranking" else objective
        parts += [self.set_name, loss, model.tower, f"e{model.epsilon:g}"]
        parts += ["t" + "_".join(f"{value:g}" for value in self.segments)]
        parts += [f"n{training.negatives}", f"s{training.seed}"]
        values = self.settings.values_with_effect()
        return cell_name(parts, [values, self.fingerprint, self.tuning])

    @property
    def segments(self) -> tuple[float, ...]:
        """The cut points, if the loss takes some, else the thresholds."""
        model = self.settings.model
        return model.cut_points if "cut_points" in LOSSES[model.loss].settings else model.thresholds


def cell_name(parts: Sequence[str], values: Sequence) -> str:
    """A readable name, unique to values and to the sources of the code, which end it."""
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:10]
    return re.sub(r"[^\w.+-]+", "_", "-".join([*parts, digest, sources_digest()]))


@dataclasses.dataclass(frozen=True)
class CellMetrics:
    """What a cell's `metrics.json` says that tables need; see `training.run_report`."""

    splits: dict[str, dict[str, float]]  # split -> metric -> mean over the queries
    counts: dict[str, dict[str, int]]  # split -> metric -> number of queries in the mean
    rules: dict[str, str]  # name of a rule -> its text
    seconds: float  # training time
    epochs: int  # number of epochs
    peak_mb: float  # peak memory of the process

    @classmethod
    def read(cls, path: Path, part: str = "") -> CellMetrics:
        """Reads a `metrics.json`; the metrics are those of a part of a hybrid, if one is named."""
        content = read_json(path)
        training, of_splits = content["training"], content["components"][part] if part else content
        return cls(
            splits={split: of_splits[split] for split in EVALUATED_SPLITS if split in of_splits},
            counts=content["counts"],
            rules=content["rules"],
            seconds=training["seconds"],
            epochs=training["epochs"],
            peak_mb=training["peak_rss_mb"],
        )


class CellDirectory:
    """The files of a cell: a run directory without checkpoints, and what Figure 3 needs."""

    def __init__(self, output_dir: Path, cell: Cell):
        self.cell = cell
        self.path = Path(output_dir, "cells", cell.name)
        self.log = self.path.with_name(f"{cell.name}.log")
        self.run = RunDirectory(self.path)
        self._scores = self.path / "training_scores.json"
        self._mark = self.path / "cell.json"

    @property
    def finished(self) -> bool:
        """Whether the cell is complete."""
        return self._mark.is_file()

    @property
    def is_of_other_code(self) -> bool:
        """Whether this cell is not complete, but one that other sources made is."""
        settings = self.path.name.removesuffix(f"-{sources_digest()}")
        return not self.finished and any(self.path.parent.glob(f"{settings}*/{self._mark.name}"))

    def metrics(self, part: str = "") -> CellMetrics:
        """Reads the metrics of a finished cell, or of a part of it; see `System`."""
        return CellMetrics.read(self.run.metrics, part)

    def history(self) -> list[dict]:
        """The history of a finished cell: a record for each epoch."""
        return read_json(self.run.metrics)["history"]

    def trec_files(self, split: str, part: str = "", *, full: bool = False) -> tuple[Path, Path]:
        """The TREC run and qrels of a split: candidate lists, or full retrieval."""
        directory, prefix = self.run.evaluation_of(part) / split, "full." if full else ""
        return directory / f"{prefix}run.trec", directory / f"{prefix}qrels.trec"

    def score_counts(self) -> np.ndarray:
        """`[K, SCORE_BINS]`: training pairs by grade and score in [-1, 1]."""
        return np.array(read_json(self._scores)["counts"])

    def complete(self) -> None:
        """Trains and evaluates, or continues; then deletes what is no longer needed."""
        train(self.cell.settings, self.path)
        is_dense = self.cell.settings.retrieval.retriever == "dense"  # others have no range
        if is_dense and not (self.cell.tuning or self._scores.is_file()):
            write_json(self._scores, _training_scores(self.run, self.cell.settings))
        self._delete_intermediate_files()
        cell = self.cell
        write_json(self._mark, {"set": cell.set_name, "fingerprint": cell.fingerprint})

    def _delete_intermediate_files(self) -> None:
        run = self.run
        directories = [run.checkpoints]
        if self.cell.tuning:
            directories += [run.evaluation, run.vocabulary, run.plots, run.logs]
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)


def _training_scores(run: RunDirectory, settings: RunSettings) -> dict:
    """The distribution of the training pairs' scores by grade (Figure 3)."""
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    lists = candidate_lists(
        tokenized_set.retrieval_set,
        "train",
        negatives=settings.training.negatives,
        seed=settings.training.seed,
    )
    scores = load_retriever(run, tokenized_set)[0].score(lists)
    scores = np.clip(scores, -1, 1)  # rounding may put a plain cosine just outside
    counts = [
        np.histogram(scores[lists.grades == grade], SCORE_BINS, (-1, 1))[0].tolist()
        for grade in range(tokenized_set.retrieval_set.num_grades)
    ]
    return {"split": "train", "range": [-1, 1], "counts": counts}
