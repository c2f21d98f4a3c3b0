"""The tiny set as a person has it at hand."""

import pytest

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.settings.data import DataSettings


@pytest.fixture(scope="session")
def source(tiny_dir):
    return source_of(DataSettings(data_dir=str(tiny_dir)))


@pytest.fixture(scope="session")
def parts(source):
    """Keywords of `train`; read-only."""
    return {
        "queries": {text.id: text.text for text in source.queries()},
        "documents": {text.id: text.text for text in source.documents()},
        "judgments": list(source.judgments()),
        "splits": source.splits(),
    }
