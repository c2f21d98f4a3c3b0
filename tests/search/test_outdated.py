"""After a new training exported into the same directory, the index is made anew by one command."""

import dataclasses
import json
import shlex
import shutil

import pytest

from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.index.export_halves import export_halves
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.search.outdated import rebuilding
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.digests import with_own_digest
from tf_smoothclir.utils.errors import InputError


@pytest.fixture
def retrained(export_dir, tmp_path):
    """An export with an index of files, and then version 2, which is of another run."""
    export = shutil.copytree(export_dir, tmp_path / "an export")
    (tmp_path / "own.tsv").write_text("a\tmot1 mot2\nb\tmot3\n")
    collection = open_files(tmp_path / "own.tsv", "--collection")
    build_index(export / "index", collection, *export_halves(export))
    for part in ("query_tower", "document_tower"):
        shutil.copytree(export / part / "1", export / part / "2")
        manifest = export / part / "2" / "manifest.json"
        entries = {**json.loads(manifest.read_text()), "version": 2, "pair_id": "f" * 64}
        manifest.write_text(json.dumps(with_own_digest(entries)))
    return export


def test_the_error_has_the_command_that_builds_the_same_index_again(retrained):
    with pytest.raises(InputError) as error:
        open_search(retrained, "", lambda data: data)
    command = str(error.value).partition("Build the index again: ")[2].rstrip(".")
    assert shlex.split(command) == [
        "smoothclir-index",
        f"--export_dir={retrained}",
        f"--collection={retrained.parent}/own.tsv",
        "--overwrite",
    ]


def test_the_command_has_what_differs_from_the_set_of_the_run(retrained):
    manifest = IndexManifest.read(retrained / "index")
    other = dataclasses.replace(manifest, data=DataSettings(data_dir="/a set", cache_dir="x"))
    trained_on = DataSettings(cache_dir="y", toy_entities=500)
    found = rebuilding(retrained, retrained / "other", other, trained_on)
    assert shlex.split(found) == [
        "smoothclir-index",
        f"--export_dir={retrained}",
        f"--index_dir={retrained}/other",
        "--data_dir=/a set",
        "--toy_entities=2000",
        "--overwrite",
    ]
