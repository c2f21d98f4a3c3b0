"""A tiny set on disk, its settings, and one finished run on it."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from tests.lexical.helpers import tokenized
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.sources import opening, source
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.training import run_data, run_directory
from tf_smoothclir.training.train import train


def run_of(settings, path):
    train(settings, path)
    return run_directory.RunDirectory.load(path)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """`made_once(name, make)` is a path that one of the processes of tests makes for all."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def path_of(name, make):
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (root / name).exists():
                try:
                    make(root / name)
                except BaseException:
                    shutil.rmtree(root / name, ignore_errors=True)
                    raise
        return root / name

    return path_of


def tokenized_by(run, settings=None, splits=source.SPLITS):
    settings = settings or run.settings()
    return run_data.tokenized_set_of(opening.source_of(settings.data), settings, run, splits)


@pytest.fixture(scope="session", autouse=True)
def drawing():
    """Plots of runs are empty files: drawing takes a quarter of the time of a run on the tiny set.

    Returns name -> what draws.
    """
    from tf_smoothclir.evaluation import plots  # loads matplotlib

    drawing = {name: getattr(plots, name) for name in ("learning_curves", "score_density")}
    with pytest.MonkeyPatch.context() as patch:
        for name in drawing:
            patch.setattr(plots, name, lambda path, *_: path.touch())
        yield drawing


@pytest.fixture(scope="session")
def tiny_dir(made_once):
    """The tiny set; read-only."""
    return made_once("tiny", write_tiny_set)


@pytest.fixture(scope="session")
def tiny(tiny_dir, made_once):
    """`tiny(**changes)` gives the settings of a run on the tiny set."""
    cache_dir = made_once("cache", Path.mkdir)
    return lambda data_dir=tiny_dir, **changes: tiny_settings(data_dir, cache_dir, **changes)


@pytest.fixture(scope="module")
def texts(tiny):
    return LexicalTexts(tokenized(tiny()), tiny().text.max_query_tokens)


@pytest.fixture(scope="session")
def finished(tiny, made_once, drawing):
    """A finished run of `tiny()`, with its plots; read-only."""

    def make(path):
        with mock.patch.multiple("tf_smoothclir.evaluation.plots", **drawing):
            train(tiny(), path)

    return run_directory.RunDirectory.load(made_once("finished", make))
