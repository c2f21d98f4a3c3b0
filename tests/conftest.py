"""Fixtures that several test files share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.small_world import SmallWorld
from tf_smoothclir.data.prepared import PreparedSet, prepare
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.settings import TextSettings

_ROOT = Path(__file__).resolve().parent.parent


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
def small_set() -> RetrievalSet:
    """The checked `SmallWorld`."""
    return RetrievalSet.load(SmallWorld())


@pytest.fixture(scope="session")
def prepared(small_set, tmp_path_factory) -> PreparedSet:
    """`small_set` as token ids, with its own vocabularies."""
    return prepare(small_set, TextSettings(), tmp_path_factory.mktemp("cache"))
