"""Digests of files: of one, of several together, of each below a directory."""

import functools
import hashlib
import json
import os

import pytest

from tf_smoothclir.utils.digests import (
    check_digests,
    check_own_digest,
    file_digest,
    file_digests,
    files_below,
    joint_digest,
    with_own_digest,
)
from tf_smoothclir.utils.errors import InputError

CONTENTS = [b"", b"graph", bytes(range(250)) * 40_000]  # the last one takes several reads


@pytest.fixture
def directory(tmp_path):
    """A directory with two files, one of them in a folder."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "graph").write_bytes(b"graph")
    (tmp_path / "deep" / "er" / "weights").write_bytes(b"weights")
    return tmp_path


@pytest.mark.parametrize("content", CONTENTS, ids=len)
def test_file_digest_covers_the_whole_file(content, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert file_digest(path) == hashlib.sha256(content).hexdigest()
    assert file_digest(path, "md5") == hashlib.md5(content).hexdigest()


def test_joint_digest_changes_with_content_names_and_file_boundaries(tmp_path):
    def digest(*files):
        paths = []
        for folder, (name, content) in enumerate(files):
            paths.append(tmp_path / str(folder) / name)
            paths[-1].parent.mkdir(exist_ok=True)
            paths[-1].write_bytes(content)
        return joint_digest(paths)

    sets = [
        [("a", b"1"), ("b", b"23")],
        [("a", b"12"), ("b", b"3")],
        [("a", b"1"), ("b", b"24")],
        [("a", b"1"), ("c", b"23")],
    ]
    assert len({digest(*files) for files in sets}) == len(sets)
    assert digest(*sets[0]) == digest(*sets[0])


def test_joint_digest_covers_names_sizes_and_contents(tmp_path):
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "b").write_bytes(b"")
    expected = hashlib.sha256(b"a\x002\x0012b\x000\x00").hexdigest()
    assert joint_digest([tmp_path / "a", tmp_path / "b"]) == expected


def test_files_below_a_directory_or_folders_of_it(directory):
    assert files_below(directory) == ["deep/er/weights", "graph"]
    assert files_below(directory, ["deep"]) == ["deep/er/weights"]
    assert files_below(directory, []) == files_below(directory, ["missing"]) == []


def test_file_digests_leave_out_missing_files(directory):
    assert file_digests(directory, iter(["graph", "missing", "deep", "deep/er/weights"])) == {
        "graph": hashlib.sha256(b"graph").hexdigest(),
        "deep/er/weights": hashlib.sha256(b"weights").hexdigest(),
    }


@pytest.mark.parametrize("name", ["graph", "deep/er/weights"])
@pytest.mark.parametrize("change", [os.remove, functools.partial(os.truncate, length=3)])
def test_a_file_that_differs_is_named_with_the_remedy(directory, name, change):
    written = file_digests(directory, files_below(directory))
    (directory / "beside").write_bytes(b"more")
    check_digests(directory, written, "Do it again")
    change(directory / name)
    with pytest.raises(InputError, match=f"{name}: the file is not .* written. Do it again."):
        check_digests(directory, written, "Do it again")


def test_own_digest_is_of_the_entries_however_they_are_written():
    written = with_own_digest({"a": (1, 0.1), "é": {"b": None}})
    read = json.loads(json.dumps(dict(reversed(written.items())), indent=1))
    check_own_digest(read)
    for change in ({"a": [1, 0.2]}, {"more": 1}, {"digest": None}):
        with pytest.raises(ValueError, match="its entries are not those"):
            check_own_digest({**read, **change})
