"""Digests of files: of one, and of several together."""

import hashlib

import pytest

from tf_smoothclir.storage.digests import file_digest, files_below, joint_digest

CONTENTS = [b"", b"graph", bytes(range(250)) * 40_000]  # the last one takes several reads


@pytest.mark.parametrize("content", CONTENTS, ids=len)
def test_file_digest_covers_the_whole_file(content, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert file_digest(path) == hashlib.sha256(content).hexdigest()
    assert file_digest(path, "md5") == hashlib.md5(content).hexdigest()


def test_joint_digest_covers_names_sizes_and_contents(tmp_path):
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "b").write_bytes(b"")
    expected = hashlib.sha256(b"a\x002\x0012b\x000\x00").hexdigest()
    assert joint_digest([tmp_path / "a", tmp_path / "b"]) == expected


def test_files_below_a_directory_at_any_depth(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "graph").touch()
    (tmp_path / "deep" / "er" / "weights").touch()
    assert files_below(tmp_path) == ["deep/er/weights", "graph"]
