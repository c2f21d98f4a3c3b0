"""Fixtures that several test files share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command_line.forked import ForkedCommands
from tests.small_world import SmallWorld
from tf_smoothclir import plugins
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.settings.text import TextSettings

# Fixtures of trained runs and of published models, which tests of several rooms share.
pytest_plugins = ["tests.training.fixtures", "tests.published"]

_ROOT = Path(__file__).resolve().parent.parent
# Modules of tests that take minutes, most of them with processes of their own.
_LONGEST = (
    "test_benchmarks",
    "test_stack_exchange",
    "tuning.test_tune",
    "extras.distributed.test_workers",
    "papers.laboratory.test_reproduce_end_to_end",
    "tuning.test_resume",
    "extras.distributed.test_exchange",
    "training.test_resume",
    "test_real_data",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starts the longest modules first: at the end, one would keep a single process busy."""
    place = {f"tests.{name}": number for number, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: place.get(item.module.__name__, len(place)))


@pytest.fixture
def built_in_alone(monkeypatch) -> None:
    """Nothing but what the package has itself is registered, whatever other tests have loaded."""
    built_in = {key: plugin for key, plugin in plugins._plugins.items() if not plugin.module}
    monkeypatch.setattr(plugins, "_plugins", built_in)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """`real_data("mdn-en-de")` is the directory of that set; skips the test where it is absent.

    The sets are looked for in $SMOOTHCLIR_DATA, by default `../shared/data` beside the checkout.
    """
    sets = Path(os.environ.get("SMOOTHCLIR_DATA", _ROOT.parent / "shared" / "data"))

    def directory_of(name: str) -> Path:
        if not (sets / name).is_dir():
            pytest.skip(f"no retrieval set {name} in {sets}; set SMOOTHCLIR_DATA to its parent")
        return sets / name

    return directory_of


@pytest.fixture(scope="session")
def commands() -> Iterator[ForkedCommands]:
    """Runs commands, which need not load TensorFlow again."""
    with ForkedCommands("tensorflow", "tf_smoothclir.command_line.command") as forked:
        yield forked


@pytest.fixture(scope="session")
def small_set() -> RetrievalSet:
    """The checked `SmallWorld`."""
    return RetrievalSet.load(SmallWorld())


@pytest.fixture(scope="session")
def tokenized_set(small_set, tmp_path_factory) -> TokenizedSet:
    """`small_set` as token ids, with its own vocabularies."""
    return tokenize_set(small_set, TextSettings(), tmp_path_factory.mktemp("cache"))
