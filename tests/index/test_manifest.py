"""The manifest of an index: read as it was written, and checked."""

import json

import pytest

from tests.index.helpers import TOWER
from tf_smoothclir.index.manifest import DenseNote, IndexManifest, Recall, check_is_index
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

VECTORS = DenseNote(8, IndexSettings("hnsw", 32, 32), Recall(0.997, 10, 1000, "queries"))
MANIFEST = {
    "version": 1,
    "pair_id": "a" * 64,
    "thresholds": (0.2, 0.7),
    "fingerprint": "b" * 64,
    "collection_name": "toy-en-fr",
    "data": DataSettings(),
    "documents": 2000,
    "content": "000002",
    "digests": {"000002/documents/hashes": "c" * 64},
    "cut_points": CutPoints((0.2, 0.7), (), (0.2, 0.7)),
    "parts": ("query", "document"),
    "vectors": VECTORS,
}
REQUIRED = ["role", *(name for name in MANIFEST if name != "vectors")]


@pytest.mark.parametrize("change", [{}, {"data": None}, {"vectors": None}])
def test_manifest_is_read_as_it_was_written(tmp_path, change):
    manifest = IndexManifest(**{**MANIFEST, **change})
    manifest.write(tmp_path)
    assert IndexManifest.read(tmp_path) == manifest


def entries(tmp_path):
    IndexManifest(**MANIFEST).write(tmp_path)
    return json.loads((tmp_path / "manifest.json").read_text())


@pytest.mark.parametrize("name", REQUIRED)
def test_missing_entry_is_named(tmp_path, name):
    written = {key: value for key, value in entries(tmp_path).items() if key != name}
    (tmp_path / "manifest.json").write_text(json.dumps(written))
    with pytest.raises(InputError, match=rf"manifest\.json: .*{name}'? ?.*\. Choose"):
        IndexManifest.read(tmp_path)


@pytest.mark.parametrize("name", [*REQUIRED, "vectors"])
def test_entry_of_another_type_is_named(tmp_path, name):
    written = {**entries(tmp_path), name: 1.5}
    (tmp_path / "manifest.json").write_text(json.dumps(written))
    with pytest.raises(InputError, match=rf"{name}.* 1\.5"):
        IndexManifest.read(tmp_path)


def test_manifest_of_a_tower_is_not_that_of_an_index(tmp_path):
    TOWER.write(tmp_path)
    with pytest.raises(InputError, match=r"role 'index' \(its role is 'document'\)"):
        IndexManifest.read(tmp_path)


def test_manifest_is_described_in_one_line():
    described = str(IndexManifest(**MANIFEST))
    assert described == "2000 documents; hnsw, recall@10 0.9970 (queries)"


@pytest.mark.parametrize("change", [{"thresholds": [0.2, 0.6]}, {"documents": 2001}])
def test_changed_entry_is_found(tmp_path, change):
    changed = {**entries(tmp_path), **change}
    (tmp_path / "manifest.json").write_text(json.dumps(changed))
    with pytest.raises(InputError, match="its entries are not those that its digest was made of"):
        IndexManifest.read(tmp_path)
    check_is_index(tmp_path)  # so that it can be replaced
