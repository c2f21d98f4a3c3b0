"""The manifest of an index: read and written as before, and checked."""

import json

import pytest

from tests.index.helpers import TOWER
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

# As earlier releases wrote it, in this order.
ENTRIES = {
    "version": 1,
    "pair_id": "a" * 64,
    "dim": 8,
    "thresholds": [0.2, 0.7],
    "role": "index",
    "collection": "b" * 64,
    "name": "toy-en-fr",
    "data": {
        "data_dir": "",
        "tfds_name": "",
        "tfds_data_dir": "",
        "query_language": "en",
        "document_language": "fr",
        "toy_entities": 2000,
        "split_seed": 13,
        "cache_dir": "",
    },
    "recall": {"value": 0.997, "depth": 10, "queries": 1000, "measured_by": "queries"},
    "generation": 2,
    "index": {"kind": "hnsw", "hnsw_neighbours": 32, "search_effort": 32},
    "documents": 2000,
    "removed": 2,
    "current": "generations/000002",
    "segments": ["segments/000001-000000", "segments/000002-000000"],
    "files": {"generations/000002/removed": "c" * 64},
}


def write(directory, entries):
    text = json.dumps(entries, indent=2) + "\n"
    (directory / "manifest.json").write_text(text)
    return text


@pytest.mark.parametrize("change", [{}, {"data": None}, {"changed": True}])
def test_manifest_of_earlier_releases_is_read_and_written_unchanged(tmp_path, change):
    text = write(tmp_path, {**ENTRIES, **change})
    manifest = IndexManifest.read(tmp_path)
    assert manifest.settings == IndexSettings("hnsw", 32, 32)
    assert manifest.data == (None if "data" in change else DataSettings())
    assert manifest.changed == ("changed" in change)
    manifest.write(tmp_path)
    assert (tmp_path / "manifest.json").read_text() == text


@pytest.mark.parametrize("name", ENTRIES)
def test_missing_entry_is_named(tmp_path, name):
    write(tmp_path, {key: value for key, value in ENTRIES.items() if key != name})
    with pytest.raises(
        InputError, match=rf"manifest\.json: .* \(it has no entry '{name}'\)\. Choose"
    ):
        IndexManifest.read(tmp_path)


@pytest.mark.parametrize("name", [*(name for name in ENTRIES if name != "data"), "changed"])
def test_entry_of_another_type_is_named(tmp_path, name):
    write(tmp_path, {**ENTRIES, name: None})
    with pytest.raises(InputError, match=rf"its entry '{name}' is None"):
        IndexManifest.read(tmp_path)


def test_manifest_of_a_tower_is_not_that_of_an_index(tmp_path):
    TOWER.write(tmp_path)
    with pytest.raises(InputError, match=r"role 'index' \(its role is 'document'\)"):
        IndexManifest.read(tmp_path)
