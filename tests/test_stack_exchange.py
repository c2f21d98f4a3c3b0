"""Runs, some of them unfinished, and exported towers that one stack makes and the other reads.

    python -m tests.test_stack_exchange make DIRECTORY NUMBERS
    python -m tests.test_stack_exchange read DIRECTORY NUMBERS

Both write as JSON: metrics of the runs, answers of the exported towers, losses of the unfinished
runs, of which `read` continues each from its first epoch on. `read` also exports a run again. The
tests compare the numbers, both ways: $OTHER_STACK_PYTHON names a Python of the other stack, whose
environment has the package installed.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tf_smoothclir as sc
from tests.published import NoVerifier
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.training import run_data, run_directory, run_models, run_report, train

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
HERE, THERE = "here", "there"
TEXTS = ["wordb wordc motd mote", "", "Motb, unseen words!", "wordi"]
# Every tower, every optimizer, and the options that have weights of their own.
RUNS = {
    "pooling": {},
    "cnn": {"tower": "cnn", "optimizer": "lazy_adam"},
    "lstm": {"tower": "lstm", "optimizer": "adam", "train_query_embeddings": False},
    "options": {"optimizer": "row_rmsprop", "shared_vocabulary": True, "ngram_buckets": 50},
}
RUNS["options"]["token_weights"] = "learned"
EXPORTED = "options"
UNFINISHED = ("rmsprop", "lazy_adam", "adam", "row_rmsprop")


def make(directory: Path) -> dict:
    """Trains the `RUNS`, exports one, and keeps the `UNFINISHED` ones as after the first epoch."""
    _tell_documents_apart(write_tiny_set(directory / "data"))
    numbers, run_report._draw = {}, lambda *_: {}  # plots take a quarter of the time
    for name, changes in RUNS.items():
        settings = tiny_settings(directory / "data", directory / "cache", **changes)
        numbers[f"{name}: metrics"] = train.train(settings, directory / name)["test"]
    for name in UNFINISHED:
        whole, unfinished = (directory / f"{kind} {name}" for kind in ("whole", "unfinished"))
        numbers[f"unfinished {name}"] = _losses(directory, name, whole, unfinished)
    return numbers | {"exported": _exported(directory, directory / "models")}


def _tell_documents_apart(data_dir: Path) -> None:
    """Gives each document a word of its own: rounding would decide the ranks of equal texts."""
    path = data_dir / "wiki_fr.documents"
    *lines, empty = path.read_text(encoding="utf-8").splitlines()
    lines = [f"{line} seul{number}" for number, line in enumerate(lines)]
    path.write_text("\n".join([*lines, empty]) + "\n", encoding="utf-8")


def _losses(directory: Path, optimizer: str, path: Path, first: Path | None = None) -> list[float]:
    """Trains a run to its end; returns its losses; `first` gets a copy after the first epoch."""
    options = {"optimizer": optimizer, "epochs": 3}
    settings = tiny_settings(directory / "data", directory / "cache", **options)
    run = run_directory.RunDirectory.create(path, settings)
    source = source_of(settings.data)
    tokenized_set = run_data.tokenized_set_of(source, settings, run, ("train", "validation"))
    trainer = train.trainer_of(run_models.ModelsOverSet(settings, tokenized_set), run)
    save = trainer._checkpoints.save

    def save_and_copy(progress):
        save(progress)
        if first and not first.exists():
            shutil.copytree(path, first)

    trainer._checkpoints.save = save_and_copy
    return [epoch["loss"] for epoch in trainer.train().history]


def read(directory: Path) -> dict:
    """Reads what the other stack has made, and leaves it as it is."""
    runs = {name: sc.load(directory / name).evaluate() for name in RUNS}
    numbers = {f"{name}: metrics": dict(found.metrics) for name, found in runs.items()}
    for name in UNFINISHED:
        copy = shutil.copytree(directory / f"unfinished {name}", directory / f"continued {name}")
        numbers[f"unfinished {name}"] = _losses(directory, name, copy)
    numbers["exported"] = _ask(directory / "models")
    return numbers | {"exported again": _exported(directory, directory / "again")}


def _exported(directory: Path, models: Path) -> dict:
    export_run(run_directory.RunDirectory.load(directory / EXPORTED), models, verifier=NoVerifier())
    return _ask(models)


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


@pytest.fixture(scope="module")
def pythons():
    if not (other := os.environ.get("OTHER_STACK_PYTHON")):
        pytest.skip("OTHER_STACK_PYTHON names no Python of the other stack")
    question = "from tf_smoothclir._compat import ON_KERAS_3; print(ON_KERAS_3)"
    answers = {run(python, "-c", question) for python in (sys.executable, other)}
    assert len(answers) == 2, f"{other} is of the same stack as {sys.executable}"
    return {HERE: sys.executable, THERE: other}


def run(python, *arguments):
    command, environment = [python, *map(str, arguments)], {**os.environ, "PYTHONPATH": str(ROOT)}
    options = {"cwd": ROOT, "env": environment, "capture_output": True, "timeout": 900}
    done = subprocess.run(command, **options, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=[HERE, THERE])
def numbers(request, pythons, tmp_path_factory):
    """Of the same runs: those of the stack that made them, and what the other one reads."""
    work_dir = tmp_path_factory.mktemp("exchange")
    (reader,) = {HERE, THERE} - {request.param}
    found = []
    for name, action in ((request.param, "make"), (reader, "read")):
        path = work_dir / f"{action}.json"
        run(pythons[name], "-m", "tests.test_stack_exchange", action, work_dir, path)
        found.append(json.loads(path.read_text()))
    return found


def test_a_run_has_the_same_metrics_on_both(numbers):
    for name in RUNS:
        made, read = (found[f"{name}: metrics"] for found in numbers)
        assert read == pytest.approx(made, abs=1e-6), name
        assert any(made.values()), name


def test_towers_of_one_stack_answer_alike_on_the_other_and_exported_by_the_other(numbers):
    made, read = numbers
    expected = made["exported"]
    assert np.abs(expected["query"]).max() > 0.01
    for answers in (read["exported"], read["exported again"]):
        for part in ("query", "document", "scores"):
            np.testing.assert_allclose(answers[part], expected[part], atol=1e-6, err_msg=part)
        # The weights are the same to the last bit, so the parts of both exports belong together.
        assert answers["query belongs to"] == expected["document belongs to"]


def test_an_unfinished_run_continues_on_the_other_stack(numbers):
    for optimizer in UNFINISHED:
        made, read = (found[f"unfinished {optimizer}"] for found in numbers)
        assert len(made) == 3
        assert made[0] != pytest.approx(made[2], rel=1e-2)  # it learns
        np.testing.assert_allclose(made, read, rtol=1e-4, err_msg=optimizer)


if __name__ == "__main__":
    _, action, place, target = sys.argv
    found = {"make": make, "read": read}[action](Path(place))
    Path(target).write_text(json.dumps(found), encoding="utf-8")
