"""Cells: the runs behind the tables and figures, one system on one set with one seed each.

The name of a cell is made of its settings, its data and the sources of the code, so that
experiments share cells and each runs once, and nothing that other code has made is taken over.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.evaluation.evaluate import evaluate_splits, metrics_content
from tf_smoothclir.papers import li2018 as li2018  # cells name their plug-ins
from tf_smoothclir.papers import yu2020 as yu2020
from tf_smoothclir.papers.laboratory.code_version import sources_digest
from tf_smoothclir.papers.laboratory.experiment import Study
from tf_smoothclir.plugins import LOSSES
from tf_smoothclir.protocols.scorer import Scorer
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import read_json, write_json
from tf_smoothclir.training.run_data import retrieval_set_of, tokenized_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_retriever
from tf_smoothclir.training.run_report import EVALUATED_SPLITS
from tf_smoothclir.training.train import train

SCORE_BINS = 80


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """A run and its files.

    A subclass says what it is: `parts` are what people should read in its name, `values` all that
    its figures depend on besides the data, for JSON. `compute` writes metrics and TREC files, or
    continues to.
    """

    study: Study
    settings: RunSettings

    segments = ()  # thresholds, or the cut points of a loss that takes some

    @functools.cached_property
    def name(self) -> str:
        """A readable name, unique to values, data and the sources of the code, which end it."""
        values = json.dumps([self.values, self.study.fingerprint], sort_keys=True)
        digest = hashlib.sha256(values.encode()).hexdigest()[:10]
        return re.sub(r"[^\w.+-]+", "_", "-".join([*self.parts, digest, sources_digest()]))

    @property
    def seed(self) -> int:
        """The seed of its training."""
        return self.settings.training.seed

    @property
    def path(self) -> Path:
        """The directory of the run."""
        return self.study.output_dir / "cells" / self.name

    @property
    def log(self) -> Path:
        """The file with its output."""
        return self.path.with_name(f"{self.name}.log")

    @property
    def run(self) -> RunDirectory:
        """The files of the run; checkpoints are deleted in the end."""
        return RunDirectory(self.path)

    @property
    def finished(self) -> bool:
        """Whether the cell is complete."""
        return (self.path / "cell.json").is_file()

    @property
    def is_of_other_code(self) -> bool:
        """Whether this cell is not complete, but one that other sources made is."""
        settings = self.name.removesuffix(f"-{sources_digest()}")
        return not self.finished and any(self.path.parent.glob(f"{settings}*/cell.json"))

    def metrics(self) -> dict:
        """The `metrics.json` of a finished cell."""
        return read_json(self.run.metrics)

    def trec_files(self, split: str, *, full: bool = False) -> tuple[Path, Path]:
        """The TREC run and qrels of a split: candidate lists, or full retrieval."""
        directory, prefix = self.run.evaluation / split, "full." if full else ""
        return directory / f"{prefix}run.trec", directory / f"{prefix}qrels.trec"

    def complete(self) -> None:
        """Computes what is missing, and marks the cell as finished."""
        self.compute()
        of_set = {"set": self.study.name, "fingerprint": self.study.fingerprint}
        write_json(self.path / "cell.json", of_set)

    def measure(
        self,
        retrieval_set: RetrievalSet,
        scorer: Scorer,
        training: Mapping,
        *,
        splits: Sequence[str] = EVALUATED_SPLITS,
        history: Sequence = (),
    ) -> None:
        """Evaluates what needs no run of training, and writes its metrics."""
        negatives = self.settings.training.negatives
        evaluations = evaluate_splits(
            retrieval_set, scorer, splits, negatives=negatives, trec_dir=self.run.evaluation
        )
        result = metrics_content(evaluations, negatives)
        write_json(self.run.metrics, {**result, "training": training, "history": history})


def opened_set(settings: RunSettings) -> TokenizedSet:
    """The set of settings, tokenised."""
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, SPLITS)
    return tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)


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
        retrieval_set, negatives = tokenized_set.retrieval_set, settings.training.negatives
        lists = candidate_lists(retrieval_set, "train", negatives=negatives, seed=self.seed)
        scores = load_retriever(run, tokenized_set)[0].score(lists)
        scores = np.clip(scores, -1, 1)  # rounding may put a plain cosine just outside
        counts = [
            np.histogram(scores[lists.grades == grade], SCORE_BINS, (-1, 1))[0].tolist()
            for grade in range(retrieval_set.num_grades)
        ]
        return {"split": "train", "range": [-1, 1], "counts": counts}
