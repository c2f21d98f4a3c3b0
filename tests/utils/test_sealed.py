"""Directories that state what was written: any change is found, and said in words."""

from __future__ import annotations

import json

import pytest

from tf_smoothclir.utils.sealed import SEAL, FileNote, damage_in, damage_to, sealed_directory


@pytest.fixture
def directory(tmp_path):
    with sealed_directory(tmp_path / "sealed") as temporary:
        (temporary / "a").write_bytes(b"0123")
        (temporary / "deep").mkdir()
        (temporary / "deep" / "empty").write_bytes(b"")
    return tmp_path / "sealed"


def test_what_was_written_is_whole_with_files_beside_it(directory):
    assert damage_in(directory) == ""
    (directory / "note").write_text("of the user")
    assert damage_in(directory) == ""


def test_every_flipped_byte_of_every_file_is_found(directory):
    for name in ("a", SEAL):
        content = (directory / name).read_bytes()
        for place in range(len(content)):
            flipped = bytearray(content)
            flipped[place] ^= 1
            (directory / name).write_bytes(flipped)
            # Without a value changed, such as with another kind of blank, nothing is damaged.
            same = name == SEAL and json_or_none(flipped) == json.loads(content)
            assert bool(damage_in(directory)) != same, (name, place)
        (directory / name).write_bytes(content)


def json_or_none(content):
    try:
        return json.loads(content)
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: (d / "a").write_bytes(b"012"), "a has 3 bytes, but 4 were written"),
        (lambda d: (d / "a").write_bytes(b"0124"), "a is not the file that was written"),
        (lambda d: (d / "deep" / "empty").unlink(), "deep/empty cannot be read (No such file"),
        (lambda d: (d / SEAL).unlink(), f"it has no {SEAL}"),
        (lambda d: (d / SEAL).write_text("{"), f"{SEAL} cannot be read"),
        (lambda d: (d / SEAL).write_text("[" * 100_000), f"{SEAL} cannot be read"),
        (lambda d: (d / SEAL).write_text('{"files": {"a": 1}}'), f"{SEAL} cannot be read (files.a"),
        (lambda d: (d / SEAL).write_bytes(b"\xff"), f"{SEAL} cannot be read"),
    ],
)
def test_damage_is_named(directory, change, message):
    change(directory)
    assert damage_in(directory).startswith(message)


def test_a_note_of_a_file_finds_its_change(tmp_path):
    (tmp_path / "file").write_text("a")
    notes = {"file": FileNote.of(tmp_path / "file")}
    assert damage_to(tmp_path, notes) == ""
    (tmp_path / "file").write_text("b")
    assert "SHA-256" in damage_to(tmp_path, notes)
