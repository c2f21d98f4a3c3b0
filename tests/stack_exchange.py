"""What one stack leaves for the other: runs, some of them unfinished, and exported towers.

    python -m tests.stack_exchange make DIRECTORY
    python -m tests.stack_exchange read DIRECTORY NUMBERS

`read` evaluates the runs, exports one again, asks the towers that are there already, continues the
unfinished runs, and writes all numbers as JSON. `test_stack_exchange` compares.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.prepared import ROLES
from tf_smoothclir.presets import changed
from tf_smoothclir.serving.export import export_run
from tf_smoothclir.training import train
from tf_smoothclir.training.run_directory import RunDirectory

TEXTS = ["word1 word2 mot3 mot4", "", "Mot1, unseen words!", "word8"]
# Every tower, every optimizer, and the options that have weights of their own.
RUNS = {
    "pooling": {},
    "cnn": {"tower": "cnn", "optimizer": "lazy_adam"},
    "lstm": {"tower": "lstm", "optimizer": "adam", "train_query_embeddings": False},
    "options": {
        "optimizer": "adagrad",
        "shared_vocabulary": True,
        "ngram_buckets": 50,
        "token_weights": "learned",
        "learn_thresholds": True,
        "average_weights": 0.5,
    },
}
EXPORTED = "options"
UNFINISHED = ("rmsprop", "lazy_adam", "adam", "adagrad")


def make(directory: Path) -> None:
    """Trains the `RUNS`, exports one, and trains one of three epochs of the `UNFINISHED` ones."""
    data_dir = _without_twins(write_tiny_set(directory / "data"))
    for name, changes in RUNS.items():
        settings = tiny_settings(data_dir, directory / "cache", **changes)
        train.train(settings, directory / name)
    export_run(RunDirectory.load(directory / EXPORTED), directory / "models")
    for optimizer in UNFINISHED:
        settings = _unfinished_settings(directory, optimizer)
        run = RunDirectory.create(directory / f"unfinished {optimizer}", settings)
        source = train.source_of(settings.data)
        prepared = train.prepared_set(source, settings, run, ("train", "validation"))
        train.trainer_of(changed(settings, {"epochs": 1}), prepared, run).train()


def _without_twins(data_dir: Path) -> Path:
    """Gives each document a word of its own: rounding decides about the rank of equal texts."""
    path = data_dir / "wiki_fr.documents"
    *lines, empty = path.read_text(encoding="utf-8").splitlines()
    lines = [f"{line} seul{number}" for number, line in enumerate(lines)]
    path.write_text("\n".join([*lines, empty]) + "\n", encoding="utf-8")
    return data_dir


def _unfinished_settings(directory: Path, optimizer: str):
    return tiny_settings(directory / "data", directory / "cache", optimizer=optimizer, epochs=3)


def read(directory: Path) -> dict:
    """Returns the numbers; what is read is not changed."""
    numbers = {}
    for name in RUNS:
        run = RunDirectory.load(directory / name)
        written = json.loads(run.metrics.read_text(encoding="utf-8"))
        settings = run.settings()
        prepared = train.prepared_set(train.source_of(settings.data), settings, run, ("test",))
        model = train.load_model(run)
        negatives = settings.training.negatives
        trec_dir = run.path / "trec"
        (evaluation,) = train.evaluate_model(
            model, prepared, negatives, ("test",), trec_dir
        ).values()
        shutil.rmtree(trec_dir)
        numbers[f"{name}: metrics when trained"] = written["test"]
        numbers[f"{name}: metrics"] = evaluation.metrics
    models = {"exported": directory / "models", "exported here": directory / "again"}
    export_run(RunDirectory.load(directory / EXPORTED), models["exported here"])
    numbers |= {kind: _ask(path) for kind, path in models.items()}
    shutil.rmtree(models["exported here"])
    for optimizer in UNFINISHED:
        name = f"unfinished {optimizer}"
        copy = shutil.copytree(directory / name, directory / "continued")
        result = train.train(_unfinished_settings(directory, optimizer), copy)
        numbers[name] = [epoch["loss"] for epoch in result["history"]]
        shutil.rmtree(copy)
    return numbers


def _ask(models: Path) -> dict:
    """Returns what exported towers and the search model answer."""
    answers = {}
    for role in ROLES:
        tower = tf.saved_model.load(str(models / f"{role}_tower" / "1"))
        signatures = tower.signatures
        answers[role] = signatures["serving_default"](text=tf.constant(TEXTS))["vector"]
        (pair_id, *_) = signatures["pair_id"](text=tf.constant(TEXTS))["pair_id"].numpy()
        answers[f"{role} belongs to"] = pair_id.decode()
    search = tf.saved_model.load(str(models / "search" / "1")).signatures["serving_default"]
    answers["scores"] = search(text=tf.constant(TEXTS))["scores"]
    return {name: np.asarray(answer).tolist() for name, answer in answers.items()}


if __name__ == "__main__":
    _, action, place, *target = sys.argv
    if action == "make":
        make(Path(place))
    else:
        Path(*target).write_text(json.dumps(read(Path(place))), encoding="utf-8")
