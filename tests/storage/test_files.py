"""Files and directories appear whole or not at all; parts of files."""

import errno
import math
import os
import stat
import subprocess
import sys
import zipfile
from unittest import mock

import numpy as np
import pytest

from tests.cases import cases
from tests.disk_faults import Crash, at_call
from tf_smoothclir.storage import files, random_access
from tf_smoothclir.storage.random_access import RandomAccess, StoredMatrix
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.printing import standard_error_in


def everything(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


@cases("mask", 0o022, 0o077)
def test_new_directory_appears_at_the_end(tmp_path, mask):
    target, before = tmp_path / "a" / "b", os.umask(mask)
    with files.new_directory(target) as temporary:
        (temporary / "deep").mkdir()
        (temporary / "deep" / "file").write_text("1")
        assert not target.exists()
        assert temporary.parent.parent == target.parent  # one file system: renaming works
    assert everything(tmp_path / "a") == ["b", "b/deep", "b/deep/file"]
    os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o777 & ~mask


@cases("in_the_way, error", (False, Crash), (True, OSError))
def test_new_directory_leaves_nothing_behind_on_an_error(tmp_path, in_the_way, error):
    def write_and_fail():
        with files.new_directory(tmp_path / "new") as temporary:
            (temporary / "ours").write_text("1")
            if not in_the_way:
                raise Crash
            (tmp_path / "new").write_text("theirs")

    with pytest.raises(error):
        write_and_fail()
    assert everything(tmp_path) == ["new"] * in_the_way


@cases("content", [], ["theirs"])
def test_a_directory_created_in_the_meantime_stays(tmp_path, content):
    target = tmp_path / "new"
    with files.new_directory(target) as temporary:
        (temporary / "ours").write_text("1")
        target.mkdir()
        for name in content:
            (target / name).write_text("2")
    # An empty directory is replaced, as if this process had come first.
    assert everything(target) == (content or ["ours"])
    assert everything(tmp_path) == ["new", f"new/{(content or ['ours'])[0]}"]


def test_a_directory_is_replaced_only_after_the_new_one_is_on_disk(tmp_path, monkeypatch):
    target = tmp_path / "new"
    target.mkdir()
    (target / "former").write_text("1")

    def replace():
        with files.new_directory(target, replace=True) as temporary:
            (temporary / "file").write_text("2")

    full_disk = mock.Mock(side_effect=OSError("No space left on device"))
    monkeypatch.setattr(files, "flush_to_disk", full_disk)
    with pytest.raises(OSError, match="No space"):
        replace()
    assert everything(tmp_path) == ["new", "new/former"]
    monkeypatch.undo()
    replace()
    assert everything(tmp_path) == ["new", "new/file"]


@cases("system", True, False, ids=["in one step", "by renaming"])
def test_two_directories_are_exchanged(tmp_path, monkeypatch, system):
    if not system:
        monkeypatch.setattr("ctypes.CDLL", lambda *arguments, **keywords: None)
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    files.exchange(tmp_path / "a", tmp_path / "b")
    assert everything(tmp_path) == ["a", "a/b", "b", "b/a"]
    if not system:
        full = mock.Mock(side_effect=OSError("No space left on device"))
        monkeypatch.setattr(os, "rename", at_call(2, os.rename, full))
        with pytest.raises(OSError, match="No space"):
            files.exchange(tmp_path / "a", tmp_path / "b")
        assert everything(tmp_path) == ["a", "a/b", "b", "b/a"]


def test_errors_while_a_file_is_written_name_it(tmp_path):
    """Python's own errors of a full disk name none."""
    full = "/dev/full"
    for write in (
        lambda: files.open_to_write(full).write(b"x" * 100_000),
        lambda: files.open_text_to_write(full).write("x" * 100_000),
    ):
        with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
            write()
    with pytest.raises(OSError, match="'/dev/full'"), files.open_to_write(full) as file:
        file.write(b"x")  # noticed when it is closed
    with pytest.raises(OSError, match="'inner'"), files.naming("outer"), files.naming("inner"):
        raise OSError(28, "No space left on device")


KILLED = """
import os, pathlib, sys
from tf_smoothclir.storage.files import scratch_directory
with scratch_directory(pathlib.Path(sys.argv[1]), "tokens") as directory:
    (directory / "half").write_text("1")
    os._exit(9)
"""


def test_the_next_process_deletes_what_a_killed_one_left(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert files.is_unfinished(left.name)
    assert not any(files.is_unfinished(name) for name in ("words.txt", ".words.txt", "a.new", "1"))
    assert everything(left) == ["half"]
    foreign = tmp_path / ".tokens.backup.new"
    foreign.mkdir()
    begun = left.with_suffix(".begun")
    begun.mkdir()
    assert files.is_unfinished(begun.name)
    with files.scratch_directory(tmp_path, "other"):
        assert left.exists()
    with files.scratch_directory(tmp_path, "tokens"):
        assert not left.exists()
        assert begun.exists()  # so young that its process may be about to lock it
    for directory in (begun, foreign):
        os.utime(directory, (0, 0))
    with files.scratch_directory(tmp_path, "tokens") as ours:
        os.utime(ours, (0, 0))
        with files.scratch_directory(tmp_path, "tokens"):
            assert ours.exists()  # its process is at work
    assert everything(tmp_path) == [".tokens.backup.new"]


def test_make_directory_makes_parents_and_accepts_an_existing_directory(tmp_path):
    for path in (tmp_path / "a" / "b", str(tmp_path / "a" / "b")):
        assert files.make_directory(path, "--cache_dir") == tmp_path / "a" / "b"
    assert everything(tmp_path) == ["a", "a/b"]  # no trace of the trial file
    # A place that cannot be written is said in words.
    (tmp_path / "file").touch()
    message = "/file/below: the directory cannot be.*Choose another one, or change"
    with pytest.raises(InputError, match=f"^--output_dir=.*{message}"):
        files.make_directory(f"{tmp_path}/file/below", "--output_dir")
    for write in (files.write_text, lambda path, _: files.new_directory(path).__enter__()):
        with pytest.raises(InputError, match=message):
            write(tmp_path / "file" / "below" / "new", "")


def lock(path):
    return files.locked(path, "--here", "somebody is at work", "Wait")


def test_a_lock_keeps_others_out_until_it_is_released(tmp_path):
    mistake = pytest.raises(InputError, match=r"--here: somebody is at work\. Wait")
    with lock(tmp_path / "lock"), mistake, lock(tmp_path / "lock"):
        pass
    with lock(tmp_path / "lock"):
        pass


def test_a_file_system_without_locks_only_gets_a_warning(tmp_path, monkeypatch, caplog):
    refuse = mock.Mock(side_effect=OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)))
    monkeypatch.setattr("fcntl.flock", refuse)
    with lock(tmp_path / "lock"), lock(tmp_path / "lock"):
        pass
    assert caplog.text.count(f"{tmp_path}/lock cannot be locked: No locks available") == 2


def test_write_text_is_utf8_and_replaces_or_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.md"
    files.write_text(path, "old, and longer than what follows")
    files.write_text(path, "θ = 1\n")
    assert path.read_bytes() == b"\xce\xb8 = 1\n"
    monkeypatch.setattr(files, "flush_to_disk", mock.Mock(side_effect=Crash))
    with pytest.raises(Crash):
        files.write_text(path, "new")
    with pytest.raises(UnicodeEncodeError):
        files.write_text(tmp_path / "other", "half a pair: \ud800")
    assert path.read_bytes() == b"\xce\xb8 = 1\n"
    assert everything(tmp_path) == ["file.md"]


def test_links_are_followed_by_whatever_is_written(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("old")
    (tmp_path / "elsewhere" / "file").chmod(0o600)
    for name in ("file", "new", "directory"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere" / name)
    for name in ("file", "new"):
        files.write_text(tmp_path / name, "text")
    for content in "12":  # made, then replaced
        with files.new_directory(tmp_path / "directory", replace=True) as temporary:
            (temporary / content).touch()
    assert all((tmp_path / name).is_symlink() for name in ("file", "new", "directory"))
    there = ["directory", "directory/2", "file", "new"]
    assert everything(tmp_path / "elsewhere") == there
    assert (tmp_path / "elsewhere" / "file").read_text() == "text"
    assert stat.S_IMODE((tmp_path / "elsewhere" / "file").stat().st_mode) == 0o600
    files.delete_in(tmp_path, ["directory"])
    assert everything(tmp_path / "elsewhere") == there
    (tmp_path / "directory").symlink_to(tmp_path / "elsewhere" / "directory")
    files.discard_directory(tmp_path / "directory")
    assert everything(tmp_path / "elsewhere") == there[2:]


def test_what_goes_to_a_pipe_or_to_standard_output_is_written_there(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["timeout", "20", "cat", str(pipe)], stdout=subprocess.PIPE)
    files.check_output_file(pipe, "--trec_run")
    os.symlink("loop", tmp_path / "loop")
    with pytest.raises(InputError, match=r"loop: its links lead in a circle"):
        files.check_output_file(tmp_path / "loop", "--trec_run")
    (tmp_path / "loop").unlink()
    files.write_text(pipe, "to a pipe")
    assert reader.communicate(timeout=20)[0] == b"to a pipe"
    assert stat.S_ISFIFO(pipe.stat().st_mode)

    link.symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    code = "import sys; from tf_smoothclir.storage.files import *\nprint(1)\n"
    code += "check_output_file(sys.argv[1], ''); write_text(sys.argv[1], '2'); print(3)"
    program = [sys.executable, "-c", code, str(link)]
    assert subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout == b"1\n23\n"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run(program, stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "1\n23\n"
    assert everything(tmp_path) == ["link", "out", "pipe"]


def test_a_record_that_cannot_be_read_is_said_in_words(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "deep").write_text("[" * 100_000)
    (tmp_path / "bytes").write_bytes(b"\xff")
    (tmp_path / "list").write_text("[]")
    for name in ("pipe", "deep", "bytes", "list", "missing"):
        with pytest.raises(InputError, match=f"{name}: .*. Mend it"):
            files.read_record(tmp_path / name, dict, "Mend it")


@cases("shape", "(" * 999 + ")" * 999, "(9,)", "(1,", "()")
def test_arrays_that_cannot_be_read_are_said_in_words(tmp_path, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        head = b"\x93NUMPY\x02\0" + len(header).to_bytes(4, "little")
        file.writestr("values.npy", head + header + b"\0\0\0\0")
    message = "no array 'row_ends'" if shape == "()" else "its arrays cannot be read"
    with pytest.raises(InputError, match=f"a.npz: .*{message}"):
        files.read_arrays(tmp_path / "a.npz", "values", "row_ends")


def test_write_text_by_two_writers_never_mixes_them(tmp_path, monkeypatch):
    path = tmp_path / "file"

    def write_meanwhile(file):
        monkeypatch.undo()
        files.write_text(path, "theirs")
        assert path.read_text() == "theirs"
        files.flush_to_disk(file)

    monkeypatch.setattr(files, "flush_to_disk", write_meanwhile)
    files.write_text(path, "ours")
    assert path.read_text() == "ours"
    assert everything(tmp_path) == ["file"]


def test_json_round_trip(tmp_path):
    value = {"θ": [0.2, 0.7], "n": 3, "none": None, "nested": {"a": "ü"}}
    files.write_json(tmp_path / "a.json", value)
    assert files.read_json(tmp_path / "a.json") == value
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert '"θ"' in text
    assert text.endswith("}\n")
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            files.write_json(tmp_path / "a.json", {"MAP": number})
    assert files.read_json(tmp_path / "a.json") == value


def test_all_standard_error_is_appended_to_a_file_and_then_restored(tmp_path, capfd):
    path = tmp_path / "log"
    path.write_text("before\n")
    with standard_error_in(path):
        os.write(2, b"as C writes\n")
        subprocess.run([sys.executable, "-c", "import os; os.write(2, b'child')"], check=True)
    with pytest.raises(KeyError), standard_error_in(path):
        raise KeyError
    os.write(2, b"back")
    assert path.read_text() == "before\nas C writes\nchild"
    assert capfd.readouterr().err == "back"


@pytest.fixture(name="file")
def _file(tmp_path):
    np.arange(100, dtype="<i4").tofile(tmp_path / "values")
    return RandomAccess(tmp_path / "values", "<i4")


@cases(
    "parts",
    [],
    [(7, 0)],
    [(0, 100)],
    [(90, 10), (0, 3), (3, 0), (3, 4), (7, 1), (2, 5)],
    ids=["none", "empty", "all", "some, which overlap and follow each other"],
)
@cases("most", 3, 1 << 20)
def test_values_of_parts_come_in_their_order(file, parts, most, monkeypatch):
    read = os.pread  # which may read less than it is asked for
    monkeypatch.setattr(
        random_access.os, "pread", lambda file, size, at: read(file, min(size, most), at)
    )
    begins, lengths = np.array(parts, np.int64).reshape(-1, 2).T
    expected = [place for begin, length in parts for place in range(begin, begin + length)]
    assert file.parts(begins, lengths).tolist() == expected
    for begin, length in parts:
        found = np.frombuffer(file.part(begin, length), "<i4")
        assert found.tolist() == list(range(begin, begin + length))
    assert len(file) == 100


def test_a_file_that_was_cut_is_an_error_that_names_it(file):
    os.truncate(file.path, 4 * 99)
    assert file.parts(np.array([98]), np.array([1])).tolist() == [98]
    with pytest.raises(InputError, match=r"values: it ends too early\. Build the index again"):
        file.parts(np.array([98]), np.array([2]))


def test_the_file_is_closed_with_its_reader(file):
    reader = RandomAccess(file.path, "<i4")
    number = reader._file
    os.fstat(number)
    del reader
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_rows_of_a_stored_matrix_are_those_of_the_matrix(file):
    expected, stored = np.arange(100).reshape(20, 5), StoredMatrix(file.path, "<i4", 5)
    assert (len(stored), stored.shape) == (20, (20, 5))
    for rows in (slice(18, 30), slice(0, 0), np.array([7, 8, 3, 3]), np.zeros(0, np.int64)):
        assert stored[rows].tolist() == expected[rows].tolist()
