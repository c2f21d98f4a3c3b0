"""Paths as people write them: ~ is the home directory in Python too."""

import pytest

import tf_smoothclir as sc
from tf_smoothclir.data.token_cache import default_cache_dir
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.papers.liu2020.polyglot import convert_polyglot
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.paths import local_path

USES = {
    "load": sc.load,
    "compare": lambda path: sc.compare(path, "other", qrels="~/qrels"),
    "train": lambda path: sc.train(path),
    "Encoder": lambda path: Encoder(path, "query"),
    "documents": lambda path: open_files(path, "--collection"),
    "Polyglot": lambda path: convert_polyglot(path, "out"),
    "output": lambda path: make_directory(f"{path}/file/below", "--output_dir"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_home_directory_in_python(tmp_path, monkeypatch, use):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    monkeypatch.chdir(tmp_path / "there")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises((InputError, OSError), match=rf"{tmp_path}/(there|qrels)"):
        use("~/there")
    assert [path.name for path in tmp_path.glob("**/*")] == ["there", "file"]


def test_paths_that_cannot_be_are_refused(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "~/cache")
    monkeypatch.setenv("HOME", "/anywhere")
    assert str(default_cache_dir()) == "/anywhere/cache/tf_smoothclir"
    assert [local_path(path) for path in ("a/~", DataSettings.data_dir)] == ["a/~", ""]
    with pytest.raises(InputError, match=r"'a\\udcff': the path is not UTF-8"):
        local_path("a\udcff")
    monkeypatch.setattr("os.path.expanduser", str)  # as for a user that the system does not know
    with pytest.raises(InputError, match="~/a: nobody knows the home directory"):
        local_path("~/a")
