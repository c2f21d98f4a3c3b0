"""Folders with a manifest: written whole, any change is found and said in words."""

import hashlib
import json
import os
import shutil

import pytest

from tests.cases import cases
from tests.disk_faults import flushed_before_named
from tf_smoothclir.storage import folder as module
from tf_smoothclir.storage.folder import MANIFEST, FileNote, Folder, adding, damage_to, new_folder
from tf_smoothclir.utils.errors import InputError

CONTENTS = [b"", b"graph", bytes(range(250)) * 40_000]  # the last one takes several reads


def damage_in(path, kind):
    """What is wrong with a folder, its manifest included."""
    try:
        Folder.checked(path, kind, "Mend it")
    except InputError as error:
        return str(error)
    return ""


@pytest.fixture
def path(tmp_path):
    with new_folder(tmp_path / "folder", "index") as (written, facts):
        (written / "a").write_bytes(b"0123")
        (written / "deep").mkdir()
        (written / "deep" / "empty").write_bytes(b"")
        facts["documents"] = 2
    return tmp_path / "folder"


def test_what_was_written_is_read_with_hidden_files_beside_it(path):
    (path / ".hidden").write_text("of a file manager")
    folder = Folder.read(path, "index", "tower")
    assert folder.facts == {"documents": 2}
    assert {name: note.bytes for name, note in folder.files.items()} == {"a": 4, "deep/empty": 0}
    assert folder.damage() == ""


def test_every_flipped_byte_of_every_file_is_found(path):
    for name in ("a", MANIFEST):
        content = (path / name).read_bytes()
        for place in range(len(content)):
            flipped = bytearray(content)
            flipped[place] ^= 1
            (path / name).write_bytes(flipped)
            # Without a value changed, such as with another kind of blank, nothing is damaged.
            same = name == MANIFEST and json_or_none(flipped) == json.loads(content)
            assert bool(damage_in(path, "index")) != same, (name, place)
        (path / name).write_bytes(content)
    assert damage_in(path, "index") == ""


def json_or_none(content):
    try:
        return json.loads(content)
    except ValueError:
        return None


def link(path):
    """Replaces a file by a link: an index of somebody else's could have one to any file."""
    path.rename(path.with_name(".moved"))
    path.symlink_to(".moved")


@cases(
    "change, message",
    (lambda d: (d / "a").write_bytes(b"012"), "a has 3 bytes, but 4 were written"),
    (lambda d: (d / "a").write_bytes(b"0124"), "a is not the file that was written"),
    (lambda d: (d / "deep" / "empty").unlink(), "deep/empty cannot be read (No such file"),
    (lambda d: (d / "deep" / MANIFEST).touch(), "deep/manifest.json was not written with"),
    (lambda d: link(d / "a"), "a is not a regular file"),
    (lambda d: (d / MANIFEST).unlink(), "(No such file or directory)"),
    (lambda d: (d / MANIFEST).write_text("{"), "not a manifest of the kind 'index' (Expecting"),
    (lambda d: (d / MANIFEST).write_text("[" * 100_000), "not a manifest"),
    (lambda d: (d / MANIFEST).write_text('{"files": {"a": 1}}'), "(kind is missing)"),
    (lambda d: (d / MANIFEST).write_bytes(b"\xff"), "not a manifest"),
)
def test_damage_is_named(path, change, message):
    change(path)
    assert message in damage_in(path, "index")


def test_contents_are_read_again_only_where_the_time_of_a_file_has_changed(path, monkeypatch):
    read = []
    digest = module.file_digest
    monkeypatch.setattr(module, "file_digest", lambda file: read.append(file.name) or digest(file))
    assert Folder.read(path, "index").damage() == ""
    assert read == []
    shutil.copytree(path, path.with_name("archived"))  # keeps times, as archives do
    assert damage_in(path.with_name("archived"), "index") == ""
    assert read == []
    (path / "a").touch()
    assert damage_in(path, "index") == ""
    assert read == ["a"]


def test_a_change_of_the_moment_after_writing_is_found(tmp_path):
    """However coarse the clock of the file system is: the noted time is in the past."""
    (tmp_path / "file").write_text("a")
    note = FileNote.of(tmp_path / "file")
    assert (tmp_path / "file").stat().st_mtime_ns == note.modified * 10**9
    (tmp_path / "file").write_text("b")
    assert "SHA-256" in damage_to(tmp_path, {"file": note})


def test_a_folder_of_another_kind_is_refused_and_one_with_a_changed_entry_may_be_replaced(path):
    with pytest.raises(InputError, match=r"of the kind 'query' or 'run' \(its kind is 'index'\)"):
        Folder.read(path, "query", "run")
    manifest = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps({**manifest, "facts": {"documents": 3}}))
    with pytest.raises(InputError, match=r"that its digest was made of\)\. Mend it"):
        Folder.read(path, "index", remedy="Mend it")
    module.check_kind(path, "index")
    with pytest.raises(InputError, match="its kind is"):
        module.check_kind(path, "query")


def write(path, text):
    with new_folder(path, "index", replace=True) as (written, _):
        (written / "a").write_text(text)


def test_a_folder_that_is_replaced_while_it_is_opened_is_opened_again(path, monkeypatch):
    seen = []

    def open_(folder):
        content = (folder.path / "a").read_text()
        seen.append(content)
        if len(seen) < 3:
            write(path, f"new {len(seen)}")
        if len(seen) == 2:
            raise FileNotFoundError
        return content

    assert module.opened(path, "index", "remedy", open_) == "new 2"
    assert seen == ["0123", "new 1", "new 2"]
    read = Folder.read

    def read_and_replace(*arguments):  # what is module.opened is no longer what the manifest says
        monkeypatch.setattr(Folder, "read", read)
        folder = read(*arguments)
        write(path, "replaced")
        return folder

    monkeypatch.setattr(Folder, "read", read_and_replace)
    assert module.opened(path, "index", "remedy", open_) == "replaced"
    (path / "a").write_text("damaged")
    with pytest.raises(InputError, match=r"it is damaged: a has 7 bytes.*remedy"):
        module.opened(path, "index", "remedy", open_)


def test_a_folder_that_grows_notes_each_part(tmp_path, monkeypatch):
    """Hazard: Ctrl-C between the first file and the manifest left a run that nothing continued."""
    with flushed_before_named(monkeypatch, lambda: Folder.read(tmp_path, "run")):
        for text in ("1", "22"):
            with adding(tmp_path, "run", tmp_path / "file") as temporary:
                temporary.write_text(text)
    with adding(tmp_path, "run", tmp_path / "part") as temporary:
        temporary.mkdir()
        (temporary / "inner").write_text("333")
    folder = Folder.read(tmp_path, "run")
    assert {name: note.bytes for name, note in folder.files.items()} == {"file": 2, "part/inner": 3}
    assert folder.damage() == ""
    assert sorted(os.listdir(tmp_path)) == ["file", MANIFEST, "part"]


@cases("replaced", False, True)
def test_whenever_the_process_or_the_power_goes_a_folder_is_whole(tmp_path, monkeypatch, replaced):
    path, contents = tmp_path / "new", set()
    if replaced:
        write(path, "old")

    def look():
        if path.exists():
            assert damage_to(path, Folder.read(path, "index").files) == ""
            contents.add((path / "a").read_text())

    with flushed_before_named(monkeypatch, look):
        write(path, "new!")
        with adding(path, "index", path / "a") as temporary:
            temporary.write_text("other")
    assert contents == {"new!", "other"}


@cases("content", *CONTENTS, ids=len)
def test_file_digest_covers_the_whole_file(content, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert module.file_digest(path) == hashlib.sha256(content).hexdigest()
    assert module.file_digest(path, "md5") == hashlib.md5(content).hexdigest()


def test_joint_digest_covers_names_sizes_and_contents(tmp_path):
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "b").write_bytes(b"")
    expected = hashlib.sha256(b"a\x002\x0012b\x000\x00").hexdigest()
    assert module.joint_digest([tmp_path / "a", tmp_path / "b"]) == expected


def test_files_below_a_directory_at_any_depth(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "graph").touch()
    (tmp_path / "deep" / "er" / "weights").touch()
    assert module.files_below(tmp_path) == ["deep/er/weights", "graph"]
