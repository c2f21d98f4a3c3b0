"""Fixtures that several test files share."""

import gc
import os
import zlib
from collections.abc import Iterator

import hypothesis
import pytest

from tests.command_line.forked import ForkedCommands
from tests.small_world import SmallWorld
from tf_smoothclir import plugins
from tf_smoothclir.data import preparation, retrieval_set
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.utils.errors import name_flags

# On GPUs with TF32, products of matrices have three digits by default; tests compare more.
os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")
# Fixtures of trained runs and of published models, which tests of several rooms share.
pytest_plugins = ["tests.training.fixtures", "tests.published"]

_PARTS = 4  # of the slow tests
# Modules that take longest -> their part, so that parts take about as long as each other.
_LONGEST = {"test_stack_exchange": 3, "test_benchmarks": 0, "papers.li2018.test_training": 2}
_LONGEST |= {"extras.distributed.test_workers": 0, "tuning.test_tune": 1, "test_hostile_cases": 3}
_LONGEST |= {"test_real_data": 2, "papers.laboratory.test_reproduce_end_to_end": 1}
_LONGEST |= {"papers.yu2020.test_yu2020_end_to_end": 2, "training.test_resume": 3}
_LONGEST |= {"two_tower.test_model": 0, "extras.distributed.test_exchange": 1, "test_choices": 1}
_DEALT = "tests.test_examples"  # its tests take long, and share nothing


# How long a test takes says nothing on a busy machine; and each run tries the same.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tests")
name_flags()  # as commands do: most tests are of what is below the API


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --slow-part, with which the gate runs each slow test about every fourth time."""
    text = "of the slow tests, run one part of four: the part N modulo 4"
    parser.addoption("--slow-part", type=int, default=None, metavar="N", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves slow tests of other parts out, and starts the longest modules first.

    At the end, a long one would keep a single process busy. A module of slow tests is in one part,
    as its tests share what they need.
    """
    longest = {f"tests.{name}": part for name, part in _LONGEST.items()}
    place = {name: number for number, name in enumerate([_DEALT, *longest])}

    def part_of(item: pytest.Item) -> int:
        module = item.module.__name__
        name = item.name if module == _DEALT else module
        return longest.get(name, zlib.crc32(name.encode())) % _PARTS

    part = config.getoption("--slow-part")
    if part is not None:
        slow = [item for item in items if item.get_closest_marker("slow")]
        others = [item for item in slow if part_of(item) != part % _PARTS]
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: place.get(item.module.__name__, len(place)))


def pytest_collection_finish() -> None:
    """Leaves all that is imported alone: each garbage collection of a test would go through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def built_in_alone(monkeypatch) -> None:
    """Nothing but what the package has itself is registered, whatever other tests have loaded."""
    built_in = {key: plugin for key, plugin in plugins._plugins.items() if not plugin.module}
    monkeypatch.setattr(plugins, "_plugins", built_in)


@pytest.fixture(scope="session")
def commands() -> Iterator[ForkedCommands]:
    with ForkedCommands("tensorflow", "tf_smoothclir.command_line.command") as forked:
        yield forked


@pytest.fixture(scope="session")
def small_set() -> retrieval_set.RetrievalSet:
    return retrieval_set.RetrievalSet.load(SmallWorld())


@pytest.fixture(scope="session")
def tokenized_set(small_set, tmp_path_factory) -> TokenizedSet:
    """`small_set` as token ids, with its own vocabularies."""
    return preparation.tokenize_set(small_set, TextSettings(), tmp_path_factory.mktemp("cache"))
