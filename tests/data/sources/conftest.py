"""Directories of files that a source reads."""

import pytest


@pytest.fixture
def make(tmp_path):
    """`make({name: content})` writes files into the folder `toy`, and gives its path."""

    def make_files(files):
        for name, content in files.items():
            path = tmp_path / "toy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode())
        (tmp_path / "toy").mkdir(exist_ok=True)
        return tmp_path / "toy"

    return make_files


@pytest.fixture
def read_all():
    streams = ("queries", "documents", "judgments", "splits")
    return lambda source: [list(getattr(source, stream)() or []) for stream in streams]
