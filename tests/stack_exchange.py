"""Runs, some of them unfinished, and exported towers that one stack makes and the other reads.

    python -m tests.stack_exchange make DIRECTORY NUMBERS
    python -m tests.stack_exchange read DIRECTORY NUMBERS

Both write as JSON: metrics of the runs, answers of the exported towers, losses of the unfinished
runs as they continue. `read` also exports a run again. `test_stack_exchange` compares the numbers.
"""

import json
import shutil
import sys
from pathlib import Path

import tensorflow as tf

import tf_smoothclir as sc
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.training import train
from tf_smoothclir.training.run_directory import RunDirectory

TEXTS = ["word1 word2 mot3 mot4", "", "Mot1, unseen words!", "word8"]
# Every tower, every optimizer, and the options that have weights of their own.
RUNS = {
    "pooling": {},
    "cnn": {"tower": "cnn", "optimizer": "lazy_adam"},
    "lstm": {"tower": "lstm", "optimizer": "adam", "train_query_embeddings": False},
    "options": {
        "optimizer": "row_rmsprop",
        "shared_vocabulary": True,
        "ngram_buckets": 50,
        "token_weights": "learned",
    },
}
EXPORTED = "options"
UNFINISHED = ("rmsprop", "lazy_adam", "adam", "row_rmsprop")


def make(directory: Path) -> dict:
    """Trains the `RUNS`, exports one, and trains one of three epochs of the `UNFINISHED` ones."""
    _tell_documents_apart(write_tiny_set(directory / "data"))
    numbers = {}
    for name, changes in RUNS.items():
        settings = tiny_settings(directory / "data", directory / "cache", **changes)
        numbers[f"{name}: metrics"] = train.train(settings, directory / name)["test"]
    export_run(RunDirectory.load(directory / EXPORTED), directory / "models")
    for optimizer in UNFINISHED:
        _losses(directory, optimizer, directory / f"unfinished {optimizer}", epochs=1)
    return numbers | _answers(directory, {"exported": directory / "models"})


def _tell_documents_apart(data_dir: Path) -> None:
    """Gives each document a word of its own: rounding would decide the ranks of equal texts."""
    path = data_dir / "wiki_fr.documents"
    *lines, empty = path.read_text(encoding="utf-8").splitlines()
    lines = [f"{line} seul{number}" for number, line in enumerate(lines)]
    path.write_text("\n".join([*lines, empty]) + "\n", encoding="utf-8")


def _losses(directory: Path, optimizer: str, path: Path, epochs: int) -> list[float]:
    """Trains an unfinished run up to a number of epochs, and returns their losses."""
    options = {"optimizer": optimizer, "epochs": 3}
    settings = tiny_settings(directory / "data", directory / "cache", **options)
    run = RunDirectory.create(path, settings)
    source = source_of(settings.data)
    tokenized_set = train.tokenized_set_of(source, settings, run, ("train", "validation"))
    progress = train.trainer_of(changed(settings, {"epochs": epochs}), tokenized_set, run).train()
    return [epoch["loss"] for epoch in progress.history]


def read(directory: Path) -> dict:
    """Reads what the other stack has made, and leaves it as it is."""
    numbers = {
        f"{name}: metrics": dict(sc.load(directory / name).evaluate().metrics) for name in RUNS
    }
    export_run(RunDirectory.load(directory / EXPORTED), directory / "again")
    models = {"exported": directory / "models", "exported again": directory / "again"}
    return numbers | _answers(directory, models)


def _answers(directory: Path, models: dict[str, Path]) -> dict:
    """Returns the answers of exported models, and the losses of continued copies of runs."""
    numbers = {name: _ask(path) for name, path in models.items()}
    for optimizer in UNFINISHED:
        name = f"unfinished {optimizer}"
        copy = shutil.copytree(directory / name, directory / "continued")
        numbers[name] = _losses(directory, optimizer, copy, epochs=3)
        shutil.rmtree(copy)
    return numbers


def _ask(models: Path) -> dict:
    answers, texts = {}, tf.constant(TEXTS)
    for role in ROLES:
        tower = tf.saved_model.load(str(models / f"{role}_tower" / "1"))
        vectors = tower.signatures["serving_default"](text=texts)["vector"]
        (pair_id, *_) = tower.signatures["pair_id"](text=texts)["pair_id"].numpy()
        answers |= {role: vectors.numpy().tolist(), f"{role} belongs to": pair_id.decode()}
    search = tf.saved_model.load(str(models / "search" / "1"))
    scores = search.signatures["serving_default"](text=texts)["scores"]
    return {**answers, "scores": scores.numpy().tolist()}


if __name__ == "__main__":
    _, action, place, target = sys.argv
    found = {"make": make, "read": read}[action](Path(place))
    Path(target).write_text(json.dumps(found), encoding="utf-8")
