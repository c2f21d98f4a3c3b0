"""A tiny set on disk, its settings, and one finished run on it."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import tokenized_set_of, train


def run_of(settings, path):
    """A finished run with these settings."""
    train(settings, path)
    return RunDirectory.load(path)


def tokenized_by(run, settings=None, splits=SPLITS):
    """The set of a run, by its vocabularies."""
    settings = settings or run.settings()
    return tokenized_set_of(source_of(settings.data), settings, run, splits)


@contextlib.contextmanager
def no_plots() -> Iterator[None]:
    """Runs write no plots, which take a quarter of the time of a run on the tiny set."""
    from tf_smoothclir.evaluation import plots  # loads matplotlib

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "save_png", lambda figure, path: plots.plt.close(figure))
        yield


@pytest.fixture
def without_plots() -> Iterator[None]:
    with no_plots():
        yield


@pytest.fixture(scope="session")
def tiny_dir(tmp_path_factory):
    """The tiny set; read-only."""
    return write_tiny_set(tmp_path_factory.mktemp("tiny") / "data")


@pytest.fixture(scope="session")
def tiny(tiny_dir, tmp_path_factory):
    """`tiny(**changes)` gives the settings of a run on the tiny set."""
    cache_dir = tmp_path_factory.mktemp("cache")
    return lambda data_dir=tiny_dir, **changes: tiny_settings(data_dir, cache_dir, **changes)


@pytest.fixture(scope="session")
def finished(tiny, tmp_path_factory):
    """A finished run of `tiny()`; read-only."""
    return run_of(tiny(), tmp_path_factory.mktemp("runs") / "finished")
