"""The watcher of power loss finds what careless code loses, and nothing in careful code."""

import os

import pytest

from tests.power_loss import PowerLoss


@pytest.mark.parametrize(
    ("flush_file", "flush_names", "found"),
    [
        (False, False, {b"old", b""}),  # the name came before the content
        (False, True, {b"old", b""}),
        (True, True, {b"old", b"new"}),
    ],
)
def test_a_renamed_file_is_whole_only_if_it_was_flushed_first(
    tmp_path, monkeypatch, flush_file, flush_names, found
):
    (tmp_path / "file").write_bytes(b"old")
    with PowerLoss(tmp_path, monkeypatch) as losses:
        with open(tmp_path / "other", "wb", buffering=0) as file:
            file.write(b"new")
            if flush_file:
                os.fsync(file.fileno())
        os.replace(tmp_path / "other", tmp_path / "file")
        if flush_names:
            descriptor = os.open(tmp_path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    assert {disk.get("file") for disk in losses.disks} == found
