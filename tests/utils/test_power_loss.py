"""The watcher of power loss finds what careless code loses, and nothing in careful code."""

import os

import pytest

from tests.power_loss import PowerLoss
from tf_smoothclir.utils.files import new_directory, write_text


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
    flushes = ["fsync"] * flush_file, ["fsync"] * flush_names
    assert [event for event, _ in losses.events] == [*flushes[0], "replace", *flushes[1]]


def test_a_name_that_was_not_flushed_may_be_lost_and_a_deletion_undone(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    with PowerLoss(tmp_path, monkeypatch) as losses:
        os.rename(tmp_path / "file", tmp_path / "moved")
    assert {"file": b"old"} in losses.disks
    assert {"moved": b"old"} in losses.disks
    with PowerLoss(tmp_path, monkeypatch) as losses:
        os.unlink(tmp_path / "moved")
    assert losses.disks == [{"moved": b"old"}, {}]


def test_write_text_leaves_the_old_or_the_new_file(tmp_path, monkeypatch):
    write_text(tmp_path / "file", "old")
    with PowerLoss(tmp_path, monkeypatch) as losses:
        write_text(tmp_path / "file", "new")
    assert {disk.get("file") for disk in losses.disks} == {b"old", b"new"}
    assert losses.disks[-1] == {"file": b"new"}


def test_a_new_directory_is_whole_or_not_there(tmp_path, monkeypatch):
    with PowerLoss(tmp_path, monkeypatch) as losses, new_directory(tmp_path / "new") as temporary:
        (temporary / "deep").mkdir()
        (temporary / "deep" / "file").write_bytes(b"1")
        (temporary / "other").write_bytes(b"2")
    whole = {"new": None, "new/deep": None, "new/deep/file": b"1", "new/other": b"2"}
    for disk in losses.disks:
        found = {name: content for name, content in disk.items() if not name.startswith(".")}
        assert found in ({}, whole)
    assert losses.disks[-1] == whole
